//! What the sink tells about itself: metrics that a Prometheus server would take, and its health.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty};
use prost::Message;
use unladen_ledger::summary::Event;
use unladen_sink::config::Config;

use crate::http::{post, send};
use crate::support::{Sink, block_on, request, span};

const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");

/// Status, media type and body of a path.
async fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    let stream = tokio::net::TcpStream::connect(address).await.expect("the sink listens");
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.expect("a connection");
    tokio::spawn(connection);
    let request =
        hyper::Request::get(path).header("host", "sink").body(Empty::<bytes::Bytes>::new()).expect("a request");
    let response = sender.send_request(request).await.expect("an answer");
    let media = response.headers().get("content-type").map(|value| value.to_str().expect("text").to_owned());
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, media.unwrap_or_default(), String::from_utf8_lossy(&body).into_owned())
}

#[test]
fn metrics_and_health_while_spans_come_in() {
    let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let sink = Sink::with(|config| Config { admin: any, live: true, ..config });
    let admin = sink.addresses["admin"];
    block_on(async {
        let body = request((0..3).map(|number| span(7, number)).collect()).encode_to_vec();
        for _ in 0..2 {
            assert_eq!(send(sink.http, post("/v1/traces", &[PROTOBUF], body.clone())).await.0, 200);
        }
        assert_eq!(send(sink.http, post("/v1/traces", &[PROTOBUF], vec![0xff])).await.0, 400);
        assert_eq!(get(admin, "/healthz").await, (200, "text/plain; charset=utf-8".into(), "ok\n".into()));
        let (status, media, text) = get(admin, "/metrics").await;
        assert_eq!((status, media.as_str()), (200, "text/plain; version=0.0.4; charset=utf-8"));
        for line in [
            "unladen_sink_spans_received_total{protocol=\"otlp_http\"} 6",
            "unladen_sink_spans_saved_total 3",
            "unladen_sink_spans_duplicate_total 3",
            "unladen_sink_requests_undecodable_total 1",
            "unladen_sink_service_spans_total{service=\"pets\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert_eq!(get(admin, "/nowhere").await.0, 404);
        // Spans are not taken here.
        assert_eq!(send(admin, post("/v1/traces", &[PROTOBUF], body)).await.0, 405);
    });
    let live = sink.events.iter().find_map(|event| match event {
        Event::Live(summary) if summary.received == 6 => Some(summary),
        _ => None,
    });
    assert_eq!(live.expect("a live summary").by_service["pets"], 3);
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, rows.len()), (3, 3));
}
