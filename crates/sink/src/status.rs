//! `google.rpc.Status`, encoded by hand: how gRPC says what went wrong, and OTLP over HTTP too.

use unladen_decode::wire::{put_bytes, put_number};

/// Codes of `google.rpc.Code`, which are also the status codes of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// The message cannot be decoded, ever.
    InvalidArgument = 3,
    /// Too large.
    ResourceExhausted = 8,
    /// No such service, method or compression.
    Unimplemented = 12,
    /// gRPC's own framing is broken.
    Internal = 13,
    /// May pass later.
    Unavailable = 14,
}

/// A `google.rpc.Status`.
pub(crate) fn status(code: Code, message: &str) -> Vec<u8> {
    let mut status = Vec::new();
    put_number(&mut status, 1, code as u64);
    put_bytes(&mut status, 2, message.as_bytes());
    status
}

/// A `google.rpc.Status` that says when to come again: OTLP's way of throttling a sender.
pub(crate) fn status_with_retry(code: Code, message: &str, after_seconds: u64) -> Vec<u8> {
    let mut duration = Vec::new();
    put_number(&mut duration, 1, after_seconds);
    let mut retry_info = Vec::new();
    put_bytes(&mut retry_info, 1, &duration);
    let mut any = Vec::new();
    put_bytes(&mut any, 1, b"type.googleapis.com/google.rpc.RetryInfo");
    put_bytes(&mut any, 2, &retry_info);
    let mut status = status(code, message);
    put_bytes(&mut status, 3, &any);
    status
}
