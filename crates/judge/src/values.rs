//! The number of a metric in one run, from its line of the journal: functions that the table in [`super::metrics`] names.
//!
//! What was not measured is `None`, and a number that one process lacks is missing for the whole: a partial sum would
//! look like a saving. Where the latency comes from is said in [`super::latency`].
//!
//! An alternating run has two divisors, because its numbers cover two things. CPU time is that of the super-blocks that count; their requests
//! are [`completed`]. Counters (bytes, switches, collections, compiling, …) are read before the first block and after the last, and cover also
//! super-blocks that were thrown away; its requests are [`measured`]. Of any other run the two are the same.

use unladen_journal::record::{BlockPoint, Ledger, ProcessRecord, RunRecord, Saturation};
use unladen_journal::role::Role;
use unladen_stats::{estimate::Level, slope};

use super::metrics::{Metric, Of};

/// Reads a metric's number: of one service, or of the whole.
pub(super) type Value = fn(&Metric, &RunRecord, Option<&str>) -> Option<f64>;

/// The processes of a role, or of one of its services.
pub(super) fn of_role<'a>(
    run: &'a RunRecord,
    role: Role,
    service: Option<&'a str>,
) -> impl Iterator<Item = &'a ProcessRecord> {
    let matches = move |process: &&ProcessRecord| {
        process.role == Some(role) && service.is_none_or(|service| process.service == service)
    };
    run.processes.iter().filter(matches)
}

/// Sum over the subject's processes.
pub(super) fn sum(
    run: &RunRecord,
    service: Option<&str>,
    number: impl Fn(&ProcessRecord) -> Option<u64>,
) -> Option<f64> {
    let mut processes = of_role(run, Role::Subject, service).peekable();
    processes.peek()?;
    let total: Option<u64> = processes.map(number).sum();
    total.map(|total| total as f64)
}

/// µs of CPU per answered request.
pub(super) fn cpu(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    Some(sum(run, service, |process| process.cpu_ns)? / completed(run)? / 1e3)
}

/// The same in a stretch of blocks, without what is done later, in the blocks of others: for how it moves, not for how much it is.
pub(super) fn pace(point: &BlockPoint) -> Option<f64> {
    (point.completed > 0 && point.cpu_ns > 0).then(|| point.cpu_ns as f64 / 1e3 / point.completed as f64)
}

/// A counter per answered request.
pub(super) fn per_request(
    run: &RunRecord,
    service: Option<&str>,
    number: impl Fn(&ProcessRecord) -> Option<u64>,
) -> Option<f64> {
    Some(sum(run, service, number)? / measured(run)?)
}

/// Requests over which CPU is spread.
pub(super) fn completed(run: &RunRecord) -> Option<f64> {
    let completed = match (&run.blocks, &run.load, run.work) {
        (Some(blocks), _, _) => blocks.completed,
        (None, Some(load), _) => load.completed_in_window,
        (None, None, work) => work?.units,
    };
    (completed > 0).then_some(completed as f64)
}

/// Requests over which counters are spread.
fn measured(run: &RunRecord) -> Option<f64> {
    match &run.blocks {
        Some(blocks) => (blocks.answered > 0).then_some(blocks.answered as f64),
        None => completed(run),
    }
}

/// What share of all that a run was asked came in the part that counters cover: spans are known for the whole run only.
fn share_measured(run: &RunRecord) -> Option<f64> {
    let answered = run.load.as_ref()?.answered_total;
    (answered > 0).then_some(measured(run)? / answered as f64)
}

/// The same of the part that CPU times cover.
pub(super) fn share_completed(run: &RunRecord) -> Option<f64> {
    let answered = run.load.as_ref()?.answered_total;
    (answered > 0).then_some(completed(run)? / answered as f64)
}

/// Cores used while no variant had a load.
pub(super) fn idle_cpu(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    let mut processes = of_role(run, Role::Subject, service).peekable();
    processes.peek()?;
    processes.map(|process| process.idle_cpu).sum()
}

/// µs of CPU per answered request of everything with the metric's role; 0 where nothing of the role was started.
pub(super) fn role_cpu(metric: &Metric, run: &RunRecord, _: Option<&str>) -> Option<f64> {
    let Of::Role(role) = metric.of else { return None };
    let nanoseconds: Option<u64> = of_role(run, role, None).map(|process| process.cpu_ns).sum();
    Some(nanoseconds? as f64 / 1e3 / completed(run)?)
}

