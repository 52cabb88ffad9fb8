//! What a `study.yaml` says: the types that are read from it, written back out with every default filled in
//! (the resolved copy in the run folder) and turned into a JSON Schema (`unladen schema`).
//!
//! Nothing here touches a file, a clock or a process. What the words *mean* together (which processes a variant
//! starts, with which merged environment) is worked out in [`super::plan`].

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unladen_journal::record::Design;
use unladen_journal::units::{Ratio, Time};

use super::matrix::Matrix;
use super::prices::Prices;
pub use super::scrape::{Keep, Scrape, ScrapeKind, ScrapeUnit};

pub mod agent;
pub mod compose;
pub mod design;
pub mod kubernetes;
pub mod ladder;
pub mod load;
pub mod network;
pub mod phases;
pub mod repeat;
pub mod script;
pub mod service;
pub mod spans;
pub mod texts;
pub mod variant;

pub use agent::{Agent, Spans};
pub use compose::{Compose, ComposeProject, On, Volumes};
pub use design::SeparateReason;
pub use kubernetes::{Kubernetes, LoadPods, ProbeIn};
pub use ladder::Ladder;
pub use load::{Arrival, Check, Grpc, Load, Stage, Tls, TraceHeader, Users};
pub use network::Network;
pub use phases::{Capacity, PreheatCpuset, PreheatUntil, Quantile, Saturation};
pub use repeat::Repeat;
pub use service::{Command, Lifetime, Limits, Ready, Service, Stop};
pub use spans::{Attributes, Calibration, Count, Delay, Faults, Flapping, Loss, Numbers, Refuse, Sink, Sync};
pub use texts::Texts;
pub use variant::{BASELINE, Override, PLACEBO, Variant};

/// Most rounds of a study that something else ends, unless it says how many.
pub const MAX_ROUNDS: u32 = 200;

