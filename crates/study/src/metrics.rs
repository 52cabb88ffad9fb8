//! The one table of metrics: name, unit, what decides (ratio or difference), which way is worse; and how a budget's
//! limit is read. The study is checked against it, the judge computes what stands in it.

/// A number per run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name, as in budgets and `findings.json`.
    pub name: &'static str,
    /// Unit of its values and differences.
    pub unit: Unit,
    /// Whether the ratio or the difference decides the verdict.
    pub compared: Compared,
    /// Which way is worse.
    pub worse: Worse,
    /// What it is, for people.
    pub meaning: &'static str,
}

/// Units of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// Bytes.
    Bytes,
    /// Bytes per minute.
    BytesPerMinute,
    /// Events per second.
    PerSecond,
    /// Things.
    Count,
    /// A share, 0 to 1.
    Share,
    /// CPU time per time: 1 is one core all the time.
    Cores,
}

/// What decides the verdict on a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Variant over baseline: what an agent adds grows with what is there.
    Ratio,
    /// Variant less baseline: what an agent adds doesn't depend on what is there, or the baseline may be zero.
    Difference,
}

/// Which way is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worse {
    /// More is worse.
    More,
    /// Less is worse.
    Less,
}

/// A budget's limit, read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Whether `value` is a ratio (0.1 for `10%`), else it is in the metric's unit.
    pub relative: bool,
    /// How much worse a variant may be than the baseline; never negative, whichever way is worse.
    pub value: f64,
}

impl Unit {
    /// As in `findings.json`.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Micros => "us",
            Self::Millis => "ms",
            Self::Bytes => "B",
            Self::BytesPerMinute => "B/min",
            Self::PerSecond => "1/s",
            Self::Count => "count",
            Self::Share => "share",
            Self::Cores => "cores",
        }
    }

    /// How a limit in this unit is written.
    fn example(self) -> &'static str {
        match self {
            Self::Micros => "`100us`, `2ms`",
            Self::Millis => "`100ms`, `2s`",
            Self::Bytes => "`50MiB`, `1kB`",
            Self::BytesPerMinute => "`1MiB/min`",
            Self::PerSecond => "`50` (per second)",
            Self::Count => "`5`",
            Self::Share => "`0.1%`",
            Self::Cores => "`0.02` (cores)",
        }
    }
}

