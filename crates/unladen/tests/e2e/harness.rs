//! What the end-to-end tests share: a scratch folder, studies of the embedded service, looking for leftovers.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use unladen_journal::record::RunRecord;
use unladen_judge::findings::{Finding, Findings};
use unladen_study::measured::read;

/// Tells whatever a test starts, down to the last child, from what other tests start: it has the test's folder in its environment.
const MARK: &str = "UNLADEN_TEST_FOLDER";

/// Path of the executable under test.
pub(crate) const UNLADEN: &str = env!("CARGO_BIN_EXE_unladen");

/// Where the time of every test goes.
const TIMES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/e2e-times");

/// The cores of the machine are dealt out to so many sides, and a test is kept to its side's, so that tests do not disturb each other.
const SIDES: usize = 2;
/// How many tests that only count share a side.
const SEATS: usize = 2;
/// Free seats of each side.
static FREE: Mutex<[usize; SIDES]> = Mutex::new([SEATS; SIDES]);
static FREED: Condvar = Condvar::new();

/// Seats that a test has taken; free again when it ends.
pub(crate) struct Turn {
    /// Of each side.
    seats: [usize; SIDES],
    /// Cores that the test's thread had before.
    cores: CpuSet,
    since: Instant,
}

impl Turn {
    /// Waits until `pick` finds seats among the free ones.
    fn take(pick: impl Fn(&[usize; SIDES]) -> Option<[usize; SIDES]>) -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = FREED.wait_while(free, |free| pick(free).is_none()).unwrap_or_else(PoisonError::into_inner);
        let seats = pick(&free).expect("it has waited for them");
        (0..SIDES).for_each(|side| free[side] -= seats[side]);
        drop(free);
        let cores = sched_getaffinity(None).expect("the cores of this thread");
        let mut own = CpuSet::new();
        let numbered = (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core)).enumerate();
        numbered.filter(|(number, _)| seats[number % SIDES] > 0).for_each(|(_, core)| own.set(core));
        // A machine with fewer cores than sides has none for some.
        if own.count() > 0 {
            sched_setaffinity(None, &own).expect("cores that this thread has");
        }
        Self { seats, cores, since: Instant::now() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.cores);
        // Without the wait for the turn: `scripts/rust-test.sh` shows which tests take longest.
        let seats = self.seats.iter().sum::<usize>();
        let (all, took_s) = (SIDES * SEATS, self.since.elapsed().as_secs_f64());
        let line = format!("{took_s:6.1} s, {seats} of {all} seats: {}\n", name());
        let times = fs::File::options().create(true).append(true).open(TIMES);
        let _ = times.and_then(|mut times| times.write_all(line.as_bytes()));
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        (0..SIDES).for_each(|side| free[side] += self.seats[side]);
        FREED.notify_all();
    }
}

/// cgroups that had lost their owner before the first of these tests began: a machine may have been taken down with a study on it.
static BEFORE: LazyLock<Vec<PathBuf>> = LazyLock::new(orphaned_cgroups);

/// Held by a test that needs the whole machine: load and service on cores of their own, and nothing beside them.
pub(crate) fn on_all_cores() -> Turn {
    Turn::take(|free| (*free == [SEATS; SIDES]).then_some(*free))
}

/// Held by a test that measures what does not depend on the core that load and service share, or that starts services which take
/// long: its side is its own.
pub(crate) fn on_a_core() -> Turn {
    Turn::take(|free| {
        let side = free.iter().position(|seats| *seats == SEATS)?;
        Some(seats_of(side, SEATS))
    })
}

/// Held by a test that asks only what was sent and what arrived, which holds on a busy machine, too.
pub(crate) fn counting() -> Turn {
    Turn::take(|free| {
        // Beside another one that counts, so that the other side stays free for those that need it whole.
        let side = (0..SIDES).filter(|side| free[*side] > 0).min_by_key(|side| free[*side])?;
        Some(seats_of(side, 1))
    })
}

/// So many seats of this side.
fn seats_of(side: usize, count: usize) -> [usize; SIDES] {
    std::array::from_fn(|it| if it == side { count } else { 0 })
}

/// Name of the test of this thread.
fn name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Folder of a study of the project.
pub(crate) fn study(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../studies")
        .join(name)
        .canonicalize()
        .expect("a study of the project")
}

