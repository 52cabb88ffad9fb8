//! Pods of a node that is this machine: manifests are read and changed (`manifests`, `fit`), applied and waited for (`deploy`, `wait`,
//! `pods`, `admitted`), their processes found and watched here (`found`, `adopt`, `member`).

mod admitted;
mod adopt;
mod api;
mod clusters;
mod config;
mod deploy;
mod end;
mod fit;
mod found;
mod logs;
mod manifests;
mod member;
mod pods;
mod resources;
mod wait;

pub(in crate::subject) use clusters::{Clusters, clean};
pub use deploy::Deployed;

use super::{Changes, Stack, error, kubeconfigs, workload};

/// Variable that shifts the stack: see [`crate::subject::Launch::pad`].
const PAD: &str = "UNLADEN_PAD";
