//! One connection of HTTP/2 (RFC 9113) as either side sees it: bytes in, frames that matter to streams and bytes to send out. No
//! sockets, no clock. It answers what concerns the connection alone (settings, pings), puts header blocks together, keeps to the windows
//! and bounds what the other side can make it do; what a stream is, is up to who uses it.

use std::borrow::Cow;

use crate::Violation;
use crate::flow::{FIRST_WINDOW, Flow, MAX_WINDOW};
use crate::frame::{self, Head, MAX_PAYLOAD, PREFACE, code, flag, kind, setting};
use crate::hpack::{self, BlockError};

/// Largest header block, compressed, bytes.
const MAX_BLOCK: usize = 64 << 10;
/// Most frames of one header block; those without bytes cost work, too (CVE-2024-27316 and its like).
const MAX_BLOCK_FRAMES: usize = MAX_BLOCK / 64;
/// Largest first SETTINGS frame, bytes: what is longer is another protocol.
const MAX_FIRST_SETTINGS: usize = 6 * 100;

/// Which side we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// We open the connection and its streams.
    Client,
    /// We answer.
    Server,
}

/// What the other side may do, and how much we have ready for it.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes that it may have under way on a stream.
    pub stream_window: u32,
    /// Bytes that it may have under way on all streams.
    pub connection_window: u32,
    /// Frames in a row that bring nothing forward. See [`Connection::progress`].
    pub max_idle_frames: u32,
    /// Bodies are put into frames while fewer bytes than this wait to be sent.
    pub max_waiting: usize,
}

/// What has come and matters to streams. Those on a stream are on one that has been opened; it may be closed since.
#[derive(Debug)]
pub enum Frame<'a> {
    /// The other side's settings. The window of every open stream changes by `change`: see [`Flow::grow`].
    Settings {
        /// Difference to the setting before, bytes.
        change: i64,
        /// Whether they are the first: the other side speaks HTTP/2.
        is_first: bool,
    },
    /// A whole header block, still compressed. For a server it opens its stream if that is above [`Connection::last`].
    Block {
        /// Its stream.
        stream: u32,
        /// Whether the stream ends with it.
        is_last: bool,
        /// The block.
        block: Cow<'a, [u8]>,
    },
    /// A part of a body. All of `size` is to be given back in time: see [`Connection::give`].
    Data {
        /// Its stream.
        stream: u32,
        /// Whether the stream ends with it.
        is_last: bool,
        /// The part.
        bytes: &'a [u8],
        /// What flow control counts: the part and its padding, bytes.
        size: usize,
    },
    /// A stream ends before its time.
    Reset {
        /// The stream.
        stream: u32,
        /// Why: see [`code`].
        code: u32,
    },
    /// More may be sent on a stream: see [`Flow::grow`]. On the connection (stream 0) that has been heeded.
    WindowUpdate {
        /// The stream, or 0.
        stream: u32,
        /// By how much, bytes; 0 on a stream breaks the rules of that stream (RFC 9113, 6.9).
        more: u32,
    },
    /// The other side takes no further streams.
    GoAway {
        /// Streams above this have not been processed.
        last: u32,
    },
}

/// A header block whose end has not come.
#[derive(Debug)]
struct Block {
    stream: u32,
    is_last: bool,
    bytes: Vec<u8>,
    frames: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Limits,
    /// Bytes to send.
    pub out: Vec<u8>,
    /// The highest stream that the client has opened.
    pub last: u32,
    /// Streams at once that the other side allows.
    pub max_streams: usize,
    /// Size of the table of header compression that the other side keeps for us, bytes.
    pub table_size: usize,
    /// What comes first, from a client the preface, has come.
    is_greeted: bool,
    is_ready: bool,
    block: Option<Block>,
    idle_frames: u32,
    flow: Flow,
    /// Window of a new stream for what we send.
    first_window: i64,
    max_payload: usize,
}

impl Connection {
    /// A connection of which nothing has come; what we say first, with these settings beside the window of streams, waits in `out`.
    pub fn new(role: Role, limits: Limits, settings: &[(u16, u32)]) -> Self {
        let mut out = match role {
            Role::Client => PREFACE.to_vec(),
            Role::Server => Vec::new(),
        };
        let all = [settings, &[(setting::INITIAL_WINDOW_SIZE, limits.stream_window)]].concat();
        frame::put_settings(&mut out, &all);
        frame::put_word(&mut out, kind::WINDOW_UPDATE, 0, limits.connection_window - FIRST_WINDOW);
        Self {
            role,
            limits,
            out,
            last: 0,
            max_streams: usize::MAX,
            table_size: hpack::TABLE_SIZE,
            is_greeted: role == Role::Client,
            is_ready: false,
            block: None,
            idle_frames: 0,
            flow: Flow::new(i64::from(FIRST_WINDOW), limits.connection_window),
            first_window: i64::from(FIRST_WINDOW),
            max_payload: MAX_PAYLOAD,
        }
    }

