//! The users of a closed loop, and the turns that they wait for.

use crate::pace::{Profile, SECOND};

/// The users of one thread: each has the lane of the same number.
#[derive(Debug)]
pub(super) struct Users {
    /// How many there are over time.
    pub(super) profile: Profile,
    /// Nanoseconds that each pauses after an iteration.
    pub(super) think: u64,
    /// Number of this thread's first user, and from one to the next.
    pub(super) first: u64,
    pub(super) stride: u64,
    /// The turns that they wait for, if the iterations per second are limited.
    pub(super) turns: Option<Turns>,
}

/// Turns of the users of one thread. One that nobody was there to take is gone: a server that was slow for a while is not
/// asked for more than the limit afterwards. Nanoseconds.
#[derive(Debug)]
pub(super) struct Turns {
    interval: u64,
    /// The earliest next turn, from the start of the load.
    next: u64,
}

impl Turns {
    /// Those of thread `first` of `stride` that have so many iterations per second together.
    pub(super) fn new(rate: f64, first: u64, stride: u64) -> Self {
        let turns = |count: u64| (count as f64 * SECOND as f64 / rate).round() as u64;
        Self { interval: turns(stride), next: turns(first) }
    }

    /// The turn of a user who has been waiting for one since `from`.
    pub(super) fn take(&mut self, from: u64) -> u64 {
        let turn = self.next.max(from);
        self.next = turn.saturating_add(self.interval);
        turn
    }
}
