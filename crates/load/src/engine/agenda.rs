//! What single connections are to do at instants of their own: users who think, and steps that wait for their turn. Plans
//! without users and without pauses have an empty one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Engine;
use crate::pace::{Profile, SECOND};
use crate::record::{Answer, End, Failure, Request};

/// What an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    /// The next step of an iteration.
    Step,
    /// A user takes the next turn, and then begins an iteration.
    Turn,
    /// A user begins an iteration.
    Begin,
}

/// An entry: sorted by the instant at which it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Monotonic nanoseconds.
    at: u64,
    /// When the request is due: earlier than `at` if its connection could not be made at first.
    due: u64,
    lane: u32,
    act: Action,
}

/// Entries by time.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    /// HTTP/2: those whose time has come, but whose connection has no stream left for them.
    waiting: VecDeque<Entry>,
}

impl Agenda {
    /// The next instant at which there is something to do.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.entries.peek().map(|Reverse(entry)| entry.at)
    }

    /// All entries.
    fn all(&self) -> impl Iterator<Item = &Entry> {
        self.waiting.iter().chain(self.entries.iter().map(|Reverse(entry)| entry))
    }

    /// Due times of all entries.
    pub(super) fn dues(&self) -> impl Iterator<Item = u64> {
        self.all().map(|entry| entry.due)
    }

    /// Whether anything is due before an instant.
    pub(super) fn has_before(&self, end: u64) -> bool {
        self.all().any(|entry| entry.due < end)
    }

    /// Puts the next step of an iteration on it.
    pub(super) fn push_step(&mut self, due: u64, lane: u32) {
        self.entries.push(Reverse(Entry { at: due, due, lane, act: Action::Step }));
    }

    /// Takes the next entry if its time has come.
    fn pop(&mut self, now: u64) -> Option<Entry> {
        self.next_at().filter(|&at| at <= now)?;
        self.entries.pop().map(|Reverse(entry)| entry)
    }
}

/// The users of one thread: each has the lane of the same number.
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
    pub(super) turns: Option<Turns>,
}

/// Turns of the users of one thread. One that nobody was there to take is gone: a server that was slow for a while is not
/// asked for more than the limit afterwards. Nanoseconds.
#[derive(Debug)]
pub(super) struct Turns {
    interval: u64,
    /// The earliest next turn, from the start of the load.
    next: u64,
}

impl Turns {
    /// Those of thread `first` of `stride` that have so many iterations per second together.
    pub(super) fn new(rate: f64, first: u64, stride: u64) -> Self {
        let turns = |count: u64| (count as f64 * SECOND as f64 / rate).round() as u64;
        Self { interval: turns(stride), next: turns(first) }
    }

    /// The turn of a user who has been waiting for one since `from`.
    fn take(&mut self, from: u64) -> u64 {
        let turn = self.next.max(from);
        self.next = turn.saturating_add(self.interval);
        turn
    }
}

impl Engine<'_> {
    /// Puts the first iteration of every user on the agenda.
    pub(super) fn begin_users(&mut self) {
        if self.users.is_some() {
            for lane in 0..self.prepare_lanes() {
                self.schedule_user(lane as u32, self.span.start);
            }
        }
    }

    /// Puts a user's next iteration on the agenda: from this instant on, when the user is there and it is their turn.
    pub(super) fn schedule_user(&mut self, lane: u32, from: u64) {
        let Some(users) = &self.users else { return };
        let number = (users.first + u64::from(lane) * users.stride) as f64;
        let seconds = from.saturating_sub(self.span.start) as f64 / SECOND as f64;
        let Some(there) = users.profile.when_above(number, seconds) else { return };
        let due = from.max(self.span.start + (there * SECOND as f64) as u64);
        if due >= self.span.window_end {
            return;
        }
        let act = if users.turns.is_some() { Action::Turn } else { Action::Begin };
        self.agenda.entries.push(Reverse(Entry { at: due, due, lane, act }));
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
                self.agenda.entries.push(Reverse(entry));
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
                wait => return self.agenda.entries.push(Reverse(Entry { at: now + wait, ..entry })),
            }
        }
        let waited = entry.at > entry.due;
        if entry.act == Action::Begin {
            let Some(index) = self.claim_iteration(entry.due) else { return };
            self.hold_lane(entry.lane);
            if let Some(script) = &self.script {
                script.begin(&mut self.progress[entry.lane as usize], self.iteration);
                self.progress[entry.lane as usize].begun = entry.due;
            }
            self.go(at, Request { index, due: entry.due, waited, lane: entry.lane, ..Request::default() });
        } else {
            if !self.lanes_are_streams() {
                self.connections[at].held = 0;
            }
            let index = self.claim_index();
            self.recorder.taken(index, entry.due);
            self.go(at, Request { index, due: entry.due, waited, lane: entry.lane, ..Request::default() });
        }
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

    /// What comes on a connection of HTTP/1.1 after an answer or a failure: the iteration's next step, the user's next iteration,
    /// or whatever is due.
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
        if let Some(answer) = answer
            && let Some(pause) = self.plan_step(at as u32, answer)
        {
            self.connections[at].held = 1;
            // Without a pause there is no reason to wait for the next round.
            return if pause == 0 {
                self.dispatch_agenda(now)
            };
        }
        let arrived = answer.map_or(now, |answer| answer.arrived);
        if let Some(users) = &self.users {
            let from = arrived + users.think;
            self.schedule_user(at as u32, from);
        } else if answer.is_some() {
            self.take_over(at, arrived, now);
        }
    }

    /// Gives what is due to a connection that has become free, if it is open.
    #[inline]
    pub(super) fn take_over(&mut self, at: usize, free_since: u64, now: u64) {
        if !self.connections[at].has_room() {
            return;
        }
        match self.take_due(now) {
            Some((index, due)) => {
                let waited = self.note_queued(due, free_since);
                self.assign(at, index, due, waited);
            }
            None => self.idle.push_back(at),
        }
    }

    /// A request has failed without an answer: counts it under its name and ends its iteration.
    #[cold]
    pub(super) fn abandon(&mut self, at: usize, due: u64, failure: Failure) {
        self.recorder.failed(due, failure);
        self.recorder.ended(self.now());
        if let Some(progress) = self.progress.get(at) {
            self.recorder.named_failed(progress.step, due);
            self.recorder.iteration_ended(progress.begun, End::Failed);
        }
    }
}
