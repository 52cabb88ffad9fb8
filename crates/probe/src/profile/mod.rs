//! Where a service spends its CPU: stacks sampled over a window by whatever suits it, as folded text.
//!
//! JVMs are sampled by async-profiler, services with a `pprof` URL by their own endpoint, everything else by `perf`. Sampling costs
//! the service something, so it is done in runs of their own, never in those that are measured.

mod attach;
mod pprof;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use unladen_linux::Netns;

use crate::ask;
use crate::jvm;

/// Time between two samples, ns: 199 a second, so that nothing that happens every 10 ms is always or never met.
const PERIOD_NS: u64 = 5_025_126;
/// Where async-profiler can be had.
const COORDINATES: &str = "tools.profiler:async-profiler:4.6";

/// A service that cannot be sampled.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// There is no async-profiler.
    #[error(
        "{service} is a JVM and async-profiler is not at hand ({why}). Get it with `mvn dependency:unpack -Dartifact={COORDINATES} -DoutputDirectory=DIR` and give `--async-profiler DIR/linux-x64/libasyncProfiler.so`"
    )]
    NoAsyncProfiler {
        /// Service.
        service: String,
        /// Why not.
        why: String,
    },
    /// The JVM or the profiler in it refused.
    #[error("async-profiler cannot sample {service}: {source}. Look at its log")]
    AsyncProfiler {
        /// Service.
        service: String,
        /// Why.
        source: io::Error,
    },
    /// There is no perf, or the kernel forbids it.
    #[error(
        "perf cannot sample {service}: {why}. Install perf (Debian: linux-perf), and allow it with `sysctl kernel.perf_event_paranoid=1` or as root"
    )]
    Perf {
        /// Service.
        service: String,
        /// What it said.
        why: String,
    },
    /// The endpoint did not answer with a profile.
    #[error("{url} gives no profile of {service}: {source}. Import net/http/pprof, or correct `pprof`")]
    Pprof {
        /// Service.
        service: String,
        /// Endpoint.
        url: String,
        /// Why.
        source: io::Error,
    },
}

/// A service to sample.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Name of the service.
    pub service: String,
    /// Its processes.
    pub pids: Vec<u32>,
    /// Where a Go service gives its profile: `http://…/debug/pprof/profile`.
    pub pprof: Option<String>,
    /// Network namespace in which the service listens. `None`: that of unladen.
    pub network: Option<Arc<Netns>>,
}

/// Sampling under way.
#[derive(Debug)]
pub struct Sampling {
    service: String,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Jvm { pid: u32, library: PathBuf, out: PathBuf },
    Pprof { url: String, answer: JoinHandle<io::Result<Bytes>> },
    Perf { child: Child, data: PathBuf },
}

/// Stacks with how often each was met.
#[derive(Debug, Clone, PartialEq)]
pub struct Stacks {
    /// What sampled: `async-profiler`, `pprof` or `perf`.
    pub profiler: &'static str,
    /// CPU time that a sample stands for, µs.
    pub period_us: f64,
    /// One line per stack, from the root: `main;work;burn 42`.
    pub folded: String,
}

impl Sampling {
    /// Starts to sample for about the length of `window`. Files go to `scratch`.
    ///
    /// # Errors
    /// When the profiler that the service needs is not there or not allowed.
    pub fn begin(
        subject: &Subject,
        async_profiler: Option<&Path>,
        window: Duration,
        scratch: &Path,
    ) -> Result<Self, ProfileError> {
        let service = subject.service.clone();
        let way = if let Some(url) = &subject.pprof {
            pprof_of(url.clone(), window, subject.network.clone())
        } else if let Some(&pid) = subject.pids.iter().find(|&&pid| jvm::find(pid).is_some()) {
            let library = library(async_profiler)
                .map_err(|why| ProfileError::NoAsyncProfiler { service: service.clone(), why })?;
            let out = scratch.join(format!("{service}-{pid}.collapsed"));
            // The CPU timer of each thread needs no permission, and misses nothing where the clock events of perf do.
            attach::load(pid, &library.to_string_lossy(), &format!("start,event=ctimer,interval={PERIOD_NS}"))
                .map_err(|source| ProfileError::AsyncProfiler { service: service.clone(), source })?;
            Way::Jvm { pid, library, out }
        } else {
            perf(&subject.pids, scratch.join(format!("{service}.perf")))
                .map_err(|error| ProfileError::Perf { service: service.clone(), why: error.to_string() })?
        };
        Ok(Self { service, way })
    }

