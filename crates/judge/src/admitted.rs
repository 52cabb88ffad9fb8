//! In what the pods of a variant differ from the baseline's, as the cluster admitted them: what of the variant took, and what injectors added.

use unladen_journal::admitted::differences;

use super::evidence::{Evidence, VariantRuns};
use super::findings::PodDifference;

/// By the first round in which both have a run that counts.
pub(super) fn of(evidence: &Evidence<'_>, variant: &VariantRuns<'_>) -> Vec<PodDifference> {
    let bare = evidence.baseline_of(variant);
    let mut both = variant.valid.iter().filter_map(|(round, run)| Some((bare.valid.get(round)?, run)));
    let Some((bare, run)) = both.find(|(bare, run)| !bare.admitted.is_empty() && !run.admitted.is_empty()) else {
        return Vec::new();
    };
    let pods = run.admitted.iter().filter_map(|(service, pod)| Some((service, bare.admitted.get(service)?, pod)));
    let of_service = |(service, bare, pod)| {
        let service: &String = service;
        differences(bare, pod).into_iter().map(|it| PodDifference {
            service: service.clone(),
            path: it.path,
            baseline: it.one,
            variant: it.other,
        })
    };
    pods.flat_map(of_service).collect()
}
