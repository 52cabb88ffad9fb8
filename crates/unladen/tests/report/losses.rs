//! Lost spans in the reports: marked wherever something looks cheaper because of them, held against a budget to the span, told by
//! stage and operation, and said of a backend that was at fault on purpose.

use unladen_journal::notices::Notice;
use unladen_journal::record::{Calibration, CalibrationRecord, RunRecord, SCHEMA, VariantKind};
use unladen_judge::findings::{Findings, Verdict};
use unladen_judge::{Budgets, GateOutcome, judge, judge_with_budgets, outcome};
use unladen_ledger::Shortfall;
use unladen_ledger::faults::Faults;
use unladen_report::{Format, render};

use crate::sketch::{Sketch, SketchedVariant, sketched, write};
use crate::verdicts::{finding, variant};

/// A variant that loses this share of its spans, and saves CPU.
fn sketch(lost: f64) -> Sketch {
    let lossy = sketched("lossy", "Lossy", VariantKind::Variant);
    Sketch::new("loss", "").with(SketchedVariant { cpu: 0.8, spans: 3.0, lost, ..lossy })
}

fn changed(lost: f64, change: impl Fn(&mut RunRecord)) -> Findings {
    let sketch = sketch(lost);
    let mut runs = sketch.runs();
    runs.iter_mut().filter(|run| run.variant == "lossy").for_each(change);
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &sketch.study(), &runs);
    judge(dir.path()).expect("a whole run folder")
}

/// The text with its lines joined, so that it can be searched for sentences.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_gain_that_comes_with_loss_is_marked_in_every_report() {
    let findings = changed(0.25, |_| ());
    let lossy = findings.real_variants().next().expect("a variant");
    let cpu = lossy.metrics.iter().find(|it| it.metric == "cpu_per_request").expect("it is measured");
    assert_eq!(cpu.verdict, Verdict::Saves);
    assert!(cpu.notices.iter().any(|notice| notice.code == "bought_with_loss"), "{:?}", cpu.notices);
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let report = flowing(&render(&findings, format));
        // In the sentence, at the head of the table, and among what is to be known before believing.
        let marks = report.matches("bought with lost spans").count();
        assert!(marks >= 2, "{marks} marks in {report}");
        assert!(report.contains("Lossy (lossy), bought with lost spans"), "{report}");
        assert!(report.contains("were lost (25 %): bought with lost spans."), "{report}");
    }
    let clean = changed(0.0, |_| ());
    for format in [Format::Text, Format::Markdown, Format::Html] {
        assert!(!render(&clean, format).contains("bought with"), "nothing was lost");
    }
}

#[test]
fn the_budget_on_lost_spans_is_decided_to_the_span() {
    let held = |lost: f64, limit: &str| {
        let sketch = sketch(lost);
        let dir = tempfile::tempdir().expect("a temporary folder");
        write(dir.path(), &sketch.study(), &sketch.runs());
        let budgets = Budgets::from_iter([("span_loss".to_owned(), limit.to_owned())]);
        let findings = judge_with_budgets(dir.path(), &budgets).expect("a whole run folder");
        (outcome(&findings), findings.budgets[0].words.clone())
    };
    assert_eq!(held(0.0, "0%").0, GateOutcome::Pass);
    let (outcome, words) = held(0.25, "0%");
    assert_eq!(outcome, GateOutcome::Fail);
    assert_eq!(words, "126,000 of 504,000 spans were lost (25 %), the limit is 0%");
    assert_eq!(held(0.25, "25%").0, GateOutcome::Pass);
    assert_eq!(held(0.25, "24.9%").0, GateOutcome::Fail);
    // One span of half a million is one too many.
    let (outcome, words) = held(0.000_02, "0%");
    assert_eq!(outcome, GateOutcome::Fail, "{words}");
}

