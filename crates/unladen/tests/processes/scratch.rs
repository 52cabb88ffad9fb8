//! What every test here needs: a launcher with this binary as its guard, and a folder for logs.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use unladen_linux::hierarchy::Mounts;
use unladen_linux::process::Identity;
use unladen_processes::subject::{Launch, Launcher, LauncherOptions, Readiness, Running};

use crate::child;

/// Whoever closes a launcher kills the orphans of its process that carry no mark. unladen has one launcher, here are many: a test that
/// makes such an orphan must be the only one.
static LAUNCHERS: RwLock<()> = RwLock::new(());

/// A launcher and a folder, both gone at the end of the test.
pub(crate) struct Scratch {
    pub(crate) launcher: Launcher,
    pub(crate) folder: TempDir,
    /// Last, so that others wait until the launcher is closed.
    _turn: Turn,
}

type Turn = (Option<RwLockReadGuard<'static, ()>>, Option<RwLockWriteGuard<'static, ()>>);

/// With or without control groups.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Groups {
    With,
    Without,
}

impl Groups {
    fn mounts(self) -> Option<Mounts> {
        (self == Self::With).then(Mounts::of_this_process)
    }
}

impl Scratch {
    pub(crate) fn new(groups: Groups) -> Self {
        Self::on(groups.mounts(), false)
    }

    /// The only launcher of this process until it is dropped.
    pub(crate) fn alone(groups: Groups) -> Self {
        let turn = LAUNCHERS.write().unwrap_or_else(PoisonError::into_inner);
        Self::launcher(groups.mounts(), false, (None, Some(turn)))
    }

    pub(crate) fn on(mounts: Option<Mounts>, limits: bool) -> Self {
        let turn = LAUNCHERS.read().unwrap_or_else(PoisonError::into_inner);
        Self::launcher(mounts, limits, (Some(turn), None))
    }

    fn launcher(mounts: Option<Mounts>, limits: bool, turn: Turn) -> Self {
        let options = LauncherOptions { random: random(), limits, guard: child::command("guard", &[]), mounts };
        let launcher = Launcher::new(&options).expect("the guard starts");
        Self { launcher, folder: tempfile::tempdir().expect("a temporary folder"), _turn: turn }
    }

    /// A launch of a plain command.
    pub(crate) fn command(&self, service: &str, words: &[&str]) -> Launch {
        Launch {
            service: service.to_owned(),
            command: words.iter().map(|&word| word.to_owned()).collect(),
            cwd: self.folder.path().to_owned(),
            log: self.folder.path().join(format!("logs/{service}.log")),
            ..Launch::default()
        }
    }

    /// A launch of a shell script.
    pub(crate) fn shell(&self, service: &str, script: &str) -> Launch {
        self.command(service, &["sh", "-c", script])
    }

    /// A launch of this binary in one of the roles of [`child`].
    pub(crate) fn child(&self, service: &str, role: &str, arguments: &[&str]) -> Launch {
        let words = child::command(role, arguments);
        let words: Vec<&str> = words.iter().map(|word| word.to_str().expect("plain text")).collect();
        self.command(service, &words)
    }
}

/// Names differ between tests that run at the same time, also of two runs of this binary.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Instant::now())
}

/// Waits for readiness by a text in the log.
pub(crate) fn wait_for_log(running: &mut Running, text: &str) {
    let timeout = Duration::from_secs(20);
    let readiness =
        Readiness { http: None, tcp: None, log: Some(text.to_owned()), healthy: false, timeout, network: None };
    running.wait_ready(&readiness, &AtomicBool::new(false)).expect("the text appears");
}

/// The number behind `name=` in a log.
pub(crate) fn number_in_log(log: &Path, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(log).ok()?;
    let line = text.lines().rev().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    line.trim().parse().ok()
}

/// Waits until a condition holds; whether it did within the limit.
pub(crate) fn eventually(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Whether a process is gone, or only a zombie of it is left.
pub(crate) fn is_gone(pid: u32) -> bool {
    !Identity::of(pid).is_some_and(|identity| identity.is_alive())
}

/// Says loudly that a test needs more than this machine gives.
pub(crate) fn skipped(why: &str) {
    eprintln!("\nSKIPPED: {why}\n");
}
