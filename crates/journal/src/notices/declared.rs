//! A number of spans that a study declares and that its calibration does not find.

use serde::{Deserialize, Serialize};

/// What was declared, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "the study declares {declared} spans per request for {variant}; the calibration ({requests} slow requests) found {found}: {operations}. Every ledger would be wrong: correct `variants.{variant}.spans_per_request`, or remove it to use what the calibration finds"
)]
pub struct DeclaredWrong {
    /// Variant.
    pub variant: String,
    /// Spans per request by the study.
    pub declared: f64,
    /// Spans per request by the calibration.
    pub found: f64,
    /// Requests of the calibration.
    pub requests: u64,
    /// What was found by operation.
    pub operations: String,
}
