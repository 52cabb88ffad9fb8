//! Ctrl-C and kill -9 in every phase of an alternating round, in which the processes of all variants are alive: a whole journal, nothing
//! left behind, and `--resume` goes on.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{CliOutput, Scratch, counting, demo_study};

/// The phases of an alternating round, as `live.json` has them.
const PHASES: [&str; 6] = ["start", "warm_up", "window", "alone", "drain", "stop"];

/// Two variants and a baseline, slow to start and to stop, so that each phase can be met.
fn study(mark: &str) -> String {
    let traced = "  otel:\n    spans_per_request: 4\n    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${sink.otlp_grpc}\"}, args: [--trace, otlp]}}\n  same: {}\n";
    demo_study(mark, traced)
        .replace("- --provider", "- --slow-start-ms\n      - '200'\n      - --ignore-sigterm\n      - --provider")
        .replace("grace: 3s", "grace: 400ms")
}

/// Starts the study, or goes on with it.
fn start(scratch: &Scratch) -> Child {
    let is_begun = scratch.path("out/study.yaml").exists();
    let arguments = if is_begun {
        vec!["run", "--resume", "out", "--plain"]
    } else {
        let short = ["--rounds", "1", "--window", "600ms", "--set", "alone=400ms", "--set", "calibration.requests=0"];
        [&["run", ".", "--out", "out", "--plain", "--design", "alternating"][..], &short].concat()
    };
    let mut command = scratch.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("unladen starts")
}

/// Waits until the study is in this phase.
fn wait_for(scratch: &Scratch, child: &mut Child, phase: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        let live = std::fs::read(scratch.path("out/live.json")).unwrap_or_default();
        let live: serde_json::Value = serde_json::from_slice(&live).unwrap_or_default();
        // A killed one's file stays until the next one writes its own.
        if live["phase"] == phase && live["pid"] == child.id() {
            return;
        }
        if child.try_wait().expect("a child").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    panic!("never in phase {phase}: {}", child.wait().expect("a child"));
}

/// Interrupts one round in phase after phase by `signal`, then lets it come to its end.
fn interrupt_everywhere(mark: &str, signal: Signal, code: Option<i32>) {
    let _turn = counting();
    let scratch = Scratch::with(&study(mark));
    for phase in PHASES {
        let mut child = start(&scratch);
        wait_for(&scratch, &mut child, phase);
        kill_process(Pid::from_child(&child), signal).expect("a signal to a child");
        let output = CliOutput::new(&child.wait_with_output().expect("it ends"));
        // What is being stopped has been measured: when nothing is left to do, the study comes to its end.
        let is_done = phase == "stop" && output.code == Some(0);
        assert!(output.code == code || is_done, "{phase}: {:?}: {}", output.code, output.err);
        assert!(!output.err.contains("panicked"), "{phase}: {}", output.err);
        if code.is_some() && !is_done {
            assert!(output.err.contains("interrupted") && output.err.contains("--resume"), "{phase}: {}", output.err);
        }
        scratch.wait_until_nothing_left();
        // Every line is whole, and none is of a round that did not come to its end.
        let journal = std::fs::read_to_string(scratch.path("out/journal.jsonl")).unwrap_or_default();
        for line in journal.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{phase}: {error}: {line}"));
        }
        scratch.unladen(&["report", "out"]);
    }
    let output = CliOutput::new(&start(&scratch).wait_with_output().expect("it ends"));
    let runs = scratch.runs();
    for variant in ["baseline", "placebo", "otel", "same"] {
        assert!(runs.iter().any(|run| run.variant == variant && run.round == 1), "{variant}: {}", output.err);
    }
    scratch.wait_until_nothing_left();
}

#[test]
fn ctrl_c_in_any_phase_leaves_a_folder_that_goes_on() {
    interrupt_everywhere("ctrl-c-turns", Signal::INT, Some(130));
}

#[test]
fn kill_minus_nine_in_any_phase_leaves_nothing_running() {
    interrupt_everywhere("kill-9-turns", Signal::KILL, None);
}
