//! What the judge concludes: known effects come back, unequal work and a broken harness take the verdict away.

use unladen_journal::record::{RunRecord, VariantKind};
use unladen_journal::role::Role;
use unladen_judge::findings::{Finding, Findings, Outcome, RoundValue, VariantFindings, Verdict};
use unladen_judge::{GateOutcome, JudgeError, judge, outcome};
use unladen_load::outcome::BodyClass;
use unladen_study::measured::read;
use unladen_study::write::resolved_yaml;

use crate::sketch::{Sketch, SketchedVariant, findings, ladder, late, sketched, write};

const MIB: f64 = 1024.0 * 1024.0;

pub(crate) fn variant<'a>(findings: &'a Findings, name: &str) -> &'a VariantFindings {
    findings.variants.iter().find(|variant| variant.name == name).expect("the variant is judged")
}

pub(crate) fn finding<'a>(findings: &'a Findings, name: &str, metric: &str) -> &'a Finding {
    variant(findings, name).finding(metric).expect("it is measured")
}

pub(crate) fn codes(findings: &Findings) -> Vec<&str> {
    findings.notices.iter().map(|notice| notice.code.as_str()).collect()
}

/// The runs of one variant, changed.
pub(crate) fn changed(sketch: &Sketch, name: &str, change: impl Fn(&mut RunRecord)) -> Findings {
    let mut runs = sketch.runs();
    runs.iter_mut().filter(|run| run.variant == name).for_each(change);
    of_runs(sketch, &runs)
}

/// What is found of these runs.
pub(crate) fn of_runs(sketch: &Sketch, runs: &[RunRecord]) -> Findings {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &sketch.study(), runs);
    judge(dir.path()).expect("a whole run folder")
}

#[test]
fn a_known_cost_comes_back() {
    let findings = findings(&ladder());
    let cpu = finding(&findings, "otel", "cpu_per_request");
    assert_eq!(cpu.verdict, Verdict::Costs);
    assert!(cpu.relative);
    // A 95 % interval misses the truth in 1 of 20 studies; the range of 12 rounds in less than 1 of 2,000 (sign test).
    let range = |of: fn(&RoundValue) -> f64, finding: &Finding| {
        finding
            .rounds
            .iter()
            .map(of)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)))
    };
    let (low, high) = range(|round| round.ratio.unwrap_or(f64::NAN), cpu);
    assert!(low < 0.18 && 0.18 < high, "[{low}, {high}] holds the truth");
    let memory = finding(&findings, "otel", "rss");
    let (low, high) = range(|round| round.difference, memory);
    assert!(!memory.relative);
    assert!(low < 9.0 * MIB && 9.0 * MIB < high, "[{low}, {high}] holds the truth");
    assert_eq!(findings.rounds, 12);
    assert_eq!(findings.void, None);
}

/// Every dot of a finding says which numbers it comes from, and the estimate can be made from them again.
#[test]
fn the_rounds_hold_the_evidence() {
    let sketch = ladder();
    let findings = findings(&sketch);
    let cpu = finding(&findings, "otel", "cpu_per_request");
    let runs = sketch.runs();
    let cost = |name: &str, round: u32| {
        let run = runs.iter().find(|run| run.variant == name && run.round == round).expect("every round has it");
        let nanoseconds = run.processes[0].cpu_ns.expect("measured") as f64;
        nanoseconds / 1e3 / run.load.as_ref().expect("measured").completed_in_window as f64
    };
    for round in &cpu.rounds {
        assert!((round.baseline - cost("baseline", round.round)).abs() < 1e-9, "the placebo is not mixed in");
        assert!((round.value - cost("otel", round.round)).abs() < 1e-9);
    }
    let floor = finding(&findings, "placebo", "cpu_per_request");
    assert!(
        floor.rounds.iter().all(|it| (it.baseline - cost("baseline", it.round)).abs() < 1e-9),
        "the baseline alone"
    );
}

