//! kill -9 at random moments under load, each protocol: every span that was acknowledged can be read afterwards.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use unladen_ledger::summary::Event;
use unladen_sink::{Recovered, recover};
use unladen_trace::mix;

use crate::child::Process;
use crate::senders::{Answer, Client, START, Way};
use crate::support::{block_on, config, rows};

/// Trace, by the number that its id is made of, and start of the span behind that of the first, ns.
pub(crate) type Id = (u64, u64);

fn trace_id(trace: u64) -> [u8; 16] {
    (u128::from(u64::MAX) << 64 | u128::from(trace)).to_be_bytes()
}

/// Sends from several connections until the sink is killed after `life`; what it acknowledged.
fn acknowledged(way: Way, out: &Path, life: Duration, spans: u64) -> Vec<Id> {
    const SENDERS: u64 = 6;
    let config = way.listen(config(out));
    let (mut process, _stdin) = Process::start(&serde_json::to_string(&config).expect("JSON"));
    let mut events = process.events();
    let Some(Event::Ready { addresses }) = events.next() else { panic!("not ready") };
    let address: SocketAddr = addresses[way.protocol().name()];
    block_on(async {
        let senders = (0..SENDERS).map(|sender| {
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                let Ok(mut client) = Client::connect(way, address).await else { return acknowledged };
                for batch in 0.. {
                    // Not 0, which to Datadog is no id.
                    let trace = (sender + 1) << 32 | batch;
                    let body = way.body(&[trace_id(trace)], spans);
                    match client.send(body.into()).await {
                        Ok(Answer::Taken) => acknowledged.extend((0..spans).map(|number| (trace, number * 1_000_000))),
                        Ok(Answer::Later) => {}
                        Err(_) => break,
                    }
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
        let field = |name: &str| row.get_column_iter().find(|(column, _)| *column == name).expect("a column").1;
        let parquet::record::Field::Bytes(trace) = field("trace_id") else { panic!("no bytes") };
        let parquet::record::Field::Long(start) = field("start_ns") else { panic!("no number") };
        let trace = u64::from_be_bytes(*trace.data().last_chunk().expect("eight bytes"));
        assert!(all.insert((trace, *start as u64 - START)), "a span is there twice");
    }
    all
}

/// Spans that were acknowledged, and what was torn.
fn crash(way: Way, seed: u64) -> (usize, Recovered) {
    let random = |salt: u64, below: u64| mix((way as u64) << 32 | seed << 8 | salt) % below;
    let folder = tempfile::tempdir().expect("a folder for the test");
    let life = Duration::from_millis(1 + random(1, 400));
    // From a handful of spans, which are logged, to thousands, which are a row group at once.
    let spans = [3, 40, 500, 1_500][random(2, 4) as usize];
    let acknowledged = acknowledged(way, folder.path(), life, spans);
    let recovered = recover(folder.path()).expect("it can be recovered");
    let stored = stored(folder.path());
    let missing = acknowledged.iter().filter(|id| !stored.contains(id)).count();
    assert_eq!(
        missing,
        0,
        "{way:?}: of {} acknowledged after {life:?} with {spans} a request; {recovered:?}",
        acknowledged.len()
    );
    assert_eq!(recover(folder.path()).expect("twice does no harm"), Recovered::default());
    (acknowledged.len(), recovered)
}

#[test]
fn the_next_sink_finishes_what_the_last_one_left() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let acknowledged = acknowledged(Way::OtlpGrpc, folder.path(), Duration::from_millis(300), 40);
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
    let mut crashes = Vec::new();
    for way in Way::ALL {
        let of_way: Vec<_> = (0..4).map(|seed| crash(way, seed)).collect();
        // It was no idle sink that was killed.
        assert!(of_way.iter().any(|(acknowledged, _)| *acknowledged > 0), "{way:?} {of_way:?}");
        crashes.extend(of_way);
    }
    assert!(crashes.iter().map(|(acknowledged, _)| acknowledged).sum::<usize>() > 10_000, "{crashes:?}");
    // Both kinds of traces are left by some.
    assert!(crashes.iter().any(|(_, recovered)| recovered.files > 0), "{crashes:?}");
    assert!(crashes.iter().any(|(_, recovered)| recovered.logged_rows > 0), "{crashes:?}");
}

#[test]
#[ignore = "takes a few minutes: `make crash`; `make test` runs a part of it"]
fn what_was_acknowledged_survives_kill_9_at_many_moments() {
    for way in Way::ALL {
        let crashes: Vec<_> = (100..130).map(|seed| crash(way, seed)).collect();
        let acknowledged: usize = crashes.iter().map(|(acknowledged, _)| acknowledged).sum();
        let torn = crashes.iter().filter(|(_, recovered)| recovered.files > 0).count();
        let logged = crashes.iter().filter(|(_, recovered)| recovered.logged_rows > 0).count();
        println!(
            "{way:?}: 30 crashes, {acknowledged} spans acknowledged, none missing; {torn} torn files, {logged} logs"
        );
    }
}
