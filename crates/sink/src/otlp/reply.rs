//! What OTLP answers: an `ExportTraceServiceResponse`, as protobuf or JSON.

use unladen_decode::wire::{put_bytes, put_number};

use crate::hub::Accepted;

/// An `ExportTraceServiceResponse`; all empty unless spans were rejected, as the specification wants it.
pub(crate) fn protobuf(Accepted { rejected, reason }: Accepted) -> Vec<u8> {
    let mut partial_success = Vec::new();
    put_number(&mut partial_success, 1, rejected);
    if let Some(reason) = reason {
        put_bytes(&mut partial_success, 2, reason.as_bytes());
    }
    let mut response = Vec::new();
    if !partial_success.is_empty() {
        put_bytes(&mut response, 1, &partial_success);
    }
    response
}

/// The same as JSON.
pub(crate) fn json(accepted: Accepted) -> String {
    match accepted {
        Accepted { rejected: 0, .. } => "{}".into(),
        Accepted { rejected, reason } => {
            let partial = serde_json::json!({
                // As text, because it is an int64.
                "rejectedSpans": rejected.to_string(),
                "errorMessage": reason.unwrap_or_default(),
            });
            serde_json::json!({ "partialSuccess": partial }).to_string()
        }
    }
}
