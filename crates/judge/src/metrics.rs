//! What the judge knows of every metric beyond [`unladen_study::metrics`] (name, unit, what decides, which way is worse): where its
//! number comes from, what it is called, where it is shown.
//!
//! To add a metric: a row there, a row here, a line in `docs/reference/metrics.md`, and a field in the journal if no probe
//! delivers it yet. A probe may also put a number under a name of its own into `extra`; it is compared as a difference.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use unladen_journal::record::RunRecord;
use unladen_journal::role::Role;
use unladen_study::metrics::{self, Compared, Worse};

use super::latency::{latency, quantile_of};
use super::values::{
    PARTS, Value, allocated, capacity, completion, completion_per_million, cpu, disk_per_request, disk_per_span,
    error_rate, extra, heap_slope, idle_cpu, instructions, memory_slope, network, of_role, per_request, role_cpu,
    saturation, seconds, start_up, sum, telemetry, throughput, time_per_thousand, without_jit,
};

/// Growth below which nothing is said of a leak, bytes per minute: an allocator's own in its first minutes.
const GROWTH: f64 = 512.0 * 1024.0;

/// Idle CPU below which nothing is said, cores: a timer that wakes a few hundred times a second.
const IDLE: f64 = 0.001;

/// Of the requests that a quantile needs, one in a hundred may be missing: at the exact rate a window may hold one request less.
pub(super) const NEARLY: f64 = 0.99;
/// Share of the requests that a quantile needs which every run must have.
const PER_RUN: f64 = 0.1;

/// What a metric is and how it is compared.
#[derive(Debug, Clone)]
pub struct Metric {
    /// Stable name, as in budgets and in `findings.json`.
    pub name: Cow<'static, str>,
    /// Name for people, in tables.
    pub title: Cow<'static, str>,
    /// How a cost in it is said: "62 µs *of CPU per request*".
    pub phrase: Cow<'static, str>,
    /// Unit of its values, as in `findings.json`; empty if it is not known.
    pub unit: &'static str,
    /// What decides the verdict.
    pub compared: Compared,
    /// Which way is worse.
    pub worse: Worse,
    /// Whose number it is.
    pub of: Of,
    /// Smallest difference that matters.
    pub margin: Margin,
    /// Where the reports show it.
    pub place: Place,
    /// Which quantile of the requests it is, if it is one: it decides how many requests a run needs.
    pub quantile: Option<f64>,
    /// Whether 0 on both sides means that there is nothing to speak of (no collector, no spans), not that they are alike.
    pub absent_when_zero: bool,
    value: Value,
}

/// Whose number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The subject's services: their sum (or their slowest) and, if there are several, each one.
    Subject,
    /// Processes of another role, together.
    Role(Role),
    /// The load's.
    Load,
    /// The load's, in a closed loop only: in an open loop it is an input.
    ClosedLoad,
    /// The sink's.
    Sink,
}

/// Smallest difference that matters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Margin {
    /// The study's `margin`, of the baseline.
    OfStudy,
    /// So much, in the metric's unit.
    Absolute(f64),
}

/// Where the reports show a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the sentence and in every table.
    Sentence,
    /// In every table.
    Table,
    /// In the long tables only.
    Detail,
}

impl Metric {
    /// The metric's number in one run: of one service, or as a whole. `None`: it was not measured.
    #[must_use]
    pub fn value(&self, run: &RunRecord, service: Option<&str>) -> Option<f64> {
        let value = match &run.imported {
            // What another tool measured is of the subject as a whole.
            Some(imported) => imported.numbers.get(self.name.as_ref()).copied().filter(|_| service.is_none()),
            None => (self.value)(self, run, service),
        };
        value.filter(|value| value.is_finite())
    }

    /// Requests that a variant's runs must have together before the metric means anything: 100 beyond the quantile.
    #[must_use]
    pub fn requests_needed(&self) -> Option<u64> {
        self.quantile.and_then(unladen_stats::quantile::requests_needed)
    }

    /// Whether a run of so many requests may speak of this quantile, if it is one: there are ten beyond it, else it is one of the run's
    /// largest values. How much the quantiles of few scatter from run to run is in the interval.
    #[must_use]
    pub fn has_enough(&self, requests: f64) -> bool {
        self.requests_needed().is_none_or(|needed| requests >= NEARLY * PER_RUN * needed as f64)
    }

    /// Whether the table has it: it is not a number that a probe or another tool delivers under a name of its own.
    #[must_use]
    pub fn is_known(&self) -> bool {
        METRICS.iter().any(|metric| metric.name == self.name)
    }

