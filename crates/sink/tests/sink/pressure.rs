//! A disk that is full: senders are told to come again, and nothing is acknowledged that is not kept. More connections
//! than allowed.

use std::collections::HashSet;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use prost::Message;
use unladen_ledger::summary::Event;
use unladen_sink::config::{Config, Protocol};
use unladen_sink::recover;

use crate::child::Process;
use crate::crash::stored;
use crate::support::{Sink, block_on, config, request, span};

/// As `sh` would say, in units of 1024 bytes.
fn with_largest_file(kilobytes: u32, out: &std::path::Path) -> (Process, std::process::ChildStdin) {
    let mut config = config(out);
    config.listen.remove(&Protocol::OtlpHttp);
    Process::start_limited(&serde_json::to_string(&config).expect("JSON"), kilobytes)
}

#[test]
fn a_full_disk_acknowledges_nothing_more() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (mut process, _stdin) = with_largest_file(64, folder.path());
    // Held on to: a sink whose events nobody reads ends.
    let mut events = process.events();
    let Some(Event::Ready { addresses }) = events.next() else { panic!("not ready") };
    let address = addresses["otlp_grpc"];
    let acknowledged = block_on(async {
        let mut client = TraceServiceClient::connect(format!("http://{address}")).await.expect("the sink listens");
        let mut acknowledged = HashSet::new();
        for trace in 0.. {
            match client.export(request((0..1_000).map(|number| span(trace, number)).collect())).await {
                Ok(_) => acknowledged.extend((0..1_000).map(|number| (trace, number))),
                Err(status) => {
                    assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}");
                    assert!(retry_delay(&status) > 0, "{status:?}");
                    break;
                }
            }
        }
        acknowledged
    });
    let (code, text) = process.end();
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("free space there"), "{text}");
    recover(folder.path()).expect("it can be recovered");
    assert!(!acknowledged.is_empty());
    assert!(stored(folder.path()).is_superset(&acknowledged));
}

/// Seconds in the `RetryInfo` of a status.
fn retry_delay(status: &tonic::Status) -> i64 {
    #[derive(Message)]
    struct Duration {
        #[prost(int64, tag = "1")]
        seconds: i64,
    }
    #[derive(Message)]
    struct RetryInfo {
        #[prost(message, optional, tag = "1")]
        retry_delay: Option<Duration>,
    }
    #[derive(Message)]
    struct Any {
        #[prost(string, tag = "1")]
        type_url: String,
        #[prost(bytes = "vec", tag = "2")]
        value: Vec<u8>,
    }
    #[derive(Message)]
    struct Status {
        #[prost(int32, tag = "1")]
        code: i32,
        #[prost(message, repeated, tag = "3")]
        details: Vec<Any>,
    }
    let decoded = Status::decode(status.details()).expect("a google.rpc.Status");
    assert_eq!(decoded.code, 14, "{status:?}");
    assert_eq!(decoded.details[0].type_url, "type.googleapis.com/google.rpc.RetryInfo");
    RetryInfo::decode(&decoded.details[0].value[..]).expect("a RetryInfo").retry_delay.expect("a delay").seconds
}

#[test]
fn connections_beyond_the_limit_are_closed() {
    let sink = Sink::with(|config| Config { max_connections: 2, ..config });
    block_on(async {
        let mut kept = Vec::new();
        for _ in 0..2 {
            let mut client = TraceServiceClient::connect(format!("http://{}", sink.grpc)).await.expect("room");
            client.export(request(vec![span(1, kept.len() as u64)])).await.expect("accepted");
            kept.push(client);
        }
        if let Ok(mut third) = TraceServiceClient::connect(format!("http://{}", sink.grpc)).await {
            third.export(request(vec![span(2, 0)])).await.expect_err("closed");
        }
        kept.pop();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut client = TraceServiceClient::connect(format!("http://{}", sink.grpc)).await.expect("room again");
        client.export(request(vec![span(3, 0)])).await.expect("accepted");
    });
    assert_eq!(sink.stop().0.saved, 3);
}
