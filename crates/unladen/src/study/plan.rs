//! What a study *means*: the arms that run in every round and, for each, the processes to start, in order.
//!
//! Made from [`super::spec::Study`] without touching a file, a clock or a process. Strings may still hold run-time
//! variables (`${port.http}`, `${sink.otlp_grpc}`), which [`super::variables`] fills in when ports are known.

use std::path::PathBuf;

use indexmap::IndexMap;

use super::spec::{Lifetime, Limits, Ready, Role, Study};
use super::units::{Ratio, Time};

/// A study, ready to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The study as resolved: every default written out, `--set` values applied.
    pub study: Study,
    /// Folder of the study file; relative paths start here.
    pub dir: PathBuf,
    /// Baseline first, then the placebo if wanted, then the variants in the order of the file.
    pub arms: Vec<Arm>,
}

/// What an arm is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmKind {
    /// The bare service.
    Baseline,
    /// The bare service once more.
    Placebo,
    /// The service with something added.
    Variant,
}

/// One variant with everything that its runs need.
#[derive(Debug, Clone)]
pub struct Arm {
    /// Key of the variant; `placebo` for the placebo.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// What the arm is for.
    pub kind: ArmKind,
    /// Processes in start order (after `needs`), replicas unrolled; also those that live through the study.
    pub processes: Vec<Process>,
    /// Declared spans per sampled request. `Some(0.0)` for baseline and placebo unless the study says otherwise.
    pub spans_per_request: Option<f64>,
    /// Share of requests that carry the sampled flag.
    pub sampled: Ratio,
}

/// One process to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Name of its service.
    pub service: String,
    /// 0, 1, … within the service.
    pub replica: u32,
    /// What the service is in the study.
    pub role: Role,
    /// Fresh for every run, or one for the study.
    pub lifetime: Lifetime,
    /// Program first, then its arguments.
    pub command: Vec<String>,
    /// Environment on top of unladen's own.
    pub env: IndexMap<String, String>,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// Command that builds it, if any.
    pub build: Option<Vec<String>>,
    /// When it counts as ready.
    pub ready: Ready,
    /// Limits on its cgroup.
    pub limits: Limits,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Time,
}
