//! One connection: whether it is open, which protocol it speaks, and for which requests.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::protocol::Protocol;
use super::tls::Secure;
use crate::request::Request;
use crate::sys;

/// Whether a connection is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It does not stand, and is not to be tried before this instant.
    Closed {
        /// Monotonic nanoseconds.
        not_before: u64,
    },
    /// It is being made, since this instant, for a request or for later.
    Connecting {
        /// Monotonic nanoseconds.
        since: u64,
        /// The request.
        request: Option<Request>,
        /// How far that is.
        phase: Phase,
    },
    /// It is open; its [`Protocol`] knows what for.
    Open,
}

/// How far a connection is that is being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The system connects the socket.
    Socket,
    /// TLS: the handshake is going on.
    Tls,
    /// HTTP/2: the server's settings have not come.
    Settings,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Option<OwnedFd>,
    /// With TLS.
    pub(super) secure: Option<Box<Secure>>,
    pub(super) state: State,
    pub(super) protocol: Protocol,
    /// Bytes that the socket did not take at once.
    pub(super) unsent: Vec<u8>,
    /// Whether the engine must attend to its socket as soon as it is ready.
    pub(super) delicate: bool,
    /// Whether it was open before.
    pub(super) was_open: bool,
    /// Iterations that it is kept for. HTTP/1.1: one between two steps; HTTP/2: all that are under way on it.
    pub(super) held: usize,
}

impl Connection {
    /// A connection that does not stand yet.
    pub(super) fn new(protocol: Protocol) -> Self {
        Self {
            socket: None,
            secure: None,
            state: State::Closed { not_before: 0 },
            protocol,
            unsent: Vec::new(),
            delicate: false,
            was_open: false,
            held: 0,
        }
    }

    /// Whether it is open and a request can be sent on it.
    #[inline]
    pub(super) fn can_send(&self) -> bool {
        self.state == State::Open && self.protocol.has_room()
    }

    /// Whether it may be given another iteration besides those that it is kept for.
    #[inline]
    fn has_lane(&self) -> bool {
        self.held < self.protocol.max_concurrent()
    }

    /// Whether it is open and has room for another iteration.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.can_send() && self.has_lane()
    }

    /// Requests on it without an answer.
    pub(super) fn in_flight(&self) -> usize {
        self.protocol.in_flight()
    }

    /// Whether it does not stand and may be tried for another iteration.
    pub(super) fn may_connect(&self, now: u64) -> bool {
        self.retry_in(now) == 0 && self.has_lane()
    }

    /// Nanoseconds until it may be tried; `u64::MAX` if it need not be.
    pub(super) fn retry_in(&self, now: u64) -> u64 {
        match self.state {
            State::Closed { not_before } => not_before.saturating_sub(now),
            State::Connecting { .. } | State::Open => u64::MAX,
        }
    }

    /// The requests on it, and the one that it is being made for.
    pub(super) fn outstanding(&self) -> impl Iterator<Item = Request> {
        let connecting_for = match self.state {
            State::Connecting { request, .. } => request,
            State::Closed { .. } | State::Open => None,
        };
        connecting_for.into_iter().chain(self.protocol.outstanding().copied())
    }

    /// Due times of the requests on it.
    pub(super) fn outstanding_dues(&self) -> impl Iterator<Item = u64> {
        self.outstanding().map(|request| request.due)
    }

    /// Sends bytes; what the socket does not take at once is kept. Returns how many it took (of the sealed bytes, with TLS).
    #[inline]
    pub(super) fn transmit(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let Some(socket) = &self.socket else { return Ok(0) };
        let bytes = match &mut self.secure {
            None => bytes,
            Some(secure) => secure.seal(bytes),
        };
        let taken = if self.unsent.is_empty() {
            match sys::send(socket, bytes) {
                Err(Errno::AGAIN | Errno::INTR) => 0,
                result => result?,
            }
        } else {
            0
        };
        self.unsent.extend_from_slice(&bytes[taken..]);
        Ok(taken)
    }
}
