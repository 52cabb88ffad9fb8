//! wrk and wrk2: the text that they print, with `--latency` also quantiles.

use super::foreign::{Fault, ForeignRun};

pub(super) fn text(text: &str) -> Result<ForeignRun, Fault> {
    let mut run = ForeignRun::default();
    let mut failed = 0.0;
    for (line, number) in text.lines().zip(1..) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let fault = |word: &str| Fault {
            line: Some(number),
            message: format!("`{word}` is not a time of wrk's such as 1.27ms"),
        };
        match words.as_slice() {
            [_, "threads", "and", connections, "connections"] => run.concurrency = connections.parse().ok(),
            ["Latency", mean, _, max, ..] if mean.ends_with('s') => {
                run.put("latency_mean", Some(micros(mean).ok_or_else(|| fault(mean))?));
                run.put("latency_max", Some(micros(max).ok_or_else(|| fault(max))?));
            }
            [quantile, time] if quantile.ends_with('%') && time.ends_with(|c: char| c.is_ascii_lowercase()) => {
                if let Some(metric) = quantile_metric(quantile.trim_end_matches('%')) {
                    run.put(metric, Some(micros(time).ok_or_else(|| fault(time))?));
                }
            }
            [count, "requests", "in", ..] => run.requests = count.parse().ok(),
            ["Non-2xx", .., count] => failed += count.parse::<f64>().unwrap_or(0.0),
            ["Socket", "errors:", rest @ ..] => {
                failed += rest.iter().filter_map(|word| word.trim_end_matches(',').parse::<f64>().ok()).sum::<f64>();
            }
            ["Requests/sec:", rate] => run.put("throughput", rate.parse().ok()),
            _ => {}
        }
    }
    let requests = run.requests.filter(|requests| *requests > 0);
    run.put("error_rate", requests.map(|requests| failed / requests as f64));
    if run.numbers.contains_key("throughput") {
        Ok(run)
    } else {
        Err(Fault::new("`Requests/sec:` has no number after it"))
    }
}

/// `1.27ms`, `635.91us`, `2.01s`, `1.50m`, `1.00h` in µs.
pub(super) fn micros(text: &str) -> Option<f64> {
    let unit = text.find(|c: char| c.is_alphabetic() || c == 'µ')?;
    let factor = match &text[unit..] {
        "ns" => 1e-3,
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 6e7,
        "h" => 3.6e9,
        _ => return None,
    };
    text[..unit].parse::<f64>().ok().map(|number| number * factor)
}

/// `latency_p99` for `99`, `99.0` or `99.000`.
pub(super) fn quantile_metric(percent: &str) -> Option<&'static str> {
    let percent: f64 = percent.parse().ok()?;
    let known = [
        (50.0, "latency_p50"),
        (75.0, "latency_p75"),
        (90.0, "latency_p90"),
        (95.0, "latency_p95"),
        (99.0, "latency_p99"),
        (99.9, "latency_p999"),
    ];
    known.into_iter().find(|(known, _)| (known - percent).abs() < 1e-9).map(|(_, metric)| metric)
}
