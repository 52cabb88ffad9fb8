//! The end of a run: spans that are still on their way, and processes that flush what they hold as they are stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use unladen_processes::subject::SubjectError;
use unladen_study::plan::PlannedVariant;
use unladen_study::spec::Drain;

use super::instrument::{InstrumentError, SinkPart};
use super::queries;
use super::service::{Ends, RunningService, stop_all};
use super::setup::Setup;

/// How long the sink may be quiet after the last process has ended before the ledger is closed.
pub(super) const LAST_QUIET: Duration = Duration::from_millis(150);

/// Waits for the spans that are still on their way since the load ended; whether they still arrived when the time was up. The runs of an
/// alternating round have had their load together, so none waits for the others' spans.
pub(super) fn drain(
    sink: &mut SinkPart,
    drain: &Drain,
    wanted: Option<u64>,
    load_ended: Instant,
    interrupted: &AtomicBool,
) -> Result<bool, InstrumentError> {
    loop {
        sink.look(Duration::from_millis(20))?;
        let all_there = wanted.is_some_and(|wanted| sink.received() >= wanted);
        let quiet = sink.quiet().min(load_ended.elapsed()) >= drain.quiet.0;
        if all_there || quiet || interrupted.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if load_ended.elapsed() >= drain.limit.0 {
            return Ok(sink.quiet() < Duration::from_millis(500));
        }
    }
}

/// Stops the processes, and in between, when those that send have flushed what they held but the backends that the study counts
/// (and what these need) still run, does `between`. Without such backends `between` comes last.
pub(super) fn stop_in_two_steps<T>(
    setup: &Setup<'_>,
    variant: &PlannedVariant,
    services: &mut Vec<RunningService>,
    between: impl FnOnce() -> T,
) -> (Result<Ends, SubjectError>, T) {
    let counted = queries::counted_services(&setup.plan.study, variant);
    let (mut backends, mut senders): (Vec<RunningService>, Vec<RunningService>) =
        services.drain(..).partition(|service| counted.contains(&service.process.service));
    let first = stop_all(&mut senders);
    let result = between();
    let second = stop_all(&mut backends);
    // Those that were started first stand first again.
    services.append(&mut backends);
    services.append(&mut senders);
    let ends = first.and_then(|mut ends| {
        ends.extend(second?);
        Ok(ends)
    });
    (ends, result)
}
