//! JMeter: a JTL file as CSV, one sample per line. Quantiles are computed here; `elapsed` has whole milliseconds.

use unladen_stats::quantile;

use super::foreign::{Fault, ForeignRun};

pub(super) fn samples(text: &str) -> Result<ForeignRun, Fault> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let head = reader.headers().map_err(broken)?.clone();
    let column = |name: &str| head.iter().position(|known| known == name);
    let need = |name: &str| {
        column(name)
            .ok_or_else(|| Fault::new(format!("the column `{name}` is missing; save the JTL as CSV with field names")))
    };
    let (stamp, elapsed, success, threads) =
        (need("timeStamp")?, need("elapsed")?, need("success")?, column("allThreads"));
    let (mut times, mut first, mut last, mut failed, mut most) = (Vec::new(), f64::INFINITY, 0.0_f64, 0_u64, 0.0_f64);
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map(csv::Position::line);
        let number = |index: usize| -> Result<f64, Fault> {
            let text = record.get(index).unwrap_or_default();
            text.parse().map_err(|_| Fault { line, message: format!("`{text}` is not a number of milliseconds") })
        };
        let (start, took) = (number(stamp)?, number(elapsed)?);
        first = first.min(start);
        last = last.max(start + took);
        failed += u64::from(record.get(success) != Some("true"));
        most = threads.and_then(|index| record.get(index)?.parse::<f64>().ok()).unwrap_or(0.0).max(most);
        times.push(took * 1e3);
    }
    if times.is_empty() {
        return Err(Fault::new("this JTL has no samples"));
    }
    times.sort_unstable_by(f64::total_cmp);
    let count = times.len() as f64;
    let mut run = ForeignRun {
        requests: Some(times.len() as u64),
        concurrency: (most > 0.0).then_some(most),
        ..ForeignRun::default()
    };
    run.put("latency_mean", Some(times.iter().sum::<f64>() / count));
    for (metric, q) in [
        ("latency_p50", 0.5),
        ("latency_p75", 0.75),
        ("latency_p90", 0.9),
        ("latency_p95", 0.95),
        ("latency_p99", 0.99),
        ("latency_p999", 0.999),
    ] {
        run.put(metric, quantile::nearest_rank(&times, q));
    }
    run.put("latency_max", times.last().copied());
    run.put("throughput", (last > first).then(|| count * 1e3 / (last - first)));
    run.put("error_rate", Some(failed as f64 / count));
    Ok(run)
}

pub(super) fn broken(error: csv::Error) -> Fault {
    let line = error.position().map(csv::Position::line);
    Fault { line, message: format!("this line is no CSV: {error}") }
}
