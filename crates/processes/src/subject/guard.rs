//! The guard: a tiny process that outlives unladen, should unladen be killed with SIGKILL, and cleans up after it.
//!
//! It is this same executable (`unladen __guard`), in a session of its own, blocked in a read of a pipe. What to clean is
//! written to the pipe line by line; when the pipe ends without a goodbye, everything that was named is killed and removed.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use unladen_linux::process::{self, Identity};
use unladen_linux::tree::{Family, MARK};

use super::cgroups;
use super::container::engine::Engine;
use super::reaper;

/// Name of the hidden subcommand.
pub const SUBCOMMAND: &str = "__guard";

/// How long the guard goes on killing what does not go.
const PATIENCE: Duration = Duration::from_secs(5);

/// What unladen asked the engine for with its last breath is there after this time.
const SETTLING: Duration = Duration::from_millis(500);

/// unladen's end of the guard.
#[derive(Debug)]
pub struct Guard {
    pipe: Mutex<Option<ChildStdin>>,
    child: Mutex<Child>,
}

/// A line from unladen to its guard. Fields are separated by tabs, which none of them holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    /// A control group of the study.
    Cgroup(PathBuf),
    /// Marks of the study's processes start with this.
    Mark(String),
    /// A service has been started.
    Process(Family),
    /// It has been stopped and nothing of it is left.
    Forget(u32),
    /// A container is about to be made by the engine at this socket.
    Container(PathBuf, String),
    /// Everything that an engine knows by this label (`NAME=VALUE`) is to be removed.
    Labelled(PathBuf, String),
    /// A cluster by its number: a kubeconfig in one line, secrets included.
    Cluster(usize, String),
    /// A namespace is about to be made in the cluster with this number.
    Namespace(usize, String),
    /// It has been removed.
    Removed(String),
    /// All is clean.
    Goodbye,
}

impl Guard {
    /// Starts the guard: `command` is the program and its arguments.
    ///
    /// # Errors
    /// What the system says when it cannot be started.
    pub fn start(command: &[OsString]) -> io::Result<Self> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no command"))?;
        let mut guard = Command::new(program);
        guard.args(arguments).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: between fork and exec only a system call is made, nothing is allocated and no lock is taken.
        unsafe {
            guard.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into));
        }
        let mut child = reaper::spawn(&mut guard)?;
        let pipe = child.stdin.take();
        Ok(Self { pipe: Mutex::new(pipe), child: Mutex::new(child) })
    }

    /// Process id of the guard.
    #[must_use]
    pub fn pid(&self) -> u32 {
        lock(&self.child).id()
    }

    /// Names a control group of the study.
    pub fn cgroup(&self, directory: &Path) {
        self.send(&Line::Cgroup(directory.to_path_buf()));
    }

    /// Names what the marks of all processes of the study start with.
    pub fn mark(&self, prefix: &str) {
        self.send(&Line::Mark(prefix.to_owned()));
    }

    /// Names a process that has been started.
    pub fn process(&self, family: &Family) {
        self.send(&Line::Process(family.clone()));
    }

    /// Takes a process back that has been stopped.
    pub fn forget(&self, pid: u32) {
        self.send(&Line::Forget(pid));
    }

    /// Names a container that is about to be made.
    pub fn container(&self, socket: &Path, name: &str) {
        self.send(&Line::Container(socket.to_owned(), name.to_owned()));
    }

    /// Names a label that things of the engine at this socket are about to have.
    pub fn labelled(&self, socket: &Path, label: &str) {
        self.send(&Line::Labelled(socket.to_owned(), label.to_owned()));
    }

    /// Tells how a cluster is reached, by a number: the guard has no other way to know.
    #[cfg(feature = "kubernetes")]
    pub(super) fn cluster(&self, number: usize, kubeconfig: &str) {
        self.send(&Line::Cluster(number, kubeconfig.to_owned()));
    }

    /// Names a namespace that is about to be made in the cluster with this number.
    #[cfg(feature = "kubernetes")]
    pub(super) fn namespace(&self, number: usize, name: &str) {
        self.send(&Line::Namespace(number, name.to_owned()));
    }

    /// Takes a container, a label or a namespace back that has been removed.
    pub fn removed(&self, name: &str) {
        self.send(&Line::Removed(name.to_owned()));
    }

    /// Lets the guard go: there is nothing left to clean. Waits until it has gone.
    pub fn goodbye(&self) {
        self.send(&Line::Goodbye);
        lock(&self.pipe).take();
        let mut child = lock(&self.child);
        let _ = child.wait();
        reaper::forget(child.id());
    }

    /// A guard that has died is not worth failing a run for: unladen itself still cleans up.
    fn send(&self, line: &Line) {
        if let Some(pipe) = lock(&self.pipe).as_mut() {
            let _ = writeln!(pipe, "{line}").and_then(|()| pipe.flush());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cgroup(path) => write!(f, "cgroup\t{}", path.display()),
            Self::Mark(prefix) => write!(f, "mark\t{prefix}"),
            Self::Process(Family { root, mark }) => write!(f, "process\t{}\t{}\t{mark}", root.pid, root.start_ticks),
            Self::Forget(pid) => write!(f, "forget\t{pid}"),
            Self::Container(socket, name) => write!(f, "container\t{}\t{name}", socket.display()),
            Self::Labelled(socket, label) => write!(f, "labelled\t{}\t{label}", socket.display()),
            Self::Cluster(number, kubeconfig) => write!(f, "cluster\t{number}\t{kubeconfig}"),
            Self::Namespace(number, name) => write!(f, "namespace\t{number}\t{name}"),
            Self::Removed(name) => write!(f, "removed\t{name}"),
            Self::Goodbye => write!(f, "goodbye"),
        }
    }
}

