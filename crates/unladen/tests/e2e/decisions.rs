//! What decides: a leak is found and none is invented, an undecided study goes on once, a ladder is told by step.

use unladen_judge::findings::{Outcome, Verdict};

use crate::harness::{Scratch, demo_study, finding, on_a_core, on_all_cores, pausing, with_ballast};
use crate::truth::{known_costs, range};

/// What the leaking variant leaks.
const LEAK: f64 = 1024.0 * 1024.0;

/// Bounds: as in `truth.rs`, the range of the rounds; with 6 rounds it misses the truth in at most 2 · 2⁻⁶, so here the middle is
/// asked to lie within half of the truth, and the placebo's within half of it around zero: the margin that the verdict uses.
#[test]
#[ignore = "measures for 4 minutes: make decisions"]
fn a_leak_of_a_mebibyte_per_minute_is_found() {
    let _turn = on_all_cores();
    let scratch = Scratch::with(&with_ballast(&demo_study(
        "leak",
        "  leaking:\n    services: {consumer: {args: [--leak-mib-per-minute, '1']}}\n",
    )));
    let output = scratch.run(&["--window", "11s"]).ends_with(0);
    println!("{}", output.out);
    let findings = scratch.findings();
    let leak = finding(&findings, "leaking", "memory_slope");
    let found = leak.difference.expect("six rounds");
    println!(
        "leak: 1 MiB/min was put in, found {:.3} [{:.3}, {:.3}] MiB/min",
        found / LEAK,
        leak.difference_low.expect("six rounds") / LEAK,
        leak.difference_high.expect("six rounds") / LEAK
    );
    assert!((found / LEAK - 1.0).abs() < 0.5, "{found}");
    assert_eq!(leak.verdict, Verdict::Costs);
    let sentence = &findings.conclusions.iter().find(|it| it.variant == "leaking").expect("told").words;
    assert!(sentence.contains("may leak"), "{sentence}");

    let placebo = finding(&findings, "placebo", "memory_slope");
    assert!(placebo.difference.expect("six rounds").abs() < 0.5 * LEAK, "{:?}", placebo.difference);
    assert!(!output.out.contains("placebo may leak"), "{}", output.out);
}

/// 100 µs are put in and 100 µs are the limit: more rounds cannot be avoided, unless the first look errs.
#[test]
fn an_undecided_study_goes_on_once() {
    let _turn = on_a_core();
    let study = pausing("extended", "  burn:\n    services: {consumer: {args: [--burn-us, '100']}}\n");
    let scratch = Scratch::with(&format!("{study}budgets: {{cpu_per_request: 100us}}\non_undecided: extend\n"));
    let short = ["--rounds", "7", "--warmup", "200ms", "--window", "700ms", "--set", "placebo=false"];
    let output = scratch.run(&short).ends_with(0);
    let findings = scratch.findings();
    if output.err.contains("going on, once, to 14") {
        assert_eq!(findings.rounds_begun, 14, "{}", output.err);
    } else {
        assert_eq!(findings.rounds_begun, 7, "{}", output.err);
        assert_ne!(findings.budgets[0].outcome, Outcome::Undecided, "{}", output.out);
    }
    let level = finding(&findings, "burn", "cpu_per_request").level.expect("an interval");
    assert!(level > 0.965, "both looks are at 97 %, not at {level}");

    // The gate says the same with its exit code, and leaves a file for CI.
    let code = match findings.budgets[0].outcome {
        Outcome::Pass => 0,
        Outcome::Fail => 1,
        Outcome::Undecided => 3,
    };
    scratch.unladen(&["gate", "out", "--junit", "unladen.xml", "--format", "markdown"]).ends_with(code);
    let xml = std::fs::read_to_string(scratch.path("unladen.xml")).expect("written");
    assert!(xml.contains("cpu_per_request within 100us"), "{xml}");
}

