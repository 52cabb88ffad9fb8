//! The OpenTelemetry protocol, <https://opentelemetry.io/docs/specs/otlp/>: spans as Protocol Buffers or JSON, and the metrics by which SDKs
//! tell of spans that they lost.

pub mod json;
pub mod metrics;
pub mod protobuf;
