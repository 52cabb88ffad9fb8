//! What takes the place of deployments in a build without them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;
use unladen_linux::Netns;

use super::super::error::SubjectError;
use super::super::launcher::Launcher;
use super::super::placed::Placed;
use super::error::KubernetesError;
use super::{Examined, Imported, LoadOrder, Stack, Workload};

/// What was deployed: nothing ever is in this build.
#[derive(Debug)]
pub struct Deployed(Infallible);

impl Deployed {
    /// The pod of each service as the cluster has admitted it.
    #[must_use]
    pub fn admitted(&self) -> &BTreeMap<String, Value> {
        match self.0 {}
    }

    /// Deletes its namespace.
    ///
    /// # Errors
    /// None.
    pub fn remove(self) -> Result<(), SubjectError> {
        match self.0 {}
    }
}

/// Pods that send a load: there are none in this build.
#[derive(Debug)]
pub struct LoadPods(Infallible);

impl LoadPods {
    /// Where they are met.
    #[must_use]
    pub fn meeting(&self) -> SocketAddr {
        match self.0 {}
    }

    /// Name of the node that the services are on.
    #[must_use]
    pub fn subject(&self) -> &str {
        match self.0 {}
    }
}

/// Examines a cluster, which this build cannot.
///
/// # Errors
/// It always fails.
pub fn examine(_context: Option<&str>, _stacks: &[Stack]) -> Result<Examined, KubernetesError> {
    Err(KubernetesError::LeftOut)
}

/// Reads live workloads, which this build cannot.
///
/// # Errors
/// It always fails.
pub fn import(
    _context: Option<&str>,
    _namespace: Option<&str>,
    _workloads: &[Workload],
    _with_secrets: bool,
) -> Result<Imported, KubernetesError> {
    Err(KubernetesError::LeftOut)
}

impl Launcher {
    /// Starts workloads in a cluster, which this build cannot.
    ///
    /// # Errors
    /// It always fails.
    pub fn deploy(
        &self,
        _stack: &Stack,
        _patience: Duration,
        _seen: &mut dyn FnMut(&Arc<Netns>),
        _interrupted: &AtomicBool,
    ) -> Result<(Deployed, Vec<Placed>), SubjectError> {
        Err(KubernetesError::LeftOut.into())
    }

    /// Looks for an address in a cluster, which this build cannot.
    ///
    /// # Errors
    /// It always fails.
    pub fn address_for_pods(&self, _context: Option<&str>) -> Result<IpAddr, SubjectError> {
        Err(KubernetesError::LeftOut.into())
    }

    /// Starts pods that send a load, which this build cannot.
    ///
    /// # Errors
    /// It always fails.
    pub fn load_from(&self, _order: &LoadOrder, _interrupted: &AtomicBool) -> Result<LoadPods, SubjectError> {
        Err(KubernetesError::LeftOut.into())
    }
}
