//! HTTP/1.1 as a client speaks it (RFC 9112): requests written from a template, responses read piece by piece. No sockets.

pub(crate) mod chunked;
pub(crate) mod head;
pub(crate) mod request;
pub(crate) mod response;

/// Why bytes are not an HTTP/1.1 response. Text for people, fitting "the answer is not HTTP/1.1: …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// The first line does not look like `HTTP/1.1 200 OK`.
    #[error("broken status line")]
    StatusLine,
    /// A header line has no colon or a forbidden character.
    #[error("broken header line")]
    Header,
    /// The head is longer than 64 KiB.
    #[error("head longer than 64 KiB")]
    HeadTooLong,
    /// The length is not a number, or two lengths differ.
    #[error("broken or contradictory length")]
    Length,
    /// The transfer coding is not `chunked` alone.
    #[error("unknown transfer coding")]
    TransferCoding,
    /// A chunk's size line or end is broken.
    #[error("broken chunk")]
    Chunk,
    /// More than 100 interim (1xx) responses came before the final one, or the protocol was switched.
    #[error("unexpected interim responses")]
    Interim,
    /// Bytes came that no request had asked for.
    #[error("bytes that belong to no request")]
    Unsolicited,
}
