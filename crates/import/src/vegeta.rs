//! vegeta: `vegeta report` as text, and `-type=json` (nanoseconds). An open loop: its latencies start when a request was sent.

use serde_json::Value;

use super::foreign::{Fault, ForeignRun};
use super::wrk::quantile_metric;

pub(super) fn json(json: &Value) -> Result<ForeignRun, Fault> {
    let latency = |key: &str| json.get("latencies")?.get(key)?.as_f64().map(|ns| ns / 1e3);
    let mut run = ForeignRun { requests: json.get("requests").and_then(Value::as_u64), ..ForeignRun::default() };
    for (metric, key) in [
        ("latency_mean", "mean"),
        ("latency_p50", "50th"),
        ("latency_p90", "90th"),
        ("latency_p95", "95th"),
        ("latency_p99", "99th"),
        ("latency_max", "max"),
    ] {
        run.put(metric, latency(key));
    }
    run.put("throughput", json.get("throughput").and_then(Value::as_f64));
    run.put("error_rate", json.get("success").and_then(Value::as_f64).map(|success| 1.0 - success));
    if run.numbers.is_empty() { Err(Fault::new("this vegeta report holds no latency")) } else { Ok(run) }
}

pub(super) fn text(text: &str) -> Result<ForeignRun, Fault> {
    let mut run = ForeignRun::default();
    for (line, number) in text.lines().zip(1..) {
        let Some((name, rest)) = line.split_once('[') else { continue };
        let Some((keys, values)) = rest.split_once(']') else { continue };
        let keys = keys.split(',').map(str::trim);
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        for (key, value) in keys.zip(values) {
            let fault = || Fault {
                line: Some(number),
                message: format!("`{value}` is not a value of `{key}` that vegeta prints"),
            };
            match (name.trim(), key) {
                ("Requests", "total") => run.requests = Some(value.parse().map_err(|_| fault())?),
                ("Requests", "throughput") => run.put("throughput", Some(value.parse().map_err(|_| fault())?)),
                ("Latencies", "mean") => run.put("latency_mean", Some(go_micros(value).ok_or_else(fault)?)),
                ("Latencies", "max") => run.put("latency_max", Some(go_micros(value).ok_or_else(fault)?)),
                ("Latencies", quantile) => {
                    if let Some(metric) = quantile_metric(quantile) {
                        run.put(metric, Some(go_micros(value).ok_or_else(fault)?));
                    }
                }
                ("Success", "ratio") => {
                    let percent: f64 = value.trim_end_matches('%').parse().map_err(|_| fault())?;
                    run.put("error_rate", Some(1.0 - percent / 100.0));
                }
                _ => {}
            }
        }
    }
    if run.numbers.contains_key("latency_mean") {
        Ok(run)
    } else {
        Err(Fault::new("this vegeta report holds no latency"))
    }
}

/// A duration as Go prints it, in µs: `635.9µs`, `1m3.5s`, `0s`.
fn go_micros(text: &str) -> Option<f64> {
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let after = &rest[number..];
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        total += super::wrk::micros(&rest[..number + unit])?;
        rest = &after[unit..];
    }
    Some(total)
}