    fn new(name: &'static str, title: &'static str, phrase: &'static str, of: Of, value: Value) -> Self {
        let known = metrics::find(name);
        Self {
            name: Cow::Borrowed(name),
            title: Cow::Borrowed(title),
            phrase: Cow::Borrowed(phrase),
            unit: known.map_or("", |known| known.unit.symbol()),
            compared: known.map_or(Compared::Difference, |known| known.compared),
            worse: known.map_or(Worse::More, |known| known.worse),
            of,
            margin: Margin::OfStudy,
            place: Place::Detail,
            quantile: quantile_of(name),
            absent_when_zero: matches!(of, Of::Role(_) | Of::Sink),
            value,
        }
    }

    /// A number that a probe delivers under a name that no table knows; the name's end may tell its unit.
    fn unknown(name: &str) -> Self {
        let title = name.replace('_', " ");
        let (unit, value): (_, Value) = match name {
            name if name.contains("_bytes") => ("B", extra),
            name if name.contains("_seconds") => ("ms", seconds),
            _ => ("", extra),
        };
        Self {
            name: Cow::Owned(name.to_owned()),
            phrase: Cow::Owned(format!("of {title}")),
            title: Cow::Owned(title),
            unit,
            ..Self::new("", "", "", Of::Subject, value)
        }
    }

    fn absent_when_zero(self) -> Self {
        Self { absent_when_zero: true, ..self }
    }

    fn margin(self, margin: f64) -> Self {
        Self { margin: Margin::Absolute(margin), ..self }
    }

    fn place(self, place: Place) -> Self {
        Self { place, ..self }
    }
}

/// All metrics, in the order in which reports show them.
pub static METRICS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    use Of::{ClosedLoad, Load, Sink, Subject};
    use Place::{Sentence, Table};
    let m = Metric::new;
    let rss: Value = |_, run, service| sum(run, service, |process| process.rss);
    let rss_peak: Value = |_, run, service| sum(run, service, |process| process.rss_peak);
    let pss: Value = |_, run, service| sum(run, service, |process| process.pss);
    let threads: Value = |_, run, service| sum(run, service, |process| process.threads);
    let switches: Value =
        |_, run, service| per_request(run, service, |it| Some(it.voluntary_switches? + it.involuntary_switches?));
    let voluntary: Value = |_, run, service| per_request(run, service, |it| it.voluntary_switches);
    let involuntary: Value = |_, run, service| per_request(run, service, |it| it.involuntary_switches);
    vec![
        m("cpu_per_request", "CPU per request", "of CPU per request", Subject, cpu).place(Sentence),
        m("cpu_without_jit", "CPU without JIT", "of CPU per request without JIT", Subject, without_jit).place(Sentence),
        m("instructions_per_request", "instructions per request", "in instructions per request", Subject, instructions),
        m("idle_cpu", "idle CPU", "of CPU without any load", Subject, idle_cpu).margin(IDLE),
        m("rss", "memory (RSS)", "of memory", Subject, rss).place(Sentence),
        m("rss_peak", "peak memory", "of peak memory", Subject, rss_peak),
        m("pss", "memory (PSS)", "of proportional memory", Subject, pss),
        m("heap", "heap", "of heap", Subject, extra),
        m("heap_after_gc", "heap after GC", "of live heap", Subject, extra).place(Table),
        m("metaspace", "metaspace", "of metaspace", Subject, extra),
        m("code_cache", "compiled code", "of compiled code", Subject, extra),
        m("off_heap", "off-heap memory", "of memory off the heap", Subject, extra),
        m("classes", "loaded classes", "in loaded classes", Subject, extra),
        m("threads", "threads", "in threads", Subject, threads).margin(0.5),
        m("java_threads", "Java threads", "in Java threads", Subject, extra).margin(0.5),
        m("goroutines", "goroutines", "in goroutines", Subject, extra).margin(0.5),
        m("descriptors", "open file descriptors", "in open file descriptors", Subject, extra).margin(0.5),
        m(
            "gc_time",
            "GC time per 1,000 requests",
            "of garbage collection per 1,000 requests",
            Subject,
            time_per_thousand,
        ),
        m("jit_time", "JIT time per 1,000 requests", "of compiling per 1,000 requests", Subject, time_per_thousand),
        m("gc_count", "collections in the window", "in garbage collections", Subject, extra).margin(0.5),
        m("allocated_bytes_per_request", "allocated per request", "allocated per request", Subject, allocated),
        m("memory_slope", "memory growth", "of memory growth", Subject, memory_slope).margin(GROWTH).place(Table),
        m("heap_slope", "heap growth", "of heap growth", Subject, heap_slope).margin(GROWTH).place(Table),
        m("latency_p50", "latency p50", "at the median", Load, latency).place(Table),
        m("latency_p75", "latency p75", "at p75", Load, latency),
        m("latency_p90", "latency p90", "at p90", Load, latency).place(Table),
        m("latency_p95", "latency p95", "at p95", Load, latency),
        m("latency_p99", "latency p99", "at p99", Load, latency).place(Table),
        m("latency_p999", "latency p99.9", "at p99.9", Load, latency),
        m("latency_mean", "mean latency", "of mean latency", Load, latency),
        m("latency_max", "largest latency", "at the slowest request", Load, latency),
        m("throughput", "throughput", "of throughput", ClosedLoad, throughput).place(Sentence),
        m("capacity", "capacity", "of capacity", Load, capacity).place(Sentence),
        m("throughput_max", "saturated throughput, best second", "of saturated throughput", Load, |_, run, _| {
            saturation(run, |it| it.max)
        }),
        m("throughput_mean", "saturated throughput", "of saturated throughput", Load, |_, run, _| {
            saturation(run, |it| it.mean)
        })
        .place(Table),
        m("time_to_max", "time to the best throughput", "to reach the best throughput", Load, |_, run, _| {
            saturation(run, |it| it.time_to_max_s * 1e3)
        })
        .margin(1000.0),
        m("completion_time", "completion time", "of completion time", Load, completion).place(Sentence),
        m("completion_time_per_million", "completion time per million", "per million", Load, completion_per_million),
        m("error_rate", "error rate", "in failed requests", Load, error_rate).margin(0.001).place(Table),
        m("start_up", "start-up", "of start-up time", Subject, start_up).place(Table),
        m("network_bytes_per_request", "network per request", "of network traffic per request", Subject, network),
        m("telemetry_bytes_per_request", "telemetry per request", "of telemetry per request", Subject, telemetry)
            .absent_when_zero(),
        m("disk_bytes_per_request", "written per request", "written to disk per request", Subject, disk_per_request)
            .absent_when_zero(),
        m("context_switches_per_request", "context switches per request", "in context switches", Subject, switches),
        m(
            "voluntary_switches_per_request",
            "voluntary switches per request",
            "in voluntary switches",
            Subject,
            voluntary,
        ),
        m(
            "involuntary_switches_per_request",
            "forced switches per request",
            "in forced switches",
            Subject,
            involuntary,
        ),
        m("collector_cpu", "collector CPU", "of collector CPU per request", Of::Role(Role::Collector), role_cpu)
            .place(Table),
        m("storage_cpu", "storage CPU", "of storage CPU per request", Of::Role(Role::Storage), role_cpu).place(Table),
        m("disk_bytes_per_span", "stored per span", "stored per span", Sink, disk_per_span),
    ]
});

