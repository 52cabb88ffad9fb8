//! Findings on what sampled spans tell of latencies, and what they hide.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Range;

/// Quantiles of a request as its server spans tell them, beside those that its clients saw, of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledFindings {
    /// Key of the variant.
    pub variant: String,
    /// Name of the request.
    pub request: String,
    /// Name of its server span.
    pub span: String,
    /// Share of the requests that carried the sampled flag.
    pub ratio: f64,
    /// Requests of the windows that have such a span, over all rounds below.
    pub spans: u64,
    /// Good answers that clients saw, over all rounds below.
    pub requests: u64,
    /// From the spans, median over the rounds.
    pub from_spans: SampledQuantiles,
    /// From the clients, median over the rounds.
    pub from_clients: SampledQuantiles,
    /// From the spans, arithmetic mean over the rounds: what other reports print.
    pub mean_from_spans: SampledQuantiles,
    /// From the clients, arithmetic mean over the rounds.
    pub mean_from_clients: SampledQuantiles,
    /// Every round with such spans.
    pub rounds: Vec<SampledRound>,
    /// What is wrong about the median of the spans: over that of the clients, less 1; median, lowest and highest round.
    pub error_p50: Option<Range>,
    /// The same at the 90th percentile.
    pub error_p90: Option<Range>,
    /// The same at the 95th percentile.
    pub error_p95: Option<Range>,
    /// The same at the 99th percentile.
    pub error_p99: Option<Range>,
    /// What of it sampling adds: the clients' median of the sampled requests over that of all, less 1; 0 if all are sampled. The rest
    /// is that spans do not see what is outside of the service.
    pub sampling_p50: Option<Range>,
    /// The same at the 90th percentile.
    pub sampling_p90: Option<Range>,
    /// The same at the 95th percentile.
    pub sampling_p95: Option<Range>,
    /// The same at the 99th percentile.
    pub sampling_p99: Option<Range>,
}

/// One round of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledRound {
    /// Round, from 1.
    pub round: u32,
    /// Requests with such a span.
    pub spans: u64,
    /// Good answers that clients saw.
    pub requests: u64,
    /// From the spans: how long the service says that it took.
    pub from_spans: SampledQuantiles,
    /// From the clients, all requests: from sent to answered.
    pub from_clients: SampledQuantiles,
    /// From the clients, the requests with the sampled flag; `null`: which these were is not known.
    pub of_sampled: Option<SampledQuantiles>,
}

/// Quantiles, µs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SampledQuantiles {
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
}

impl SampledFindings {
    /// What is wrong about each quantile: p50, p90, p95, p99.
    #[must_use]
    pub fn errors(&self) -> [Option<Range>; 4] {
        [self.error_p50, self.error_p90, self.error_p95, self.error_p99]
    }

    /// What of it sampling adds.
    #[must_use]
    pub fn sampling(&self) -> [Option<Range>; 4] {
        [self.sampling_p50, self.sampling_p90, self.sampling_p95, self.sampling_p99]
    }
}
