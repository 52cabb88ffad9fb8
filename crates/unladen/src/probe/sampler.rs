//! The thread that reads all probes: at the window's start, every second, and at its end.

use std::time::Duration;

use super::observation::{Live, Observation};
use super::target::Target;
use crate::linux::CpuSet;

/// When to sample. Instants are of `CLOCK_MONOTONIC`, in ns.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Start of the window.
    pub window_start_ns: u64,
    /// End of the window.
    pub window_end_ns: u64,
    /// Time between two samples; a second unless a test wants otherwise.
    pub interval: Duration,
    /// CPUs of the instrument, to which the thread is bound.
    pub cpus: Option<CpuSet>,
}

/// A sampler at work. Dropping it stops it.
#[derive(Debug)]
pub struct Sampler {}

impl Sampler {
    /// Starts the thread. Targets must be running. Samples are taken from now on, on the grid of the window's start.
    #[must_use]
    pub fn start(targets: Vec<Target>, schedule: Schedule) -> Self {
        let _ = (targets, schedule);
        Self {}
    }

    /// The newest sample; `None` before the first.
    #[must_use]
    pub fn latest(&self) -> Option<Live> {
        None
    }

    /// Waits for the window's end and returns everything.
    #[must_use]
    pub fn finish(self) -> Observation {
        Observation::default()
    }

    /// Stops at once; what was sampled is dropped.
    pub fn abort(self) {}
}
