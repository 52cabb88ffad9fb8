#![doc = include_str!("../README.md")]
//! ## In and out
//!
//! A [`plan::Plan`] goes in, [`outcome::Event`]s and an [`outcome::Outcome`] come out of [`run`]; [`child`] does the same over
//! standard input and output.

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
pub mod parts;
pub mod plan;
mod ready;
mod record;
mod request;
mod run;
mod script;
mod second;
pub mod shard;
pub mod summary;
mod sys;
pub mod target;
pub mod targets;
pub mod threshold;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls_left_out.rs"]
mod tls;
pub mod trace;
pub mod trust;
pub mod warning;

pub use error::LoadError;
pub use run::run;
pub use unladen_pace as pace;
