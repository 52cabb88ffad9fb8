//! The whole sink over real sockets: what real clients send, what broken ones send, and what is on disk afterwards.

mod child;
mod crash;
mod grpc;
mod http;
mod run;
mod support;
