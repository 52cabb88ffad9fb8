//! Alternating rounds say the truth: known costs come back, CPU is booked on the variant that used it, whenever it did, and what must be
//! refused is refused.
//!
//! Bounds. Asked is the median of the rounds, and only if it is beyond its bound, whether the truth is outside of all rounds, as in
//! `truth.rs`. The median of 7 is beyond a bound only if 4 rounds are, that of 5 if 3 are: if one round in 25 is, this happens in less
//! than 1 of 1,000 studies (35 · 0.04⁴ = 0.0001, 10 · 0.04³ = 0.0006). On a machine so busy that more rounds are, all of them are on one
//! side of the truth in 2 · 2⁻⁷ or 2 · 2⁻⁵ of the studies. The bounds are several times the distance that rounds had from the truth when
//! they were chosen.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use unladen_journal::record::{Design, RunRecord};
use unladen_judge::findings::{Finding, Findings, RoundValue, Verdict};

use crate::harness::{
    CliOutput, Scratch, closed_loop, counting, demo_study, finding, on_a_core, on_all_cores, with_ballast,
};
use crate::truth::range;

/// Requests per second of the load in [`demo_study`].
const RATE: f64 = 300.0;
/// What batches of `rhythms` cost, per request, µs.
const BATCH_US: f64 = 2_000.0 / 40.0;
/// What its first request after a pause costs more, µs.
const COLD_US: f64 = 150.0;
/// CPU that `burn` burns and `deferred` leaves behind, per request, µs.
const BURN_US: f64 = 100.0;
/// Memory that `hold` holds, bytes.
const HOLD_BYTES: f64 = 50.0 * 1024.0 * 1024.0;
/// What `idle` burns in a second, ms, whatever it is asked.
const IDLE_MS: f64 = 20.0;
/// What that makes of a request, µs: the load has [`RATE`] requests in each second that a variant has for itself.
const IDLE_US: f64 = IDLE_MS * 1e3 / RATE;

/// How far the CPU per request of a round may be from the truth, µs: a tenth of what is put in, and about as much of the service's own.
const CPU_BOUND_US: f64 = 12.0;
/// The same of a variant whose idle CPU is told apart: it comes in slices of 2 ms, of which one more or less falls into the second in
/// which it is measured, and is multiplied by the time that the others have. Idle CPU that is taken for work would be `IDLE_US` more
/// for each other variant.
const IDLE_BOUND_US: f64 = 30.0;

/// The variants that cost something known, and one that does not.
const KNOWN: &str = r#"  burn:
    services: {consumer: {args: [--burn-us, '100']}}
  hold:
    services: {consumer: {args: [--hold-mib, '50']}}
  idle:
    services: {consumer: {args: [--idle-burn-ms-per-second, '20']}}
  deferred:
    services: {consumer: {args: [--deferred-us, '100', --deferred-by-s, '2']}}
  rhythms:
    services: {consumer: {args: [--cold-us, '150', --batch-us, '2000', --batch-of, '40']}}
  same: {}
"#;

/// Runs a study of the embedded service without a placebo, whether the machine lets it come to a verdict or not.
fn by_design(design: &str, study: &str, more: &[&str]) -> (Scratch, CliOutput) {
    let scratch = Scratch::with(study);
    let output = scratch.run(&[&["--design", design, "--set", "placebo=false"], more].concat());
    println!("{}", output.out);
    let wanted = if design == "alternating" { Design::Alternating } else { Design::Separate };
    assert!(scratch.runs().iter().all(|run| run.design == wanted), "it fell back: {}\n{}", output.err, output.out);
    (scratch, output)
}

/// The same, and it must come to a verdict.
fn measured(design: &str, study: &str, more: &[&str]) -> Scratch {
    let (scratch, output) = by_design(design, study, more);
    output.ends_with(0);
    scratch
}

fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "nothing was measured");
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn differences(finding: &Finding) -> Vec<f64> {
    finding.rounds.iter().map(|round| round.difference).collect()
}

/// Fails the test unless the median of the rounds is as near to the truth as `bound`, or the truth lies among the rounds.
#[track_caller]
fn assert_near(findings: &Findings, variant: &str, metric: &str, truth: f64, bound: f64) {
    let differences = differences(finding(findings, variant, metric));
    println!("{metric} of {variant}: {truth} was put in, the rounds say {differences:.1?}");
    assert!(differences.len() >= 4, "{} rounds", differences.len());
    let found = median(differences);
    let (low, high) = range(finding(findings, variant, metric));
    let is_near = (found - truth).abs() <= bound;
    assert!(is_near || (low..=high).contains(&truth), "{metric} of {variant}: {found}, not {truth} ± {bound}");
}

