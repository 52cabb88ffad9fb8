//! SDKs within programs of ours, which print every span that they send with the ids that the SDK gave it.

use std::process::Command;

use serde_json::{Value, json};

use crate::sink::{Sink, run, set_up};
use crate::spans::parse;

/// Traces that a sender sends; more than one batch of every SDK.
const TRACES: usize = 500;

/// Runs a sender that takes its own name, an address and how many traces to send.
#[track_caller]
fn sends(command: &mut Command, sender: &str, receiver: &str, spans_per_trace: usize) {
    let sink = Sink::start();
    // Of New Relic's agents.
    command.env("NEW_RELIC_CA_BUNDLE_PATH", sink.authority()).env("NODE_EXTRA_CA_CERTS", sink.authority());
    let sent = parse(&run(command.args([sender, &sink.address(receiver), &TRACES.to_string()])));
    assert_eq!(sent.len(), TRACES * spans_per_trace);
    sink.stop().has_exactly(&sent, TRACES, receiver);
}

fn go() -> Command {
    Command::new(set_up("go/senders"))
}

fn python(program: &str) -> Command {
    let mut command = Command::new(set_up("python/bin/python"));
    command.arg(format!("{}/../../subjects/senders/python/{program}", env!("CARGO_MANIFEST_DIR")));
    command
}

fn javascript(program: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(set_up(&format!("js/{program}")));
    command
}

#[test]
fn opentelemetry_go_grpc() {
    sends(&mut go(), "otlp-grpc", "otlp_grpc", 3);
}

#[test]
fn opentelemetry_go_http() {
    sends(&mut go(), "otlp-http", "otlp_http", 3);
}

#[test]
fn opentelemetry_python_grpc() {
    sends(&mut python("send.py"), "otlp-grpc", "otlp_grpc", 3);
}

#[test]
fn opentelemetry_python_http() {
    sends(&mut python("send.py"), "otlp-http", "otlp_http", 3);
}

#[test]
fn opentelemetry_javascript_grpc() {
    sends(&mut javascript("send.mjs"), "otlp-grpc", "otlp_grpc", 3);
}

#[test]
fn opentelemetry_javascript_http() {
    sends(&mut javascript("send.mjs"), "otlp-http", "otlp_http", 3);
}

#[test]
fn opentelemetry_javascript_json() {
    sends(&mut javascript("send.mjs"), "otlp-json", "otlp_http", 3);
}

#[test]
fn azure_python() {
    sends(&mut python("send.py"), "azure", "azure", 3);
}

#[test]
fn azure_javascript() {
    sends(&mut javascript("send.mjs"), "azure", "azure", 3);
}

#[test]
fn instana_python() {
    sends(&mut python("instana_tracer.py"), "instana", "instana", 3);
}

#[test]
fn instana_javascript() {
    sends(&mut javascript("instana.mjs"), "instana", "instana", 3);
}

#[test]
fn zipkin_go_json() {
    sends(&mut go(), "zipkin-json", "zipkin", 3);
}

#[test]
fn zipkin_go_protobuf() {
    sends(&mut go(), "zipkin-protobuf", "zipkin", 3);
}

#[test]
fn jaeger_go() {
    sends(&mut go(), "jaeger", "jaeger", 3);
}

#[test]
fn elastic_go() {
    sends(&mut go(), "elastic", "elastic", 3);
}

#[test]
fn skywalking_go() {
    sends(&mut go(), "skywalking", "skywalking", 4);
}

#[test]
fn sentry_python_transactions() {
    sends(&mut python("sentry.py"), "transaction", "sentry", 3);
}

#[test]
fn sentry_python_stream() {
    sends(&mut python("sentry.py"), "stream", "sentry", 3);
}

#[test]
fn newrelic_python() {
    sends(&mut python("new_relic.py"), "newrelic", "newrelic", 3);
}

#[test]
fn newrelic_javascript() {
    sends(&mut javascript("new_relic.mjs"), "harvests", "newrelic", 2);
}

#[test]
fn newrelic_javascript_infinite_tracing() {
    sends(&mut javascript("new_relic.mjs"), "infinite", "newrelic", 2);
}

#[test]
fn pinpoint_javascript() {
    sends(&mut javascript("pinpoint.mjs"), "pinpoint", "pinpoint", 3);
}

#[test]
fn sentry_javascript_transactions() {
    sends(&mut javascript("sentry.mjs"), "transaction", "sentry", 3);
}

#[test]
fn sentry_javascript_stream() {
    sends(&mut javascript("sentry.mjs"), "stream", "sentry", 3);
}

#[test]
fn datadog_python_v04() {
    sends(&mut python("datadog.py"), "v0.4", "datadog", 3);
}

#[test]
fn datadog_python_v05() {
    sends(&mut python("datadog.py"), "v0.5", "datadog", 3);
}

#[test]
fn datadog_javascript_v04() {
    sends(&mut javascript("datadog.mjs"), "v0.4", "datadog", 3);
}

#[test]
fn xray_python_segments() {
    sends(&mut python("xray.py"), "whole", "xray", 3);
}

#[test]
fn xray_python_streamed() {
    sends(&mut python("xray.py"), "streamed", "xray", 3);
}

#[test]
fn xray_javascript_segments() {
    sends(&mut javascript("xray.mjs"), "whole", "xray", 3);
}

#[test]
fn xray_javascript_streamed() {
    sends(&mut javascript("xray.mjs"), "streamed", "xray", 3);
}

/// telemetrygen names its spans and their attributes, and tells no ids.
#[track_caller]
fn telemetrygen(receiver: &str, more: &[&str]) {
    let sink = Sink::start();
    let mut command = Command::new(set_up("go/telemetrygen"));
    command.args(["traces", "--otlp-insecure", "--rate", "0", "--workers", "2", "--traces"]);
    command.arg((TRACES / 2).to_string()).args(["--otlp-endpoint", &sink.address(receiver)]);
    command.args(["--child-spans", "2", "--service", "pets-größe-🐾", "--status-code", "Error"]);
    command.args(["--telemetry-attributes", "text=\"größe 🐾\"", "--telemetry-attributes", "number=17"]);
    run(command.args(more));
    let row = |operation: &str, parent: &str, kind: &str, duration_ns: u64| {
        json!({
            "parent_operation": parent,
            "service": "pets-größe-🐾",
            "operation": operation,
            "kind": kind,
            "status": "error",
            "duration_ns": duration_ns,
            "attributes": {"text": "größe 🐾", "number": 17, "network.peer.address": "1.2.3.4"},
        })
    };
    let trace = [
        row("lets-go", "", "client", 246_000),
        row("okey-dokey-0", "lets-go", "server", 123_000),
        row("okey-dokey-1", "lets-go", "server", 123_000),
    ];
    let sent: Vec<Value> = (0..TRACES).flat_map(|_| trace.clone()).collect();
    sink.stop().has_exactly(&sent, TRACES, receiver);
}

#[test]
fn telemetrygen_grpc() {
    telemetrygen("otlp_grpc", &[]);
}

#[test]
fn telemetrygen_http() {
    telemetrygen("otlp_http", &["--otlp-http"]);
}
