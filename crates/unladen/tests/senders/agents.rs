//! Agents within a JVM, beside a service that knows nothing of them (`subjects/senders/java`, `Pets`). Its clients say which
//! trace their requests belong to, so that every span can be told.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use crate::sink::{Had, Process, Sink, run, set_up, wait_until};
use crate::spans::parse;

/// Requests that a service gets.
const REQUESTS: usize = 100;
/// Spans of a request: itself, a request of the service to itself as the client sees it, and as the server sees it.
const SPANS: usize = 3 * REQUESTS;
const NAME: &str = "pets-größe-🐾";

/// `java` with what all of them have in common: quick to start rather than quick later, and text in UTF-8.
fn java() -> Command {
    let mut command = Command::new("java");
    command.args(["-XX:TieredStopAtLevel=1", "-Xmx256m"]).env("LC_ALL", "C.UTF-8");
    command
}

fn libraries() -> String {
    set_up("java/lib/senders.jar").with_file_name("*").to_string_lossy().into_owned()
}

fn trace_id(number: usize) -> String {
    format!("5eed5eed5eed5eed{:016x}", number + 1)
}

/// Id of the span of the client that the service was asked by.
fn client_id(number: usize) -> String {
    format!("{:016x}", 0xc11e_0000 + number)
}

/// How an agent has to be treated for it not to lose spans.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// What it still has when it is told to end, it sends.
    None,
    /// It sends what it has within a second, but not always what it has when it ends.
    AtEnd,
    /// It throws away what comes before it is connected, and what it has when it ends.
    AtStartAndEnd,
}

/// A service that agents watch.
#[derive(Clone, Copy)]
struct Service<'a> {
    /// Its class and arguments.
    program: &'a [&'a str],
    /// Header lines by which a request of this number says which trace it belongs to.
    trace: fn(usize) -> String,
    /// Header of a request before the others, of which the agent makes no spans.
    untraced: Option<&'a str>,
    /// Spans of all requests together.
    spans: usize,
}

const PETS: Service<'_> = Service { program: &["unladen.Pets"], trace: traceparent, untraced: None, spans: SPANS };

/// The header of W3C Trace Context.
fn traceparent(number: usize) -> String {
    format!("traceparent: 00-{}-{}-01", trace_id(number), client_id(number))
}

/// Runs the service beside an agent that the options name, sends it requests, and ends it with SIGTERM.
#[track_caller]
fn watched(service: Service<'_>, sink: Sink, receiver: &str, options: &[String], care: Care) -> Had {
    let Service { program, trace, untraced, spans } = service;
    let service = Process::start(java().args(options).args(["-cp", &libraries()]).args(program));
    let address = service.wait_for_line("its address", |line| line.strip_prefix("listening on ").map(str::to_string));
    if care == Care::AtStartAndEnd {
        wait_until(|| sink.is_connected(receiver), || "the agent does not connect".into());
    }
    if let Some(header) = untraced {
        get(&address, 0, header);
    }
    for number in 0..REQUESTS {
        let status = get(&address, number, &trace(number));
        assert_eq!(status, if number % 5 == 0 { "203" } else { "200" });
    }
    if care != Care::None {
        wait_until(|| sink.on_disk() >= spans, || format!("{} of {spans} spans arrived", sink.on_disk()));
    }
    let before = service.printed();
    service.terminate();
    let (status, printed, errors) = service.end();
    assert_eq!(status.code(), Some(143), "{}", errors.join("\n"));
    let lines = printed.lines().chain(errors.iter().map(String::as_str));
    let complaints: Vec<_> = lines.filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
    // SkyWalking's agent finds its defaults good enough. It closes its channel before it reports that it ends, and while it may still send
    // metrics, as it does every second: either can fail in that moment, once.
    let before = String::from_utf8_lossy(&printed.as_bytes()[..before]);
    let first = |what: &str| complaints.iter().position(|line| line.contains(what) && !before.contains(line));
    let at_end = [first("Failed to report shutdown event"), first("send JVM metrics to Collector fail")];
    let is_own_fault = |(index, line): (usize, &&str)| {
        line.contains("Failed to read the config file")
            // Of Log4j, within Pinpoint's agent.
            || line.contains("StatusConsoleListener")
            || at_end.contains(&Some(index))
    };
    assert!(complaints.iter().enumerate().all(is_own_fault), "the agent is not content:\n{}", complaints.join("\n"));
    sink.stop()
}

