//! What takes the place of `cluster` in a build without Kubernetes.

use std::process::ExitCode;

use unladen_processes::subject::kubernetes::KubernetesError;
use unladen_study::plan::Plan;

use crate::cli::Run;
use crate::cli::cluster::{Clean, Fetch, InPod};

/// `unladen run --in-cluster`
///
/// # Errors
/// Always.
pub fn run(_plan: &Plan, _options: &Run) -> anyhow::Result<ExitCode> {
    Err(KubernetesError::LeftOut.into())
}

/// `unladen fetch`
///
/// # Errors
/// Always.
pub fn fetch(_options: &Fetch) -> anyhow::Result<ExitCode> {
    Err(KubernetesError::LeftOut.into())
}

/// `unladen clean`
///
/// # Errors
/// Always.
pub fn clean(_options: &Clean) -> anyhow::Result<ExitCode> {
    Err(KubernetesError::LeftOut.into())
}

/// What runs in a pod.
///
/// # Errors
/// Always.
pub fn in_pod(_what: &InPod) -> anyhow::Result<ExitCode> {
    Err(KubernetesError::LeftOut.into())
}

/// A probe, in a pod.
///
/// # Errors
/// Always.
pub fn probe(_port: u16) -> anyhow::Result<ExitCode> {
    Err(KubernetesError::LeftOut.into())
}

/// A part of a load, in a pod.
///
/// # Errors
/// Always.
pub fn load_part() -> anyhow::Result<ExitCode> {
    Err(KubernetesError::LeftOut.into())
}