#[test]
fn a_placebo_that_differs_voids_the_study() {
    let mut sketch = Sketch { budgets: vec![("cpu_per_request", "50%")], ..ladder() };
    sketch.variants[1].cpu = 1.06;
    let broken = findings(&sketch);
    assert!(broken.void.as_deref().is_some_and(|reason| reason.contains("CPU per request")), "{:?}", broken.void);
    assert_eq!(outcome(&broken), GateOutcome::Void);
    for variant in broken.real_variants() {
        assert!(variant.metrics.iter().all(|it| it.verdict == Verdict::CannotTell));
        assert!(variant.ledger.as_ref().is_some_and(|ledger| ledger.cpu_us_per_delivered_span.is_none()));
    }
    assert!(broken.budgets.iter().all(|line| line.outcome == Outcome::Undecided));

    // In another metric it is a warning, and the others can be believed.
    let mut sketch = ladder();
    sketch.variants[1].memory = 5.0;
    let uneven = findings(&sketch);
    assert_eq!(uneven.void, None);
    assert!(codes(&uneven).contains(&"placebo_uneven"), "{:?}", codes(&uneven));
    assert_eq!(finding(&uneven, "otel", "cpu_per_request").verdict, Verdict::Costs);
}

/// A difference that is sure and too small to matter does not condemn the harness.
#[test]
fn a_placebo_that_hardly_differs_is_only_a_warning() {
    let mut sketch = Sketch { noise: 0.0005, ..ladder() };
    sketch.variants[1].cpu = 1.003;
    let findings = findings(&sketch);
    assert_eq!(findings.void, None);
    assert!(codes(&findings).contains(&"placebo_uneven"));
}

/// What programs say of their work is held to the baseline's: less, or nothing where the baseline says something.
#[test]
fn other_work_takes_the_verdict_away() {
    let sketch = Sketch {
        change_run: |run| {
            let stored = 1_000.0 + f64::from(run.run % 3);
            run.reported_numbers = [("db".to_owned(), [("stored".to_owned(), stored)].into())].into();
        },
        ..ladder()
    };
    let refused = |findings: Findings| variant(&findings, "otel").refused.clone();
    assert_eq!(refused(findings(&sketch)), None, "the same, but for what the baseline scatters itself");
    let less = refused(changed(&sketch, "otel", |run| {
        run.reported_numbers = [("db".to_owned(), [("stored".to_owned(), 970.0)].into())].into()
    }));
    assert!(
        less.as_deref().is_some_and(|it| it.contains("db reports `stored` 970, the baseline's reports 1,000.5")),
        "{less:?}"
    );
    let silent = refused(changed(&sketch, "otel", |run| run.reported_numbers.clear()));
    assert!(silent.as_deref().is_some_and(|it| it.contains("db does not report `stored`")), "{silent:?}");
    let more = changed(&sketch, "otel", |run| {
        drop(run.reported_numbers.insert("own".to_owned(), [("rows".to_owned(), 5.0)].into()))
    });
    let numbers = &variant(&more, "otel").reported_numbers;
    assert_eq!(numbers.len(), 2);
    assert_eq!(
        (numbers[1].baseline, numbers[1].value, numbers[1].differs),
        (None, Some(5.0), false),
        "nothing to hold it to"
    );
    assert_eq!(variant(&more, "otel").refused, None);
}