/// One request on a connection of its own; its status.
#[track_caller]
fn get(address: &str, number: usize, trace: &str) -> String {
    let mut connection = TcpStream::connect(address).expect("the service listens");
    let head = format!("GET /pets?number={number} HTTP/1.1\r\nHost: {address}\r\n{trace}\r\nConnection: close\r\n\r\n");
    connection.write_all(head.as_bytes()).expect("the service reads");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("the service answers");
    answer.split(' ').nth(1).unwrap_or(&answer).to_string()
}

/// What a span is expected to say, and its attributes.
struct Expected<'a> {
    operation: &'a str,
    kind: &'a str,
    status: &'a str,
    attributes: Value,
}

/// Rows of one request, each the child of the one before.
fn rows(number: usize, service: &str, chain: [Expected<'_>; 3]) -> Vec<Value> {
    let mut parent = "";
    let mut rows = Vec::new();
    for Expected { operation, kind, status, attributes } in chain {
        rows.push(json!({
            "trace_id": trace_id(number),
            "parent_operation": parent,
            "service": service,
            "operation": operation,
            "kind": kind,
            "status": status,
            "attributes": attributes,
        }));
        parent = operation;
    }
    rows
}

/// Fails unless the first span of every request is the child of the span that the client named.
#[track_caller]
fn assert_continued(had: &Had) {
    let mut found: Vec<_> = had.rows.iter().filter(|row| row["parent_operation"] == "").collect();
    found.sort_by_key(|row| row["trace_id"].to_string());
    let parents: Vec<_> = found.iter().map(|row| row["parent_id"].as_str().expect("an id").to_string()).collect();
    assert_eq!(parents, (0..REQUESTS).map(client_id).collect::<Vec<_>>());
}

#[track_caller]
fn opentelemetry(receiver: &str, protocol: &str) {
    let sink = Sink::start();
    let options = [
        format!("-javaagent:{}", set_up("java/agents/opentelemetry.jar").display()),
        format!("-Dotel.service.name={NAME}"),
        format!("-Dotel.exporter.otlp.protocol={protocol}"),
        format!("-Dotel.exporter.otlp.endpoint=http://{}", sink.address(receiver)),
    ];
    // The agent sends metrics and logs as well, as it does unless it is told not to.
    let had = watched(PETS, sink, receiver, &options, Care::None);
    let sent = (0..REQUESTS).flat_map(|number| {
        let (failed, code) = if number % 5 == 0 { ("error", 500) } else { ("unset", 200) };
        let first = if number % 5 == 0 { 203 } else { 200 };
        let text = format!("größe 🐾 {number}");
        let attributes = |code: i32, path: Value, number: Value, text: Value| {
            let attributes = [("http.response.status_code", json!(code)), ("url.path", path), ("number", number)];
            attributes.into_iter().chain([("text", text)]).collect::<Value>()
        };
        let none = Value::Null;
        let chain = [
            Expected {
                operation: "GET /pets",
                kind: "server",
                status: "unset",
                attributes: attributes(first, json!("/pets"), json!(number), json!(text)),
            },
            Expected {
                operation: "GET",
                kind: "client",
                status: failed,
                attributes: attributes(code, none.clone(), none.clone(), none.clone()),
            },
            Expected {
                operation: "GET /prices",
                kind: "server",
                status: failed,
                attributes: attributes(code, json!("/prices"), none.clone(), none),
            },
        ];
        rows(number, NAME, chain)
    });
    had.has_exactly(&sent.collect::<Vec<_>>(), REQUESTS, receiver);
    assert_continued(&had);
}

#[test]
fn opentelemetry_java_agent_grpc() {
    opentelemetry("otlp_grpc", "grpc");
}

#[test]
fn opentelemetry_java_agent_http() {
    opentelemetry("otlp_http", "http/protobuf");
}

#[test]
fn elastic_java_agent() {
    let sink = Sink::start();
    let options = [
        format!("-javaagent:{}", set_up("java/agents/elastic.jar").display()),
        format!("-Delastic.apm.server_url=http://{}", sink.address("elastic")),
        // Elastic's names of services are ASCII.
        "-Delastic.apm.service_name=pets".into(),
        // Else the agent asks the addresses at which clouds tell machines about themselves.
        "-Delastic.apm.cloud_provider=NONE".into(),
        // Else it joins spans that are alike.
        "-Delastic.apm.span_compression_enabled=false".into(),
        // Else it complains that it does not know which classes are the service's.
        "-Delastic.apm.application_packages=unladen".into(),
        // Else it holds back what it has for ten seconds.
        "-Delastic.apm.api_request_time=1s".into(),
    ];
    let had = watched(PETS, sink, "elastic", &options, Care::AtEnd);
    let sent = (0..REQUESTS).flat_map(|number| {
        let (failed, code) = if number % 5 == 0 { ("error", 500) } else { ("ok", 200) };
        let first = if number % 5 == 0 { 203 } else { 200 };
        let text = format!("größe 🐾 {number}");
        let attributes = |kind: &str, code: i32, number: Value, text: Value| {
            json!({"type": kind, "http.response.status_code": code, "number": number, "text": text})
        };
        let none = Value::Null;
        let chain = [
            Expected {
                operation: "GET /pets",
                kind: "server",
                status: "ok",
                attributes: attributes("request", first, json!(number), json!(text)),
            },
            Expected {
                operation: "GET 127.0.0.1",
                kind: "client",
                status: failed,
                attributes: attributes("external.http", code, none.clone(), none.clone()),
            },
            Expected {
                operation: "GET /prices",
                kind: "server",
                status: failed,
                attributes: attributes("request", code, none.clone(), none),
            },
        ];
        rows(number, "pets", chain)
    });
    had.has_exactly(&sent.collect::<Vec<_>>(), REQUESTS, "elastic");
    assert_continued(&had);
}

#[test]
fn skywalking_java_agent() {
    let sink = Sink::start();
    set_up("java/skywalking/plugins/senders-skywalking-plugin.jar");
    let options = [
        format!("-javaagent:{}", set_up("java/skywalking/skywalking-agent.jar").display()),
        format!("-Dskywalking.agent.service_name={NAME}"),
        format!("-Dskywalking.collector.backend_service={}", sink.address("skywalking")),
        "-Dskywalking.logging.output=CONSOLE".into(),
        "-Dskywalking.logging.level=WARN".into(),
    ];
    let had = watched(PETS, sink, "skywalking", &options, Care::AtStartAndEnd);
    let sent = (0..REQUESTS).flat_map(|number| {
        let failed = if number % 5 == 0 { "error" } else { "unset" };
        let tags = json!({"number": number.to_string(), "text": format!("größe 🐾 {number}")});
        let none = json!({"number": null, "text": null});
        let chain = [
            Expected { operation: "GET:/pets", kind: "server", status: "unset", attributes: tags.clone() },
            Expected { operation: "calls prices", kind: "client", status: failed, attributes: none },
            Expected { operation: "GET:/prices", kind: "server", status: failed, attributes: tags },
        ];
        let mut rows = rows(number, NAME, chain);
        // SkyWalking makes trace ids of its own.
        rows.iter_mut().filter_map(Value::as_object_mut).for_each(|row| drop(row.remove("trace_id")));
        rows
    });
    had.has_exactly(&sent.collect::<Vec<_>>(), REQUESTS, "skywalking");
}

/// The headers of Pinpoint.
fn pinpoint_headers(number: usize) -> String {
    let (trace, client) = (trace_id(number), client_id(number));
    let [high, low, parent] =
        [&trace[..16], &trace[16..], &client].map(|hex| i64::from_str_radix(hex, 16).expect("hexadecimal"));
    [
        &format!("Pinpoint-TraceID: unladen^{high}^{low}"),
        &format!("Pinpoint-SpanID: {}", number + 1),
        &format!("Pinpoint-pSpanID: {parent}"),
        "Pinpoint-Flags: 0",
        "Pinpoint-pAppName: unladen",
        "Pinpoint-pAppType: 1000",
    ]
    .join("\r\n")
}

#[test]
fn pinpoint_java_agent() {
    const SERVLET: &str = "Servlet Process";
    const VALVE: &str = "org.apache.catalina.core.StandardHostValve.invoke(org.apache.catalina.connector.Request request, \
                         org.apache.catalina.connector.Response response)";
    const CONNECT: &str = "sun.net.www.protocol.http.HttpURLConnection.plainConnect0()";
    const ANSWER: &str = "sun.net.www.protocol.http.HttpURLConnection.getHeaderField(int n)";
    let sink = Sink::start();
    let address = sink.address("pinpoint");
    let (host, port) = address.split_once(':').expect("host and port");
    let option = |part: &str| format!("-Dprofiler.transport.grpc.{part}.collector.port={port}");
    let options = [
        format!("-javaagent:{}", set_up("java/pinpoint/pinpoint-bootstrap.jar").display()),
        // Pinpoint's names of services are ASCII.
        "-Dpinpoint.applicationName=pets".into(),
        "-Dpinpoint.agentId=one".into(),
        format!("-Dprofiler.transport.grpc.collector.ip={host}"),
        option("agent"),
        option("metadata"),
        option("stat"),
        option("span"),
    ];
    let files = tempfile::tempdir().expect("a temporary folder");
    let service = Service {
        program: &["unladen.PetsOnTomcat", &files.path().to_string_lossy()],
        trace: pinpoint_headers,
        // It tells the names of methods as their classes are loaded, on a connection of their own.
        untraced: Some("Pinpoint-Sampled: s0"),
        spans: 4 * REQUESTS,
    };
    let had = watched(service, sink, "pinpoint", &options, Care::AtEnd);
    let sent = (0..REQUESTS).flat_map(|number| {
        let (status, answer) = if number % 5 == 0 { (203, 500) } else { (200, 200) };
        let spans = [
            (SERVLET, "", "server", Some(status), Some("/pets")),
            (VALVE, SERVLET, "internal", None, None),
            (CONNECT, VALVE, "client", None, None),
            (ANSWER, VALVE, "client", Some(answer), None),
        ];
        spans.map(|(operation, parent, kind, code, path)| {
            json!({
                "trace_id": trace_id(number),
                "parent_operation": parent,
                "service": "pets",
                "instance": "one",
                "operation": operation,
                "kind": kind,
                "status": "unset",
                "attributes": {"http.response.status_code": code, "url.path": path},
            })
        })
    });
    had.has_exactly(&sent.collect::<Vec<_>>(), REQUESTS, "pinpoint");
    assert_continued(&had);
}

#[track_caller]
fn brave(sender: &str) {
    const TRACES: usize = 500;
    let sink = Sink::start();
    let mut command = java();
    command.args(["-cp", &libraries(), "unladen.Brave", sender, &sink.address("zipkin"), &TRACES.to_string()]);
    let sent = parse(&run(&mut command));
    assert_eq!(sent.len(), 3 * TRACES);
    sink.stop().has_exactly(&sent, TRACES, "zipkin");
}

#[test]
fn brave_json() {
    brave("zipkin-json");
}

#[test]
fn brave_protobuf() {
    brave("zipkin-protobuf");
}
