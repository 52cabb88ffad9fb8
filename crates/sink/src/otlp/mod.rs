//! The OpenTelemetry protocol, <https://opentelemetry.io/docs/specs/otlp/>: one receiver for gRPC, one for HTTP, one
//! decoder for both.

pub(crate) mod decode;
pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod json;
pub(crate) mod metrics;
pub(crate) mod reply;
