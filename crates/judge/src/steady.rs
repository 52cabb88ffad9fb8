//! Whether the windows were steady: did latency or CPU per request still move from their first to their second half, in run after
//! run?
//!
//! Judged over the runs of a variant, not within one: a single run of five seconds cannot tell warming up from noise,
//! twelve that all move the same way can. A burst is no window: who comes last waits longest, and it ends with its work, all of which is
//! weighed.

use unladen_journal::notices::Notice;
use unladen_journal::record::RunRecord;
use unladen_journal::role::Role;
use unladen_load::outcome::Second;
use unladen_stats::estimate::{Level, halves, hodges_lehmann};
use unladen_stats::pair::log_ratios;

use super::evidence::{Evidence, VariantRuns};
use super::units;
use super::values::pace;

/// What should be the same in both halves of a window.
struct Quantity {
    /// As a notice calls it.
    name: &'static str,
    /// Of a run: in the first and in the second half of its window.
    halves: fn(&RunRecord) -> Option<[f64; 2]>,
    /// A change that matters less than this is let pass.
    tolerance: f64,
}

const LATENCY: Quantity = Quantity { name: "the median latency", halves: latency, tolerance: 0.02 };
/// It moves with the pace of the machine as well.
const CPU: Quantity = Quantity { name: "CPU per request", halves: cpu_per_request, tolerance: 0.1 };
/// A change beyond which nothing is said: a quarter, up or down.
const DRIFT: f64 = 0.25;
/// Whole seconds that each half of a window must have.
const SECONDS: usize = 2;
/// Stretches of blocks that each half must have.
const POINTS: usize = 4;

/// A notice for every variant whose latency or CPU per request surely moved, unless it moved so much that nothing is said of it at all. Where
/// the CPU of the baseline moves, that of its variants does for the same reason, and is not told.
pub(super) fn notices(evidence: &Evidence<'_>) -> Vec<Notice> {
    let moved = |variant: &VariantRuns<'_>, quantity: &Quantity| {
        let change = beyond(evidence, variant, quantity, Level::P99, quantity.tolerance);
        let change = change.filter(|_| drift(evidence, variant, quantity).is_none())?;
        Some(Notice::NotSteady { variant: variant.name.clone(), what: quantity.name.to_owned(), change })
    };
    let has_no_cause_in_its_baseline = |variant: &&VariantRuns<'_>| {
        let baseline = evidence.baseline_of(variant);
        baseline.name == variant.name || moved(baseline, &CPU).is_none()
    };
    let latencies = evidence.all_variants().filter_map(|variant| moved(variant, &LATENCY));
    let cpu = evidence.all_variants().filter(has_no_cause_in_its_baseline).filter_map(|variant| moved(variant, &CPU));
    latencies.chain(cpu).collect()
}

/// Why the verdicts on a variant are refused, if its latency or its baseline's drifts away within the windows: then every number
/// depends on when it was taken.
pub(super) fn refusal(evidence: &Evidence<'_>, variant: &VariantRuns<'_>) -> Option<Notice> {
    drifts(evidence, variant, &LATENCY)
}

/// Why the verdict on the CPU per request of a variant is refused: its own drifts away, or its baseline's. The work of a JIT compiler is
/// done once, whenever it comes: whoever starts later, or more slowly, has more of it in the window.
pub(super) fn cpu(evidence: &Evidence<'_>, variant: &VariantRuns<'_>) -> Option<Notice> {
    drifts(evidence, variant, &CPU)
}

/// A notice of the variant, or else of its baseline, if it drifts.
fn drifts(evidence: &Evidence<'_>, variant: &VariantRuns<'_>, quantity: &Quantity) -> Option<Notice> {
    [variant, evidence.baseline_of(variant)].into_iter().find_map(|side| {
        let change = drift(evidence, side, quantity)?;
        Some(Notice::Unsteady { variant: side.name.clone(), what: quantity.name.to_owned(), change })
    })
}

/// By how much it moved, if so much that nothing is said.
fn drift(evidence: &Evidence<'_>, variant: &VariantRuns<'_>, quantity: &Quantity) -> Option<String> {
    beyond(evidence, variant, quantity, Level::P95, DRIFT)
}

/// By how much it moved, if surely by more than `tolerance`. Nothing of a burst, which is not meant to be steady.
fn beyond(
    evidence: &Evidence<'_>,
    variant: &VariantRuns<'_>,
    quantity: &Quantity,
    level: Level,
    tolerance: f64,
) -> Option<String> {
    if evidence.folder.study.load.burst.is_some() {
        return None;
    }
    let halves: Vec<(f64, f64)> =
        variant.valid.values().filter_map(|run| (quantity.halves)(run).map(<(f64, f64)>::from)).collect();
    let change = hodges_lehmann(&log_ratios(&halves).ok()?, level).ok()?.relative();
    let interval = change.interval?;
    (interval.low > tolerance || interval.high < -tolerance)
        .then(|| units::percent(change.value, Some(interval.half_width())).signed_with_unit(change.value))
}

/// Median over the seconds of the median latency, of the first and the second half of the window.
fn latency(run: &RunRecord) -> Option<[f64; 2]> {
    seconds(run, |second| second.p50_us)
}

/// Cores of the services that are weighed over the answers of a typical second, of the first and the second half of the window. Of an
/// alternating run that of its blocks: a second of the clock has several variants in it.
fn cpu_per_request(run: &RunRecord) -> Option<[f64; 2]> {
    if let Some(blocks) = &run.blocks {
        return halves(&blocks.points.iter().filter_map(pace).collect::<Vec<_>>(), POINTS);
    }
    let subjects = run.processes.iter().filter(|process| process.role == Some(Role::Subject));
    let cores: Option<Vec<[f64; 2]>> = subjects.map(|process| process.cpu_halves).collect();
    let cores = cores?.iter().fold([0.0; 2], |sum, halves| [sum[0] + halves[0], sum[1] + halves[1]]);
    let answered = seconds(run, |second| second.answered as f64)?;
    let per_request = [cores[0] / answered[0], cores[1] / answered[1]];
    per_request.iter().all(|half| *half > 0.0).then_some(per_request)
}

/// Median over the seconds of a number of theirs, of the first and the second half of the window; seconds without an answer, in which it
/// is 0, are left out.
fn seconds(run: &RunRecord, number: fn(&Second) -> f64) -> Option<[f64; 2]> {
    let start = run.phases.warmup_s;
    let inside = |second: f64| second >= start && second + 1.0 <= start + run.phases.window_s;
    let seconds = &run.load.as_ref()?.seconds;
    let seconds = seconds.iter().filter(|second| inside(f64::from(second.second))).map(number);
    let numbers: Vec<f64> = seconds.filter(|number| *number > 0.0).collect();
    halves(&numbers, SECONDS)
}
