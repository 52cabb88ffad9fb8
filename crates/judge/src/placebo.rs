//! The baseline against itself: is the harness to be believed?
//!
//! The study is void if the placebo surely differs (99 %, Holm over the metrics that decide) in CPU per request, or in what the load
//! feels first: the median latency of an open loop, the throughput of a closed one. It must differ by more than what
//! matters, too: a harness that is uneven by a tenth of the margin cannot make a verdict. Less than that is a warning, and
//! so are other metrics that differ by more.

use unladen_journal::notices::Notice;
use unladen_stats::noise;
use unladen_stats::rank::{Tail, p_value};
use unladen_study::spec::Study;

use super::compare::Comparison;
use super::words;

/// What the placebo says: why the study is void, and warnings.
pub(super) fn judge(study: &Study, comparisons: &[Comparison]) -> (Option<Notice>, Vec<Notice>) {
    let load = match &study.load {
        load if load.is_fixed_work() => "completion_time",
        load if load.is_open() => "latency_p50",
        _ => "throughput",
    };
    let decides = |it: &Comparison| {
        it.finding.is_of_whole() && (it.finding.metric == "cpu_per_request" || it.finding.metric == load)
    };
    let (deciding, others): (Vec<_>, Vec<_>) = comparisons.iter().partition(|it| decides(it));
    let mut void = None;
    let mut warnings = Vec::new();
    for comparison in uneven(&deciding) {
        let (metric, words) = described(comparison);
        if void.is_none() && matters(comparison) {
            void = Some(Notice::PlaceboDiffers { metric, words });
        } else {
            warnings.push(Notice::PlaceboUneven { metric, words });
        }
    }
    for comparison in uneven(&others).into_iter().filter(|it| matters(it)) {
        let (metric, words) = described(comparison);
        warnings.push(Notice::PlaceboUneven { metric, words });
    }
    (void, warnings)
}

/// Those whose 99 % interval excludes no difference, by Holm over the family.
fn uneven<'a>(family: &[&'a Comparison]) -> Vec<&'a Comparison> {
    let p_values: Vec<f64> = family.iter().map(|it| p_value(it.deciding(), 0.0, Tail::Both)).collect();
    let broken = noise::broken(&p_values);
    family.iter().zip(broken).filter(|(_, broken)| *broken).map(|(comparison, _)| *comparison).collect()
}

/// Whether the difference is more than what matters.
fn matters(comparison: &Comparison) -> bool {
    let finding = &comparison.finding;
    let ends = if finding.relative {
        [finding.ratio_low, finding.ratio_high]
    } else {
        [finding.difference_low, finding.difference_high]
    };
    ends.into_iter().flatten().any(|end| end.abs() > finding.margin)
}

fn described(comparison: &Comparison) -> (String, String) {
    let finding = &comparison.finding;
    let words = words::estimate(finding, finding.relative);
    let metric = match &finding.service {
        Some(service) => format!("{} of {service}", finding.title),
        None => finding.title.clone(),
    };
    (metric, words)
}
