//! What single connections are to do at instants of their own: users who think, and steps that wait for their turn. Plans
//! without users and without pauses have an empty one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Engine;
use crate::pace::{Cursor, Profile, SECOND};
use crate::record::{Answer, Failure};
use crate::script::Next;

/// An entry: sorted by the instant at which it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Monotonic nanoseconds.
    at: u64,
    /// When the request is due: earlier than `at` if its connection could not be made at first.
    due: u64,
    connection: usize,
    /// Whether it begins an iteration.
    begins: bool,
}

/// Entries by time.
#[derive(Debug, Default)]
pub(super) struct Agenda(BinaryHeap<Reverse<Entry>>);

impl Agenda {
    /// The next instant at which there is something to do.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.0.peek().map(|Reverse(entry)| entry.at)
    }

    /// Due times of all entries.
    pub(super) fn dues(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|Reverse(entry)| entry.due)
    }

    /// Whether anything is due before an instant.
    pub(super) fn has_before(&self, end: u64) -> bool {
        self.0.iter().any(|Reverse(entry)| entry.due < end)
    }

    /// Takes the next entry if its time has come.
    fn pop(&mut self, now: u64) -> Option<Entry> {
        self.next_at().filter(|&at| at <= now)?;
        self.0.pop().map(|Reverse(entry)| entry)
    }
}

/// The users of one thread: each has the connection of the same number.
#[derive(Debug)]
pub(super) struct Users {
    /// How many there are over time.
    pub(super) profile: Profile,
    /// Nanoseconds that each pauses after an iteration.
    pub(super) think: u64,
    /// Number of this thread's first user, and from one to the next.
    pub(super) first: u64,
    pub(super) stride: u64,
    /// The turns that they wait for, if the iterations per second are limited.
    pub(super) turns: Option<Cursor>,
}

impl Engine<'_> {
    /// Puts the first iteration of every user on the agenda.
    pub(super) fn begin_users(&mut self) {
        if self.users.is_some() {
            for connection in 0..self.connections.len() {
                self.schedule_user(connection, self.span.start);
            }
        }
    }

    /// Puts a user's next iteration on the agenda: from this instant on, when the user is there and it is their turn.
    fn schedule_user(&mut self, connection: usize, from: u64) {
        let Some(users) = &mut self.users else { return };
        let number = (users.first + connection as u64 * users.stride) as f64;
        let seconds = from.saturating_sub(self.span.start) as f64 / SECOND as f64;
        let Some(there) = users.profile.when_above(number, seconds) else { return };
        let mut due = from.max(self.span.start + (there * SECOND as f64) as u64);
        if due >= self.span.window_end {
            return;
        }
        if let Some(turns) = &mut users.turns {
            let Some(turn) = turns.due_ns() else { return };
            turns.take();
            due = due.max(self.span.start + turn);
        }
        self.agenda.0.push(Reverse(Entry { at: due, due, connection, begins: true }));
    }

    /// Does what has become due on the agenda.
    pub(super) fn dispatch_agenda(&mut self, now: u64) {
        while let Some(entry) = self.agenda.pop(now) {
            if entry.due >= self.span.window_end {
                continue;
            }
            let connection = &self.connections[entry.connection];
            if !connection.has_room() {
                match connection.retry_in(now) {
                    // It is not to be given to others.
                    0 => self.closed.retain(|&other| other != entry.connection),
                    u64::MAX => continue,
                    wait => {
                        self.agenda.0.push(Reverse(Entry { at: now + wait, ..entry }));
                        continue;
                    }
                }
            }
            if !entry.begins {
                let index = self.claim_index();
                self.recorder.taken(index, entry.due);
                self.go(entry.connection, index, entry.due);
            } else if let Some(index) = self.claim_iteration(entry.due) {
                self.assign(entry.connection, index, entry.due);
            }
        }
    }

    /// Takes one more request off the agenda when the load is given up: its due time.
    pub(super) fn give_up_agenda(&mut self) -> Option<u64> {
        while let Some(entry) = self.agenda.pop(u64::MAX) {
            if entry.due < self.span.window_end && entry.begins {
                let index = self.claim_iteration(entry.due)?;
                debug_assert!(index < u64::MAX, "indices do not run out");
                return Some(entry.due);
            }
        }
        None
    }

    /// What comes on a connection after an answer or a failure: the iteration's next step, the user's next iteration, or
    /// whatever is due.
    #[inline]
    pub(super) fn go_on(&mut self, at: usize, answer: Option<&Answer>, now: u64) {
        if self.script.is_none() && self.users.is_none() {
            return match answer {
                Some(_) if self.cursor.is_none() => self.freed.push(at),
                Some(answer) => self.take_over(at, answer.arrived, now),
                None => {}
            };
        }
        self.go_on_scripted(at, answer, now);
    }

    /// [`Engine::go_on`] for plans with several requests or users.
    fn go_on_scripted(&mut self, at: usize, answer: Option<&Answer>, now: u64) {
        let arrived = answer.map_or(now, |answer| answer.arrived);
        if let (Some(script), Some(answer)) = (&self.script, answer) {
            let good = answer.failure.is_none();
            let next = script.advance(&mut self.progress[at], good, std::mem::take(&mut self.again));
            if let Next::Step(pause) = next {
                let due = arrived + pause;
                if due < self.span.window_end {
                    self.agenda.0.push(Reverse(Entry { at: due, due, connection: at, begins: false }));
                    // Without a pause there is no reason to wait for the next round.
                    return if pause == 0 {
                        self.dispatch_agenda(now)
                    };
                }
            }
        }
        if let Some(users) = &self.users {
            let from = arrived + users.think;
            self.schedule_user(at, from);
        } else if answer.is_some() {
            self.take_over(at, arrived, now);
        }
    }

    /// Gives what is due to a connection that has become free, if it stands.
    #[inline]
    pub(super) fn take_over(&mut self, at: usize, free_since: u64, now: u64) {
        if !self.connections[at].has_room() {
            return;
        }
        match self.take_due(now) {
            Some((index, due)) => {
                self.note_queued(due, free_since);
                self.assign(at, index, due);
            }
            None => self.idle.push_back(at),
        }
    }

    /// A request has failed without an answer: counts it under its name and ends its iteration.
    #[cold]
    pub(super) fn abandon(&mut self, at: usize, due: u64, failure: Failure) {
        self.recorder.failed(due, failure);
        if let Some(progress) = self.progress.get(at) {
            self.recorder.named_failed(progress.step, due);
        }
    }
}
