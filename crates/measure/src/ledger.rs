//! Closing the ledger of a run: the load generator's account of the requests beside the sink's account of the spans, or a
//! backend's.

use unladen_journal::record::RunRecord;
use unladen_journal::role::Role;
use unladen_ledger::summary::{ReportedLoss, Summary};
use unladen_ledger::{self as ledger, Ledger, LedgerError, Load, Sampling, SecondOfRequests};
use unladen_load::outcome::Outcome;
use unladen_study::plan::PlannedVariant;

/// Stage of spans that a collector had and that never arrived behind it.
const COLLECTOR: &str = "collector";

/// The ledger of one run, whoever counted: a storage that the study counts, else the sink, by requests if they carry ids
/// (`is_traced`), else by number. `others` are requests that were sent besides, under ids of their own. `None` if spans per
/// request are not known.
#[must_use]
pub fn account(
    variant: &PlannedVariant,
    is_traced: bool,
    record: &RunRecord,
    summary: &Summary,
    others: u64,
) -> Option<Ledger> {
    let RunRecord { reported_losses, counted, .. } = record;
    let storage = counted.iter().find(|it| it.role == Role::Storage);
    let saved = storage.map_or(summary.saved - summary.foreign.min(summary.saved), |storage| storage.spans);
    let behind = counted.iter().filter(|it| it.role == Role::Collector).map(|collector| ReportedLoss {
        service: collector.service.clone(),
        stage: COLLECTOR.to_owned(),
        spans: collector.spans.saturating_sub(saved),
    });
    let mut summary = summary.clone();
    reported_losses.iter().cloned().chain(behind).for_each(|loss| add_loss(&mut summary.reported_losses, loss));
    let ledger = match storage {
        Some(storage) => {
            let ledger = by_counts(variant, requests(variant, is_traced, record, others)?, storage.spans, &summary)?;
            // What the sink has received is of other services.
            Ledger { counted_by: Some(storage.service.clone()), duplicates: 0, ..ledger }
        }
        None if is_traced => without_others(close(variant, record.load.as_ref()?, &summary).ok()?, others),
        None => by_counts(variant, requests(variant, is_traced, record, others)?, summary.saved, &summary)?,
    };
    Some(Ledger { declared: ledger.declared && !variant.calibrated, calibrated: variant.calibrated, ..ledger })
}

/// Adds a loss to those that are known. A loss that an agent reports in two ways counts once.
fn add_loss(all: &mut Vec<ReportedLoss>, loss: ReportedLoss) {
    match all.iter_mut().find(|known| known.service == loss.service && known.stage == loss.stage) {
        Some(known) => known.spans = known.spans.max(loss.spans),
        None => all.push(loss),
    }
}

/// Requests answered (or units of work done), and those of them whose spans are wanted: known by the flag where there is one.
fn requests(variant: &PlannedVariant, is_traced: bool, record: &RunRecord, others: u64) -> Option<(u64, u64)> {
    let share = |requests: u64| (requests as f64 * variant.sampled.0).round() as u64;
    let all = units(record)? + others;
    let flagged = record.load.as_ref().filter(|_| is_traced).map(|outcome| outcome.sampled_total + share(others));
    Some((all, flagged.unwrap_or_else(|| share(all))))
}

/// Requests answered, or units of work done, over the whole load.
fn units(record: &RunRecord) -> Option<u64> {
    let answered = record.load.as_ref().map(|load| load.answered_total);
    answered.or_else(|| record.work.map(|work| work.units))
}

/// The ledger without the spans of `requests` that were sent before or after it, under ids of their own: by count, they are
/// not foreign.
fn without_others(ledger: Ledger, requests: u64) -> Ledger {
    let theirs = (ledger.spans_per_request * requests as f64).round() as u64;
    Ledger { foreign: ledger.foreign.saturating_sub(theirs), ..ledger }
}

/// The ledger of one run by requests.
///
/// # Errors
/// When spans cannot be tied to requests, or nothing has arrived from which the spans per request could be learned.
pub fn close(variant: &PlannedVariant, outcome: &Outcome, summary: &Summary) -> Result<Ledger, LedgerError> {
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
    ledger::close(summary, &load, variant.spans_per_request, Sampling::Flag)
}

/// A ledger by counts alone: nobody knows which spans are lost, only how many are there. `None` unless it is known how many a
/// request makes.
#[must_use]
pub fn by_counts(
    variant: &PlannedVariant,
    (requests, sampled): (u64, u64),
    saved: u64,
    summary: &Summary,
) -> Option<Ledger> {
    let spans_per_request = variant.spans_per_request?;
    let expected = (spans_per_request * requests as f64).round() as u64;
    let wanted = ((spans_per_request * sampled as f64).round() as u64).min(expected);
    let lost = wanted.saturating_sub(saved);
    Some(Ledger {
        expected,
        spans_per_request,
        declared: true,
        by_count: true,
        sampled_out: expected - wanted,
        saved,
        lost,
        by_stage: ledger::by_stage(summary, lost),
        // More than were wanted were not expected by anybody.
        unexplained: -i64::try_from(saved.saturating_sub(wanted)).unwrap_or(i64::MAX),
        duplicates: summary.duplicates,
        late: summary.late,
        ..Ledger::default()
    })
}