/// Answers per second: in the blocks, which are spread over the whole round, where they tell what the service can do, else in the stretch alone.
pub(super) fn throughput(metric: &Metric, run: &RunRecord, _: Option<&str>) -> Option<f64> {
    let Some(blocks) = &run.blocks else { return run.load.as_ref().map(|load| load.rate) };
    let (completed, seconds) = match &blocks.not_from_blocks {
        Some(others) if !others.contains(&*metric.name) => (blocks.completed, blocks.own_s),
        _ => blocks.alone.as_ref().map(|alone| (alone.completed, alone.seconds))?,
    };
    (seconds > 0.0).then(|| completed as f64 / seconds)
}

/// Milliseconds that the fixed work took.
pub(super) fn completion(_: &Metric, run: &RunRecord, _: Option<&str>) -> Option<f64> {
    run.work.map(|work| work.completion_s * 1e3)
}

/// The same for a million units.
pub(super) fn completion_per_million(_: &Metric, run: &RunRecord, _: Option<&str>) -> Option<f64> {
    let work = run.work.filter(|work| work.units > 0)?;
    Some(work.completion_s * 1e3 * 1e6 / work.units as f64)
}

/// The highest rate that held.
pub(super) fn capacity(_: &Metric, run: &RunRecord, _: Option<&str>) -> Option<f64> {
    run.capacity.as_ref()?.holds
}

/// A number of the saturation.
pub(super) fn saturation(run: &RunRecord, number: fn(&Saturation) -> f64) -> Option<f64> {
    run.saturation.as_ref().map(number)
}

/// Failed requests over all requests of the window.
pub(super) fn error_rate(_: &Metric, run: &RunRecord, _: Option<&str>) -> Option<f64> {
    let load = run.load.as_ref()?;
    let all = load.requests + load.errors;
    (all > 0).then(|| load.errors as f64 / all as f64)
}

/// Milliseconds until the slowest process was ready.
pub(super) fn start_up(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    let seconds = of_role(run, Role::Subject, service).filter_map(|process| process.start_up_s);
    seconds.reduce(f64::max).map(|seconds| seconds * 1e3)
}

/// Bytes per span: what the study's storage services wrote in the window, over the spans that were wanted in it; without
/// such a service the bytes of the sink's span files, over the spans in them.
pub(super) fn disk_per_span(_: &Metric, run: &RunRecord, _: Option<&str>) -> Option<f64> {
    if of_role(run, Role::Storage, None).next().is_some() {
        let written: Option<f64> =
            of_role(run, Role::Storage, None).map(|process| process.extra.get(DISK_WRITTEN).copied()).sum();
        // Spans are known for the whole run, the bytes for the window.
        let wanted = run.ledger.as_ref()?.wanted() as f64 * share_measured(run)?;
        return if wanted > 0.0 { Some(written? / wanted) } else { Some(0.0) };
    }
    let sink = run.sink.as_ref()?;
    let wanted = run.ledger.as_ref().map_or(0, Ledger::wanted);
    match (sink.saved, wanted) {
        // No spans wanted, none stored: a bare service takes no disk.
        (0, 0) => Some(0.0),
        (0, _) => None,
        (saved, _) => Some(sink.stored_bytes as f64 / saved as f64),
    }
}

/// Points that a slope needs, and the stretches that a window is cut into where it is too short for those of
/// [`SLOPE_STRETCH_S`].
const SLOPE_POINTS: usize = 12;
/// Length of the stretches of which the minimum counts, seconds: longer than the pause between two collections.
const SLOPE_STRETCH_S: f64 = 15.0;

/// Bytes per minute by which the floor of the resident memory rises, summed over the processes. `None` where the window holds
/// fewer than twelve samples, or less than twelve seconds of load: in an alternating round a service has its own only, and grows with it.
pub(super) fn memory_slope(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    growth(run, service, |process| &process.rss_floor)
}

/// The same of what collections leave of the heaps. `None` where there is a process without one.
pub(super) fn heap_slope(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    growth(run, service, |process| &process.heap_floor)
}

