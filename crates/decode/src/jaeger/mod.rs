//! Jaeger's batches, as Thrift or as Protocol Buffers.

pub mod model;
mod tags;
pub mod thrift;
