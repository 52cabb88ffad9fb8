#![doc = include_str!("../README.md")]
//! ## The way through it
//!
//! A decoder ([`span::Decode`]: [`otlp`], [`zipkin`], [`jaeger`], [`skywalking`], [`elastic`], [`sentry`], [`azure`], [`datadog`],
//! [`xray`], [`newrelic`], [`pinpoint`], [`instana`]) makes a [`span::Batch`] of a message, on cursors over Protocol Buffers, Thrift, MessagePack and JSON that know no format. The attributes of a
//! span stay as they are encoded until somebody wants them; then [`attributes::RawAttributes::visit`] shows them to a [`value::Visitor`], one
//! by one. Agents also tell of spans that they lost: [`loss`]. [`wire`], [`json`] and [`buffers`] also write these encodings, for the answers
//! of a receiver and the files of a store; [`frames`] parts messages of gRPC that came together.

#![forbid(unsafe_code)]

pub mod attributes;
pub mod azure;
mod broken;
pub mod buffers;
pub mod datadog;
pub mod elastic;
pub mod frames;
mod gather;
mod ids;
pub mod instana;
pub mod jaeger;
pub mod json;
mod lines;
pub mod loss;
pub mod newrelic;
pub mod otlp;
pub mod pinpoint;
pub mod sentry;
pub mod skywalking;
pub mod span;
#[cfg(test)]
mod testing;
mod times;
pub mod value;
pub mod wire;
pub mod xray;
pub mod zipkin;

pub use broken::Broken;
pub use lines::lines;
