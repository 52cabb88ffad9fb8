//! Pods of a node that is this machine: manifests are read and changed (`manifests`, `fit`), applied and waited for (`deploy`, `wait`,
//! `pods`, `admitted`), their processes found and watched here (`found`, `adopt`, `member`) or by probes in the pods (`probe`). What is live becomes manifests (`import`, `strip`,
//! `template`, `written`); what a cluster is good for is asked by `examine`. Pods of other nodes send the load (`load`).

mod admitted;
mod adopt;
mod clusters;
mod deploy;
mod end;
mod examine;
mod fit;
mod found;
mod import;
mod load;
mod manifests;
mod member;
mod pods;
mod probe;
mod resources;
mod strip;
mod template;
mod wait;
mod written;

pub(super) use clusters::delete;
pub(in crate::subject) use clusters::{Clusters, clean};
pub use deploy::Deployed;
pub use examine::examine;
pub use import::import;
pub use load::LoadPods;
pub use manifests::{files, kustomize};

use super::{
    Changes, LOAD_VARIABLES, LoadOrder, NODE, PROGRAM, ProbeOrder, SECRET, Stack, api, config, error, examined,
    imported, job_of_this_pod, logs, owner, plain_name, restricted, rights, workload,
};
