//! Services that are workloads of a Kubernetes cluster whose node is this machine. Every variant of a round has a namespace of its own, to
//! which the manifests are applied as the study changes them; the pods' containers are each a [`super::Running`] like any other, found by
//! their control groups. The namespace goes with the round, or with unladen: then the guard deletes it.

#[cfg(feature = "kubernetes")]
mod api;
#[cfg(feature = "kubernetes")]
mod config;
mod error;
mod examined;
mod imported;
#[cfg(feature = "kubernetes")]
pub mod in_cluster;
#[cfg(not(feature = "kubernetes"))]
mod left_out;
#[cfg(feature = "kubernetes")]
mod local;
#[cfg(feature = "kubernetes")]
mod logs;
#[cfg(feature = "kubernetes")]
mod owner;
#[cfg(feature = "kubernetes")]
mod restricted;
mod rights;
mod workload;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value;

pub use error::KubernetesError;
pub use examined::{Autoscalers, Examined, Node};
pub use imported::{Imported, Live, Manifest, ReadyBy};
#[cfg(not(feature = "kubernetes"))]
pub use left_out::{Deployed, LoadPods, examine, import};
#[cfg(feature = "kubernetes")]
pub(super) use local::{Clusters, clean};
#[cfg(feature = "kubernetes")]
pub use local::{Deployed, LoadPods, examine, import};
pub use rights::{Right, needed, role};
pub use workload::{Kind, Workload};

use unladen_linux::CpuSet;

use super::launch::Limits;

/// Namespace of studies that run in the cluster by themselves.
pub const NAMESPACE: &str = "unladen";

/// Variable that names the image of this executable in its pod.
const IMAGE_VARIABLE: &str = "UNLADEN_IMAGE";
/// Where an image has this executable.
#[cfg(feature = "kubernetes")]
const PROGRAM: &str = "/unladen";
/// Variable that names the node in pods of unladen.
pub const NODE: &str = "UNLADEN_NODE";
/// Variable that names the Job in its pod.
const JOB_VARIABLE: &str = "UNLADEN_JOB";

/// Name of the Job whose pod this process is in, if it is in one: see `in_cluster`.
#[must_use]
pub fn job_of_this_pod() -> Option<String> {
    std::env::var(JOB_VARIABLE).ok().filter(|job| !job.is_empty())
}

/// What objects may be called, of any text: lower case, ASCII letters and digits, `-` for everything else but not at an end, `most` characters at
/// most.
#[must_use]
pub fn plain_name(text: &str, most: usize) -> String {
    let lower = text.to_ascii_lowercase();
    let plain: String = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(most).collect();
    plain.trim_matches('-').to_owned()
}

/// The kubeconfigs that are merged: what `KUBECONFIG` names, one or several, or `~/.kube/config`. Whether they are there is not asked.
#[must_use]
pub fn kubeconfigs(named: Option<&OsStr>, home: Option<&Path>) -> Vec<PathBuf> {
    match named.filter(|named| !named.is_empty()) {
        Some(named) => std::env::split_paths(named).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => home.map(|home| home.join(".kube/config")).into_iter().collect(),
    }
}

/// Image with this version of unladen, unless another is named: that of the pod in which this process is, if it is in one.
#[must_use]
pub fn own_image() -> String {
    let of_this_pod = std::env::var(IMAGE_VARIABLE).ok().filter(|image| !image.is_empty());
    of_this_pod.unwrap_or_else(|| format!("unladen:{}", env!("CARGO_PKG_VERSION")))
}

/// Pods that send the load of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOrder {
    /// Context of the kubeconfig; `None`: its current one.
    pub context: Option<String>,
    /// How many.
    pub parts: u32,
    /// Their image, with this version of unladen.
    pub image: String,
    /// Labels of the nodes that they may be on.
    pub nodes: IndexMap<String, String>,
    /// What each is told: the arguments of its program.
    pub args: Vec<String>,
    /// Port of this machine at which they are met.
    pub port: u16,
    /// What they say to be let in.
    pub secret: String,
}

/// Variables of such a pod: where it is met, what it says to be let in, and the node that it is on. Its number, from 0, is in
/// `JOB_COMPLETION_INDEX`.
pub const LOAD_VARIABLES: [&str; 3] = ["UNLADEN_MEETING", SECRET, NODE];

/// Variable of unladen's own pods, and of probes: what they say, or want to hear, first.
pub const SECRET: &str = "UNLADEN_SECRET";

/// Probes in the pods of the services, instead of this process on their node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeOrder {
    /// Their image, with this version of unladen.
    pub image: String,
    /// What each is told: the arguments of its program. Its port follows.
    pub args: Vec<String>,
    /// Port of the first in each pod; the next one follows for each container.
    pub port: u16,
    /// What they want to hear first.
    pub secret: String,
}

/// What is started in the cluster for a variant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stack {
    /// Context of the kubeconfig; `None`: its current one.
    pub context: Option<String>,
    /// Files with manifests, and folders of such files (`.yaml`, `.yml`, `.json`); absolute. They are applied together.
    pub manifests: Vec<PathBuf>,
    /// Folder of a kustomization whose result is applied as well; absolute.
    pub kustomize: Option<PathBuf>,
    /// What the study calls a service, and what is changed in it.
    pub services: BTreeMap<String, Changes>,
    /// Name of the variant, for the name of the namespace.
    pub variant: String,
    /// Cores of all pods, unless the limits of a service say otherwise.
    pub cpus: CpuSet,
    /// Length of `UNLADEN_PAD`: see [`super::Launch::pad`].
    pub pad: usize,
    /// Folder for the logs of the containers: [`super::launch::log_name`].
    pub log: PathBuf,
    /// What `${NAME}` in the manifests is filled in from. Other names stay as they are.
    pub env: IndexMap<String, String>,
    /// Labels of the nodes whose pods send the load; `None`: this machine sends it.
    pub load: Option<IndexMap<String, String>>,
    /// Probes in the pods; `None`: this process reads their processes, on their node.
    pub probe: Option<ProbeOrder>,
}

/// A service, and what is changed in its workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// What it is in the manifests.
    pub workload: Workload,
    /// Its container; `None`: the only one, or what the annotation `kubectl.kubernetes.io/default-container` says.
    pub container: Option<String>,
    /// Environment of its container on top of the manifest's.
    pub env: IndexMap<String, String>,
    /// Another image for its container.
    pub image: Option<String>,
    /// Labels of the pod template on top of the manifest's.
    pub labels: IndexMap<String, String>,
    /// Annotations of the pod template on top of the manifest's.
    pub annotations: IndexMap<String, String>,
    /// A strategic merge patch of the pod template, done by the API server after all other changes.
    pub patch: Option<Value>,
    /// Limits of its container instead of the manifest's.
    pub limits: Limits,
    /// Pods, if not as many as the manifest says.
    pub replicas: Option<u32>,
}

impl Changes {
    /// No changes.
    #[must_use]
    pub fn of(workload: Workload) -> Self {
        Self {
            workload,
            container: None,
            env: IndexMap::new(),
            image: None,
            labels: IndexMap::new(),
            annotations: IndexMap::new(),
            patch: None,
            limits: Limits::default(),
            replicas: None,
        }
    }
}
