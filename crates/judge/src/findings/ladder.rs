//! Variants in steps, each held against the one below it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Finding;

/// Variants held each against the one before it, from the bare service to the full instrumentation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LadderFindings {
    /// Name of the ladder; empty if the study has but one without a name.
    pub name: String,
    /// Key of the variant at its foot.
    pub foot: String,
    /// Name of that variant for people.
    pub foot_label: String,
    /// The steps upwards: what each adds to the one before.
    pub steps: Vec<StepFindings>,
    /// The highest step against the foot: what all steps add together, measured on its own and not summed up.
    pub whole: StepFindings,
    /// The answer in words.
    pub words: String,
}

/// What one step of a ladder adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepFindings {
    /// Key of the variant below.
    pub from: String,
    /// Key of the variant.
    pub to: String,
    /// Name of the variant for people.
    pub label: String,
    /// Why nothing is said about this step, whatever the numbers; `null`: it is judged.
    pub refused: Option<String>,
    /// One finding per metric; `baseline` is the variant below.
    pub metrics: Vec<Finding>,
}
