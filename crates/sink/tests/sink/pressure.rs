//! A store that is slower than its senders, and a disk that is full: senders are held back or told to come again, nothing
//! is lost, nothing is acknowledged that is not kept, and memory stays bounded.

use std::collections::HashSet;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use parquet::file::reader::{FileReader, SerializedFileReader};
use prost::Message;
use unladen_sink::config::{Config, Requests};
use unladen_sink::ledger::{Load, Sampling, SecondOfRequests, close};
use unladen_sink::recover;
use unladen_sink::summary::Event;

use crate::child::Process;
use crate::crash::stored;
use crate::support::{PATIENCE, Sink, block_on, block_on_within, config, request, span, with_trace};

const SPANS_PER_REQUEST: u64 = 4;

/// Sends every span until it is acknowledged; how often a request was told to come again.
async fn deliver(address: std::net::SocketAddr, ids: Requests, indices: std::ops::Range<u64>, batch: u64) -> u64 {
    let mut client = TraceServiceClient::connect(format!("http://{address}")).await.expect("the sink listens");
    let mut refusals = 0;
    let mut next = indices.start;
    while next < indices.end {
        let end = indices.end.min(next + batch);
        let spans = (next..end)
            .flat_map(|index| {
                (0..SPANS_PER_REQUEST).map(move |number| with_trace(ids.trace_id(index).to_vec(), number))
            })
            .collect();
        let sent = request(spans);
        while let Err(status) = client.export(sent.clone()).await {
            assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}");
            refusals += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        next = end;
    }
    refusals
}

/// Sent = acknowledged = rows = ledger, with a writer that takes `rate` spans per second.
fn nothing_is_lost(requests: u64, rate: u64) {
    const SENDERS: u64 = 8;
    let ids = Requests { tag: 0x0bad_cafe_dead_beef, key: 7 };
    let sink = Sink::with(|config| Config { requests: Some(ids), write_rate: Some(rate), ..config });
    let grpc = sink.grpc;
    let share = requests / SENDERS;
    let patience = PATIENCE + Duration::from_secs(requests * SPANS_PER_REQUEST / rate * 4);
    block_on_within(patience, async {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| tokio::spawn(deliver(grpc, ids, sender * share..(sender + 1) * share, 256)))
            .collect();
        for sender in senders {
            sender.await.expect("no sender fails");
        }
    });
    let (summary, folder) = sink.stop_and_keep();
    let rows = count(folder.path());
    let requests = share * SENDERS;
    let spans = requests * SPANS_PER_REQUEST;
    assert_eq!((summary.saved, summary.foreign, rows), (spans, 0, spans));
    let seconds = [SecondOfRequests { first_index: 0, sent: requests, answered: requests, sampled: requests }];
    let load = Load { seconds: &seconds, sent: requests, answered: requests, sampled: requests };
    let ledger = close(&summary, &load, Some(SPANS_PER_REQUEST as f64), Sampling::Flag).expect("an account");
    assert_eq!((ledger.expected, ledger.saved, ledger.lost, ledger.unexplained), (spans, spans, 0, 0));
}

/// Rows of all files, by their footers.
fn count(out: &std::path::Path) -> u64 {
    let files = std::fs::read_dir(out.join("spans")).expect("spans folder");
    let rows = files.map(|entry| {
        let file = std::fs::File::open(entry.expect("entry").path()).expect("span file");
        let reader = SerializedFileReader::new(file).expect("a whole Parquet file");
        reader.metadata().file_metadata().num_rows() as u64
    });
    rows.sum()
}

#[test]
fn a_slow_store_loses_nothing() {
    nothing_is_lost(20_000, 60_000);
}

#[test]
#[ignore = "takes a minute or two in a release build"]
fn a_slow_store_loses_nothing_of_five_million_spans() {
    nothing_is_lost(1_250_000, 150_000);
}

/// As `sh` would say, in units of 1024 bytes.
fn with_largest_file(kilobytes: u32, out: &std::path::Path) -> (Process, std::process::ChildStdin) {
    let config = Config { otlp_http: None, ..config(out) };
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