impl Line {
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split('\t');
        Some(match fields.next()? {
            "cgroup" => Self::Cgroup(PathBuf::from(fields.next()?)),
            "mark" => Self::Mark(fields.next().filter(|prefix| !prefix.is_empty())?.to_owned()),
            "process" => {
                let (pid, start_ticks) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
                Self::Process(Family { root: Identity { pid, start_ticks }, mark: fields.next()?.to_owned() })
            }
            "forget" => Self::Forget(fields.next()?.parse().ok()?),
            "container" => Self::Container(PathBuf::from(fields.next()?), fields.next()?.to_owned()),
            "labelled" => Self::Labelled(PathBuf::from(fields.next()?), fields.next()?.to_owned()),
            "cluster" => Self::Cluster(fields.next()?.parse().ok()?, fields.next()?.to_owned()),
            "namespace" => Self::Namespace(fields.next()?.parse().ok()?, fields.next()?.to_owned()),
            "removed" => Self::Removed(fields.next()?.to_owned()),
            "goodbye" => Self::Goodbye,
            _ => return None,
        })
    }
}

/// Everything that is to be cleaned.
#[derive(Debug, Default)]
struct CleanupTasks {
    cgroups: Vec<PathBuf>,
    marks: Vec<String>,
    families: Vec<Family>,
    /// Socket of the engine, and name.
    containers: Vec<(PathBuf, String)>,
    /// Socket of the engine, and label.
    labels: Vec<(PathBuf, String)>,
    /// Number of the cluster, and how it is reached.
    clusters: Vec<(usize, String)>,
    /// Number of the cluster, and name.
    namespaces: Vec<(usize, String)>,
}

/// The guard's whole life: reads its standard input to the end and cleans up unless it was told goodbye. Run by the
/// hidden subcommand [`SUBCOMMAND`].
#[must_use]
pub fn main() -> std::process::ExitCode {
    // Descriptors that unladen was itself started with (a shell's, a CI job's pipe) must not stay open because of the guard.
    // SAFETY: nothing in this process has opened a descriptor beyond the standard three yet.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
    }
    for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: ignoring a signal installs no handler.
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    match listen(io::stdin().lock()) {
        None => std::process::ExitCode::SUCCESS,
        Some(tasks) => {
            tasks.fulfil();
            std::process::ExitCode::FAILURE
        }
    }
}

/// Reads until the end; `None` after a goodbye.
fn listen(input: impl BufRead) -> Option<CleanupTasks> {
    let mut tasks = CleanupTasks::default();
    for text in input.lines() {
        // A broken pipe is an end like any other.
        let Ok(text) = text else { break };
        match Line::parse(&text) {
            Some(Line::Cgroup(path)) => tasks.cgroups.push(path),
            Some(Line::Mark(prefix)) => tasks.marks.push(prefix),
            Some(Line::Process(family)) => tasks.families.push(family),
            Some(Line::Forget(pid)) => tasks.families.retain(|family| family.root.pid != pid),
            Some(Line::Container(socket, name)) => tasks.containers.push((socket, name)),
            Some(Line::Labelled(socket, label)) => tasks.labels.push((socket, label)),
            Some(Line::Cluster(number, kubeconfig)) => tasks.clusters.push((number, kubeconfig)),
            Some(Line::Namespace(number, name)) => tasks.namespaces.push((number, name)),
            Some(Line::Removed(name)) => {
                tasks.containers.retain(|(_, known)| *known != name);
                tasks.labels.retain(|(_, known)| *known != name);
                tasks.namespaces.retain(|(_, known)| *known != name);
            }
            Some(Line::Goodbye) => return None,
            None => {}
        }
    }
    Some(tasks)
}

