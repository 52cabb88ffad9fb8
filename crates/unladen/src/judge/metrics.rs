//! The one table of all metrics: name, unit, where its number comes from, how two variants are compared.
//!
//! To add a metric: a row here, a line in `docs/metrics.md`, and a field in the journal if a probe does not deliver it
//! yet. A probe may also put a number under a name of its own into `extra`; such a number is compared as a difference.

use std::borrow::Cow;
use std::collections::BTreeSet;

use unladen_load::outcome::Quantiles;

use crate::journal::record::{ProcessRecord, RunRecord};
use crate::study::spec::Role;

/// What a metric is and how it is compared.
#[derive(Debug, Clone)]
pub struct Metric {
    /// Stable name, as in budgets and in `findings.json`.
    pub name: Cow<'static, str>,
    /// Name for people, in tables.
    pub title: Cow<'static, str>,
    /// How a cost in it is said: "62 µs *of CPU per request*".
    pub phrase: Cow<'static, str>,
    /// Unit of its values: `us`, `ms`, `MiB`, `B`, `1/s`, `ratio`, `count`, `MiB/min`, or empty.
    pub unit: &'static str,
    /// Whose number it is.
    pub of: Of,
    /// What decides the verdict.
    pub compared: Compared,
    /// Whether more of it is a cost.
    pub better: Better,
    /// Smallest difference that matters.
    pub margin: Margin,
    /// Where the reports show it.
    pub place: Place,
    /// Which quantile of the requests it is, if it is one: it decides how many requests a run needs.
    pub quantile: Option<f64>,
    value: fn(&Metric, &RunRecord, Option<&str>) -> Option<f64>,
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
}

/// What decides the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The ratio: effects are multiples.
    Ratio,
    /// The difference: an agent adds mebibytes, not per cent.
    Difference,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Less of it.
    Lower,
    /// More of it.
    Higher,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the sentence and in every table.
    Sentence,
    /// In every table.
    Table,
    /// In the long tables only.
    Detail,
}

const MIB: f64 = 1024.0 * 1024.0;

impl Metric {
    /// The metric's number in one run: of one service, or as a whole. `None`: it was not measured.
    #[must_use]
    pub fn value(&self, run: &RunRecord, service: Option<&str>) -> Option<f64> {
        (self.value)(self, run, service).filter(|value| value.is_finite())
    }

    /// Requests that a run must have before the metric means anything: 100 beyond the quantile.
    #[must_use]
    pub fn requests_needed(&self) -> Option<u64> {
        self.quantile.and_then(unladen_stats::quantile::requests_needed)
    }

    /// A number that a probe delivers under a name that the table does not know.
    #[must_use]
    pub fn unknown(name: &str) -> Self {
        Self {
            name: Cow::Owned(name.to_owned()),
            title: Cow::Owned(name.replace('_', " ")),
            phrase: Cow::Owned(format!("of {}", name.replace('_', " "))),
            unit: "",
            of: Of::Subject,
            compared: Compared::Difference,
            better: Better::Lower,
            margin: Margin::OfStudy,
            place: Place::Detail,
            quantile: None,
            value: extra_count,
        }
    }

    const fn new(
        name: &'static str,
        title: &'static str,
        phrase: &'static str,
        unit: &'static str,
        of: Of,
        value: fn(&Metric, &RunRecord, Option<&str>) -> Option<f64>,
    ) -> Self {
        Self {
            name: Cow::Borrowed(name),
            title: Cow::Borrowed(title),
            phrase: Cow::Borrowed(phrase),
            unit,
            of,
            compared: Compared::Ratio,
            better: Better::Lower,
            margin: Margin::OfStudy,
            place: Place::Detail,
            quantile: None,
            value,
        }
    }

    const fn quantile(mut self, quantile: f64) -> Self {
        self.quantile = Some(quantile);
        self
    }

    const fn difference(mut self) -> Self {
        self.compared = Compared::Difference;
        self
    }

    const fn higher(mut self) -> Self {
        self.better = Better::Higher;
        self
    }

    const fn margin(mut self, margin: f64) -> Self {
        self.margin = Margin::Absolute(margin);
        self
    }

    const fn place(mut self, place: Place) -> Self {
        self.place = place;
        self
    }
}

