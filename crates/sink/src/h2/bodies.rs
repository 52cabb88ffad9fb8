//! The half of a session that receives: bodies, as far as the windows that the client was given allow, and what it gives us.

use std::rc::Rc;

use unladen_http2::frame::{self, Head, code, flag, kind, word};

use super::{At, CONNECTION_WINDOW, MAX_WINDOW, STREAM_WINDOW, Session, Stream, Violation};

impl Session {
    pub(super) fn begin_data(&mut self, head: Head) -> Result<(), Violation> {
        if head.stream == 0 || head.stream > self.last {
            return Err(Violation::Rules("DATA on an idle stream"));
        }
        self.window -= head.length as i64;
        let mut is_within = self.window >= 0;
        if let Some(stream) = self.streams.get_mut(&head.stream) {
            if stream.is_ended {
                return Err(Violation::Rules("DATA after the end of a stream"));
            }
            stream.window -= head.length as i64;
            stream.received += head.length as u64;
            is_within &= stream.window >= 0;
        }
        if !is_within {
            return Err(Violation::FlowControl);
        }
        if head.length == 0 && !head.has(flag::END_STREAM) {
            self.annoy()?;
        }
        let is_last = head.has(flag::END_STREAM);
        self.at = At::Data { stream: head.stream, left: head.length, is_last };
        if head.length == 0 {
            self.end_data(head.stream, is_last);
        }
        Ok(())
    }

    /// Takes bytes of a body; those of a stream that is gone are thrown away.
    pub(super) fn receive(&mut self, number: u32, bytes: &[u8]) {
        let taken = match self.streams.get_mut(&number) {
            Some(stream) => {
                let taken = stream.body.push(bytes);
                stream.held += bytes.len() - taken;
                taken
            }
            None => bytes.len(),
        };
        self.give(number, taken);
    }

    pub(super) fn end_data(&mut self, number: u32, is_last: bool) {
        self.at = At::Frame;
        if is_last {
            self.end(number);
        }
    }

    /// The client has sent everything of a stream.
    pub(super) fn end(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.is_ended = true;
        if stream.length.is_some_and(|length| length != stream.received) {
            return self.reset(number, code::PROTOCOL_ERROR);
        }
        stream.body.end();
    }

    /// Lets the client send as many bytes again as have been taken, some thousand at a time.
    pub(super) fn give(&mut self, number: u32, bytes: usize) {
        let bytes = bytes as u32;
        self.taken += bytes;
        if self.taken >= CONNECTION_WINDOW / 2 {
            frame::put_word(&mut self.out, kind::WINDOW_UPDATE, 0, self.taken);
            self.window += i64::from(std::mem::take(&mut self.taken));
        }
        if let Some(stream) = self.streams.get_mut(&number)
            && !stream.is_ended
        {
            stream.taken += bytes;
            if stream.taken >= STREAM_WINDOW / 2 {
                frame::put_word(&mut self.out, kind::WINDOW_UPDATE, number, stream.taken);
                stream.window += i64::from(std::mem::take(&mut stream.taken));
            }
        }
    }

    /// Counts what readers have taken.
    pub(crate) fn settle(&mut self) {
        let readers = Rc::clone(&self.readers);
        for (number, bytes) in readers.borrow_mut().drain(..) {
            // What a stream held that is gone was given back then.
            if let Some(stream) = self.streams.get_mut(&number) {
                stream.held = stream.held.saturating_sub(bytes);
                self.give(number, bytes);
            }
        }
    }

    /// Ends a stream for us; its sender may use what it held for others.
    pub(super) fn remove(&mut self, number: u32) -> Option<Stream> {
        self.settle();
        let stream = self.streams.remove(&number)?;
        self.give(number, stream.held);
        Some(stream)
    }

    /// The client has no more use for a stream.
    pub(super) fn forget(&mut self, number: u32) {
        if let Some(stream) = self.remove(number) {
            stream.body.fail();
        }
    }

    pub(super) fn reset(&mut self, number: u32, code: u32) {
        self.forget(number);
        frame::put_word(&mut self.out, kind::RST_STREAM, number, code);
    }

    pub(super) fn window_update(&mut self, head: Head, payload: &[u8]) -> Result<(), Violation> {
        if payload.len() != 4 {
            return Err(Violation::FrameSize);
        }
        let more = i64::from(word(payload) & 0x7fff_ffff);
        if more == 0 {
            return Err(Violation::Rules("WINDOW_UPDATE of nothing"));
        }
        let window = if head.stream == 0 {
            self.send_window += more;
            self.send_window
        } else if head.stream > self.last {
            return Err(Violation::Rules("WINDOW_UPDATE on an idle stream"));
        } else if let Some(stream) = self.streams.get_mut(&head.stream) {
            stream.send_window += more;
            stream.send_window
        } else {
            0
        };
        if window > MAX_WINDOW {
            return Err(Violation::FlowControl);
        }
        self.send_more();
        self.annoy()
    }
}
