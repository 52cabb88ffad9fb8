//! What is known while a study still runs, for the progress display: medians, no intervals, no verdicts.

use super::metrics;
use crate::journal::record::RunRecord;
use crate::study::plan::ArmKind;

/// CPU per request of one variant so far.
#[derive(Debug, Clone, PartialEq)]
pub struct SoFar {
    /// Key of the variant.
    pub variant: String,
    /// Median over its valid runs, µs.
    pub cpu_us_per_request: f64,
    /// Difference to the baseline's median, as a share of it; `None` for the baseline and before it has a run.
    pub ratio: Option<f64>,
}

/// CPU per request in one run, µs.
#[must_use]
pub fn cpu_us_per_request(run: &RunRecord) -> Option<f64> {
    metrics::METRICS.iter().find(|metric| metric.name == "cpu_per_request")?.value(run, None)
}

/// CPU per request by variant, in the order in which the variants first ran, the baseline first.
#[must_use]
pub fn so_far(runs: &[RunRecord]) -> Vec<SoFar> {
    // Of a round that is done again only the last attempt, as far as it has come.
    let last = |run: &RunRecord| runs.iter().all(|it| it.round != run.round || it.attempt <= run.attempt);
    let valid = || runs.iter().filter(|run| run.void.is_none() && last(run));
    let mut variants: Vec<(&str, ArmKind)> = Vec::new();
    for run in valid() {
        if !variants.iter().any(|(name, _)| *name == run.variant) {
            variants.push((&run.variant, run.kind));
        }
    }
    variants.sort_by_key(|(_, kind)| match kind {
        ArmKind::Baseline => 0,
        ArmKind::Placebo => 1,
        ArmKind::Variant => 2,
    });
    let median = |variant: &str| {
        let values: Vec<f64> = valid().filter(|run| run.variant == variant).filter_map(cpu_us_per_request).collect();
        unladen_stats::estimate::median(&values)
    };
    let baseline = variants.iter().find(|(_, kind)| *kind == ArmKind::Baseline).and_then(|(name, _)| median(name));
    variants
        .iter()
        .filter_map(|(name, kind)| {
            let cpu_us_per_request = median(name)?;
            let ratio = baseline.filter(|_| *kind != ArmKind::Baseline).map(|bare| cpu_us_per_request / bare - 1.0);
            Some(SoFar { variant: (*name).to_owned(), cpu_us_per_request, ratio })
        })
        .collect()
}
