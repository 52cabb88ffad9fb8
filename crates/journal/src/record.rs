//! One line of `journal.jsonl`: everything that one run measured. No statistic is computed here; `judge` reads it.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use unladen_ledger::Ledger;
use unladen_ledger::faults::Faults;
use unladen_ledger::summary::{ReportedLoss, Summary};
use unladen_ledger::{LearnedOperation, Shortfall};
use unladen_load::outcome::Outcome;

pub use super::blocks::{Alone, BlockPoint, Blocks, Design};
use crate::notices::Notice;
use crate::role::Role;

/// Version of the line format.
pub const SCHEMA: u32 = 1;

/// What a variant is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariantKind {
    /// The bare service.
    Baseline,
    /// The bare service once more.
    Placebo,
    /// The service with something added.
    Variant,
}

impl VariantKind {
    /// As it stands in files, and for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Placebo => "placebo",
            Self::Variant => "variant",
        }
    }
}

/// One finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Number of the run in the study, from 1; with the variant it names the run's folder.
    pub run: u32,
    /// Round, from 1.
    pub round: u32,
    /// Position within the round, from 1.
    pub slot: u32,
    /// Which attempt at its round the run belongs to, from 1: a round that the machine disturbed is done again whole.
    #[serde(default = "first")]
    pub attempt: u32,
    /// Name of the variant.
    pub variant: String,
    /// What the variant is for.
    pub kind: VariantKind,
    /// Of a matrix: the values that this run was made with, by key.
    #[serde(default)]
    pub cell: IndexMap<String, String>,
    /// Name of the variant that it is held against; empty: the baseline.
    #[serde(default)]
    pub against: String,
    /// Folder of the run, relative to the run folder of the study: `runs/07-otel`.
    pub dir: String,
    /// When the run started, UTC, RFC 3339.
    pub started: String,
    /// Why the run does not count; `None`: it counts.
    pub void: Option<Notice>,
    /// Everything worth knowing that does not void the run.
    pub notices: Vec<Notice>,
    /// How long the phases took.
    pub phases: Phases,
    /// The load generator's account; `None` if it failed, or if a driver of the study's own did the work.
    pub load: Option<Outcome>,
    /// The fixed work of the window, if the load is that.
    #[serde(default)]
    pub work: Option<Work>,
    /// What the study's own programs (driver, setups, checks) said of their work: numbers by name, by service.
    #[serde(rename = "said", default)]
    pub reported_numbers: BTreeMap<String, BTreeMap<String, f64>>,
    /// What a closed loop got through after the window.
    #[serde(default)]
    pub saturation: Option<Saturation>,
    /// The highest rate that held after the window.
    #[serde(default)]
    pub capacity: Option<Capacity>,
    /// What the sink did wrong on purpose.
    #[serde(default)]
    pub faults: Option<Faults>,
    /// The sink's account; `None` if the sink was not asked for.
    pub sink: Option<Summary>,
    /// Losses that agents told of themselves in logs and Prometheus metrics, by service and stage; those that they sent over
    /// OTLP are in `sink`.
    #[serde(rename = "told", default)]
    pub reported_losses: Vec<ReportedLoss>,
    /// What backends have counted.
    #[serde(default)]
    pub counted: Vec<Counted>,
    /// Operations of which fewer spans arrived than the calibration makes expect, the largest lack first; only if spans were
    /// lost.
    #[serde(default)]
    pub shortfalls: Vec<Shortfall>,
    /// The account of every span.
    pub ledger: Option<Ledger>,
    /// Every process of the study over the window.
    pub processes: Vec<ProcessRecord>,
    /// The instrument itself over the window: `load`, `sink`.
    pub instrument: Vec<ProcessRecord>,
    /// The machine over the window.
    pub host: HostWindow,
    /// What another tool measured; then nothing else is known of the run.
    #[serde(default)]
    pub imported: Option<Imported>,
    /// How the round shared its time between the variants.
    #[serde(default, skip_serializing_if = "Design::is_separate")]
    pub design: Design,
    /// In how many groups the variants had rounds of their own: so many rounds of the journal are one of the study. 0 and 1: all had them
    /// together.
    #[serde(default, skip_serializing_if = "is_one_group")]
    pub groups: u32,
    /// Whether idle CPUs were kept awake.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awake: bool,
    /// Free memory in pieces that was held during a round, so that processes got theirs in whole blocks, bytes. `None`: it was not
    /// told where pages are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ballast: Option<u64>,
    /// Of an alternating round: the blocks of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// Of a study that was merged: name of the machine. Empty: there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// On a cluster: by service, one of its pods as the API server admitted it (`metadata` with labels and annotations, `spec`), secrets masked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub admitted: BTreeMap<String, Value>,
}

