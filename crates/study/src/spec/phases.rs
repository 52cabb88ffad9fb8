//! What a run may do besides its window, on the same processes: heat up before it, search the capacity and saturate after it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unladen_journal::units::{Ratio, Time};

/// When heating up ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreheatUntil {
    /// After the time of the study.
    #[default]
    Time,
    /// As soon as the JIT compilers of all variants rest, after the time of the study at the latest.
    Steady,
}

/// Cores on which services are heated up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreheatCpuset {
    /// Those that they are measured on.
    #[default]
    Own,
    /// All that unladen may use, those of the instrument as well.
    All,
}

/// The highest rate that the service bears: trials at constant rates, by bisection; a rate counts when it held (or failed) twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// A rate passes only if this quantile of the latency, counted from the due instant, is at most `limit`.
    #[serde(default)]
    pub quantile: Quantile,
    /// Limit for that quantile.
    pub limit: Time,
    /// A rate passes only if at most this share of its requests fails.
    #[serde(default = "defaults::errors")]
    pub errors: Ratio,
    /// Rate of the first trial, requests per second. Absent: half the throughput of a closed loop of one trial's length.
    #[serde(default)]
    pub from: Option<f64>,
    /// Highest rate to try.
    #[serde(default = "defaults::most")]
    pub most: f64,
    /// Length of a trial; a fifth more goes before it, not counted.
    #[serde(default = "defaults::trial")]
    pub trial: Time,
    /// The search ends when the highest passing and the lowest failing rate are this close.
    #[serde(default = "defaults::precision")]
    pub precision: Ratio,
    /// Longest time of the search in one run; what is known by then counts.
    #[serde(default = "defaults::time")]
    pub time: Time,
    /// Connections of the trials. Absent: the load's, but at least 64, so that a slow answer keeps no request waiting.
    #[serde(default)]
    pub connections: Option<u32>,
}

/// Places in a distribution of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantile {
    /// The arithmetic mean.
    Mean,
    /// The median.
    P50,
    /// The 75th percentile.
    P75,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    #[default]
    P99,
    /// The 99.9th percentile.
    P999,
    /// The longest.
    Max,
}

impl Quantile {
    /// As in the study and in conditions such as `p99>20ms`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P75 => "p75",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Max => "max",
        }
    }
}

/// As much as a closed loop gets through: every connection sends its next request when the last is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Saturation {
    /// How long it lasts. The throughput is taken second by second.
    pub time: Time,
    /// Connections. Absent: the load's.
    pub connections: Option<u32>,
    /// Connections start one after the other over this time, so that the ramp-up is visible.
    pub ramp: Time,
}

impl Default for Saturation {
    fn default() -> Self {
        Self { time: Time::seconds(5.0), connections: None, ramp: Time::seconds(0.0) }
    }
}

/// Defaults that `serde` asks for by path.
mod defaults {
    use super::{Ratio, Time};

    pub(super) fn errors() -> Ratio {
        Ratio(0.001)
    }
    pub(super) fn most() -> f64 {
        1_000_000.0
    }
    pub(super) fn trial() -> Time {
        Time::seconds(1.0)
    }
    pub(super) fn precision() -> Ratio {
        Ratio(0.03)
    }
    pub(super) fn time() -> Time {
        Time::seconds(60.0)
    }
}