#[test]
fn other_answers_take_the_verdict_away() {
    let shorter = |run: &mut RunRecord| {
        let load = run.load.as_mut().expect("measured");
        load.bodies = vec![BodyClass { length: 13, hash: "ffffffffffffffff".to_owned(), count: load.requests }];
    };
    let findings = changed(&ladder(), "otel", shorter);
    let refused = variant(&findings, "otel").refused.as_deref().expect("refused");
    assert!(
        refused.contains("12 of its 12 runs") && refused.contains("13 bytes") && refused.contains("1024 bytes"),
        "{refused}"
    );
    assert!(variant(&findings, "otel").metrics.iter().all(|it| it.verdict == Verdict::CannotTell));
    assert_eq!(variant(&findings, "otel-10pct").refused, None, "the others are judged");

    let wrong = |run: &mut RunRecord| {
        let load = run.load.as_mut().expect("measured");
        load.statuses = [(200, load.requests / 2), (302, load.requests / 2)].into();
    };
    let refused = changed(&ladder(), "otel", wrong);
    assert!(variant(&refused, "otel").refused.as_deref().is_some_and(|it| it.contains("status codes")));

    // Who is slower is asked more often whether it is ready; that is no other work.
    let slower = |run: &mut RunRecord| {
        let load = run.load.as_mut().expect("measured");
        load.statuses.insert(202, load.requests / 5);
        load.asked_again = [(202, load.requests / 5)].into();
    };
    assert_eq!(variant(&changed(&ladder(), "otel", slower), "otel").refused, None);
}

/// One run of twelve that answers otherwise is enough: it cannot be left out for what it says.
#[test]
fn a_single_other_run_is_enough() {
    let findings = changed(&ladder(), "otel", |run| {
        if run.round == 4 {
            let load = run.load.as_mut().expect("measured");
            load.bodies[0].hash = "0000000000000000".to_owned();
        }
    });
    assert!(variant(&findings, "otel").refused.as_deref().is_some_and(|it| it.contains("1 of its 12 runs")));
}

/// A handful of errors, or of other bodies, is no other work.
#[test]
fn a_few_other_answers_are_let_pass() {
    let findings = changed(&ladder(), "otel", |run| {
        let load = run.load.as_mut().expect("measured");
        load.errors = 20;
        load.requests -= 20;
        load.bodies.push(BodyClass { length: 90, hash: "1".repeat(16), count: 30 });
    });
    assert_eq!(variant(&findings, "otel").refused, None);
}

/// Bodies with a timestamp have another hash every second; the baseline does not agree with itself about them.
fn stamped(run: &mut RunRecord) {
    let number = run.run;
    let load = run.load.as_mut().expect("measured");
    let body = |second: u32| BodyClass {
        length: 1024,
        hash: format!("{:016x}", number * 100 + second),
        count: load.requests / 5,
    };
    load.bodies = (0..5).map(body).collect();
}

#[test]
fn bodies_that_vary_by_themselves_are_compared_by_length() {
    let mut runs = ladder().runs();
    runs.iter_mut().for_each(stamped);
    assert!(of_runs(&ladder(), &runs).real_variants().all(|it| it.refused.is_none()));
    for run in runs.iter_mut().filter(|run| run.variant == "otel") {
        run.load.as_mut().expect("measured").bodies.iter_mut().for_each(|body| body.length = 12);
    }
    let refused = of_runs(&ladder(), &runs);
    assert!(variant(&refused, "otel").refused.as_deref().is_some_and(|it| it.contains("lengths")));
}

/// When every answer differs, in length too, their mean size is all that can be compared; a header more is let pass.
#[test]
fn bodies_without_any_pattern_are_compared_by_size() {
    let random = |run: &mut RunRecord| {
        let number = u64::from(run.run);
        let load = run.load.as_mut().expect("measured");
        load.bodies = vec![BodyClass { length: 900 + number, hash: format!("{number:016x}"), count: 1 }];
        load.other_bodies = load.requests - 1;
    };
    let mut runs = ladder().runs();
    runs.iter_mut().for_each(random);
    for run in runs.iter_mut().filter(|run| run.variant == "otel") {
        let load = run.load.as_mut().expect("measured");
        load.bytes_received += load.requests * 60;
    }
    assert_eq!(variant(&of_runs(&ladder(), &runs), "otel").refused, None);
    for run in runs.iter_mut().filter(|run| run.variant == "otel") {
        run.load.as_mut().expect("measured").bytes_received /= 4;
    }
    assert!(
        variant(&of_runs(&ladder(), &runs), "otel")
            .refused
            .as_deref()
            .is_some_and(|it| it.contains("bytes on average"))
    );
}

