//! Where the CPU goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a variant spends its CPU, beside the baseline: one service. Sampled once, in runs of their own: it says where a
/// difference comes from, not how large it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileFindings {
    /// Key of the variant.
    pub variant: String,
    /// Service.
    pub service: String,
    /// What sampled: `async-profiler`, `pprof` or `perf`.
    pub profiler: String,
    /// Samples of the baseline and of the variant.
    pub baseline_samples: u64,
    /// See `baseline_samples`.
    pub samples: u64,
    /// The frames with the largest difference, the largest first.
    pub frames: Vec<FrameFindings>,
    /// Folded stacks of the baseline and of the variant, and the flame graph of their difference, relative to the run folder.
    pub baseline_file: String,
    /// See `baseline_file`.
    pub file: String,
    /// See `baseline_file`.
    pub flame_graph: String,
}

/// CPU time in one frame itself, without what it calls, µs per request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrameFindings {
    /// Name of the frame.
    pub frame: String,
    /// In the baseline.
    pub baseline: f64,
    /// In the variant.
    pub value: f64,
    /// Variant less baseline.
    pub difference: f64,
}
