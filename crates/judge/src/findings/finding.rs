//! One metric of one variant against the baseline, and what it is made of. Other findings are made of it; it knows none of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unladen_journal::notices::Severity;
use unladen_stats::verdict::{Outcome, Verdict};

use super::super::metrics::Place;

/// One metric of one variant against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Name of the metric.
    pub metric: String,
    /// Its name for people.
    pub title: String,
    /// How prominent it is: `sentence` (in the conclusion and everywhere), `table` (in every table) or `detail` (in the long ones).
    #[schemars(with = "String")]
    pub place: Place,
    /// Unit of `baseline`, `value` and `difference`: `us`, `ms`, `B`, `B/min`, `1/s`, `share` (0 to 1), `count`, `cores`, or empty.
    pub unit: String,
    /// Service that it belongs to; `null`: the subject as a whole, or the load.
    pub service: Option<String>,
    /// Operation that it belongs to (span latencies).
    pub operation: Option<String>,
    /// Median over the rounds, baseline and variant.
    pub baseline: f64,
    /// See `baseline`.
    pub value: f64,
    /// Arithmetic mean over the rounds, baseline and variant: what other reports print. No verdict rests on it.
    #[serde(default)]
    pub baseline_mean: f64,
    /// See `baseline_mean`.
    #[serde(default)]
    pub value_mean: f64,
    /// Difference, Hodges-Lehmann estimate and interval; `null` when fewer than 6 rounds have both sides.
    pub difference: Option<f64>,
    /// See `difference`.
    pub difference_low: Option<f64>,
    /// See `difference`.
    pub difference_high: Option<f64>,
    /// Relative difference (0.18 = +18 %), estimate and interval.
    pub ratio: Option<f64>,
    /// See `ratio`.
    pub ratio_low: Option<f64>,
    /// See `ratio`.
    pub ratio_high: Option<f64>,
    /// Geometric mean of the ratios less 1, beside the Hodges-Lehmann estimate: they part when a few rounds were hit hard.
    pub mean_ratio: Option<f64>,
    /// Level that the exact interval achieves, 0.958 for 12 rounds.
    pub level: Option<f64>,
    /// `costs`, `saves`, `no_difference` or `cannot_tell`. More is a cost, except for `throughput` and `capacity`, where less is.
    #[schemars(with = "String")]
    pub verdict: Verdict,
    /// The verdict in words.
    pub words: String,
    /// Why nothing is said about this metric, whatever its numbers; `null`: it is judged (unless the variant as a whole is not).
    #[serde(default)]
    pub refused: Option<String>,
    /// Smallest effect that this many rounds could have shown with 80 % power, as a ratio or in the unit.
    pub detectable: Option<f64>,
    /// If the verdict is `cannot_tell`: about how many rounds would settle it. `null`: more than 200, or no telling.
    pub rounds_needed: Option<u32>,
    /// Smallest effect that matters, on the scale that decides: an interval inside of ± this is "no difference".
    pub margin: f64,
    /// Whether `ratio` (true) or `difference` (false) decided the verdict.
    pub relative: bool,
    /// The user's limit and how it came out.
    pub budget: Option<BudgetFinding>,
    /// Every round: the dots.
    pub rounds: Vec<RoundValue>,
    /// Warnings that concern this finding alone.
    pub notices: Vec<NoticeLine>,
}

/// One round of one metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundValue {
    /// Round, from 1.
    pub round: u32,
    /// The baseline's run.
    pub baseline: f64,
    /// The variant's run.
    pub value: f64,
    /// Value less baseline.
    pub difference: f64,
    /// Value over baseline, less 1; `null` if one of them is not above 0.
    pub ratio: Option<f64>,
}

/// A budget and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetFinding {
    /// As the user wrote it: `10%`, `50MiB`.
    pub limit: String,
    /// The limit as a number: a ratio if `relative`, else in the metric's unit.
    pub value: f64,
    /// Whether the limit is relative.
    pub relative: bool,
    /// `pass`, `fail` or `undecided`.
    #[schemars(with = "String")]
    pub outcome: Outcome,
}

/// A number with the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// Estimate.
    pub value: f64,
    /// Low end.
    pub low: f64,
    /// High end.
    pub high: f64,
}

/// A notice as it is printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeLine {
    /// Stable name of the notice, snake case.
    pub code: String,
    /// `refusal` (takes the verdict away), `warning` or `note`.
    #[schemars(with = "String")]
    pub severity: Severity,
    /// What happened and what to do.
    pub text: String,
}
