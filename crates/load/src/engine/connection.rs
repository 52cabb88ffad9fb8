//! One connection: what it is doing, and for which request.

use std::os::fd::OwnedFd;

use crate::http1::response::ResponseReader;
use crate::record::Request;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It does not stand, and is not to be tried before this instant.
    Closed {
        /// Monotonic nanoseconds.
        not_before: u64,
    },
    /// It is being made, since this instant, for a request (index and due time) or for later.
    Connecting {
        /// Monotonic nanoseconds.
        since: u64,
        /// Index and due time.
        request: Option<(u64, u64)>,
    },
    /// It stands and is free.
    Idle,
    /// It waits for the answer to a request.
    Busy(Request),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Option<OwnedFd>,
    pub(super) state: State,
    pub(super) reader: ResponseReader,
    /// The end of a request that the socket did not take at once.
    pub(super) unsent: Vec<u8>,
    /// Whether the engine must attend to its socket as soon as it is ready.
    pub(super) delicate: bool,
    /// Whether it has stood before.
    pub(super) stood: bool,
}

impl Connection {
    /// A connection that does not stand yet.
    pub(super) fn new() -> Self {
        Self {
            socket: None,
            state: State::Closed { not_before: 0 },
            reader: ResponseReader::new(),
            unsent: Vec::new(),
            delicate: false,
            stood: false,
        }
    }

    /// Whether it is free for a request.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Whether it does not stand and may be tried.
    pub(super) fn may_connect(&self, now: u64) -> bool {
        self.retry_in(now) == 0
    }

    /// Nanoseconds until it may be tried; `u64::MAX` if it need not be.
    pub(super) fn retry_in(&self, now: u64) -> u64 {
        match self.state {
            State::Closed { not_before } => not_before.saturating_sub(now),
            State::Connecting { .. } | State::Idle | State::Busy(_) => u64::MAX,
        }
    }

    /// Due time of the request that it is busy with.
    pub(super) fn outstanding_due(&self) -> Option<u64> {
        match self.state {
            State::Busy(request) => Some(request.due),
            State::Connecting { request, .. } => request.map(|(_, due)| due),
            State::Closed { .. } | State::Idle => None,
        }
    }

    /// Since when it has been waiting for the server.
    pub(super) fn waiting_since(&self) -> Option<u64> {
        match self.state {
            State::Busy(request) => Some(request.sent),
            State::Connecting { since, .. } => Some(since),
            State::Closed { .. } | State::Idle => None,
        }
    }
}