/// All metrics, in the order in which reports show them.
pub static METRICS: [Metric; 28] = [
    Metric::new("cpu_per_request", "CPU per request", "of CPU per request", "us", Of::Subject, cpu_per_request)
        .place(Place::Sentence),
    Metric::new("rss", "memory (RSS)", "of memory", "MiB", Of::Subject, |_, run, service| {
        sum(run, Role::Subject, service, |process| process.rss).map(|bytes| bytes / MIB)
    })
    .difference()
    .place(Place::Sentence),
    Metric::new("rss_peak", "memory, peak", "of peak memory", "MiB", Of::Subject, |_, run, service| {
        sum(run, Role::Subject, service, |process| process.rss_peak).map(|bytes| bytes / MIB)
    })
    .difference(),
    Metric::new("heap", "heap", "of heap", "MiB", Of::Subject, extra_mebibytes).difference(),
    Metric::new("heap_after_gc", "heap after GC", "of live heap", "MiB", Of::Subject, extra_mebibytes)
        .difference()
        .place(Place::Table),
    Metric::new("metaspace", "metaspace", "of metaspace", "MiB", Of::Subject, extra_mebibytes).difference(),
    Metric::new("classes", "classes loaded", "in loaded classes", "count", Of::Subject, extra_count).difference(),
    Metric::new("threads", "threads", "in threads", "count", Of::Subject, |_, run, service| {
        sum(run, Role::Subject, service, |process| process.threads)
    })
    .difference()
    .margin(0.5),
    Metric::new("gc_time", "GC time in the window", "of garbage collection", "ms", Of::Subject, extra_milliseconds)
        .difference(),
    Metric::new("memory_slope", "memory growth", "of memory growth", "MiB/min", Of::Subject, memory_slope)
        .difference()
        .margin(0.5),
    Metric::new("latency_p50", "latency p50", "at the median", "us", Of::Load, |_, run, _| latency(run, |q| q.p50))
        .quantile(0.5)
        .place(Place::Table),
    Metric::new("latency_p75", "latency p75", "at p75", "us", Of::Load, |_, run, _| latency(run, |q| q.p75))
        .quantile(0.75),
    Metric::new("latency_p90", "latency p90", "at p90", "us", Of::Load, |_, run, _| latency(run, |q| q.p90))
        .quantile(0.9)
        .place(Place::Table),
    Metric::new("latency_p95", "latency p95", "at p95", "us", Of::Load, |_, run, _| latency(run, |q| q.p95))
        .quantile(0.95),
    Metric::new("latency_p99", "latency p99", "at p99", "us", Of::Load, |_, run, _| latency(run, |q| q.p99))
        .quantile(0.99)
        .place(Place::Table),
    Metric::new("latency_p999", "latency p99.9", "at p99.9", "us", Of::Load, |_, run, _| latency(run, |q| q.p999))
        .quantile(0.999),
    Metric::new("latency_mean", "latency, mean", "of mean latency", "us", Of::Load, |_, run, _| {
        latency(run, |q| q.mean)
    }),
    Metric::new("latency_max", "latency, largest", "at the slowest request", "us", Of::Load, |_, run, _| {
        latency(run, |q| q.max)
    }),
    Metric::new("throughput", "throughput", "of throughput", "1/s", Of::ClosedLoad, |_, run, _| {
        run.load.as_ref().map(|load| load.rate)
    })
    .higher()
    .place(Place::Sentence),
    Metric::new("error_rate", "error rate", "in failed requests", "ratio", Of::Load, |_, run, _| {
        let load = run.load.as_ref()?;
        let all = load.requests + load.errors;
        (all > 0).then(|| load.errors as f64 / all as f64)
    })
    .difference()
    .margin(0.001)
    .place(Place::Table),
    Metric::new("start_up", "start-up", "of start-up time", "ms", Of::Subject, |_, run, service| {
        let slowest = of_role(run, Role::Subject, service).filter_map(|process| process.start_up_s).reduce(f64::max);
        slowest.map(|seconds| seconds * 1e3)
    })
    .place(Place::Table),
    Metric::new(
        "network_bytes_per_request",
        "network per request",
        "of network traffic per request",
        "B",
        Of::Subject,
        network,
    ),
    Metric::new(
        "context_switches_per_request",
        "context switches per request",
        "in context switches per request",
        "count",
        Of::Subject,
        |_, run, service| {
            let switches = sum(run, Role::Subject, service, |process| {
                Some(process.voluntary_switches? + process.involuntary_switches?)
            })?;
            Some(switches / completed(run)?)
        },
    ),
    Metric::new(
        "collector_cpu",
        "collector CPU per request",
        "of collector CPU per request",
        "us",
        Of::Role(Role::Collector),
        role_cpu,
    )
    .difference()
    .place(Place::Table),
    Metric::new(
        "storage_cpu",
        "storage CPU per request",
        "of storage CPU per request",
        "us",
        Of::Role(Role::Storage),
        role_cpu,
    )
    .difference()
    .place(Place::Table),
    Metric::new("disk_bytes_per_span", "stored per span", "stored per span", "B", Of::Load, |_, run, _| {
        let sink = run.sink.as_ref()?;
        let expected = run.ledger.as_ref().map_or(0, |ledger| ledger.expected.saturating_sub(ledger.sampled_out));
        match (sink.saved, expected) {
            // No spans, none stored: a bare service takes no disk.
            (0, 0) => Some(0.0),
            (0, _) => None,
            (saved, _) => Some(sink.stored_bytes as f64 / saved as f64),
        }
    })
    .difference(),
    Metric::new(
        "instructions_per_request",
        "instructions per request",
        "in instructions per request",
        "count",
        Of::Subject,
        |_, run, service| {
            let instructions = summed_extra(run, service, "instructions")?;
            Some(instructions / completed(run)?)
        },
    ),
    Metric::new("pss", "memory (PSS)", "of proportional memory", "MiB", Of::Subject, |_, run, service| {
        sum(run, Role::Subject, service, |process| process.pss).map(|bytes| bytes / MIB)
    })
    .difference(),
];

