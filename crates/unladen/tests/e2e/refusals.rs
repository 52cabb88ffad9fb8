//! Refusals, each provoked for real on the embedded service: where a verdict would mislead there is none, and the reason is told.
//!
//! What cannot be provoked from outside is a generator whose own numbers break Little's law: there the journal of a real run
//! is changed by hand before it is judged. A generator that is late, one without free connections and one that is the limit of
//! a closed loop are in this file or in `loads.rs`; services that die and ports that are taken in `failures.rs`.

use std::fs;
use std::process::{Child, Command, Stdio};

use unladen_journal::notices::{LoadNotice, Notice};
use unladen_journal::record::RunRecord;
use unladen_judge::findings::{Findings, Severity, VariantFindings, Verdict};

use crate::harness::{Scratch, closed_loop, counting, demo_study, finding, on_a_core, on_all_cores, with_load};

fn variant<'a>(findings: &'a Findings, name: &str) -> &'a VariantFindings {
    findings.variants.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no variant {name}"))
}

/// Why nothing is said about the variant. None of its metrics may have a verdict.
#[track_caller]
fn refused(findings: &Findings, name: &str) -> String {
    let variant = variant(findings, name);
    for finding in &variant.metrics {
        assert_eq!(finding.verdict, Verdict::CannotTell, "{}", finding.metric);
    }
    variant.refused.clone().unwrap_or_else(|| panic!("{name} is judged: {:?}", findings.conclusions))
}

fn codes(findings: &Findings) -> Vec<&str> {
    findings.notices.iter().map(|notice| notice.code.as_str()).collect()
}

/// Burns a core from outside until it is dropped.
struct Burner(Child);

