//! Zero loss, each protocol: senders as fast as they can be, a writer that is throttled to a third of their rate for a part
//! of the run. What was sent, what was acknowledged, the rows on disk and the ledger agree to the span, and memory stays
//! bounded.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use unladen_ledger::summary::{Event, Summary};
use unladen_ledger::{Load, Sampling, SecondOfRequests, close};
use unladen_sink::config::{Config, Requests};

use crate::child::Process;
use crate::senders::{Answer, Client, Way};
use crate::support::{PATIENCE, block_on_within, config};

const SPANS_PER_TRACE: u64 = 4;
/// Traces of a request: 512 spans, as the OpenTelemetry SDKs send at most.
const TRACES: u64 = 128;
const SENDERS: u64 = 8;
/// The lower half of the id of the request whose index is the key is 0, which to Datadog is no id: there are fewer requests.
const IDS: Requests = Requests { tag: 0x0bad_cafe_dead_beef, key: 7 << 60 };
/// Hard bound of the sink's memory, KiB.
const MEMORY: u64 = 100 << 10;

/// Sends every span until it is acknowledged; spans acknowledged, and how often a request was told to come again.
async fn deliver(way: Way, address: SocketAddr, indices: std::ops::Range<u64>) -> (u64, u64) {
    let mut client = Client::connect(way, address).await.expect("the sink listens");
    let (mut acknowledged, mut refusals) = (0, 0);
    let mut next = indices.start;
    while next < indices.end {
        let end = indices.end.min(next + TRACES);
        let traces: Vec<_> = (next..end).map(|index| IDS.trace_id(index)).collect();
        let body = bytes::Bytes::from(way.body(&traces, SPANS_PER_TRACE));
        while client.send(body.clone()).await.expect("the sink stays") == Answer::Later {
            refusals += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        acknowledged += (end - next) * SPANS_PER_TRACE;
        next = end;
    }
    (acknowledged, refusals)
}

/// What a run showed.
struct Run {
    spans: u64,
    seconds: f64,
    refusals: u64,
    /// KiB.
    memory: u64,
    cpu_seconds: f64,
}

/// Sends that many traces and checks that all books agree; the writer takes no more than `rate` spans a second for `ms`.
fn nothing_is_lost(way: Way, traces: u64, throttle: Option<(u64, u64)>) -> Run {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let config = Config {
        requests: Some(IDS),
        write_rate: throttle.map(|(rate, _)| rate),
        write_rate_ms: throttle.map(|(_, ms)| ms),
        ..way.listen(config(folder.path()))
    };
    let (mut process, stdin) = Process::start(&serde_json::to_string(&config).expect("JSON"));
    let mut events = process.events();
    let Some(Event::Ready { addresses }) = events.next() else { panic!("not ready") };
    let address = addresses[way.protocol().name()];
    // Somebody must read what it tells.
    let last = std::thread::spawn(move || events.last());
    let share = traces / SENDERS;
    let begun = Instant::now();
    let patience = PATIENCE * 20 + Duration::from_micros(100) * (traces * SPANS_PER_TRACE) as u32;
    let (acknowledged, refusals) = block_on_within(patience, async {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| tokio::spawn(deliver(way, address, sender * share..(sender + 1) * share)))
            .collect();
        let (mut acknowledged, mut refusals) = (0, 0);
        for sender in senders {
            let of_sender = sender.await.expect("no sender fails");
            acknowledged += of_sender.0;
            refusals += of_sender.1;
        }
        (acknowledged, refusals)
    });
    let seconds = begun.elapsed().as_secs_f64();
    let (memory, cpu_seconds) = (peak_memory(process.id()), cpu_seconds(process.id()));
    drop(stdin);
    let Some(Event::Done(summary)) = last.join().expect("a reader") else { panic!("no summary") };
    assert_eq!(process.end().0, Some(0));
    let spans = share * SENDERS * SPANS_PER_TRACE;
    assert_eq!(acknowledged, spans, "{way:?}");
    agree(way, &summary, share * SENDERS, folder.path());
    assert!(memory < MEMORY, "{way:?}: {memory} KiB");
    Run { spans, seconds, refusals, memory, cpu_seconds }
}

fn agree(way: Way, summary: &Summary, requests: u64, folder: &Path) {
    let spans = requests * SPANS_PER_TRACE;
    assert_eq!((summary.saved, summary.foreign, rows(folder)), (spans, 0, spans), "{way:?}");
    assert_eq!((summary.rejected, summary.undecodable), (0, 0), "{way:?}");
    // A stream that is refused in the middle is sent again as a whole.
    assert_eq!(summary.received - summary.duplicates, spans, "{way:?}");
    let seconds = [SecondOfRequests { first_index: 0, sent: requests, answered: requests, sampled: requests }];
    let load = Load { seconds: &seconds, sent: requests, answered: requests, sampled: requests };
    let ledger = close(summary, &load, Some(SPANS_PER_TRACE as f64), Sampling::Flag).expect("an account");
    assert_eq!((ledger.expected, ledger.saved, ledger.lost, ledger.unexplained), (spans, spans, 0, 0), "{way:?}");
}

/// Rows of all files, by their footers.
fn rows(out: &Path) -> u64 {
    let files = std::fs::read_dir(out.join("spans")).expect("spans folder");
    let rows = files.map(|entry| {
        let file = std::fs::File::open(entry.expect("entry").path()).expect("span file");
        let reader = SerializedFileReader::new(file).expect("a whole Parquet file");
        reader.metadata().file_metadata().num_rows() as u64
    });
    rows.sum()
}

/// Most memory that a process has had, KiB.
pub(crate) fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process that lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells the peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// What a process has used of all cores.
fn cpu_seconds(process: u32) -> f64 {
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process that lives");
    let behind = stat.rsplit(')').next().expect("a name in brackets");
    // User and system time are fields 14 and 15; the third is the first here.
    let ticks = |field: usize| behind.split_whitespace().nth(field - 3).and_then(|text| text.parse::<f64>().ok());
    (ticks(14).expect("user time") + ticks(15).expect("system time")) / TICKS
}

/// First as fast as it goes, to learn the rate; then with the writer at a third of it until a quarter is through.
fn every_protocol_loses_nothing(ways: &[Way], spans: u64) {
    for way in ways {
        let free = nothing_is_lost(*way, (spans / 5).min(400_000) / SPANS_PER_TRACE, None);
        let rate = (free.spans as f64 / free.seconds / 3.0).max(1.0);
        let ms = spans as f64 / 4.0 / rate * 1e3;
        let run = nothing_is_lost(*way, spans / SPANS_PER_TRACE, Some((rate as u64, ms as u64)));
        println!(
            "| {way:?} | {} | {:.0} k/s | {:.0} k/s for {:.0} s | {:.1} s | {} | {:.2} | {:.0} MiB |",
            run.spans,
            free.spans as f64 / free.seconds / 1e3,
            rate / 1e3,
            ms / 1e3,
            run.seconds,
            run.refusals,
            run.cpu_seconds / run.spans as f64 * 1e6,
            run.memory as f64 / 1024.0
        );
    }
}

#[test]
fn nothing_is_lost_of_a_hundred_thousand_spans() {
    every_protocol_loses_nothing(&Way::ALL, 100_000);
}

#[test]
#[ignore = "takes minutes in a release build: `make loss`; `make test` runs a part of it"]
fn nothing_is_lost_of_five_million_spans() {
    println!("| way | spans | free rate | throttled to | took | refusals | CPU-s/M | peak memory |");
    every_protocol_loses_nothing(&Way::ALL, 5_000_000);
}
