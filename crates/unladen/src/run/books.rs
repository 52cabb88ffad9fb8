//! Closing the books of a run: the load generator's account of the requests beside the sink's account of the spans.

use unladen_load::outcome::Outcome;
use unladen_sink::ledger::{self, Ledger, LedgerError, Load, Sampling, SecondOfRequests};
use unladen_sink::summary::Summary;

use crate::journal::record::RunRecord;
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

/// The ledger without the spans of `requests` that were sent before or after it, under ids of their own: by count, they are
/// not foreign.
#[must_use]
pub fn without_others(ledger: Ledger, requests: u64) -> Ledger {
    let theirs = (ledger.spans_per_request * requests as f64).round() as u64;
    Ledger { foreign: ledger.foreign.saturating_sub(theirs), ..ledger }
}

/// A ledger by counts alone, for requests (or units of work) that carry no trace ids: nobody knows which spans are lost, only how
/// many are there. `None` unless the study declares how many a request makes.
#[must_use]
pub fn by_counts(arm: &Arm, requests: u64, summary: &Summary) -> Option<Ledger> {
    let spans_per_request = arm.spans_per_request?;
    let expected = (spans_per_request * requests as f64).round() as u64;
    let wanted = (spans_per_request * requests as f64 * arm.sampled.0).round() as u64;
    let saved = summary.saved;
    Some(Ledger {
        expected,
        spans_per_request,
        declared: true,
        sampled_out: expected - wanted.min(expected),
        saved,
        lost: wanted.saturating_sub(saved),
        // More than were wanted were not expected by anybody.
        unexplained: -i64::try_from(saved.saturating_sub(wanted)).unwrap_or(i64::MAX),
        duplicates: summary.duplicates,
        ..Ledger::default()
    })
}

/// Requests answered, or units of work done, over the whole load.
#[must_use]
pub fn units(record: &RunRecord) -> Option<u64> {
    let answered = record.load.as_ref().map(|load| load.answered_total);
    answered.or_else(|| record.work.map(|work| work.units))
}

/// Spans that are on their way when the load has ended, if the study declares how many a request makes. `others` are requests
/// with other trace ids.
#[must_use]
pub fn wanted(arm: &Arm, outcome: Option<&Outcome>, others: u64) -> Option<u64> {
    // Which of the others are sampled is another chance: then nobody knows when all spans are there.
    if others > 0 && arm.sampled.0 < 1.0 {
        return None;
    }
    let requests = outcome?.sampled_total + others;
    arm.spans_per_request.map(|spans| (spans * requests as f64).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::plan::ArmKind;
    use crate::study::units::Ratio;

    fn arm(spans: f64, sampled: f64) -> Arm {
        let (name, label) = ("otel".to_owned(), String::new());
        let (kind, processes) = (ArmKind::Variant, Vec::new());
        Arm { name, label, kind, processes, spans_per_request: Some(spans), sampled: Ratio(sampled) }
    }

    #[test]
    fn counts_balance_whether_spans_are_missing_or_too_many() {
        for (saved, sampled, (sampled_out, lost, unexplained)) in
            [(400, 1.0, (0, 0, 0)), (350, 1.0, (0, 50, 0)), (401, 1.0, (0, 0, -1)), (40, 0.1, (360, 0, 0))]
        {
            let summary = Summary { saved, ..Summary::default() };
            let ledger = by_counts(&arm(4.0, sampled), 100, &summary).expect("declared");
            assert_eq!((ledger.sampled_out, ledger.lost, ledger.unexplained), (sampled_out, lost, unexplained));
            let explained = (ledger.sampled_out + ledger.saved + ledger.lost) as i64;
            assert_eq!(ledger.expected as i64, explained + ledger.unexplained, "{saved}");
        }
        let undeclared = Arm { spans_per_request: None, ..arm(0.0, 1.0) };
        assert_eq!(by_counts(&undeclared, 100, &Summary::default()), None);
    }

    #[test]
    fn spans_of_other_loads_are_not_foreign() {
        let ledger = Ledger { spans_per_request: 4.0, foreign: 45, ..Ledger::default() };
        assert_eq!(without_others(ledger.clone(), 10).foreign, 5);
        assert_eq!(without_others(ledger, 100).foreign, 0);
    }
}