/// The study of known costs in seven variants, run once for all tests that ask it. The warm-up of all of them together lasts as long as
/// work is deferred: what the requests of the warm-up leave for the blocks is then what those of the blocks leave for later.
fn known_costs() -> &'static (Findings, Vec<RunRecord>) {
    static MEASURED: LazyLock<(Findings, Vec<RunRecord>)> = LazyLock::new(|| {
        let _turn = on_all_cores();
        let study =
            with_ballast(&demo_study("by-turns", KNOWN)).replace("quiet: 100ms, limit: 2s", "quiet: 2500ms, limit: 3s");
        let short = ["--rounds", "7", "--warmup", "300ms", "--window", "1s", "--set", "alone=300ms"];
        let scratch = measured("alternating", &study, &short);
        (scratch.findings(), scratch.runs())
    });
    &MEASURED
}

/// A study of idle CPU with a window of a second.
fn idle_study(design: &str, only: &str, rounds: &str) -> Scratch {
    let short = ["--rounds", rounds, "--warmup", "300ms", "--window", "1s", "--set", "alone=300ms", "--only", only];
    measured(design, &with_ballast(&demo_study("idle", KNOWN)), &short)
}

#[test]
fn known_cost_comes_back() {
    let (findings, runs) = known_costs();
    assert_near(findings, "burn", "cpu_per_request", BURN_US, CPU_BOUND_US);
    assert_near(findings, "same", "cpu_per_request", 0.0, CPU_BOUND_US);
    // A process that is let alone gives some of its memory back, or does not.
    assert_near(findings, "hold", "rss", HOLD_BYTES, HOLD_BYTES / 25.0);
    assert_near(findings, "same", "rss", 0.0, HOLD_BYTES / 25.0);
    // A machine that others take away voids rounds, and of fewer than six there is no verdict.
    let burn = finding(findings, "burn", "cpu_per_request");
    let verdict = if burn.rounds.len() < 6 { Verdict::CannotTell } else { Verdict::Costs };
    assert_eq!(burn.verdict, verdict, "{} rounds", burn.rounds.len());
    for run in runs {
        let blocks = run.blocks.as_ref().expect("blocks of an alternating round");
        assert_eq!(blocks.variants, 7);
        assert!(blocks.kept > 0 && blocks.completed > 0, "{}: {blocks:?}", run.dir);
    }
}

/// What a pause makes dearer is no cost; what is done in batches is one.
#[test]
fn a_cold_start_is_not_charged_and_batches_are() {
    let (findings, runs) = known_costs();
    assert_near(findings, "rhythms", "cpu_per_request", BATCH_US, CPU_BOUND_US);
    let cold = |variant: &str| {
        let blocks = runs.iter().filter(|run| run.variant == variant).filter_map(|run| run.blocks.as_ref()?.cold_ns);
        median(blocks.collect()) / 1e3
    };
    let more = cold("rhythms") - cold("same");
    assert!((more - COLD_US).abs() < 50.0, "{more:.0} µs instead of {COLD_US}");
}

/// Work that is done two seconds later falls into the blocks of others, and is not theirs.
#[test]
fn deferred_work_is_charged_to_its_variant() {
    let (findings, _) = known_costs();
    assert_near(findings, "deferred", "cpu_per_request", BURN_US, CPU_BOUND_US);
    assert_near(findings, "same", "cpu_per_request", 0.0, CPU_BOUND_US);
}

/// A service that is awake for six variants' time uses six times its idle CPU, and is charged with it once.
#[test]
fn idle_cpu_does_not_depend_on_how_many_take_turns() {
    let (six, runs_of_six) = known_costs();
    assert_near(six, "idle", "cpu_per_request", IDLE_US, IDLE_BOUND_US);
    assert_is_idle(runs_of_six);
    let _turn = on_all_cores();
    for only in ["idle", "idle,same"] {
        let scratch = idle_study("alternating", only, "5");
        assert_near(&scratch.findings(), "idle", "cpu_per_request", IDLE_US, IDLE_BOUND_US);
        assert_is_idle(&scratch.runs());
    }
}

