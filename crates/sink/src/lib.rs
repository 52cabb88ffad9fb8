#![doc = include_str!("../README.md")]
//! ## In and out
//!
//! [`run`] is all of it: [`config::Config`] in, [`summary::Event`]s while it lives, a [`summary::Summary`] at the end.
//! [`child::main`] is the same as a process of its own. [`ledger`] compares the summary with what the load generator
//! sent. Spans flow in one direction: a receiver decodes (`otlp`), the hub books (`account`) and stores (`store`).

mod account;
mod admin;
mod arena;
mod body;
mod broken;
pub mod child;
pub mod config;
mod elastic;
mod error;
pub mod faults;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod gather;
mod grpc;
mod h2;
mod hub;
mod ids;
mod inbound;
mod inflate;
mod jaeger;
mod json;
pub mod ledger;
mod listen;
mod otlp;
pub mod requests;
mod rewind;
mod server;
mod skywalking;
mod span;
mod store;
pub mod summary;
mod web;
mod wire;
mod zipkin;

pub use error::SinkError;
pub use server::run;
pub use store::{Recovered, recover};
