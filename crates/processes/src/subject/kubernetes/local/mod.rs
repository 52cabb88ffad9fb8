//! Pods of a node that is this machine: manifests are read and changed (`manifests`, `fit`), applied and waited for (`deploy`, `wait`,
//! `pods`, `admitted`), their processes found and watched here (`found`, `adopt`, `member`).

mod admitted;
mod adopt;
mod clusters;
mod deploy;
mod end;
mod fit;
mod found;
mod manifests;
mod member;
mod pods;
mod resources;
mod wait;

pub(super) use clusters::delete;
pub(in crate::subject) use clusters::{Clusters, clean};
pub use deploy::Deployed;
pub use manifests::{files, kustomize};

use super::{Changes, Stack, api, config, error, in_cluster, job_of_this_pod, logs, workload};

/// Variable that shifts the stack: see [`crate::subject::Launch::pad`].
const PAD: &str = "UNLADEN_PAD";
