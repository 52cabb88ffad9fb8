//! What a cluster says of itself and of a study, in plain values.

use super::rights::Right;

/// A cluster, and what a study finds there.
#[derive(Debug, Clone, PartialEq)]
pub struct Examined {
    /// Context of the kubeconfig.
    pub context: String,
    /// Address of the API server.
    pub server: String,
    /// Version of Kubernetes.
    pub version: String,
    /// Its nodes; else why they are not known.
    pub nodes: Result<Vec<Node>, String>,
    /// The kubelet's CPU manager policy on this machine, or on the first node if none is this machine.
    pub cpu_manager: Option<String>,
    /// The API server's clock less that of this machine, and how well that is known, seconds.
    pub clock_s: Option<(f64, f64)>,
    /// What the study's manifests hold, `Deployment shop`; else what is wrong with them. `None`: there is no study.
    pub manifests: Option<Result<Vec<String>, String>>,
    /// What scales the study's workloads.
    pub autoscalers: Autoscalers,
    /// Nodes whose pods may send the load; `None`: this machine sends it.
    pub load: Option<Vec<String>>,
    /// What the study needs, and whether the user of the kubeconfig may do it; else why that is not known.
    pub rights: Result<Vec<(Right, bool)>, String>,
    /// Who the user of the kubeconfig is to the API server.
    pub user: Option<String>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What the provider calls this kind of machine.
    pub instance: Option<String>,
    /// Version of its kubelet.
    pub kubelet: String,
    /// Whether it is this machine.
    pub is_here: bool,
}

/// What scales the study's workloads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Autoscalers {
    /// Those of its manifests, with what each scales.
    pub of_manifests: Vec<String>,
    /// Those of live workloads of the same names, in other namespaces; `None`: they may not be listed.
    pub live: Option<Vec<String>>,
}
