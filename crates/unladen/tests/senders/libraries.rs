//! SDKs within programs of ours, which print every span that they send with the ids that the SDK gave it.

use std::process::Command;

use crate::sink::{Sink, run, set_up};
use crate::spans::parse;

/// Traces that a sender sends; more than one batch of every SDK.
const TRACES: usize = 500;

/// Runs a sender that takes its own name, an address and how many traces to send.
#[track_caller]
fn sends(command: &mut Command, sender: &str, receiver: &str, spans_per_trace: usize) {
    let sink = Sink::start();
    let sent = parse(&run(command.args([sender, &sink.address(receiver), &TRACES.to_string()])));
    assert_eq!(sent.len(), TRACES * spans_per_trace);
    let protocol = receiver;
    sink.stop().has_exactly(&sent, protocol);
}

fn go() -> Command {
    Command::new(set_up("go/senders"))
}

fn python() -> Command {
    let mut command = Command::new(set_up("python/bin/python"));
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../subjects/senders/python/send.py"));
    command
}

fn javascript() -> Command {
    let mut command = Command::new("node");
    command.arg(set_up("js/send.mjs"));
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
    sends(&mut python(), "otlp-grpc", "otlp_grpc", 3);
}

#[test]
fn opentelemetry_python_http() {
    sends(&mut python(), "otlp-http", "otlp_http", 3);
}

#[test]
fn opentelemetry_javascript_grpc() {
    sends(&mut javascript(), "otlp-grpc", "otlp_grpc", 3);
}

#[test]
fn opentelemetry_javascript_http() {
    sends(&mut javascript(), "otlp-http", "otlp_http", 3);
}

#[test]
fn opentelemetry_javascript_json() {
    sends(&mut javascript(), "otlp-json", "otlp_http", 3);
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
