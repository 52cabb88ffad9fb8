//! One connection of HTTP/2, seen from the client: bytes in, events and bytes out. It neither reads a clock nor touches a socket.
//! Here: what it remembers and what it sends; `receive` takes the server's frames in.
//!
//! Whatever the server sends, memory stays bounded (streams, one header block, the table) and so does work per byte. A rule that is
//! broken on a stream costs that request; one that is broken on the connection ends it.

use std::collections::VecDeque;

use unladen_http2::connection::{Connection, Limits, Role};

use super::captured::{Captured, Wants};
use super::frame::{self, Head, MAX_PAYLOAD, code, flag, kind, setting};
use super::heads::Heads;
use super::hpack;
use super::request::{Encoded, Table, put_rendered};
use super::streams::Streams;
use crate::http1::response::Body;
use crate::request::{Failure, Request};

/// Nothing of what comes is kept, so large windows cost no memory here: no service that is measured waits for us.
const LIMITS: Limits =
    Limits { stream_window: 16 << 20, connection_window: 64 << 20, max_idle_frames: 10_000, max_waiting: 256 << 10 };
/// Most bytes that wait to be sent in answer to PING and SETTINGS; a server that makes us say more without reading it is hostile.
pub(crate) const MAX_UNREAD: usize = 1 << 20;

/// What has come of the connection or a request.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// The server speaks HTTP/2: requests may be sent.
    Ready,
    /// A request has its answer.
    Answered {
        /// The request.
        request: Request,
        /// Status of the final response.
        status: u16,
        /// Its body.
        body: Body<'a>,
        /// Value of `grpc-status`, in the trailers or else in the head.
        grpc_status: Option<u16>,
        /// What was kept of it.
        captured: Captured,
    },
    /// A request has failed; the connection goes on.
    Failed {
        /// The request.
        request: Request,
        /// Why.
        failure: Failure,
    },
    /// The server says that it has not processed a request: it may be sent again.
    Returned {
        /// The request.
        request: Request,
        /// How often that has happened to it.
        tries: u8,
    },
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(super) streams: Streams,
    pub(super) heads: Heads,
    /// Whether any answer was to be kept, and the fields of the block at hand if its answer is.
    pub(super) captures: bool,
    pub(super) lines: Vec<u8>,
    /// Whether answers have no body whatever their head says.
    bodiless: bool,
    /// Streams that we want.
    wanted: usize,
    /// No new requests: the server goes away, or its answers stay out.
    pub(super) draining: bool,
    pub(super) table: Table,
    /// A change of the table's size is to be told in the next block.
    pub(super) tell_table: bool,
    /// Streams with an unsent part of their body.
    pub(super) sending: VecDeque<u32>,
    /// Streams opened since the last call of [`Session::stamp`].
    fresh: Vec<u32>,
    /// Streams above this have not been processed.
    pub(super) last_processed: Option<u32>,
}

impl Session {
    /// A new connection for so many requests at once; its preface waits to be sent.
    pub(crate) fn new(streams: usize, method: &str) -> Self {
        let settings = [(setting::ENABLE_PUSH, 0), (setting::MAX_HEADER_LIST_SIZE, hpack::MAX_DECODED as u32)];
        Self {
            connection: Connection::new(Role::Client, LIMITS, &settings),
            streams: Streams::new(streams),
            heads: Heads::new(),
            captures: false,
            lines: Vec::new(),
            bodiless: method == "HEAD",
            wanted: streams,
            draining: false,
            table: Table::Fresh,
            tell_table: false,
            sending: VecDeque::new(),
            fresh: Vec::new(),
            last_processed: None,
        }
    }

