//! The sink's life: events, requests of a load, many spans, and what keeps it from starting.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use unladen_ledger::summary::{Event, Shape};
use unladen_ledger::{Load, Sampling, SecondOfRequests, close};
use unladen_sink::SinkError;
use unladen_sink::config::{Attributes, Config, Protocol, Requests, Sync};

use crate::support::{PATIENCE, Sink, block_on, columns, config, request, span, with_trace};

#[test]
fn spans_are_tied_to_requests_and_the_ledger_closes() {
    let requests = Requests { tag: 0x1234_5678_9abc_def0, key: 42 };
    let sink = Sink::with(|config| Config { requests: Some(requests), ..config });
    // Ten requests of four spans; request 3 loses one, request 7 all; one span is of another trace.
    let mut spans = vec![span(1, 0)];
    for index in (0..10).filter(|index| *index != 7) {
        let kept = if index == 3 { 3 } else { 4 };
        spans.extend((0..kept).map(|number| with_trace(requests.trace_id(index).to_vec(), number)));
    }
    block_on(async {
        let mut client = TraceServiceClient::connect(format!("http://{}", sink.grpc)).await.expect("the sink listens");
        client.export(request(spans)).await.expect("accepted");
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.foreign, summary.traces), (36, 1, 10));
    assert_eq!(summary.spans_by_request, [(4, 3), (3, 1), (4, 3), (0, 1), (4, 2)]);
    let indices: Vec<String> = rows.iter().map(|row| columns(row)["request"].clone()).collect();
    assert_eq!((indices[0].as_str(), indices[1].as_str(), indices[35].as_str()), ("null", "0", "9"));
    let seconds = [SecondOfRequests { first_index: 0, sent: 10, answered: 10, sampled: 10 }];
    let load = Load { seconds: &seconds, sent: 10, answered: 10, sampled: 10 };
    let ledger = close(&summary, &load, None, Sampling::Flag).expect("an account");
    assert_eq!((ledger.expected, ledger.saved, ledger.lost, ledger.unexplained), (40, 35, 5, 0));
    assert_eq!((ledger.complete, ledger.partial, ledger.missing, ledger.foreign), (8, 1, 1, 1));
}

#[test]
fn the_shape_of_traces_is_read_back() {
    let requests = Requests { tag: 0x1234_5678_9abc_def0, key: 42 };
    let sink = Sink::with(|config| Config { requests: Some(requests), ..config });
    let mut spans = Vec::new();
    for index in 0..6 {
        let mut trace: Vec<_> = (0..4).map(|number| with_trace(requests.trace_id(index).to_vec(), number)).collect();
        match index {
            // The parent of the last one is missing; the last one names none; it names itself.
            2 => drop(trace.remove(2)),
            3 => trace[3].parent_span_id.clear(),
            4 => trace[3].parent_span_id = trace[3].span_id.clone(),
            _ => {}
        }
        // Long over by the time it arrives, but for the last trace.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        for span in trace.iter_mut().filter(|_| index == 5) {
            span.start_time_unix_nano = now.as_nanos() as u64 + u64::from(span.span_id[7]);
            span.end_time_unix_nano = span.start_time_unix_nano;
        }
        spans.extend(trace);
    }
    block_on(async {
        let mut client = TraceServiceClient::connect(format!("http://{}", sink.grpc)).await.expect("the sink listens");
        client.export(request(spans)).await.expect("accepted");
    });
    let (summary, _) = sink.stop();
    assert_eq!(summary.shape, Some(Shape { rows: 23, orphaned: 1, wrong_parent: 2 }));
    assert_eq!(summary.late, 19);
    let seconds = [SecondOfRequests { first_index: 0, sent: 6, answered: 6, sampled: 6 }];
    let load = Load { seconds: &seconds, sent: 6, answered: 6, sampled: 6 };
    let ledger = close(&summary, &load, None, Sampling::Flag).expect("an account");
    assert_eq!((ledger.complete, ledger.partial, ledger.orphaned, ledger.wrong_parent, ledger.late), (5, 1, 1, 2, 19));
}

#[test]
fn ticks_follow_the_spans_to_the_disk() {
    let sink = Sink::start();
    block_on(async {
        let mut client = TraceServiceClient::connect(format!("http://{}", sink.grpc)).await.expect("the sink listens");
        client.export(request(vec![span(1, 0), span(1, 1)])).await.expect("accepted");
    });
    // A row group is written within its age, without any further span.
    let mut quiet = 0;
    loop {
        match sink.events.recv_timeout(PATIENCE).expect("a tick every 100 ms") {
            Event::Tick { received: 2, saved, quiet_ms } => {
                assert!(quiet_ms >= quiet, "no span came since");
                quiet = quiet_ms;
                if saved == 2 {
                    break;
                }
            }
            Event::Tick { received, .. } => assert_eq!(received, 0),
            other => panic!("unexpected {other:?}"),
        }
    }
    sink.stop();
}

