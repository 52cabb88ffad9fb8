//! The ledger finds the truth: a known number of spans is thrown away, a queue is too small, a share is sampled. The embedded
//! service with the real OpenTelemetry SDK for Rust, which repeats nothing that was refused or lost.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use unladen_journal::record::RunRecord;
use unladen_study::measured::{Measured, read};

use crate::harness::{CliOutput, Scratch, counting, demo_study};

/// A traced consumer as a variant, with further keys.
fn traced(name: &str, env: &str, keys: &str) -> String {
    format!(
        "  {name}:\n    services: {{consumer: {{env: {{OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${{sink.otlp_grpc}}\", OTEL_SERVICE_NAME: consumer, {env}}}, args: [--trace, otlp]}}}}\n{keys}"
    )
}

/// Every line that the Rust SDK writes about a queue that was too small holds the total.
const QUEUE: &str = "    losses: {queue: {log: 'dropped_span_count=(\\d+)', numbers: last}}\n";

fn measured(scratch: &Scratch) -> Measured {
    read(&scratch.path("out")).expect("a run folder")
}

fn runs<'a>(measured: &'a Measured, variant: &str) -> Vec<&'a RunRecord> {
    let runs: Vec<&RunRecord> = measured.runs.iter().filter(|run| run.variant == variant).collect();
    assert!(!runs.is_empty(), "no run of {variant}");
    runs
}

fn stages(stages: &[(&str, u64)]) -> BTreeMap<String, u64> {
    stages.iter().filter(|(_, spans)| *spans > 0).map(|(stage, spans)| ((*stage).to_owned(), *spans)).collect()
}

/// One round is enough, since every span is counted.
fn run(scratch: &Scratch) -> CliOutput {
    scratch.run(&["--rounds", "1", "--set", "placebo=false", "--set", "load.rate=500"])
}

#[test]
fn what_the_sink_throws_away_is_lost_in_the_export() {
    let _turn = counting();
    let keys = "    faults: {drop: 10%}\n    spans_per_request: 4\n";
    // Many small batches, so that a tenth of them is a number worth looking at.
    let env = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE: 32, OTEL_BSP_SCHEDULE_DELAY: 20";
    let scratch = Scratch::with(&demo_study("drop-a-tenth", &traced("bad", env, keys)));
    let output = run(&scratch);
    let measured = measured(&scratch);
    for run in runs(&measured, "bad") {
        let (ledger, sink) = (run.ledger.as_ref().expect("a ledger"), run.sink.as_ref().expect("a sink"));
        assert!(sink.dropped > 100, "{sink:?}");
        assert_eq!(ledger.lost, sink.dropped, "{ledger:?}\n{}", output.err);
        assert_eq!(ledger.by_stage, stages(&[("export", sink.dropped)]));
        assert_eq!((ledger.expected, ledger.unexplained), (5_000, 0));
        assert_eq!(ledger.saved + ledger.lost, ledger.expected);
        // A tenth of the batches, but those differ in size: from a handful of spans to 32.
        assert!((0.02..0.25).contains(&(ledger.lost as f64 / 5_000.0)), "{ledger:?}");
        assert_eq!(run.faults.as_ref().expect("faults").drop_share, 0.1);
    }
    let baseline = runs(&measured, "baseline")[0];
    assert_eq!(baseline.ledger.as_ref().expect("a ledger").lost, 0);
}

#[test]
fn a_queue_that_is_too_small_is_named() {
    let _turn = counting();
    let keys = format!("{QUEUE}    spans_per_request: 4\n    faults: {{delay: 30ms}}\n");
    let env = "OTEL_BSP_MAX_QUEUE_SIZE: 16, OTEL_BSP_MAX_EXPORT_BATCH_SIZE: 16, OTEL_BSP_SCHEDULE_DELAY: 100";
    let scratch = Scratch::with(&demo_study("tiny-queue", &traced("tiny", env, &keys)));
    let output = run(&scratch);
    for run in runs(&measured(&scratch), "tiny") {
        let ledger = run.ledger.as_ref().expect("a ledger");
        let lost: u64 = run.reported_losses.iter().map(|loss| loss.spans).sum();
        assert!(lost > 500, "{:?}\n{}", run.reported_losses, output.err);
        // The SDK counted every span that it dropped, and the ledger found as many missing.
        assert_eq!((ledger.lost, ledger.unexplained), (lost, 0), "{ledger:?}");
        assert_eq!(ledger.by_stage, stages(&[("queue", lost)]));
    }
}

#[test]
fn sampling_by_the_parent_is_no_loss() {
    let _turn = counting();
    let env = "OTEL_TRACES_SAMPLER: parentbased_always_on";
    let scratch = Scratch::with(&demo_study("a-tenth", &traced("tenth", env, &format!("{QUEUE}    sampled: 10%\n"))));
    run(&scratch);
    let measured = measured(&scratch);
    for run in runs(&measured, "tenth") {
        let ledger = run.ledger.as_ref().expect("a ledger");
        assert_eq!((ledger.lost, ledger.unexplained, ledger.unasked), (0, 0, 0), "{ledger:?}");
        assert_eq!((ledger.expected, ledger.spans_per_request), (5_000, 4.0));
        assert!(ledger.calibrated && !ledger.declared, "it was not declared");
        assert_eq!(ledger.sampled_out + ledger.saved, 5_000);
        assert_eq!((run.reported_losses.len(), ledger.by_stage.len()), (1, 0), "the log was read and holds nothing");
    }
    // The calibration knows what a request makes, by operation.
    let calibration = &measured.calibrations[0];
    assert_eq!((calibration.variant.as_str(), calibration.requests, calibration.traces), ("tenth", 40, 40));
    let operations: Vec<(&str, f64)> =
        calibration.operations.iter().map(|it| (it.operation.as_str(), it.spans_per_request)).collect();
    assert_eq!(operations, [("GET", 3.0), ("GET /work", 1.0)]);
}

