//! Lanes: what carries one iteration at a time. Over HTTP/1.1 that is a connection; over HTTP/2 it is one of the streams that a
//! connection has room for, whichever stream the requests of the iteration then use. A lane stays with its connection while its
//! iteration lasts, unless that goes away. Plans with neither several requests nor users need none.

use super::Engine;
use super::connection::{Protocol, State};
use crate::record::{Answer, End};
use crate::script::{Next, Progress};

/// A lane that has no connection: what it carried has come back and is to be sent again.
const NO_CONNECTION: usize = usize::MAX;

/// The lanes of HTTP/2.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Whether the plan needs any.
    on: bool,
    /// The connection of each.
    connections_of: Vec<usize>,
    /// Those that carry nothing.
    free: Vec<u32>,
}

impl Lanes {
    /// None as yet.
    pub(super) fn new(on: bool) -> Self {
        Self { on, connections_of: Vec::new(), free: Vec::new() }
    }
}

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

    /// The connection of a lane.
    pub(super) fn connection_of(&self, lane: u32) -> usize {
        if self.lanes.on { self.lanes.connections_of[lane as usize] } else { lane as usize }
    }

    /// A connection for the next request in a lane: its own, or, if that takes no more requests, another with room.
    pub(super) fn connection_for(&mut self, lane: u32) -> usize {
        let at = self.connection_of(lane);
        let leaving = match self.connections.get(at) {
            None => true,
            Some(connection) => {
                connection.state == State::Open
                    && matches!(&connection.protocol, Protocol::Http2(http2) if http2.session.is_draining())
            }
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
            let at = self.connection_of(lane);
            if let Some(connection) = self.connections.get_mut(at) {
                connection.held += 1;
            }
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
        let at = self.connection_of(lane);
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
}
