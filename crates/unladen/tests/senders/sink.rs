//! `unladen sink` as a user starts it, on free ports, and senders beside it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use procfs::net::{TcpNetEntry, TcpState};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use unladen_ledger::summary::Summary;
use unladen_sink::config::Protocol;

use crate::spans::stored;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Waits until something holds.
#[track_caller]
pub(crate) fn wait_until(holds: impl Fn() -> bool, otherwise: impl Fn() -> String) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{}", otherwise());
        thread::sleep(Duration::from_millis(200));
    }
}

/// A process that does not outlive the test.
pub(crate) struct Process {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Process {
    /// Starts it; what it says on standard error is read line by line, what it says on standard output is the caller's.
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?} does not start: {error}; run `make deps`"));
        let stderr = child.stderr.take().expect("standard error is a pipe");
        let (say, lines) = mpsc::channel();
        // Ends with the pipe.
        thread::spawn(move || BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        Self { child, lines }
    }

    /// The first line that `wanted` makes something of.
    #[track_caller]
    pub(crate) fn wait_for_line<T>(&self, what: &str, wanted: impl Fn(&str) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut lines = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) else {
                panic!("no word of {what}, only:\n{}", lines.join("\n"));
            };
            match wanted(&line) {
                Some(found) => return found,
                None => lines.push(line),
            }
        }
    }

    /// Bytes that it has printed so far. What it prints on standard output is not read before [`Process::end`].
    pub(crate) fn printed(&self) -> usize {
        let stdout = self.child.stdout.as_ref().expect("standard output is a pipe");
        rustix::io::ioctl_fionread(stdout).expect("a pipe says what it holds") as usize
    }

    /// Tells it to end.
    pub(crate) fn terminate(&self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a child has a pid");
        kill_process(pid, Signal::TERM).expect("it is still there");
    }

    /// Waits for its end; how it ended, standard output, and the lines of standard error that nobody heard.
    #[track_caller]
    pub(crate) fn end(mut self) -> (ExitStatus, String, Vec<String>) {
        let mut stdout = self.child.stdout.take().expect("standard output is a pipe");
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            stdout.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
        });
        let until = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().expect("it can be waited for") {
                Some(status) => break status,
                None if Instant::now() > until => panic!("process {} does not end", self.child.id()),
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        let text = reader.join().expect("the reader does not panic").expect("standard output can be read");
        (status, text, self.lines.iter().collect())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already if the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `unladen sink` with every receiver on a free port.
pub(crate) struct Sink {
    process: Process,
    folder: TempDir,
    addresses: BTreeMap<&'static str, SocketAddr>,
}

/// What a sink had when it ended.
pub(crate) struct Had {
    /// `summary.json`.
    pub(crate) summary: Summary,
    /// Standard output.
    pub(crate) printed: String,
    /// Rows of the span files.
    pub(crate) rows: Vec<Value>,
}

impl Sink {
    #[track_caller]
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_unladen"));
        command.args(["sink", "--attributes", "all", "--out"]).arg(folder.path());
        let receivers = Protocol::ALL.map(Protocol::name);
        command.args(receivers.iter().flat_map(|name| [format!("--{}", name.replace('_', "-")), "127.0.0.1:0".into()]));
        let process = Process::start(&mut command);
        let addresses = receivers.map(|_| {
            process.wait_for_line("its addresses", |line| {
                let (name, address) = line.strip_prefix("listening: ")?.split_once(" on ")?;
                let name = receivers.into_iter().find(|known| *known == name)?;
                Some((name, address.parse().expect("an address")))
            })
        });
        Self { process, folder, addresses: BTreeMap::from(addresses) }
    }

    /// Where a receiver listens.
    pub(crate) fn address(&self, receiver: &str) -> String {
        self.addresses[receiver].to_string()
    }

    /// The certificate of the authority that senders with TLS must trust.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("sink-ca.pem")
    }

    /// Whether somebody is connected to a receiver.
    pub(crate) fn is_connected(&self, receiver: &str) -> bool {
        let connections = procfs::net::tcp().expect("/proc/net/tcp");
        let established = |one: &TcpNetEntry| one.state == TcpState::Established;
        connections.iter().filter(|one| established(one)).any(|one| one.local_address == self.addresses[receiver])
    }

    /// Spans that could be read if the sink were killed now.
    pub(crate) fn on_disk(&self) -> usize {
        // A copy is as torn as what a killed sink leaves, and recovered like it.
        let copy = tempfile::tempdir().expect("a temporary folder");
        let spans = copy.path().join("spans");
        fs::create_dir(&spans).expect("a folder in it");
        for entry in fs::read_dir(self.folder.path().join("spans")).into_iter().flatten().flatten() {
            // Files come and go meanwhile.
            let _ = fs::copy(entry.path(), spans.join(entry.file_name()));
        }
        match unladen_sink::recover(copy.path()) {
            Ok(_) => stored(copy.path()).len(),
            Err(_) => 0,
        }
    }

    /// Ends it with SIGTERM.
    #[track_caller]
    pub(crate) fn stop(self) -> Had {
        self.process.terminate();
        let (status, printed, rest) = self.process.end();
        assert!(status.success(), "the sink ends with {status}:\n{}", rest.join("\n"));
        let summary = fs::read(self.folder.path().join("summary.json")).expect("summary.json");
        let summary = serde_json::from_slice(&summary).expect("a summary");
        Had { summary, printed, rows: stored(self.folder.path()) }
    }
}

/// A path in `target/senders`.
#[track_caller]
pub(crate) fn set_up(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/senders").join(path);
    assert!(path.exists(), "{} is not there; `make deps` sets up the senders", path.display());
    path
}

/// Runs a sender to its end; the lines that it printed. It fails if the SDK complained of a loss.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Vec<String> {
    let (status, text, complaints) = Process::start(command).end();
    assert!(status.success(), "{command:?} ends with {status}:\n{}", complaints.join("\n"));
    text.lines().map(str::to_string).collect()
}
