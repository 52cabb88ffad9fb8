//! Findings on how it was measured, and where the noise comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Range;

/// How the rounds shared their time between the variants. Numbers of blocks are those of a typical alternating round; `null`: there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DesignFindings {
    /// `alternating` (all variants alive, the load turns between them), `separate` (one after the other), or `mixed`: some rounds by the one,
    /// some by the other.
    #[schemars(with = "String")]
    pub design: RoundsDesign,
    /// It in a sentence.
    pub words: String,
    /// Alternating rounds with runs that count.
    pub alternating_rounds: u32,
    /// Other rounds with runs that count.
    pub separate_rounds: u32,
    /// Variants that took turns, baseline and placebo included.
    pub variants: Option<u32>,
    /// In how many groups, if not all at once: each has the baseline and the placebo, and rounds of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
    /// Whether idle CPUs were kept awake in all rounds.
    #[serde(default)]
    pub awake: bool,
    /// Free memory in pieces that was held during a round, so that processes got theirs in whole blocks, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ballast: Option<f64>,
    /// Length of a block, seconds.
    pub block_s: Option<f64>,
    /// How much more CPU time a block of the baseline takes in its first half than in its second, seconds: it is not charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_s: Option<f64>,
    /// Super-blocks of a round, also those that were thrown away.
    pub super_blocks: Option<u32>,
    /// Super-blocks of all rounds that were thrown away because the load generator was late.
    pub late: u32,
    /// Those that were thrown away because steal or other processes took the machine.
    pub disturbed: u32,
    /// Those that were thrown away because the JIT compiler of a variant was unusually busy.
    #[serde(default)]
    pub compiling: u32,
    /// Share of the super-blocks of all rounds that were thrown away, 0 to 1.
    pub thrown_away: Option<f64>,
    /// For how long each variant had the load for itself after the blocks, seconds.
    pub alone_s: Option<f64>,
    /// As `blocks_against_alone` of the variants: of the baseline.
    pub baseline_against_alone: Option<Range>,
}

/// By which design the rounds of a study were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundsDesign {
    /// All variants alive, the load turns between them.
    Alternating,
    /// One after the other.
    Separate,
    /// Some rounds by the one, some by the other.
    Mixed,
}

/// Standard deviations of a round's log-ratio of CPU per request (0.02 = 2 %), by where they come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VarianceFindings {
    /// From start to start: no longer window removes it.
    pub between: f64,
    /// What varies within a start and is left in a window of this length.
    pub within: f64,
    /// Whether more rounds are the better buy than a longer window.
    pub rounds_help: bool,
    /// It in words.
    pub words: String,
}
