//! The whole sink over real sockets: what real clients send, what broken ones send, and what is on disk afterwards.

mod admin;
mod azure;
mod child;
mod crash;
mod datadog;
mod duckdb;
mod faults;
mod grpc;
mod hostile;
mod http;
mod instana;
mod loss;
mod newrelic;
mod payloads;
mod pinpoint;
mod pressure;
mod protocols;
mod run;
mod senders;
mod sentry;
mod streaming;
mod support;
mod xray;