/// All metrics that the runs deliver: those of the table, then the unknown ones from `extra` by name.
#[must_use]
pub fn delivered<'a>(runs: impl IntoIterator<Item = &'a RunRecord>) -> Vec<Cow<'static, Metric>> {
    let mut all: Vec<_> = METRICS.iter().map(Cow::Borrowed).collect();
    let subjects = runs.into_iter().flat_map(|run| of_role(run, Role::Subject, None));
    let names: BTreeSet<&str> = subjects.flat_map(|process| process.extra.keys().map(String::as_str)).collect();
    let known = |name: &&str| METRICS.iter().any(|metric| metric.name == **name) || RAW.contains(name);
    all.extend(names.into_iter().filter(|name| !known(name)).map(|name| Cow::Owned(Metric::unknown(name))));
    all
}

/// Names in `extra` that are no metrics themselves but part of one.
const RAW: [&str; 1] = ["instructions"];

fn of_role<'a>(run: &'a RunRecord, role: Role, service: Option<&'a str>) -> impl Iterator<Item = &'a ProcessRecord> {
    let matches = move |process: &&ProcessRecord| {
        process.role == Some(role) && service.is_none_or(|service| process.service == service)
    };
    run.processes.iter().filter(matches)
}

/// Sum over the processes; `None` if there are none or one of them has no number, since a partial sum would look like a saving.
fn sum(
    run: &RunRecord,
    role: Role,
    service: Option<&str>,
    number: impl Fn(&ProcessRecord) -> Option<u64>,
) -> Option<f64> {
    let mut processes = of_role(run, role, service).peekable();
    processes.peek()?;
    let total: Option<u64> = processes.map(number).sum();
    total.map(|total| total as f64)
}

/// Requests over which costs are spread.
fn completed(run: &RunRecord) -> Option<f64> {
    let completed = run.load.as_ref()?.completed_in_window;
    (completed > 0).then_some(completed as f64)
}

fn cpu_per_request(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    let nanoseconds = sum(run, Role::Subject, service, |process| process.cpu_ns)?;
    Some(nanoseconds / 1e3 / completed(run)?)
}

fn role_cpu(metric: &Metric, run: &RunRecord, _: Option<&str>) -> Option<f64> {
    let Of::Role(role) = metric.of else { return None };
    let nanoseconds = sum(run, role, None, |process| process.cpu_ns)?;
    Some(nanoseconds / 1e3 / completed(run)?)
}

fn network(_: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    let bytes = sum(run, Role::Subject, service, |process| Some(process.network_received? + process.network_sent?))?;
    Some(bytes / completed(run)?)
}

fn latency(run: &RunRecord, quantile: fn(&Quantiles) -> f64) -> Option<f64> {
    let latency = &run.load.as_ref()?.latency_us;
    (latency.count > 0).then(|| quantile(latency))
}

/// Sum over the processes that have the number: a JVM beside a Go process has a heap of its own.
fn summed_extra(run: &RunRecord, service: Option<&str>, name: &str) -> Option<f64> {
    of_role(run, Role::Subject, service).filter_map(|process| process.extra.get(name).copied()).reduce(|a, b| a + b)
}

fn extra_count(metric: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    summed_extra(run, service, &metric.name)
}

fn extra_mebibytes(metric: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    summed_extra(run, service, &metric.name).map(|bytes| bytes / MIB)
}

fn extra_milliseconds(metric: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    summed_extra(run, service, &metric.name).map(|nanoseconds| nanoseconds / 1e6)
}

/// Bytes per second into mebibytes per minute.
fn memory_slope(metric: &Metric, run: &RunRecord, service: Option<&str>) -> Option<f64> {
    summed_extra(run, service, &metric.name).map(|bytes| bytes / MIB * 60.0)
}
