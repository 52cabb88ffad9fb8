//! What is due, and the connection that it goes to: iterations of the schedule or of a closed loop, what stands on the agenda, and
//! requests that have come back.

use std::sync::atomic::Ordering;

use super::Engine;
use super::agenda::{Action, Entry};
use crate::record::End;
use crate::request::Request;
use crate::script::Script;

impl Engine<'_> {
    /// The instant at which the next iteration is due: in a closed loop of connections, now. `None`: there are no more, or
    /// they are on the agenda.
    #[inline]
    pub(super) fn next_due(&self, now: u64) -> Option<u64> {
        let due = match &self.cursor {
            Some(cursor) => self.span.start + cursor.due_ns()?,
            None if self.users.is_some() || self.is_used_up() => return None,
            None => now,
        };
        (due < self.span.window_end.min(self.turn_end)).then_some(due)
    }

    /// Takes the next iteration on, if it is due: index of its first request, and its due time.
    #[inline]
    pub(super) fn take_due(&mut self, now: u64) -> Option<(u64, u64)> {
        let due = self.next_due(now).filter(|&due| due <= now)?;
        Some((self.claim_iteration(due)?, due))
    }

    /// Takes on an iteration that is due at this instant: index of its first request. `None`: there are no more.
    #[inline]
    pub(super) fn claim_iteration(&mut self, due: u64) -> Option<u64> {
        self.iteration = match &mut self.cursor {
            Some(cursor) => cursor.take(),
            None => {
                let number = self.shared.iterations.fetch_add(1, Ordering::Relaxed);
                if number >= self.shared.limit {
                    return None;
                }
                number * self.shared.shard.1 + self.shared.shard.0
            }
        };
        let several = self.script.as_ref().is_some_and(Script::is_sequence);
        let index = if several { self.claim_index() } else { self.iteration };
        self.recorder.taken(index, due);
        Some(index)
    }

    /// Index of the next request, where iterations have several.
    pub(super) fn claim_index(&self) -> u64 {
        self.shared.counter.fetch_add(1, Ordering::Relaxed) * self.shared.shard.1 + self.shared.shard.0
    }

    /// Whether nothing that is due before `end` is left to be sent, and nothing waits for an answer.
    pub(super) fn is_quiet(&self, now: u64, end: u64) -> bool {
        self.next_due(now).is_none() && self.active == 0 && self.returned.is_empty() && !self.agenda.has_before(end)
    }

    /// Whether the plan has a number of iterations and all of them are taken.
    pub(super) fn is_used_up(&self) -> bool {
        match &self.cursor {
            Some(cursor) => cursor.is_used_up(),
            None => self.shared.limit < u64::MAX && self.shared.iterations.load(Ordering::Relaxed) >= self.shared.limit,
        }
    }

    /// Hands requests that are due to connections with room.
    pub(super) fn dispatch(&mut self, now: u64) {
        self.dispatch_agenda(now);
        self.send_again(now);
        while self.next_due(now).is_some_and(|due| due <= now) {
            let Some(at) = self.take_free(now) else { break };
            match self.take_due(now) {
                Some((index, due)) => self.assign(at, index, due, false),
                None if self.connections[at].has_room() => self.idle.push_front(at),
                None => self.closed.push_front(at),
            }
        }
        self.flush(now);
    }

    /// Hands requests that have come back to connections with room.
    pub(super) fn send_again(&mut self, now: u64) {
        while !self.returned.is_empty() {
            let Some(at) = self.take_free(now) else { return };
            if !self.connections[at].has_room() {
                self.connect(at, None);
            } else if let Some((request, tries)) = self.returned.pop_front() {
                self.recorder.resent += 1;
                self.move_lane(request.lane, at);
                self.send_http2(at, request, tries);
            }
        }
    }

    /// A connection for a request: an open one, or else one that may be tried (again).
    pub(super) fn take_free(&mut self, now: u64) -> Option<usize> {
        while let Some(at) = self.idle.pop_front() {
            self.connections[at].protocol.unlist();
            if self.connections[at].has_room() {
                return Some(at);
            }
        }
        let place = self.closed.iter().position(|&at| self.connections[at].may_connect(now))?;
        self.closed.remove(place)
    }

    /// An entry whose time has come, with its turn if it is to take one: turns go to those who are there, in their order.
    fn in_turn(&mut self, entry: Entry) -> Entry {
        let turns = self.users.as_mut().and_then(|users| users.turns.as_mut()).filter(|_| entry.act == Action::Turn);
        let Some(turns) = turns else { return entry };
        let due = self.span.start + turns.take(entry.due.saturating_sub(self.span.start));
        Entry { at: due, due, act: Action::Begin, ..entry }
    }

    /// Does what has become due on the agenda.
    pub(super) fn dispatch_agenda(&mut self, now: u64) {
        for _ in 0..self.agenda.waiting.len() {
            let Some(entry) = self.agenda.waiting.pop_front() else { break };
            self.begin_entry(entry, now);
        }
        // What is due after the turn waits for the next one.
        let now = now.min(self.turn_end.saturating_sub(1));
        while let Some(entry) = self.agenda.pop(now) {
            let entry = self.in_turn(entry);
            if entry.at > now {
                self.agenda.push(entry);
            } else {
                self.begin_entry(entry, now);
            }
        }
    }

    /// Does what an entry says, as soon as there is a connection for it.
    fn begin_entry(&mut self, entry: Entry, now: u64) {
        if entry.due >= self.span.window_end {
            return;
        }
        let at = self.connection_for(entry.lane);
        let connection = &self.connections[at];
        if !connection.can_send() {
            match connection.retry_in(now) {
                // It is not to be given to others.
                0 => self.closed.retain(|&other| other != at),
                u64::MAX => return self.agenda.waiting.push_back(entry),
                wait => return self.agenda.push(Entry { at: now + wait, ..entry }),
            }
        }
        let index = if entry.act == Action::Begin {
            let Some(index) = self.claim_iteration(entry.due) else { return };
            self.hold_lane(entry.lane);
            if let Some(script) = &self.script {
                script.begin(&mut self.progress[entry.lane as usize], self.iteration);
                self.progress[entry.lane as usize].begun = entry.due;
            }
            index
        } else {
            if !self.lanes_are_streams() {
                self.connections[at].held = 0;
            }
            let index = self.claim_index();
            self.recorder.taken(index, entry.due);
            index
        };
        let waited = entry.at > entry.due;
        self.go(at, Request { index, due: entry.due, waited, lane: entry.lane, ..Request::default() });
    }

    /// Takes one more request off the agenda when the load is given up: its due time.
    pub(super) fn give_up_agenda(&mut self) -> Option<u64> {
        while let Some(entry) = self.agenda.waiting.pop_front().or_else(|| self.agenda.pop(u64::MAX)) {
            let entry = self.in_turn(entry);
            if entry.due < self.span.window_end {
                if entry.act == Action::Begin {
                    self.claim_iteration(entry.due)?;
                } else {
                    let index = self.claim_index();
                    self.recorder.taken(index, entry.due);
                    if let Some(progress) = self.progress.get(entry.lane as usize) {
                        self.recorder.iteration_ended(progress.begun, End::Failed);
                    }
                }
                return Some(entry.due);
            }
        }
        None
    }
}
