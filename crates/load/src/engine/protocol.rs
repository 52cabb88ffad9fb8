//! What a connection speaks, and what it remembers for that. Bytes are read and written by state machines without I/O
//! ([`ResponseReader`], [`Session`]); the engine owns sockets, clock and schedule.

use crate::h2::session::Session;
use crate::http1::response::ResponseReader;
use crate::request::Request;

/// How long to wait before a failed connection is tried again, nanoseconds.
pub(super) const RETRY: u64 = 10_000_000;

/// What a connection speaks, with what that needs to remember.
#[derive(Debug)]
pub(super) enum Protocol {
    /// One request at a time.
    Http1(Http1),
    /// Several at once.
    Http2(Box<Http2>),
}

impl Protocol {
    /// Whether another request can be sent.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::Http1(http1) => http1.has_room(),
            Self::Http2(http2) => http2.session.has_room(),
        }
    }

    /// Requests that there may be at once.
    #[inline]
    pub(super) fn max_concurrent(&self) -> usize {
        match self {
            Self::Http1(_) => 1,
            Self::Http2(http2) => http2.session.max_concurrent(),
        }
    }

    /// Requests without an answer.
    pub(super) fn in_flight(&self) -> usize {
        match self {
            Self::Http1(http1) => http1.in_flight(),
            Self::Http2(http2) => http2.session.in_flight(),
        }
    }

    /// Whether it lets what is under way end, and takes nothing else.
    pub(super) fn is_draining(&self) -> bool {
        match self {
            Self::Http1(_) => false,
            Self::Http2(http2) => http2.session.is_draining(),
        }
    }

    /// Puts the unfinished frame that has come at the start of the buffer; returns its length.
    #[inline]
    pub(super) fn put_carry(&self, buffer: &mut [u8]) -> usize {
        match self {
            Self::Http1(_) => 0,
            Self::Http2(http2) => http2.put_carry(buffer),
        }
    }

    /// How long to wait before a connection that has failed is made anew, ns.
    pub(super) fn pause(&self) -> u64 {
        match self {
            Self::Http1(_) => 0,
            Self::Http2(http2) => http2.pause(),
        }
    }

    /// Says that it has left the list of connections with room.
    #[inline]
    pub(super) fn unlist(&mut self) {
        if let Self::Http2(http2) = self {
            http2.listed = false;
        }
    }

    /// The requests without an answer.
    pub(super) fn outstanding(&self) -> impl Iterator<Item = &Request> {
        let (one, several) = match self {
            Self::Http1(http1) => (Some(http1.outstanding()), None),
            Self::Http2(http2) => (None, Some(http2.session.outstanding())),
        };
        one.into_iter().flatten().chain(several.into_iter().flatten())
    }
}

/// What an HTTP/1.1 connection remembers.
#[derive(Debug)]
pub(super) struct Http1 {
    pub(super) reader: ResponseReader,
    /// The request that it waits for the answer to.
    pub(super) request: Option<Request>,
}

impl Http1 {
    /// Before the first request.
    pub(super) fn new() -> Self {
        Self { reader: ResponseReader::new(), request: None }
    }

    /// Whether it is free.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.request.is_none()
    }

    /// Requests without an answer.
    pub(super) fn in_flight(&self) -> usize {
        usize::from(self.request.is_some())
    }

    /// The request without an answer, if any.
    pub(super) fn outstanding(&self) -> impl Iterator<Item = &Request> {
        self.request.iter()
    }

    /// Forgets the request: it has been accounted for.
    pub(super) fn reset(&mut self) {
        self.reader.reset();
        self.request = None;
    }
}

/// What an HTTP/2 connection remembers.
#[derive(Debug)]
pub(super) struct Http2 {
    pub(super) session: Session,
    /// The beginning of a frame whose end has not come.
    pub(super) carry: Vec<u8>,
    /// Whether it is in the list of connections with room.
    pub(super) listed: bool,
    /// Whether it is in the list of connections with something to send.
    pub(super) dirty: bool,
    /// Whether a request has been answered on it.
    pub(super) useful: bool,
    /// When something was last read, ns.
    pub(super) last_read: u64,
}

impl Http2 {
    /// Before the connection is open.
    pub(super) fn new(streams: usize, method: &str) -> Self {
        Self {
            session: Session::new(streams, method),
            carry: Vec::new(),
            listed: false,
            dirty: false,
            useful: false,
            last_read: 0,
        }
    }

    /// Puts the beginning of a frame that has come at the start of the buffer; returns its length.
    #[inline]
    pub(super) fn put_carry(&self, buffer: &mut [u8]) -> usize {
        buffer[..self.carry.len()].copy_from_slice(&self.carry);
        self.carry.len()
    }

    /// How long to wait before a replacement is made: a server that ends connections before it has answered anything is not to
    /// be asked in a tight loop.
    pub(super) fn pause(&self) -> u64 {
        if self.useful { 0 } else { RETRY }
    }
}