/// A run of another tool, by `unladen import`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// The tool.
    pub tool: String,
    /// Its file.
    pub file: String,
    /// Requests behind the numbers.
    pub requests: Option<u64>,
    /// Numbers by the metric's name, in the unit that `findings.json` has for it.
    pub numbers: BTreeMap<String, f64>,
}

impl RunRecord {
    /// A run of which nothing is known.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            schema: SCHEMA,
            run: 0,
            round: 0,
            slot: 0,
            attempt: first(),
            variant: String::new(),
            kind: VariantKind::Variant,
            cell: IndexMap::new(),
            against: String::new(),
            dir: String::new(),
            started: String::new(),
            void: None,
            notices: Vec::new(),
            phases: Phases::default(),
            load: None,
            work: None,
            reported_numbers: BTreeMap::new(),
            saturation: None,
            capacity: None,
            faults: None,
            sink: None,
            reported_losses: Vec::new(),
            counted: Vec::new(),
            shortfalls: Vec::new(),
            ledger: None,
            processes: Vec::new(),
            instrument: Vec::new(),
            host: HostWindow::default(),
            imported: None,
            design: Design::Separate,
            groups: 0,
            awake: false,
            ballast: None,
            blocks: None,
            machine: String::new(),
            admitted: BTreeMap::new(),
        }
    }
}

fn is_one_group(groups: &u32) -> bool {
    *groups <= 1
}

/// The attempt of a run of which nothing else is said.
fn first() -> u32 {
    1
}

/// What a backend has counted in a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Counted {
    /// Name of its service.
    pub service: String,
    /// What the service is in the study: `storage` or `collector`.
    pub role: Role,
    /// Its number before the load.
    pub before: f64,
    /// Its number at the end.
    pub after: f64,
    /// The difference, in spans.
    pub spans: u64,
    /// Whether the number stood still at the end.
    pub steady: bool,
}

/// A calibration as a line of the journal; it is no run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The calibration.
    pub calibration: Calibration,
}

/// A notice of the study as a whole as a line of the journal; it is no run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoticeRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The notice.
    pub notice: Notice,
}

/// What a slow load before the first round has taught about the spans of one variant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Calibration {
    /// Name of the variant.
    pub variant: String,
    /// When it started, UTC, RFC 3339.
    pub started: String,
    /// Its folder, relative to the run folder of the study.
    pub dir: String,
    /// Requests answered.
    pub requests: u64,
    /// Traces that arrived; 0 where spans cannot be tied to requests.
    pub traces: u64,
    /// What is taken for the spans of one request: `most_frequent` if nearly all traces have it, or if a sampler left few; else `mean`.
    pub spans_per_request: f64,
    /// Most frequent number of spans of a trace; `None` where spans cannot be tied to requests.
    pub most_frequent: Option<f64>,
    /// Share of the traces that have exactly that many, 0 to 1.
    pub agreement: f64,
    /// Mean number of spans of a trace, or of spans over requests.
    pub mean: f64,
    /// Spans per request by service and operation.
    pub operations: Vec<LearnedOperation>,
    /// What a reader has to know about it.
    pub notice: Option<Notice>,
}