/// Every metric, the primary one first.
pub const METRICS: &[Metric] = {
    use Compared::{Difference, Ratio};
    use Unit::{Bytes, BytesPerMinute, Cores, Count, Micros, Millis, PerSecond, Share};
    use Worse::{Less, More};
    &[
        metric("cpu_per_request", Micros, Ratio, More, "CPU time of the subject per completed request"),
        metric("cpu_without_jit", Micros, Ratio, More, "the same without the CPU time of the JIT compiler"),
        metric("idle_cpu", Cores, Difference, More, "CPU time per second of the subject while there is no load"),
        metric("rss", Bytes, Difference, More, "resident memory, median over the window"),
        metric("rss_peak", Bytes, Difference, More, "largest resident memory since start"),
        metric("pss", Bytes, Difference, More, "proportional memory at the end of the window: shared pages shared out"),
        metric("heap", Bytes, Difference, More, "heap in use"),
        metric("heap_after_gc", Bytes, Difference, More, "heap in use right after a collection"),
        metric("metaspace", Bytes, Difference, More, "memory for loaded classes"),
        metric("code_cache", Bytes, Difference, More, "memory for compiled code"),
        metric("off_heap", Bytes, Difference, More, "resident memory beside heap, metaspace and compiled code"),
        metric("classes", Count, Difference, More, "loaded classes"),
        metric("threads", Count, Difference, More, "threads at the end of the window"),
        metric("java_threads", Count, Difference, More, "Java threads at the end of the window, the JVM's own apart"),
        metric("goroutines", Count, Difference, More, "goroutines"),
        metric("descriptors", Count, Difference, More, "open file descriptors at the end of the window"),
        metric("gc_time", Millis, Difference, More, "time in garbage collection per 1,000 completed requests"),
        metric("jit_time", Millis, Difference, More, "CPU time of the JIT compiler per 1,000 completed requests"),
        metric("gc_count", Count, Difference, More, "garbage collections in the window"),
        metric("allocated_bytes_per_request", Bytes, Ratio, More, "bytes allocated on the heap per completed request"),
        metric("latency_p50", Micros, Ratio, More, "median latency, from the moment a request was due"),
        metric("latency_p75", Micros, Ratio, More, "75th percentile of the latency"),
        metric("latency_p90", Micros, Ratio, More, "90th percentile of the latency"),
        metric("latency_p95", Micros, Ratio, More, "95th percentile of the latency"),
        metric("latency_p99", Micros, Ratio, More, "99th percentile of the latency"),
        metric("latency_p999", Micros, Ratio, More, "99.9th percentile of the latency"),
        metric("latency_mean", Micros, Ratio, More, "mean latency"),
        metric("latency_max", Micros, Ratio, More, "longest latency"),
        metric("throughput", PerSecond, Ratio, Less, "completed requests per second"),
        metric("capacity", PerSecond, Ratio, Less, "most requests per second at which latency and errors hold"),
        metric("throughput_max", PerSecond, Ratio, Less, "best second of a saturating closed loop"),
        metric("throughput_mean", PerSecond, Ratio, Less, "answers per second of a saturating closed loop"),
        metric(
            "time_to_max",
            Millis,
            Difference,
            More,
            "from the start of the saturation to its first second near the best",
        ),
        metric("completion_time", Millis, Ratio, More, "time that the fixed work took"),
        metric("completion_time_per_million", Millis, Ratio, More, "the same for a million requests or units of work"),
        metric("error_rate", Share, Difference, More, "share of the requests that failed"),
        metric("start_up", Millis, Ratio, More, "time from start to readiness"),
        metric("memory_slope", BytesPerMinute, Difference, More, "growth of the memory over the window"),
        metric("heap_slope", BytesPerMinute, Difference, More, "growth of what collections leave of the heap"),
        metric("network_bytes_per_request", Bytes, Ratio, More, "bytes received and sent per request, telemetry apart"),
        metric("telemetry_bytes_per_request", Bytes, Difference, More, "bytes of telemetry on the network per request"),
        metric("disk_bytes_per_request", Bytes, Difference, More, "bytes written to disk by the subject per request"),
        metric("context_switches_per_request", Count, Ratio, More, "voluntary and involuntary, per completed request"),
        metric(
            "voluntary_switches_per_request",
            Count,
            Ratio,
            More,
            "context switches by waiting, per completed request",
        ),
        metric("involuntary_switches_per_request", Count, Difference, More, "context switches by force, per request"),
        metric("instructions_per_request", Count, Ratio, More, "instructions retired per completed request"),
        metric("collector_cpu", Micros, Difference, More, "CPU time of the collectors per completed request"),
        metric("storage_cpu", Micros, Difference, More, "CPU time of the storage per completed request"),
        metric("disk_bytes_per_span", Bytes, Difference, More, "bytes that the storage writes to disk per span"),
        metric(
            "span_loss",
            Share,
            Difference,
            More,
            "share of the wanted spans that were lost; for budgets, decided by the ledger",
        ),
        metric("span_latency_p50", Micros, Ratio, More, "median duration of an operation, from its spans"),
        metric("span_latency_p75", Micros, Ratio, More, "75th percentile of an operation's duration"),
        metric("span_latency_p90", Micros, Ratio, More, "90th percentile of an operation's duration"),
        metric("span_latency_p95", Micros, Ratio, More, "95th percentile of an operation's duration"),
        metric("span_latency_p99", Micros, Ratio, More, "99th percentile of an operation's duration"),
        metric("span_latency_p999", Micros, Ratio, More, "99.9th percentile of an operation's duration"),
        metric("span_latency_mean", Micros, Ratio, More, "mean duration of an operation, from its spans"),
        metric("span_latency_max", Micros, Ratio, More, "longest duration of an operation, from its spans"),
    ]
};

