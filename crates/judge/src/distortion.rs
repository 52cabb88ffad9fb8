//! What takes the verdict away from some metrics of a variant, though its runs count: circumstances in which a number is not the
//! service's but the machine's.
//!
//! A latency behind a quota, or on a machine without an idle moment, is the length of a queue, and says more of the load than of the
//! variant. CPU per request is left alone by both: it is what it is also on a busy machine, and the rounds are compared in pairs. But
//! what still falls while one looks is no number of the service either.

use unladen_journal::notices::Notice;
use unladen_journal::record::RunRecord;
use unladen_stats::estimate::median;

use super::compare::Comparison;
use super::evidence::{Evidence, VariantRuns};
use super::steady;

/// Share of the window for which a quota may hold a service back in a typical run.
const THROTTLED: f64 = 0.10;
/// Share of the machine that may be busy in a typical run.
const SATURATED: f64 = 0.95;

/// Why some metrics of a comparison have no verdict.
#[derive(Debug)]
pub(super) struct Distortion {
    /// What to tell.
    pub(super) notice: Notice,
    /// Metrics of which it takes the verdict.
    of: fn(&str) -> bool,
}

/// What distorts the comparison of a variant with its baseline, judged by either side.
pub(super) fn distortions(evidence: &Evidence<'_>, variant: &VariantRuns<'_>) -> Vec<Distortion> {
    let sides = [evidence.baseline_of(variant), variant];
    let throttled = sides.iter().filter_map(|side| throttled(side)).max_by(|a, b| a.1.total_cmp(&b.1));
    let throttled = throttled.filter(|(_, share)| *share > THROTTLED).map(|(service, share)| Distortion {
        notice: Notice::Throttled { service, percent: share * 100.0 },
        of: |metric| metric.starts_with("latency_"),
    });
    // In a closed loop being busy is what is wanted.
    let is_open = evidence.folder.study.load.is_open();
    let busiest = sides.iter().filter_map(|side| typical(side, busy)).reduce(f64::max);
    let saturated = busiest.filter(|share| is_open && *share > SATURATED).map(|share| Distortion {
        notice: Notice::HostSaturated { percent: share * 100.0 },
        of: |metric| matches!(metric, "latency_p90" | "latency_p95" | "latency_p99" | "latency_p999" | "latency_max"),
    });
    let unsteady =
        steady::cpu(evidence, variant).map(|notice| Distortion { notice, of: |metric| metric == "cpu_per_request" });
    throttled.into_iter().chain(saturated).chain(unsteady).collect()
}

impl Distortion {
    /// Takes the verdict from what it distorts.
    pub(super) fn apply(&self, comparisons: &mut [Comparison]) {
        for Comparison { finding, .. } in comparisons.iter_mut().filter(|it| (self.of)(&it.finding.metric)) {
            let reason = self.notice.to_string();
            finding.take_verdict(&reason);
            finding.rounds_needed = None;
            finding.refused = Some(reason);
        }
    }
}

/// The service that is held back most in a typical run, and for what share of the window.
fn throttled(variant: &VariantRuns<'_>) -> Option<(String, f64)> {
    let run = variant.valid.values().next()?;
    let shares = run.processes.iter().filter_map(|process| {
        let of = |run: &RunRecord| {
            let it =
                run.processes.iter().find(|it| (&it.service, it.replica) == (&process.service, process.replica))?;
            Some(it.throttled_ns? as f64 / 1e9 / run.phases.window_s)
        };
        Some((process.service.clone(), typical(variant, of)?))
    });
    shares.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Share of the machine that was busy or taken by the hypervisor.
fn busy(run: &RunRecord) -> Option<f64> {
    run.host.share(run.host.busy_s + run.host.steal_s, run.phases.window_s)
}

/// The median over the runs that count: one wild run distorts no study.
fn typical(variant: &VariantRuns<'_>, of: impl Fn(&RunRecord) -> Option<f64>) -> Option<f64> {
    median(&variant.valid.values().filter_map(|run| of(run)).collect::<Vec<_>>())
}
