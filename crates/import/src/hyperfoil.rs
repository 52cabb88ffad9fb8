//! Hyperfoil: the statistics of a run as JSON, `stats/all` (entries under `stats`, numbers under `total`) or `stats/total` (entries
//! under `statistics`). Times in ns. Phases that are warm-ups are left out; the busiest of the others counts.

use serde_json::Value;

use super::foreign::{Fault, ForeignRun};
use super::wrk::quantile_metric;

pub(super) fn statistics(json: &Value) -> Result<ForeignRun, Fault> {
    let entries = json.get("stats").or_else(|| json.get("statistics")).and_then(Value::as_array);
    let measured = |entry: &&Value| entry.get("isWarmup").and_then(Value::as_bool) != Some(true);
    let summaries = entries.into_iter().flatten().filter(measured).filter_map(|entry| {
        let total = entry.get("total").unwrap_or(entry);
        Some((total, total.get("summary")?))
    });
    let requests = |summary: &Value| summary.get("requestCount").and_then(Value::as_u64).unwrap_or(0);
    let busiest = summaries.max_by_key(|(_, summary)| requests(summary));
    let (total, summary) =
        busiest.ok_or_else(|| Fault::new("these Hyperfoil statistics hold no phase besides warm-ups"))?;
    let number = |key: &str| summary.get(key).and_then(Value::as_f64);
    let mut run = ForeignRun { requests: Some(requests(summary)), ..ForeignRun::default() };
    run.put("latency_mean", number("meanResponseTime").map(|ns| ns / 1e3));
    run.put("latency_max", number("maxResponseTime").map(|ns| ns / 1e3));
    let quantiles = summary.get("percentileResponseTime").and_then(Value::as_object);
    for (percent, value) in quantiles.into_iter().flatten() {
        if let Some(metric) = quantile_metric(percent) {
            run.put(metric, value.as_f64().map(|ns| ns / 1e3));
        }
    }
    let count = requests(summary) as f64;
    let errors = ["invalid", "connectionErrors", "requestTimeouts", "internalErrors"];
    let failed: f64 = errors.iter().filter_map(|key| number(key)).sum();
    run.put("error_rate", (count > 0.0).then(|| failed / count));
    let instant = |key: &str| number(key).or_else(|| total.get(key).and_then(Value::as_f64));
    let span = |start: &str, end: &str| Some(instant(end)? - instant(start)?).filter(|ms| *ms > 0.0);
    let took = span("startTime", "endTime").or_else(|| span("start", "end"));
    run.put("throughput", took.map(|ms| count * 1e3 / ms));
    Ok(run)
}