/// The same cost by the other design: there all of a run's CPU is in its window. Its rounds lie so far apart that only their range is
/// asked: with 11 rounds or more, one that misses the truth is had in less than 1 of 1,000 studies (2 · 2⁻¹¹).
#[test]
fn idle_cpu_costs_the_same_in_separate_runs() {
    // All that a service uses in the window is its own, on whichever core the load is.
    let _turn = on_a_core();
    let scratch = idle_study("separate", "idle", "14");
    let findings = scratch.findings();
    let found = finding(&findings, "idle", "cpu_per_request");
    println!("{IDLE_US} was put in, the rounds say {:.1?}", differences(found));
    let (low, high) = range(found);
    assert!(found.rounds.len() >= 11 && low <= IDLE_US && IDLE_US <= high, "{IDLE_US} is outside of {low} to {high}");
}

/// Idle CPU is known of every service: a fiftieth of a core of the one, nearly nothing of the others. In a second that is ten slices,
/// give or take one at either end.
#[track_caller]
fn assert_is_idle(runs: &[RunRecord]) {
    let idle = |variant: &str| {
        let of = runs.iter().filter(|run| run.variant == variant && run.void.is_none());
        let consumers = of.flat_map(|run| &run.processes).filter(|process| process.service == "consumer");
        median(consumers.map(|process| process.idle_cpu.expect("it is measured")).collect())
    };
    let (burner, bare) = (idle("idle"), idle("baseline"));
    assert!((burner - IDLE_MS / 1e3).abs() <= 0.005, "{burner} cores, not {}", IDLE_MS / 1e3);
    assert!(bare < 0.005, "{bare} cores of a service that does nothing");
}

/// A variant that stands still for 200 ms in every 700. What is reported of the others is theirs: without a stall they answer within
/// some ms even on a busy machine, and a request that waited for the stall of another would be tens of ms late. Of the variant itself
/// 2/7 of the requests wait for up to 200 ms, evenly: p90 is 130 ms, p95 165 ms and p99 193 ms, or they are not told. The rate is low, so
/// that what has waited is soon caught up with.
#[test]
fn a_stall_slows_nobody_else() {
    let _turn = on_a_core();
    let stalling =
        "  stalling:\n    services: {consumer: {args: [--stall-ms, '200', --stall-every-s, '0.7']}}\n  same: {}\n";
    let study = demo_study("stalling", stalling)
        .replace("rate: 300", "rate: 200")
        .replace("connections: 8", "connections: 100");
    // The stretch alone is three stalls long, wherever in a stall it begins.
    let time = ["--rounds", "5", "--warmup", "300ms", "--window", "1400ms", "--set", "alone=2100ms"];
    let scratch = measured("alternating", &study, &time);
    let findings = scratch.findings();
    let values = |variant: &str, metric: &str| {
        let variant = findings.variants.iter().find(|it| it.name == variant).expect("a variant");
        let finding = variant.finding(metric).filter(|it| it.refused.is_none() && variant.refused.is_none())?;
        let of = |side: fn(&RoundValue) -> f64| finding.rounds.iter().map(side).collect::<Vec<f64>>();
        let (baseline, value) = (of(|round| round.baseline), of(|round| round.value));
        println!("{metric} of the baseline {baseline:.0?}, of {} {value:.0?} µs", variant.name);
        Some((median(baseline), median(value)))
    };
    for (metric, max_ms) in [("latency_p50", 10.0), ("latency_p90", 20.0), ("latency_p95", 20.0), ("latency_p99", 50.0)]
    {
        if let Some((baseline, same)) = values("same", metric) {
            assert!(baseline < max_ms * 1e3 && same < max_ms * 1e3, "{metric}: {baseline} and {same} µs");
        }
    }
    for (metric, ms) in [("latency_p90", 130.0), ("latency_p95", 165.0), ("latency_p99", 193.0)] {
        if let Some((_, stalling)) = values("stalling", metric) {
            assert!((ms - 40.0..ms + 40.0).contains(&(stalling / 1e3)), "{metric}: {stalling} µs, not {ms} ms");
        }
    }
    // What a median says does not depend on what is refused.
    assert!(values("same", "latency_p50").is_some(), "the median is told");
}

