//! The demo as processes: this very test binary, started again, is what `unladen __demo` is.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Parser as _;
use rustix::process::{Pid, Signal, kill_process};

use super::collector::Collector;
use super::{NOT_SAMPLED, SAMPLED, get};

/// The words after `unladen __demo`, for [`be_the_demo`].
const WORDS: &str = "UNLADEN_TEST_DEMO_WORDS";

#[derive(clap::Parser)]
struct CommandLine {
    #[command(subcommand)]
    demo: crate::Options,
}

#[test]
#[ignore = "not a test: the others start it as a process"]
fn be_the_demo() {
    let Ok(words) = std::env::var(WORDS) else { return };
    let words = std::iter::once("__demo").chain(words.split_whitespace());
    crate::main(CommandLine::parse_from(words).demo).expect("the demo ends well");
}

/// A process of the demo that has said where it listens. Killed when it goes.
struct Process {
    child: Child,
    url: String,
    /// Kept open: a test binary that cannot write its last line fails.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn spawn(words: &str, environment: &[(&str, &str)]) -> Child {
        let this = std::env::current_exe().expect("a running test");
        Command::new(this)
            .args(["--exact", "tests::processes::be_the_demo", "--ignored", "--nocapture"])
            .env(WORDS, words)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process")
    }

    fn start(words: &str, environment: &[(&str, &str)]) -> Self {
        let mut child = Self::spawn(words, environment);
        let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
        let url = output.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, url) = line.split_once(" listens on ")?;
            Some(url.to_owned())
        });
        Self { child, url: url.expect("it says where it listens"), _output: output }
    }

    fn provider() -> Self {
        Self::start("provider --port 0", &[])
    }

    fn consumer(provider: &Self, words: &str, environment: &[(&str, &str)]) -> Self {
        let words = format!("consumer --port 0 --iterations 100 --provider {}/provider {words}", provider.url);
        Self::start(&words, environment)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends SIGTERM and waits.
    async fn stop(self) -> Ended {
        // In a thread of its own, so that a collector in this runtime can take the last spans.
        let stop = move || {
            let start = Instant::now();
            self.signal(Signal::TERM);
            self.wait(start)
        };
        tokio::task::spawn_blocking(stop).await.expect("no panic")
    }

    fn wait(mut self, start: Instant) -> Ended {
        let code = self.child.wait().expect("a child").code();
        let took = start.elapsed();
        let complaints = std::io::read_to_string(self.child.stderr.take().expect("piped")).expect("text");
        Ended { code, took, complaints }
    }

    /// CPU time that its thread of this name has used, ms.
    fn thread_ms(&self, name: &str) -> f64 {
        let read =
            |thread: &std::fs::DirEntry, file| std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let look = || {
            let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs").flatten();
            threads.into_iter().find(|thread| read(thread, "comm").trim() == name)
        };
        // A thread has the name of its parent for a moment.
        let deadline = Instant::now() + Duration::from_secs(10);
        let thread = loop {
            match look() {
                Some(thread) => break thread,
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
                None => panic!("no thread is called {name}"),
            }
        };
        let ns: f64 = read(&thread, "schedstat").split(' ').next().expect("a number").parse().expect("a number");
        ns / 1e6
    }

    /// A line of `/proc/PID/status` that counts something.
    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("a known line");
        line.split_whitespace().next().expect("a number").parse().expect("a number")
    }
}

