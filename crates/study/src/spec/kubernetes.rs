//! Services that are workloads of a Kubernetes cluster.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The manifests of a study, and the cluster that they are for. unladen runs on the node of the pods: `unladen run --in-cluster` sends it there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Kubernetes {
    /// Context of the kubeconfig (`KUBECONFIG`, else `~/.kube/config`). Absent: the current one.
    pub context: Option<String>,
    /// Files with YAML, or folders with such files, relative to the study file: `[deploy/]`.
    pub manifests: Vec<String>,
    /// A folder for `kubectl kustomize`, instead of `manifests`.
    pub kustomize: Option<String>,
    /// Who reads what the pods use: unladen on their node as root, or probes in the pods, for clusters where nothing may be privileged.
    pub probe: ProbeIn,
    /// Image of the probes in the pods, with this version of unladen as `/unladen`. Absent: that of `--in-cluster`, else `unladen:VERSION`.
    pub probe_image: Option<String>,
    /// Pods on other nodes that send the load. Absent: the load comes from the node of the services.
    pub load: Option<LoadPods>,
}

/// Who reads what pods use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeIn {
    /// unladen itself, as root on the node of the pods.
    #[default]
    Node,
    /// An ephemeral container in each pod, with the user and the rights of the container that it watches. unladen needs no right on the node then.
    Pod,
}

/// Pods that send the load, each a part of it, from other nodes than that of the services. They need no rights in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadPods {
    /// How many. Each sends an equal share of the requests, over an equal share of the connections.
    pub parts: u32,
    /// Their image, with this version of unladen as `/unladen`. Absent: that of `--in-cluster`, else `unladen:VERSION`.
    #[serde(default)]
    pub image: Option<String>,
    /// Labels of the nodes they may run on: `{pool: load}`. Absent: any node but that of the services.
    #[serde(default)]
    pub nodes: IndexMap<String, String>,
}

/// The kinds of workloads that a service can be.
const KINDS: [&str; 3] = ["deployment", "statefulset", "daemonset"];

/// Kind and name of a workload, as in `deployment/shop`; `None`: it is neither.
#[must_use]
pub fn workload(text: &str) -> Option<(&str, &str)> {
    let (kind, name) = text.split_once('/')?;
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = name.len() <= 253
        && name.starts_with(is_end)
        && name.ends_with(is_end)
        && name.chars().all(|c| is_end(c) || c == '-' || c == '.');
    (KINDS.contains(&kind) && is_name).then_some((kind, name))
}

#[cfg(test)]
mod tests {
    use super::workload;

    #[test]
    fn a_workload_is_a_kind_and_a_name() {
        assert_eq!(workload("deployment/shop"), Some(("deployment", "shop")));
        assert_eq!(workload("statefulset/db-1.x"), Some(("statefulset", "db-1.x")));
        for text in
            ["shop", "deploy/shop", "deployment/", "deployment/Shop", "deployment/-a", "pod/shop", "deployment/a/b", ""]
        {
            assert_eq!(workload(text), None, "{text}");
        }
    }
}
