//! What a study keeps of the metrics that a service shows of itself: `services.NAME.scrape`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unladen_journal::units::Time;

/// A Prometheus text endpoint of a service, asked during the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scrape {
    /// Where it is: `http://127.0.0.1:${port.app}/metrics`.
    pub url: String,
    /// Scrape interval; both ends of the window are always scraped.
    #[serde(default = "every")]
    pub every: Time,
    /// What to keep, by the name that the endpoint gives it: `go_goroutines: {as: goroutines}`. Series of one name with
    /// other labels are added up.
    pub keep: IndexMap<String, Keep>,
}

/// What becomes of one metric of the endpoint.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    /// The metric of unladen that it is (`heap`, `gc_time`, `goroutines`, `allocated`, …), or a name of your own. Absent: the
    /// endpoint's name.
    #[serde(rename = "as")]
    pub metric: Option<String>,
    /// What its numbers are. Absent: seconds if the name holds `_seconds`, bytes if it holds `_bytes`, else plain numbers.
    pub unit: Option<ScrapeUnit>,
    /// Whether it only grows. Absent: as the endpoint's `# TYPE` says, else by its name (`_total`, `_sum`, `_count`).
    pub kind: Option<ScrapeKind>,
    /// Only series with these labels.
    pub labels: IndexMap<String, String>,
}

/// Units of an endpoint's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScrapeUnit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Things.
    Count,
}

/// How a number moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScrapeKind {
    /// Up and down: the run's number is the median of the samples.
    Gauge,
    /// Up only: the run's number is what was added over the window.
    Counter,
}

/// Metrics of unladen that a number of an endpoint can be. `allocated` is what `allocated_bytes_per_request` is made from.
pub const MAPPABLE: [&str; 13] = [
    "heap",
    "heap_after_gc",
    "metaspace",
    "code_cache",
    "off_heap",
    "classes",
    "java_threads",
    "goroutines",
    "descriptors",
    "gc_time",
    "gc_count",
    "allocated",
    "disk_written",
];

impl Keep {
    /// The name under which the journal holds it.
    #[must_use]
    pub fn metric<'k>(&'k self, name: &'k str) -> &'k str {
        self.metric.as_deref().unwrap_or(name)
    }

    /// What the endpoint's number is multiplied by: the journal holds bytes, and seconds except for `gc_time`, which it
    /// holds in nanoseconds.
    #[must_use]
    pub fn factor(&self, name: &str) -> f64 {
        let unit = self.unit.unwrap_or(match name {
            name if name.contains("_seconds") => ScrapeUnit::Seconds,
            name if name.contains("_bytes") => ScrapeUnit::Bytes,
            _ => ScrapeUnit::Count,
        });
        let seconds = if self.metric(name) == "gc_time" { 1e9 } else { 1.0 };
        match unit {
            ScrapeUnit::Bytes | ScrapeUnit::Count => 1.0,
            ScrapeUnit::Seconds => seconds,
            ScrapeUnit::Milliseconds => seconds / 1e3,
            ScrapeUnit::Nanoseconds => seconds / 1e9,
        }
    }
}

fn every() -> Time {
    Time::seconds(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_come_from_the_name_or_the_study() {
        let keep = |metric: Option<&str>, unit| Keep { metric: metric.map(str::to_owned), unit, ..Keep::default() };
        let table = [
            ("go_gc_duration_seconds_sum", keep(Some("gc_time"), None), 1e9),
            ("gc_ms", keep(Some("gc_time"), Some(ScrapeUnit::Milliseconds)), 1e6),
            ("gc_pause", keep(Some("gc_time"), Some(ScrapeUnit::Nanoseconds)), 1.0),
            ("queue_wait_seconds", keep(None, None), 1.0),
            ("wait_ms", keep(Some("wait_seconds"), Some(ScrapeUnit::Milliseconds)), 1e-3),
            ("go_memstats_heap_inuse_bytes", keep(Some("heap"), None), 1.0),
            ("go_goroutines", keep(None, None), 1.0),
        ];
        for (name, keep, factor) in table {
            assert!((keep.factor(name) / factor - 1.0).abs() < 1e-12, "{name}: {}", keep.factor(name));
        }
    }
}
