//! Bytes that a service receives and sends over TCP.
