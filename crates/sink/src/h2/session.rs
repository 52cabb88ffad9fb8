//! One connection of HTTP/2 as a server sees it (RFC 9113): bytes in, requests out; answers in, bytes out. No sockets, no
//! clock, no futures.
//!
//! Bounded whatever the client does: streams at once, header blocks, windows, and frames that bring nothing forward.

use std::rc::Rc;

use bytes::Bytes;
use hashbrown::HashMap;
use unladen_http2::Violation;
use unladen_http2::connection::{Connection, Frame, Limits, Role};
use unladen_http2::flow::Flow;
use unladen_http2::frame::{code, setting};

use super::heads::{self, Heads, Malformed};
use crate::body::Budget;
use crate::inbound::{Body, Request};
use crate::inbox::{Taken, Writer, inbox};

/// Streams at once, as told in the settings.
pub(super) const MAX_STREAMS: usize = 256;
/// Frames that bring nothing forward are counted between two answers.
const LIMITS: Limits = Limits {
    stream_window: 512 << 10,
    connection_window: 1 << 20,
    max_idle_frames: 4_096,
    // What is not sent is bounded by what is read: see the loop that serves a connection.
    max_waiting: usize::MAX,
};

/// A request whose head is here.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) stream: u32,
    pub(crate) request: Request,
}

/// A stream from its head to the end of its answer.
#[derive(Debug)]
struct Stream {
    body: Writer,
    flow: Flow,
    /// Bytes received and not taken.
    held: usize,
    received: u64,
    length: Option<u64>,
    /// The client has sent everything.
    is_ended: bool,
    /// What could not be sent for want of a window, and the trailers after it.
    unsent: Option<(Bytes, Option<Vec<u8>>)>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    /// The beginning of a frame whose end is not here.
    partial: Vec<u8>,
    heads: Heads,
    streams: HashMap<u32, Stream>,
    opened: Vec<Opened>,
    is_closing: bool,
    readers: Taken,
    budget: Rc<Budget>,
    max_body: usize,
}

impl Session {
    /// A connection of which nothing has come; bodies of at most `max_body` bytes.
    pub(crate) fn new(budget: &Rc<Budget>, max_body: usize) -> Self {
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, MAX_STREAMS as u32),
            (setting::MAX_HEADER_LIST_SIZE, heads::MAX_LIST as u32),
        ];
        Self {
            connection: Connection::new(Role::Server, LIMITS, &settings),
            partial: Vec::new(),
            heads: Heads::new(),
            streams: HashMap::new(),
            opened: Vec::new(),
            is_closing: false,
            readers: Taken::default(),
            budget: Rc::clone(budget),
            max_body: max_body.max(LIMITS.stream_window as usize),
        }
    }

    /// Takes what came; what is to be done is in [`Session::opened`] and in what the connection has to send then.
    pub(crate) fn feed(&mut self, mut input: &[u8]) -> Result<(), Violation> {
        // A frame that was cut is put together, and nothing else is copied.
        while !self.partial.is_empty() {
            if input.is_empty() {
                return Ok(());
            }
            let mut partial = std::mem::take(&mut self.partial);
            let (part, rest) = input.split_at(self.connection.lacks(&partial).min(input.len()));
            partial.extend_from_slice(part);
            input = rest;
            let used = self.frames(&partial)?;
            partial.drain(..used);
            self.partial = partial;
        }
        let used = self.frames(input)?;
        self.partial.extend_from_slice(&input[used..]);
        Ok(())
    }

    /// Takes all whole frames; returns their length.
    fn frames(&mut self, input: &[u8]) -> Result<usize, Violation> {
        let mut at = 0;
        while let Some(frame) = self.connection.next(input, &mut at)? {
            match frame {
                Frame::Data { stream, is_last, bytes, size } => self.data(stream, is_last, bytes, size)?,
                Frame::Block { stream, is_last, block } => self.block(stream, is_last, &block)?,
                Frame::Settings { change, .. } => self.settings(change)?,
                Frame::WindowUpdate { stream, more } => self.window_update(stream, more),
                Frame::Reset { stream, .. } => self.forget(stream),
                // Of streams that we never open.
                Frame::GoAway { .. } => {}
            }
        }
        Ok(at)
    }

    /// Whether the client has sent all of a request that is not answered.
    pub(crate) fn has_whole_request(&self) -> bool {
        self.streams.values().any(|stream| stream.is_ended && stream.unsent.is_none())
    }

    /// A whole header block: a new request, or the trailers of one.
    fn block(&mut self, number: u32, is_last: bool, block: &[u8]) -> Result<(), Violation> {
        let head = self.heads.decode(block)?;
        if number <= self.connection.last {
            match self.streams.get(&number) {
                Some(stream) if stream.is_ended || !is_last => {
                    return Err(Violation::Rules("trailers in the wrong place"));
                }
                Some(_) => self.end(number),
                // Of a stream that was answered or reset.
                None => {}
            }
            return Ok(());
        }
        self.connection.last = number;
        if self.is_closing {
            // The client knows that what comes after the last stream it was told of is not looked at.
            return Ok(());
        }
        if self.streams.len() >= MAX_STREAMS {
            self.connection.reset(number, code::REFUSED_STREAM);
            return Ok(());
        }
        let head = match head {
            Ok(head) => head,
            Err(malformed) => {
                let code = match malformed {
                    Malformed::Rules => code::PROTOCOL_ERROR,
                    Malformed::TooLarge => code::ENHANCE_YOUR_CALM,
                };
                self.connection.reset(number, code);
                return Ok(());
            }
        };
        let (body, reader) = inbox(number, self.max_body, &self.budget, &self.readers);
        let stream = Stream {
            body,
            flow: self.connection.new_flow(),
            held: 0,
            received: 0,
            length: head.length,
            is_ended: false,
            unsent: None,
        };
        self.streams.insert(number, stream);
        self.opened.push(Opened { stream: number, request: Request::new(head.parts, Body::Stream(reader)) });
        if is_last {
            self.end(number);
        }
        Ok(())
    }

    fn settings(&mut self, change: i64) -> Result<(), Violation> {
        if !self.streams.values_mut().all(|stream| stream.flow.grow(change)) {
            return Err(Violation::FlowControl);
        }
        self.send_more();
        Ok(())
    }

    /// Requests whose heads have come since the last call.
    pub(crate) fn opened(&mut self) -> std::vec::Drain<'_, Opened> {
        self.opened.drain(..)
    }

    /// Takes no further requests, because of a violation or because the sink ends.
    pub(crate) fn close(&mut self, violation: Option<Violation>) {
        if !self.is_closing {
            self.is_closing = true;
            self.connection.go_away(violation);
        }
    }

    /// Whether no further requests are taken and all are answered.
    pub(crate) fn is_done(&self) -> bool {
        self.is_closing && self.streams.is_empty()
    }
}

#[path = "answers.rs"]
mod answers;
#[path = "bodies.rs"]
mod bodies;
#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