const fn metric(name: &'static str, unit: Unit, compared: Compared, worse: Worse, meaning: &'static str) -> Metric {
    Metric { name, unit, compared, worse, meaning }
}

/// Metric and service of a budget: `cpu_per_request@vets` is `cpu_per_request` of `vets`.
#[must_use]
pub fn of_service(budget: &str) -> (&str, Option<&str>) {
    budget.split_once('@').map_or((budget, None), |(metric, service)| (metric, Some(service)))
}

/// The metric of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

impl Metric {
    /// Reads a budget's limit: a percentage of the baseline, or an amount in the metric's unit. For a share
    /// (`error_rate`) a percentage is the difference itself, in percentage points.
    #[must_use]
    pub fn limit(&self, text: &str) -> Option<Limit> {
        use unladen_journal::units::{Bytes, Time};
        let text = text.trim();
        if let Some(percent) = text.strip_suffix('%') {
            let value = number(percent)? / 100.0;
            return Some(Limit { relative: self.unit != Unit::Share, value });
        }
        let value = match self.unit {
            Unit::Micros => text.parse::<Time>().ok()?.as_seconds() * 1e6,
            Unit::Millis => text.parse::<Time>().ok()?.as_seconds() * 1e3,
            Unit::Bytes => text.parse::<Bytes>().ok()?.0 as f64,
            Unit::BytesPerMinute => text.strip_suffix("/min")?.parse::<Bytes>().ok()?.0 as f64,
            Unit::PerSecond => number(text.strip_suffix("/s").unwrap_or(text))?,
            Unit::Count | Unit::Share | Unit::Cores => number(text)?,
        };
        Some(Limit { relative: false, value })
    }

    /// How a limit on this metric is written.
    #[must_use]
    pub fn limit_form(&self) -> String {
        match self.unit {
            Unit::Share => format!("{} (percentage points)", self.unit.example()),
            unit => format!("a percentage such as `10%`, or an amount such as {}", unit.example()),
        }
    }
}

/// A plain decimal number that isn't negative; no exponent, no `inf`, no `nan`.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for metric in METRICS {
            assert_eq!(METRICS.iter().filter(|other| other.name == metric.name).count(), 1, "{}", metric.name);
            assert_eq!(find(metric.name), Some(metric));
        }
        assert_eq!(find("cpu"), None);
    }

    #[test]
    fn limits_are_read_in_the_metrics_unit() {
        let limit = |name: &str, text: &str| find(name).expect(name).limit(text).map(|l| (l.relative, l.value));
        assert_eq!(limit("cpu_per_request", "10%"), Some((true, 0.1)));
        assert_eq!(limit("cpu_per_request", "20us"), Some((false, 20.0)));
        assert_eq!(limit("latency_p99", "2 ms"), Some((false, 2000.0)));
        assert_eq!(limit("rss", "50MiB"), Some((false, 52_428_800.0)));
        assert_eq!(limit("rss", "5 %"), Some((true, 0.05)));
        assert_eq!(limit("gc_time", "1s"), Some((false, 1000.0)));
        assert_eq!(limit("memory_slope", "1MiB/min"), Some((false, 1_048_576.0)));
        assert_eq!(limit("throughput", "50/s"), Some((false, 50.0)));
        assert_eq!(limit("threads", "5"), Some((false, 5.0)));
        assert_eq!(limit("idle_cpu", "0.02"), Some((false, 0.02)));
        assert_eq!(limit("error_rate", "0.1%"), Some((false, 0.001)));
        for (name, text) in [
            ("cpu_per_request", "20"),
            ("cpu_per_request", "-5%"),
            ("cpu_per_request", "%"),
            ("cpu_per_request", "inf%"),
            ("rss", "5 apples"),
            ("rss", "50ms"),
            ("memory_slope", "1MiB"),
            ("threads", "1e3"),
            ("threads", ""),
        ] {
            assert_eq!(limit(name, text), None, "{name}: {text}");
        }
    }
}