    /// Ends it and returns the stacks.
    ///
    /// # Errors
    /// When nothing was sampled.
    pub fn end(self) -> Result<Stacks, ProfileError> {
        let service = self.service;
        let period_us = PERIOD_NS as f64 / 1e3;
        match self.way {
            Way::Jvm { pid, library, out } => {
                let options = format!("stop,file={},collapsed", out.display());
                let folded = attach::load(pid, &library.to_string_lossy(), &options)
                    .and_then(|()| fs::read_to_string(&out))
                    .map_err(|source| ProfileError::AsyncProfiler { service, source })?;
                let _ = fs::remove_file(&out);
                Ok(Stacks { profiler: "async-profiler", period_us, folded })
            }
            Way::Pprof { url, answer } => answer
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the question was lost")))
                .and_then(|answer| pprof::folded(&answer))
                .map(|(folded, period_us)| Stacks { profiler: "pprof", period_us, folded })
                .map_err(|source| ProfileError::Pprof { service, url, source }),
            Way::Perf { child, data } => {
                let folded =
                    perf_stacks(child, &data).map_err(|error| ProfileError::Perf { service, why: error.to_string() });
                let _ = fs::remove_file(&data);
                Ok(Stacks { profiler: "perf", period_us, folded: folded? })
            }
        }
    }
}

/// async-profiler's library: as named, or by way of the user's Maven, once for all.
fn library(named: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = named {
        return path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    }
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
        .ok_or_else(|| "no `--async-profiler` is given, and there is no HOME to keep one in".to_owned())?;
    let folder = cache.join("unladen").join(COORDINATES.replace(':', "-"));
    let machine = if cfg!(target_arch = "aarch64") { "linux-arm64" } else { "linux-x64" };
    let library = folder.join(machine).join("libasyncProfiler.so");
    if !library.exists() {
        let output = Command::new("mvn")
            .args(["-q", "-B", "dependency:unpack", &format!("-Dartifact={COORDINATES}")])
            .arg(format!("-DoutputDirectory={}", folder.display()))
            .arg("-Dmdep.unpack.includes=linux-*/**")
            .current_dir(&cache)
            .output()
            .map_err(|error| format!("no `--async-profiler` is given, and Maven cannot be started: {error}"))?;
        if !library.exists() {
            let last_words = String::from_utf8_lossy(&output.stdout);
            return Err(format!("Maven did not get it: {}", last_words.lines().next().unwrap_or("no word why")));
        }
    }
    Ok(library)
}

fn pprof_of(url: String, window: Duration, network: Option<Arc<Netns>>) -> Way {
    let address = format!("{url}{}seconds={}", if url.contains('?') { '&' } else { '?' }, window.as_secs().max(1));
    let patience = window + Duration::from_secs(10);
    let answer = std::thread::spawn(move || {
        network.map_or(Ok(()), |network| network.move_thread())?;
        ask::get(&address.parse().map_err(io::Error::other)?, patience)
    });
    Way::Pprof { url, answer }
}

fn perf(pids: &[u32], data: PathBuf) -> io::Result<Way> {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let mut child = Command::new("perf")
        // The clock of the CPU is there also where a virtual machine hides its counters.
        .args(["record", "-q", "-e", "cpu-clock", "-c", &PERIOD_NS.to_string(), "--call-graph", "dwarf,16384", "-p"])
        .arg(pids.join(","))
        .arg("-o")
        .arg(&data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    // What is forbidden or misspelt ends at once.
    std::thread::sleep(Duration::from_millis(200));
    match child.try_wait()? {
        None => Ok(Way::Perf { child, data }),
        Some(_) => Err(io::Error::other(last_words(child))),
    }
}

/// What a process that has ended wrote to standard error, in one line.
fn last_words(mut child: Child) -> String {
    let mut text = String::new();
    if let Some(mut error) = child.stderr.take() {
        let _ = io::Read::read_to_string(&mut error, &mut text);
    }
    text.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>().join(" ")
}

fn perf_stacks(mut child: Child, data: &Path) -> io::Result<String> {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
    }
    child.wait()?;
    // Without inlined functions: to find them takes perf a process per address.
    let script = Command::new("perf").args(["script", "--no-inline", "-i"]).arg(data).stderr(Stdio::null()).output()?;
    let mut folded = Vec::new();
    Folder::from(Options::default()).collapse(script.stdout.as_slice(), &mut folded)?;
    match in_samples(&String::from_utf8_lossy(&folded)) {
        folded if folded.is_empty() => Err(io::Error::other(format!("no sample was taken {}", last_words(child)))),
        folded => Ok(folded),
    }
}

/// perf weighs a sample by the time that it stands for; everybody else counts.
fn in_samples(folded: &str) -> String {
    let lines = folded.lines().filter_map(|line| {
        let (stack, weight) = line.rsplit_once(' ')?;
        let weight: u64 = weight.parse().ok()?;
        Some(format!("{stack} {}\n", (weight + PERIOD_NS / 2) / PERIOD_NS))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfs_weights_become_samples() {
        let folded = format!("app;main;a b {}\napp;main {PERIOD_NS}\nnonsense\n", 3 * PERIOD_NS);
        assert_eq!(in_samples(&folded), "app;main;a b 3\napp;main 1\n");
    }
}
