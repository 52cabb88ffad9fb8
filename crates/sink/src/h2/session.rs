//! One connection of HTTP/2 as a server sees it (RFC 9113): bytes in, requests out; answers in, bytes out. No sockets, no
//! clock, no futures.
//!
//! Bounded whatever the client does: streams at once, header blocks, windows, and frames that bring nothing forward.

use std::rc::Rc;

use bytes::Bytes;
use hashbrown::HashMap;
use thiserror::Error;
use unladen_http2::frame::{self, Head, code, flag, kind, setting, word};
use unladen_http2::hpack::BlockError;

use super::heads::{self, Heads, Malformed};
use crate::body::Budget;
use crate::inbound::{Body, Request};
use crate::inbox::{Taken, Writer, inbox};

/// Streams at once, as told in the settings.
pub(super) const MAX_STREAMS: usize = 256;
/// Bytes that a stream may have under way.
const STREAM_WINDOW: u32 = 512 << 10;
/// Bytes that all streams together may have under way; beyond what a connection has at first, which is 65,535.
const CONNECTION_WINDOW: u32 = 1 << 20;
const INITIAL_WINDOW: u32 = 65_535;
/// Most bytes of one header block as sent.
const MAX_BLOCK: usize = 64 << 10;
/// Most frames that bring nothing forward between two answers: pings, settings, resets and the like.
const MAX_NUISANCE: u32 = 4_096;
/// Largest window there is.
const MAX_WINDOW: i64 = (1 << 31) - 1;

/// What a client may not do: its connection is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Violation {
    /// It does not begin as HTTP/2 does.
    #[error("the connection does not begin with the preface of HTTP/2")]
    Preface,
    /// A frame is larger than allowed, or its length does not fit its type.
    #[error("a frame has a wrong size")]
    FrameSize,
    /// A frame in the wrong place, on the wrong stream, or with a forbidden value.
    #[error("the rules of HTTP/2 are broken: {0}")]
    Rules(&'static str),
    /// More than the window holds, or a window beyond 2^31 - 1.
    #[error("flow control is broken")]
    FlowControl,
    /// A header block cannot be decoded.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// Very many frames that mean nothing, or a header block without end.
    #[error("too much that means nothing")]
    Flood,
}

impl Violation {
    fn code(self) -> u32 {
        match self {
            Self::Preface | Self::Rules(_) => code::PROTOCOL_ERROR,
            Self::FrameSize => code::FRAME_SIZE_ERROR,
            Self::FlowControl => code::FLOW_CONTROL_ERROR,
            Self::Block(BlockError::TooLarge) | Self::Flood => code::ENHANCE_YOUR_CALM,
            Self::Block(_) => code::COMPRESSION_ERROR,
        }
    }
}

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
    /// Bytes that the client may send.
    window: i64,
    /// Bytes taken that it was not told of yet.
    taken: u32,
    /// Bytes received and not taken.
    held: usize,
    received: u64,
    length: Option<u64>,
    /// The client has sent everything.
    is_ended: bool,
    /// Bytes that we may send.
    send_window: i64,
    /// What could not be sent for want of a window, and the trailers after it.
    unsent: Option<(Bytes, Option<Vec<u8>>)>,
}

/// Where in the input a session is.
#[derive(Debug, Clone, Copy)]
enum At {
    /// So many bytes of the preface have come.
    Preface(usize),
    /// Before a frame.
    Frame,
    /// Within the payload of DATA: its stream, what is left of it, whether it is the last.
    Data { stream: u32, left: usize, is_last: bool },
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    at: At,
    /// The beginning of a frame whose end is not here.
    partial: Vec<u8>,
    has_settings: bool,
    heads: Heads,
    /// A header block that continues: its stream, whether the stream ends with it.
    block: Option<(u32, bool, Vec<u8>)>,
    streams: HashMap<u32, Stream>,
    /// The highest stream of the client's.
    last: u32,
    opened: Vec<Opened>,
    /// Bytes that the client may send on all streams.
    window: i64,
    taken: u32,
    /// Bytes that we may send on all streams, and at first on each.
    send_window: i64,
    first_send_window: i64,
    max_payload: usize,
    nuisance: u32,
    is_closing: bool,
    readers: Taken,
    budget: Rc<Budget>,
    max_body: usize,
    /// To be sent.
    pub(crate) out: Vec<u8>,
}