impl Burner {
    fn start() -> Self {
        let burner = Command::new("sh").args(["-c", "while :; do :; done # burner"]).stdout(Stdio::null()).spawn();
        Self(burner.expect("sh starts"))
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Half of the answers are errors: whatever they cost, it is not the price of the same work.
#[test]
fn a_variant_that_answers_500s_has_no_verdict() {
    let _turn = counting();
    let scratch = Scratch::with(&closed_loop(
        "errors",
        "  failing:\n    services: {consumer: {args: [--error-share, '0.5']}}\n  same: {}\n",
    ));
    let output = scratch.run(&["--rounds", "2", "--window", "500ms", "--set", "placebo=false"]).ends_with(0);
    let findings = scratch.findings();
    assert!(refused(&findings, "failing").contains("none of its runs counts"), "{}", output.out);
    assert!(output.out.contains("No verdict on failing") && output.out.contains("requests failed"), "{}", output.out);
    assert_eq!(variant(&findings, "same").refused, None);
    // A budget on it is not kept: it is undecided.
    scratch.unladen(&["gate", "out", "--budget", "cpu_per_request=900%"]).ends_with(3);
}

/// The answers are good, but shorter.
#[test]
fn a_variant_with_a_shorter_body_has_no_verdict() {
    let _turn = counting();
    // The default is a longer body, of which the variant falls short.
    let study = closed_loop("shorter", "  short:\n    services: {consumer: {args: [--body-extra, '10']}}\n")
        .replace("  baseline: {}", "  baseline:\n    services: {consumer: {args: [--body-extra, '100']}}");
    let scratch = Scratch::with(&study);
    let output = scratch.run(&["--rounds", "2", "--window", "500ms", "--set", "placebo=false"]).ends_with(0);
    let reason = refused(&scratch.findings(), "short");
    assert!(reason.contains("response bodies") && reason.contains("2 of its 2 runs"), "{reason}");
    assert!(output.out.contains("does not do the same work"), "{}", output.out);
}

/// A closed loop of which the generator is the limit: what it captures of a long body takes it six times as long as the answer
/// takes the service. Where something else holds its core it cannot be busy, and nothing can be asked.
#[test]
fn a_generator_that_is_the_limit_voids_the_run() {
    let _turn = on_all_cores();
    let costly = "  connections: 8\n  script: {order: sequence, requests: [{name: work, path: /work, capture: {sum: {regex: 'ok ([-0-9.]+)(?:x|xx)+'}}}]}";
    let study = with_load("saturated", costly, "  same: {}\n").replace(
        "- --provider",
        "- --iterations\n      - '1'\n      - --body-extra\n      - '100000'\n      - --provider",
    );
    let scratch = Scratch::with(&study);
    scratch.run(&["--rounds", "1", "--window", "1s", "--set", "placebo=false"]);
    for run in scratch.runs() {
        let load = run.load.as_ref().expect("a load");
        let subject =
            run.processes.iter().filter(|it| it.service == "consumer").filter_map(|it| it.cpu_ns).sum::<u64>();
        let subject_us = subject as f64 / 1e3 / load.completed_in_window as f64;
        assert!(load.cpu_us_per_request > 2.0 * subject_us, "{} and {subject_us} µs", load.cpu_us_per_request);
        if run.host.others_s > 0.05 * f64::from(run.host.cores) * run.phases.window_s {
            println!("not asked: other processes used {:.1} s of {:.1} s", run.host.others_s, run.phases.window_s);
            continue;
        }
        let void = run.void.expect("it does not count");
        assert!(
            matches!(
                void,
                Notice::Load(LoadNotice::GeneratorSaturated { .. }) | Notice::Load(LoadNotice::LittleLawOff { .. })
            ),
            "{void}"
        );
    }
}

/// A rate that nobody can send: the generator or the service falls behind, and either way the run does not count.
#[test]
fn a_rate_beyond_reach_voids_the_run() {
    let _turn = counting();
    let study = demo_study("beyond", "  same: {}\n").replace("  rate: 300\n", "  rate: 200000\n");
    let scratch = Scratch::with(&study);
    scratch.run(&["--rounds", "1", "--window", "500ms", "--set", "placebo=false"]).ends_with(2);
    for run in scratch.runs() {
        let void = run.void.expect("it does not count");
        let expected = matches!(
            void,
            Notice::Load(LoadNotice::RateMissed { .. })
                | Notice::Load(LoadNotice::OutOfConnections { .. })
                | Notice::Load(LoadNotice::GeneratorLate { .. })
                | Notice::Load(LoadNotice::Errors { .. })
        );
        assert!(expected, "{void}");
    }
    let findings = scratch.findings();
    assert!(findings.void.is_some_and(|reason| reason.contains("no run of the baseline counts")));
}

/// A quota of a twentieth of a core under a load that takes more: latencies are the quota's, CPU per request is still what it is.
#[test]
fn latencies_behind_a_quota_have_no_verdict() {
    let _turn = on_a_core();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: limits need root");
        return;
    }
    let held = "  held:\n    services: {consumer: {args: [--burn-us, '1000'], limits: {cpus: 0.2}}}\n";
    let scratch = Scratch::with(&closed_loop("throttled", held));
    scratch.run(&["--warmup", "200ms", "--window", "700ms", "--set", "placebo=false"]);
    let runs = scratch.runs();
    let throttled = |run: &&RunRecord| run.notices.iter().any(|it| matches!(it, Notice::Throttled { .. }));
    assert!(runs.iter().filter(|run| run.variant == "held").any(|run| throttled(&run)), "{runs:#?}");
    let findings = scratch.findings();
    let latency = finding(&findings, "held", "latency_p50");
    assert!(latency.refused.as_deref().is_some_and(|it| it.contains("throttled by its CPU limit")), "{latency:#?}");
    assert_eq!(latency.verdict, Verdict::CannotTell);
    assert_eq!(finding(&findings, "held", "cpu_per_request").verdict, Verdict::Costs);
}

/// A burner outside takes a core: the round is done again, whole, as long as the allowance lasts, and the warning stays.
#[test]
fn rounds_that_a_burner_disturbs_are_done_again() {
    let _turn = on_all_cores();
    let study = closed_loop("disturbed", "  same: {}\n").replace("at_most: 0%", "at_most: 50%");
    let scratch = Scratch::with(&study);
    let burner = Burner::start();
    let output = scratch.run(&["--rounds", "2", "--window", "500ms", "--set", "placebo=false"]);
    drop(burner);
    // A hypervisor may have taken its share, too.
    assert!(output.err.contains("round 1 is repeated: "), "{}", output.err);
    let attempts: Vec<(u32, u32)> = scratch.runs().iter().map(|run| (run.round, run.attempt)).collect();
    assert_eq!(attempts, [(1, 1), (1, 1), (1, 2), (1, 2), (2, 1), (2, 1)], "one of two rounds, both of its runs");
    let findings = scratch.findings();
    assert_eq!((findings.rounds_repeated, findings.rounds_begun), (1, 2));
    let codes = codes(&findings);
    assert!(codes.contains(&"rounds_repeated") && codes.contains(&"others_busy"), "{codes:?}");
    assert!(output.out.contains("rounds repeated: 1."), "{}", output.out);
}

/// Burners on every core: no idle moment is left, and the far quantiles are those of a queue.
#[test]
fn a_saturated_host_takes_the_verdict_from_far_quantiles() {
    let _turn = on_all_cores();
    // The service mostly sleeps: a generator may be late by a tenth of that before its run is void.
    let study = demo_study("busy-host", "  same: {}\n")
        .replace("- --provider", "- --delay-us\n      - '100000'\n      - --provider")
        .replace("connections: 8", "connections: 100");
    let scratch = Scratch::with(&study);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let burners: Vec<Burner> = (0..cores + 1).map(|_| Burner::start()).collect();
    let output = scratch.run(&["--window", "3500ms", "--rounds", "3", "--set", "placebo=false"]);
    drop(burners);
    let findings = scratch.findings();
    println!("{}", output.out);
    let notice = findings.notices.iter().find(|it| it.code == "host_saturated").expect("it is told");
    assert!(notice.text.contains("% busy") && notice.severity == Severity::Refusal, "{}", notice.text);
    let far = finding(&findings, "same", "latency_p90");
    assert!(far.refused.as_deref().is_some_and(|it| it.contains("measure the queue for the CPU")), "{far:?}");
    assert_eq!(finding(&findings, "same", "latency_p50").refused, None);
}

/// A service that slows down with every second: what it costs depends on when one looks.
#[test]
fn a_variant_that_drifts_has_no_verdict() {
    let _turn = on_a_core();
    let drifting = "  drifting:\n    services: {consumer: {args: [--slower-us-per-second, '3000']}}\n";
    let scratch = Scratch::with(&closed_loop("drift", drifting));
    let output = scratch.run(&["--warmup", "1s", "--window", "4s", "--set", "placebo=false"]).ends_with(0);
    let reason = refused(&scratch.findings(), "drifting");
    assert!(reason.contains("from the first to the second half of the window"), "{reason}");
    assert!(output.out.contains("No verdict on drifting"), "{}", output.out);
}

/// Three rounds have no interval, and no verdict is made of them.
#[test]
fn too_few_rounds_have_no_verdict() {
    let _turn = counting();
    let burn = "  burn:\n    services: {consumer: {args: [--burn-us, '500']}}\n";
    let scratch = Scratch::with(&closed_loop("few", burn));
    let arguments =
        ["--rounds", "3", "--window", "300ms", "--set", "placebo=false", "--set", "budgets.cpu_per_request=1%"];
    let output = scratch.run(&arguments).ends_with(0);
    let findings = scratch.findings();
    let cpu = finding(&findings, "burn", "cpu_per_request");
    assert_eq!((cpu.verdict, cpu.difference, cpu.rounds.len()), (Verdict::CannotTell, None, 3), "{}", output.out);
    assert!(cpu.words.starts_with("needs 6 rounds, has 3"), "{}", cpu.words);
    assert!(codes(&findings).contains(&"too_few_rounds"));
    scratch.unladen(&["gate", "out"]).ends_with(3);
}

/// A closed loop whose generator says that it got through half as much with the same latencies: time went missing between the
/// requests. No knob makes a generator do so; the journal of a real run is changed instead.
#[test]
fn a_breach_of_littles_law_has_no_verdict() {
    let _turn = counting();
    let scratch = Scratch::with(&closed_loop("little", "  same: {}\n"));
    scratch.run(&["--rounds", "1", "--window", "500ms", "--set", "placebo=false"]);
    let journal = scratch.path("out/journal.jsonl");
    let changed: Vec<String> = fs::read_to_string(&journal)
        .expect("a journal")
        .lines()
        .map(|line| {
            let mut record: serde_json::Value = serde_json::from_str(line).expect("JSON");
            if record["variant"] == "same" {
                let rate = record["load"]["rate"].as_f64().expect("a rate");
                record["load"]["rate"] = (rate / 2.0).into();
            }
            record.to_string()
        })
        .collect();
    fs::write(&journal, changed.join("\n") + "\n").expect("written");
    let output = scratch.unladen(&["report", "out"]).ends_with(0);
    assert!(output.out.contains("No verdict on same: none of its runs counts"), "{}", output.out);
    assert!(output.out.contains("requests were in flight on average"), "{}", output.out);
}
