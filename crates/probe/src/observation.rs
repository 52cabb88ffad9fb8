//! What a sampler hands out: the newest sample while it runs, everything when it has ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use unladen_journal::record::{HostWindow, ProcessRecord};
use unladen_journal::role::Role;

use super::scrape::Scraped;
use super::timeline::Row;

/// What the machine is called in a timeline.
pub(super) const HOST: &str = "host";

/// Everything that was seen over the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Observation {
    /// One per target, in their order. `start_up_s` is left empty and `ended` is `running` or `ended in the window`: only
    /// whoever started the process knows more.
    pub processes: Vec<ProcessRecord>,
    /// The machine.
    pub host: HostWindow,
    /// All samples, those before the window included (their `t_s` is negative).
    pub timeline: Vec<Row>,
    /// Targets that were gone before the window's end: service, replica and the second in which it was noticed.
    pub vanished: Vec<(String, u32, f64)>,
    /// What came of asking the targets that have an endpoint: service, replica.
    pub scraped: Vec<(String, u32, Scraped)>,
    /// How much later than asked the counters were read at the window's start and end.
    pub lateness: (Duration, Duration),
    /// What the probe itself cost.
    pub cost: Cost,
    /// Why nothing is known of a target whose probe is elsewhere.
    pub lost: Option<String>,
}

/// What the probe itself cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Samples taken.
    pub samples: u32,
    /// CPU time of the probe's thread for one sample, µs: the mean.
    pub cpu_us_per_sample: f64,
    /// CPU time of its dearest sample, µs: the window's first or last one, which read more.
    pub cpu_us_dearest: f64,
}

/// The newest sample, for the screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Live {
    /// Seconds since the window's start; negative before it.
    pub t_s: f64,
    /// One per target, in their order.
    pub processes: Vec<LiveProcess>,
    /// Cores' worth of CPU time that the whole machine used since the sample before.
    pub host_busy: Option<f64>,
    /// The same that the hypervisor took.
    pub host_steal: Option<f64>,
}

/// A target in the newest sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveProcess {
    /// Name of its service.
    pub service: String,
    /// 0, 1, … within the service.
    pub replica: u32,
    /// What it is in the study.
    pub role: Option<Role>,
    /// Cores' worth of CPU time that it used since the sample before.
    pub cpu: Option<f64>,
    /// Resident memory, bytes.
    pub rss: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Whether its first process is alive.
    pub alive: bool,
}
