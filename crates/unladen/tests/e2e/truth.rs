//! Known cost comes back: what is put into a variant must be found, and nothing must be found where nothing was put.
//!
//! Bounds. CPU and memory are put into variants of their own: a slower request also overlaps more often with the next, and
//! more of them under way hold more buffers. There is no placebo, because one in a hundred voids its study by chance; `same`
//! is there instead. A 95 % interval misses the truth in 1 of 20 studies by construction, so a test that asked for it would fail
//! that often. Asked here is the range of the round differences: with 11 rounds or more and no bias it misses the truth with
//! probability at most 2 · 2⁻¹¹ < 1/1,000 (the exact sign test), whatever the distribution. `docs/explanation/soundness.md` prints the 95 %
//! intervals of such studies.

use std::sync::LazyLock;

use unladen_journal::record::Ledger;
use unladen_judge::findings::{Finding, Findings, Verdict};

use crate::harness::{Scratch, counting, demo_study, finding, on_a_core, pausing};

/// CPU that the `burn` variant burns per request, µs.
const BURN_US: f64 = 100.0;
/// Memory that the `hold` variant holds, bytes.
const HOLD_BYTES: f64 = 50.0 * 1024.0 * 1024.0;

/// Differences of the rounds, smallest and largest.
pub(crate) fn range(finding: &Finding) -> (f64, f64) {
    finding
        .rounds
        .iter()
        .map(|round| round.value - round.baseline)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), difference| (low.min(difference), high.max(difference)))
}

/// The study of known costs, run once for all tests that ask it: steps of CPU, memory, and nothing.
pub(crate) fn known_costs() -> &'static Findings {
    static FINDINGS: LazyLock<Findings> = LazyLock::new(|| {
        let _turn = on_a_core();
        let study = pausing(
            "known-cost",
            r#"  burn:
    services: {consumer: {args: [--burn-us, '100']}}
  more:
    services: {consumer: {args: [--burn-us, '300']}}
  hold:
    services: {consumer: {args: [--hold-mib, '50']}}
  same: {}
"#,
        );
        let scratch = Scratch::with(&format!("{study}ladder: [baseline, burn, more]\n"));
        let short = ["--rounds", "14", "--warmup", "200ms", "--window", "500ms", "--set", "placebo=false"];
        let output = scratch.run(&short).ends_with(0);
        println!("{}", output.out);
        scratch.findings()
    });
    &FINDINGS
}

#[test]
fn known_cost_comes_back() {
    let findings = known_costs();
    // Three rounds may have lost a run to a disturbance of the machine.
    assert!(findings.rounds >= 11, "{} rounds", findings.rounds);

    for (variant, metric, truth) in [("burn", "cpu_per_request", BURN_US), ("hold", "rss", HOLD_BYTES)] {
        let found = finding(findings, variant, metric);
        let (low, high) = range(found);
        println!(
            "{metric}: {truth} was put in, found {:?} [{:?}, {:?}], range of the rounds {low} to {high}",
            found.difference, found.difference_low, found.difference_high
        );
        assert!(low <= truth && truth <= high, "{metric}: {truth} is outside of {low} to {high}");
        assert_eq!(found.verdict, Verdict::Costs, "{metric}");
    }
    // "costs" where nothing was put in happens in 2.5 % of the findings by construction; a range that excludes zero
    // happens in less than 1 of 2,000.
    for metric in ["cpu_per_request", "rss"] {
        let (low, high) = range(finding(findings, "same", metric));
        assert!(low <= 0.0 && 0.0 <= high, "{metric} of identical variants differs by {low} to {high}");
    }
}

#[test]
fn every_span_is_accounted_for() {
    let _turn = counting();
    let scratch = Scratch::with(&demo_study(
        "all-spans",
        r#"  otel:
    spans_per_request: 4
    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: "http://${sink.otlp_grpc}"}, args: [--trace, otlp]}}
  tenth:
    spans_per_request: 4
    sampled: 10%
    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: "http://${sink.otlp_grpc}"}, args: [--trace, otlp]}}
"#,
    ));
    scratch.run(&["--rounds", "2", "--set", "placebo=false"]);
    // The books are closed whatever the machine did to the latencies, so every run is asked.
    let runs = scratch.runs();
    for (variant, share) in [("otel", 1.0), ("tenth", 0.1)] {
        let ledgers: Vec<&Ledger> =
            runs.iter().filter(|run| run.variant == variant).filter_map(|run| run.ledger.as_ref()).collect();
        assert!(ledgers.len() >= 2, "{variant}");
        for ledger in ledgers {
            assert_eq!((ledger.lost, ledger.duplicates, ledger.unexplained), (0, 0, 0), "{variant}: {ledger:?}");
            assert_eq!(ledger.expected, ledger.saved + ledger.sampled_out, "{variant}");
            // 2.5 s at 300/s with 4 spans are 3,000 spans. A tenth of 750 requests is 75 ± 8.2 (one sigma); ±42 is five.
            assert_eq!(ledger.expected, 3_000, "{variant}");
            let sampled = ledger.saved as f64 / 4.0;
            assert!((sampled - 750.0 * share).abs() <= 42.0, "{variant}: {sampled} requests");
        }
    }
}
