//! Frames that come: which event each one is. Those that answer requests are here, those about the connection in `control`.

use super::Violation;
use super::captured::Captured;
use super::frame::{self, Head, MAX_PAYLOAD, code, flag, kind};
use super::heads;
use super::hpack;
use super::session::{CONNECTION_WINDOW, Event, Partial, STREAM_WINDOW, Session};
use crate::http1::response::Body;
use crate::request::Failure;

/// Largest header block, compressed.
const MAX_BLOCK: usize = 64 << 10;
/// Most frames in a row that bring no answer nearer.
const MAX_IDLE_FRAMES: u32 = 10_000;
/// Interim (1xx) responses that are skipped before a request counts as failed.
const MAX_INTERIM: u8 = 100;

impl Session {
    /// Reads frames from `input`, from `at` on, up to the next event. `None`: the rest is not a whole frame; it must be given
    /// again, with more.
    #[inline]
    pub(crate) fn next<'a>(&mut self, input: &'a [u8], at: &mut usize) -> Result<Option<Event<'a>>, Violation> {
        loop {
            if let Some(last) = self.last_processed
                && let Some(event) = self.give_back(last)
            {
                return Ok(Some(event));
            }
            let rest = &input[*at..];
            let Some(head) = Head::read(rest) else { return Ok(None) };
            if !self.ready && (head.kind != kind::SETTINGS || head.has(flag::ACK) || head.length > 6 * 100) {
                return Err(Violation::NotHttp2);
            }
            if head.length > MAX_PAYLOAD {
                return Err(Violation::FrameSize);
            }
            let Some(payload) = rest.get(frame::HEAD..frame::HEAD + head.length) else { return Ok(None) };
            *at += frame::HEAD + head.length;
            self.idle_frames += 1;
            if self.idle_frames > MAX_IDLE_FRAMES {
                return Err(Violation::Flood);
            }
            if let Some(event) = self.take(head, payload)? {
                return Ok(Some(event));
            }
        }
    }

    /// Takes a frame in.
    #[inline]
    fn take<'a>(&mut self, head: Head, payload: &'a [u8]) -> Result<Option<Event<'a>>, Violation> {
        if let Some(partial) = &self.partial
            && (head.kind != kind::CONTINUATION || head.stream != partial.stream)
        {
            return Err(Violation::Rules("a header block is interrupted"));
        }
        match head.kind {
            kind::HEADERS => self.take_headers(head, payload),
            kind::DATA => self.take_data(head, payload),
            kind::CONTINUATION => self.take_continuation(head, payload),
            kind::RST_STREAM => self.take_reset(head, payload),
            kind::SETTINGS => self.take_settings(head, payload),
            kind::WINDOW_UPDATE => self.take_window_update(head, payload),
            kind::PING => self.take_ping(head, payload).map(|()| None),
            kind::GOAWAY => self.take_goaway(head, payload).map(|()| None),
            kind::PUSH_PROMISE => Err(Violation::Rules("a push that was switched off")),
            kind::PRIORITY if head.stream == 0 => Err(Violation::Rules("PRIORITY for the connection")),
            // Priorities are for servers; unknown types are to be ignored (RFC 9113, 5.5).
            _ => Ok(None),
        }
    }

    /// Refuses stream numbers that the server cannot mean.
    #[inline]
    pub(super) fn check_stream(&self, id: u32) -> Result<(), Violation> {
        if id & 1 == 0 || self.streams.is_idle(id) {
            return Err(Violation::Rules("a frame on a stream that was never opened"));
        }
        Ok(())
    }

    fn take_headers<'a>(&mut self, head: Head, payload: &[u8]) -> Result<Option<Event<'a>>, Violation> {
        self.check_stream(head.stream)?;
        let mut block = frame::unpadded(head, payload).ok_or(Violation::Rules("more padding than payload"))?;
        if head.has(flag::PRIORITY) {
            block = block.get(5..).ok_or(Violation::FrameSize)?;
        }
        if head.has(flag::END_HEADERS) {
            let meaning = self.read_block(head.stream, block)?;
            return Ok(self.take_head(head.stream, head.has(flag::END_STREAM), meaning));
        }
        self.partial =
            Some(Partial { stream: head.stream, ends: head.has(flag::END_STREAM), block: block.to_vec(), frames: 0 });
        Ok(None)
    }

    /// Reads a whole header block, and keeps its fields if the stream's answer is to be kept.
    #[inline]
    fn read_block(&mut self, id: u32, block: &[u8]) -> Result<heads::Head, hpack::BlockError> {
        if self.captures && self.streams.get(id).is_some_and(|stream| stream.captured.0.is_some()) {
            return self.heads.read_lines(block, &mut self.lines);
        }
        self.heads.read(block)
    }

    #[cold]
    fn take_continuation<'a>(&mut self, head: Head, payload: &[u8]) -> Result<Option<Event<'a>>, Violation> {
        let Some(mut partial) = self.partial.take() else {
            return Err(Violation::Rules("CONTINUATION without a header block"));
        };
        partial.frames += 1;
        partial.block.extend_from_slice(payload);
        // Frames without bytes cost work too (CVE-2024-27316 and its like).
        if partial.block.len() > MAX_BLOCK || partial.frames as usize > MAX_BLOCK / 64 {
            return Err(Violation::Block(hpack::BlockError::TooLarge));
        }
        if !head.has(flag::END_HEADERS) {
            self.partial = Some(partial);
            return Ok(None);
        }
        let meaning = self.read_block(partial.stream, &partial.block)?;
        Ok(self.take_head(partial.stream, partial.ends, meaning))
    }

    /// Takes a response's head or trailers in.
    #[inline]
    fn take_head<'a>(&mut self, id: u32, ends: bool, head: heads::Head) -> Option<Event<'a>> {
        // A stream that we have given up: nobody waits for it.
        let stream = self.streams.get(id)?;
        let trailers = stream.status != 0;
        let good = match head.status {
            _ if head.malformed => false,
            0 => trailers && ends,
            101 => false,
            100..200 => {
                stream.interim += 1;
                if !trailers && !ends && stream.interim <= MAX_INTERIM {
                    return None;
                }
                false
            }
            _ => !trailers,
        };
        if !good {
            return self.fail(id, code::PROTOCOL_ERROR, Failure::Protocol);
        }
        if !trailers {
            stream.status = head.status;
            stream.length = head.length;
        }
        stream.grpc_status = head.grpc_status.or(stream.grpc_status);
        if let Some(captured) = &mut stream.captured.0 {
            if !trailers {
                captured.0.extend_from_slice(format!("HTTP/2 {}\r\n", head.status).as_bytes());
            }
            captured.0.extend_from_slice(&self.lines);
        }
        if ends {
            return self.complete(id, &[]);
        }
        self.idle_frames = 0;
        None
    }

    #[inline]
    fn take_data<'a>(&mut self, head: Head, payload: &'a [u8]) -> Result<Option<Event<'a>>, Violation> {
        self.check_stream(head.stream)?;
        let data = frame::unpadded(head, payload).ok_or(Violation::Rules("more padding than payload"))?;
        // Padding counts (RFC 9113, 6.1), and so do streams that we have given up.
        let size = payload.len() as i64;
        self.receive_window -= size;
        if self.receive_window < 0 {
            return Err(Violation::FlowControl);
        }
        if self.receive_window < CONNECTION_WINDOW / 2 {
            let freed = CONNECTION_WINDOW - self.receive_window;
            frame::put_word(&mut self.out, kind::WINDOW_UPDATE, 0, freed as u32);
            self.receive_window = CONNECTION_WINDOW;
        }
        let ends = head.has(flag::END_STREAM);
        let Some(stream) = self.streams.get(head.stream) else { return Ok(None) };
        stream.receive_window -= size;
        if stream.receive_window < 0 {
            return Ok(self.fail(head.stream, code::FLOW_CONTROL_ERROR, Failure::Protocol));
        }
        if stream.status == 0 || (stream.bodiless && !data.is_empty()) {
            return Ok(self.fail(head.stream, code::PROTOCOL_ERROR, Failure::Protocol));
        }
        if ends {
            return Ok(self.complete(head.stream, data));
        }
        if stream.receive_window < STREAM_WINDOW / 2 {
            let freed = STREAM_WINDOW - stream.receive_window;
            frame::put_word(&mut self.out, kind::WINDOW_UPDATE, head.stream, freed as u32);
            stream.receive_window = STREAM_WINDOW;
        }
        stream.hash.update(data);
        stream.captured.add(data);
        if !data.is_empty() {
            self.idle_frames = 0;
        }
        Ok(None)
    }

    /// A stream's answer is complete; `last` is the end of its body.
    #[inline]
    fn complete<'a>(&mut self, id: u32, last: &'a [u8]) -> Option<Event<'a>> {
        let stream = self.streams.get(id)?;
        let (request, status, grpc_status) = (stream.request, stream.status, stream.grpc_status);
        let body = if stream.hash.length() == 0 {
            Body::Whole(last)
        } else {
            stream.hash.update(last);
            stream.captured.add(last);
            Body::Pieces(stream.hash)
        };
        let may_lack = stream.bodiless || status == 304 || status == 204;
        if stream.length.is_some_and(|length| length != body.length() && !(may_lack && body.length() == 0)) {
            return self.fail(id, code::PROTOCOL_ERROR, Failure::Protocol);
        }
        let captured = if self.captures { std::mem::take(&mut stream.captured) } else { Captured::default() };
        self.idle_frames = 0;
        if stream.unsent.is_empty() {
            self.streams.close(id);
        } else {
            // The server does not want the rest of the request (RFC 9113, 8.1).
            self.reset(id, code::NO_ERROR);
        }
        Some(Event::Answered { request, status, body, grpc_status, captured })
    }

    /// A request has failed.
    #[cold]
    pub(super) fn fail<'a>(&mut self, id: u32, code: u32, failure: Failure) -> Option<Event<'a>> {
        let request = self.streams.get(id)?.request;
        self.reset(id, code);
        Some(Event::Failed { request, failure })
    }
}
