//! HTTP/2 as a client that sends the same requests over and over speaks it (RFC 9113): own framing, header blocks that are
//! encoded once; the connection itself is `unladen-http2`'s. No sockets, no clock.

pub(crate) mod captured;
mod control;
mod heads;
mod receive;
pub(crate) mod request;
pub(crate) mod session;
#[cfg(test)]
mod session_tests;
mod streams;

pub(crate) use unladen_http2::{Violation, frame, hpack};