impl CleanupTasks {
    fn fulfil(&self) {
        // A Compose tool that lives makes more of what is to be removed.
        self.end_processes();
        self.remove_containers();
        #[cfg(feature = "kubernetes")]
        super::kubernetes::clean(&self.clusters, &self.namespaces);
    }

    fn end_processes(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Groups first: what is in them can be killed without looking at every process of the machine.
            let emptied = cgroups::clean(&self.cgroups).is_ok();
            let left = self.members();
            for member in &left {
                let _ = member.signal(Signal::KILL);
            }
            if (emptied && left.is_empty()) || Instant::now() >= deadline {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The engine kills what runs in them. It may be about to make one that it does not know yet, so it is asked twice.
    fn remove_containers(&self) {
        let remove_all = || {
            for (socket, name) in &self.containers {
                let _ = Engine::connect(socket).and_then(|engine| engine.remove(name));
            }
            for (socket, label) in &self.labels {
                let _ = Engine::connect(socket).and_then(|engine| engine.remove_labelled(label));
            }
        };
        remove_all();
        if !self.containers.is_empty() || !self.labels.is_empty() {
            std::thread::sleep(SETTLING);
            remove_all();
        }
    }

    /// Living processes that carry the study's mark or belong to one of its services.
    fn members(&self) -> Vec<Identity> {
        let all = process::all();
        let marked = |pid: u32| self.marks.iter().any(|prefix| process::environment_starts(pid, MARK, prefix));
        let mut found: Vec<Identity> = self
            .families
            .iter()
            .flat_map(|family| family.members_among(&all, |_| false))
            .chain(all.iter().filter(|stat| stat.is_alive() && marked(stat.pid)).copied())
            .map(|stat| stat.identity())
            .filter(|identity| identity.pid != std::process::id())
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_the_pipe() {
        let family = Family { root: Identity { pid: 7, start_ticks: 99 }, mark: "12-ab/3-app-0".to_owned() };
        for line in [
            Line::Cgroup(PathBuf::from("/sys/fs/cgroup/cpuacct/unladen-1-2")),
            Line::Mark("12-ab/".to_owned()),
            Line::Process(family),
            Line::Forget(7),
            Line::Container(PathBuf::from("/var/run/docker.sock"), "unladen-12-ab-3-app-0".to_owned()),
            Line::Labelled(PathBuf::from("/var/run/docker.sock"), "com.docker.compose.project=unladen-1".to_owned()),
            Line::Cluster(0, r#"{"users":[{"name":"a b"}]}"#.to_owned()),
            Line::Namespace(0, "unladen-12-ab-3-otel".to_owned()),
            Line::Removed("unladen-12-ab-3-app-0".to_owned()),
            Line::Goodbye,
        ] {
            assert_eq!(Line::parse(&line.to_string()), Some(line));
        }
        // An empty prefix would match every marked process of the machine.
        assert_eq!(Line::parse("mark\t"), None);
        assert_eq!(Line::parse("cgroup"), None);
    }

    #[test]
    fn only_an_end_without_goodbye_leaves_duties() {
        let processes = "cgroup\t/x\nmark\tm/\nprocess\t1\t2\tm/1\nprocess\t3\t4\tm/2\nforget\t1\n";
        let namespaces = "cluster\t0\t{}\nnamespace\t0\tone\nnamespace\t0\ttwo\nremoved\tone\n";
        let start = format!("{processes}{namespaces}");
        assert!(listen(format!("{start}goodbye\n").as_bytes()).is_none());
        let tasks = listen(start.as_bytes()).expect("no goodbye");
        assert_eq!(tasks.cgroups, vec![PathBuf::from("/x")]);
        assert_eq!(tasks.families.iter().map(|family| family.root.pid).collect::<Vec<_>>(), vec![3]);
        assert_eq!(tasks.marks, vec!["m/".to_owned()]);
        assert_eq!((tasks.clusters, tasks.namespaces), (vec![(0, "{}".to_owned())], vec![(0, "two".to_owned())]));
    }
}
