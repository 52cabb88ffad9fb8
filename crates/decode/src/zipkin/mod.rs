//! Zipkin's lists of spans, version 2 (<https://zipkin.io/zipkin-api/>), as JSON or Protocol Buffers.

mod found;
pub mod json;
pub mod protobuf;
