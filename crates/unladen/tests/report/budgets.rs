//! Budgets come out as they must.

use unladen_journal::record::VariantKind;
use unladen_judge::findings::{Outcome, Verdict};
use unladen_judge::{Budgets, GateOutcome, JudgeError, judge, judge_with_budgets, more_rounds_may_decide, outcome};

use crate::sketch::{Sketch, SketchedVariant, findings, ladder, sketched, write};
use crate::verdicts::finding;

#[test]
fn budgets_pass_fail_or_stay_undecided() {
    for (limits, expected) in [
        (&[("cpu_per_request", "30%"), ("rss", "50MiB")][..], GateOutcome::Pass),
        (&[("cpu_per_request", "100us")], GateOutcome::Pass),
        (&[("cpu_per_request", "10%")], GateOutcome::Fail),
        (&[("rss", "1MiB"), ("cpu_per_request", "30%")], GateOutcome::Fail),
        (&[("cpu_per_request", "18%")], GateOutcome::Undecided),
        (&[("heap", "1MiB")], GateOutcome::Undecided),
        (&[], GateOutcome::Pass),
    ] {
        let findings = findings(&Sketch { budgets: limits.to_vec(), ..ladder() });
        assert_eq!(outcome(&findings), expected, "{limits:?}: {:?}", findings.budgets);
        assert_eq!(findings.budgets.len(), 2 * limits.len(), "one line per variant, none for the placebo");
    }
}

/// Throughput is better the more there is: a budget limits what may be lost.
#[test]
fn a_budget_on_throughput_limits_the_loss() {
    let slow = sketched("slow", "", VariantKind::Variant);
    let sketch = Sketch { rate: None, ..Sketch::new("closed", "").with(SketchedVariant { latency: 1.2, ..slow }) };
    let of = |limit| outcome(&findings(&Sketch { budgets: vec![("throughput", limit)], ..sketch.clone() }));
    assert_eq!(of("25%"), GateOutcome::Pass);
    assert_eq!(of("10%"), GateOutcome::Fail, "1/1.2 is 17 % less");
    assert_eq!(of("100/s"), GateOutcome::Fail);
    let findings = findings(&sketch);
    let throughput = finding(&findings, "slow", "throughput");
    assert_eq!(throughput.verdict, Verdict::Costs);
    assert!(throughput.ratio.is_some_and(|ratio| (-0.2..-0.14).contains(&ratio)), "{:?}", throughput.ratio);
    assert!(throughput.words.starts_with("costs 1"), "{}", throughput.words);
}

#[test]
fn an_unreadable_budget_is_an_error() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &ladder().study(), &ladder().runs());
    for (metric, limit) in [("rss", "ten"), ("rss", "5 apples"), ("cpu_per_request", "50MiB"), ("threads", "5%%")] {
        let budgets = Budgets::from([(metric.to_owned(), limit.to_owned())]);
        let error = judge_with_budgets(dir.path(), &budgets).expect_err("not a limit");
        assert!(matches!(error, JudgeError::Budget(_)) && error.to_string().contains(limit), "{error}");
    }
    let stricter = Budgets::from([("cpu_per_request".to_owned(), "1%".to_owned())]);
    let findings = judge_with_budgets(dir.path(), &stricter).expect("a limit");
    assert_eq!(outcome(&findings), GateOutcome::Fail);
}

#[test]
fn a_typing_error_in_a_budget_is_pointed_out() {
    let findings = findings(&Sketch { budgets: vec![("cpu_per_reqest", "10%")], ..ladder() });
    assert!(findings.budgets[0].words.contains("did you mean cpu_per_request?"), "{}", findings.budgets[0].words);
}

/// Only what was measured and lies across its limit can be decided by more rounds.
#[test]
fn more_rounds_are_asked_for_only_where_they_help() {
    let with = |budgets: Vec<(&'static str, &'static str)>| findings(&Sketch { budgets, ..ladder() });
    assert!(!more_rounds_may_decide(&with(vec![("cpu_per_request", "50%"), ("rss", "1KiB")])), "pass and fail");
    assert!(!more_rounds_may_decide(&with(vec![("heap", "1MiB")])), "never measured");
    assert!(more_rounds_may_decide(&with(vec![("cpu_per_request", "17.5%")])), "the truth is 18 %");
    let short = findings(&Sketch { rounds: 3, budgets: vec![("cpu_per_request", "17.5%")], ..ladder() });
    assert!(more_rounds_may_decide(&short), "too few rounds for an interval");
}

/// A budget of one service is held against that service alone.
#[test]
fn a_service_has_a_budget_of_its_own() {
    let sketch = Sketch { budgets: vec![("cpu_per_request@app", "10%"), ("cpu_per_request@db", "10%")], ..ladder() };
    let mut runs = sketch.runs();
    for run in &mut runs {
        let mut second = run.processes[0].clone();
        second.service = "db".to_owned();
        // The database takes ten times as much, and nothing of it is the variant's.
        second.cpu_ns = Some(if run.variant == "otel" { 3_400_000_000 } else { 3_390_000_000 } * 10);
        run.processes.push(second);
    }
    let study = sketch.study().replace("services:\n", "services:\n  db:\n    command: ./db\n");
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &study, &runs);
    let findings = judge(dir.path()).expect("a whole run folder");
    let line = |service: &str| {
        let mine = |line: &&unladen_judge::findings::BudgetLine| {
            line.variant == "otel" && line.service.as_deref() == Some(service)
        };
        findings.budgets.iter().find(mine).expect("a budget").clone()
    };
    assert_eq!(line("app").outcome, Outcome::Fail);
    assert!(line("app").words.contains("of app"), "{}", line("app").words);
    assert_eq!(line("db").outcome, Outcome::Pass);
}

/// JUnit: a case per budget and variant; a failure, an error and neither.
#[test]
fn budgets_as_test_results() {
    let budgets = vec![("cpu_per_request", "10%"), ("rss", "50MiB"), ("heap", "1MiB")];
    let sketch = Sketch { budgets, ..ladder() };
    let xml = unladen_report::junit::render(&findings(&sketch)).expect("XML");
    insta::assert_snapshot!(xml);

    let mut broken = sketch;
    broken.variants[1].cpu = 1.06;
    let xml = unladen_report::junit::render(&findings(&broken)).expect("XML");
    assert!(xml.contains("errors=\"1\"") && xml.contains("the baseline"), "{xml}");
}
