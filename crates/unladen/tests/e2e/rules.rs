//! What a study may ask of every run: lines that services must say, programs that set it up and that check it, the same work.

use unladen_journal::notices::Notice;
use unladen_journal::record::RunRecord;
use unladen_judge::findings::{Findings, VariantFindings, Verdict};

use crate::harness::{CliOutput, Scratch, assert_nothing_left, closed_loop, counting};

/// A closed loop with more services.
fn study(mark: &str, variants: &str, services: &str) -> String {
    closed_loop(mark, variants).replace("  consumer:\n    needs", &format!("{services}  consumer:\n    needs"))
}

/// The study without requests of unladen's own: this program, here a line of `sh`, is its load.
fn driven(mark: &str, script: &str, variants: &str, services: &str) -> String {
    let driver = format!("  writer:\n    role: driver\n    command: [sh, -c, {script:?}]\n    env: {{STORED: 200}}\n");
    study(mark, variants, &(driver + services))
        .replace("  connections: 2\n", "  driver: writer\n  work: 200\n")
        .replace("  url: \"http://127.0.0.1:${port.consumer}/work\"\n", "")
}

fn short(scratch: &Scratch, rounds: &str, more: &[&str]) -> CliOutput {
    let usual = ["--rounds", rounds, "--warmup", "200ms", "--window", "300ms", "--set", "placebo=false"];
    scratch.run(&[&usual, more].concat())
}

fn runs(scratch: &Scratch, variant: &str) -> Vec<RunRecord> {
    let runs = scratch.runs();
    runs.into_iter().filter(|run| run.variant == variant).collect()
}

fn variant<'a>(findings: &'a Findings, name: &str) -> &'a VariantFindings {
    findings.variants.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no variant {name}"))
}

/// An agent that says that it is there, and one that is switched on and silently not loaded.
#[test]
fn a_variant_without_its_agent_has_no_verdict() {
    let _turn = counting();
    let consumer = "\"${unladen}\", __demo, consumer, --port, \"${port.consumer}\", --provider, \"http://127.0.0.1:${port.provider}/provider\"";
    let variants = format!(
        "  loaded:\n    services:\n      consumer:\n        command: [sh, -c, 'echo Load agent 2.2 done; exec \"$$0\" \"$$@\"', {consumer}]\n        expect_log: [Load agent .* done$, ready|agent]\n  silent:\n    services: {{consumer: {{expect_log: Load agent .* done}}}}\n"
    );
    let scratch = Scratch::with(&study("expected", &variants, ""));
    let output = short(&scratch, "2", &[]).ends_with(0);
    assert!(runs(&scratch, "baseline").iter().chain(&runs(&scratch, "loaded")).all(|run| run.void.is_none()));
    let silent = runs(&scratch, "silent");
    assert_eq!(silent.len(), 2, "the study goes on");
    for run in &silent {
        let void = run.void.as_ref().expect("it does not count");
        let words = format!("consumer did not log `Load agent .* done` ({}/logs/consumer.log)", run.dir);
        assert!(void.to_string().starts_with(&words), "{void}");
    }
    let refused = variant(&scratch.findings(), "silent").refused.clone();
    assert_eq!(refused.as_deref(), Some("none of its runs counts"));
    assert!(output.out.contains("The agent is probably not loaded"), "{}", output.out);
    scratch.unladen(&["gate", "out", "--budget", "cpu_per_request=900%"]).ends_with(3);
}

/// Nobody measures for a minute what will not count.
#[test]
fn a_long_window_ends_when_the_line_is_overdue() {
    let _turn = counting();
    let text = study("overdue", "  same: {}\n", "")
        .replace("    needs: [provider]\n", "    needs: [provider]\n    expect_log: never said\n");
    let scratch = Scratch::with(&text);
    let started = std::time::Instant::now();
    let output = scratch.run(&["--rounds", "1", "--window", "60s", "--set", "placebo=false"]);
    assert!(started.elapsed().as_secs() < 50, "two runs of five seconds: {:?}", started.elapsed());
    output.ends_with(2);
    let all = [runs(&scratch, "baseline"), runs(&scratch, "same")].concat();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|run| matches!(run.void, Some(Notice::ExpectedLogMissing { .. }))), "{all:?}");
    scratch.assert_nothing_left();
}

