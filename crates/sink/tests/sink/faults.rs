//! What faults do to real connections.

use std::time::{Duration, Instant};

use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use unladen_ledger::faults::{Delay, Faults, Refusal};
use unladen_sink::config::Config;

use crate::grpc::call;
use crate::http::{post, send};
use crate::support::{Sink, block_on, request, span};

const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");

fn with(faults: Faults) -> Sink {
    Sink::with(|config| Config { faults: Some(faults), ..config })
}

fn body(trace: u64) -> Vec<u8> {
    request((0..3).map(|number| span(trace, number)).collect()).encode_to_vec()
}

#[test]
fn an_exact_share_is_dropped_and_nobody_is_told() {
    let sink = with(Faults { drop_share: 0.1, ..Faults::default() });
    block_on(async {
        for trace in 0..50 {
            assert_eq!(send(sink.http, post("/v1/metrics", &[PROTOBUF], Vec::new())).await.0, 200);
            assert_eq!(send(sink.http, post("/v1/traces", &[PROTOBUF], body(trace))).await.0, 200);
        }
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, summary.saved, summary.dropped, rows.len()), (135, 135, 15, 135));
}

#[test]
fn refusals_and_delays() {
    let refuse = Some(Refusal { http: 429, grpc: 8, share: 1.0 });
    let sink = with(Faults { refuse, delay: Some(Delay::FixedMs(50)), ..Faults::default() });
    block_on(async {
        let before = Instant::now();
        assert_eq!(send(sink.http, post("/v1/traces", &[PROTOBUF], body(1))).await.0, 429);
        assert!(before.elapsed() >= Duration::from_millis(50));
        let export = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
        assert_eq!(call(sink.grpc, export, None, Vec::new()).await.1, "8");
    });
    let summary = sink.stop().0;
    assert_eq!((summary.received, summary.faulted), (0, 2));
}

/// Sends `requests` over one connection; what came back before it ended, and how it ended.
async fn pipeline(sink: &Sink, requests: usize, wait: Duration) -> (String, Option<std::io::ErrorKind>) {
    let mut stream = TcpStream::connect(sink.http).await.expect("the sink listens");
    let get = "POST /v1/logs HTTP/1.1\r\nhost: sink\r\ncontent-length: 0\r\n\r\n".repeat(requests);
    stream.write_all(get.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let end = tokio::time::timeout(wait, stream.read_to_end(&mut answer)).await;
    let end = match end {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.kind()),
        Err(_) => Some(std::io::ErrorKind::TimedOut),
    };
    (String::from_utf8_lossy(&answer).into_owned(), end)
}

#[test]
fn connections_end_as_wanted() {
    let long = Duration::from_secs(20);
    let reset = with(Faults { reset: true, ..Faults::default() });
    let (answer, end) = block_on(pipeline(&reset, 1, long));
    assert_eq!((answer.as_str(), end), ("", Some(std::io::ErrorKind::ConnectionReset)));
    reset.stop();
    let hole = with(Faults { black_hole: true, ..Faults::default() });
    let (answer, end) = block_on(pipeline(&hole, 1, Duration::from_millis(200)));
    assert_eq!((answer.as_str(), end), ("", Some(std::io::ErrorKind::TimedOut)));
    hole.stop();
    let closing = with(Faults { close_after: Some(2), ..Faults::default() });
    let (answer, end) = block_on(pipeline(&closing, 5, long));
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "{answer} {end:?}");
    closing.stop();
}
