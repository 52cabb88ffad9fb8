//! A load that several processes send, on other machines: its parts. They dial in where they meet, tell what their clocks say, take their turns
//! all at the same instants, and hand in what came back. Requests and trace ids of the parts are disjoint and are together those of the whole load
//! ([`crate::plan::Plan::shard`]); counts and histograms add up exactly.
//!
//! A conversation is lines of JSON over TCP: the part begins with [`Hello`], then the meeting asks and the part answers. A part that is lost
//! ends the load: nothing is known of its requests.

mod clock;
mod connection;
mod meeting;
mod member;
mod senders;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

pub use clock::Clock;
pub use member::{Member, serve};
pub use senders::run;

use crate::alternate::{Alternation, Fate, Taken, Turn};
use crate::outcome::{Outcome, Second};

/// Parts whose clocks cannot be told more closely are refused, nanoseconds.
pub const MAX_CLOCK_BOUND_NS: u64 = 5_000_000;

/// Where the parts of a load meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meeting {
    /// Where to listen for them.
    pub listen: SocketAddr,
    /// What a part must know.
    pub secret: String,
    /// How many there are.
    pub parts: u32,
    /// Seconds within which all must have come.
    pub patience_s: f64,
    /// Machine that the service is on, on which no part may be. Empty: it is not known.
    pub subject: String,
}

/// The first line of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hello {
    /// [`Meeting::secret`].
    pub(crate) secret: String,
    /// Version of unladen.
    pub(crate) version: String,
    /// Which part it is, from 1.
    pub(crate) number: u32,
    /// Machine that it is on.
    pub(crate) machine: String,
}

/// What a part is asked for. Instants are of its own clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// What its clock says: [`Answer::Clock`].
    Clock,
    /// To connect to all targets: [`Answer::Ready`]. `of`: how many parts there are.
    Connect { alternation: Box<Alternation>, of: u32 },
    /// To begin all loads at an instant.
    Begin { at_ns: u64 },
    /// To take a turn from an instant on: [`Answer::Taken`].
    Take { turn: Turn, at_ns: u64 },
    /// To count the last turns of these targets, or not.
    Settle { targets: Vec<usize>, fate: Fate },
    /// To end what it is doing soon.
    Stop,
    /// To hand in what came back: [`Answer::Done`].
    Conclude,
}

/// What a part says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Its `CLOCK_MONOTONIC`, ns.
    Clock { at_ns: u64 },
    /// All connections stand.
    Ready,
    /// A turn is over; seconds of its target that have passed.
    Taken { taken: Taken, seconds: Vec<Second> },
    /// By target.
    Done(Vec<Returned>),
    /// It cannot go on.
    Failed { message: String },
}

/// What came back of a target, in one part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Returned {
    pub(crate) outcome: Box<Outcome>,
    /// As in [`crate::histogram::FILE_NAME`], and, tagged [`ALONE`], the latency of the turns that it had for itself.
    pub(crate) histograms: String,
}

/// Tag of a histogram.
pub(crate) const ALONE: &str = "alone";
