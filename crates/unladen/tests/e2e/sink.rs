//! The sink alone: what it says while spans come in and at the end, and what it tells Prometheus. And a study whose spans go to such
//! a sink as to any backend.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use unladen_prometheus::{samples, sum};
use unladen_study::measured::read;

use crate::harness::{CliOutput, Scratch, counting, demo_study};

/// What HTTP/1.1 answers to one request.
fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the sink listens");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn get(address: SocketAddr, path: &str) -> String {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nhost: sink\r\nconnection: close\r\n\r\n"))
}

/// Addresses from the lines `listening: …`.
fn addresses(child: &mut Child) -> (Vec<(String, SocketAddr)>, BufReader<std::process::ChildStderr>) {
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut found = Vec::new();
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).expect("a line") > 0, "the sink ended");
        let Some(rest) = line.trim().strip_prefix("listening: ") else { return (found, lines) };
        let (name, address) = match rest.strip_prefix("http://") {
            Some(admin) => ("admin", admin.split('/').next().expect("an address")),
            None => rest.split_once(" on ").expect("a protocol and an address"),
        };
        found.push((name.to_owned(), address.parse().expect("an address")));
    }
}

#[test]
fn alone_it_counts_and_tells() {
    let _turn = counting();
    let scratch = Scratch::new();
    let any = "127.0.0.1:0";
    let mut child = scratch
        .command(&["sink", "--out", "spans", "--otlp-grpc", any, "--otlp-http", any, "--zipkin", any, "--admin", any])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("unladen starts");
    let (addresses, mut lines) = addresses(&mut child);
    let of = |name: &str| addresses.iter().find(|(known, _)| known == name).expect(name).1;
    let spans = r#"[{"traceId":"0000000000000001","id":"0000000000000002","name":"get","timestamp":1,"duration":5,"localEndpoint":{"serviceName":"sh\"op"}},
                    {"traceId":"0000000000000001","id":"0000000000000003","name":"get","timestamp":1,"duration":5,"localEndpoint":{"serviceName":"sh\"op"}}]"#;
    let head = "POST /api/v2/spans HTTP/1.1\r\nhost: sink\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let answer = exchange(of("zipkin"), &format!("{head}content-length: {}\r\n\r\n{spans}", spans.len()));
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");

    assert!(get(of("admin"), "/healthz").ends_with("\r\n\r\nok\n"));
    let answer = get(of("admin"), "/metrics");
    let metrics = answer.split_once("\r\n\r\n").expect("a body").1;
    for sample in samples(metrics) {
        sample.expect("Prometheus' text format");
    }
    for (selector, value) in [
        ("unladen_sink_spans_received_total{protocol=\"zipkin\"}", 2.0),
        ("unladen_sink_spans_saved_total", 2.0),
        ("unladen_sink_service_spans_total{service=\"sh\\\"op\"}", 2.0),
        ("unladen_sink_traces_total", 1.0),
        ("unladen_sink_requests_undecodable_total", 0.0),
    ] {
        let found = sum(metrics, &selector.parse().expect(selector)).expect("the format");
        assert_eq!(found, Some(value), "{selector} in\n{metrics}");
    }

    kill_process(Pid::from_child(&child), Signal::INT).expect("a signal");
    let mut output = CliOutput::new(&child.wait_with_output().expect("it ends")).ends_with(0);
    lines.read_to_string(&mut output.err).expect("the rest");
    assert!(output.out.starts_with("2 spans received ("), "{}", output.out);
    assert!(
        output.out.contains("2 stored in") && output.out.contains("1 traces") && output.out.contains("get"),
        "{}",
        output.out
    );
    assert!(fs::read_to_string(scratch.path("spans/summary.json")).expect("summary.json").contains("\"received\": 2"));
}

#[test]
fn faults_are_said_and_done() {
    let _turn = counting();
    let scratch = Scratch::new();
    let any = "127.0.0.1:0";
    let arguments = ["sink", "--out", "spans", "--otlp-grpc", any, "--otlp-http", any, "--refuse", "429"];
    let mut child =
        scratch.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("unladen starts");
    let (addresses, mut lines) = addresses(&mut child);
    let http = addresses.iter().find(|(name, _)| name == "otlp_http").expect("OTLP over HTTP").1;
    let head = "POST /v1/traces HTTP/1.1\r\nhost: sink\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert!(exchange(http, head).starts_with("HTTP/1.1 429"));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a signal");
    let output = CliOutput::new(&child.wait_with_output().expect("it ends")).ends_with(0);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("the rest");
    assert!(output.out.contains("1 requests not served on purpose"), "{}\n{rest}", output.out);
    scratch.unladen(&["sink", "--out", "x", "--drop", "110%"]).ends_with(2).complains(&["0% to 100%"]);
}

/// A storage of the study's own (another sink of unladen, counted by its Prometheus metric) behind the traced service.
#[test]
fn a_storage_behind_a_study_is_counted() {
    let _turn = counting();
    let variants = r#"  otel:
    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:${port.store}"}, args: [--trace, otlp]}}
"#;
    let store = r#"services:
  store:
    role: storage
    command: ["${unladen}", sink, --out, "${run.dir}/store", --otlp-grpc, "127.0.0.1:${port.store}", --otlp-http, "127.0.0.1:0", --admin, "127.0.0.1:${port.admin}"]
    ready: {http: "http://127.0.0.1:${port.admin}/healthz"}
    count:
      prometheus: http://127.0.0.1:${port.admin}/metrics
      metric: unladen_sink_spans_saved_total
"#;
    let study = demo_study("storage", variants).replace("services:\n  provider:", &format!("{store}  provider:"));
    let study = study.replace("needs: [provider]", "needs: [provider, store]");
    let scratch = Scratch::with(&study);
    let output = scratch.run(&["--rounds", "1", "--set", "placebo=false"]);
    let measured = read(&scratch.path("out")).expect("a run folder");
    assert_eq!(measured.calibrations[0].spans_per_request, 4.0, "{}", output.err);
    let run = measured.runs.iter().find(|run| run.variant == "otel").expect("a run");
    let ledger = run.ledger.as_ref().expect("a ledger");
    let account = (ledger.expected, ledger.saved, ledger.lost, ledger.unexplained);
    assert_eq!(account, (3_000, 3_000, 0, 0), "what the service flushed as it ended counts too: {:?}", run.counted);
    assert!(ledger.by_count && ledger.calibrated && ledger.counted_by.as_deref() == Some("store"), "{ledger:?}");
}
