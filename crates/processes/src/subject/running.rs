//! A running process and all that it started: is it alive, is it ready, stop it with nothing left behind.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Signal;
use unladen_linux::process::{self, Identity, Stat};
use unladen_linux::tree::Family;
use unladen_linux::{Cgroup, CpuSet};
use unladen_probe::remote::Remote;

use super::ended::Ended;
use super::error::SubjectError;
use super::executor::{Executor, Health};
use super::launch::Launch;
use super::listener::{Listener, Wanted};
use super::ready::{self, Readiness};
use super::shared::Shared;

/// How long SIGKILL may take to take effect before a process counts as unstoppable.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Passes over the threads of a service at most, while it starts new ones.
const PASSES: usize = 16;

/// A process that was started, with its control group. Dropping it kills whatever is left of it.
#[derive(Debug)]
pub struct Running {
    service: String,
    replica: u32,
    executor: Box<dyn Executor>,
    family: Family,
    cgroup: Option<Cgroup>,
    started: Instant,
    log: PathBuf,
    /// Length of the log when the process was started: what comes after is its own.
    log_start: u64,
    ended: Option<Ended>,
    /// Nothing is left and all is removed.
    gone: bool,
    stop_requested: bool,
    shared: Arc<Shared>,
}

impl Running {
    pub(super) fn new(
        launch: &Launch,
        executor: Box<dyn Executor>,
        family: Family,
        cgroup: Option<Cgroup>,
        started: Instant,
        log_start: u64,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            service: launch.service.clone(),
            replica: launch.replica,
            executor,
            family,
            cgroup,
            started,
            log: launch.log.clone(),
            log_start,
            ended: None,
            gone: false,
            stop_requested: false,
            shared,
        }
    }

    /// Name of its service.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }

    /// 0, 1, … within the service.
    #[must_use]
    pub fn replica(&self) -> u32 {
        self.replica
    }

    /// Process id of the first process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.family.root.pid
    }

    /// What its descendants can be told by.
    #[must_use]
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// Its control group, if it has one.
    #[must_use]
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// The probe that watches it, if this process cannot.
    #[must_use]
    pub fn probe(&self) -> Option<&Remote> {
        self.executor.probe()
    }

    /// Id of the image that its container was made from; `None` for a process.
    #[must_use]
    pub fn image(&self) -> Option<&str> {
        self.executor.image()
    }

    /// What its health check says; `None`: it has none.
    pub(super) fn health(&self) -> Option<Health> {
        self.executor.health()
    }

    /// The instant just before it was started.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How the first process ended; `None` while it lives. A service whose first process goes into the background has
    /// ended for unladen: such services have to be started in the foreground.
    pub fn alive(&mut self) -> Option<Ended> {
        self.ended = self.ended.or_else(|| self.executor.poll());
        self.ended
    }

    /// Waits until all conditions hold. Returns the time from start to readiness, exact to 5 ms.
    ///
    /// # Errors
    /// The process died (at once, with the end of its log), the time is up, a condition makes no sense, or `interrupted`
    /// was set.
    pub fn wait_ready(&mut self, readiness: &Readiness, interrupted: &AtomicBool) -> Result<Duration, SubjectError> {
        ready::wait(self, readiness, interrupted)
    }

    /// Asks it to end (SIGTERM to the first process) and returns at once, so that several can be asked together.
    pub fn ask_to_stop(&mut self) {
        if !self.stop_requested && self.alive().is_none() {
            self.executor.terminate();
        }
        self.stop_requested = true;
    }

    /// Stops it: SIGTERM to the first process; when that has ended, to whatever it left running; SIGKILL to everything
    /// that is still there after the grace. Nothing is left when this returns `Ok`.
    ///
    /// # Errors
    /// Something survives SIGKILL, or its control group cannot be removed.
    pub fn stop(&mut self, grace: Duration) -> Result<Ended, SubjectError> {
        let deadline = Instant::now() + grace;
        self.ask_to_stop();
        let mut asked_the_rest = false;
        let mut pause = Duration::from_millis(1);
        let in_time = loop {
            if self.alive().is_some() {
                let left = self.members();
                if left.is_empty() {
                    break true;
                }
                if !asked_the_rest {
                    signal_all(&left, Signal::TERM);
                    asked_the_rest = true;
                }
            }
            let now = Instant::now();
            if now >= deadline {
                break false;
            }
            std::thread::sleep(pause.min(deadline - now));
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        if !in_time {
            // Known before the kill: afterwards it could not be told from a SIGKILL that came from elsewhere.
            let by_itself = self.alive();
            self.kill_all()?;
            self.ended = by_itself.or(Some(Ended::Killed(grace)));
        }
        self.clean_up()?;
        Ok(self.ended.unwrap_or(Ended::Killed(grace)))
    }

    /// Living processes of the service.
    #[must_use]
    pub fn members(&self) -> Vec<Identity> {
        match &self.cgroup {
            Some(cgroup) => {
                cgroup.processes().into_iter().filter_map(Identity::of).filter(Identity::is_alive).collect()
            }
            None => self.family.members().iter().map(Stat::identity).collect(),
        }
    }

    /// Moves every thread that may run on just the cores `from`, of the process and of all that it started, to the cores `to`. What
    /// has bound itself to other cores stays there.
    ///
    /// # Errors
    /// What the system says of a thread, unless it has ended meanwhile.
    pub fn move_threads(&self, from: &CpuSet, to: &CpuSet) -> io::Result<()> {
        self.executor.confine(to)?;
        self.bind_threads(from, to)
    }

    /// Binds it to these cores if the engine that started it has not: it leaves that out where it has no control group for it.
    ///
    /// # Errors
    /// It is on other cores and cannot be moved.
    pub(super) fn keep_to(&self, cpus: Option<&CpuSet>) -> Result<(), SubjectError> {
        let Some(wanted) = cpus.filter(|_| self.pid() != 0) else { return Ok(()) };
        let Ok(allowed) = CpuSet::of_thread(self.pid()) else { return Ok(()) };
        // A service may have bound itself to fewer.
        if allowed.difference(wanted).is_empty() {
            return Ok(());
        }
        self.bind_threads(&allowed, wanted).map_err(|source| SubjectError::Loose {
            service: self.service.clone(),
            wanted: wanted.to_string(),
            allowed: allowed.to_string(),
            source,
        })
    }

    fn bind_threads(&self, from: &CpuSet, to: &CpuSet) -> io::Result<()> {
        // Those that are started in a pass by threads that it has not come to yet are moved by the next one.
        for _ in 0..PASSES {
            let members = self.members();
            let threads = members.iter().flat_map(|member| process::threads(member.pid));
            let to_be_moved: Vec<u32> =
                threads.filter(|thread| CpuSet::of_thread(*thread).is_ok_and(|cpus| cpus == *from)).collect();
            if to_be_moved.is_empty() {
                break;
            }
            for thread in to_be_moved {
                match to.bind_thread(thread) {
                    Ok(()) | Err(Errno::SRCH) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// The last lines of what it wrote to its log, at most `lines`.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        tail(&self.log, self.log_start, lines).unwrap_or_else(|error| format!("(cannot be read: {error})"))
    }

    /// Listens to its log for something, from its start on.
    #[must_use]
    pub fn listen_for(&self, wanted: Wanted) -> Listener {
        Listener::new(&self.log, self.log_start, wanted)
    }

    /// SIGKILL to everything, until nothing is left.
    fn kill_all(&mut self) -> Result<(), SubjectError> {
        let deadline = Instant::now() + KILL_PATIENCE;
        loop {
            self.executor.kill();
            let left = self.members();
            signal_all(&left, Signal::KILL);
            if self.alive().is_some() && left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let pids: Vec<String> = left.iter().map(|identity| identity.pid.to_string()).collect();
                let service = self.service.clone();
                return Err(SubjectError::Unstoppable { service, left: pids.len(), pids: pids.join(", ") });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Removes what was made for it and tells the guard. Everything has ended.
    fn clean_up(&mut self) -> Result<(), SubjectError> {
        self.executor.remove()?;
        if !self.gone {
            self.shared.guard.forget(self.pid());
            if let Some(name) = self.executor.container() {
                self.shared.guard.removed(name);
            }
        }
        self.gone = true;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.gone {
            let _ = self.kill_all();
            let _ = self.clean_up();
        }
    }
}

fn signal_all(processes: &[Identity], signal: Signal) {
    for process in processes {
        // What has gone needs no signal, and what may not be signalled shows up as left.
        let _ = process.signal(signal);
    }
}

/// The last lines of a file from `start` on. Only its last 16 KiB are looked at.
fn tail(path: &Path, start: u64, lines: usize) -> io::Result<String> {
    const MAX_TAIL: u64 = 16 * 1024;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(start.max(length.saturating_sub(MAX_TAIL))))?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.trim_end().lines().collect();
    if all.is_empty() {
        return Ok("(it wrote nothing)".to_owned());
    }
    Ok(all[all.len().saturating_sub(lines)..].join("\n"))
}