    /// Whether the other side has sent its settings.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether the other side is in the middle of a header block.
    #[inline]
    pub fn is_mid_block(&self) -> bool {
        self.block.is_some()
    }

    /// Windows of a new stream.
    #[inline]
    pub fn new_flow(&self) -> Flow {
        Flow::new(self.first_window, self.limits.stream_window)
    }

    /// Largest payload and bytes that may be sent on a stream at once.
    #[inline]
    pub fn room(&self, stream: &Flow) -> usize {
        stream.room().min(self.flow.room()).min(self.max_payload)
    }

    /// What has come brings a stream forward: frames that do not are counted anew.
    #[inline]
    pub fn progress(&mut self) {
        self.idle_frames = 0;
    }

    /// The frame at hand is not one that brings nothing forward.
    #[inline]
    pub fn count_useful(&mut self) {
        self.idle_frames = self.idle_frames.saturating_sub(1);
    }

    /// Reads `input` from `at` on, up to the next frame that matters to a stream. `None`: the rest is not a whole frame; it must be
    /// given again, with more.
    ///
    /// # Errors
    /// If the peer breaks RFC 9113. Its connection must then be ended.
    #[inline]
    pub fn next<'a>(&mut self, input: &'a [u8], at: &mut usize) -> Result<Option<Frame<'a>>, Violation> {
        if !self.is_greeted && !self.preface(input, at)? {
            return Ok(None);
        }
        loop {
            let rest = &input[*at..];
            let Some(head) = Head::read(rest) else { return Ok(None) };
            self.check(head)?;
            let Some(payload) = rest.get(frame::HEAD..frame::HEAD + head.length) else { return Ok(None) };
            *at += frame::HEAD + head.length;
            self.idle_frames += 1;
            if self.idle_frames > self.limits.max_idle_frames {
                return Err(Violation::Flood);
            }
            let frame = match head.kind {
                kind::HEADERS => self.headers(head, payload)?,
                kind::DATA => Some(self.data(head, payload)?),
                _ => self.other(head, payload)?,
            };
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }

    /// How many bytes the beginning of a frame lacks until more can be told of it. Who cuts the input there puts no byte of a later
    /// frame together with it.
    pub fn lacks(&self, beginning: &[u8]) -> usize {
        let wanted = match self.is_greeted {
            true => frame::HEAD + Head::read(beginning).map_or(0, |head| head.length),
            false => PREFACE.len(),
        };
        wanted.saturating_sub(beginning.len())
    }

    /// Whether all of the preface is there.
    #[cold]
    fn preface(&mut self, input: &[u8], at: &mut usize) -> Result<bool, Violation> {
        let rest = &input[*at..];
        let length = rest.len().min(PREFACE.len());
        if rest[..length] != PREFACE[..length] {
            return Err(Violation::NotHttp2);
        }
        self.is_greeted = length == PREFACE.len();
        if self.is_greeted {
            *at += length;
        }
        Ok(self.is_greeted)
    }

    /// Refuses a frame by its head.
    #[inline]
    fn check(&self, head: Head) -> Result<(), Violation> {
        if !self.is_ready && (head.kind != kind::SETTINGS || head.has(flag::ACK) || head.length > MAX_FIRST_SETTINGS) {
            return Err(Violation::NotHttp2);
        }
        if head.length > MAX_PAYLOAD {
            return Err(Violation::FrameSize);
        }
        match &self.block {
            Some(block) if head.kind != kind::CONTINUATION || head.stream != block.stream => {
                Err(Violation::Rules("a header block is interrupted"))
            }
            None if head.kind == kind::CONTINUATION => Err(Violation::Rules("CONTINUATION without a header block")),
            _ => Ok(()),
        }
    }

    /// Refuses streams that were never opened.
    #[inline]
    fn check_stream(&self, stream: u32) -> Result<(), Violation> {
        if stream & 1 == 0 || stream > self.last {
            return Err(Violation::Rules("a frame on a stream that was never opened"));
        }
        Ok(())
    }

    #[inline]
    fn headers<'a>(&mut self, head: Head, payload: &'a [u8]) -> Result<Option<Frame<'a>>, Violation> {
        match self.role {
            Role::Client => self.check_stream(head.stream)?,
            Role::Server if head.stream & 1 == 0 => {
                return Err(Violation::Rules("a stream of a client's has an odd number"));
            }
            Role::Server => {}
        }
        let mut block = unpadded(head, payload)?;
        if head.has(flag::PRIORITY) {
            block = block.get(5..).ok_or(Violation::FrameSize)?;
        }
        let (stream, is_last) = (head.stream, head.has(flag::END_STREAM));
        if head.has(flag::END_HEADERS) {
            return Ok(Some(Frame::Block { stream, is_last, block: Cow::Borrowed(block) }));
        }
        self.block = Some(Block { stream, is_last, bytes: block.to_vec(), frames: 1 });
        Ok(None)
    }

    #[inline]
    fn data<'a>(&mut self, head: Head, payload: &'a [u8]) -> Result<Frame<'a>, Violation> {
        self.check_stream(head.stream)?;
        let bytes = unpadded(head, payload)?;
        // Padding counts (RFC 9113, 6.1), and so do streams that have been given up.
        if !self.flow.receive(payload.len()) {
            return Err(Violation::FlowControl);
        }
        Ok(Frame::Data { stream: head.stream, is_last: head.has(flag::END_STREAM), bytes, size: payload.len() })
    }

    /// Frames that are rarer than answers.
    #[cold]
    fn other<'a>(&mut self, head: Head, payload: &'a [u8]) -> Result<Option<Frame<'a>>, Violation> {
        match head.kind {
            kind::CONTINUATION => self.continuation(head, payload),
            kind::SETTINGS => self.settings(head, payload),
            kind::WINDOW_UPDATE => self.window_update(head, payload).map(Some),
            kind::RST_STREAM if payload.len() != 4 => Err(Violation::FrameSize),
            kind::RST_STREAM => {
                self.check_stream(head.stream)?;
                Ok(Some(Frame::Reset { stream: head.stream, code: frame::word(payload) }))
            }
            kind::PING if head.stream != 0 => Err(Violation::Rules("PING on a stream")),
            kind::PING if payload.len() != 8 => Err(Violation::FrameSize),
            kind::PING => {
                if !head.has(flag::ACK) {
                    frame::put_head(&mut self.out, 8, kind::PING, flag::ACK, 0);
                    self.out.extend_from_slice(payload);
                }
                Ok(None)
            }
            kind::GOAWAY if head.stream != 0 => Err(Violation::Rules("GOAWAY on a stream")),
            kind::GOAWAY if payload.len() < 8 => Err(Violation::FrameSize),
            kind::GOAWAY => Ok(Some(Frame::GoAway { last: frame::word(payload) & 0x7fff_ffff })),
            kind::PUSH_PROMISE => Err(Violation::Rules("a push, which nobody has allowed")),
            kind::PRIORITY if head.stream == 0 => Err(Violation::Rules("PRIORITY for the connection")),
            kind::PRIORITY if payload.len() != 5 => Err(Violation::FrameSize),
            // Priorities do not matter here; unknown types are to be ignored (RFC 9113, 5.5).
            _ => Ok(None),
        }
    }

    fn continuation<'a>(&mut self, head: Head, payload: &[u8]) -> Result<Option<Frame<'a>>, Violation> {
        let Some(mut block) = self.block.take() else { return Ok(None) };
        block.frames += 1;
        block.bytes.extend_from_slice(payload);
        if block.bytes.len() > MAX_BLOCK || block.frames > MAX_BLOCK_FRAMES {
            return Err(Violation::Block(BlockError::TooLarge));
        }
        if !head.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(None);
        }
        Ok(Some(Frame::Block { stream: block.stream, is_last: block.is_last, block: Cow::Owned(block.bytes) }))
    }

    fn settings<'a>(&mut self, head: Head, payload: &[u8]) -> Result<Option<Frame<'a>>, Violation> {
        if head.stream != 0 {
            return Err(Violation::Rules("SETTINGS on a stream"));
        }
        if head.has(flag::ACK) {
            return if payload.is_empty() { Ok(None) } else { Err(Violation::FrameSize) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Violation::FrameSize);
        }
        let before = self.first_window;
        for [id @ .., a, b, c, d] in settings {
            self.set(u16::from_be_bytes(*id), u32::from_be_bytes([*a, *b, *c, *d]))?;
        }
        frame::put_head(&mut self.out, 0, kind::SETTINGS, flag::ACK, 0);
        let is_first = !std::mem::replace(&mut self.is_ready, true);
        Ok(Some(Frame::Settings { change: self.first_window - before, is_first }))
    }

    /// Heeds a setting of the other side's.
    fn set(&mut self, identifier: u16, value: u32) -> Result<(), Violation> {
        match identifier {
            setting::HEADER_TABLE_SIZE => self.table_size = value as usize,
            setting::ENABLE_PUSH if value > u32::from(self.role == Role::Server) => {
                return Err(Violation::Rules("ENABLE_PUSH is 0, or 1 from a client"));
            }
            setting::MAX_CONCURRENT_STREAMS => self.max_streams = value as usize,
            setting::INITIAL_WINDOW_SIZE if i64::from(value) > MAX_WINDOW => return Err(Violation::FlowControl),
            setting::INITIAL_WINDOW_SIZE => self.first_window = i64::from(value),
            setting::MAX_FRAME_SIZE if !(MAX_PAYLOAD as u32..1 << 24).contains(&value) => {
                return Err(Violation::Rules("MAX_FRAME_SIZE is out of bounds"));
            }
            setting::MAX_FRAME_SIZE => self.max_payload = value as usize,
            _ => {}
        }
        Ok(())
    }

    fn window_update<'a>(&mut self, head: Head, payload: &[u8]) -> Result<Frame<'a>, Violation> {
        if payload.len() != 4 {
            return Err(Violation::FrameSize);
        }
        let more = frame::word(payload) & 0x7fff_ffff;
        match head.stream {
            0 if more == 0 => return Err(Violation::Rules("WINDOW_UPDATE of nothing")),
            0 if !self.flow.grow(i64::from(more)) => return Err(Violation::FlowControl),
            0 => {}
            stream => self.check_stream(stream)?,
        }
        Ok(Frame::WindowUpdate { stream: head.stream, more })
    }

    /// So many bytes that have come are out of the way, whatever became of their stream.
    #[inline]
    pub fn give(&mut self, bytes: usize) {
        if let Some(more) = self.flow.give(bytes, self.limits.connection_window) {
            frame::put_word(&mut self.out, kind::WINDOW_UPDATE, 0, more);
        }
    }

    /// The same on a stream that is to receive more.
    #[inline]
    pub fn give_on(&mut self, stream: u32, flow: &mut Flow, bytes: usize) {
        if let Some(more) = flow.give(bytes, self.limits.stream_window) {
            frame::put_word(&mut self.out, kind::WINDOW_UPDATE, stream, more);
        }
    }

    /// Puts as much of a body into frames as the windows allow; returns how much. The stream ends with the last byte if `ends`.
    #[inline]
    pub fn put_data(&mut self, stream: u32, flow: &mut Flow, body: &[u8], ends: bool) -> usize {
        let mut sent = 0;
        while sent < body.len() && self.out.len() < self.limits.max_waiting {
            let part = self.room(flow).min(body.len() - sent);
            if part == 0 {
                break;
            }
            let flags = if ends && sent + part == body.len() { flag::END_STREAM } else { 0 };
            frame::put_head(&mut self.out, part, kind::DATA, flags, stream);
            self.out.extend_from_slice(&body[sent..sent + part]);
            self.sent(flow, part);
            sent += part;
        }
        sent
    }

    /// So many bytes of a body have been put into `out`.
    #[inline]
    pub fn sent(&mut self, flow: &mut Flow, bytes: usize) {
        flow.sent(bytes);
        self.flow.sent(bytes);
    }

    /// Whether bodies that wait may go on.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.flow.room() > 0 && self.out.len() < self.limits.max_waiting
    }

    /// Ends a stream before its time: see [`code`].
    pub fn reset(&mut self, stream: u32, code: u32) {
        frame::put_word(&mut self.out, kind::RST_STREAM, stream, code);
    }

    /// Says goodbye, and for what.
    pub fn go_away(&mut self, violation: Option<Violation>) {
        // The other side never opens a stream of a client's.
        let last = if self.role == Role::Server { self.last } else { 0 };
        frame::put_goaway(&mut self.out, last, violation.map_or(code::NO_ERROR, Violation::code));
    }
}

/// The payload without its padding.
#[inline]
fn unpadded(head: Head, payload: &[u8]) -> Result<&[u8], Violation> {
    frame::unpadded(head, payload).ok_or(Violation::Rules("more padding than payload"))
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
