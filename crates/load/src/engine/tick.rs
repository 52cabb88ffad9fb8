//! What is done once in a while, off the way of requests: boundaries, seconds, timeouts, the end.

use std::sync::atomic::Ordering;

use super::connection::{Connection, State};
use super::protocol::Protocol;
use super::{Engine, Message, TICK};
use crate::error::LoadError;
use crate::pace::{SECOND, Span};
use crate::record::Recorder;
use crate::request::Failure;
use crate::sys::{self, ClockBridge};

/// How long an interrupted load waits for answers, nanoseconds.
const GRACE: u64 = SECOND;

impl Engine<'_> {
    /// Takes over the load's times.
    pub(super) fn begin(&mut self, span: Span) {
        self.span = span;
        self.recorder.span = span;
        self.next_tick = span.start;
        self.give_up = span.window_end + self.shared.timeout + TICK;
        self.begin_users();
    }

    /// The work of a tick. `false`: the load is over.
    pub(super) fn tick(&mut self, now: u64) -> Result<bool, LoadError> {
        self.bridge = ClockBridge::measure(self.clock);
        self.apply_stop(now);
        if self.times_at_window_start.is_none() && now >= self.span.window_start {
            self.times_at_window_start = Some(sys::thread_times());
        }
        if self.times_at_window_end.is_none() && now >= self.span.window_end {
            self.times_at_window_end = Some(sys::thread_times());
        }
        self.recorder.open_second_of(now.min(self.span.window_end.saturating_sub(1)))?;
        self.time_out(now);
        self.time_out_returned(now);
        self.report_seconds(now)?;
        if self.span.in_window(now) {
            self.recorder.in_flight.0 += self.active as u64;
            // What is under way when a turn is over was due in it, and no time of the load's own passes meanwhile.
            self.recorder.in_flight.1 += u64::from(now < self.turn_end);
        }
        let quiet = self.is_quiet(now, self.span.window_end);
        if quiet && (now >= self.span.window_end || self.is_used_up()) {
            self.recorder.used_up = now < self.span.window_end;
            return Ok(false);
        }
        if now >= self.give_up {
            self.give_up_waiting();
            return Ok(false);
        }
        // Boundaries are met exactly; everything else can wait for the next tick.
        self.next_tick = now + TICK;
        for boundary in [self.span.window_start, self.span.window_end] {
            if now < boundary {
                self.next_tick = self.next_tick.min(boundary);
            }
        }
        Ok(true)
    }

    /// Ends the window now if the load is to be stopped, or where another thread has ended it.
    fn apply_stop(&mut self, now: u64) {
        if self.interrupted || now >= self.span.window_end {
            return;
        }
        if self.shared.stop.load(Ordering::Relaxed) {
            self.shared.end.fetch_min(now, Ordering::Relaxed);
        }
        let end = self.shared.end.load(Ordering::Relaxed);
        if end < self.span.window_end {
            self.interrupted = true;
            self.span.window_end = end;
            self.recorder.span.window_end = end;
            self.give_up = now + self.shared.timeout.min(GRACE);
        }
    }

    /// Fails requests whose answer is overdue, and connections that have been in the making for too long.
    pub(super) fn time_out(&mut self, now: u64) {
        for at in 0..self.connections.len() {
            let overdue = |since: u64| now.saturating_sub(since) > self.shared.timeout;
            let connection = &self.connections[at];
            match (&connection.protocol, connection.state) {
                (_, State::Connecting { since, .. }) if now.saturating_sub(since) > self.shared.connect_timeout => {
                    self.fail(at, Failure::Connect);
                }
                (Protocol::Http1(http1), State::Open) => {
                    if http1.outstanding().any(|request| overdue(request.sent)) {
                        self.fail(at, Failure::Timeout);
                    }
                }
                (Protocol::Http2(_), State::Open) => self.time_out_http2(at, now),
                (_, State::Connecting { .. } | State::Closed { .. }) => {}
            }
        }
    }

    /// Fails requests that have come back and have been waiting too long to be sent again.
    fn time_out_returned(&mut self, now: u64) {
        let timeout = self.shared.timeout;
        let mut overdue = Vec::new();
        self.returned.retain(|(request, _)| {
            let waits = now.saturating_sub(request.sent) <= timeout;
            if !waits {
                overdue.push(*request);
            }
            waits
        });
        for request in overdue {
            self.abandon_http2(&request, Failure::Timeout);
        }
    }

    /// Due time of the oldest request that is not accounted for.
    fn oldest_outstanding(&self, now: u64) -> u64 {
        let queued = self.next_due(now).unwrap_or(u64::MAX);
        let waiting = self.agenda.dues().fold(queued, u64::min);
        let waiting = self.returned.iter().map(|(request, _)| request.due).fold(waiting, u64::min);
        self.connections.iter().flat_map(Connection::outstanding_dues).fold(waiting, u64::min)
    }

    /// Tells which seconds have passed, and which can no longer change.
    fn report_seconds(&mut self, now: u64) -> Result<(), LoadError> {
        // After the end of a turn its answers are waited for, and then the clock goes back to the end.
        let now = now.min(self.turn_end);
        while self.span.start + u64::from(self.passed + 1) * SECOND <= now.min(self.span.window_end) {
            self.recorder.open_second_of(self.span.start + u64::from(self.passed) * SECOND)?;
            if let Some(part) = self.recorder.peek(self.passed) {
                // The receiver lives as long as the threads do.
                let _ = self.messages.send(Message::Passed(part.live()));
            }
            self.passed += 1;
        }
        let before = self.oldest_outstanding(now).min(now);
        while let Some(part) = self.recorder.close_second(before) {
            let _ = self.messages.send(Message::Closed(part));
        }
        Ok(())
    }

    /// Accounts for everything that has no answer at the end.
    fn give_up_waiting(&mut self) {
        for at in 0..self.connections.len() {
            for due in self.connections[at].outstanding_dues() {
                self.recorder.unanswered(due);
            }
            if self.interrupted {
                self.close(at, 0);
            } else {
                self.fail(at, Failure::Timeout);
            }
        }
        for (request, _) in std::mem::take(&mut self.returned) {
            self.recorder.unanswered(request.due);
            if !self.interrupted {
                self.abandon_http2(&request, Failure::Timeout);
            }
        }
        while let Some(due) = self.take_due(u64::MAX - 1).map(|(_, due)| due).or_else(|| self.give_up_agenda()) {
            self.recorder.unanswered(due);
            if !self.interrupted {
                self.recorder.failed(due, Failure::Unsent);
            }
        }
    }

    /// Closes what is open and hands the record over.
    pub(crate) fn end(mut self) -> Recorder {
        while let Some(part) = self.recorder.close_second(u64::MAX) {
            let _ = self.messages.send(Message::Closed(part));
        }
        let end = self.times_at_window_end.unwrap_or_else(sys::thread_times);
        let start = self.times_at_window_start.unwrap_or(end);
        self.recorder.cpu_ns = end.cpu.saturating_sub(start.cpu);
        self.recorder.waited_ns = end.waited.saturating_sub(start.waited);
        self.recorder
    }
}
