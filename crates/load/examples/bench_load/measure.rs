//! One run: the server, the tool, its CPU time and memory, the server's count.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::peers::Tool;

/// Core of the generator and core of the server.
const CORES: (&str, &str) = ("0", "1");
/// Streams per connection of the cases with HTTP/2.
pub(crate) const STREAMS: u32 = 32;
/// Rate of the cases with a server that stands still.
pub(crate) const FROZEN_RATE: u32 = 1_000;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// As fast as the server answers, over so many connections.
    Closed(u32),
    /// So many requests a second over 64 connections.
    Open(u32),
    /// A server that stands still for 200 ms in every second, over so many connections.
    Frozen(u32),
    /// HTTP/2 in the clear, as fast as our own server answers, over so many connections with [`STREAMS`] streams each.
    Http2(u32),
    /// The same against nghttpd, the server of nghttp2. It does not count: the tool's own number of answers is taken.
    Nghttpd(u32),
}

impl Case {
    /// `closed-64` and so on.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, number) = text.split_once('-')?;
        let number = number.parse().ok().filter(|&number| number > 0)?;
        match kind {
            "closed" => Some(Self::Closed(number)),
            "open" => Some(Self::Open(number)),
            "frozen" => Some(Self::Frozen(number)),
            "http2" => Some(Self::Http2(number)),
            "nghttpd" => Some(Self::Nghttpd(number)),
            _ => None,
        }
    }

    /// The inverse of [`Case::parse`].
    pub(crate) fn name(self) -> String {
        match self {
            Self::Closed(connections) => format!("closed-{connections}"),
            Self::Open(rate) => format!("open-{rate}"),
            Self::Frozen(connections) => format!("frozen-{connections}"),
            Self::Http2(connections) => format!("http2-{connections}"),
            Self::Nghttpd(connections) => format!("nghttpd-{connections}"),
        }
    }

    /// Whether it is about HTTP/2.
    pub(crate) fn is_http2(self) -> bool {
        matches!(self, Self::Http2(_) | Self::Nghttpd(_))
    }

    /// Connections and rate.
    pub(crate) fn shape(self) -> (u32, Option<u32>) {
        match self {
            Self::Closed(connections) | Self::Http2(connections) | Self::Nghttpd(connections) => (connections, None),
            Self::Open(rate) => (64, Some(rate)),
            Self::Frozen(connections) => (connections, Some(FROZEN_RATE)),
        }
    }
}

/// A load that a tool is to make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) case: Case,
    pub(crate) port: u16,
    pub(crate) seconds: u32,
}

/// What a tool says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ToolReport {
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
    /// How late it sent, if it says so.
    pub(crate) lag_p99_us: Option<f64>,
    /// Requests that it left out.
    pub(crate) dropped: Option<u64>,
    /// Requests that were answered.
    pub(crate) answered: Option<u64>,
}

/// A run, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) case: String,
    pub(crate) tool: String,
    pub(crate) round: u32,
    pub(crate) seconds: u32,
    /// By the server's count.
    pub(crate) requests: u64,
    /// User and system time of the whole process.
    pub(crate) cpu_us: f64,
    pub(crate) rss_kib: u64,
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
    pub(crate) lag_p99_us: Option<f64>,
    pub(crate) dropped: Option<u64>,
    /// Open loop: 99th percentile of the distance from an even schedule, seen by the server.
    pub(crate) off_schedule_p99_us: Option<f64>,
}

/// A server on its core; it is ended when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail if it has ended already, as it should have.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command on a core.
fn pinned(core: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}

