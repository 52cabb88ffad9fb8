//! What is known while a study still runs, for whoever watches: medians, and intervals once there are rounds enough. No verdicts:
//! whoever stops when an interval pleases has been looking until it did.

use unladen_journal::record::{Design, RunRecord, VariantKind};
use unladen_stats::estimate::{Level, hodges_lehmann, median};
use unladen_stats::pair;

use super::{latency, metrics};

/// CPU per request of one variant so far.
#[derive(Debug, Clone, PartialEq)]
pub struct SoFar {
    /// Key of the variant.
    pub variant: String,
    /// Median over its valid runs, µs.
    pub cpu_us_per_request: f64,
    /// Relative difference to what it is held against, from the rounds that have both; `None` for the baseline and before the first
    /// such round.
    pub ratio: Option<f64>,
    /// Its 95 % interval; `None` with fewer than 6 rounds.
    pub ratio_interval: Option<(f64, f64)>,
}

/// CPU per request in one run, µs.
#[must_use]
pub fn cpu_us_per_request(run: &RunRecord) -> Option<f64> {
    metrics::METRICS.iter().find(|metric| metric.name == "cpu_per_request")?.value(run, None)
}

/// 99th percentile of the latency in one run, µs; `None` where it cannot be told soundly, as of few requests.
#[must_use]
pub fn latency_p99_us(run: &RunRecord) -> Option<f64> {
    let metric = metrics::METRICS.iter().find(|metric| metric.name == "latency_p99")?;
    // Another tool may not say how many they were.
    let is_told = latency::requests(&metric.name, run).is_none_or(|requests| metric.has_enough(requests as f64));
    metric.value(run, None).filter(|_| is_told)
}

/// CPU per request by variant, in the order in which the variants first ran, the baseline first.
#[must_use]
pub fn so_far(runs: &[RunRecord]) -> Vec<SoFar> {
    // Of a round that is done again only the last attempt, as far as it has come.
    let last = |run: &RunRecord| runs.iter().all(|it| it.round != run.round || it.attempt <= run.attempt);
    let valid: Vec<&RunRecord> = runs.iter().filter(|run| run.void.is_none() && last(run)).collect();
    let mut variants: Vec<&RunRecord> = Vec::new();
    for run in &valid {
        if !variants.iter().any(|it| it.variant == run.variant) {
            variants.push(run);
        }
    }
    variants.sort_by_key(|run| match run.kind {
        VariantKind::Baseline => 0,
        VariantKind::Placebo => 1,
        VariantKind::Variant => 2,
    });
    let bare = variants.iter().find(|run| run.kind == VariantKind::Baseline).map(|run| run.variant.as_str());
    // Nothing meets another design within a round.
    let by_round = |variant: &str| -> Vec<((u32, Design), f64)> {
        let runs = valid.iter().filter(|run| run.variant == variant);
        runs.filter_map(|run| Some(((run.round, run.design), cpu_us_per_request(run)?))).collect()
    };
    let of = |run: &&RunRecord| {
        let values = by_round(&run.variant);
        let against = if run.against.is_empty() { bare } else { Some(run.against.as_str()) };
        let against = against.filter(|_| run.kind != VariantKind::Baseline).map(by_round).unwrap_or_default();
        let other = |round: (u32, Design)| against.iter().find(|(it, _)| *it == round).map(|(_, value)| *value);
        let pairs: Vec<_> = values.iter().filter_map(|(round, value)| Some((other(*round)?, *value))).collect();
        let ratios = pair::log_ratios(&pairs).ok();
        let estimate = ratios.and_then(|ratios| hodges_lehmann(&ratios, Level::P95).ok()).map(|it| it.relative());
        Some(SoFar {
            variant: run.variant.clone(),
            cpu_us_per_request: median(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>())?,
            ratio: estimate.map(|it| it.value),
            ratio_interval: estimate.and_then(|it| it.interval).map(|it| (it.low, it.high)),
        })
    };
    variants.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use unladen_journal::record::ProcessRecord;
    use unladen_journal::role::Role;
    use unladen_load::outcome::Outcome;

    use super::*;

    fn run(round: u32, variant: &str, kind: VariantKind, cpu_us: u64) -> RunRecord {
        let process =
            ProcessRecord { role: Some(Role::Subject), cpu_ns: Some(cpu_us * 1_000_000), ..ProcessRecord::default() };
        let load = Outcome { requests: 1000, completed_in_window: 1000, duration_s: 1.0, ..Outcome::default() };
        RunRecord {
            round,
            variant: variant.into(),
            kind,
            load: Some(load),
            processes: vec![process],
            ..RunRecord::empty()
        }
    }

    #[test]
    fn the_interval_comes_with_the_sixth_round_and_pairs_within_rounds() {
        let mut runs = Vec::new();
        for round in 1..=6 {
            let so_far = so_far(&runs);
            assert!(so_far.iter().all(|it| it.ratio_interval.is_none()), "before round {round}: {so_far:?}");
            // The machine drifts twofold; within a round the variant is 10 % dearer.
            runs.push(run(round, "otel", VariantKind::Variant, 110 * u64::from(round)));
            runs.push(run(round, "baseline", VariantKind::Baseline, 100 * u64::from(round)));
        }
        let found = so_far(&runs);
        assert_eq!(found.iter().map(|it| it.variant.as_str()).collect::<Vec<_>>(), ["baseline", "otel"]);
        assert_eq!((found[0].cpu_us_per_request, found[0].ratio), (350.0, None));
        let (low, high) = found[1].ratio_interval.expect("six rounds");
        assert!(
            (found[1].ratio.expect("rounds") - 0.1).abs() < 1e-9
                && (low - 0.1).abs() < 1e-9
                && (high - 0.1).abs() < 1e-9
        );
    }
}
