//! What both encodings of Jaeger's spans share: which spans can never be stored, and what tags say.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::gather::Gatherer;
use crate::span::{Kind, Span, Status};
use crate::value::Value;

/// Why a span without a trace id or an id can never be stored.
pub(super) const IDS: [&str; 2] =
    ["a span's trace id is not 16 bytes, or all zeros", "a span's id is not 8 bytes, or all zeros"];

/// Number of the type of bytes, in both encodings; until they are here they come as text.
const BINARY: u8 = 4;

/// Adds a tag to the span at hand. Some say more than an attribute.
pub(super) fn add(key: &[u8], kind: u8, value: Value<'_>, span: &mut Span<'_>, gatherer: &mut Gatherer<'_>) {
    match (key, value) {
        (_, Value::Text(bytes)) if kind == BINARY => {
            return gatherer.attribute(key, Value::Text(STANDARD.encode(bytes).as_bytes()));
        }
        (b"span.kind", Value::Text(name)) => span.kind = Kind::named(name),
        (b"error", Value::Text(b"true") | Value::Truth(true)) => span.status = Status::Error,
        (b"error", Value::Truth(false)) => span.status = Status::Unset,
        _ => {}
    }
    gatherer.attribute(key, value);
}
