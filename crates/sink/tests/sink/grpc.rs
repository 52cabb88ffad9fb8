//! OTLP over gRPC: the generated tonic client, and a bare HTTP/2 client for what tonic would never send.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use prost::Message;
use tokio::net::TcpStream;
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;

use crate::support::{Sink, block_on, columns, gzip, request, span};

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

async fn client(address: SocketAddr) -> TraceServiceClient<Channel> {
    TraceServiceClient::connect(format!("http://{address}")).await.expect("the sink listens")
}

#[test]
fn spans_arrive_plain_and_compressed() {
    let sink = Sink::start();
    block_on(async {
        let plain = client(sink.grpc).await;
        let compressed = client(sink.grpc).await.send_compressed(CompressionEncoding::Gzip);
        for (trace, mut client) in [(1, plain), (2, compressed)] {
            let response = client.export(request((0..3).map(|number| span(trace, number)).collect())).await;
            assert_eq!(response.expect("accepted").into_inner().partial_success, None);
        }
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, summary.saved, summary.duplicates, summary.traces), (6, 6, 0, 2));
    assert_eq!(summary.by_protocol["otlp_grpc"], 6);
    assert_eq!(summary.by_service["pets"], 6);
    let operations: Vec<_> = summary.operations.iter().map(|all| (all.operation.as_str(), all.spans)).collect();
    assert_eq!(operations, [("GET /vets", 2), ("SELECT vets", 4)]);
    assert!((summary.operations[0].p50_us / 1_000.0 - 1.0).abs() < 1e-3);
    assert!(summary.stored_bytes > 0 && summary.bytes > 0);
    assert_eq!(rows.len(), 6);
    let root = columns(&rows[0]);
    assert_eq!(root["service"], "\"pets\"");
    assert_eq!(root["instance"], "\"pets-1\"");
    assert_eq!(root["operation"], "\"GET /vets\"");
    assert_eq!((root["kind"].as_str(), root["status"].as_str()), ("\"server\"", "\"unset\""));
    assert_eq!(root["protocol"], "\"otlp_grpc\"");
    assert_eq!((root["start_ns"].as_str(), root["duration_ns"].as_str()), ("1700000000000000000", "1000000"));
    assert_eq!((root["parent_id"].as_str(), root["request"].as_str()), ("null", "null"));
    assert_eq!((root["http.route"].as_str(), root["number"].as_str()), ("\"/vets\"", "\"0\""));
    assert_eq!(columns(&rows[1])["parent_id"], "[0, 0, 0, 0, 0, 0, 0, 1]");
}

#[test]
fn broken_ids_are_rejected_and_said_so() {
    let sink = Sink::start();
    let mut broken: Vec<_> = (0..5).map(|number| span(1, number)).collect();
    broken[0].trace_id = vec![1; 8];
    broken[1].trace_id = vec![0; 16];
    broken[2].span_id = vec![1; 9];
    broken[3].parent_span_id = vec![1; 16];
    block_on(async {
        let response = client(sink.grpc).await.export(request(broken)).await.expect("accepted in part").into_inner();
        let partial = response.partial_success.expect("a partial success");
        assert_eq!(partial.rejected_spans, 4);
        assert_eq!(partial.error_message, "a span's trace id is not 16 bytes, or all zeros");
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, summary.rejected, rows.len()), (1, 4, 1));
}

#[test]
fn duplicates_are_counted_and_stored_once() {
    let sink = Sink::start();
    block_on(async {
        let mut client = client(sink.grpc).await;
        for _ in 0..2 {
            client.export(request(vec![span(1, 0), span(1, 1), span(1, 1)])).await.expect("accepted");
        }
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, summary.saved, summary.duplicates, rows.len()), (6, 2, 4, 2));
    assert_eq!(summary.by_service["pets"], 2);
}

/// Sends one call as raw bytes; its HTTP status, gRPC status and message.
pub(crate) async fn call(
    address: SocketAddr,
    path: &str,
    encoding: Option<&str>,
    body: Vec<u8>,
) -> (u16, String, String) {
    let request = Request::post(format!("http://{address}{path}")).header("content-type", "application/grpc+proto");
    let request = match encoding {
        Some(encoding) => request.header("grpc-encoding", encoding),
        None => request,
    };
    let response = send(address, request.body(Full::new(Bytes::from(body))).expect("a request")).await;
    let (parts, body) = response.into_parts();
    let trailers = body.collect().await.expect("a body").trailers().cloned().unwrap_or_default();
    let header = |name: &str| {
        let value = parts.headers.get(name).or(trailers.get(name));
        value.map_or(String::new(), |value| value.to_str().expect("ASCII").to_string())
    };
    (parts.status.as_u16(), header("grpc-status"), header("grpc-message"))
}

