//! What the judge says: `findings.json`. Everything that a report prints stands here; a report only formats.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curves::Curves;

mod answers;
mod design;
mod finding;
mod judgement;
mod ladder;
mod ledger;
mod profile;
mod reported_numbers;
mod sampled;
mod section;

pub use super::metrics::Place;
pub use answers::{AnswerFindings, AnswerNumbers, TimesFrom};
pub use design::{DesignFindings, RoundsDesign, VarianceFindings};
pub use finding::{BudgetFinding, Finding, NoticeLine, Range, RoundValue};
pub use judgement::Judgement;
pub use ladder::{LadderFindings, StepFindings};
pub use ledger::{LedgerFindings, OperationLoss};
pub use profile::{FrameFindings, ProfileFindings};
pub use reported_numbers::ReportedNumberFindings;
pub use sampled::{SampledFindings, SampledQuantiles, SampledRound};
pub use section::{Align, Cell, Column, MISSING, Number, Section, Topic};
pub use unladen_journal::notices::Severity;
pub use unladen_journal::record::VariantKind;
pub use unladen_stats::verdict::{Outcome, Verdict};

/// Version of the format.
pub const SCHEMA: u32 = 1;

/// The answer to a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Version of the format.
    pub schema: u32,
    /// Name of the study.
    pub study: String,
    /// Its question.
    pub question: String,
    /// Rounds in which every variant has a valid run.
    pub rounds: u32,
    /// Rounds that were begun.
    pub rounds_begun: u32,
    /// Rounds that were done again, whole, because something else disturbed the machine.
    #[serde(default)]
    pub rounds_repeated: u32,
    /// Why the study as a whole says nothing; `null`: it speaks.
    pub void: Option<String>,
    /// The answer in words, one sentence per variant, in the order of `variants`.
    pub conclusions: Vec<Conclusion>,
    /// One entry per variant; the placebo is first, the baseline is not among them.
    pub variants: Vec<VariantFindings>,
    /// Where the cost comes from: every ladder of the study, step by step.
    #[serde(default)]
    pub ladders: Vec<LadderFindings>,
    /// The cost over the values of the study's matrix.
    #[serde(default)]
    pub doses: Vec<DoseFindings>,
    /// Every budget of the study for every variant: also those that could not be decided for want of a number.
    pub budgets: Vec<BudgetLine>,
    /// Everything a reader should know before believing: warnings, refusals, re-runs.
    pub notices: Vec<NoticeLine>,
    /// How many comparisons were made, and how many of them would look real by chance.
    pub comparisons: Comparisons,
    /// The load as it was, for the head of the report.
    pub load: LoadFindings,
    /// How the rounds shared their time between the variants; `null` of imported results.
    #[serde(default)]
    pub design: Option<DesignFindings>,
    /// What the instrument itself took.
    pub instrument: InstrumentFindings,
    /// Where each variant spends its CPU, beside the baseline; empty unless `--profile` was given.
    #[serde(default)]
    pub profiles: Vec<ProfileFindings>,
    /// How long operations take, from their spans, per variant the dearest first; empty without spans.
    #[serde(default)]
    pub operations: Vec<OperationFindings>,
    /// What spans tell of the latency of requests, beside what clients saw; empty unless the study names the spans of requests.
    #[serde(default)]
    pub sampled: Vec<SampledFindings>,
    /// Every run, in the order of the journal: also those that do not count.
    #[serde(default)]
    pub runs: Vec<RunLine>,
    /// What was started: the services, then what variants change in them.
    #[serde(default)]
    pub commands: Vec<CommandLine>,
    /// Environment: the content of `host.json`.
    pub host: serde_json::Value,
    /// The same as tables, as every report for people prints them; those of verdicts are `metrics` of the variants.
    #[serde(default)]
    pub sections: Vec<Section>,
    /// For the charts of a report; no part of `findings.json`, because no verdict rests on it.
    #[serde(skip)]
    pub curves: Option<Curves>,
}