/// A void run that is repeated under a new number counts in its round; a valid one cannot be repeated until it pleases.
#[test]
fn repeated_runs() {
    let sketch = ladder();
    let mut runs = sketch.runs();
    let at = runs.iter().position(|run| run.variant == "otel" && run.round == 3).expect("it is there");
    let mut again = runs[at].clone();
    again.run = 1001;
    let mut better = runs[at].clone();
    better.run = 1002;
    better.processes[0].cpu_ns = Some(1);
    late(&mut runs[at]);
    runs.extend([again, better]);
    let findings = of_runs(&sketch, &runs);
    assert_eq!(findings.rounds, 12);
    assert_eq!((variant(&findings, "otel").valid_runs, variant(&findings, "otel").runs), (12, 14));
    let third = finding(&findings, "otel", "cpu_per_request").rounds[2];
    assert!(third.value > 100.0, "the first valid run, not the one that pleases: {}", third.value);
    let codes = codes(&findings);
    assert!(
        codes.contains(&"runs_void") && codes.contains(&"runs_repeated") && codes.contains(&"runs_surplus"),
        "{codes:?}"
    );
}

/// A round that was done again counts by its last whole attempt, whatever the attempts say.
#[test]
fn repeated_rounds() {
    let sketch = ladder();
    let mut runs = sketch.runs();
    let again: Vec<RunRecord> = runs.iter().filter(|run| run.round == 3).cloned().collect();
    let second = |mut run: RunRecord| {
        run.attempt = 2;
        run.run += 1000;
        run.processes[0].cpu_ns = run.processes[0].cpu_ns.map(|ns| ns * 3);
        run
    };
    for run in runs.iter_mut().filter(|run| run.round == 3) {
        run.host.others_s = 5.0;
    }
    let cpu = |runs: &[RunRecord]| finding(&of_runs(&sketch, runs), "otel", "cpu_per_request").rounds[2].value;
    let first = cpu(&runs);
    // Interrupted in the second attempt: the first one is all there is of the others.
    let mut torn = runs.clone();
    torn.extend(again.iter().take(2).cloned().map(second));
    assert_eq!(cpu(&torn), first);
    runs.extend(again.into_iter().map(second));
    assert!((cpu(&runs) / first - 3.0).abs() < 1e-6, "the last one counts, though it is dearer");
    let findings = of_runs(&sketch, &runs);
    assert_eq!((findings.rounds, findings.rounds_repeated), (12, 1));
    assert_eq!((variant(&findings, "otel").valid_runs, variant(&findings, "otel").runs), (12, 13));
    let notice = findings.notices.iter().find(|it| it.code == "rounds_repeated").expect("it is told");
    assert!(notice.text.starts_with("rounds repeated: 1.") && notice.text.contains("25 %"), "{}", notice.text);
    assert!(notice.text.contains("(4, of all variants)"), "{}", notice.text);
    assert!(!codes(&findings).contains(&"runs_void") && !codes(&findings).contains(&"runs_surplus"));
}

#[test]
fn the_same_number_twice_is_told() {
    let mut runs = ladder().runs();
    runs.push(runs[0].clone());
    assert!(codes(&of_runs(&ladder(), &runs)).contains(&"run_number_twice"));
}

#[test]
fn an_empty_journal_is_an_error() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &ladder().study(), &[]);
    assert!(matches!(judge(dir.path()), Err(JudgeError::NoRuns { .. })));
    let missing = judge(&dir.path().join("nowhere")).expect_err("no such folder");
    assert!(missing.to_string().contains("study.yaml"), "{missing}");
}

#[test]
fn without_a_valid_baseline_nothing_is_said() {
    let findings = changed(&ladder(), "baseline", late);
    assert!(findings.void.as_deref().is_some_and(|it| it.contains("baseline")));
    assert_eq!(outcome(&findings), GateOutcome::Void);
}

