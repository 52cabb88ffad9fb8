//! One connection of HTTP/2, seen from the client: bytes in, events and bytes out. It neither reads a clock nor touches a socket.
//! Here: what it remembers and what it sends; `receive` takes the server's frames in.
//!
//! Whatever the server sends, memory stays bounded (streams, one header block, the table) and so does work per byte. A rule that is
//! broken on a stream costs that request; one that is broken on the connection ends it.

use std::collections::VecDeque;

use super::Violation;
use super::captured::{Captured, Wants};
use super::frame::{self, Head, MAX_PAYLOAD, code, flag, kind, setting};
use super::heads::Heads;
use super::hpack;
use super::request::{Encoded, Table, put_rendered};
use super::streams::{Stream, Streams};
use crate::http1::response::Body;
use crate::request::{Failure, Request};

/// What the server may have on its way per stream and per connection, bytes. Nothing is kept, so this costs no memory here; it is
/// large enough that no service we measure waits for us.
pub(super) const STREAM_WINDOW: i64 = 16 << 20;
/// See [`STREAM_WINDOW`].
pub(super) const CONNECTION_WINDOW: i64 = 64 << 20;
/// Both windows of the protocol before anything is said, and the largest they may get.
const FIRST_WINDOW: i64 = 65_535;
/// See [`FIRST_WINDOW`].
pub(super) const MAX_WINDOW: i64 = 0x7fff_ffff;
/// Bodies are put into frames while fewer bytes than this wait to be sent.
const MAX_WAITING: usize = 256 << 10;
/// The same for answers to PING and SETTINGS; a server that makes us say more without reading it is hostile.
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

/// A header block that is not complete yet.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) stream: u32,
    pub(super) ends: bool,
    pub(super) block: Vec<u8>,
    pub(super) frames: u32,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// Bytes to send.
    pub(crate) out: Vec<u8>,
    pub(super) streams: Streams,
    pub(super) heads: Heads,
    pub(super) partial: Option<Partial>,
    /// Whether any answer was to be kept, and the fields of the block at hand if its answer is.
    pub(super) captures: bool,
    pub(super) lines: Vec<u8>,
    /// Whether answers have no body whatever their head says.
    bodiless: bool,
    /// Streams that we want, and that the server allows.
    wanted: usize,
    pub(super) allowed: usize,
    pub(super) ready: bool,
    /// No new requests: the server goes away, or its answers stay out.
    pub(super) draining: bool,
    /// Bytes that may still be sent and received on the connection.
    pub(super) send_window: i64,
    pub(super) receive_window: i64,
    /// The server's settings.
    pub(super) stream_window: i64,
    pub(super) max_payload: usize,
    pub(super) table: Table,
    /// A change of the table's size is to be told in the next block.
    pub(super) tell_table: bool,
    /// Streams with an unsent part of their body.
    pub(super) sending: VecDeque<u32>,
    /// Streams opened since the last call of [`Session::stamp`].
    fresh: Vec<u32>,
    /// Streams above this have not been processed.
    pub(super) last_processed: Option<u32>,
    pub(super) idle_frames: u32,
}

impl Session {
    /// A new connection for so many requests at once; its preface waits in `out`.
    pub(crate) fn new(streams: usize, method: &str) -> Self {
        let mut out = frame::PREFACE.to_vec();
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW as u32),
            (setting::MAX_HEADER_LIST_SIZE, hpack::MAX_DECODED as u32),
        ];
        frame::put_settings(&mut out, &settings);
        frame::put_word(&mut out, kind::WINDOW_UPDATE, 0, (CONNECTION_WINDOW - FIRST_WINDOW) as u32);
        Self {
            out,
            streams: Streams::new(streams),
            heads: Heads::new(),
            partial: None,
            captures: false,
            lines: Vec::new(),
            bodiless: method == "HEAD",
            wanted: streams,
            allowed: usize::MAX,
            ready: false,
            draining: false,
            send_window: FIRST_WINDOW,
            receive_window: CONNECTION_WINDOW,
            stream_window: FIRST_WINDOW,
            max_payload: MAX_PAYLOAD,
            table: Table::Fresh,
            tell_table: false,
            sending: VecDeque::new(),
            fresh: Vec::new(),
            last_processed: None,
            idle_frames: 0,
        }
    }

    /// Whether another request may be sent.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.ready && !self.draining && self.streams.len() < self.max_concurrent()
    }

    /// Requests that may be on their way at a time.
    #[inline]
    pub(crate) fn max_concurrent(&self) -> usize {
        self.wanted.min(self.allowed)
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

    /// Whether the server is in the middle of a header block.
    pub(crate) fn is_mid_block(&self) -> bool {
        self.partial.is_some()
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
            let start = self.out.len();
            encoded.put(&mut self.out, Table::Unused, id, request.index);
            self.tell_table_size(start);
        } else {
            encoded.put(&mut self.out, self.table, id, request.index);
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
        let start = self.out.len();
        let body = put_rendered(&mut self.out, rendered, scheme, id);
        if self.tell_table {
            self.tell_table_size(start);
        }
        self.send_body(id, body);
    }

    /// Opens a stream for a request.
    #[inline]
    fn open(&mut self, request: Request, tries: u8, wants: Wants) -> u32 {
        let stream = self.streams.open(request, tries, STREAM_WINDOW, self.stream_window);
        stream.bodiless = wants.bodiless;
        // A closed stream keeps nothing.
        if wants.captured {
            stream.captured = Captured(Some(Box::default()));
        }
        let id = stream.id;
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
        prepend_table_size(&mut self.out, start);
    }

    /// Sends the body of a request whose head has just been put, as far as the windows let it pass; the rest waits.
    #[inline]
    fn send_body(&mut self, id: u32, body: &[u8]) {
        if body.is_empty() {
            return;
        }
        let Some(stream) = self.streams.get(id) else { return };
        let sent = put_body(&mut self.out, stream, body, &mut self.send_window, self.max_payload);
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
            if self.send_window <= 0 || self.out.len() >= MAX_WAITING {
                return;
            }
            let Some(id) = self.sending.pop_front() else { return };
            let Some(stream) = self.streams.get(id) else { continue };
            let body = std::mem::take(&mut stream.unsent);
            let rest = &body[stream.unsent_from..];
            let sent = put_body(&mut self.out, stream, rest, &mut self.send_window, self.max_payload);
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

    /// Says goodbye.
    pub(crate) fn say_goodbye(&mut self, violation: Option<Violation>) {
        frame::put_goaway(&mut self.out, 0, violation.map_or(code::NO_ERROR, Violation::code));
    }

    /// Forgets a stream and tells the server.
    pub(super) fn reset(&mut self, id: u32, code: u32) {
        frame::put_word(&mut self.out, kind::RST_STREAM, id, code);
        self.streams.close(id);
    }
}

/// Puts as much of a body into frames as the windows allow; returns how much.
fn put_body(out: &mut Vec<u8>, stream: &mut Stream, body: &[u8], window: &mut i64, max_payload: usize) -> usize {
    let mut sent = 0;
    while sent < body.len() && out.len() < MAX_WAITING {
        let open = stream.send_window.min(*window).max(0) as usize;
        let part = open.min(max_payload).min(body.len() - sent);
        if part == 0 {
            break;
        }
        let ends = if sent + part == body.len() { flag::END_STREAM } else { 0 };
        frame::put_head(out, part, kind::DATA, ends, stream.id);
        out.extend_from_slice(&body[sent..sent + part]);
        stream.send_window -= part as i64;
        *window -= part as i64;
        sent += part;
    }
    sent
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
