//! One run: the server, the tool, its CPU time and memory, the server's count.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::peers::Tool;

/// Core of the generator and core of the server.
const CORES: (&str, &str) = ("0", "1");
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
            _ => None,
        }
    }

    /// The inverse of [`Case::parse`].
    pub(crate) fn name(self) -> String {
        match self {
            Self::Closed(connections) => format!("closed-{connections}"),
            Self::Open(rate) => format!("open-{rate}"),
            Self::Frozen(connections) => format!("frozen-{connections}"),
        }
    }

    /// Connections and rate.
    pub(crate) fn shape(self) -> (u32, Option<u32>) {
        match self {
            Self::Closed(connections) => (connections, None),
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
pub(crate) struct Said {
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// How late it sent, if it says so.
    pub(crate) lag_p99_us: Option<f64>,
    /// Requests that it left out.
    pub(crate) dropped: Option<u64>,
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
    let mut command = pinned(CORES.1, stub);
    match case {
        Case::Closed(_) => {}
        Case::Open(rate) => drop(command.args(["--busy", "--rate", &rate.to_string()])),
        Case::Frozen(_) => drop(command.arg("--frozen")),
    }
    let server = command.stdout(Stdio::piped()).spawn().map_err(|error| failed(&format!("no server: {error}")))?;
    let mut server = Server(server);
    let mut said = BufReader::new(server.0.stdout.take().ok_or_else(|| failed("the server has no output"))?);
    let mut line = String::new();
    said.read_line(&mut line).map_err(|error| failed(&error.to_string()))?;
    let port = line.trim().parse().map_err(|_| failed("the server names no port"))?;

    let load = Load { case, port, seconds };
    let (arguments, input) = tool.command(&load).ok_or_else(|| failed("not made for it"))?;
    let folder = std::env::temp_dir().join(format!("bench-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| failed(&error.to_string()))?;
    let mut child = pinned(CORES.0, &tool.program)
        .args(arguments)
        .current_dir(&folder)
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
    let output = String::from_utf8_lossy(&text).into_owned();
    let says = (tool.read)(&tool.program, &folder, &output);
    let _ = std::fs::remove_dir_all(&folder);

    let pid = rustix::process::Pid::from_child(&server.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).map_err(|error| failed(&error.to_string()))?;
    line.clear();
    said.read_line(&mut line).map_err(|error| failed(&error.to_string()))?;
    let counted: serde_json::Value = serde_json::from_str(&line).map_err(|error| failed(&error.to_string()))?;
    Ok(Run {
        case: case.name(),
        tool: tool.name.to_owned(),
        round,
        seconds,
        requests: counted["requests"].as_u64().ok_or_else(|| failed("the server counted nothing"))?,
        cpu_us,
        rss_kib,
        p90_ms: says.p90_ms,
        p99_ms: says.p99_ms,
        lag_p99_us: says.lag_p99_us,
        dropped: says.dropped,
        off_schedule_p99_us: counted["off_schedule_us"]["p99"].as_f64(),
    })
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

/// Adds a run to the file.
pub(crate) fn append(runs: &Path, run: &Run) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", runs.display());
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(runs).map_err(failed)?;
    let line = serde_json::to_string(run).map_err(|error| error.to_string())?;
    writeln!(file, "{line}").map_err(failed)
}
