//! k6: the JSON of `--summary-export`, and what `handleSummary` gets (numbers under `values`). Times in ms.

use serde_json::Value;

use super::foreign::{Fault, ForeignRun};

pub(super) fn summary(json: &Value) -> Result<ForeignRun, Fault> {
    let metric = |name: &str| {
        let metric = json.get("metrics")?.get(name)?;
        Some(metric.get("values").unwrap_or(metric))
    };
    let number = |name: &str, key: &str| metric(name)?.get(key)?.as_f64();
    let duration = |key: &str| number("http_req_duration", key).map(|ms| ms * 1e3);
    if metric("http_req_duration").is_none() {
        return Err(Fault::new("this k6 summary has no `http_req_duration`: no HTTP request was made"));
    }
    let mut run = ForeignRun {
        requests: number("http_reqs", "count").map(|count| count as u64),
        concurrency: number("vus_max", "max").or(number("vus_max", "value")),
        ..ForeignRun::default()
    };
    for (metric, key) in [
        ("latency_mean", "avg"),
        ("latency_p50", "med"),
        ("latency_p75", "p(75)"),
        ("latency_p90", "p(90)"),
        ("latency_p95", "p(95)"),
        ("latency_p99", "p(99)"),
        ("latency_p999", "p(99.9)"),
        ("latency_max", "max"),
    ] {
        run.put(metric, duration(key));
    }
    run.put("throughput", number("http_reqs", "rate"));
    run.put("error_rate", number("http_req_failed", "rate").or(number("http_req_failed", "value")));
    Ok(run)
}
