//! How the variants of a round share the time: alternating where that is sound, else one after the other, and why.

use crate::journal::record::Design;
use crate::study::plan::{Plan, Process};

/// Most variants that are alive at the same time.
const MAX_ALIVE: usize = 8;

/// The design of a study's rounds; of a separate one that the study did not ask for, the reason.
pub(super) fn design(plan: &Plan) -> (Design, Option<String>) {
    if plan.study.design == Some(Design::Separate) {
        return (Design::Separate, None);
    }
    match why_separate(plan) {
        Some(reason) => (Design::Separate, Some(reason)),
        None => (Design::Alternating, None),
    }
}

fn why_separate(plan: &Plan) -> Option<String> {
    let of_study = plan.study.why_separate().map(|reason| reason.to_string());
    let shared = plan.shared();
    let sender = shared.iter().find(|process| Process::knows_the_sink(process)).map(|process| {
        format!("{} lives through the study and sends spans, which would all go to one variant's sink", process.service)
    });
    let many = (plan.arms.len() > MAX_ALIVE)
        .then(|| format!("{} variants are more than the {MAX_ALIVE} that are kept alive at once", plan.arms.len()));
    of_study.or(sender).or(many)
}
