//! kill -9 at random moments under load: every span that was acknowledged can be read afterwards.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use unladen_sink::config::Config;
use unladen_sink::requests::mix;
use unladen_sink::summary::Event;
use unladen_sink::{Recovered, recover};

use crate::child::Process;
use crate::support::{block_on, config, request, rows, span};

/// Trace and span, by the numbers that their ids are made of.
pub(crate) type Id = (u64, u64);

/// Sends from several connections until the sink is killed after `life`; what it acknowledged.
fn acknowledged(out: &Path, life: Duration, spans: u64) -> Vec<Id> {
    const SENDERS: u64 = 6;
    let config = Config { otlp_http: None, ..config(out) };
    let (mut process, _stdin) = Process::start(&serde_json::to_string(&config).expect("JSON"));
    let mut events = process.events();
    let Some(Event::Ready { addresses }) = events.next() else { panic!("not ready") };
    let address: SocketAddr = addresses["otlp_grpc"];
    block_on(async {
        let senders = (0..SENDERS).map(|sender| {
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                let Ok(mut client) = TraceServiceClient::connect(format!("http://{address}")).await else {
                    return acknowledged;
                };
                for batch in 0.. {
                    let trace = sender << 32 | batch;
                    let sent = request((0..spans).map(|number| span(trace, number)).collect());
                    if client.export(sent).await.is_err() {
                        break;
                    }
                    acknowledged.extend((0..spans).map(|number| (trace, number)));
                }
                acknowledged
            })
        });
        let senders: Vec<_> = senders.collect();
        tokio::time::sleep(life).await;
        process.kill();
        let mut all = Vec::new();
        for sender in senders {
            all.extend(sender.await.expect("no sender fails"));
        }
        all
    })
}

/// Every span on disk; panics if one is there twice.
pub(crate) fn stored(out: &Path) -> HashSet<Id> {
    let mut all = HashSet::new();
    for row in rows(out) {
        let id = |name: &str| {
            let (_, field) = row.get_column_iter().find(|(column, _)| *column == name).expect("a column");
            let parquet::record::Field::Bytes(bytes) = field else { panic!("{field:?}") };
            let last: [u8; 8] = *bytes.data().last_chunk().expect("eight bytes");
            u64::from_be_bytes(last)
        };
        assert!(all.insert((id("trace_id"), id("span_id") - 1)), "a span is there twice");
    }
    all
}

/// Spans that were acknowledged, and what was torn.
fn crash(seed: u64) -> (usize, Recovered) {
    let random = |salt: u64, below: u64| mix(seed << 8 | salt) % below;
    let folder = tempfile::tempdir().expect("a folder for the test");
    let life = Duration::from_millis(1 + random(1, 400));
    // From a handful of spans, which are logged, to thousands, which are a row group at once.
    let spans = [3, 40, 500, 1_500][random(2, 4) as usize];
    let acknowledged = acknowledged(folder.path(), life, spans);
    let recovered = recover(folder.path()).expect("it can be recovered");
    let stored = stored(folder.path());
    let missing = acknowledged.iter().filter(|id| !stored.contains(id)).count();
    assert_eq!(
        missing,
        0,
        "of {} acknowledged after {life:?} with {spans} a request; {recovered:?}",
        acknowledged.len()
    );
    assert_eq!(recover(folder.path()).expect("twice does no harm"), Recovered::default());
    (acknowledged.len(), recovered)
}

#[test]
fn the_next_sink_finishes_what_the_last_one_left() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let acknowledged = acknowledged(folder.path(), Duration::from_millis(300), 40);
    assert!(!acknowledged.is_empty());
    let config = config(folder.path());
    let error =
        unladen_sink::run(&config, |_| (), std::future::pending()).expect_err("the folder has spans of another run");
    assert!(matches!(error, unladen_sink::SinkError::FolderInUse { .. }), "{error:?}");
    let stored = stored(folder.path());
    assert!(acknowledged.iter().all(|id| stored.contains(id)));
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let crashes: Vec<_> = (0..8).map(crash).collect();
    // It was no idle sink that was killed, and both kinds of traces are left by some.
    assert!(crashes.iter().map(|(acknowledged, _)| acknowledged).sum::<usize>() > 1_000, "{crashes:?}");
    assert!(crashes.iter().any(|(_, recovered)| recovered.files > 0), "{crashes:?}");
    assert!(crashes.iter().any(|(_, recovered)| recovered.logged_rows > 0), "{crashes:?}");
}

#[test]
#[ignore = "takes half a minute; `make test` runs a part of it"]
fn what_was_acknowledged_survives_kill_9_at_many_moments() {
    for seed in 100..160 {
        crash(seed);
    }
}
