//! Closing the books of a run: the load generator's account of the requests beside the sink's account of the spans.

use unladen_load::outcome::Outcome;
use unladen_sink::ledger::{self, Ledger, LedgerError, Load, Sampling, SecondOfRequests};
use unladen_sink::summary::Summary;

use crate::study::plan::Arm;

/// The ledger of one run.
///
/// # Errors
/// When spans cannot be tied to requests, or nothing has arrived from which the spans per request could be learned.
pub fn close(arm: &Arm, outcome: &Outcome, summary: &Summary) -> Result<Ledger, LedgerError> {
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
    let load = Load {
        seconds: &seconds,
        sent: outcome.sent_total,
        answered: outcome.answered_total,
        sampled: outcome.sampled_total,
    };
    ledger::close(summary, &load, arm.spans_per_request, Sampling::Flag)
}

/// Spans that are on their way when the load has ended, if the study declares how many a request makes.
#[must_use]
pub fn wanted(arm: &Arm, outcome: &Outcome) -> Option<u64> {
    arm.spans_per_request.map(|spans| (spans * outcome.sampled_total as f64).round() as u64)
}
