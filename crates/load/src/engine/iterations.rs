//! What comes after what: the first request of an iteration, its next step when an answer is there, and the user's next
//! iteration. Each is carried by a lane, see [`Lanes`](super::lanes::Lanes).

use super::Engine;
use super::agenda::{Action, Entry};
use super::connection::State;
use super::lanes::NO_CONNECTION;
use crate::pace::SECOND;
use crate::record::End;
use crate::request::{Answer, Failure, Request};
use crate::script::{Next, Progress};

impl Engine<'_> {
    /// Makes the lanes of users, who keep theirs; returns how many there are. HTTP/1.1: one for each connection.
    pub(super) fn prepare_lanes(&mut self) -> usize {
        let connections = self.connections.len();
        if !self.lanes.on {
            return connections;
        }
        if let Some(users) = &self.users {
            let most = users.profile.most().ceil() as u64;
            let own = most.saturating_sub(users.first).div_ceil(users.stride) as usize;
            self.lanes.connections_of = (0..own).map(|lane| lane % connections.max(1)).collect();
            self.progress.resize(if self.script.is_some() { own } else { 0 }, Progress::default());
        }
        self.lanes.connections_of.len()
    }

    /// Whether lanes are streams, and not connections.
    pub(super) fn lanes_are_streams(&self) -> bool {
        self.lanes.on
    }

    /// A lane for an iteration that begins on this connection.
    #[inline]
    pub(super) fn open_lane(&mut self, at: usize) -> u32 {
        if self.lanes.on { self.take_lane(at) } else { at as u32 }
    }

    /// [`Engine::open_lane`] over HTTP/2.
    fn take_lane(&mut self, at: usize) -> u32 {
        let lane = match self.lanes.free.pop() {
            Some(lane) => lane,
            None => {
                self.lanes.connections_of.push(NO_CONNECTION);
                if self.script.is_some() {
                    self.progress.resize(self.lanes.connections_of.len(), Progress::default());
                }
                (self.lanes.connections_of.len() - 1) as u32
            }
        };
        self.lanes.connections_of[lane as usize] = at;
        self.connections[at].held += 1;
        lane
    }

    /// A connection for the next request in a lane: its own, or, if that takes no more requests, another with room.
    pub(super) fn connection_for(&mut self, lane: u32) -> usize {
        let at = self.lanes.connection_of(lane);
        let leaving = match self.connections.get(at) {
            None => true,
            Some(connection) => connection.state == State::Open && connection.protocol.is_draining(),
        };
        if !leaving {
            return at;
        }
        let other = self.connections.iter().position(|connection| connection.has_room());
        match other {
            Some(other) => {
                self.leave_connection(lane);
                self.move_lane(lane, other);
                other
            }
            None => at.min(self.connections.len() - 1),
        }
    }

    /// A lane goes on without a connection.
    pub(super) fn leave_connection(&mut self, lane: u32) {
        if !self.lanes.on {
            return;
        }
        let at = std::mem::replace(&mut self.lanes.connections_of[lane as usize], NO_CONNECTION);
        if let Some(connection) = self.connections.get_mut(at) {
            connection.held = connection.held.saturating_sub(1);
        }
    }

    /// A lane without a connection gets one.
    pub(super) fn move_lane(&mut self, lane: u32, at: usize) {
        if self.lanes.on {
            self.lanes.connections_of[lane as usize] = at;
            self.connections[at].held += 1;
        }
    }

    /// A user's iteration begins in their lane.
    pub(super) fn hold_lane(&mut self, lane: u32) {
        if self.lanes.on {
            let at = self.lanes.connection_of(lane);
            if let Some(connection) = self.connections.get_mut(at) {
                connection.held += 1;
            }
        }
    }

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
        self.agenda.push(Entry { at: due, due, lane, act });
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

    /// What comes in a lane of HTTP/2 after an answer or a failure: the iteration's next step, the user's next iteration, or
    /// nothing.
    pub(super) fn go_on_lane(&mut self, lane: u32, answer: Option<&Answer>, now: u64) {
        if !self.lanes.on {
            return;
        }
        if let Some(answer) = answer
            && self.plan_step(lane, answer).is_some()
        {
            return;
        }
        let at = self.lanes.connection_of(lane);
        self.leave_connection(lane);
        if let Some(users) = &self.users {
            let think = users.think;
            // A user has a lane for good, so it stays with its connection; only what it holds there is given back.
            self.lanes.connections_of[lane as usize] =
                if at == NO_CONNECTION { lane as usize % self.connections.len() } else { at };
            self.schedule_user(lane, answer.map_or(now, |answer| answer.arrived) + think);
        } else {
            self.lanes.free.push(lane);
        }
    }

    /// Puts the next step of a lane's iteration on the agenda, if it has one: its pause.
    pub(super) fn plan_step(&mut self, lane: u32, answer: &Answer) -> Option<u64> {
        let script = self.script.as_ref()?;
        let good = answer.failure.is_none();
        let progress = &mut self.progress[lane as usize];
        let Next::Step(pause) = script.advance(progress, good, answer.asks_again) else {
            self.recorder.iteration_ended(progress.begun, if good { End::Well(answer.arrived) } else { End::Failed });
            return None;
        };
        let due = answer.arrived + pause;
        if due >= self.span.window_end {
            self.recorder.iteration_ended(progress.begun, End::Unfinished);
            return None;
        }
        self.agenda.push_step(due, lane);
        Some(pause)
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

    /// Counts a request that has its answer, under its name and its kind too.
    #[inline]
    pub(super) fn note_answer(&mut self, request: &Request, answer: &Answer) {
        self.recorder.answered(request, answer);
        if let Some(progress) = self.progress.get(request.lane as usize) {
            self.recorder.named_answered(progress.step, request, answer);
            if let Some(kind) = progress.kind {
                self.recorder.kind_answered(kind, progress.begun, request, answer);
            }
        }
    }

    /// A request has failed without an answer: counts it, under its name too, and ends its iteration.
    #[cold]
    pub(super) fn abandon(&mut self, request: &Request, failure: Failure) {
        self.recorder.failed(request.due, failure);
        self.recorder.ended(self.now());
        if let Some(progress) = self.progress.get(request.lane as usize) {
            self.recorder.named_failed(progress.step, request.due);
            self.recorder.iteration_ended(progress.begun, End::Failed);
        }
    }
}
