//! A request on its way, and what comes of it: an answer, or a failure of one of a few classes.

use crate::bodies::Class;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection could be made.
    Connect,
    /// No answer in time.
    Timeout,
    /// The connection or the stream ended before the answer did.
    Reset,
    /// What came is not the protocol that was asked for.
    Protocol,
    /// Not the wanted status.
    Status,
    /// Not the wanted length.
    Length,
    /// gRPC: not the status OK.
    Grpc,
    /// Still waiting for a free connection when the load was given up.
    Unsent,
    /// A test of the plan's does not hold.
    Check,
    /// What a later step needs is not there.
    Capture,
    /// A redirect that is not followed: it leads elsewhere, or it is one too many.
    Redirect,
}

impl Failure {
    /// All classes with their names, in the order of [`Failure`].
    pub(crate) const NAMES: [&'static str; 11] = [
        "connect", "timeout", "reset", "protocol", "status", "length", "grpc", "unsent", "check", "capture", "redirect",
    ];
}

/// A request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Request {
    /// Number in due order.
    pub(crate) index: u64,
    /// When it was due, monotonic nanoseconds.
    pub(crate) due: u64,
    /// When it was sent.
    pub(crate) sent: u64,
    /// Whether it carries the sampled flag.
    pub(crate) sampled: bool,
    /// Whether it waited for a connection: what it is late then is not the generator's doing.
    pub(crate) waited: bool,
    /// Plans with several requests or users: the iteration under way that it belongs to.
    pub(crate) lane: u32,
}

/// A complete answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// When its last byte arrived, monotonic nanoseconds.
    pub(crate) arrived: u64,
    /// Status code.
    pub(crate) status: u16,
    /// Class of the body; `None`: there are too many.
    pub(crate) class: Option<Class>,
    /// Why it is not a good one.
    pub(crate) failure: Option<Failure>,
    /// Whether the step is sent again, as what it waits for is not there yet.
    pub(crate) asks_again: bool,
}
