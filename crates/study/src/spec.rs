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

pub mod design;
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

pub use design::SeparateReason;
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
    /// How many rounds to run. Every variant runs once in every round. 6 is the least that gives an interval. With `until` or
    /// `at_most` it is the most, and 200 if absent.
    #[serde(default = "defaults::rounds")]
    pub rounds: u32,
    /// Go on until the intervals are so narrow: `{cpu_per_request: 1%}` for ±1 %, `{rss: 100KiB}`. Every variant must have come so far,
    /// the placebo apart, and all metrics that are named. Looked at after every round from the sixth on, at the width alone, never at
    /// what the interval says; the study is judged at 96 %, so that looking often raises no more false alarms than looking once at 95 %.
    #[serde(default)]
    pub until: IndexMap<String, String>,
    /// Begin no round that would end later than so long after unladen began, with builds and calibrations, as far as the last
    /// rounds tell. One round is run in any case. `--resume` has the time anew. Alone: as many rounds as fit.
    #[serde(default)]
    pub at_most: Option<Time>,
    /// Load before the window, per run; not measured. `0s` is for fixed work that can be done only once.
    #[serde(default = "defaults::warmup")]
    pub warmup: Time,
    /// Full speed before the warm-up, per run; not measured: a closed loop over all connections of the load. The variants of
    /// an alternating round are heated up side by side, for as long together as one after the other. A JIT compiler wants to see a method
    /// thousands of times, which at the rate of the load may take minutes.
    #[serde(default = "defaults::none")]
    pub preheat: Time,
    /// Where services run while they are heated up: on the cores that they are measured on (`own`), or on `all`, those of the instrument
    /// as well. On few cores a compiler waits for the code that it compiles, and the other way round.
    #[serde(default)]
    pub preheat_cpuset: PreheatCpuset,
    /// When heating up ends: when `preheat` is over (`time`), or as soon as no JIT compiler has anything left to do (`steady`), and when
    /// `preheat` is over at the latest. `steady` is for alternating rounds.
    #[serde(default)]
    pub preheat_until: PreheatUntil,
    /// The seconds of every run that are measured.
    #[serde(default = "defaults::window")]
    pub window: Time,
    /// How the variants of a round share the time. `alternating`: all are alive, and the load turns between them in short blocks, so
    /// that a change of the machine's pace hits all of them. `separate`: one after the other. Absent: alternating wherever it is sound.
    #[serde(default)]
    pub design: Option<Design>,
    /// Length of a block of an alternating round. Absent: what 3 requests take, but 6 to 100 ms; 100 ms in a closed loop and with `preheat_until: steady`.
    #[serde(default)]
    pub block: Option<Time>,
    /// After the blocks of an alternating round: each variant has the load for itself for so long. Latencies from p95 on are measured
    /// here, and the CPU per request is held against that of the blocks. Absent: as long as the window, at most 2 s.
    #[serde(default)]
    pub alone: Option<Time>,
    /// Whether each variant has a network of its `own`, where 127.0.0.1 and all ports are its alone, or all are on that of the machine
    /// (`host`). Absent: own where services of several variants, alive at once, would listen at the same fixed address.
    #[serde(default)]
    pub network: Option<Network>,
    /// What services reach outside a network of their own, at the same address: `[127.0.0.1:5432]`. Services with `lifetime: study`,
    /// and addresses in the commands at which something listens already, need not be written.
    #[serde(default)]
    pub reach: Vec<String>,
    /// How long to wait for spans that are still on their way when the load has ended.
    #[serde(default)]
    pub drain: Drain,
    /// Seed of the order of the variants, the trace ids and the sampling. Drawn and recorded if absent.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Run the baseline once more in every round, so that the noise floor is known.
    #[serde(default = "defaults::yes")]
    pub placebo: bool,
    /// When a round is done again because something else disturbed the machine.
    #[serde(default)]
    pub repeat: Repeat,
    /// Relative difference that matters: an interval inside it is called "no difference".
    #[serde(default = "defaults::margin")]
    pub margin: Ratio,
    /// Names of your own for `${var.NAME}`; each can be set on the command line with `--set NAME=VALUE`.
    #[serde(default)]
    pub variables: IndexMap<String, String>,
    /// The processes of the study, by name.
    pub services: IndexMap<String, Service>,
    /// The ways to run the subject, by name. `baseline` is the bare one and must be there.
    pub variants: IndexMap<String, Variant>,
    /// The variants in steps from the bare service to the full instrumentation, so that the cost is told step by step:
    /// `[baseline, attached, unsampled, full]`. Several ladders have names: `{otel: [baseline, …], elastic: [baseline, …]}`.
    #[serde(default)]
    pub ladder: Ladder,
    /// The study at several values of some of its keys, each written as for `--set`: `{spans: [1, 2, 5, 10]}` for a variable,
    /// `{load.rate: [100, 200]}` for the path of a key. Every combination is run; where values are numbers, the report draws
    /// the cost over them.
    #[serde(default)]
    pub matrix: Matrix,
    /// What is asked of the service, and how often.
    pub load: Load,
    /// After the window of every run, on the same processes: the highest rate at which latency and errors hold. Gives the
    /// metric `capacity`. Absent: not searched.
    #[serde(default)]
    pub capacity: Option<Capacity>,
    /// After the window of every run, on the same processes: as much as a closed loop gets through. Gives the metrics
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
    /// What follows when a budget is undecided after `rounds`: `report` it so, or `extend` the study once, to twice as many
    /// rounds. A study that may be extended is judged at 97 % at both looks, so that two looks raise no more false alarms
    /// than one.
    #[serde(default)]
    pub on_undecided: OnUndecided,
    /// Traffic and prices in production, so that the cost is told in cores, GiB, machines and money a year.
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
            preheat: defaults::none(),
            preheat_cpuset: PreheatCpuset::Own,
            preheat_until: PreheatUntil::Time,
            window: defaults::window(),
            design: None,
            block: None,
            alone: None,
            network: None,
            reach: Vec::new(),
            drain: Drain::default(),
            seed: None,
            placebo: defaults::yes(),
            repeat: Repeat::default(),
            margin: defaults::margin(),
            variables: IndexMap::new(),
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
    pub(super) fn none() -> Time {
        Time::seconds(0.0)
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
