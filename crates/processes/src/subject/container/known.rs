//! What an engine tells of its containers.

use std::net::IpAddr;
use std::time::{Instant, SystemTime};

use super::super::executor::Health;
use super::super::launch::Limits;
use super::error::ContainerError;

/// Label of everything that belongs to a project.
pub(in crate::subject) const PROJECT: &str = "com.docker.compose.project";

/// What the engine knows of a container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::subject) struct Inspected {
    /// Process id of the first process, as this machine sees it; 0 when it does not run.
    pub(in crate::subject) pid: u32,
    /// Exit code, if it has ended.
    pub(super) exit_code: i32,
    /// Whether the kernel killed something in it because its memory limit was reached.
    pub(super) out_of_memory: bool,
    /// Id of its image: `sha256:…`.
    pub(super) image_id: String,
    /// The signal that asks it to end.
    pub(super) stop_signal: Option<String>,
    /// Its address in a network that it shares with nobody outside.
    pub(in crate::subject) address: Option<IpAddr>,
    /// Whether the engine limits its memory.
    pub(super) has_memory_limit: bool,
    /// Whether the engine limits its CPU time.
    pub(super) has_cpu_limit: bool,
    /// When it was started.
    pub(super) started: Option<SystemTime>,
    /// What its health check says; `None`: it has none.
    pub(super) health: Option<Health>,
}

impl Inspected {
    /// When it was started, as far as this can be told to some milliseconds.
    pub(in crate::subject) fn started(&self) -> Instant {
        let ago = self.started.and_then(|started| started.elapsed().ok()).unwrap_or_default();
        Instant::now().checked_sub(ago).unwrap_or_else(Instant::now)
    }

    /// An error if the engine has left out a limit, as it does where it has no control group for it.
    pub(in crate::subject) fn need_limits(&self, wanted: &Limits) -> Result<(), ContainerError> {
        match (wanted.memory, wanted.cpus) {
            (Some(_), _) if !self.has_memory_limit => Err(ContainerError::Unlimited { limit: "memory" }),
            (_, Some(_)) if !self.has_cpu_limit => Err(ContainerError::Unlimited { limit: "cpus" }),
            _ => Ok(()),
        }
    }
}

/// A container of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::subject) struct Member {
    pub(in crate::subject) id: String,
    pub(in crate::subject) service: String,
    /// 0, 1, … within the service.
    pub(in crate::subject) replica: u32,
    pub(in crate::subject) is_running: bool,
    /// It runs, or has run.
    pub(in crate::subject) was_started: bool,
}
