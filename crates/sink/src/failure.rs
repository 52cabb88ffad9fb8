//! Requests that fail: why, alike for all protocols, each of which has statuses of its own for it.

use crate::body::BodyError;
use crate::hub::{Hub, Refused};

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure<S> {
    /// Status.
    pub(crate) status: S,
    /// What to do.
    pub(crate) message: String,
}

/// The statuses of a protocol.
pub(crate) trait Statuses {
    /// What its messages come in.
    const BODY: &'static str;
    /// What one is not that cannot be decompressed.
    const COMPRESSED: &'static str;

    /// For a body that was not read.
    fn of_body(error: &BodyError) -> Self;

    /// For spans that are not taken.
    fn of_spans(refused: &Refused) -> Self;
}

impl<S> Failure<S> {
    /// A failure with its text.
    pub(crate) fn new(status: S, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl<S: Statuses> Failure<S> {
    /// Why a body was not read; counts it, unless it may pass later or nobody hears of it.
    pub(crate) fn unread(hub: &Hub, error: &BodyError) -> Self {
        let body = S::BODY;
        let message = match error {
            BodyError::TooLarge => {
                format!("the {body} is larger than {} bytes; send smaller batches", hub.max_message())
            }
            BodyError::Busy => "too many bytes are being received at once; try again".into(),
            BodyError::Connection => format!("the connection broke off within the {body}"),
            BodyError::Silent => format!("nothing came for too long in the middle of the {body}; send it at once"),
            BodyError::Compression => format!("the {body} cannot be decompressed {}", S::COMPRESSED),
        };
        if !matches!(error, BodyError::Busy | BodyError::Connection) {
            hub.undecodable();
        }
        Self::new(S::of_body(error), message)
    }

    /// Why spans are not taken; `what` they should have been.
    pub(crate) fn refused(reason: Refused, what: &str) -> Self {
        let message = match reason {
            Refused::Undecodable(error) => format!("this is no {what}: {error}"),
            Refused::Busy => "the store is behind; try again".into(),
            Refused::Closed => "the sink is closing".into(),
        };
        Self::new(S::of_spans(&reason), message)
    }
}
