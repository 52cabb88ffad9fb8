//! The account of a variant's spans over all its runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The account of the spans of one variant over all its valid runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerFindings {
    /// Spans that the answered requests should have made.
    pub expected: u64,
    /// Distinct spans in the store.
    pub saved: u64,
    /// Spans that never arrived.
    pub lost: u64,
    /// Spans of requests that were not to be sampled.
    pub sampled_out: u64,
    /// Spans received more than once.
    pub duplicates: u64,
    /// What the books do not explain.
    pub unexplained: i64,
    /// Spans whose trace id is not of this load.
    pub foreign: u64,
    /// Traces with all, some and none of their spans.
    pub complete: u64,
    /// See `complete`.
    pub partial: u64,
    /// See `complete`.
    pub missing: u64,
    /// Spans that should have arrived: expected − sampled out.
    pub wanted: u64,
    /// Lost over wanted, 0 to 1.
    pub loss_ratio: f64,
    /// Loss ratio of the worst run.
    pub worst_loss_ratio: f64,
    /// Lost spans by stage.
    pub by_stage: BTreeMap<String, u64>,
    /// Lost spans by second of the load, summed over the runs; empty if none were lost.
    pub lost_by_second: Vec<u64>,
    /// Spans per sampled request.
    pub spans_per_request: f64,
    /// Whether `spans_per_request` was declared (else learned).
    pub declared: bool,
    /// Whether it was learned in the calibration, before any load (else from what arrived under load).
    #[serde(default)]
    pub calibrated: bool,
    /// Whether spans could only be counted, not tied to requests.
    #[serde(default)]
    pub by_count: bool,
    /// Service that counted them, if not the sink.
    #[serde(default)]
    pub counted_by: Option<String>,
    /// Whether so many spans were lost that the costs are those of less work: whatever looks like a gain is bought with them.
    #[serde(default)]
    pub bought_with_loss: bool,
    /// Spans thrown away by the sink on purpose, though their sender was told that all is well.
    #[serde(default)]
    pub dropped: u64,
    /// Requests that the sink refused, reset or never answered on purpose.
    #[serde(rename = "struck", default)]
    pub faulted: u64,
    /// Operations that lack spans, the largest lack first, as far as the calibration knows what is due.
    #[serde(default)]
    pub by_operation: Vec<OperationLoss>,
    /// What the spans are charged with below is the CPU without that of the JIT compiler.
    #[serde(default)]
    pub cpu_without_jit: bool,
    /// CPU cost of the subject over the spans that arrived, µs per span, estimate and interval; `null` without a cost or spans.
    pub cpu_us_per_delivered_span: Option<f64>,
    /// See `cpu_us_per_delivered_span`.
    pub cpu_us_per_delivered_span_low: Option<f64>,
    /// See `cpu_us_per_delivered_span`.
    pub cpu_us_per_delivered_span_high: Option<f64>,
}

/// Spans that one operation lacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationLoss {
    /// Service name of its spans.
    pub service: String,
    /// Name of its spans.
    pub operation: String,
    /// Spans due, by what a request makes of them in the calibration.
    pub due: f64,
    /// Spans that arrived.
    pub saved: u64,
    /// Lack over due, 0 to 1.
    pub loss_ratio: f64,
}
