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
use tokio::net::TcpStream;
use unladen_sink::summary::Told;

use crate::support::{Sink, block_on, columns, gzip, request, span};

/// Sends one request; status and body of the answer.
async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> (u16, Bytes) {
    let stream = TcpStream::connect(address).await.expect("the sink listens");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1 is spoken");
    tokio::spawn(connection);
    let response = sender.send_request(request).await.expect("an answer");
    let status = response.status().as_u16();
    (status, response.into_body().collect().await.expect("a body").to_bytes())
}

fn post(path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Request<Full<Bytes>> {
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
fn broken_requests_get_the_right_status_and_book_nothing() {
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
            let said = Status::decode(answer).expect("a google.rpc.Status");
            assert_eq!(status, expected, "{name}: {}", said.message);
            assert!(said.code != 0 && !said.message.is_empty(), "{name}");
        }
        let get = Request::get("/v1/traces").body(Full::new(Bytes::new())).expect("a request");
        assert_eq!(send(sink.http, get).await.0, 405);
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, rows.len()), (0, 0));
    assert_eq!(summary.undecodable, 6);
}

#[test]
fn json_is_told_to_come_as_protobuf() {
    let sink = Sink::start();
    let json = post("/v1/traces", &[("content-type", "application/json")], br#"{"resourceSpans":[]}"#.to_vec());
    let (status, answer) = block_on(send(sink.http, json));
    let said: serde_json::Value = serde_json::from_slice(&answer).expect("a JSON sender gets JSON");
    assert_eq!(status, 415);
    assert!(said["message"].as_str().expect("a message").contains("http/protobuf"), "{said}");
    sink.stop();
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
    assert_eq!(summary.told, [Told { service: "pets".into(), stage: "queue".into(), spans: 17 }]);
}