#[test]
fn a_bad_day_is_said_with_what_it_did() {
    let findings = changed(0.1, |run| {
        run.faults = Some(Faults { drop_share: 0.1, ..Faults::default() });
        if let Some(sink) = &mut run.sink {
            (sink.dropped, sink.faulted) = (100, 2);
        }
    });
    let words = "the sink drops 10 % of the batches but acknowledges them (24 requests not served, 1,200 spans \
                 dropped in all runs).";
    for (format, head) in [(Format::Text, "faults: "), (Format::Markdown, "Faults: "), (Format::Html, "Faults: ")] {
        let report = flowing(&render(&findings, format));
        assert!(report.contains(&format!("{head}{words}")), "{report}");
    }
}

#[test]
fn losses_are_told_by_operation_and_by_who_counted() {
    let findings = changed(0.25, |run| {
        let lack =
            |operation: &str, due, saved| Shortfall { service: "shop".into(), operation: operation.into(), due, saved };
        run.shortfalls = vec![lack("GET", 100.0, 40), lack("SELECT", 100.0, 90)];
        if let Some(ledger) = &mut run.ledger {
            (ledger.declared, ledger.calibrated, ledger.by_count) = (false, true, true);
            ledger.counted_by = Some("jaeger".into());
        }
    });
    let report = flowing(&render(&findings, Format::Text));
    for words in [
        "378,000 counted by jaeger",
        "3 per request (by calibration)",
        "shop `GET` lacks 60 %, shop `SELECT` lacks 10 %",
        "by count alone: not tied to requests",
    ] {
        assert!(report.contains(words), "{words} in {report}");
    }
    let codes: Vec<&str> = findings.notices.iter().map(|notice| notice.code.as_str()).collect();
    assert!(!codes.contains(&"spans_learned"), "a calibration saw what nobody lost");
}

#[test]
fn what_a_calibration_found_out_stands_among_the_notices() {
    let sketch = sketch(0.0);
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &sketch.study(), &sketch.runs());
    let journal = dir.path().join("journal.jsonl");
    let notice = Some(Notice::NothingCalibrated { variant: "lossy".into(), requests: 40 });
    let calibration = Calibration { variant: "lossy".into(), notice, ..Calibration::default() };
    let line = serde_json::to_string(&CalibrationRecord { schema: SCHEMA, calibration }).expect("a record is JSON");
    let runs = std::fs::read_to_string(&journal).expect("a journal");
    std::fs::write(&journal, format!("{line}\n{runs}")).expect("written");
    let findings = judge(dir.path()).expect("a whole run folder");
    assert_eq!(findings.rounds, 12, "a calibration is no run");
    assert!(render(&findings, Format::Text).contains("no span of lossy arrived in the calibration"));
}

/// Where the compiler's time is known, spans are charged with the rest of the CPU: the compiler has most of what this variant takes
/// more.
#[test]
fn spans_are_not_charged_with_the_compiler() {
    let traced = sketched("traced", "Traced", VariantKind::Variant);
    let sketch = Sketch::new("compiled", "").with(SketchedVariant { cpu: 1.5, spans: 3.0, ..traced });
    let mut runs = sketch.runs();
    for run in &mut runs {
        let share = if run.variant == "traced" { 0.3 } else { 0.1 };
        let app = run.processes.iter_mut().find(|it| it.service == "app").expect("the service");
        app.extra.insert("jit_time".to_owned(), app.cpu_ns.expect("measured") as f64 * share);
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &sketch.study(), &runs);
    let findings = judge(dir.path()).expect("a whole run folder");
    let cost = |metric| finding(&findings, "traced", metric).difference.expect("12 rounds");
    let ledger = variant(&findings, "traced").ledger.as_ref().expect("it has spans");
    assert!(ledger.cpu_without_jit && cost("cpu_without_jit") < 0.7 * cost("cpu_per_request"), "{ledger:?}");
    let per_span = ledger.cpu_us_per_delivered_span.expect("it costs");
    assert!((per_span - cost("cpu_without_jit") / 3.0).abs() < 1e-9, "{per_span}");
    let text = flowing(&render(&findings, Format::Text));
    assert!(text.contains("of CPU without JIT per span that arrived"), "{text}");
}
