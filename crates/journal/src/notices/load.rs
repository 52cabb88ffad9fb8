//! What is told of the load: whether the generator kept its plan, what came of the requests, and the limits that were searched.

use serde::{Deserialize, Serialize};

use super::{Notice, Severity};

/// Of the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum LoadNotice {
    /// The generator could not keep its schedule.
    #[error(
        "the load generator was late: 99 % of the requests were sent within {lag_p99_us:.0} µs of being due, the limit is {limit_us:.0} µs. Lower the rate or give it a core of its own"
    )]
    GeneratorLate {
        /// 99th percentile of the send lag, µs.
        lag_p99_us: f64,
        /// Limit, µs.
        limit_us: f64,
    },
    /// The wanted rate was not reached.
    #[error(
        "only {achieved:.1} of {wanted:.1} requests per second were answered: the service or the generator is saturated. Lower the rate"
    )]
    RateMissed {
        /// Wanted, per second.
        wanted: f64,
        /// Achieved, per second.
        achieved: f64,
    },
    /// All connections were busy when requests were due.
    #[error(
        "{percent:.1} % of the requests found all {connections} connections busy: the number of connections set the pace, not the rate. Raise `load.connections` or lower the rate"
    )]
    OutOfConnections {
        /// Share of the requests of the window, percent.
        percent: f64,
        /// Connections.
        connections: u32,
    },
    /// The generator was the limit of a closed loop.
    #[error(
        "the load generator was busy {percent:.0} % of the time in a closed loop: it, not the service, set the pace. Use fewer connections, or a rate"
    )]
    GeneratorSaturated {
        /// CPU time of its busiest thread, percent of the window.
        percent: f64,
    },
    /// What the generator counted on its way does not fit what it measured.
    #[error(
        "the load generator's numbers break Little's law: it saw {seen:.1} requests in flight, but rate and service time imply {expected:.1}. It was starved of CPU; give it its own core"
    )]
    LittleLawOff {
        /// Requests under way, the mean of samples.
        seen: f64,
        /// Rate times mean service time.
        expected: f64,
    },
    /// Too many requests failed.
    #[error("{errors} of {requests} requests failed ({classes}). Look at the logs in the run's folder")]
    Errors {
        /// Failed requests in the window.
        errors: u64,
        /// All requests in the window.
        requests: u64,
        /// Classes with counts.
        classes: String,
    },
    /// The generator process failed.
    #[error("the load generator failed: {message}")]
    LoadFailed {
        /// What it said.
        message: String,
    },
    /// Fixed work took too long.
    #[error("the load did not finish within {limit_s:.0} s. Raise `load.at_most`, or reduce the work")]
    WorkUnfinished {
        /// Limit, seconds.
        limit_s: f64,
    },
    /// Some requests waited for a connection.
    #[error(
        "{percent:.1} % of the requests waited for one of {connections} connections; that wait is in the latency. Raise `load.connections`"
    )]
    ConnectionsShort {
        /// Share of the requests of the window, percent.
        percent: f64,
        /// Connections.
        connections: u32,
    },
    /// The generator may have been the limit, not the service.
    #[error(
        "the load generator used {percent:.0} % of its core where the service is said to have reached its limit ({what}): the limit may be the generator's"
    )]
    GeneratorAtLimit {
        /// Share of a core, percent.
        percent: f64,
        /// `capacity` or `saturation`.
        what: String,
    },
    /// The search of the capacity found no rate that fails.
    #[error("{rate:.0} requests per second still passed: the capacity is higher. Raise `capacity.most`")]
    CapacityBeyond {
        /// Highest rate tried.
        rate: f64,
    },
    /// The search of the capacity found no rate that holds.
    #[error("{rate:.3} requests per second already failed. Raise `capacity.limit`, or check the service")]
    NoCapacity {
        /// Lowest rate tried.
        rate: f64,
    },
    /// The search of the capacity had no time left.
    #[error(
        "the capacity search ran out of time between {holds:.0} and {fails:.0} requests per second. Raise `capacity.time`"
    )]
    CapacityCutShort {
        /// Highest rate that held.
        holds: f64,
        /// Lowest rate that failed.
        fails: f64,
    },
}

impl LoadNotice {
    /// The generator process failed, and this is what it said.
    pub fn failed(message: impl ToString) -> Notice {
        Self::LoadFailed { message: message.to_string() }.into()
    }

    /// How much it weighs.
    pub(super) fn severity(&self) -> Severity {
        match self {
            Self::GeneratorLate { .. }
            | Self::RateMissed { .. }
            | Self::OutOfConnections { .. }
            | Self::GeneratorSaturated { .. }
            | Self::LittleLawOff { .. }
            | Self::Errors { .. }
            | Self::LoadFailed { .. }
            | Self::WorkUnfinished { .. } => Severity::Refusal,
            Self::ConnectionsShort { .. }
            | Self::GeneratorAtLimit { .. }
            | Self::CapacityBeyond { .. }
            | Self::NoCapacity { .. }
            | Self::CapacityCutShort { .. } => Severity::Warning,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two kinds of notices are looked for behind those of the first level.
    #[test]
    fn in_json_it_is_a_notice_like_any_other() {
        let notice = Notice::from(LoadNotice::RateMissed { wanted: 2.0, achieved: 1.5 });
        let json = serde_json::to_string(&notice).expect("JSON");
        assert_eq!(json, r#"{"code":"rate_missed","wanted":2.0,"achieved":1.5}"#);
        assert_eq!(serde_json::from_str::<Notice>(&json).expect("and back"), notice);
        assert_eq!((notice.code().as_str(), notice.severity()), ("rate_missed", Severity::Refusal));
    }
}