/// A quantile takes 100 requests beyond it, in every run.
#[test]
fn quantiles_need_requests() {
    let few = findings(&Sketch { rate: Some(100.0), ..ladder() });
    let shown: Vec<&str> = variant(&few, "otel")
        .metrics
        .iter()
        .map(|it| it.metric.as_str())
        .filter(|it| it.starts_with("latency_p"))
        .collect();
    // 12 rounds of 500.
    assert_eq!(shown, ["latency_p50", "latency_p75", "latency_p90", "latency_p95"]);
    let notice = few.notices.iter().find(|it| it.code == "too_few_requests").expect("told");
    for part in ["latency p99 and latency p99.9", "10,000 requests over all rounds", "about 6,000 and 500"] {
        assert!(notice.text.contains(part), "{}", notice.text);
    }
    // 12 of 900 are enough together, but not each.
    let thin = findings(&Sketch { rate: Some(180.0), ..ladder() });
    assert!(!variant(&thin, "otel").metrics.iter().any(|it| it.metric == "latency_p99"));
    let enough = findings(&Sketch { rate: Some(200.0), ..ladder() });
    assert!(variant(&enough, "otel").metrics.iter().any(|it| it.metric == "latency_p99"));
}

/// In a closed loop the connections are always busy; when they are not, the generator set the pace.
#[test]
fn littles_law_is_checked() {
    let sketch = Sketch { rate: None, ..ladder() };
    let idle = |share: f64| move |run: &mut RunRecord| run.load.as_mut().expect("measured").rate *= share;
    assert!(!codes(&findings(&sketch)).iter().any(|code| code.starts_with("little")));
    let strained = changed(&sketch, "otel", idle(0.85));
    assert!(codes(&strained).contains(&"little_law_strained"));
    assert_eq!(variant(&strained, "otel").valid_runs, 12);
    let broken = changed(&sketch, "otel", idle(0.5));
    assert_eq!(variant(&broken, "otel").valid_runs, 0);
    assert!(variant(&broken, "otel").refused.is_some());
    // In an open loop the rate is given, and idle connections mean nothing.
    assert_eq!(variant(&changed(&ladder(), "otel", idle(0.5)), "otel").valid_runs, 12);
}

#[test]
fn a_baseline_with_spans_is_not_bare() {
    let findings = changed(&ladder(), "baseline", |run| run.ledger.as_mut().expect("kept").saved = 10);
    assert!(codes(&findings).contains(&"baseline_not_bare"));
}

/// The ledger is a census: sums over the valid runs, the worst run apart, the cost shared among the spans that arrived.
#[test]
fn the_ledger_adds_up() {
    let lossy = sketched("lossy", "", VariantKind::Variant);
    let sketch = Sketch::new("loss", "").with(SketchedVariant { cpu: 1.2, spans: 3.0, lost: 0.25, ..lossy });
    let findings = changed(&sketch, "lossy", |run| {
        if run.round == 12 {
            late(run);
        }
    });
    let ledger = variant(&findings, "lossy").ledger.as_ref().expect("it has spans");
    assert_eq!(ledger.expected, 11 * 14_000 * 3);
    assert_eq!(ledger.wanted, ledger.saved + ledger.lost);
    assert!((ledger.loss_ratio - 0.25).abs() < 1e-9 && (ledger.worst_loss_ratio - 0.25).abs() < 1e-9);
    assert_eq!(ledger.by_stage["subject"], ledger.lost);
    assert_eq!(ledger.lost_by_second.iter().sum::<u64>(), ledger.lost);
    let cost = finding(&findings, "lossy", "cpu_per_request").difference.expect("12 rounds");
    let per_span = ledger.cpu_us_per_delivered_span.expect("it costs");
    assert!((per_span - cost / (3.0 * 0.75)).abs() < 1e-9, "{per_span} of {cost}");
    assert!(codes(&findings).contains(&"bought_with_loss"));
    assert_eq!(variant(&findings, "placebo").ledger, None, "no spans, no account");
}

