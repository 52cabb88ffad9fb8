//! OTLP over HTTP/1.1, with hyper as the client.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::{
    Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use unladen_ledger::summary::ReportedLoss;

use crate::support::{Sink, block_on, columns, gzip, request, span};

/// Sends one request; status and body of the answer.
pub(crate) async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> (u16, Bytes) {
    let stream = TcpStream::connect(address).await.expect("the sink listens");
    send_over(stream, request).await
}

/// The same over a connection that is there.
pub(crate) async fn send_over(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> (u16, Bytes) {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1 is spoken");
    tokio::spawn(connection);
    let response = sender.send_request(request).await.expect("an answer");
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.expect("a body").to_bytes())
}

pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Request<Full<Bytes>> {
    let mut request = Request::post(path).header("host", "sink");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.into())).expect("a request")
}

const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");
const GZIP: (&str, &str) = ("content-encoding", "gzip");

/// `google.rpc.Status`, as far as it is used.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

#[test]
fn spans_arrive_plain_and_compressed() {
    let sink = Sink::start();
    block_on(async {
        let body = |trace| request((0..3).map(|number| span(trace, number)).collect()).encode_to_vec();
        let charset = ("content-type", "application/x-protobuf; charset=utf-8");
        for (headers, body) in [(vec![charset], body(1)), (vec![PROTOBUF, GZIP], gzip(&body(2)))] {
            let (status, answer) = send(sink.http, post("/v1/traces", &headers, body)).await;
            assert_eq!(status, 200);
            assert_eq!(ExportTraceServiceResponse::decode(answer), Ok(ExportTraceServiceResponse::default()));
        }
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, summary.saved, summary.traces), (6, 6, 2));
    assert_eq!(summary.by_protocol["otlp_http"], 6);
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| columns(row)["protocol"] == "\"otlp_http\""));
}

#[test]
fn rejected_spans_are_named() {
    let sink = Sink::start();
    let mut broken = span(1, 0);
    broken.span_id = Vec::new();
    let body = request(vec![broken, span(1, 1)]).encode_to_vec();
    let (status, answer) = block_on(send(sink.http, post("/v1/traces", &[PROTOBUF], body)));
    let partial = ExportTraceServiceResponse::decode(answer).expect("protobuf").partial_success.expect("in part");
    assert_eq!((status, partial.rejected_spans), (200, 1));
    assert_eq!(partial.error_message, "a span's id is not 8 bytes, or all zeros");
    assert_eq!(sink.stop().0.rejected, 1);
}

#[test]
fn broken_requests_get_the_right_status_and_count_nothing() {
    let sink = Sink::with(|config| unladen_sink::config::Config { max_message: 10_000, ..config });
    let sound = request(vec![span(1, 0), span(1, 1)]).encode_to_vec();
    let large = request((0..200).map(|number| span(1, number)).collect()).encode_to_vec();
    let cut = sound[..sound.len() - 1].to_vec();
    let cases: [(&str, Request<Full<Bytes>>, u16); 10] = [
        ("wrong path", post("/v1/spans", &[PROTOBUF], sound.clone()), 404),
        ("cut off protobuf", post("/v1/traces", &[PROTOBUF], cut), 400),
        ("no protobuf", post("/v1/traces", &[PROTOBUF], b"hello".to_vec()), 400),
        ("too large", post("/v1/traces", &[PROTOBUF], large.clone()), 413),
        ("too large when unpacked", post("/v1/traces", &[PROTOBUF, GZIP], gzip(&large)), 413),
        ("no gzip", post("/v1/traces", &[PROTOBUF, GZIP], sound.clone()), 400),
        ("cut off gzip", post("/v1/traces", &[PROTOBUF, GZIP], gzip(&sound)[..60].to_vec()), 400),
        ("other compression", post("/v1/traces", &[PROTOBUF, ("content-encoding", "br")], sound.clone()), 415),
        ("no content type", post("/v1/traces", &[], sound.clone()), 415),
        ("another content type", post("/v1/traces", &[("content-type", "text/plain")], sound), 415),
    ];
    block_on(async {
        for (name, request, expected) in cases {
            let (status, answer) = send(sink.http, request).await;
            let reply = Status::decode(answer).expect("a google.rpc.Status");
            assert_eq!(status, expected, "{name}: {}", reply.message);
            assert!(reply.code != 0 && !reply.message.is_empty(), "{name}");
        }
        let get = Request::get("/v1/traces").body(Full::new(Bytes::new())).expect("a request");
        assert_eq!(send(sink.http, get).await.0, 405);
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, rows.len()), (0, 0));
    assert_eq!(summary.undecodable, 6);
}

