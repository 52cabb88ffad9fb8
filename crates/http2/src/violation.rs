//! What the other side may not do on a connection.

use crate::frame::code;
use crate::hpack::BlockError;

/// What the other side may not do: its connection is ended. The words say what "it" did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// It does not begin as HTTP/2 does (RFC 9113, 3.4).
    #[error("it does not speak HTTP/2")]
    NotHttp2,
    /// A frame is larger than allowed, or its length does not fit its type.
    #[error("it sent a frame of a wrong size")]
    FrameSize,
    /// A frame in the wrong place, on the wrong stream, or with a forbidden value.
    #[error("it broke the rules of HTTP/2: {0}")]
    Rules(&'static str),
    /// More than the window holds, or a window beyond 2^31 - 1.
    #[error("it broke flow control")]
    FlowControl,
    /// A header block cannot be decoded.
    #[error("{0}")]
    Block(#[from] BlockError),
    /// Very many frames that bring nothing forward.
    #[error("it sent too many frames that mean nothing")]
    Flood,
}

impl Violation {
    /// The code for GOAWAY (RFC 9113, 7).
    pub fn code(self) -> u32 {
        match self {
            Self::NotHttp2 | Self::Rules(_) => code::PROTOCOL_ERROR,
            Self::FrameSize => code::FRAME_SIZE_ERROR,
            Self::FlowControl => code::FLOW_CONTROL_ERROR,
            Self::Block(BlockError::TooLarge) | Self::Flood => code::ENHANCE_YOUR_CALM,
            Self::Block(_) => code::COMPRESSION_ERROR,
        }
    }
}
