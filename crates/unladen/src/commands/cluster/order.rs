//! What a cluster is asked for.

use std::time::Duration;

use unladen_journal::units::Time;
use unladen_processes::subject::kubernetes::in_cluster::{JobOrder, STUDY};
use unladen_processes::subject::kubernetes::{own_image, plain_name};
use unladen_study::plan::Plan;
use unladen_study::spec::ProbeIn;

use super::super::draw_seed;
use super::bundle;
use crate::cli::cluster::InCluster;

/// Results wait so long in the cluster, unless it is said.
const KEEP: Duration = Duration::from_secs(24 * 3600);
/// Longest beginning of the name of a study: that of a pod is longer, and has 63 characters at most.
const LONGEST_NAME: usize = 40;

/// The context of the kubeconfig that a study names.
pub(super) fn context(plan: &Plan) -> Option<&str> {
    plan.study.on.kubernetes.as_ref().and_then(|it| it.context.as_deref())
}

/// What the cluster is asked for.
pub(super) fn order(plan: &Plan, options: &InCluster, node: Option<&str>) -> anyhow::Result<JobOrder> {
    let bundle = bundle::pack(plan)?;
    let keep = options.keep.unwrap_or(Time(KEEP));
    let study = format!("{STUDY}/{}", bundle.study);
    Ok(JobOrder {
        name: name(&plan.study.study, draw_seed()),
        study: plan.study.study.clone(),
        image: options.image.clone().unwrap_or_else(own_image),
        node: node.map(str::to_owned),
        args: ["__in-cluster", "run", &study, "--keep", &keep.to_string()].map(str::to_owned).to_vec(),
        files: bundle.files,
        is_privileged: plan.study.on.kubernetes.as_ref().is_none_or(|it| it.probe == ProbeIn::Node),
    })
}

/// `shop-1a2b3c4d`: what a Job and its pods may be called.
pub(super) fn name(study: &str, random: u64) -> String {
    let plain = plain_name(study, LONGEST_NAME);
    format!("{}-{:08x}", if plain.is_empty() { "study" } else { &plain }, random & 0xffff_ffff)
}

/// The objects as YAML, for `kubectl apply`.
pub(super) fn yaml(order: &JobOrder) -> anyhow::Result<String> {
    let options = serde_saphyr::ser_options! { compact_list_indent: false, folded_wrap_chars: 1_000_000 };
    let documents = order.objects().map(|object| serde_saphyr::to_string_with_options(&object, options.clone()));
    let documents = documents.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(format!("# unladen fetch {} gets the results\n{}", order.name, documents.join("---\n")))
}
