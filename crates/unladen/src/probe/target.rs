//! A process to watch, with all that it starts.

use crate::linux::Cgroup;
use crate::linux::tree::Family;
use crate::study::spec::Role;

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
}
