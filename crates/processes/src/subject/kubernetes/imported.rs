//! What is taken of live workloads for a study, in plain values.

use std::time::Duration;

use super::workload::Workload;

/// Live workloads and what they need, as manifests for a study.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Imported {
    /// The namespace that they are in.
    pub namespace: String,
    /// Objects for the folder of manifests, in the order of their names.
    pub manifests: Vec<Manifest>,
    /// The workloads, in the order in which they were asked for.
    pub live: Vec<Live>,
    /// What is not as it is in the cluster, and what to look at: a sentence each.
    pub notes: Vec<String>,
}

/// An object as the text of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Name of its file: `deployment-shop.yaml`.
    pub file: String,
    /// `Deployment shop`.
    pub object: String,
    /// YAML.
    pub text: String,
    /// Whether it is for its owner's eyes only.
    pub is_secret: bool,
}

/// A live workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// What it is.
    pub workload: Workload,
    /// The container that serves, of several; `None`: there is one.
    pub container: Option<String>,
    /// Port that it serves; `None`: it does not say.
    pub port: Option<u16>,
    /// What its pods say of their readiness.
    pub ready: ReadyBy,
    /// Its probes wait so long.
    pub patience: Duration,
}

/// How a container tells that it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadyBy {
    /// It answers at a path.
    Http {
        /// Port.
        port: u16,
        /// Path.
        path: String,
    },
    /// It listens on a port.
    Tcp {
        /// Port.
        port: u16,
    },
    /// By a probe that only the kubelet can do: a command, gRPC, HTTPS.
    Kubelet,
    /// It has no probe.
    Nothing,
}