#[test]
fn many_spans_from_many_senders() {
    const SENDERS: u64 = 4;
    const BATCHES: u64 = 25;
    const SPANS: u64 = 500;
    let sink = Sink::with(|config| Config { attributes: Attributes::Few, ..config });
    let grpc = sink.grpc;
    block_on(async {
        let senders = (0..SENDERS).map(|sender| {
            tokio::spawn(async move {
                let mut client = TraceServiceClient::connect(format!("http://{grpc}")).await.expect("the sink listens");
                for batch in 0..BATCHES {
                    let spans = (0..SPANS).map(|number| span(sender << 32 | batch, number)).collect();
                    client.export(request(spans)).await.expect("accepted");
                }
            })
        });
        for sender in senders.collect::<Vec<_>>() {
            sender.await.expect("no sender fails");
        }
    });
    let (summary, rows) = sink.stop();
    assert_eq!(summary.received, SENDERS * BATCHES * SPANS);
    assert_eq!((summary.saved, summary.duplicates), (summary.received, 0));
    assert_eq!(rows.len() as u64, summary.saved);
    assert_eq!(summary.traces, SENDERS * BATCHES);
    let ids: std::collections::HashSet<_> = rows
        .iter()
        .map(|row| {
            let row = columns(row);
            assert_eq!((row["http.route"].as_str(), row.get("number")), ("\"/vets\"", None));
            (row["trace_id"].clone(), row["span_id"].clone())
        })
        .collect();
    assert_eq!(ids.len(), rows.len(), "every span is there, once");
}

#[test]
fn without_spans_there_is_a_summary_and_no_file() {
    let sink = Sink::start();
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, summary.stored_bytes, rows.len()), (0, 0, 0));
}

/// Why a sink with this configuration does not start.
fn refusal(config: &Config) -> SinkError {
    unladen_sink::run(config, |event| panic!("it started: {event:?}"), std::future::pending()).expect_err("no start")
}

#[test]
fn a_port_in_use_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound");
    let listen = [(Protocol::OtlpHttp, address)].into();
    let error = refusal(&Config { listen, ..config(folder.path()) });
    assert!(matches!(error, SinkError::PortInUse { protocol: "otlp_http", .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&address.port().to_string()) && text.contains("choose another port"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0, "nothing is left behind");
}

#[test]
fn an_address_of_another_machine_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let elsewhere: SocketAddr = "192.0.2.1:4317".parse().expect("an address");
    let listen = [(Protocol::OtlpGrpc, elsewhere)].into();
    let error = refusal(&Config { listen, ..config(folder.path()) });
    assert!(error.to_string().contains("192.0.2.1:4317 for otlp_grpc"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("file");
    std::fs::write(&file, b"").expect("a file");
    let error = refusal(&config(&file));
    assert!(matches!(error, SinkError::Folder { .. }), "{error:?}");
    assert!(error.to_string().contains("choose a folder that you may write to"), "{error}");
}

#[test]
fn a_store_that_fails_acknowledges_nothing_and_ends_the_sink_with_its_reason() {
    let sink = Sink::with(|config| Config { sync: Sync::Interval, ..config });
    let grpc = sink.grpc;
    std::fs::remove_dir_all(sink.folder.path().join("spans")).expect("it is there");
    block_on(async {
        let mut client = TraceServiceClient::connect(format!("http://{grpc}")).await.expect("the sink listens");
        // Acknowledged, because this sink was told not to wait for the disk; from then on nothing is.
        client.export(request(vec![span(1, 0)])).await.expect("accepted");
        let mut refusals = 0;
        while refusals < 3 {
            if let Err(status) = client.export(request(vec![span(2, refusals)])).await {
                assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}");
                refusals += 1;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
    let error = sink.ends_by_itself().expect_err("nowhere to write");
    assert!(matches!(error, SinkError::Store { .. }), "{error:?}");
    assert!(error.to_string().contains("00001.parquet"), "{error}");
}

#[test]
fn two_runs_are_not_mixed() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    std::fs::create_dir_all(folder.path().join("spans")).expect("a folder");
    std::fs::write(folder.path().join("spans/00001.parquet"), b"of another run").expect("a file");
    let error = refusal(&config(folder.path()));
    assert!(matches!(error, SinkError::FolderInUse { .. }), "{error:?}");
}

#[test]
fn a_sink_without_listeners_says_so() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let error = refusal(&Config { listen: BTreeMap::new(), ..config(folder.path()) });
    assert!(matches!(error, SinkError::NothingToListenOn));
    assert!(!folder.path().join("spans").exists());
}

#[test]
fn an_open_connection_does_not_keep_it_from_ending() {
    let sink = Sink::start();
    let idle = std::net::TcpStream::connect(sink.grpc).expect("the sink listens");
    let begun = std::time::Instant::now();
    let (summary, _) = sink.stop();
    assert!(begun.elapsed() < PATIENCE / 2);
    assert_eq!(summary.received, 0);
    drop(idle);
}