async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> Response<hyper::body::Incoming> {
    let stream = TcpStream::connect(address).await.expect("the sink listens");
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .expect("HTTP/2 is spoken");
    tokio::spawn(connection);
    sender.send_request(request).await.expect("an answer")
}

fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let mut framed = vec![flag];
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(message);
    framed
}

#[test]
fn broken_calls_get_the_right_status_and_count_nothing() {
    let sink = Sink::with(|config| unladen_sink::config::Config { max_message: 10_000, ..config });
    let sound = request(vec![span(1, 0), span(1, 1)]).encode_to_vec();
    let cut = &sound[..sound.len() - 1];
    let large = request((0..200).map(|number| span(1, number)).collect()).encode_to_vec();
    assert!(large.len() > 10_000 && gzip(&large).len() < 10_000);
    // What is wrong, path, compression named, body, gRPC status.
    type Case = (&'static str, &'static str, Option<&'static str>, Vec<u8>, &'static str);
    let cases: [Case; 13] = [
        ("wrong method", "/opentelemetry.proto.collector.trace.v1.TraceService/Exports", None, framed(0, &sound), "12"),
        ("wrong service", "/grpc.health.v1.Health/Check", None, framed(0, &[]), "12"),
        ("cut off protobuf", EXPORT, None, framed(0, cut), "3"),
        ("no protobuf", EXPORT, None, framed(0, b"{\"resourceSpans\":[]}"), "3"),
        ("no frame", EXPORT, None, Vec::new(), "13"),
        ("cut off frame", EXPORT, None, framed(0, &sound)[..20].to_vec(), "13"),
        ("two messages", EXPORT, None, [framed(0, &sound), framed(0, &sound)].concat(), "13"),
        ("too large", EXPORT, None, framed(0, &large), "8"),
        ("too large when unpacked", EXPORT, Some("gzip"), framed(1, &gzip(&large)), "8"),
        ("no gzip", EXPORT, Some("gzip"), framed(1, &sound), "13"),
        ("cut off gzip", EXPORT, Some("gzip"), framed(1, &gzip(&sound)[..60]), "13"),
        ("compressed with nothing", EXPORT, None, framed(1, &gzip(&sound)), "13"),
        ("unknown compression", EXPORT, Some("snappy"), framed(1, &sound), "12"),
    ];
    block_on(async {
        for (name, path, encoding, body, status) in cases {
            let (http, grpc, message) = call(sink.grpc, path, encoding, body).await;
            assert_eq!((http, grpc.as_str()), (200, status), "{name}: {message}");
            assert!(!message.is_empty(), "{name}");
        }
        // An uncompressed message under a named compression is allowed.
        assert_eq!(call(sink.grpc, EXPORT, Some("gzip"), framed(0, &sound)).await.1, "0");
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, rows.len()), (2, 2), "only the sound call is booked");
    assert_eq!(summary.undecodable, 11, "all but those for other services");
}

#[test]
fn metrics_and_logs_are_welcome() {
    let sink = Sink::start();
    block_on(async {
        for (package, service) in [("metrics", "Metrics"), ("logs", "Logs")] {
            let path = format!("/opentelemetry.proto.collector.{package}.v1.{service}Service/Export");
            assert_eq!(call(sink.grpc, &path, Some("gzip"), framed(1, &gzip(b"whatever"))).await.1, "0");
        }
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, summary.undecodable, rows.len()), (0, 0, 0));
}

#[test]
fn other_protocols_are_told_where_they_are() {
    let sink = Sink::start();
    block_on(async {
        let request =
            Request::post(format!("http://{}/v1/traces", sink.grpc)).header("content-type", "application/json");
        let response = send(sink.grpc, request.body(Full::new(Bytes::new())).expect("a request")).await;
        assert_eq!(response.status(), 415);
        let text = response.into_body().collect().await.expect("a body").to_bytes();
        assert!(String::from_utf8_lossy(&text).contains("OTLP over gRPC"), "{text:?}");
    });
    sink.stop();
}