/// How a process ended.
struct Ended {
    code: Option<i32>,
    took: Duration,
    /// What it wrote to standard error.
    complaints: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn traced_to(collector: &Collector) -> [(&'static str, String); 2] {
    [("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.address)), ("OTEL_SERVICE_NAME", "demo".to_owned())]
}

fn borrowed<'a>(environment: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    environment.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[tokio::test]
async fn the_last_spans_leave_when_the_consumer_is_stopped() {
    let collector = Collector::start().await;
    let environment = traced_to(&collector);
    let provider = Process::provider();
    let consumer = Process::consumer(&provider, "--trace otlp", &borrowed(&environment));
    let work = format!("{}/work", consumer.url);
    for flag in [SAMPLED, NOT_SAMPLED, SAMPLED, SAMPLED] {
        get(&work, Some(flag)).await;
    }
    assert!(collector.spans().is_empty(), "12 spans fill no batch, and the timer has 5 s");

    let ended = consumer.stop().await;
    assert_eq!((ended.code, ended.complaints.as_str()), (Some(0), ""));
    assert!(ended.took < Duration::from_secs(4), "{:?}", ended.took);
    let spans = collector.spans();
    assert_eq!(spans.len(), 12);
    assert!(spans.iter().all(|(service, _)| service == "demo"));
    let servers: Vec<_> = spans.iter().filter(|(_, span)| span.name == "GET /work").collect();
    assert_eq!(servers.len(), 3);
    for (_, server) in servers {
        let children = spans.iter().filter(|(_, span)| span.parent_span_id == server.span_id);
        assert_eq!(children.count(), 3);
    }
    assert_eq!(provider.stop().await.code, Some(0));
}

#[tokio::test]
async fn a_request_under_way_is_answered_before_the_consumer_ends() {
    let collector = Collector::start().await;
    let environment = traced_to(&collector);
    let provider = Process::provider();
    let consumer = Process::consumer(&provider, "--trace otlp --delay-us 500000", &borrowed(&environment));
    let work = format!("{}/work", consumer.url);
    let request = tokio::spawn(async move { get(&work, Some(SAMPLED)).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let ended = consumer.stop().await;
    assert_eq!(request.await.expect("no panic").0, 200);
    assert_eq!((ended.code, collector.spans().len()), (Some(0), 4));
}

#[tokio::test]
async fn the_sampler_is_the_environments() {
    let provider = Process::provider();
    for (sampler, argument, spans) in [
        ("always_off", "", 0),
        ("always_on", "", 8),
        ("parentbased_always_off", "", 4),
        ("parentbased_traceidratio", "0", 4),
        ("traceidratio", "0", 0),
    ] {
        let collector = Collector::start().await;
        let mut environment = traced_to(&collector).to_vec();
        environment.push(("OTEL_TRACES_SAMPLER", sampler.to_owned()));
        environment.push(("OTEL_TRACES_SAMPLER_ARG", argument.to_owned()));
        let consumer = Process::consumer(&provider, "--trace otlp", &borrowed(&environment));
        for flag in [SAMPLED, NOT_SAMPLED] {
            get(&format!("{}/work", consumer.url), Some(flag)).await;
        }
        consumer.stop().await;
        assert_eq!(collector.spans().len(), spans, "{sampler} {argument}");
    }
}

#[tokio::test]
async fn untraced_there_is_no_sdk_whatever_the_environment_says() {
    let collector = Collector::start().await;
    let environment = traced_to(&collector);
    let provider = Process::provider();
    let bare = Process::consumer(&provider, "", &borrowed(&environment));
    let traced = Process::consumer(&provider, "--trace otlp", &borrowed(&environment));
    get(&format!("{}/work", bare.url), Some(SAMPLED)).await;
    get(&format!("{}/work", traced.url), Some(SAMPLED)).await;
    // The batch span processor has a thread of its own.
    assert_eq!(bare.status("Threads") + 1, traced.status("Threads"));
    assert_eq!(bare.stop().await.code, Some(0));
    assert!(collector.spans().is_empty());
}

/// What injects variables into pods can turn it on.
#[tokio::test]
async fn tracing_is_turned_on_by_the_environment() {
    let collector = Collector::start().await;
    let provider = Process::provider();
    for (exporter, spans) in [("none", 0), ("otlp", 4)] {
        let mut environment = traced_to(&collector).to_vec();
        environment.push(("OTEL_TRACES_EXPORTER", exporter.to_owned()));
        let consumer = Process::consumer(&provider, "--trace env", &borrowed(&environment));
        get(&format!("{}/work", consumer.url), Some(SAMPLED)).await;
        assert_eq!(consumer.stop().await.code, Some(0));
        assert_eq!(collector.spans().len(), spans, "{exporter}");
    }
}

#[tokio::test]
async fn a_collector_that_is_not_there_neither_fails_requests_nor_holds_up_the_end() {
    let provider = Process::provider();
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")];
    let consumer = Process::consumer(&provider, "--trace otlp", &environment);
    assert_eq!(get(&format!("{}/work", consumer.url), Some(SAMPLED)).await.0, 200);
    let ended = consumer.stop().await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.took < Duration::from_secs(8), "{:?}", ended.took);
    assert!(ended.complaints.contains("the last spans are lost"), "{}", ended.complaints);
}

#[tokio::test]
async fn held_and_leaked_memory_is_resident() {
    let provider = Process::provider();
    let plain = Process::consumer(&provider, "", &[]);
    let holding = Process::consumer(&provider, "--hold-mib 64", &[]);
    let leaking = Process::consumer(&provider, "--leak-mib-per-minute 1200", &[]);
    let more = holding.status("VmRSS").abs_diff(plain.status("VmRSS"));
    assert!(more.abs_diff(64 << 10) < 1 << 10, "{more} KiB more, not 64 MiB");

    let (start, before) = (Instant::now(), leaking.status("VmRSS"));
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let leaked = (leaking.status("VmRSS") - before) as f64 / 1024.0 / start.elapsed().as_secs_f64() * 60.0;
    // It grows ten times a second: a tick more or less at either end, and a busy machine delays them further.
    assert!((900.0..1_500.0).contains(&leaked), "{leaked:.0} MiB a minute, not 1200");
}

#[tokio::test]
async fn idle_cpu_is_burnt_requests_or_not() {
    let provider = Process::provider();
    let idle = Process::consumer(&provider, "--idle-burn-ms-per-second 100", &[]);
    let (start, before) = (Instant::now(), idle.thread_ms("idle"));
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let burnt = (idle.thread_ms("idle") - before) / start.elapsed().as_secs_f64();
    // A slice of 2 ms more or less, and what a busy machine has it wait.
    assert!((burnt - 100.0).abs() < 5.0, "{burnt:.1} ms a second, not 100");
}

#[tokio::test]
async fn deferred_work_is_done_later_and_by_another_thread() {
    let provider = Process::provider();
    let consumer = Process::consumer(&provider, "--deferred-us 10000 --deferred-by-s 0.8", &[]);
    let start = Instant::now();
    for _ in 0..10 {
        get(&format!("{}/work", consumer.url), None).await;
    }
    let at_once = consumer.thread_ms("deferred");
    assert!(start.elapsed() < Duration::from_millis(700), "too busy a machine to tell: {:?}", start.elapsed());
    assert!(at_once < 1.0, "{at_once:.1} ms were done at once");
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let later = consumer.thread_ms("deferred");
    assert!((later - 100.0).abs() < 3.0, "{later:.1} ms were done later, not 100");
}

#[tokio::test]
async fn a_stall_holds_everybody_up() {
    let provider = Process::provider();
    let consumer = Process::consumer(&provider, "--stall-ms 300 --stall-every-s 0.5", &[]);
    let ready = format!("{}/ready", consumer.url);
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    while start.elapsed() < Duration::from_millis(1_200) {
        let sent_at = Instant::now();
        get(&ready, None).await;
        longest = longest.max(sent_at.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(longest >= Duration::from_millis(250), "{longest:?}");
}

#[test]
fn it_can_start_late_die_and_refuse_to_stop() {
    let provider = Process::provider();
    let start = Instant::now();
    let late = Process::consumer(&provider, "--slow-start-ms 300", &[]);
    assert!(start.elapsed() >= Duration::from_millis(300));
    drop(late);

    let nowhere = "consumer --port 0 --provider http://127.0.0.1:1";
    let dying = Process::spawn(&format!("{nowhere} --die-after-s 0.2"), &[]);
    let output = dying.wait_with_output().expect("a child");
    assert_eq!(output.status.code(), Some(1));
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert!(String::from_utf8_lossy(&output.stderr).contains("as told by --die-after-s"));

    let mut stubborn = Process::consumer(&provider, "--ignore-sigterm", &[]);
    stubborn.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    assert!(stubborn.child.try_wait().expect("a child").is_none(), "it goes on");
}

#[test]
fn a_port_in_use_is_said_so() {
    let provider = Process::provider();
    let port = provider.url.rsplit(':').next().expect("a port");
    let words = format!("provider --port {port}");
    let output = Process::spawn(&words, &[]).wait_with_output().expect("a process");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains(&format!("cannot listen on port {port}: choose another")), "{text}");
}
