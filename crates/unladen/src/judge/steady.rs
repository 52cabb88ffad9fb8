//! Whether the windows were steady: did latency still move from their first to their second half, in run after run?
//!
//! Judged over the runs of a variant, not within one: a single run of five seconds cannot tell warming up from noise,
//! twelve that all move the same way can.

use unladen_stats::estimate::{Level, hodges_lehmann, median};
use unladen_stats::pair::log_ratios;

use super::evidence::{Arm, Evidence};
use super::units;
use crate::journal::record::RunRecord;
use crate::notices::Notice;

/// A change that matters less than this is let pass.
const TOLERANCE: f64 = 0.02;
/// A change beyond which nothing is said: a quarter, up or down.
const DRIFT: f64 = 0.25;
/// Whole seconds that each half of a window must have.
const SECONDS: usize = 2;

/// A notice for every arm whose latency surely moved, unless it moved so much that nothing is said of it at all.
pub(super) fn notices(evidence: &Evidence<'_>) -> Vec<Notice> {
    let told = |arm: &Arm<'_>| {
        let change = beyond(arm, Level::P99, TOLERANCE).filter(|_| beyond(arm, Level::P95, DRIFT).is_none())?;
        Some(Notice::NotSteady { variant: arm.name.clone(), change })
    };
    evidence.arms().filter_map(told).collect()
}

/// Why the verdicts on a variant are refused, if its latency or its baseline's drifts away within the windows: then every number
/// depends on when it was taken.
pub(super) fn refusal(evidence: &Evidence<'_>, variant: &Arm<'_>) -> Option<Notice> {
    let drifts =
        |arm: &Arm<'_>| Some(Notice::Unsteady { variant: arm.name.clone(), change: beyond(arm, Level::P95, DRIFT)? });
    [variant, evidence.baseline_of(variant)].into_iter().find_map(drifts)
}

/// By how much latency moved, if surely by more than `tolerance`.
fn beyond(arm: &Arm<'_>, level: Level, tolerance: f64) -> Option<String> {
    let halves: Vec<(f64, f64)> = arm.valid.values().filter_map(|run| halves(run)).collect();
    let change = hodges_lehmann(&log_ratios(&halves).ok()?, level).ok()?.relative();
    let interval = change.interval?;
    (interval.low > tolerance || interval.high < -tolerance)
        .then(|| units::percent(change.value, Some(interval.half_width())).signed_with_unit(change.value))
}

/// Median over the seconds of the median latency, of the first and the second half of the window.
fn halves(run: &RunRecord) -> Option<(f64, f64)> {
    let start = run.phases.warmup_s;
    let inside = |second: f64| second >= start && second + 1.0 <= start + run.phases.window_s;
    let seconds = &run.load.as_ref()?.seconds;
    let seconds = seconds.iter().filter(|second| inside(f64::from(second.second)) && second.p50_us > 0.0);
    let medians: Vec<f64> = seconds.map(|second| second.p50_us).collect();
    // With an odd number of seconds the middle one belongs to neither half.
    let half = medians.len() / 2;
    (half >= SECONDS).then_some(())?;
    Some((median(&medians[..half])?, median(&medians[medians.len() - half..])?))
}
