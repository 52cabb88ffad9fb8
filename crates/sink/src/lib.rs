#![doc = include_str!("../README.md")]
//! ## In and out
//!
//! [`run`] is all of it: [`config::Config`] in, [`summary::Event`]s while it lives, a [`summary::Summary`] at the end.
//! [`child::main`] is the same as a process of its own. [`unladen_ledger`] compares the summary with what the load generator
//! sent. Spans flow in one direction: a receiver (`otlp`, `zipkin`, …) hands a body and its decoder ([`unladen_decode`]) to the
//! hub; the decoder makes spans of it, and the hub counts them (`account`) and stores them (`store`), which has their attributes
//! shown to it one by one.

mod account;
mod admin;
mod answer;
mod arena;
mod azure;
mod body;
mod buffers;
pub mod child;
pub mod config;
mod datadog;
mod datagrams;
mod elastic;
mod error;
mod failure;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod grpc;
mod h2;
mod hub;
mod inbound;
mod inbox;
mod inflate;
mod instana;
mod jaeger;
mod listen;
mod newrelic;
mod otlp;
mod per_sender;
mod pinpoint;
pub mod requests;
mod rewind;
mod sentry;
mod server;
mod skywalking;
mod status;
mod store;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls_left_out.rs"]
mod tls;
mod web;
mod xray;
mod zipkin;

pub use error::SinkError;
pub use server::run;
pub use store::{Recovered, recover};
pub use unladen_ledger::{faults, summary};

/// File in the sink's folder with the certificate, as PEM, of the authority that those who come with TLS must trust. It is there if the sink
/// listens for New Relic's agents.
pub const CA_FILE: &str = "sink-ca.pem";