/// Spans that are on their way when the load has ended, if it is known how many a request makes. `others` are requests with other
/// trace ids.
#[must_use]
pub fn wanted(variant: &PlannedVariant, outcome: Option<&Outcome>, others: u64) -> Option<u64> {
    // Which of the others are sampled is another chance: then nobody knows when all spans are there.
    if others > 0 && variant.sampled.0 < 1.0 {
        return None;
    }
    let requests = outcome?.sampled_total + others;
    variant.spans_per_request.map(|spans| (spans * requests as f64).round() as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use unladen_journal::record::Counted;
    use unladen_journal::units::Ratio;

    use super::*;

    fn variant(sampled: f64) -> PlannedVariant {
        PlannedVariant { spans_per_request: Some(4.0), sampled: Ratio(sampled), ..PlannedVariant::empty("otel") }
    }

    /// 100 answered requests, so many of them sampled; what else was said and counted.
    fn record(sampled: u64, reported_losses: &[ReportedLoss], counted: &[Counted]) -> RunRecord {
        let outcome = Outcome { answered_total: 100, sent_total: 100, sampled_total: sampled, ..Outcome::default() };
        let json = serde_json::json!({
            "schema": 1, "run": 1, "round": 1, "slot": 1, "variant": "otel", "kind": "variant", "dir": "", "started": "",
            "void": null, "notices": [], "load": outcome, "sink": null, "ledger": null, "processes": [], "instrument": [],
            "told": reported_losses, "counted": counted,
            "phases": {"start_s": 0.0, "warmup_s": 0.0, "window_s": 0.0, "drain_s": 0.0, "stop_s": 0.0},
            "host": {"cores": 2, "busy_s": 0.0, "others_s": 0.0, "steal_s": 0.0, "cpu_pressure": null, "memory_available": 1},
        });
        serde_json::from_value(json).expect("a record")
    }

    fn loss(service: &str, stage: &str, spans: u64) -> ReportedLoss {
        ReportedLoss { service: service.into(), stage: stage.into(), spans }
    }

    fn counted(service: &str, role: Role, spans: u64) -> Counted {
        Counted { service: service.into(), role, spans, steady: true, ..Counted::default() }
    }

    fn balanced(ledger: Ledger) -> Ledger {
        let explained = (ledger.sampled_out + ledger.saved + ledger.lost) as i64;
        assert_eq!(ledger.expected as i64, explained + ledger.unexplained, "{ledger:?}");
        ledger
    }

    #[test]
    fn counts_balance_whether_spans_are_missing_or_too_many() {
        for (saved, share, (sampled_out, lost, unexplained)) in
            [(400, 1.0, (0, 0, 0)), (350, 1.0, (0, 50, 0)), (401, 1.0, (0, 0, -1)), (40, 0.1, (360, 0, 0))]
        {
            let summary = Summary { saved, ..Summary::default() };
            let ledger = account(&variant(share), false, &record(0, &[], &[]), &summary, 0).expect("declared");
            assert_eq!((ledger.sampled_out, ledger.lost, ledger.unexplained), (sampled_out, lost, unexplained));
            assert!(balanced(ledger).by_count);
        }
        let unknown = PlannedVariant { spans_per_request: None, ..variant(1.0) };
        assert_eq!(account(&unknown, false, &record(0, &[], &[]), &Summary::default(), 0), None);
    }

    #[test]
    fn a_storage_says_what_arrived_and_a_collector_where_it_was_last_seen() {
        let all = [counted("collector", Role::Collector, 390), counted("jaeger", Role::Storage, 300)];
        let summary = Summary { saved: 7, foreign: 7, ..Summary::default() };
        let losses = [loss("shop", "queue", 10)];
        let ledger =
            balanced(account(&variant(1.0), true, &record(100, &losses, &all), &summary, 0).expect("declared"));
        assert_eq!((ledger.saved, ledger.lost, ledger.counted_by.as_deref()), (300, 100, Some("jaeger")));
        let stages = BTreeMap::from([("queue".to_owned(), 10), ("collector".to_owned(), 90)]);
        assert_eq!(ledger.by_stage, stages);
    }

    #[test]
    fn a_collector_in_front_of_the_sink_keeps_the_ledger_by_requests() {
        let summary = Summary { saved: 360, spans_by_request: vec![(4, 90)], ..Summary::default() };
        let all = [counted("collector", Role::Collector, 400)];
        let ledger = balanced(account(&variant(1.0), true, &record(100, &[], &all), &summary, 0).expect("declared"));
        assert_eq!((ledger.lost, ledger.missing, ledger.by_count), (40, 10, false));
        assert_eq!(ledger.by_stage, BTreeMap::from([("collector".to_owned(), 40)]));
    }

    #[test]
    fn what_is_told_twice_is_heard_once() {
        let summary = Summary {
            saved: 300,
            spans_by_request: vec![(4, 75)],
            reported_losses: vec![loss("shop", "queue", 30)],
            ..Summary::default()
        };
        let losses = [loss("shop", "queue", 20), loss("shop", "export", 5), loss("till", "queue", 1)];
        let ledger = account(&variant(1.0), true, &record(100, &losses, &[]), &summary, 0).expect("declared");
        assert_eq!(ledger.by_stage, BTreeMap::from([("queue".to_owned(), 31), ("export".to_owned(), 5)]));
    }

    #[test]
    fn spans_of_other_loads_are_not_foreign_and_a_storage_has_them_too() {
        let ledger = Ledger { spans_per_request: 4.0, foreign: 45, ..Ledger::default() };
        assert_eq!(without_others(ledger.clone(), 10).foreign, 5);
        assert_eq!(without_others(ledger, 100).foreign, 0);
        let all = [counted("jaeger", Role::Storage, 440)];
        let ledger = account(&variant(1.0), true, &record(100, &[], &all), &Summary::default(), 10).expect("declared");
        assert_eq!((ledger.expected, ledger.lost, ledger.unexplained), (440, 0, 0));
    }
}
