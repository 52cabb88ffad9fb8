//! The half of a session that sends: answers, as far as the windows of the client allow.

use bytes::{Buf, Bytes};
use unladen_http2::frame::{self, code, flag, kind};

use super::Session;
use crate::answer::Answer;
use crate::h2::heads::{self, ALL_DONE, ALL_WELL};

impl Session {
    /// Answers a request; nothing happens if the client gave it up.
    pub(crate) fn answer(&mut self, number: u32, answer: Answer) {
        self.connection.progress();
        let Some(stream) = self.streams.get_mut(&number) else { return };
        if let Answer::Message(message) = &answer
            && message.len() + 5 <= self.connection.room(&stream.flow)
        {
            let data = message.len() + 5;
            self.connection.sent(&mut stream.flow, data);
            let out = &mut self.connection.out;
            frame::put_head(out, ALL_WELL.len(), kind::HEADERS, flag::END_HEADERS, number);
            out.extend_from_slice(ALL_WELL);
            frame::put_head(out, data, kind::DATA, 0, number);
            out.push(0);
            out.extend_from_slice(&(message.len() as u32).to_be_bytes());
            out.extend_from_slice(message);
            return self.finish(number, Some(ALL_DONE));
        }
        let (head, reply) = http::Response::from(answer).into_parts();
        let (data, trailers) = reply.into_parts();
        let mut block = Vec::new();
        heads::put_head(head.status, &head.headers, &mut block);
        let trailers = trailers.map(|fields| {
            let mut block = Vec::new();
            heads::put_fields(&fields, &mut block);
            block
        });
        let is_last = data.is_empty() && trailers.is_none();
        let flags = flag::END_HEADERS | if is_last { flag::END_STREAM } else { 0 };
        self.put_block(number, flags, &block);
        if is_last {
            return self.finish(number, None);
        }
        self.send(number, data, trailers);
    }

    /// Sends data as far as the windows allow, then the trailers.
    fn send(&mut self, number: u32, mut data: Bytes, trailers: Option<Vec<u8>>) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let sent = self.connection.put_data(number, &mut stream.flow, &data, trailers.is_none());
        if sent < data.len() {
            data.advance(sent);
            stream.unsent = Some((data, trailers));
            return;
        }
        self.finish(number, trailers.as_deref());
    }

    fn put_block(&mut self, number: u32, flags: u8, block: &[u8]) {
        frame::put_head(&mut self.connection.out, block.len(), kind::HEADERS, flags, number);
        self.connection.out.extend_from_slice(block);
    }

    /// Ends a stream with its trailers, if they are still to be sent.
    fn finish(&mut self, number: u32, trailers: Option<&[u8]>) {
        if let Some(trailers) = trailers {
            self.put_block(number, flag::END_HEADERS | flag::END_STREAM, trailers);
        }
        if self.remove(number).is_some_and(|stream| !stream.is_ended) {
            // The answer was complete before the request: the client need not go on (RFC 9113, 8.1).
            self.connection.reset(number, code::NO_ERROR);
        }
    }

    /// Sends what could not be sent before.
    pub(super) fn send_more(&mut self) {
        let waiting: Vec<u32> =
            self.streams.iter().filter(|(_, stream)| stream.unsent.is_some()).map(|(number, _)| *number).collect();
        for number in waiting {
            if let Some((data, trailers)) = self.streams.get_mut(&number).and_then(|stream| stream.unsent.take()) {
                self.send(number, data, trailers);
            }
        }
    }
}
