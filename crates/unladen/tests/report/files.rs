//! The files that runs leave beside the journal, as sketches of runs would: histogram, timeline, spans.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use unladen_journal::record::{ProcessRecord, RunRecord};
use unladen_probe::timeline::{self, Row};

/// Writes what each of these runs would have left.
pub(crate) fn write(dir: &Path, runs: &[RunRecord]) {
    for run in runs {
        let folder = dir.join(&run.dir);
        fs::create_dir_all(folder.join("spans")).expect("a temporary folder");
        latency(&folder, run);
        timeline::write(&folder.join("timeline.parquet"), &samples(run)).expect("a temporary folder");
        if run.ledger.as_ref().is_some_and(|ledger| ledger.saved > 0) {
            spans(&folder.join("spans/00001.parquet"), run);
        }
    }
}

/// A skewed distribution whose median and p99 are about those of the run.
fn latency(folder: &Path, run: &RunRecord) {
    let Some(load) = &run.load else { return };
    let mut histogram = Histogram::<u64>::new(3).expect("three digits");
    let spread = (load.latency_us.p99 / load.latency_us.p50).ln();
    for step in 0..400_u32 {
        let quantile = (f64::from(step) + 0.5) / 400.0;
        // Two slopes, joined at the median: fast below it, long above.
        let above = (-(1.0 - quantile).log10() - 0.301).max(0.0) / 1.7;
        let microseconds = load.latency_us.p50 * (0.8 + 0.4 * quantile.min(0.5)) * (spread * above).exp();
        let requests = (load.requests / 400).max(1);
        histogram.record_n((microseconds * 1e3) as u64, requests).expect("it grows");
    }
    let (mut text, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut log = IntervalLogWriterBuilder::new().begin_log_with(&mut text, &mut serializer).expect("memory");
    let tag = Tag::new("latency").expect("a tag");
    log.write_histogram(&histogram, Duration::ZERO, Duration::from_secs(1), Some(tag)).expect("memory");
    fs::write(folder.join("latency.hdr"), text).expect("a temporary folder");
}

fn samples(run: &RunRecord) -> Vec<Row> {
    run.processes.iter().flat_map(|process| of_process(run, process)).collect()
}

fn of_process(run: &RunRecord, process: &ProcessRecord) -> Vec<Row> {
    let cores = process.cpu_ns.unwrap_or(0) as f64 / 1e9 / run.phases.window_s;
    let rss = process.rss.unwrap_or(0) as f64;
    let seconds = run.phases.window_s as u32;
    let wave = |second: u32| 1.0 + 0.02 * f64::from((second * 7 + run.run * 3) % 11) / 11.0;
    let row = |second: u32, metric: &'static str, value: f64| Row {
        t_s: f64::from(second),
        service: process.service.clone(),
        replica: process.replica,
        role: process.role,
        metric: metric.into(),
        value: value * wave(second),
    };
    (0..=seconds)
        .flat_map(|second| [row(second, "cpu_cores", cores), row(second, "rss", rss), row(second, "heap", rss * 0.6)])
        .collect()
}

/// A thousand spans of two operations; the first hundred requests are of the warm-up, and slow.
fn spans(path: &Path, run: &RunRecord) {
    let schema = "message spans { required binary service (UTF8); required binary operation (UTF8); \
                  required int64 duration_ns; optional int64 request; }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let file = File::create(path).expect("a temporary folder");
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).expect("memory");
    let mut group = writer.next_row_group().expect("memory");
    let warm = run.load.as_ref().and_then(|load| load.seconds.get(2)).map_or(0, |second| second.first_index as i64);
    let texts = |of: fn(usize) -> &'static str| (0..1000).map(|at| ByteArray::from(of(at))).collect::<Vec<_>>();
    let duration = |at: i64| if at < 100 { 90_000_000 } else { 100_000 + (at % 100) * 1_000 + (at % 2) * 400_000 };
    let mut column = group.next_column().expect("memory").expect("a column");
    column.typed::<ByteArrayType>().write_batch(&texts(|_| "shop"), None, None).expect("memory");
    column.close().expect("memory");
    let mut column = group.next_column().expect("memory").expect("a column");
    let names = texts(|at| if at % 2 == 0 { "GET /work" } else { "SELECT <b>" });
    column.typed::<ByteArrayType>().write_batch(&names, None, None).expect("memory");
    column.close().expect("memory");
    let mut column = group.next_column().expect("memory").expect("a column");
    let durations: Vec<i64> = (0..1000).map(duration).collect();
    column.typed::<Int64Type>().write_batch(&durations, None, None).expect("memory");
    column.close().expect("memory");
    let mut column = group.next_column().expect("memory").expect("a column");
    let requests: Vec<i64> = (0..1000).map(|at| warm + at - 100).collect();
    column.typed::<Int64Type>().write_batch(&requests, Some(&[1; 1000]), None).expect("memory");
    column.close().expect("memory");
    group.close().expect("memory");
    writer.close().expect("memory");
}
