//! HTTP/2 as a client that sends the same requests over and over speaks it (RFC 9113): own framing, header blocks that are
//! encoded once, real flow control. No sockets, no clock.

pub(crate) mod captured;
mod control;
mod heads;
mod receive;
pub(crate) mod request;
pub(crate) mod session;
#[cfg(test)]
mod session_tests;
mod streams;

pub(crate) use unladen_http2::{frame, hpack};

use frame::code;

/// What a server may not do on a connection: it is ended, and the requests on it have failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    /// The first thing it sent is not a SETTINGS frame.
    #[error("it does not answer in HTTP/2")]
    NotHttp2,
    /// A frame is larger than allowed, or its length does not fit its type.
    #[error("it sent a frame of a wrong size")]
    FrameSize,
    /// A frame in the wrong place, on the wrong stream, or with a forbidden value.
    #[error("it broke the rules: {0}")]
    Rules(&'static str),
    /// More than the window holds, or a window beyond 2^31 - 1.
    #[error("it broke flow control")]
    FlowControl,
    /// A header block cannot be decoded.
    #[error("{0}")]
    Block(#[from] hpack::BlockError),
    /// Very many frames that bring nothing forward.
    #[error("it sent too many frames that mean nothing")]
    Flood,
}

impl Violation {
    /// The code for GOAWAY (RFC 9113, 7).
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::NotHttp2 | Self::Rules(_) => code::PROTOCOL_ERROR,
            Self::FrameSize => code::FRAME_SIZE_ERROR,
            Self::FlowControl => code::FLOW_CONTROL_ERROR,
            Self::Block(hpack::BlockError::TooLarge) | Self::Flood => code::ENHANCE_YOUR_CALM,
            Self::Block(_) => code::COMPRESSION_ERROR,
        }
    }
}