/// Checks run one after the other while the services are up; what they say of their own failure is told.
#[test]
fn a_check_voids_the_runs_that_it_does_not_find_well() {
    let _turn = counting();
    let services = r#"  event:
    role: setup
    needs: [consumer]
    command: [sh, -c, 'echo > ${run.dir}/event; echo "{\"events\": 1}"']
  up:
    role: check
    command: ["${unladen}", load, "http://127.0.0.1:${port.consumer}/work", --requests, '1', -c, '1', --json, "${run.dir}/up.json"]
  seats:
    role: check
    needs: [up]
    command: [sh, -c, 'test -e ${run.dir}/event && test -e ${run.dir}/up.json || exit 9; echo "seat 7 sold twice"; sleep $$NAP; exit $$CODE # seats']
    env: {CODE: 0, NAP: 0}
    at_most: 500ms
    stop: {grace: 100ms}
"#;
    let variants = "  greedy:\n    services: {seats: {env: {CODE: 3}}}\n  slow:\n    services: {seats: {env: {NAP: 600}}}\n  otel:\n    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${sink.otlp_grpc}\"}, args: [--trace, otlp]}}\n";
    let scratch = Scratch::with(&study("checked", variants, services));
    let output = short(&scratch, "1", &[]).ends_with(0);
    for well in ["baseline", "otel"] {
        let [run] = &runs(&scratch, well)[..] else { panic!("one round of {well}") };
        assert_eq!(run.void, None, "{well}");
        assert_eq!(run.reported_numbers["event"]["events"], 1.0);
        assert!(run.phases.check_s > 0.0 && run.phases.setup_s > 0.0, "{:?}", run.phases);
        let processes: Vec<&str> = run.processes.iter().map(|process| process.service.as_str()).collect();
        assert!(!processes.iter().any(|name| ["event", "up", "seats"].contains(name)), "no cost: {processes:?}");
    }
    let why = |name: &str| runs(&scratch, name)[0].void.as_ref().map(ToString::to_string).expect("void");
    let greedy = why("greedy");
    assert!(greedy.contains("check seats failed") && greedy.contains("exit 3"), "{greedy}");
    assert!(greedy.contains("seat 7 sold twice") && output.out.contains("seat 7 sold twice"), "{}", output.out);
    assert!(why("slow").contains("still running after 0.5 s"), "{}", why("slow"));
    assert!(scratch.path("out/runs/calibration-otel/event").exists(), "a calibration needs it, too");
    assert_nothing_left("# seats");
}

/// A writer whose rows are thrown away is fast, and nothing was saved by that.
#[test]
fn whoever_stores_less_has_no_verdict() {
    let _turn = counting();
    let script = "sleep 0.05; echo '{\"sent\": 200, \"stored\": '$$STORED'}'; echo bye >&2";
    let variants =
        "  same: {}\n  prohibited:\n    label: write prohibited\n    services: {writer: {env: {STORED: 0}}}\n";
    let scratch = Scratch::with(&driven("stores", script, variants, ""));
    let output = short(&scratch, "2", &[]).ends_with(0);
    for (name, stored) in [("baseline", 200.0), ("same", 200.0), ("prohibited", 0.0)] {
        for run in runs(&scratch, name) {
            assert_eq!(
                (run.reported_numbers["writer"]["sent"], run.reported_numbers["writer"]["stored"]),
                (200.0, stored)
            );
        }
    }
    let findings = scratch.findings();
    assert_eq!(variant(&findings, "same").refused, None);
    let refused = variant(&findings, "prohibited").refused.clone().expect("refused");
    assert!(refused.contains("writer reports `stored` 0, the baseline's reports 200"), "{refused}");
    assert!(variant(&findings, "prohibited").metrics.iter().all(|it| it.verdict == Verdict::CannotTell));
    assert!(output.out.contains("No verdict on write prohibited"), "{}", output.out);
    for column in ["writer · stored", "writer · sent", "0 (not 200)"] {
        assert!(output.out.contains(column), "no {column} in {}", output.out);
    }
}

#[test]
fn a_setup_comes_before_the_load_and_one_that_fails_ends_the_study() {
    let _turn = counting();
    let setup = |code: u32| {
        format!(
            "  event:\n    role: setup\n    command: [sh, -c, 'echo > ${{run.dir}}/event; echo no such topic; exit {code}']\n"
        )
    };
    let scratch = Scratch::with(&driven("set-up", "test -e ${run.dir}/event", "  same: {}\n", &setup(0)));
    short(&scratch, "1", &[]).ends_with(0);
    assert!(runs(&scratch, "same").iter().all(|run| run.void.is_none()));
    let scratch = Scratch::with(&driven("no-set-up", "true", "  same: {}\n", &setup(4)));
    short(&scratch, "1", &[]).ends_with(2).complains(&["setup event failed (exit 4)", "no such topic"]);
}