/// The slopes of all processes together.
fn growth(run: &RunRecord, service: Option<&str>, floor: fn(&ProcessRecord) -> &[(f64, u64)]) -> Option<f64> {
    if run.blocks.as_ref().is_some_and(|blocks| blocks.own_s < SLOPE_POINTS as f64) {
        return None;
    }
    let slopes = of_role(run, Role::Subject, service).map(|process| floor_slope(floor(process)));
    let mut slopes = slopes.peekable();
    slopes.peek()?;
    slopes.sum()
}

/// Theil-Sen slope of the minima, bytes per minute.
fn floor_slope(floor: &[(f64, u64)]) -> Option<f64> {
    let samples: Vec<(f64, f64)> = floor.iter().map(|(t_s, bytes)| (t_s / 60.0, *bytes as f64)).collect();
    let (first, last) = (floor.first()?.0, floor.last()?.0);
    let step = (last - first) / (floor.len() - 1).max(1) as f64;
    if floor.len() < SLOPE_POINTS || step <= 0.0 {
        return None;
    }
    let wanted = (SLOPE_STRETCH_S / step).round().max(1.0) as usize;
    let minima = slope::minima(&samples, wanted.min(floor.len() / SLOPE_POINTS));
    slope::theil_sen(&minima, Level::P95).ok().map(|slope| slope.value)
}

/// A number that a probe delivers under the metric's name and in its unit.
pub(super) fn extra(metric: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    summed_extra(run, service, &metric.name)
}

/// A number that a probe delivers in seconds, in milliseconds.
pub(super) fn seconds(metric: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    extra(metric, run, service).map(|seconds| seconds * 1e3)
}

/// Milliseconds of what a probe delivers in nanoseconds, as garbage collection and compiling, per 1,000 answered requests.
pub(super) fn time_per_thousand(metric: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    Some(extra(metric, run, service)? / 1e6 / measured(run)? * 1e3)
}

/// CPU time of the JIT compiler in the part that counters cover, ns; `None` where none was seen.
pub(super) fn compiling_ns(run: &RunRecord, service: Option<&str>) -> Option<f64> {
    summed_extra(run, service, JIT_TIME)
}

/// µs of CPU per answered request beside the JIT compiler's; `None` where none was seen.
pub(super) fn without_jit(metric: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    let all_us = compiling_ns(run, service)? / 1e3 / measured(run)?;
    // Over the same requests as the CPU time, where that is known: a compiler at work costs super-blocks.
    let charged = sum(run, service, |process| process.compiling_ns).zip(completed(run));
    let compiling_us = charged.map_or(all_us, |(ns, completed)| ns / 1e3 / completed);
    Some((cpu(metric, run, service)? - compiling_us).max(0.0))
}

/// Instructions per answered request.
pub(super) fn instructions(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    Some(summed_extra(run, service, INSTRUCTIONS)? / measured(run)?)
}

/// Bytes allocated on heaps per answered request.
pub(super) fn allocated(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    Some(summed_extra(run, service, ALLOCATED)? / measured(run)?)
}

/// Bytes of telemetry per answered request.
pub(super) fn telemetry(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    per_request(run, service, |process| process.extra.get(TELEMETRY).map(|&bytes| bytes as u64))
}

/// Bytes of everything but telemetry per answered request. A journal from before telemetry was told apart has all of it.
pub(super) fn network(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    per_request(run, service, |process| {
        let telemetry = process.extra.get(TELEMETRY).map_or(0, |&bytes| bytes as u64);
        Some((process.network_received? + process.network_sent?).saturating_sub(telemetry))
    })
}

/// Bytes written to disk per answered request.
pub(super) fn disk_per_request(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    per_request(run, service, |process| process.extra.get(DISK_WRITTEN).map(|&bytes| bytes as u64))
}

const JIT_TIME: &str = "jit_time";
const INSTRUCTIONS: &str = "instructions";
const ALLOCATED: &str = "allocated";
const TELEMETRY: &str = "telemetry_bytes";
const DISK_WRITTEN: &str = "disk_written";

/// Numbers in `extra` that are no metrics themselves but parts of some.
pub(super) const PARTS: [&str; 4] = [INSTRUCTIONS, ALLOCATED, TELEMETRY, DISK_WRITTEN];

/// Sum over the processes that have the number: beside a JVM, a Go process has no metaspace.
fn summed_extra(run: &RunRecord, service: Option<&str>, name: &str) -> Option<f64> {
    of_role(run, Role::Subject, service).filter_map(|process| process.extra.get(name).copied()).reduce(|a, b| a + b)
}