/// A metric that was not measured in one run leaves that round out, of this metric alone. JSON has no infinity: a run that
/// measured nonsense cannot be read back, and that is told.
#[test]
fn a_missing_number_leaves_its_round_out() {
    let findings = changed(&ladder(), "otel", |run| {
        if run.round < 4 {
            run.processes[0].rss = None;
        }
        if run.round == 5 {
            run.load.as_mut().expect("measured").latency_us.p50 = f64::MAX * 2.0;
        }
    });
    assert_eq!(finding(&findings, "otel", "rss").rounds.len(), 8);
    assert_eq!(finding(&findings, "otel", "cpu_per_request").rounds.len(), 11);
    assert!(codes(&findings).contains(&"journal_unreadable"));
}

/// Probes of other runtimes deliver numbers by name.
#[test]
fn extra_numbers_become_findings() {
    let mut runs = ladder().runs();
    for run in &mut runs {
        let more = if run.variant == "otel" { 4_194_304.0 } else { 0.0 };
        let noise = f64::from(run.run % 7) * 1000.0;
        run.processes[0].extra =
            [("heap".to_owned(), 50_000_000.0 + more + noise), ("goroutines".to_owned(), 12.0)].into();
    }
    let findings = of_runs(&ladder(), &runs);
    let heap = finding(&findings, "otel", "heap");
    assert_eq!((heap.unit.as_str(), heap.verdict), ("B", Verdict::Costs));
    assert!(heap.difference.is_some_and(|it| (it / MIB - 4.0).abs() < 0.1));
    assert_eq!(finding(&findings, "otel", "goroutines").words, "the same in every round");
}

/// A collector that only one variant starts costs what it takes; where none is started nothing is said about collectors.
#[test]
fn a_collector_of_one_variant_is_weighed_against_none() {
    let findings = changed(&ladder(), "otel", |run| {
        let mut collector = run.processes[0].clone();
        collector.service = "collector".to_owned();
        collector.role = Some(Role::Collector);
        collector.cpu_ns =
            Some(run.load.as_ref().expect("measured").completed_in_window * (20_000 + u64::from(run.run)));
        run.processes.push(collector);
    });
    let collector = finding(&findings, "otel", "collector_cpu");
    assert_eq!((collector.baseline, collector.verdict), (0.0, Verdict::Costs));
    assert!(collector.difference.is_some_and(|it| (it - 20.0).abs() < 0.1), "{:?}", collector.difference);
    let of = |name| variant(&findings, name).metrics.iter().any(|it| it.metric == "collector_cpu");
    assert!(!of("otel-10pct") && !of("placebo"));
    let cpu = finding(&findings, "otel", "cpu_per_request");
    assert!(cpu.ratio_high.is_some_and(|it| it < 0.25), "the collector is not the subject");
}

/// The resolved copy that a run leaves is the study that is judged.
#[test]
fn a_resolved_study_is_read_back() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let sketch = Sketch { budgets: vec![("rss", "50MiB")], ..ladder() };
    write(dir.path(), &sketch.study(), &sketch.runs());
    let study = read(dir.path()).expect("a whole run folder").study;
    std::fs::write(dir.path().join("study.yaml"), resolved_yaml(&study)).expect("a temporary folder");
    let again = read(dir.path()).expect("a whole run folder").study;
    assert_eq!(again, study);
}

/// Two looks share the level: a study that may be extended is judged at 97 % from the start.
#[test]
fn a_study_that_may_be_extended_has_wider_intervals() {
    let once = findings(&ladder());
    let twice = findings(&Sketch { more: "on_undecided: extend\n", ..ladder() });
    let width = |findings: &Findings| {
        let cpu = finding(findings, "otel", "cpu_per_request");
        cpu.ratio_high.expect("an interval") - cpu.ratio_low.expect("an interval")
    };
    assert!(width(&twice) > width(&once));
    let level = finding(&twice, "otel", "cpu_per_request").level.expect("an interval");
    assert!((0.965..0.98).contains(&level), "{level}");
    assert_eq!(finding(&once, "otel", "cpu_per_request").level.map(|it| it < 0.96), Some(true));
}
