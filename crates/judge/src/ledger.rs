//! The account of the spans of one variant over all its runs that count: a census, so there are no intervals.

use std::collections::BTreeMap;

use unladen_journal::notices::Notice;
use unladen_journal::record::Ledger;
use unladen_ledger::summary::Summary;

use super::evidence::VariantRuns;
use super::findings::{Finding, LedgerFindings, OperationLoss, Verdict};
use super::lookup::of_whole;
use super::units;

/// Share of the spans that may be lost or unexplained before it is worth a warning.
const NOTEWORTHY: f64 = 0.001;

/// CPU that spans are charged with, the best first: what a compiler takes comes once, not with every span.
const CHARGED: [&str; 2] = ["cpu_without_jit", "cpu_per_request"];

/// Sums up the ledgers of a variant with these findings. `None` without any span, wanted or found.
pub(super) fn sum_up(variant: &VariantRuns<'_>, findings: &[Finding]) -> Option<LedgerFindings> {
    let ledgers = || variant.valid.values().filter_map(|run| run.ledger.as_ref());
    let total = |count: fn(&Ledger) -> u64| ledgers().map(count).sum::<u64>();
    let (expected, sampled_out, saved, lost) = (
        total(|ledger| ledger.expected),
        total(|ledger| ledger.sampled_out),
        total(|ledger| ledger.saved),
        total(|ledger| ledger.lost),
    );
    let foreign = total(|ledger| ledger.foreign);
    if expected + saved + foreign == 0 {
        return None;
    }
    let mut by_stage = BTreeMap::new();
    let mut lost_by_second = Vec::new();
    for ledger in ledgers() {
        for (stage, spans) in &ledger.by_stage {
            *by_stage.entry(stage.clone()).or_insert(0) += spans;
        }
        lost_by_second.resize(ledger.lost_by_second.len().max(lost_by_second.len()), 0);
        for (sum, spans) in lost_by_second.iter_mut().zip(&ledger.lost_by_second) {
            *sum += spans;
        }
    }
    if lost == 0 {
        lost_by_second.clear();
    }
    let wanted = total(Ledger::wanted);
    let requests: u64 =
        variant.valid.values().filter_map(|run| run.load.as_ref()).map(|load| load.answered_total).sum();
    let per_span = |cost: Option<f64>| Some(cost? * requests as f64 / saved as f64);
    let costs = |metric| of_whole(findings, metric).filter(|cpu| cpu.verdict == Verdict::Costs && saved > 0);
    let cpu = CHARGED.into_iter().find_map(costs);
    Some(LedgerFindings {
        expected,
        saved,
        lost,
        sampled_out,
        duplicates: total(|ledger| ledger.duplicates),
        unexplained: ledgers().map(|ledger| ledger.unexplained).sum(),
        foreign,
        complete: total(|ledger| ledger.complete),
        partial: total(|ledger| ledger.partial),
        missing: total(|ledger| ledger.missing),
        wanted,
        loss_ratio: ratio(lost, wanted),
        worst_loss_ratio: ledgers().map(|ledger| ratio(ledger.lost, ledger.wanted())).fold(0.0, f64::max),
        by_stage,
        lost_by_second,
        // Declared once for the variant, or learned per run; then the median run speaks.
        spans_per_request: unladen_stats::estimate::median(
            &ledgers().map(|it| it.spans_per_request).collect::<Vec<_>>(),
        )
        .unwrap_or(0.0),
        declared: ledgers().all(|ledger| ledger.declared),
        calibrated: ledgers().all(|ledger| ledger.calibrated),
        by_count: ledgers().any(|ledger| ledger.by_count),
        counted_by: ledgers().find_map(|ledger| ledger.counted_by.clone()),
        bought_with_loss: ratio(lost, wanted) > NOTEWORTHY,
        dropped: sinks(variant, |sink| sink.dropped),
        faulted: sinks(variant, |sink| sink.faulted),
        by_operation: by_operation(variant),
        cpu_without_jit: cpu.is_some_and(|cpu| cpu.metric == CHARGED[0]),
        cpu_us_per_delivered_span: cpu.and_then(|cpu| per_span(cpu.difference)),
        cpu_us_per_delivered_span_low: cpu.and_then(|cpu| per_span(cpu.difference_low)),
        cpu_us_per_delivered_span_high: cpu.and_then(|cpu| per_span(cpu.difference_high)),
    })
}

fn sinks(variant: &VariantRuns<'_>, count: fn(&Summary) -> u64) -> u64 {
    variant.valid.values().filter_map(|run| run.sink.as_ref()).map(count).sum()
}

/// Operations that lack spans over all runs. An operation that lacks none in a run is not listed there; what is due is then
/// not known, and not added.
fn by_operation(variant: &VariantRuns<'_>) -> Vec<OperationLoss> {
    let mut sums: BTreeMap<(&str, &str), (f64, u64)> = BTreeMap::new();
    for lack in variant.valid.values().flat_map(|run| &run.shortfalls) {
        let sum = sums.entry((&lack.service, &lack.operation)).or_default();
        *sum = (sum.0 + lack.due, sum.1 + lack.saved);
    }
    let mut list: Vec<OperationLoss> = sums
        .into_iter()
        .map(|((service, operation), (due, saved))| OperationLoss {
            service: service.to_owned(),
            operation: operation.to_owned(),
            due,
            saved,
            loss_ratio: ((due - saved as f64) / due).max(0.0),
        })
        .collect();
    list.sort_by(|a, b| (b.due - b.saved as f64).total_cmp(&(a.due - a.saved as f64)));
    list
}

/// What a reader has to know about the account.
pub(super) fn notices(variant: &str, ledger: &LedgerFindings) -> Vec<Notice> {
    let variant = variant.to_owned();
    let mut notices = Vec::new();
    if ledger.bought_with_loss {
        notices.push(Notice::BoughtWithLoss { variant: variant.clone(), share: units::share(ledger.loss_ratio) });
    }
    if ratio(ledger.unexplained.unsigned_abs(), ledger.wanted.max(ledger.saved)) > NOTEWORTHY {
        notices.push(Notice::LedgerUnbalanced {
            variant: variant.clone(),
            unexplained: units::signed_count(ledger.unexplained),
        });
    }
    if !ledger.declared && !ledger.calibrated && ledger.expected > 0 {
        notices.push(Notice::SpansLearned { variant, spans: ledger.spans_per_request });
    }
    notices
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
