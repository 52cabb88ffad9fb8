//! A container that something else has started for unladen: a Compose project, a cluster.

use std::net::IpAddr;
use std::sync::Arc;

use unladen_linux::Netns;

use super::running::Running;

/// A container that runs, and where it is found.
#[derive(Debug)]
pub struct Placed {
    /// The container.
    pub running: Running,
    /// Its address within its network namespace.
    pub address: IpAddr,
    /// Its network namespace; `None`: it has ended.
    pub network: Option<Arc<Netns>>,
}