/// Runs a tool once.
pub(crate) fn run(tool: &Tool, case: Case, round: u32, seconds: u32, stub: &Path) -> Result<Run, String> {
    let failed = |what: &str| format!("{} in {}: {what}", tool.name, case.name());
    let folder = std::env::temp_dir().join(format!("bench-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| failed(&error.to_string()))?;
    let http2_stub = stub.with_file_name("stub_server_h2");
    let mut command = match case {
        Case::Nghttpd(_) => return against_nghttpd(tool, case, round, seconds, &folder),
        Case::Http2(_) => pinned(CORES.1, &http2_stub),
        Case::Closed(_) | Case::Open(_) | Case::Frozen(_) => pinned(CORES.1, stub),
    };
    match case {
        Case::Open(rate) => drop(command.args(["--busy", "--rate", &rate.to_string()])),
        Case::Frozen(_) => drop(command.arg("--frozen")),
        Case::Closed(_) | Case::Http2(_) | Case::Nghttpd(_) => {}
    }
    let server = command.stdout(Stdio::piped()).spawn().map_err(|error| failed(&format!("no server: {error}")))?;
    let mut server = Server(server);
    let mut output = BufReader::new(server.0.stdout.take().ok_or_else(|| failed("the server has no output"))?);
    let mut line = String::new();
    output.read_line(&mut line).map_err(|error| failed(&error.to_string()))?;
    let port = line.trim().parse().map_err(|_| failed("the server names no port"))?;

    let (cpu_us, rss_kib, says) = generate(tool, &Load { case, port, seconds }, &folder)?;

    let _ = std::fs::remove_dir_all(&folder);
    let pid = rustix::process::Pid::from_child(&server.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).map_err(|error| failed(&error.to_string()))?;
    line.clear();
    output.read_line(&mut line).map_err(|error| failed(&error.to_string()))?;
    let counted: serde_json::Value = serde_json::from_str(&line).map_err(|error| failed(&error.to_string()))?;
    let requests = counted["requests"].as_u64().ok_or_else(|| failed("the server counted nothing"))?;
    let off_schedule_p99_us = counted["off_schedule_us"]["p99"].as_f64();
    let run = Run::new(tool, case, round, seconds, (requests, cpu_us, rss_kib), &says);
    Ok(Run { off_schedule_p99_us, ..run })
}

impl Run {
    /// A run of a tool: requests, CPU time, memory, and what it said.
    fn new(
        tool: &Tool,
        case: Case,
        round: u32,
        seconds: u32,
        (requests, cpu_us, rss_kib): (u64, f64, u64),
        says: &ToolReport,
    ) -> Self {
        Self {
            case: case.name(),
            tool: tool.name.to_owned(),
            round,
            seconds,
            requests,
            cpu_us,
            rss_kib,
            p90_ms: says.p90_ms,
            p99_ms: says.p99_ms,
            max_ms: says.max_ms,
            lag_p99_us: says.lag_p99_us,
            dropped: says.dropped,
            off_schedule_p99_us: None,
        }
    }
}

/// Runs a tool against nghttpd.
fn against_nghttpd(tool: &Tool, case: Case, round: u32, seconds: u32, folder: &Path) -> Result<Run, String> {
    let failed = |what: &str| format!("{} in {}: {what}", tool.name, case.name());
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| failed(&error.to_string()))?
        .port();
    std::fs::write(folder.join("index.html"), "hello, unladen!").map_err(|error| failed(&error.to_string()))?;
    let server = pinned(CORES.1, Path::new("nghttpd"))
        .args(["--no-tls", "-n1", "-a", "127.0.0.1", "-d"])
        .arg(folder)
        .arg(port.to_string())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| failed(&format!("no server: {error}")))?;
    let _server = Server(server);
    let until = Instant::now() + Duration::from_secs(5);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if Instant::now() > until {
            return Err(failed("nghttpd does not listen; is it installed (nghttp2-server)?"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let (cpu_us, rss_kib, says) = generate(tool, &Load { case, port, seconds }, folder)?;
    let requests = says.answered.ok_or_else(|| failed("it does not say how many requests were answered"))?;
    let _ = std::fs::remove_dir_all(folder);
    Ok(Run::new(tool, case, round, seconds, (requests, cpu_us, rss_kib), &says))
}

/// Lets a tool make its load: CPU time (µs), largest resident size (KiB), what it says.
fn generate(tool: &Tool, load: &Load, folder: &Path) -> Result<(f64, u64, ToolReport), String> {
    let failed = |what: &str| format!("{} in {}: {what}", tool.name, load.case.name());
    let (arguments, input) = tool.command(load).ok_or_else(|| failed("not made for it"))?;
    let mut child = pinned(CORES.0, &tool.program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(&error.to_string()))?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes()).map_err(|error| failed(&error.to_string()))?;
    }
    let mut text = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut text).map_err(|error| failed(&error.to_string()))?;
    }
    let (cpu_us, rss_kib) = reap(child.id()).map_err(|error| failed(&error.to_string()))?;
    Ok((cpu_us, rss_kib, (tool.read)(&tool.program, folder, &String::from_utf8_lossy(&text))))
}

/// Waits for a process: its CPU time (µs) and largest resident size (KiB).
fn reap(pid: u32) -> std::io::Result<(f64, u64)> {
    let mut status = 0;
    // SAFETY: numbers only, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to locals that outlive the call.
    let ended = unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) };
    if ended < 0 {
        return Err(std::io::Error::last_os_error());
    }
    if status != 0 {
        return Err(std::io::Error::other("it failed; run it by hand to see why"));
    }
    let microseconds = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    Ok((microseconds(usage.ru_utime) + microseconds(usage.ru_stime), usage.ru_maxrss as u64))
}

/// The runs in a file; none if there is no such file.
pub(crate) fn read(runs: &Path) -> Result<Vec<Run>, String> {
    let lines = match std::fs::read_to_string(runs) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        lines => lines.map_err(|error| format!("cannot use {}: {error}", runs.display()))?,
    };
    lines
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{}: {error}", runs.display())))
        .collect()
}

/// Adds a run to the file.
pub(crate) fn append(runs: &Path, run: &Run) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", runs.display());
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(runs).map_err(failed)?;
    let line = serde_json::to_string(run).map_err(|error| error.to_string())?;
    writeln!(file, "{line}").map_err(failed)
}
