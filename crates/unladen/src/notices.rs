//! Every notice that unladen can give about a run or a study: one enum, one wording each.
//!
//! A notice is data: the journal stores it, the judge adds its own, the reports print its text. A *refusal* takes the
//! run or the study out of the verdict; a *warning* asks for care; a *note* informs.

use serde::{Deserialize, Serialize};

/// How much a notice weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Informs.
    Note,
    /// Asks for care.
    Warning,
    /// Takes the run or the study out of the verdict.
    Refusal,
}

/// Everything worth telling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Notice {
    // Refusals of a run.
    /// A service ended while it was needed.
    #[error("{service} ended during the run ({how}); the end of its log: {log_tail}")]
    ServiceDied {
        /// Service.
        service: String,
        /// Exit code or signal.
        how: String,
        /// Last lines of its output.
        log_tail: String,
    },
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
    /// The sink process failed.
    #[error("the span sink failed: {message}")]
    SinkFailed {
        /// What it said.
        message: String,
    },
    // Warnings of a run.
    /// The cgroup's quota held a process back.
    #[error(
        "{service} was throttled by its CPU limit for {percent:.1} % of the window: the difference between variants is distorted. Raise `limits.cpus` or lower the rate"
    )]
    Throttled {
        /// Service.
        service: String,
        /// Share of the window, percent.
        percent: f64,
    },
    /// The hypervisor took time.
    #[error("the hypervisor took {percent:.1} % of the machine's time in the window (steal)")]
    Steal {
        /// Share, percent.
        percent: f64,
    },
    /// Other processes used the machine.
    #[error("other processes used {percent:.1} % of the machine in the window. Stop them, or expect wide intervals")]
    OthersBusy {
        /// Share, percent.
        percent: f64,
    },
    /// CPU came from the process tree.
    #[error(
        "CPU time was read from the process tree, not from a cgroup ({reason}): children that end within the window are missed. Run as root or in a delegated cgroup"
    )]
    NoCgroup {
        /// Why.
        reason: String,
    },
    /// Spans were still arriving at the limit of the drain.
    #[error("spans were still arriving when the drain reached its limit of {limit_s:.0} s. Raise `drain.limit`")]
    DrainLimit {
        /// Limit, seconds.
        limit_s: f64,
    },
    /// A file of the run could not be written.
    #[error("{file} of the run could not be written: {error}")]
    Unwritten {
        /// File.
        file: String,
        /// Why.
        error: String,
    },
    /// A process had to be killed.
    #[error(
        "{service} did not end within {grace_s:.0} s of SIGTERM and was killed: spans that it still held are lost. Raise `stop.grace`"
    )]
    Killed {
        /// Service.
        service: String,
        /// Grace, seconds.
        grace_s: f64,
    },
}

impl Notice {
    /// How much it weighs.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::ServiceDied { .. }
            | Self::GeneratorLate { .. }
            | Self::RateMissed { .. }
            | Self::Errors { .. }
            | Self::LoadFailed { .. }
            | Self::SinkFailed { .. } => Severity::Refusal,
            Self::Throttled { .. }
            | Self::Steal { .. }
            | Self::OthersBusy { .. }
            | Self::DrainLimit { .. }
            | Self::Unwritten { .. }
            | Self::Killed { .. } => Severity::Warning,
            Self::NoCgroup { .. } => Severity::Note,
        }
    }
}