/// Half of the answers are errors, or all of them are shorter: not the same work, whoever takes turns.
#[test]
fn unequal_work_has_no_verdict() {
    let _turn = counting();
    let variants = "  failing:\n    services: {consumer: {args: [--error-share, '0.5']}}\n  short:\n    services: {consumer: {args: [--body-extra, '10']}}\n  same: {services: {consumer: {args: [--body-extra, '100']}}}\n";
    let study = closed_loop("unequal", variants)
        .replace("  baseline: {}", "  baseline:\n    services: {consumer: {args: [--body-extra, '100']}}");
    let scratch = measured("alternating", &study, &["--rounds", "2", "--window", "600ms", "--set", "alone=200ms"]);
    let findings = scratch.findings();
    let refused = |name: &str| {
        let variant = findings.variants.iter().find(|it| it.name == name).expect("a variant");
        assert!(variant.metrics.iter().all(|it| it.verdict == Verdict::CannotTell), "{name}");
        variant.refused.clone().unwrap_or_else(|| panic!("{name} is judged"))
    };
    assert!(refused("failing").contains("none of its runs counts"), "{}", refused("failing"));
    assert!(refused("short").contains("response bodies"), "{}", refused("short"));
    let same = findings.variants.iter().find(|it| it.name == "same").expect("a variant");
    assert_eq!(same.refused, None, "what one variant does is not held against another");
}

/// Every variant has books of its own, and they balance: warm-up, blocks and the stretch alone.
#[test]
fn every_span_is_in_the_ledger_of_its_variant() {
    let _turn = counting();
    let traced = |name: &str, sampled: &str| {
        format!(
            "  {name}:\n    spans_per_request: 4\n{sampled}    services: {{consumer: {{env: {{OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${{sink.otlp_grpc}}\"}}, args: [--trace, otlp]}}}}\n"
        )
    };
    let variants = traced("otel", "") + &traced("tenth", "    sampled: 10%\n") + &traced("other", "");
    // The books are closed whatever the machine did to the latencies, so every run is asked.
    let (scratch, _) = by_design("alternating", &demo_study("books", &variants), &["--rounds", "2", "--window", "1s"]);
    let runs = scratch.runs();
    for (variant, share) in [("otel", 1.0), ("tenth", 0.1), ("other", 1.0)] {
        let of: Vec<&RunRecord> = runs.iter().filter(|run| run.variant == variant).collect();
        assert!(of.len() >= 2, "{variant}");
        for run in of {
            let ledger = run.ledger.as_ref().expect("books");
            assert_eq!((ledger.lost, ledger.duplicates, ledger.unexplained), (0, 0, 0), "{variant}: {ledger:?}");
            assert_eq!(ledger.expected, ledger.saved + ledger.sampled_out, "{variant}");
            let answered = run.load.as_ref().expect("a load").answered_total;
            assert_eq!(ledger.expected, answered * 4, "{variant}: four spans for each of {answered} requests");
            assert!(
                answered as f64 >= 1.3 * RATE,
                "{variant}: {answered} requests, the warm-up and the blocks alone are more"
            );
            // Of n requests a tenth is sampled, ± 5 standard deviations: by chance in less than 1 of 1,000,000 runs not.
            let (sampled, wanted) = (ledger.saved as f64 / 4.0, answered as f64 * share);
            let bound = 5.0 * (wanted * (1.0 - share)).sqrt();
            assert!((sampled - wanted).abs() <= bound, "{variant}: {sampled} of {answered} requests");
        }
    }
    for run in runs.iter().filter(|run| run.variant == "baseline") {
        assert_eq!(run.sink.as_ref().map_or(0, |sink| sink.saved), 0, "the bare service has sent nothing");
    }
}

/// Nine variants are more than are kept alive at once: two groups, each with the bare service and the placebo, and each difference is that
/// of two runs that were alive together.
#[test]
fn more_variants_than_can_be_alive_take_turns_in_groups() {
    let _turn = counting();
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let variants: String = names.iter().map(|name| format!("  {name}: {{}}\n")).collect();
    let scratch = Scratch::with(&closed_loop("groups", &variants));
    let short = ["--rounds", "1", "--warmup", "100ms", "--window", "600ms", "--set", "alone=100ms"];
    scratch.run(&[&["--design", "alternating"][..], &short].concat()).ends_with(0);
    let runs = scratch.runs();
    assert!(runs.iter().all(|run| (run.design, run.groups) == (Design::Alternating, 2)), "two groups");
    let of =
        |variant: &str| runs.iter().filter(|run| run.variant == variant).map(|run| run.round).collect::<BTreeSet<_>>();
    let both = BTreeSet::from([1, 2]);
    assert_eq!((of("baseline"), of("placebo")), (both.clone(), both));
    let (first, second): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| of(name) == BTreeSet::from([1]));
    assert_eq!((first.len(), second.len()), (4, 3), "{first:?} {second:?}");
    let findings = scratch.findings();
    assert_eq!(findings.rounds_begun, 1, "two rounds of the journal are one of the study");
    assert!(findings.design.expect("a design").words.contains("2 groups"));
}