/// One question, asked of one service: its variants, the load, the rounds and the budgets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name of the study; it starts the name of the run folder. Letters, digits, `-` and `_`.
    pub study: String,
    /// The question in one sentence. It stands at the top of every report.
    #[serde(default)]
    pub question: String,
    /// Number of rounds. Every variant runs once per round. An interval needs at least 6. With `until` or `at_most` it is the
    /// maximum, 200 if absent.
    #[serde(default = "defaults::rounds")]
    pub rounds: u32,
    /// Run until the intervals are this narrow: `{cpu_per_request: 1%}` for ±1 %, `{rss: 100KiB}`. All named metrics of every
    /// variant except the placebo must get there. Checked after every round from the sixth on, by the width alone, never by the
    /// result. The study is judged at 96 %, so that repeated checks cause no more false alarms than one look at 95 %.
    #[serde(default)]
    pub until: IndexMap<String, String>,
    /// Time limit, including builds and calibrations: start no round that would end after it, judged by the last rounds. One
    /// round always runs. `--resume` starts the clock again. Without `until`: as many rounds as fit.
    #[serde(default)]
    pub at_most: Option<Time>,
    /// Warm-up of every run: load before the window, not measured. `0s` is for fixed work that can be done only once.
    #[serde(default = "defaults::warmup")]
    pub warmup: Time,
    /// Load at full speed before the warm-up of every run, not measured: a closed loop over all connections of the load. In an
    /// alternating round the variants are heated up side by side, for as long in total as one after the other. A JIT compiler
    /// compiles a method after thousands of calls, which may take minutes at the rate of the load.
    #[serde(default)]
    pub preheat: Time,
    /// Cores for heating up: those that the service is measured on (`own`), or `all`, including the instrument's. On few cores
    /// the compiler and the code that it compiles compete.
    #[serde(default)]
    pub preheat_cpuset: PreheatCpuset,
    /// When heating up ends: after `preheat` (`time`), or as soon as all JIT compilers are idle and a variant in a JVM has answered
    /// 20,000 requests, after `preheat` at the latest (`steady`). `steady` is for alternating rounds, whose super-blocks then do not
    /// count if a compiler is unusually busy in them.
    #[serde(default)]
    pub preheat_until: PreheatUntil,
    /// Measured time of every run.
    #[serde(default = "defaults::window")]
    pub window: Time,
    /// How a round measures its variants. `alternating`: all are alive, and the load alternates between them in short blocks,
    /// so that machine noise affects all of them equally. `separate`: one after the other. Absent: alternating, unless that
    /// would bias the result.
    #[serde(default)]
    pub design: Option<Design>,
    /// Block length in an alternating round. Absent: the time of 6 requests, within 6 to 100 ms; 100 ms in a closed loop and
    /// with `preheat_until: steady`. If requests cost much more in such blocks than alone, blocks get longer.
    #[serde(default)]
    pub block: Option<Time>,
    /// After the blocks of an alternating round, load each variant alone for this long. Latencies from p95 on are measured
    /// here, and CPU per request is compared with that of the blocks. Absent: as long as the window, at most 2 s.
    #[serde(default)]
    pub alone: Option<Time>,
    /// Keep idle CPUs awake while the study runs (`/dev/cpu_dma_latency`, needs root). Otherwise some requests pay for waking a CPU,
    /// and how many depends on whatever else wakes it. Has no effect in a study on Kubernetes.
    #[serde(default = "defaults::yes")]
    pub keep_awake: bool,
    /// Before each round, take the free memory that is in pieces, so that all processes get theirs in whole blocks (needs root).
    /// Otherwise what a service costs depends on where its pages are. Can take some seconds a round. Has no effect in a study on
    /// Kubernetes.
    #[serde(default = "defaults::yes")]
    pub ballast: bool,
    /// `own`: each variant has its own network, with its own 127.0.0.1 and ports. `host`: all use the machine's. Absent: own
    /// where services of several variants, alive at once, would listen on the same fixed address, or where one runs under an `agent`
    /// by name: nobody outside can be called from there.
    #[serde(default)]
    pub network: Option<Network>,
    /// Addresses outside their own network that services connect to: `[127.0.0.1:5432]`. Services with `lifetime: study`, and
    /// addresses in the commands where something listens already, are detected.
    #[serde(default)]
    pub reach: Vec<String>,
    /// How long to wait for outstanding spans when the load has ended.
    #[serde(default)]
    pub drain: Drain,
    /// Seed of the order of the variants, the trace ids and the sampling. Drawn and recorded if absent.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Run an A/A control, the baseline once more, in every round: it measures the noise floor.
    #[serde(default = "defaults::yes")]
    pub placebo: bool,
    /// When to repeat a round because something else disturbed the machine.
    #[serde(default)]
    pub repeat: Repeat,
    /// Relative difference that matters: an interval inside it is called "no difference".
    #[serde(default = "defaults::margin")]
    pub margin: Ratio,
    /// Names of your own for `${var.NAME}`; each can be set on the command line with `--set NAME=VALUE`.
    #[serde(default)]
    pub variables: IndexMap<String, String>,
    /// Where services come from that have neither `command` nor `image`: Compose files, or manifests of a Kubernetes cluster.
    #[serde(default)]
    pub on: On,
    /// The processes of the study, by name.
    pub services: IndexMap<String, Service>,
    /// The ways to run the subject, by name. `baseline`, without instrumentation, is required.
    pub variants: IndexMap<String, Variant>,
    /// Variants in steps from the baseline to full instrumentation, for the cost of each step: `[baseline, attached, unsampled,
    /// full]`. Several ladders have names: `{otel: [baseline, …], elastic: [baseline, …]}`.
    #[serde(default)]
    pub ladder: Ladder,
    /// Run the study at several values of some keys, written as for `--set`: `{spans: [1, 2, 5, 10]}` for a variable,
    /// `{load.rate: [100, 200]}` for the path of a key. Every combination is run; for numbers, the report plots the cost over
    /// them.
    #[serde(default)]
    pub matrix: Matrix,
    /// The requests sent to the service.
    pub load: Load,
    /// Search the highest rate at which latency and errors stay within limits, after the window of every run, on the same
    /// processes. Gives the metric `capacity`. Absent: not searched.
    #[serde(default)]
    pub capacity: Option<Capacity>,
    /// Saturate the service by a closed loop, after the window of every run, on the same processes. Gives the metrics
    /// `throughput_max`, `throughput_mean` and `time_to_max`. Absent: not measured.
    #[serde(default)]
    pub saturation: Option<Saturation>,
    /// The span sink that the study offers to the services.
    #[serde(default)]
    pub sink: Sink,
    /// How spans per request are learned and checked before the first round.
    #[serde(default)]
    pub calibration: Calibration,
    /// Limits on the cost, by metric: `cpu_per_request: 10%`, `rss: 50MiB`; of one service: `cpu_per_request@vets: 5%`.
    #[serde(default)]
    pub budgets: IndexMap<String, String>,
    /// What to do when a budget is undecided after `rounds`: `report` it, or `extend` the study once, to twice as many rounds.
    /// A study that may be extended is judged at 97 % at both looks, so that two looks cause no more false alarms than one.
    #[serde(default)]
    pub on_undecided: OnUndecided,
    /// Traffic and prices in production, to express the cost in cores, GiB, machines and money a year.
    #[serde(default)]
    pub prices: Option<Prices>,
    /// Named sets of changes to this study, each from a dotted key to its value: `published: {window: 20m, load.rate: 500}`.
    /// `--set profile=published` applies one.
    #[serde(default)]
    pub profiles: IndexMap<String, IndexMap<String, String>>,
}

