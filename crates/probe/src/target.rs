//! A process to watch, with all that it starts.

use unladen_journal::role::Role;
use unladen_linux::Cgroup;
use unladen_linux::tree::Family;

use super::scrape::Endpoint;

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
