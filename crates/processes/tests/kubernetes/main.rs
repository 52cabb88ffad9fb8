//! Deployments in a real cluster whose node is this machine: `make cluster-test` starts one and runs these. Without one they are skipped.
//!
//! Pods run the cluster's own program (`scripts/cluster/pod`), which is on every such node as the image of sandboxes.

#![cfg(feature = "kubernetes")]

mod ending;
mod refusing;
mod running;
mod site;
