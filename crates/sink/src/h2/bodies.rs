//! The half of a session that receives: bodies, as far as the windows that the client was given allow, and what it gives us.

use std::rc::Rc;

use unladen_http2::Violation;
use unladen_http2::frame::code;

use super::{Session, Stream};

impl Session {
    /// Takes a part of a body; `size` is what flow control counts of it.
    pub(super) fn data(&mut self, number: u32, is_last: bool, bytes: &[u8], size: usize) -> Result<(), Violation> {
        if let Some(stream) = self.streams.get_mut(&number) {
            if stream.is_ended {
                return Err(Violation::Rules("DATA after the end of a stream"));
            }
            if !stream.flow.receive(size) {
                return Err(Violation::FlowControl);
            }
            stream.received += bytes.len() as u64;
            if !bytes.is_empty() || is_last {
                self.connection.count_useful();
            }
        }
        self.receive(number, bytes);
        self.give(number, size - bytes.len());
        if is_last {
            self.end(number);
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

    /// The client has sent everything of a stream.
    pub(super) fn end(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.is_ended = true;
        if stream.length.is_some_and(|length| length != stream.received) {
            return self.reset(number, code::PROTOCOL_ERROR);
        }
        stream.body.end();
    }

    /// Lets the client send as many bytes again as have been taken.
    pub(super) fn give(&mut self, number: u32, bytes: usize) {
        self.connection.give(bytes);
        if let Some(stream) = self.streams.get_mut(&number)
            && !stream.is_ended
        {
            self.connection.give_on(number, &mut stream.flow, bytes);
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
        self.connection.reset(number, code);
    }

    pub(super) fn window_update(&mut self, number: u32, more: u32) {
        if let Some(stream) = self.streams.get_mut(&number) {
            if more == 0 {
                return self.reset(number, code::PROTOCOL_ERROR);
            }
            if !stream.flow.grow(i64::from(more)) {
                return self.reset(number, code::FLOW_CONTROL_ERROR);
            }
        }
        self.send_more();
    }
}