/// Builds a subject of the project that has a `build.sh`, unless it is newer than its sources.
#[track_caller]
pub(crate) fn build(subject: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../subjects").join(subject).join("build.sh");
    let built = Command::new(script).status().expect("the build starts");
    assert!(built.success(), "subjects/{subject} is built: `make {subject}`");
}

/// A scratch folder with a study in it.
pub(crate) struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        LazyLock::force(&BEFORE);
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn with(study: &str) -> Self {
        let scratch = Self::new();
        scratch.write("study.yaml", study);
        scratch
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file in the scratch folder");
    }

    /// `unladen` with these arguments, in the scratch folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(UNLADEN);
        command.args(arguments).current_dir(self.folder.path()).env("NO_COLOR", "1").env(MARK, self.folder.path());
        command
    }

    /// Fails the test if a process that was started from here is still there, or a cgroup of unladen without a living owner.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        assert_none_left(self.running());
    }

    /// The same after at most ten seconds: the guard of an unladen that was killed needs a moment.
    #[track_caller]
    pub(crate) fn wait_until_nothing_left(&self) {
        wait_until(Duration::from_secs(10), || self.running().is_empty());
        self.assert_nothing_left();
    }

    /// Processes that were started from here, as `pid command line`.
    pub(crate) fn running(&self) -> Vec<String> {
        let folder = self.folder.path().display().to_string();
        let mut left = processes("environ", &format!("{MARK}={folder} "));
        left.extend(processes_with(&folder));
        left
    }

    /// Runs `unladen` to its end.
    pub(crate) fn unladen(&self, arguments: &[&str]) -> CliOutput {
        let output = self.command(arguments).output().expect("unladen starts");
        CliOutput::new(&output)
    }

    /// Runs the study of the scratch folder into `out`.
    pub(crate) fn run(&self, more: &[&str]) -> CliOutput {
        self.unladen(&[&["run", ".", "--out", "out", "--plain"], more].concat())
    }

    /// The runs of the study in `out`.
    pub(crate) fn runs(&self) -> Vec<RunRecord> {
        read(&self.path("out")).expect("a run folder").runs
    }

    /// What the judge says of the study in `out`.
    pub(crate) fn findings(&self) -> Findings {
        let text = fs::read_to_string(self.path("out/findings.json")).expect("findings.json");
        serde_json::from_str(&text).expect("findings of the documented form")
    }
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct CliOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl CliOutput {
    pub(crate) fn new(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails the test unless the exit code is `code`; returns itself for more questions.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "standard error:\n{}\nstandard output:\n{}", self.err, self.out);
        self
    }

    /// Fails the test unless standard error holds every one of `words`.
    #[track_caller]
    pub(crate) fn complains(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in:\n{}", self.err);
        }
        assert!(!self.err.contains("panicked"), "a panic reached the user:\n{}", self.err);
        self
    }
}

/// Those runs that count, six at least.
#[track_caller]
pub(crate) fn counted(runs: &[RunRecord]) -> Vec<&RunRecord> {
    let counted: Vec<_> = runs.iter().filter(|run| run.void.is_none()).collect();
    let void = || runs.iter().find_map(|run| run.void.clone());
    assert!(counted.len() >= 6, "{} of {}: {:?}", counted.len(), runs.len(), void());
    counted
}

/// Fails the test unless more than so many spans have arrived, each once, and none is missing.
#[track_caller]
pub(crate) fn assert_ledger_is_whole(run: &RunRecord, more_than: u64) {
    let ledger = run.ledger.as_ref().expect("a ledger");
    assert_eq!((ledger.lost, ledger.duplicates, ledger.unexplained), (0, 0, 0), "{ledger:?}");
    assert!(ledger.saved > more_than, "{ledger:?}");
}

/// Fails the test unless a variant costs CPU time in every round.
#[track_caller]
pub(crate) fn assert_costs_in_every_round(findings: &Findings, variant: &str) {
    let rounds = &finding(findings, variant, "cpu_per_request").rounds;
    assert!(!rounds.is_empty() && rounds.iter().all(|round| round.difference > 0.0), "{rounds:?}");
}

/// The finding of a variant for a metric of the subject as a whole.
#[track_caller]
pub(crate) fn finding<'a>(findings: &'a Findings, variant: &str, metric: &str) -> &'a Finding {
    findings
        .variants
        .iter()
        .find(|one| one.name == variant)
        .unwrap_or_else(|| panic!("no variant {variant}"))
        .finding(metric)
        .unwrap_or_else(|| panic!("no {metric} of {variant}"))
}