    /// Whether another request may be sent.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.connection.is_ready() && !self.draining && self.streams.len() < self.max_concurrent()
    }

    /// Requests that may be on their way at a time.
    #[inline]
    pub(crate) fn max_concurrent(&self) -> usize {
        self.wanted.min(self.connection.max_streams)
    }

    /// Whether it takes no new requests.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Requests without an answer.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.streams.len()
    }

    /// Whether it takes no new requests and has none left: to be replaced.
    #[inline]
    pub(crate) fn is_drained(&self) -> bool {
        self.draining && self.streams.len() == 0
    }

    /// Takes no new requests from now on.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    /// The requests without an answer.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = &Request> {
        self.streams.iter().map(|stream| &stream.request)
    }

    /// Sends a request. The caller has seen to it that there is room.
    #[inline]
    pub(crate) fn send(&mut self, request: Request, tries: u8, encoded: &Encoded) {
        let id = self.open(request, tries, Wants { bodiless: self.bodiless, captured: false });
        if self.tell_table {
            let start = self.connection.out.len();
            encoded.put(&mut self.connection.out, Table::Unused, id, request.index);
            self.tell_table_size(start);
        } else {
            encoded.put(&mut self.connection.out, self.table, id, request.index);
            if self.table == Table::Fresh {
                self.table = Table::Filled;
            }
        }
        self.send_body(id, encoded.body());
    }

    /// Sends a request that has been rendered for HTTP/1.1.
    pub(crate) fn send_rendered(&mut self, request: Request, tries: u8, rendered: &[u8], scheme: &str, wants: Wants) {
        self.captures |= wants.captured;
        let id = self.open(request, tries, wants);
        let start = self.connection.out.len();
        let body = put_rendered(&mut self.connection.out, rendered, scheme, id);
        if self.tell_table {
            self.tell_table_size(start);
        }
        self.send_body(id, body);
    }

    /// Opens a stream for a request.
    #[inline]
    fn open(&mut self, request: Request, tries: u8, wants: Wants) -> u32 {
        let stream = self.streams.open(request, tries, self.connection.new_flow());
        stream.bodiless = wants.bodiless;
        // A closed stream keeps nothing.
        if wants.captured {
            stream.captured = Captured(Some(Box::default()));
        }
        let id = stream.id;
        self.connection.last = id;
        self.fresh.push(id);
        if !self.streams.has_numbers() {
            self.draining = true;
        }
        id
    }

    /// Makes the block whose frame begins at `start` say that the table is empty from now on.
    #[cold]
    fn tell_table_size(&mut self, start: usize) {
        self.tell_table = false;
        prepend_table_size(&mut self.connection.out, start);
    }

    /// Sends the body of a request whose head has just been put, as far as the windows let it pass; the rest waits.
    #[inline]
    fn send_body(&mut self, id: u32, body: &[u8]) {
        if body.is_empty() {
            return;
        }
        let Some(stream) = self.streams.get(id) else { return };
        let sent = self.connection.put_data(id, &mut stream.flow, body, true);
        if sent < body.len() {
            (stream.unsent, stream.unsent_from) = (body[sent..].to_vec(), 0);
            self.sending.push_back(id);
        }
    }

    /// Sets the instant at which requests are sent, for all that have been put into `out` since the last call and are sent for the
    /// first time.
    #[inline]
    pub(crate) fn stamp(&mut self, now: u64, mut sent: impl FnMut(&Request)) {
        for id in self.fresh.drain(..) {
            if let Some(stream) = self.streams.get(id)
                && stream.tries == 0
            {
                stream.request.sent = now.max(stream.request.due);
                sent(&stream.request);
            }
        }
    }

    /// Puts waiting bodies into frames, as far as windows allow.
    pub(crate) fn pump(&mut self) {
        for _ in 0..self.sending.len() {
            if !self.connection.has_room() {
                return;
            }
            let Some(id) = self.sending.pop_front() else { return };
            let Some(stream) = self.streams.get(id) else { continue };
            let body = std::mem::take(&mut stream.unsent);
            let rest = &body[stream.unsent_from..];
            let sent = self.connection.put_data(id, &mut stream.flow, rest, true);
            if sent < rest.len() {
                stream.unsent_from += sent;
                stream.unsent = body;
                self.sending.push_back(id);
            }
        }
    }

    /// Gives up a request: tells the server, and forgets it.
    pub(crate) fn cancel_overdue(&mut self, overdue: impl Fn(u64) -> bool, mut gave_up: impl FnMut(&Request)) {
        let ids: Vec<u32> =
            self.streams.iter().filter(|stream| overdue(stream.request.sent)).map(|stream| stream.id).collect();
        for id in ids {
            if let Some(stream) = self.streams.get(id) {
                gave_up(&stream.request);
            }
            self.reset(id, code::CANCEL);
        }
    }

    /// Forgets a stream and tells the server.
    pub(super) fn reset(&mut self, id: u32, code: u32) {
        self.connection.reset(id, code);
        self.streams.close(id);
    }
}

/// Makes the block whose frame begins at `start` begin with "the table is empty from now on".
#[cold]
fn prepend_table_size(out: &mut Vec<u8>, start: usize) {
    let mut update = Vec::new();
    hpack::put_table_size(&mut update, 0);
    let place = start + frame::HEAD;
    let Some(head) = Head::read(&out[start..]) else { return };
    if head.length + update.len() > MAX_PAYLOAD {
        // A full first frame: the change gets one of its own, and the rest becomes CONTINUATION.
        let mut first = Vec::new();
        let end_stream = head.flags & flag::END_STREAM;
        frame::put_head(&mut first, update.len(), kind::HEADERS, end_stream, head.stream);
        first.extend_from_slice(&update);
        out[start + 3] = kind::CONTINUATION;
        out[start + 4] &= !flag::END_STREAM;
        out.splice(start..start, first);
        return;
    }
    let length = ((head.length + update.len()) as u32).to_be_bytes();
    out[start..start + 3].copy_from_slice(&length[1..]);
    out.splice(place..place, update);
}
