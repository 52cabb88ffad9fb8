//! Why a message cannot be decoded, whatever its format.

use thiserror::Error;

use crate::wire::WireError;

/// Why a message cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Broken {
    /// It is not Protocol Buffers.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It is not the text, the Thrift or the MessagePack it should be.
    #[error("{what} at byte {at}")]
    At {
        /// What was found, or not found.
        what: &'static str,
        /// Where, from the start of the message.
        at: usize,
    },
}

impl Broken {
    /// The same of a message of which what is broken is a part, so many bytes from its start.
    pub fn behind(self, start: usize) -> Self {
        match self {
            Self::At { what, at } => Self::At { what, at: at + start },
            wire @ Self::Wire(_) => wire,
        }
    }
}
