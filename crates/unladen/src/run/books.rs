//! Closing the books of a run: the load generator's account of the requests beside the sink's account of the spans.

use unladen_load::outcome::Outcome;
use unladen_sink::ledger::{self, Ledger, SecondOfRequests};
use unladen_sink::summary::Summary;

use crate::study::plan::Arm;

/// The ledger of one run. `None` when requests carry no trace id: then no span can be tied to its request.
#[must_use]
pub fn close(arm: &Arm, outcome: &Outcome, summary: &Summary, traced: bool) -> Option<Ledger> {
    if !traced {
        return None;
    }
    let seconds: Vec<SecondOfRequests> = outcome
        .seconds
        .iter()
        .map(|second| SecondOfRequests {
            first_index: second.first_index,
            sent: second.sent,
            answered: second.answered,
            sampled: second.sampled,
        })
        .collect();
    Some(ledger::close(summary, &seconds, arm.spans_per_request))
}

/// Spans that are on their way when the load has ended, if the study declares how many a request makes.
#[must_use]
pub fn wanted(arm: &Arm, outcome: &Outcome) -> Option<u64> {
    arm.spans_per_request.map(|spans| (spans * outcome.sampled_total as f64).round() as u64)
}
