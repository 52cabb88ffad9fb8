//! When to send, how to send, what came back: unladen's load generator. Usable alone.
//!
//! A [`plan::Plan`] goes in, [`outcome::Event`]s and an [`outcome::Outcome`] come out of [`run`]; [`child`] does the same over
//! standard input and output. Open loop: requests are due at instants fixed in advance (closed form, nanoseconds), are sent
//! late rather than dropped, and their latency counts from the due time, so that a stall of the service cannot hide itself
//! (coordinated omission). The crate knows nothing of studies, spans or verdicts.

pub mod alternate;
pub mod bodies;
pub mod capacity;
mod check;
pub mod child;
mod engine;
pub mod error;
#[doc(hidden)]
pub mod fuzz;
mod gather;
mod grpc;
mod h2;
pub mod histogram;
mod http1;
pub mod merge;
mod named;
mod network;
pub mod outcome;
pub mod pace;
pub mod plan;
mod ready;
mod record;
mod run;
mod script;
pub mod shard;
pub mod summary;
mod sys;
pub mod target;
pub mod targets;
pub mod threshold;
mod tls;
pub mod trace;
pub mod trust;
pub mod warning;

pub use error::LoadError;
pub use run::run;
