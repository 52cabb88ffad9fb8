//! Findings on the work itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number that a program of the study said of its work: medians over the valid runs that have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SaidFindings")]
pub struct ReportedNumberFindings {
    /// Service that said it.
    pub service: String,
    /// Its name for the number.
    pub name: String,
    /// In the runs of the baseline (and the placebo); `null`: not said there.
    pub baseline: Option<f64>,
    /// In the runs of the variant; `null`: not said there.
    pub value: Option<f64>,
    /// Whether the two are so far apart (or the second is missing) that the variant did other work than the baseline.
    pub differs: bool,
}