/// How long an operation takes, from the spans of the windows. Quantiles are medians over the runs, between the lowest and the
/// highest run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationFindings {
    /// Key of the variant.
    pub variant: String,
    /// Service name of the spans.
    pub service: String,
    /// Name of the spans.
    pub operation: String,
    /// Spans that were looked at; of very many in a run, a part.
    pub spans: u64,
    /// Median duration, µs.
    pub p50_us: Range,
    /// 90th percentile, µs.
    pub p90_us: Range,
    /// 99th percentile, µs; `null` where the variants were alive side by side, which makes it theirs together.
    pub p99_us: Option<Range>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLine {
    /// Number of the run, from 1.
    pub run: u32,
    /// Its round, from 1.
    pub round: u32,
    /// Its place in the round, from 1.
    pub slot: u32,
    /// Key of the variant.
    pub variant: String,
    /// Of a study that was merged: name of its machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Its folder, relative to the run folder.
    pub dir: String,
    /// When it started, UTC, RFC 3339.
    pub started: String,
    /// Whether it counts.
    pub counts: bool,
    /// Why it does not.
    pub void: Option<String>,
    /// What disturbed it and did not void it.
    pub disturbances: Vec<String>,
}

/// A command as the study has it, secrets masked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandLine {
    /// Key of the variant that changes it; `null`: for all variants that say nothing else.
    pub variant: Option<String>,
    /// Service.
    pub service: String,
    /// Its role.
    pub role: String,
    /// Environment and command in one line, as for a shell.
    pub command: String,
}

/// The cost of a variant over a dose: a straight line, fitted in every round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoseFindings {
    /// Key of the matrix whose values are the doses.
    pub axis: String,
    /// Key of the variant.
    pub variant: String,
    /// Its name for people, with the values of the matrix's other keys.
    pub label: String,
    /// Name of the metric.
    pub metric: String,
    /// Its name for people.
    pub title: String,
    /// Unit of the numbers below; of `per_unit` per unit of dose.
    pub unit: String,
    /// What is added whatever the dose; `null` with too few rounds.
    pub fixed: Option<Range>,
    /// What each unit of dose adds.
    pub per_unit: Option<Range>,
    /// What was found at each dose, the least first; with `fixed`, which is the line at dose 0, enough to draw line and band.
    pub points: Vec<DosePoint>,
    /// Doses at which the points are surely (99 %) not on the line, and by more than a twentieth of what the line rises: then a line
    /// is too simple. Needs 8 rounds.
    #[serde(default)]
    pub off_the_line: Vec<f64>,
    /// The answer in words.
    pub words: String,
}

/// One dose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DosePoint {
    /// The dose.
    pub dose: f64,
    /// Median of the baseline.
    pub baseline: f64,
    /// Difference from it, with its interval; `null` with too few rounds.
    pub difference: Option<f64>,
    /// See `difference`.
    pub difference_low: Option<f64>,
    /// See `difference`.
    pub difference_high: Option<f64>,
    /// Relative difference, with its interval; `null` where it has none.
    #[serde(default)]
    pub ratio: Option<Range>,
    /// The line at this dose, with its interval; `null` with too few rounds.
    #[serde(default)]
    pub fitted: Option<Range>,
}

/// A sentence for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conclusion {
    /// Variant that it speaks of.
    pub variant: String,
    /// The sentence.
    pub words: String,
}

/// All findings of one variant against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantFindings {
    /// Key of the variant.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// The values of the study's matrix that it was run with; left out if there are none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub cell: IndexMap<String, String>,
    /// `placebo` or `variant`.
    #[schemars(with = "String")]
    pub kind: VariantKind,
    /// Why nothing is said about this variant, whatever the numbers; `null`: it is judged.
    pub refused: Option<String>,
    /// Runs that count.
    pub valid_runs: u32,
    /// Runs that were started.
    pub runs: u32,
    /// What the sink did wrong on purpose, in words; `null`: nothing.
    #[serde(default)]
    pub faults: Option<String>,
    /// One finding per metric (and service, where a metric is kept per service).
    pub metrics: Vec<Finding>,
    /// The account of the spans, summed over the valid runs; `null` without spans.
    pub ledger: Option<LedgerFindings>,
    /// What the cost means in production; `null` unless the study has `prices`.
    #[serde(default)]
    pub money: Option<MoneyFindings>,
    /// What the study's own programs said of their work, held to the baseline's; empty if they say nothing.
    #[serde(rename = "said", default)]
    pub reported_numbers: Vec<ReportedNumberFindings>,
    /// How long answers took by request and kind, and whole iterations; empty unless the load has several requests or kinds.
    #[serde(default)]
    pub answers: Vec<AnswerFindings>,
    /// CPU per request in the blocks of the variant over that of the stretch in which it had the load for itself, less 1, over the rounds;
    /// `null` unless there are such stretches in 6 rounds.
    #[serde(default)]
    pub blocks_against_alone: Option<Range>,
    /// Where the noise of its CPU per request over the baseline's comes from; `null` unless 4 alternating rounds tell.
    #[serde(default)]
    pub variance: Option<VarianceFindings>,
    /// On a cluster: in what its pods, as they were admitted, differ from the baseline's; left out elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub admitted: Vec<PodDifference>,
}