/// Processes whose command line mentions `word`, as `pid command line`.
fn processes_with(word: &str) -> Vec<String> {
    processes("cmdline", word)
}

/// Processes of which this file in `/proc`, with a space behind every entry, has `word` in it, as `pid command line`.
fn processes(file: &str, word: &str) -> Vec<String> {
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let text = |file: &str| {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        if pid != own && text(file).contains(word) {
            found.push(format!("{pid} {}", text("cmdline")));
        }
    }
    found
}

/// Fails the test if a process that mentions `word` is there, or a cgroup of unladen without a living owner.
#[track_caller]
pub(crate) fn assert_nothing_left(word: &str) {
    assert_none_left(processes_with(word));
}

#[track_caller]
fn assert_none_left(processes: Vec<String>) {
    assert!(processes.is_empty(), "left running: {processes:#?}");
    // Another test may just have killed an unladen, whose guard needs a moment.
    wait_until(Duration::from_secs(10), || orphaned().is_empty());
    let cgroups = orphaned();
    assert!(cgroups.is_empty(), "left over: {cgroups:#?}");
}

/// Waits until something holds, for so long at most; whether it does is for the caller to ask.
pub(crate) fn wait_until(at_most: Duration, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + at_most;
    while Instant::now() < deadline && !holds() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// cgroups without a living owner that were not there before the tests.
fn orphaned() -> Vec<PathBuf> {
    let mut cgroups = orphaned_cgroups();
    cgroups.retain(|group| !BEFORE.contains(group));
    cgroups
}

/// cgroups named `unladen-PID-…` whose unladen is gone.
fn orphaned_cgroups() -> Vec<PathBuf> {
    let mut found = Vec::new();
    look_for_cgroups(Path::new("/sys/fs/cgroup"), 4, &mut found);
    found
}

fn look_for_cgroups(dir: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.strip_prefix("unladen-").and_then(|rest| rest.split('-').next()?.parse::<u32>().ok()) {
            Some(pid) if !Path::new(&format!("/proc/{pid}")).exists() => found.push(entry.path()),
            Some(_) => {}
            None if depth > 0 => look_for_cgroups(&entry.path(), depth - 1, found),
            None => {}
        }
    }
}

/// A study of the embedded service. `mark` is an argument that its processes carry, so that a test finds its own.
/// `variants` is YAML, indented by two spaces. There is no ballast: to take it would be a good part of a short round.
pub(crate) fn demo_study(mark: &str, variants: &str) -> String {
    format!(
        r#"
study: {mark}
warmup: 500ms
window: 2s
design: separate
ballast: false
alone: 400ms
rounds: 6
repeat: {{at_most: 0%}}
drain: {{quiet: 100ms, limit: 2s}}
services:
  provider:
    role: dependency
    command: ["${{unladen}}", __demo, provider, --port, "${{port.provider}}"]
    env: {{UNLADEN_TEST: {mark}}}
    ready: {{tcp: "127.0.0.1:${{port.provider}}"}}
  consumer:
    needs: [provider]
    command:
      - "${{unladen}}"
      - __demo
      - consumer
      - --port
      - "${{port.consumer}}"
      - --provider
      - "http://127.0.0.1:${{port.provider}}/provider"
    ready: {{http: "http://127.0.0.1:${{port.consumer}}/ready", timeout: 10s}}
    stop: {{grace: 3s}}
load:
  url: "http://127.0.0.1:${{port.consumer}}/work"
  rate: 300
  connections: 8
variants:
  baseline: {{}}
{variants}
"#
    )
}

/// The study as users have it: its costs do not depend on where pages are.
pub(crate) fn with_ballast(study: &str) -> String {
    study.replace("ballast: false\n", "")
}

/// The study with another load than the usual rate.
pub(crate) fn with_load(mark: &str, load: &str, variants: &str) -> String {
    demo_study(mark, variants).replace("  rate: 300\n  connections: 8\n", &format!("{load}\n"))
}

/// The study in a closed loop over two connections: a busy machine makes the generator of an open one late, and voids its runs.
pub(crate) fn closed_loop(mark: &str, variants: &str) -> String {
    with_load(mark, "  connections: 2", variants)
}

/// The study with about as many requests from users who pause in between: the service is as idle as usual, and nothing is due that a busy
/// machine could be late for. With ballast, as costs are asked.
pub(crate) fn pausing(mark: &str, variants: &str) -> String {
    with_ballast(&with_load(mark, "  users: {count: 4, think: 10ms}", variants))
}