/// Of a tenth of the requests there are spans, and clients know of all.
#[test]
fn what_a_sample_says_of_latencies_is_held_to_the_truth() {
    let _turn = counting();
    let env = "OTEL_TRACES_SAMPLER: parentbased_always_on";
    let variants = traced("tenth", env, "    sampled: 10%\n") + &traced("all", env, "");
    // Fixed work from the first request on: a machine that is busy makes it slower, not wrong.
    let script = "  script: {requests: [{name: work, path: /work, span: GET /work}]}\n  requests: 1500\n";
    let scratch = Scratch::with(&demo_study("sampled", &variants).replace("  rate: 300\n", script));
    let output = scratch.run(&["--rounds", "1", "--set", "placebo=false", "--set", "warmup=0s"]);
    let findings = scratch.findings();
    let of = |name: &str| {
        let found = findings.sampled.iter().find(|it| it.variant == name);
        found.unwrap_or_else(|| panic!("{name}: {:?}\n{}", findings.sampled, output.err))
    };
    let (tenth, all) = (of("tenth"), of("all"));
    assert_eq!(findings.sampled.len(), 2, "the baseline has no spans");
    let measured = measured(&scratch);
    for (name, found) in [("tenth", tenth), ("all", all)] {
        let load = runs(&measured, name)[0].load.as_ref().expect("a load");
        let named = &load.named[0];
        assert_eq!(found.requests, named.requests);
        let sampled = if name == "all" { named.requests } else { named.sampled_us.count };
        assert_eq!(found.spans, sampled, "{name}: every sampled request of the window has a span");
        assert!(found.from_spans.p50_us < found.from_clients.p50_us, "{name}: a service sees less than its clients");
        assert!(found.error_p50.is_some_and(|it| it.value < 0.0 && it.value > -1.0), "{name}: {:?}", found.error_p50);
    }
    assert!((0.05..0.2).contains(&tenth.ratio) && all.ratio == 1.0, "{} {}", tenth.ratio, all.ratio);
    assert_eq!(all.sampling_p99.map(|it| it.value), Some(0.0));
    assert!(tenth.sampling_p99.is_some());
    assert!(output.out.contains("What sampling hides of work"), "{}", output.out);
}

#[test]
fn a_wrong_declaration_stops_the_study_before_the_first_round() {
    let _turn = counting();
    let study = demo_study("wrong-number", &traced("otel", "", "    spans_per_request: 3\n"));
    let scratch = Scratch::with(&study);
    run(&scratch).ends_with(2).complains(&[
        "the study declares 3 spans per request for otel",
        "found 4: consumer `GET` 3, consumer `GET /work` 1",
        "variants.otel.spans_per_request",
    ]);
    let journal = fs::read_to_string(scratch.path("out/journal.jsonl")).expect("a journal");
    assert_eq!(journal.lines().count(), 1, "{journal}");
    assert!(journal.contains("spans_declared_wrong"), "{journal}");
    // Corrected, it goes on, and does not calibrate again.
    let arguments = ["run", ".", "--resume", "out", "--plain", "--rounds", "1", "--set", "placebo=false"];
    let output = scratch.unladen(&[&arguments[..], &["--set", "variants.otel.spans_per_request=4"]].concat());
    assert!(!output.err.contains("calibration:"), "{}", output.err);
    assert_eq!(runs(&measured(&scratch), "otel")[0].ledger.as_ref().expect("a ledger").unexplained, 0);
}

/// A storage of which a test says what it holds: 7 spans at the first question, 167 ever after; ends with the process.
fn storage() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for (request, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 4_096]);
            let body = format!("{{\"hits\": {{\"total\": {}}}}}", if request == 0 { 7 } else { 167 });
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    port
}

/// Asked first before the calibration, whose 40 requests then seem to have brought 160 spans, and no further ones come: whatever
/// unladen's own sink has received, all spans of the run are lost.
#[test]
fn a_storage_that_is_counted_decides_what_arrived() {
    let _turn = counting();
    let study = demo_study("counted", &traced("otel", "", "    spans_per_request: 4\n")).replace(
        "services:\n  provider:",
        &format!(
            "services:\n  store:\n    role: storage\n    command: [sleep, '600']\n    count: {{http: \"http://127.0.0.1:{}/_count\", pointer: /hits/total}}\n  provider:",
            storage()
        ),
    );
    let scratch = Scratch::with(&study);
    let output = scratch.run(&["--rounds", "1", "--set", "placebo=false"]);
    let measured = measured(&scratch);
    assert_eq!(measured.calibrations[0].mean, 4.0, "160 spans of 40 requests: {}", output.err);
    let run = runs(&measured, "otel")[0];
    let ledger = run.ledger.as_ref().expect("a ledger");
    assert_eq!((ledger.saved, ledger.lost, ledger.counted_by.as_deref()), (0, 3_000, Some("store")));
    assert!(run.counted[0].steady && ledger.by_count, "{:?}", run.counted);
}
