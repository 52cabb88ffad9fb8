//! HTTP/2 on a connection: as many requests at once as wanted, all that go out together in one send, all that has come in one
//! receive.
//!
//! Kernel receive stamps say when the last byte of a read came. With several answers on one connection that is too late for the
//! first of them, so a connection with more than one request in flight is read as soon as it is ready.

use super::Engine;
use super::connection::{Phase, State};
use super::judge::weigh;
use super::protocol::{Http2, Protocol};
use crate::h2::Violation;
use crate::h2::captured::Wants;
use crate::h2::session::{Event, MAX_UNREAD};
use crate::http1::response::Response;
use crate::request::{Failure, Request};

impl Engine<'_> {
    /// The HTTP/2 part of a connection.
    #[inline]
    fn http2(&mut self, at: usize) -> Option<&mut Http2> {
        match &mut self.connections[at].protocol {
            Protocol::Http2(http2) => Some(http2),
            Protocol::Http1(_) => None,
        }
    }

    /// Gives a request to an open connection with room. It is sent with the next [`Engine::flush`].
    #[inline]
    pub(super) fn send_http2(&mut self, at: usize, request: Request, tries: u8) {
        let Protocol::Http2(http2) = &mut self.connections[at].protocol else { return };
        if let Some(script) = &mut self.script {
            let progress = &self.progress[request.lane as usize];
            let step = script.steps().get(progress.step);
            let wants = Wants {
                bodiless: step.is_some_and(|step| step.method == "HEAD"),
                captured: step.is_some_and(|step| step.looks()),
            };
            let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
            let (rendered, sampled) = script.render(progress, request.index);
            http2.session.send_rendered(Request { sampled, ..request }, tries, rendered, scheme, wants);
        } else if let Some(encoded) = &self.shared.http2 {
            let request = Request { sampled: encoded.is_sampled(request.index), ..request };
            http2.session.send(request, tries, encoded);
        }
        self.active += 1;
        if !http2.dirty {
            http2.dirty = true;
            self.dirty.push(at);
        }
        self.list_http2(at);
    }

    /// Puts a connection among those with room, if it has any.
    #[inline]
    fn list_http2(&mut self, at: usize) {
        if !self.connections[at].has_room() {
            return;
        }
        if let Some(http2) = self.http2(at)
            && !http2.listed
        {
            http2.listed = true;
            self.idle.push_back(at);
        }
    }

    /// Begins to speak on a connection whose socket is open.
    pub(super) fn greet_http2(&mut self, at: usize, now: u64) {
        let fresh = Http2 { last_read: now, ..Http2::new(self.shared.streams, &self.shared.method) };
        if let Some(http2) = self.http2(at) {
            *http2 = fresh;
            self.flush_http2(at, now);
        }
    }

    /// Sends what connections have been given.
    #[inline]
    pub(super) fn flush(&mut self, now: u64) {
        while let Some(at) = self.dirty.pop() {
            self.settle_http2(at, now);
        }
    }

    /// Sends what a connection has to send.
    #[inline]
    fn flush_http2(&mut self, at: usize, now: u64) {
        let (open, clock) = (self.is_timed(), self.clock);
        let connection = &mut self.connections[at];
        let Protocol::Http2(http2) = &mut connection.protocol else { return };
        http2.dirty = false;
        // It may have been closed since it was given something, and be on its way to stand again: the greeting has its time.
        if !matches!(connection.state, State::Open | State::Connecting { phase: Phase::Settings, .. }) {
            return;
        }
        let session = &mut http2.session;
        if connection.unsent.is_empty() {
            session.pump();
        }
        if session.connection.out.is_empty() {
            return;
        }
        let now = if open { clock.now() } else { now };
        session.stamp(now, |request| self.recorder.sent(request));
        let mut out = std::mem::take(&mut session.connection.out);
        let result = connection.transmit(&out);
        out.clear();
        if let Protocol::Http2(http2) = &mut connection.protocol {
            http2.session.connection.out = out;
        }
        match result {
            Ok(_) if connection.unsent.len() > MAX_UNREAD => self.break_off(at, Violation::Flood),
            Ok(taken) => {
                self.count_sent(taken, now);
                self.watch_rest(at);
            }
            Err(_) => self.fail(at, Failure::Reset),
        }
    }

    /// Takes in the first `end` bytes of the buffer, the last of which came at `now` or when the kernel stamped them.
    #[inline]
    pub(super) fn take_in_http2(&mut self, at: usize, end: usize, stamp: Option<u64>, now: u64) {
        let mut place = 0;
        let mut freed = 0;
        let is_ready = loop {
            let Protocol::Http2(http2) = &mut self.connections[at].protocol else { return };
            http2.last_read = now;
            match http2.session.next(&self.buffer[..end], &mut place) {
                Ok(Some(Event::Answered { request, status, body, grpc_status, captured })) => {
                    http2.useful = true;
                    let arrived = stamp.map_or(now, |stamp| self.bridge.to_monotonic(stamp, request.sent, now));
                    let response = Response { status, close: false, head: captured.head(), body };
                    let lane = (self.script.as_ref(), self.progress.get_mut(request.lane as usize));
                    let captured = (captured.head(), captured.body());
                    let mut answer = weigh(lane, &self.shared.check, &mut self.recorder, &response, captured, arrived);
                    if let Some(wanted) = self.shared.grpc {
                        self.recorder.grpc_status(request.due, grpc_status);
                        let bad = (grpc_status != Some(wanted)).then_some(Failure::Grpc);
                        answer.failure = answer.failure.or(bad);
                    }
                    self.largest = self.largest.max(response.body.length());
                    self.note_answer(&request, &answer);
                    self.active -= 1;
                    freed = arrived;
                    self.go_on_lane(request.lane, Some(&answer), now);
                }
                Ok(Some(Event::Failed { request, failure })) => {
                    self.abandon_http2(&request, failure);
                    self.active -= 1;
                    freed = now;
                }
                Ok(Some(Event::Returned { request, tries })) => {
                    self.leave_connection(request.lane);
                    self.returned.push_back((request, tries));
                    self.active -= 1;
                }
                Ok(Some(Event::Ready)) => break true,
                Ok(None) => break false,
                Err(violation) => return self.break_off(at, violation),
            }
        };
        if is_ready {
            self.on_open(at);
            // What came with the first SETTINGS.
            self.buffer.copy_within(place..end, 0);
            return self.take_in_http2(at, end - place, stamp, now);
        }
        let Protocol::Http2(http2) = &mut self.connections[at].protocol else { return };
        http2.carry.clear();
        http2.carry.extend_from_slice(&self.buffer[place..end]);
        if freed > 0 {
            if self.lanes_are_streams() {
                // Steps of iterations under way go before new iterations.
                self.dispatch_agenda(now);
            }
            self.refill_http2(at, now, freed);
        }
        self.settle_http2(at, now);
    }

    /// Gives requests that are due to a connection that has had room since `freed`.
    #[inline]
    fn refill_http2(&mut self, at: usize, now: u64, freed: u64) {
        while self.returned.is_empty() && self.connections[at].has_room() {
            let Some((index, due)) = self.take_due(now) else { return };
            let waited = self.note_queued(due, freed);
            self.assign(at, index, due, waited);
        }
    }

    /// Sends what waits and puts the connection where it belongs: among those with room, or away.
    #[inline]
    pub(super) fn settle_http2(&mut self, at: usize, now: u64) {
        self.flush_http2(at, now);
        let connection = &mut self.connections[at];
        let Protocol::Http2(http2) = &mut connection.protocol else { return };
        if connection.state != State::Open {
            return;
        }
        if http2.session.is_drained() {
            http2.session.connection.go_away(None);
            let pause = http2.pause();
            self.flush_http2(at, now);
            return self.close(at, now + pause);
        }
        let delicate = http2.session.in_flight() > 1
            || !http2.carry.is_empty()
            || http2.session.connection.is_mid_block()
            || !connection.unsent.is_empty();
        self.list_http2(at);
        self.set_delicate(at, delicate);
    }

    /// Gives up the requests on a connection that are overdue.
    pub(super) fn time_out_http2(&mut self, at: usize, now: u64) {
        let timeout = self.shared.timeout;
        let Protocol::Http2(http2) = &mut self.connections[at].protocol else { return };
        let mut gone = Vec::new();
        http2.session.cancel_overdue(|since| now.saturating_sub(since) > timeout, |request| gone.push(*request));
        if gone.is_empty() {
            return;
        }
        // Not a sign of life: the next requests go over a new connection.
        if now.saturating_sub(http2.last_read) > timeout {
            http2.session.drain();
        }
        self.active -= gone.len();
        for request in gone {
            self.abandon_http2(&request, Failure::Timeout);
        }
        self.settle_http2(at, now);
    }

    /// A request has failed without an answer, and what its lane does next is to be found out.
    #[cold]
    pub(super) fn abandon_http2(&mut self, request: &Request, failure: Failure) {
        self.abandon(request, failure);
        self.go_on_lane(request.lane, None, self.now());
    }

    /// The server has ended the connection.
    #[cold]
    pub(super) fn ended_http2(&mut self, at: usize, now: u64) {
        let connection = &self.connections[at];
        let Protocol::Http2(http2) = &connection.protocol else { return };
        if http2.session.in_flight() == 0 {
            let pause = http2.pause();
            return self.close(at, now + pause);
        }
        self.fail(at, Failure::Reset);
    }

    /// The server has broken the rules: it is told which, and the requests on the connection have failed.
    #[cold]
    fn break_off(&mut self, at: usize, violation: Violation) {
        self.reason = Some(violation.to_string());
        let connection = &mut self.connections[at];
        if let Protocol::Http2(http2) = &mut connection.protocol {
            http2.session.connection.go_away(Some(violation));
            let out = std::mem::take(&mut http2.session.connection.out);
            // A courtesy; the connection ends either way.
            let _ = connection.transmit(&out);
        }
        self.fail(at, Failure::Protocol);
    }
}
