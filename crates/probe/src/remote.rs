//! A probe that runs elsewhere: in the pod of the container that it watches, where this process may not read. It is asked over TCP, in lines of
//! JSON; instants are of its own `CLOCK_MONOTONIC`.
//!
//! It needs no right but to be in the process namespace of the container, whose first process is then process 1. As the same user, it
//! reads the control group that the container has mounted for itself; as another, it sums over the processes. It reads; it changes nothing. It is on the machine of those who ask it, so what else goes on there they see
//! by themselves.

mod client;
mod merge;

use serde::{Deserialize, Serialize};
use unladen_journal::role::Role;

use super::observation::Observation;
use super::scrape::Endpoint;
pub use super::target::Remote;

pub(super) use client::{RemoteCounters, RemoteSampler};
pub use client::{RemoteError, ping};
pub(super) use merge::merge;

/// What a probe is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// To talk at all: [`Answer::Hello`].
    Hello { secret: String, version: String },
    /// What its clock says: [`Answer::Clock`].
    Clock,
    /// All counters, now: [`Answer::Counters`].
    Read,
    /// To watch for a window: [`Answer::Watching`].
    Watch { whose: Whose, window: Window },
    /// What was seen over the window, which ends now or when it was to end: [`Answer::Seen`].
    Finish { now: bool },
}

/// What a probe says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Hello,
    /// `CLOCK_MONOTONIC`, ns.
    Clock(u64),
    Counters(Counters),
    Watching,
    Seen(Box<Observation>),
    /// It cannot.
    Failed(String),
}

/// CPU time at one instant, ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Counters {
    /// Of the container; `None`: it cannot be had.
    pub(super) cpu_ns: Option<u64>,
    /// Of the probe.
    pub(super) own_ns: u64,
}

/// What the container is called in the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Whose {
    pub(super) service: String,
    pub(super) replica: u32,
    pub(super) role: Option<Role>,
    pub(super) endpoint: Option<Endpoint>,
}

/// A window by the probe's clock, ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Window {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) interval_ns: u64,
}