/// All metrics that the runs deliver: those of the table, then the unknown ones from `extra` by name.
#[must_use]
pub fn delivered<'a>(runs: impl IntoIterator<Item = &'a RunRecord>) -> Vec<Cow<'static, Metric>> {
    let mut all: Vec<_> = METRICS.iter().map(Cow::Borrowed).collect();
    let names: BTreeSet<&str> = runs
        .into_iter()
        .flat_map(|run| {
            let probed = of_role(run, Role::Subject, None).flat_map(|process| process.extra.keys());
            probed.chain(run.imported.iter().flat_map(|imported| imported.numbers.keys())).map(String::as_str)
        })
        .collect();
    let known = |name: &str| PARTS.contains(&name) || METRICS.iter().any(|metric| metric.name == name);
    all.extend(names.into_iter().filter(|name| !known(name)).map(|name| Cow::Owned(Metric::unknown(name))));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row without its counterpart would be compared as a difference of things without a unit, and could have no budget.
    #[test]
    fn every_metric_is_known_to_the_study() {
        for metric in METRICS.iter() {
            assert!(metrics::find(&metric.name).is_some(), "{} is not in study::metrics", metric.name);
            let rows = METRICS.iter().filter(|other| other.name == metric.name).count();
            assert_eq!(rows, 1, "{}", metric.name);
        }
    }

    #[test]
    fn quantiles_need_as_many_requests_as_their_names_say() {
        for (name, needed) in [("latency_p50", Some(200)), ("latency_p99", Some(10_000)), ("rss", None)] {
            let metric = METRICS.iter().find(|metric| metric.name == name).expect(name);
            assert_eq!(metric.requests_needed(), needed);
        }
    }
}