/// One place in which the pods of a service differ from the baseline's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodDifference {
    /// Service.
    pub service: String,
    /// Where in the pod: `spec.containers.app.image`.
    pub path: String,
    /// What the baseline has there; `null`: nothing.
    pub baseline: Option<String>,
    /// What the variant has.
    pub variant: Option<String>,
}

/// The cost at the user's traffic and prices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MoneyFindings {
    /// Traffic, requests per second.
    pub requests_per_second: f64,
    /// Instances that pay for the memory.
    pub instances: u32,
    /// Cores more, all instances together.
    pub cores: Option<Range>,
    /// Bytes of memory more, all instances together.
    pub memory_bytes: Option<Range>,
    /// Machines more; not rounded up.
    pub machines: Option<Range>,
    /// Money a year.
    pub per_year: Option<Range>,
    /// Its currency.
    pub currency: String,
}

/// A budget of one variant, whether or not there is a finding for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetLine {
    /// Key of the variant.
    pub variant: String,
    /// Name of the metric.
    pub metric: String,
    /// Service that the budget is for; `null`: the subject as a whole.
    #[serde(default)]
    pub service: Option<String>,
    /// As the user wrote it.
    pub limit: String,
    /// `pass`, `fail` or `undecided`.
    #[schemars(with = "String")]
    pub outcome: Outcome,
    /// The outcome in words.
    pub words: String,
}

/// How many comparisons were made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparisons {
    /// Number of findings with an interval, the placebo's apart.
    pub made: u32,
    /// How many of them would look real by chance if nothing were.
    pub expected_by_chance: f64,
}

/// The load as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFindings {
    /// Where requests went.
    pub url: String,
    /// How it was paced, in words.
    pub pacing: String,
    /// Wanted rate, requests per second; `null`: closed loop, or another way of pacing.
    pub rate: Option<f64>,
    /// Connections.
    pub connections: u32,
    /// Requests answered in all windows of valid runs.
    pub requests: u64,
    /// Requests that failed in them.
    pub errors: u64,
    /// Length of the window, seconds; of fixed work the median over the valid runs.
    pub window_s: f64,
    /// The tools whose results these are, if they were imported; then nothing above is known but the numbers of the metrics.
    #[serde(default)]
    pub imported: Option<String>,
    /// Whether the window ended with the work, not at a fixed time.
    pub fixed_work: bool,
}

/// What the instrument itself took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstrumentFindings {
    /// CPU of the load generator, µs per request, median over the valid runs.
    pub load_cpu_us_per_request: Option<f64>,
    /// CPU of the sink, µs per received span, median over the runs that received any.
    pub sink_cpu_us_per_span: Option<f64>,
    /// 99th percentile of the send lag, µs, worst run.
    pub send_lag_p99_us: Option<f64>,
    /// Whether subject and instrument ran on cores of their own; `null`: not recorded.
    pub cores_apart: Option<bool>,
    /// The processes that sent the load together, from other machines; absent: one process of this machine sent it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_parts: Vec<LoadPartFindings>,
}

/// A process that sent a part of the load, over all valid runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoadPartFindings {
    /// Which part, from 1.
    pub part: u32,
    /// Machine that it was on.
    pub machine: String,
    /// Requests that it sent.
    pub requests: u64,
    /// How wrong its clock can have been read, µs, worst run.
    pub clock_bound_us: f64,
    /// How long after its instant it began a block that counts, µs, worst run.
    pub late_us: f64,
}
