//! The sink as a process of its own: its streams, its end, its exit code. The process is this very test executable,
//! started again for the one test that is the child.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use unladen_ledger::summary::Event;
use unladen_sink::config::Protocol;

use crate::support::{block_on, config, request, rows, span};

/// Set for the process that is to be the sink.
const ROLE: &str = "UNLADEN_SINK_TEST_CHILD";

/// Not a test of its own, but what [`Process`] starts.
#[test]
#[ignore = "started by the other tests of this file"]
fn sink_process() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let code = unladen_sink::child::main(std::io::stdin(), std::io::stdout(), std::io::stderr());
    std::process::exit(i32::from(code != ExitCode::SUCCESS) * 2);
}

/// A sink process that does not outlive its test.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(config_line: &str) -> (Self, ChildStdin) {
        Self::spawn(Command::new(std::env::current_exe().expect("this executable")), config_line)
    }

    /// The same with no file larger than so many kilobytes: writing beyond is an error, as on a full disk.
    pub(crate) fn start_limited(config_line: &str, kilobytes: u32) -> (Self, ChildStdin) {
        let mut shell = Command::new("bash");
        // The signal that would come as well is ignored.
        let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
        shell.arg("-c").arg(script).arg(std::env::current_exe().expect("this executable"));
        Self::spawn(shell, config_line)
    }

    fn spawn(mut command: Command, config_line: &str) -> (Self, ChildStdin) {
        let mut child = command
            .args(["child::sink_process", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this executable starts");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(config_line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("the sink reads");
        (Self(child), stdin)
    }

    /// Its events, one by one; the test harness of the child prints lines of its own, which are left out.
    pub(crate) fn events(&mut self) -> impl Iterator<Item = Event> + use<> {
        let lines = BufReader::new(self.0.stdout.take().expect("piped")).lines();
        // The harness does not end its last line before the child's first.
        lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line[line.find('{')?..]).ok())
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("it lives");
        self.0.wait().expect("it ends");
    }

    /// Exit code and standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.0.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
        (self.0.wait().expect("it ends").code(), text)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Gone already in a test that went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn line(out: &Path) -> String {
    serde_json::to_string(&config(out)).expect("JSON")
}

/// Starts a sink, sends it two spans, ends it as told and looks at what is left.
fn spans_survive(end: impl FnOnce(&Process, ChildStdin) -> Option<ChildStdin>) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (mut process, stdin) = Process::start(&line(folder.path()));
    let mut events = process.events();
    let Some(Event::Ready { addresses }) = events.next() else { panic!("not ready") };
    let grpc: SocketAddr = addresses["otlp_grpc"];
    block_on(async {
        let mut client = TraceServiceClient::connect(format!("http://{grpc}")).await.expect("the sink listens");
        client.export(request(vec![span(1, 0), span(1, 1)])).await.expect("accepted");
    });
    // Still open if it was a signal that ended the sink.
    let _stdin = end(&process, stdin);
    let Some(Event::Done(summary)) = events.last() else { panic!("the last event is the summary") };
    assert_eq!((summary.received, summary.saved), (2, 2));
    assert_eq!(process.end().0, Some(0));
    assert_eq!(rows(folder.path()).len(), 2, "the footer is written");
    assert!(folder.path().join("summary.json").exists());
}

fn signal(process: &Process, name: &str) {
    let status = Command::new("kill").args([name, &process.id().to_string()]).status().expect("kill is there");
    assert!(status.success());
}

#[test]
fn ends_on_sigterm() {
    spans_survive(|process, stdin| {
        signal(process, "-TERM");
        Some(stdin)
    });
}

#[test]
fn ends_on_sigint() {
    spans_survive(|process, stdin| {
        signal(process, "-INT");
        Some(stdin)
    });
}

#[test]
fn ends_with_its_standard_input() {
    spans_survive(|_, _| None);
}

#[test]
fn a_port_in_use_is_an_error_on_standard_error() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut config = config(folder.path());
    config.listen.insert(Protocol::OtlpGrpc, taken.local_addr().expect("bound"));
    let (process, _stdin) = Process::start(&serde_json::to_string(&config).expect("JSON"));
    let (code, text) = process.end();
    assert_eq!(code, Some(2));
    assert!(text.contains("is already in use on 127.0.0.1; stop the process"), "{text}");
}

#[test]
fn a_wrong_configuration_is_an_error_on_standard_error() {
    for (line, part) in [("", "EOF"), ("no JSON", "expected"), (r#"{"otlp_grcp":null}"#, "unknown field `otlp_grcp`")] {
        let (process, _stdin) = Process::start(line);
        let (code, text) = process.end();
        assert_eq!(code, Some(2), "{line}");
        assert!(text.contains(part) && text.contains("give one line of JSON"), "{text}");
    }
}
