//! HTTP/1.1 on a connection: one request at a time, one send for it and usually one receive for its answer.

use super::Engine;
use super::judge::weigh;
use super::protocol::Protocol;
use crate::request::{Answer, Failure, Request};

impl Engine<'_> {
    /// Sends a request on an open connection that is free.
    #[inline]
    pub(super) fn send_http1(&mut self, at: usize, request: Request) {
        let connection = &mut self.connections[at];
        let Protocol::Http1(http1) = &mut connection.protocol else { return };
        let (mut sent, clock) = (request.sent, self.clock);
        let (bytes, sampled) = match &mut self.script {
            None => self.template.render(request.index),
            Some(script) => {
                let progress = &self.progress[at];
                http1.reader.capture(script.steps().get(progress.step).is_some_and(|step| step.looks()));
                let rendered = script.render(progress, request.index);
                // The instant of sending begins when there is something to send.
                sent = clock.now();
                rendered
            }
        };
        let request = Request { sent, sampled, ..request };
        http1.request = Some(request);
        self.active += 1;
        let result = connection.transmit(bytes);
        self.recorder.sent(&request);
        match result {
            Ok(taken) => {
                self.count_sent(taken, sent);
                self.watch_rest(at);
            }
            Err(_) => self.fail(at, Failure::Reset),
        }
    }

    /// Takes in the bytes at the start of the buffer, which came at `now` or when the kernel stamped them.
    #[inline]
    pub(super) fn take_in_http1(&mut self, at: usize, taken: usize, stamp: Option<u64>, now: u64) {
        let connection = &mut self.connections[at];
        let Protocol::Http1(http1) = &mut connection.protocol else { return };
        let Some(request) = http1.request else {
            // A server that talks unasked, or says why it closes (408): no request is hit.
            return self.close(at, now);
        };
        let arrived = stamp.map_or(now, |stamp| self.bridge.to_monotonic(stamp, request.sent, now));
        let step = self.progress.get(at).map_or(0, |progress| progress.step);
        match http1.reader.push(&mut self.heads[step], &self.buffer[..taken]) {
            Ok(Some(response)) => {
                let (close, size) = (response.close, response.body.length());
                let lane = (self.script.as_ref(), self.progress.get_mut(at));
                let captured = http1.reader.captured();
                let answer = weigh(lane, &self.shared.check, &mut self.recorder, &response, captured, arrived);
                self.largest = self.largest.max(size);
                self.complete_http1(at, &request, &answer, close, now);
            }
            // The rest may not fit into the socket's buffer while we sleep.
            Ok(None) => self.set_delicate(at, true),
            Err(_) => self.fail(at, Failure::Protocol),
        }
    }

    /// A request has its answer.
    #[inline]
    fn complete_http1(&mut self, at: usize, request: &Request, answer: &Answer, close: bool, now: u64) {
        self.note_answer(request, answer);
        self.active -= 1;
        let connection = &mut self.connections[at];
        let Protocol::Http1(http1) = &mut connection.protocol else { return };
        http1.reset();
        // A request that is still being sent when its answer comes cannot share the connection with the next one.
        if close || !connection.unsent.is_empty() {
            self.close(at, now);
        } else {
            self.set_delicate(at, false);
        }
        self.go_on(at, Some(answer), now);
    }

    /// The server has ended the connection.
    #[cold]
    pub(super) fn ended_http1(&mut self, at: usize, now: u64) {
        let connection = &mut self.connections[at];
        let Protocol::Http1(http1) = &mut connection.protocol else { return };
        let Some(request) = http1.request else { return self.close(at, now) };
        match http1.reader.end() {
            Some(response) => {
                let lane = (self.script.as_ref(), self.progress.get_mut(at));
                let captured = http1.reader.captured();
                let answer = weigh(lane, &self.shared.check, &mut self.recorder, &response, captured, now);
                self.complete_http1(at, &request, &answer, true, now);
            }
            None => self.fail(at, Failure::Reset),
        }
    }
}