impl Calibration {
    /// `consumer GET 3, consumer GET /work 1`.
    #[must_use]
    pub fn described(&self) -> String {
        let rounded = |spans: f64| (spans * 100.0).round() / 100.0;
        let describe =
            |it: &LearnedOperation| format!("{} `{}` {}", it.service, it.operation, rounded(it.spans_per_request));
        let shown = 8;
        let mut list: Vec<String> = self.operations.iter().take(shown).map(describe).collect();
        if self.operations.len() > shown {
            list.push(format!("{} more", self.operations.len() - shown));
        }
        if list.is_empty() { "operations unknown".to_owned() } else { list.join(", ") }
    }
}

/// Seconds that the phases of a run took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Phases {
    /// From the first process's exec to the last one's readiness.
    pub start_s: f64,
    /// Full speed before the warm-up.
    #[serde(default)]
    pub preheat_s: f64,
    /// Warm-up.
    pub warmup_s: f64,
    /// Window.
    pub window_s: f64,
    /// Waiting for late spans.
    pub drain_s: f64,
    /// Stopping.
    pub stop_s: f64,
    /// Saturation and search of the capacity, after the window.
    #[serde(default)]
    pub after_s: f64,
    /// The study's own programs before the load.
    #[serde(default)]
    pub setup_s: f64,
    /// The study's own programs after the drain.
    #[serde(default)]
    pub check_s: f64,
}

/// Fixed work, done.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Work {
    /// Requests, or units of the driver's work.
    pub units: u64,
    /// Seconds from the start of the first to the end of the last.
    pub completion_s: f64,
}

/// What a closed loop got through.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Saturation {
    /// Answers in the best second.
    pub max: f64,
    /// Answers per second over the whole time.
    pub mean: f64,
    /// Seconds from the start to the end of the first second with at least 95 % of `max`.
    pub time_to_max_s: f64,
    /// Share of the requests that failed.
    pub error_rate: f64,
    /// Share of one core that the load generator used.
    pub generator_busy: f64,
}

/// What the search of the capacity found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Capacity {
    /// Highest rate that held, requests per second; `None`: not even the lowest one did.
    pub holds: Option<f64>,
    /// Lowest rate that failed; `None`: not even the highest one did.
    pub fails: Option<f64>,
    /// Whether the time was up before the two were close enough.
    pub cut_short: bool,
    /// All trials in their order.
    pub trials: Vec<Trial>,
}

/// A load at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Trial {
    /// Wanted rate, requests per second.
    pub rate: f64,
    /// Achieved rate.
    pub achieved: f64,
    /// Median latency from the due instant, µs.
    pub p50_us: f64,
    /// 99th percentile of it, µs.
    pub p99_us: f64,
    /// Share of the requests that failed.
    pub error_rate: f64,
    /// Share of one core that the load generator used.
    pub generator_busy: f64,
    /// Whether the rate held.
    pub held: bool,
}