#[test]
fn json_is_taken_and_answered_as_json() {
    let sink = Sink::start();
    let span = |id: &str| {
        let trace = "5b8efff798038103d269b633813fc60c";
        format!(
            r#"{{"traceId":"{trace}","spanId":"{id}","name":"GET /vets","kind":"SPAN_KIND_SERVER",
                "startTimeUnixNano":"1544712660000000000","endTimeUnixNano":1544712661000000000,
                "attributes":[{{"key":"n","value":{{"intValue":"7"}}}}]}}"#
        )
    };
    let body = |ids: &[&str]| {
        let spans: Vec<_> = ids.iter().map(|id| span(id)).collect();
        let resource = r#"{"attributes":[{"key":"service.name","value":{"stringValue":"pets"}}]}"#;
        let spans = spans.join(",");
        // The resource comes last, as it may.
        format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}],"resource":{resource}}}]}}"#).into_bytes()
    };
    let json = ("content-type", "application/json");
    let zstd = zstd::bulk::compress(&body(&["eee19b7ec3c1b175"]), 1).expect("compressed");
    block_on(async {
        let (status, answer) = send(sink.http, post("/v1/traces", &[json], body(&["eee19b7ec3c1b174"]))).await;
        assert_eq!((status, &answer[..]), (200, &b"{}"[..]));
        let packed = post("/v1/traces", &[json, ("content-encoding", "zstd")], zstd);
        assert_eq!(send(sink.http, packed).await.0, 200);
        let (status, answer) = send(sink.http, post("/v1/traces", &[json], body(&["eee1", "eee19b7ec3c1b176"]))).await;
        let reply: serde_json::Value = serde_json::from_slice(&answer).expect("a JSON sender gets JSON");
        assert_eq!((status, &reply["partialSuccess"]["rejectedSpans"]), (200, &"1".into()));
        let (status, answer) = send(sink.http, post("/v1/traces", &[json], b"{\"resourceSpans\":[".to_vec())).await;
        let reply: serde_json::Value = serde_json::from_slice(&answer).expect("a JSON sender gets JSON");
        assert_eq!((status, &reply["code"]), (400, &3.into()));
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.rejected, summary.undecodable), (3, 1, 1));
    let row = columns(&rows[0]);
    assert_eq!((row["service"].as_str(), row["kind"].as_str(), row["n"].as_str()), ("\"pets\"", "\"server\"", "7"));
    assert_eq!(row["duration_ns"], "1000000000");
}

#[test]
fn metrics_and_logs_are_welcome() {
    let sink = Sink::start();
    block_on(async {
        for path in ["/v1/metrics", "/v1/logs"] {
            assert_eq!(send(sink.http, post(path, &[PROTOBUF], b"whatever".to_vec())).await, (200, Bytes::new()));
        }
    });
    assert_eq!(sink.stop().0.received, 0);
}

#[test]
fn agents_tell_what_they_lost() {
    let attribute = |key: &str, value: Value| KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    };
    let message = |spans: i64| {
        let point = NumberDataPoint {
            attributes: vec![attribute("error.type", Value::StringValue("queue_full".into()))],
            value: Some(number_data_point::Value::AsInt(spans)),
            ..Default::default()
        };
        let sum = Sum { data_points: vec![point], aggregation_temporality: 2, is_monotonic: true };
        let name = "otel.sdk.processor.span.processed".into();
        let metric = Metric { name, data: Some(metric::Data::Sum(sum)), ..Default::default() };
        let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..Default::default() }];
        let attributes = vec![attribute("service.name", Value::StringValue("pets".into()))];
        let resource = Some(Resource { attributes, ..Default::default() });
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics { resource, scope_metrics, ..Default::default() }],
        }
        .encode_to_vec()
    };
    let sink = Sink::start();
    block_on(async {
        for spans in [3, 17] {
            assert_eq!(send(sink.http, post("/v1/metrics", &[PROTOBUF], message(spans))).await.0, 200);
        }
    });
    let (summary, _) = sink.stop();
    assert_eq!(summary.reported_losses, [ReportedLoss { service: "pets".into(), stage: "queue".into(), spans: 17 }]);
}