/// Two steps of known size, one on the other, and both together. Bounds: the range of the rounds, as in `truth.rs`: a machine that
/// was busy moves the middle by more than any share of the truth that would be worth asking for.
#[test]
fn a_ladder_finds_what_each_step_adds() {
    let findings = known_costs();
    let ladder = &findings.ladders[0];
    println!("{}", ladder.words);
    for (step, truth) in ladder.steps.iter().chain([&ladder.whole]).zip([100.0, 200.0, 300.0]) {
        let cpu = step.finding("cpu_per_request").expect("measured");
        let (low, high) = range(cpu);
        assert!(low <= truth && truth <= high, "{}: {truth} µs were put in, the rounds say {low} to {high}", step.to);
        assert_eq!(cpu.verdict, Verdict::Costs, "{}", step.to);
    }
}

/// Spans cost the same whether they are told by a line over five doses or by the step from one span to twenty. With equal noise the
/// ladder's increment, from two points, scatters a little more than the line's slope: sound as they are, it falls outside of the slope's
/// interval in 15 of 100 studies of 8 rounds (simulated), so that is printed, not asked. Asked is that the two intervals overlap,
/// which they fail to do in 3 of 1,000.
#[test]
#[ignore = "measures for 3 minutes: make decisions"]
fn the_line_over_the_doses_agrees_with_the_ladder() {
    let _turn = on_all_cores();
    let traced = r#"env: {OTEL_EXPORTER_OTLP_ENDPOINT: "http://${sink.otlp_grpc}"}, args: [--trace, otlp, --spans"#;
    let study = with_ballast(&demo_study(
        "dose",
        &format!(
            "  full:\n    services: {{consumer: {{{traced}, '${{var.spans}}']}}}}\n  one:\n    services: {{consumer: {{{traced}, '1']}}}}\n  \
             twenty:\n    services: {{consumer: {{{traced}, '20']}}}}\n"
        ),
    ));
    let more = "variables: {spans: '2'}\nmatrix: {spans: [1, 2, 5, 10, 20]}\nladder: [one, twenty]\n";
    let scratch = Scratch::with(&format!("{study}{more}"));
    // 8 rounds are the least that can tell a bend.
    let short = ["--rounds", "8", "--warmup", "300ms", "--window", "1500ms", "--set", "load.rate=600"];
    let output = scratch.run(&[&short[..], &["--set", "placebo=false"]].concat()).ends_with(0);
    println!("{}", output.out);
    let findings = scratch.findings();
    let names: Vec<&str> = findings.variants.iter().map(|it| it.name.as_str()).collect();
    let doses = ["full@spans=1", "full@spans=2", "full@spans=5", "full@spans=10", "full@spans=20"];
    assert_eq!(names, [&doses[..], &["one", "twenty"]].concat(), "the baseline is run once");
    let line = findings.doses.iter().find(|it| it.metric == "cpu_per_request").expect("five doses");
    let slope = line.per_unit.expect("eight rounds");
    let step = findings.ladders[0].steps[0].finding("cpu_per_request").expect("measured");
    let per_span = |value: Option<f64>| value.expect("eight rounds") / 19.0;
    let (found, low, high) = (per_span(step.difference), per_span(step.difference_low), per_span(step.difference_high));
    println!("by the line {slope:?}, by the ladder {found} [{low}, {high}] µs per span");
    assert!(slope.value > 0.0, "{slope:?}");
    println!("the slope's interval holds the ladder's increment: {}", slope.low <= found && found <= slope.high);
    assert!(slope.low <= high && low <= slope.high, "by the line {slope:?}, by the ladder {found} [{low}, {high}]");
    // The points and the line are there to be drawn.
    assert_eq!(line.points.iter().map(|it| it.dose).collect::<Vec<_>>(), [1.0, 2.0, 5.0, 10.0, 20.0]);
    assert!(line.points.iter().all(|it| it.difference.is_some() && it.fitted.is_some()), "{line:?}");
    assert!(output.out.contains("CPU per request over spans: full"), "{}", output.out);
}
