//! The other protocols over real sockets, as their agents speak them, and the faults that a study may ask for.

use unladen_sink::config::{Config, Protocol, Requests};

use crate::grpc::call;
use crate::http::{post, send};
use crate::support::{Sink, block_on, columns, gzip, listening};

const REQUESTS: Requests = Requests { tag: 0x1234_5678_9abc_def0, key: 42 };

fn sink() -> Sink {
    let protocols = [Protocol::Zipkin, Protocol::Skywalking, Protocol::Elastic, Protocol::Jaeger];
    Sink::with(|config| Config { requests: Some(REQUESTS), max_message: 100_000, ..listening(config, &protocols) })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A protobuf field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 128, "short enough for a length of one byte");
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

const JSON: (&str, &str) = ("content-type", "application/json");
const THRIFT: (&str, &str) = ("content-type", "application/x-thrift");
const GZIP: (&str, &str) = ("content-encoding", "gzip");

#[test]
fn zipkin() {
    let sink = sink();
    let address = sink.addresses["zipkin"];
    let span = |trace: &str, more: &str| {
        format!(r#"{{"traceId":"{trace}","id":"1","localEndpoint":{{"serviceName":"pets"}}{more}}}"#)
    };
    let whole = hex(&REQUESTS.trace_id(0));
    let cut = hex(&REQUESTS.trace_id(1)[8..]);
    let list = format!("[{},{}]", span(&whole, ""), span(&cut, ",\"kind\":\"SERVER\""));
    let shared = format!("[{}]", span(&whole, ",\"shared\":true"));
    let protobuf = field(1, &[field(1, &REQUESTS.trace_id(2)), field(3, &[7; 8])].concat());
    block_on(async {
        for (headers, body) in [
            (vec![JSON], list.clone().into_bytes()),
            (vec![JSON, GZIP], gzip(shared.as_bytes())),
            (vec![("content-type", "application/x-protobuf")], protobuf),
        ] {
            let (status, answer) = send(address, post("/api/v2/spans", &headers, body)).await;
            assert_eq!((status, answer.len()), (202, 0));
        }
        for (path, headers, body, expected) in [
            ("/api/v2/spans", vec![JSON], b"[{".to_vec(), 400),
            ("/api/v2/spans", vec![JSON, GZIP], list.into_bytes(), 400),
            ("/api/v2/spans", vec![JSON, GZIP], gzip(&[b' '; 200_000]), 413),
            ("/api/v2/spans", vec![("content-type", "text/html")], Vec::new(), 415),
            ("/api/v1/spans", vec![JSON], b"[]".to_vec(), 404),
        ] {
            assert_eq!(send(address, post(path, &headers, body)).await.0, expected, "{path} {headers:?}");
        }
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.duplicates, summary.foreign, summary.undecodable), (4, 0, 0, 3));
    assert_eq!(summary.spans_by_request, [(2, 1), (1, 2)], "also by the half of a trace id");
    assert_eq!(summary.by_protocol["zipkin"], 4);
    assert_eq!((columns(&rows[1])["kind"].as_str(), columns(&rows[1])["request"].as_str()), ("\"server\"", "1"));
}

/// In Zipkin's model client and server of a call report a span with the same id: two spans, and neither is a duplicate.
#[test]
fn both_halves_of_a_shared_span_are_kept() {
    for flag in ["", ",\"shared\":true"] {
        for is_server_first in [false, true] {
            let sink = sink();
            let address = sink.addresses["zipkin"];
            let trace = hex(&REQUESTS.trace_id(0));
            let half = |service: &str, kind: &str, more: &str| {
                let ids = format!(r#""traceId":"{trace}","id":"2","parentId":"1""#);
                format!(r#"[{{{ids},"kind":"{kind}","localEndpoint":{{"serviceName":"{service}"}}{more}}}]"#)
            };
            let root = format!(r#"[{{"traceId":"{trace}","id":"1","localEndpoint":{{"serviceName":"front"}}}}]"#);
            let mut halves = [half("front", "CLIENT", ""), half("back", "SERVER", flag)];
            if is_server_first {
                halves.reverse();
            }
            block_on(async {
                // All of it twice, as after an answer that got lost.
                for _ in 0..2 {
                    for body in [&root, &halves[0], &halves[1]] {
                        let (status, _) =
                            send(address, post("/api/v2/spans", &[JSON], body.clone().into_bytes())).await;
                        assert_eq!(status, 202);
                    }
                }
            });
            let (summary, rows) = sink.stop();
            assert_eq!((summary.saved, summary.duplicates, summary.received), (3, 3, 6), "{flag}");
            assert_eq!(summary.by_service, [("back".into(), 1), ("front".into(), 2)].into(), "{flag}");
            assert_eq!(summary.spans_by_request, [(3, 1)]);
            let shape = summary.shape.expect("the spans are stored");
            assert_eq!((shape.rows, shape.orphaned, shape.wrong_parent), (3, 0, 0), "{flag}");
            let shared = rows.iter().filter(|row| columns(row)["span_id"] == "[0, 0, 0, 0, 0, 0, 0, 2]");
            let kinds: Vec<_> = shared.map(|row| columns(row)["kind"].clone()).collect();
            assert_eq!(kinds.len(), 2, "{flag}");
            assert!(kinds.contains(&"\"client\"".into()) && kinds.contains(&"\"server\"".into()), "{kinds:?}");
        }
    }
}

#[test]
fn skywalking() {
    let sink = sink();
    let address = sink.addresses["skywalking"];
    let span = [&[0x10][..], &[255; 9], &[1], &field(6, b"GET:/vets")].concat();
    let segment = |index| {
        let trace = hex(&REQUESTS.trace_id(index));
        [field(1, trace.as_bytes()), field(2, b"s1"), field(3, &span), field(4, b"pets")].concat()
    };
    let collection = field(1, &segment(2));
    let json = format!(
        r#"[{{"traceId":"{}","traceSegmentId":"s","spans":[{{"spanId":0,"parentSpanId":-1}}]}}]"#,
        hex(&REQUESTS.trace_id(3))
    );
    let service = |path: &str| format!("/skywalking.v3.{path}");
    block_on(async {
        let stream = [framed(&segment(0)), framed(&segment(1))].concat();
        let ok = (200, "0".to_string(), String::new());
        assert_eq!(call(address, &service("TraceSegmentReportService/collect"), None, stream).await, ok);
        let once = framed(&collection);
        assert_eq!(call(address, &service("TraceSegmentReportService/collectInSync"), None, once).await, ok);
        for welcome in [
            "ManagementService/reportInstanceProperties",
            "ManagementService/keepAlive",
            "JVMMetricReportService/collect",
            "ConfigurationDiscoveryService/fetchConfigurations",
            "ProfileTask/getProfileTaskCommands",
            "LogReportService/collect",
            "MeterReportService/collectBatch",
        ] {
            assert_eq!(call(address, &service(welcome), None, framed(b"whatever")).await, ok, "{welcome}");
        }
        assert_eq!(send(address, post("/v3/segments", &[JSON], json.into_bytes())).await.0, 200);
        assert_eq!(send(address, post("/v3/segments", &[JSON], b"[".to_vec())).await.0, 400);
        assert_eq!(call(address, &service("Other/collect"), None, framed(b"")).await.1, "12");
        let collect = service("TraceSegmentReportService/collect");
        let cut = framed(&segment(0));
        for (body, code) in [
            (framed(b"\xff"), "3"),
            (cut[..cut.len() - 1].to_vec(), "13"),
            (vec![0, 0], "13"),
            ([&[0][..], &u32::MAX.to_be_bytes()].concat(), "8"),
        ] {
            assert_eq!(call(address, &collect, None, body).await.1, code);
        }
        // The first segment of the stream is sound, and stays although the second is not.
        let mixed = [framed(&segment(4)), framed(b"\xff")].concat();
        assert_eq!(call(address, &collect, None, mixed).await.1, "3");
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.foreign, summary.undecodable), (5, 0, 6));
    assert_eq!(summary.spans_by_request, [(1, 5)]);
    assert_eq!(summary.by_protocol["skywalking"], 5);
    let row = columns(&rows[0]);
    assert_eq!((row["operation"].as_str(), row["parent_id"].as_str()), ("\"GET:/vets\"", "null"));
}

#[test]
fn elastic() {
    let sink = sink();
    let address = sink.addresses["elastic"];
    let metadata = r#"{"metadata":{"service":{"name":"pets"}}}"#;
    let transaction = |index| {
        let trace = hex(&REQUESTS.trace_id(index));
        format!(r#"{{"transaction":{{"id":"00000000000000aa","trace_id":"{trace}","type":"request","duration":1}}}}"#)
    };
    let events = |index| format!("{metadata}\n{}\n{{\"metricset\":{{}}}}\n", transaction(index)).into_bytes();
    let ndjson = ("content-type", "application/x-ndjson");
    block_on(async {
        let (status, answer) = send(address, post("/intake/v2/events", &[ndjson], events(0))).await;
        assert_eq!((status, answer.len()), (202, 0));
        let verbose = post("/intake/v2/events?verbose", &[ndjson, GZIP], gzip(&events(1)));
        let (status, answer) = send(address, verbose).await;
        assert_eq!((status, &answer[..]), (202, &br#"{"accepted":2}"#[..]));
        let broken = [events(2), b"{\"span\":{\"id\":\"x\"}}".to_vec()].concat();
        let (status, answer) = send(address, post("/intake/v2/events", &[ndjson], broken)).await;
        let reply: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!((status, &reply["accepted"]), (400, &2.into()));
        assert!(reply["errors"][0]["message"].as_str().expect("a text").contains("trace_id"), "{reply}");
        assert_eq!(send(address, post("/intake/v2/events", &[ndjson], b"hello".to_vec())).await.0, 400);
        assert_eq!(send(address, post("/intake/v3/events", &[ndjson], Vec::new())).await.0, 404);
        let get = |path: &str, tag: &str| {
            let request = hyper::Request::get(path).header("host", "sink").header("if-none-match", tag);
            request.body(http_body_util::Full::default()).expect("a request")
        };
        let (status, about) = send(address, get("/", "")).await;
        let about: serde_json::Value = serde_json::from_slice(&about).expect("JSON");
        assert_eq!((status, about["version"].is_string()), (200, true));
        let (status, config) = send(address, get("/config/v1/agents?service.name=pets", "")).await;
        assert_eq!((status, &config[..]), (200, &b"{}"[..]));
        assert_eq!(send(address, get("/config/v1/agents", "\"unladen\"")).await.0, 304);
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.rejected, summary.undecodable), (3, 1, 1));
    assert_eq!(summary.spans_by_request, [(1, 3)]);
    assert_eq!(summary.by_protocol["elastic"], 3);
    assert_eq!(columns(&rows[0])["duration_ns"], "1000000");
}

/// A field of a Thrift structure.
fn thrift(kind: u8, number: u8, value: &[u8]) -> Vec<u8> {
    [&[kind, 0, number], value].concat()
}

fn thrift_text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// A Thrift batch of one span.
fn thrift_batch(index: u64) -> Vec<u8> {
    let id = REQUESTS.trace_id(index);
    let tag = [thrift(11, 1, &thrift_text("span.kind")), thrift(8, 2, &[0; 4]), thrift(11, 3, &thrift_text("server"))];
    let span = [
        thrift(10, 1, &id[8..]),
        thrift(10, 2, &id[..8]),
        thrift(10, 3, &[3; 8]),
        thrift(10, 4, &[4; 8]),
        thrift(11, 5, &thrift_text("GET /vets")),
        thrift(8, 7, &[0, 0, 0, 1]),
        thrift(10, 8, &1_000_000_i64.to_be_bytes()),
        thrift(10, 9, &5_i64.to_be_bytes()),
        thrift(15, 10, &[&[12, 0, 0, 0, 1][..], &tag.concat(), &[0]].concat()),
        // Unknown: a map of one byte to one.
        thrift(13, 99, &[3, 3, 0, 0, 0, 1, 7, 7]),
        vec![0],
    ];
    let process = [thrift(11, 1, &thrift_text("pets")), vec![0]].concat();
    let spans = [&[12, 0, 0, 0, 1][..], &span.concat()].concat();
    [thrift(15, 2, &spans), thrift(12, 1, &process), vec![0]].concat()
}

#[test]
fn jaeger() {
    let sink = sink();
    let address = sink.addresses["jaeger"];
    let span = [field(1, &REQUESTS.trace_id(1)), field(2, &[5; 8]), field(3, b"SELECT")].concat();
    let tag = [field(1, b"error"), vec![0x10, 1, 0x20, 1]].concat();
    let span = [span, field(7, &[0x10, 9]), field(8, &tag)].concat();
    let batch = field(1, &[field(1, &span), field(2, &field(1, b"db"))].concat());
    let path = "/jaeger.api_v2.CollectorService/PostSpans";
    block_on(async {
        let sound = thrift_batch(0);
        let (status, _) = send(address, post("/api/traces?format=jaeger.thrift", &[THRIFT], sound.clone())).await;
        assert_eq!(status, 202);
        assert_eq!(call(address, path, None, framed(&batch)).await, (200, "0".to_string(), String::new()));
        assert_eq!(call(address, path, None, framed(b"\xff")).await.1, "3");
        assert_eq!(call(address, "/jaeger.api_v2.QueryService/GetTrace", None, framed(b"")).await.1, "12");
        for end in 0..sound.len() {
            let (status, _) = send(address, post("/api/traces", &[THRIFT], sound[..end].to_vec())).await;
            assert_eq!(status, 400, "cut at {end}");
        }
        assert_eq!(send(address, post("/api/traces", &[JSON], sound)).await.0, 415);
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.foreign), (2, 0));
    assert_eq!(summary.undecodable, 1 + thrift_batch(0).len() as u64);
    assert_eq!(summary.by_protocol["jaeger"], 2);
    let (server, client) = (columns(&rows[0]), columns(&rows[1]));
    assert_eq!((server["service"].as_str(), server["kind"].as_str()), ("\"pets\"", "\"server\""));
    assert_eq!((server["start_ns"].as_str(), server["duration_ns"].as_str()), ("1000000000", "5000"));
    assert_eq!(server["parent_id"], "[4, 4, 4, 4, 4, 4, 4, 4]");
    assert_eq!((client["service"].as_str(), client["status"].as_str()), ("\"db\"", "\"error\""));
    assert_eq!(client["duration_ns"], "9");
}
