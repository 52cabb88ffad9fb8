//! What runs a service. A new way to run one is a new [`Executor`]; the rest of unladen sees a [`super::Running`].

use std::fs;
use std::io;
use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;
use unladen_linux::process::Identity;
use unladen_linux::{Cgroup, CpuSet};
use unladen_probe::remote::Remote;

use super::ended::Ended;
use super::error::SubjectError;
use super::reaper;

/// What a health check says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Health {
    /// That all is well.
    pub(super) is_healthy: bool,
    /// Its last words.
    pub(super) said: String,
    /// How long after the start it is made for the first time, about.
    pub(super) first_after: Duration,
}

/// Holds what was started and ends it.
pub(super) trait Executor: std::fmt::Debug + Send + Sync {
    /// How the first process ended; `None` while it lives.
    fn poll(&mut self) -> Option<Ended>;

    /// Asks the first process to end, and returns at once.
    fn terminate(&mut self);

    /// Ends everything at once, as far as that can be done in one step.
    fn kill(&mut self);

    /// Removes what was made for the service. Everything in it has ended.
    fn remove(&mut self) -> Result<(), SubjectError>;

    /// Id of the image that it was made from.
    fn image(&self) -> Option<&str> {
        None
    }

    /// The probe that watches it, if this process cannot.
    fn probe(&self) -> Option<&Remote> {
        None
    }

    /// What its health check says; `None`: it has none.
    fn health(&self) -> Option<Health> {
        None
    }

    /// Lets the service use these cores and no others, where something else than its threads says which it may use.
    fn confine(&self, _cpus: &CpuSet) -> io::Result<()> {
        Ok(())
    }

    /// Name of its container, if that is to be removed with it.
    fn container(&self) -> Option<&str> {
        None
    }
}

/// A process of this machine, in a control group of unladen's if there are any.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) service: String,
    pub(super) child: Child,
    pub(super) root: Identity,
    pub(super) cgroup: Option<Cgroup>,
}

impl Executor for Process {
    fn poll(&mut self) -> Option<Ended> {
        // An error means that somebody else has reaped it; it has ended then, how is lost.
        let status = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => Ended::from_status(status),
            Err(_) => Ended::Exit(-1),
        };
        reaper::forget(self.child.id());
        Some(match status {
            Ended::Signal(libc::SIGKILL) if self.cgroup.as_ref().is_some_and(Cgroup::memory_ran_out) => {
                Ended::OutOfMemory
            }
            other => other,
        })
    }

    fn terminate(&mut self) {
        let _ = self.root.signal(Signal::TERM);
    }

    fn kill(&mut self) {
        if let Some(cgroup) = &self.cgroup {
            // v2 kills a whole group at once, forks under way included. What is left is swept one by one.
            let _ = fs::write(cgroup.accounting.join("cgroup.kill"), "1");
        }
    }

    fn remove(&mut self) -> Result<(), SubjectError> {
        reaper::reap_orphans();
        let Some(cgroup) = &self.cgroup else { return Ok(()) };
        cgroup.remove().map_err(|source| SubjectError::Cgroup {
            service: self.service.clone(),
            path: cgroup.accounting.clone(),
            source,
        })
    }
}
