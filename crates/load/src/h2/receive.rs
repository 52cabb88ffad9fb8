//! Frames that come: which event each one is. Those that answer requests are here, those that end or steer them in `control`.

use unladen_http2::connection::Frame;

use super::Violation;
use super::captured::Captured;
use super::frame::code;
use super::heads;
use super::hpack;
use super::session::{Event, Session};
use crate::http1::response::Body;
use crate::request::Failure;

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
            let Some(frame) = self.connection.next(input, at)? else { return Ok(None) };
            if let Some(event) = self.take(frame)? {
                return Ok(Some(event));
            }
        }
    }

    /// Takes a frame in.
    #[inline]
    fn take<'a>(&mut self, frame: Frame<'a>) -> Result<Option<Event<'a>>, Violation> {
        Ok(match frame {
            Frame::Block { stream, is_last, block } => {
                let head = self.read_block(stream, &block)?;
                self.take_head(stream, is_last, head)
            }
            Frame::Data { stream, is_last, bytes, size } => self.take_data(stream, is_last, bytes, size),
            Frame::Reset { stream, code } => self.take_reset(stream, code),
            Frame::Settings { change, is_first } => {
                self.take_settings(change)?;
                is_first.then_some(Event::Ready)
            }
            Frame::WindowUpdate { stream, more } => self.take_window_update(stream, more),
            Frame::GoAway { last } => {
                self.take_goaway(last);
                None
            }
        })
    }

    /// Reads a whole header block, and keeps its fields if the stream's answer is to be kept.
    #[inline]
    fn read_block(&mut self, id: u32, block: &[u8]) -> Result<heads::Head, hpack::BlockError> {
        if self.captures && self.streams.get(id).is_some_and(|stream| stream.captured.0.is_some()) {
            return self.heads.read_lines(block, &mut self.lines);
        }
        self.heads.read(block)
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
        self.connection.progress();
        None
    }

    #[inline]
    fn take_data<'a>(&mut self, id: u32, is_last: bool, data: &'a [u8], size: usize) -> Option<Event<'a>> {
        self.connection.give(size);
        let stream = self.streams.get(id)?;
        if !stream.flow.receive(size) {
            return self.fail(id, code::FLOW_CONTROL_ERROR, Failure::Protocol);
        }
        if stream.status == 0 || (stream.bodiless && !data.is_empty()) {
            return self.fail(id, code::PROTOCOL_ERROR, Failure::Protocol);
        }
        if is_last {
            return self.complete(id, data);
        }
        self.connection.give_on(id, &mut stream.flow, size);
        stream.hash.update(data);
        stream.captured.add(data);
        if !data.is_empty() {
            self.connection.progress();
        }
        None
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
        self.connection.progress();
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
