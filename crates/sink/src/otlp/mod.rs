//! The OpenTelemetry protocol, <https://opentelemetry.io/docs/specs/otlp/>: one receiver for gRPC, one for HTTP.

pub(crate) mod grpc;
pub(crate) mod http;
mod reply;

use unladen_decode::otlp::metrics;

use crate::hub::Hub;

/// Counts the losses that a request with metrics tells; if it is broken, those that stand before the break: metrics are taken as a
/// courtesy.
fn count_losses(hub: &Hub, body: &[u8]) {
    let _ = metrics::visit(body, |loss| hub.reported(loss));
}
