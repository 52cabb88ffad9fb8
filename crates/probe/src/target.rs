//! A process to watch, with all that it starts.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use unladen_journal::role::Role;
use unladen_linux::Cgroup;
use unladen_linux::tree::Family;

use super::scrape::Endpoint;

/// Where a probe is that runs elsewhere: see [`super::remote`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it wants to hear first.
    pub secret: String,
}

/// A process to watch: a service's replica or a part of the instrument.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Name of its service, or of the instrument's part.
    pub service: String,
    /// 0, 1, … within the service.
    pub replica: u32,
    /// What the service is in the study; `None` for the instrument.
    pub role: Option<Role>,
    /// Its first process, and what its descendants can be told by.
    pub family: Family,
    /// Its control group; without one, figures are summed over the process tree.
    pub cgroup: Option<Cgroup>,
    /// Where it tells of itself.
    pub endpoint: Option<Endpoint>,
    /// The probe that watches it, if it is not this process: `family` and `cgroup` then tell nothing.
    pub remote: Option<Remote>,
}

impl Target {
    /// Whether what it is sent is telemetry.
    #[must_use]
    pub fn takes_telemetry(&self) -> bool {
        match self.role {
            Some(role) => matches!(role, Role::Collector | Role::Storage),
            None => self.service == "sink",
        }
    }
}
