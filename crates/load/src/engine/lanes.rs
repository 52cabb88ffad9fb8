//! Lanes: what carries one iteration at a time. Over HTTP/1.1 that is a connection; over HTTP/2 it is one of the streams that a
//! connection has room for, whichever stream the requests of the iteration then use. A lane stays with its connection while its
//! iteration lasts, unless that goes away. Plans with neither several requests nor users need none.

/// A lane that has no connection: what it carried has come back and is to be sent again.
pub(super) const NO_CONNECTION: usize = usize::MAX;

/// The lanes of HTTP/2.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Whether the plan needs any.
    pub(super) on: bool,
    /// The connection of each.
    pub(super) connections_of: Vec<usize>,
    /// Those that carry nothing.
    pub(super) free: Vec<u32>,
}

impl Lanes {
    /// None as yet.
    pub(super) fn new(on: bool) -> Self {
        Self { on, connections_of: Vec::new(), free: Vec::new() }
    }

    /// The connection of a lane.
    pub(super) fn connection_of(&self, lane: u32) -> usize {
        if self.on { self.connections_of[lane as usize] } else { lane as usize }
    }
}