/// What one process (with its children) did over the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Name of its service, or of the instrument's part.
    pub service: String,
    /// 0, 1, … within the service.
    pub replica: u32,
    /// What the service is in the study; `None` for the instrument.
    pub role: Option<Role>,
    /// Process id.
    pub pid: u32,
    /// Id of the image that its container was made from (`sha256:…`); `None` for a process of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Seconds from exec to readiness; `None` if the study does not say when it is ready.
    pub start_up_s: Option<f64>,
    /// Where the CPU figures come from.
    pub cpu_source: CpuSource,
    /// CPU time over the window, ns. Of an alternating round: over all blocks that count, less what its idle rate makes in the blocks
    /// of the other variants (see `idle_cpu`).
    pub cpu_ns: Option<u64>,
    /// CPU time per second while no variant had a load, in cores: in the second after the drain, or in the second after readiness if the
    /// later one is more than a quarter higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_cpu: Option<f64>,
    /// Of an alternating round: CPU time in the blocks of the other variants, ns, idle CPU included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_foreign_ns: Option<u64>,
    /// Of an alternating round with `preheat_until: steady`: CPU time of JIT compilers in the super-blocks that count, ns, a part of `cpu_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiling_ns: Option<u64>,
    /// `cpu_ns` in user mode and in the kernel, ns, where the source tells them apart.
    pub cpu_user_ns: Option<u64>,
    /// See `cpu_user_ns`.
    pub cpu_system_ns: Option<u64>,
    /// Cores that it used in a typical second (median) of the first and of the second half of the window; `None` in windows of less
    /// than four seconds.
    #[serde(default)]
    pub cpu_halves: Option<[f64; 2]>,
    /// Resident memory, sampled once a second in the window, bytes: the median of the samples.
    pub rss: Option<u64>,
    /// The least resident memory in successive stretches of the window, as seconds since its start (the middle of the
    /// stretch) and bytes: one sample each in short windows, at most 240. A leak shows in the floor, not in the teeth of the saw.
    #[serde(default)]
    pub rss_floor: Vec<(f64, u64)>,
    /// The same of what collections leave of the heap; empty unless it is a JVM that has collected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heap_floor: Vec<(f64, u64)>,
    /// Largest resident memory since start (`VmHWM`, summed over the processes of the tree), bytes.
    pub rss_peak: Option<u64>,
    /// Proportional set size at the end of the window, bytes.
    pub pss: Option<u64>,
    /// Threads at the end of the window.
    pub threads: Option<u64>,
    /// Voluntary and involuntary context switches over the window.
    pub voluntary_switches: Option<u64>,
    /// See `voluntary_switches`.
    pub involuntary_switches: Option<u64>,
    /// Bytes received and sent over TCP in the window, where they can be had.
    pub network_received: Option<u64>,
    /// See `network_received`.
    pub network_sent: Option<u64>,
    /// Time for which the cgroup's quota held it back in the window, ns.
    pub throttled_ns: Option<u64>,
    /// How it ended: `running` at the end of the window, then `exit 0`, `signal 15`, `killed after 10 s`, ….
    pub ended: String,
    /// Anything else that a probe delivers, by metric name (`heap`, `gc_time`, …), one number per run.
    pub extra: BTreeMap<String, f64>,
}

/// Where CPU figures come from, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuSource {
    /// cgroup v2 `cpu.stat`.
    CgroupV2,
    /// cgroup v1 `cpuacct.usage`.
    CgroupV1,
    /// Sum of `/proc/PID/task/*/schedstat` over the process tree.
    #[default]
    Schedstat,
}

/// The machine over the window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct HostWindow {
    /// Cores.
    pub cores: u32,
    /// CPU time of the whole machine in the window, in seconds (user, system, irq; no idle, no steal).
    pub busy_s: f64,
    /// Of it by processes that are neither the study's nor the instrument's.
    pub others_s: f64,
    /// Time that the hypervisor took, seconds.
    pub steal_s: f64,
    /// Share of the window in which something waited for a CPU (PSI `some`), 0 to 1.
    pub cpu_pressure: Option<f64>,
    /// Available memory at the end of the window, bytes.
    pub memory_available: u64,
}

impl HostWindow {
    /// Takes so many seconds of CPU time that a process of the study used away from those of the others.
    pub fn count_as_ours(&mut self, cpu_s: f64) {
        self.others_s = (self.others_s - cpu_s).max(0.0);
    }

    /// What share of the machine so many seconds of CPU time are, over a window of so many seconds. `None` where either is
    /// unknown.
    #[must_use]
    pub fn share(&self, cpu_s: f64, window_s: f64) -> Option<f64> {
        let capacity = f64::from(self.cores) * window_s;
        (capacity > 0.0).then(|| cpu_s / capacity)
    }
}