impl Session {
    /// A connection of which nothing has come; bodies of at most `max_body` bytes.
    pub(crate) fn new(budget: &Rc<Budget>, max_body: usize) -> Self {
        let mut out = Vec::new();
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, MAX_STREAMS as u32),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (setting::MAX_HEADER_LIST_SIZE, heads::MAX_LIST as u32),
        ];
        frame::put_settings(&mut out, &settings);
        frame::put_word(&mut out, kind::WINDOW_UPDATE, 0, CONNECTION_WINDOW - INITIAL_WINDOW);
        Self {
            at: At::Preface(0),
            partial: Vec::new(),
            has_settings: false,
            heads: Heads::new(),
            block: None,
            streams: HashMap::new(),
            last: 0,
            opened: Vec::new(),
            window: i64::from(CONNECTION_WINDOW),
            taken: 0,
            send_window: i64::from(INITIAL_WINDOW),
            first_send_window: i64::from(INITIAL_WINDOW),
            max_payload: frame::MAX_PAYLOAD,
            nuisance: 0,
            is_closing: false,
            readers: Taken::default(),
            budget: Rc::clone(budget),
            max_body: max_body.max(STREAM_WINDOW as usize),
            out,
        }
    }

    /// Takes what came; what is to be done is in [`Session::opened`] and `out` then.
    pub(crate) fn feed(&mut self, mut input: &[u8]) -> Result<(), Violation> {
        while !input.is_empty() {
            match self.at {
                At::Preface(matched) => {
                    let wanted = &frame::PREFACE[matched..];
                    let count = wanted.len().min(input.len());
                    if input[..count] != wanted[..count] {
                        return Err(Violation::Preface);
                    }
                    input = &input[count..];
                    self.at = if count == wanted.len() { At::Frame } else { At::Preface(matched + count) };
                }
                At::Data { stream, left, is_last } => {
                    let (part, rest) = input.split_at(left.min(input.len()));
                    input = rest;
                    self.receive(stream, part);
                    self.at = At::Data { stream, left: left - part.len(), is_last };
                    if left == part.len() {
                        self.end_data(stream, is_last);
                    }
                }
                At::Frame => input = self.frame_in(input)?,
            }
        }
        Ok(())
    }

    /// Takes one frame, or what is there of it; the rest of the input.
    fn frame_in<'a>(&mut self, mut input: &'a [u8]) -> Result<&'a [u8], Violation> {
        if self.partial.is_empty()
            && let Some(head) = Head::read(input)
        {
            self.check(head)?;
            let rest = &input[frame::HEAD..];
            if head.kind == kind::DATA && !head.has(flag::PADDED) {
                self.begin_data(head)?;
                return Ok(rest);
            }
            if let Some((payload, rest)) = rest.split_at_checked(head.length) {
                self.frame(head, payload)?;
                return Ok(rest);
            }
        }
        // Its end is not here: it is put together.
        let mut frame = std::mem::take(&mut self.partial);
        let mut wanted = frame::HEAD;
        loop {
            let count = wanted.saturating_sub(frame.len()).min(input.len());
            frame.extend_from_slice(&input[..count]);
            input = &input[count..];
            let head = match Head::read(&frame) {
                Some(head) if frame.len() >= wanted => head,
                _ => {
                    self.partial = frame;
                    return Ok(input);
                }
            };
            if wanted == frame::HEAD {
                self.check(head)?;
                if head.kind == kind::DATA && !head.has(flag::PADDED) {
                    self.begin_data(head)?;
                    return Ok(input);
                }
                wanted += head.length;
            }
            if frame.len() == wanted {
                self.frame(head, &frame[frame::HEAD..])?;
                return Ok(input);
            }
        }
    }

    fn check(&self, head: Head) -> Result<(), Violation> {
        if head.length > frame::MAX_PAYLOAD {
            return Err(Violation::FrameSize);
        }
        if !self.has_settings && head.kind != kind::SETTINGS {
            return Err(Violation::Rules("the first frame is not SETTINGS"));
        }
        match &self.block {
            Some((stream, ..)) if head.kind != kind::CONTINUATION || head.stream != *stream => {
                Err(Violation::Rules("a header block is interrupted"))
            }
            None if head.kind == kind::CONTINUATION => Err(Violation::Rules("CONTINUATION without HEADERS")),
            _ => Ok(()),
        }
    }

    fn frame(&mut self, head: Head, payload: &[u8]) -> Result<(), Violation> {
        match head.kind {
            kind::DATA => {
                let data = frame::unpadded(head, payload).ok_or(Violation::Rules("padding is too long"))?;
                self.begin_data(head)?;
                self.receive(head.stream, data);
                self.give(head.stream, payload.len() - data.len());
                self.end_data(head.stream, head.has(flag::END_STREAM));
                Ok(())
            }
            kind::HEADERS => self.headers(head, payload),
            kind::CONTINUATION => self.continuation(head, payload),
            kind::SETTINGS => self.settings(head, payload),
            kind::WINDOW_UPDATE => self.window_update(head, payload),
            kind::RST_STREAM => {
                let is_idle = head.stream == 0 || head.stream > self.last;
                match payload.len() {
                    4 if is_idle => return Err(Violation::Rules("RST_STREAM on an idle stream")),
                    4 => self.forget(head.stream),
                    _ => return Err(Violation::FrameSize),
                }
                self.annoy()
            }
            kind::PING if head.stream != 0 => Err(Violation::Rules("PING on a stream")),
            kind::PING if payload.len() != 8 => Err(Violation::FrameSize),
            kind::PING => {
                if !head.has(flag::ACK) {
                    frame::put_head(&mut self.out, 8, kind::PING, flag::ACK, 0);
                    self.out.extend_from_slice(payload);
                }
                self.annoy()
            }
            kind::PUSH_PROMISE => Err(Violation::Rules("clients push nothing")),
            kind::PRIORITY if payload.len() != 5 => Err(Violation::FrameSize),
            kind::GOAWAY if head.stream != 0 => Err(Violation::Rules("GOAWAY on a stream")),
            // What the client says of streams that we never open, of priorities, and of what we do not know.
            _ => self.annoy(),
        }
    }

    fn annoy(&mut self) -> Result<(), Violation> {
        self.nuisance += 1;
        if self.nuisance > MAX_NUISANCE { Err(Violation::Flood) } else { Ok(()) }
    }

    /// Whether the client has sent all of a request that is not answered.
    pub(crate) fn has_whole_request(&self) -> bool {
        self.streams.values().any(|stream| stream.is_ended && stream.unsent.is_none())
    }

    fn headers(&mut self, head: Head, payload: &[u8]) -> Result<(), Violation> {
        if head.stream.is_multiple_of(2) {
            return Err(Violation::Rules("a stream of a client's has an odd number"));
        }
        let block = frame::unpadded(head, payload).ok_or(Violation::Rules("padding is too long"))?;
        let block = match head.has(flag::PRIORITY) {
            true => block.get(5..).ok_or(Violation::FrameSize)?,
            false => block,
        };
        let is_last = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.block(head.stream, is_last, block);
        }
        self.block = Some((head.stream, is_last, block.to_vec()));
        Ok(())
    }

    fn continuation(&mut self, head: Head, payload: &[u8]) -> Result<(), Violation> {
        let Some((stream, is_last, mut block)) = self.block.take() else { return Ok(()) };
        if block.len() + payload.len() > MAX_BLOCK || payload.is_empty() {
            return Err(Violation::Flood);
        }
        block.extend_from_slice(payload);
        if head.has(flag::END_HEADERS) {
            return self.block(stream, is_last, &block);
        }
        self.block = Some((stream, is_last, block));
        Ok(())
    }

    /// A whole header block: a new request, or the trailers of one.
    fn block(&mut self, number: u32, is_last: bool, block: &[u8]) -> Result<(), Violation> {
        let head = self.heads.decode(block)?;
        if number <= self.last {
            match self.streams.get(&number) {
                Some(stream) if stream.is_ended || !is_last => {
                    return Err(Violation::Rules("trailers in the wrong place"));
                }
                Some(_) => self.end(number),
                // Of a stream that was answered or reset.
                None => self.annoy()?,
            }
            return Ok(());
        }
        if self.is_closing {
            // The client knows that what comes after the last stream it was told of is not looked at.
            return Ok(());
        }
        self.last = number;
        if self.streams.len() >= MAX_STREAMS {
            frame::put_word(&mut self.out, kind::RST_STREAM, number, code::REFUSED_STREAM);
            return self.annoy();
        }
        let head = match head {
            Ok(head) => head,
            Err(malformed) => {
                let code = match malformed {
                    Malformed::Rules => code::PROTOCOL_ERROR,
                    Malformed::TooLarge => code::ENHANCE_YOUR_CALM,
                };
                frame::put_word(&mut self.out, kind::RST_STREAM, number, code);
                return self.annoy();
            }
        };
        let (body, reader) = inbox(number, self.max_body, &self.budget, &self.readers);
        let stream = Stream {
            body,
            window: i64::from(STREAM_WINDOW),
            taken: 0,
            held: 0,
            received: 0,
            length: head.length,
            is_ended: false,
            send_window: self.first_send_window,
            unsent: None,
        };
        self.streams.insert(number, stream);
        self.opened.push(Opened { stream: number, request: Request::new(head.parts, Body::Stream(reader)) });
        if is_last {
            self.end(number);
        }
        Ok(())
    }

    fn settings(&mut self, head: Head, payload: &[u8]) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::Rules("SETTINGS on a stream"));
        }
        if !payload.len().is_multiple_of(6) || (head.has(flag::ACK) && !payload.is_empty()) {
            return Err(Violation::FrameSize);
        }
        if head.has(flag::ACK) {
            return if self.has_settings { self.annoy() } else { Err(Violation::Rules("SETTINGS begin with none")) };
        }
        self.has_settings = true;
        for entry in payload.chunks_exact(6) {
            let value = word(&entry[2..]);
            match u16::from_be_bytes([entry[0], entry[1]]) {
                setting::ENABLE_PUSH if value > 1 => return Err(Violation::Rules("ENABLE_PUSH is 0 or 1")),
                setting::INITIAL_WINDOW_SIZE => {
                    if i64::from(value) > MAX_WINDOW {
                        return Err(Violation::FlowControl);
                    }
                    let change = i64::from(value) - self.first_send_window;
                    self.first_send_window = i64::from(value);
                    for stream in self.streams.values_mut() {
                        stream.send_window += change;
                        if stream.send_window > MAX_WINDOW {
                            return Err(Violation::FlowControl);
                        }
                    }
                    self.send_more();
                }
                setting::MAX_FRAME_SIZE => match value {
                    0x4000..=0xff_ffff => self.max_payload = value as usize,
                    _ => return Err(Violation::Rules("MAX_FRAME_SIZE is out of bounds")),
                },
                _ => {}
            }
        }
        frame::put_head(&mut self.out, 0, kind::SETTINGS, flag::ACK, 0);
        self.annoy()
    }

    /// Requests whose heads have come since the last call.
    pub(crate) fn opened(&mut self) -> std::vec::Drain<'_, Opened> {
        self.opened.drain(..)
    }

    /// Takes no further requests, because of a violation or because the sink ends.
    pub(crate) fn close(&mut self, violation: Option<Violation>) {
        if !self.is_closing {
            self.is_closing = true;
            frame::put_goaway(&mut self.out, self.last, violation.map_or(code::NO_ERROR, Violation::code));
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
