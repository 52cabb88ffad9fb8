//! What single connections are to do at instants of their own: users who think, and steps that wait for their turn. Plans
//! without users and without pauses have an empty one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    /// The next step of an iteration.
    Step,
    /// A user takes the next turn, and then begins an iteration.
    Turn,
    /// A user begins an iteration.
    Begin,
}

/// An entry: sorted by the instant at which it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// Monotonic nanoseconds.
    pub(super) at: u64,
    /// When the request is due: earlier than `at` if its connection could not be made at first.
    pub(super) due: u64,
    pub(super) lane: u32,
    pub(super) act: Action,
}

/// Entries by time.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    /// HTTP/2: those whose time has come, but whose connection has no stream left for them.
    pub(super) waiting: VecDeque<Entry>,
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

    /// Puts an entry on it.
    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(Reverse(entry));
    }

    /// Puts the next step of an iteration on it.
    pub(super) fn push_step(&mut self, due: u64, lane: u32) {
        self.push(Entry { at: due, due, lane, act: Action::Step });
    }

    /// Takes the next entry if its time has come.
    pub(super) fn pop(&mut self, now: u64) -> Option<Entry> {
        self.next_at().filter(|&at| at <= now)?;
        self.entries.pop().map(|Reverse(entry)| entry)
    }
}