impl Study {
    /// A study with every default, and no service and no variant yet.
    #[must_use]
    pub fn new(name: impl Into<String>, load: Load) -> Self {
        Self {
            study: name.into(),
            question: String::new(),
            rounds: defaults::rounds(),
            until: IndexMap::new(),
            at_most: None,
            warmup: defaults::warmup(),
            preheat: Time::default(),
            preheat_cpuset: PreheatCpuset::Own,
            preheat_until: PreheatUntil::Time,
            window: defaults::window(),
            design: None,
            block: None,
            alone: None,
            keep_awake: defaults::yes(),
            ballast: defaults::yes(),
            network: None,
            reach: Vec::new(),
            drain: Drain::default(),
            seed: None,
            placebo: defaults::yes(),
            repeat: Repeat::default(),
            margin: defaults::margin(),
            variables: IndexMap::new(),
            on: On::default(),
            services: IndexMap::new(),
            variants: IndexMap::new(),
            ladder: Ladder::default(),
            matrix: Matrix::new(),
            load,
            capacity: None,
            saturation: None,
            sink: Sink::default(),
            calibration: Calibration::default(),
            budgets: IndexMap::new(),
            on_undecided: OnUndecided::default(),
            prices: None,
            profiles: IndexMap::new(),
        }
    }
}

impl Study {
    /// Whether a service comes from the files that `on` names: Compose files, or manifests of a cluster.
    #[must_use]
    pub fn is_stacked(&self, service: &Service) -> bool {
        match (&self.on.compose, &self.on.kubernetes) {
            (_, Some(_)) => service.workload.is_some(),
            (Some(_), None) => service.says_nothing_to_run(),
            (None, None) => false,
        }
    }

    /// Names of the services that come from the files that `on` names. Each has an address of its own.
    pub fn stacked(&self) -> impl Iterator<Item = &str> {
        let is_stacked = |(_, service): &(&String, &Service)| self.is_stacked(service);
        self.services.iter().filter(is_stacked).map(|(name, _)| name.as_str())
    }

    /// Whether load and questions may go to a host that is not this machine.
    #[must_use]
    pub fn may_reach(&self, host: &str) -> bool {
        self.load.allow_remote || self.stacked().any(|name| name == host)
    }

    /// Whether something other than a number of rounds ends it.
    #[must_use]
    pub fn is_open_ended(&self) -> bool {
        !self.until.is_empty() || self.at_most.is_some()
    }

    /// About how many seconds of load a run has: what a fixed amount of work takes, nobody knows before.
    #[must_use]
    pub fn run_seconds(&self) -> f64 {
        let fixed = self.load.is_fixed_work();
        let window = if fixed { 0.0 } else { self.window.as_seconds() };
        let warmup = if self.load.driver.is_some() { 0.0 } else { self.warmup.as_seconds() };
        let saturation = self.saturation.as_ref().map_or(0.0, |saturation| saturation.time.as_seconds());
        // A search of usual precision takes about 18 trials.
        let search = |it: &Capacity| (18.0 * 1.2 * it.trial.as_seconds()).min(it.time.as_seconds());
        let preheat = self.preheat.as_seconds();
        let alone = if self.alternates() { self.alone_time().as_seconds() } else { 0.0 };
        preheat + warmup + window + alone + saturation + self.capacity.as_ref().map_or(0.0, search)
    }

    /// At least how many seconds so many runs take, one after the other.
    #[must_use]
    pub fn seconds_of(&self, runs: usize) -> f64 {
        // To start and to stop small services.
        const AROUND_S: f64 = 0.8;
        (self.run_seconds() + AROUND_S) * runs as f64
    }
}

/// What follows when a budget is undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUndecided {
    /// It is reported so.
    #[default]
    Report,
    /// The study goes on, once, to twice as many rounds.
    Extend,
}

/// Waiting for late spans at the end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drain {
    /// The run ends when no span has arrived for this long (at once when all that are expected are there).
    pub quiet: Time,
    /// The run ends after this long in any case.
    pub limit: Time,
}

impl Default for Drain {
    fn default() -> Self {
        Self { quiet: Time::seconds(6.0), limit: Time::seconds(15.0) }
    }
}

/// Defaults that `serde` asks for by path.
mod defaults {
    use super::{Ratio, Time};

    pub(super) fn rounds() -> u32 {
        12
    }
    pub(super) fn warmup() -> Time {
        Time::seconds(2.0)
    }
    pub(super) fn window() -> Time {
        Time::seconds(5.0)
    }
    pub(super) fn yes() -> bool {
        true
    }
    pub(super) fn margin() -> Ratio {
        Ratio(0.01)
    }
}
