//! Attributes of an OTLP span as one JSON object: strings, numbers, booleans, arrays and objects as such; bytes as
//! base64, infinities and NaN as strings (both as in OTLP's own JSON); an empty value as `null`.
//!
//! Forgiving, because the span itself is sound: an attribute that cannot be decoded is left out, broken UTF-8 is shown
//! with replacement characters.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::decode::key_value;
use crate::config::Attributes;
use crate::wire::{Fields, Value, WireError};

/// Values within values that are followed; deeper ones become `null`.
const MAX_DEPTH: u32 = 16;

/// Appends the attributes of an encoded `Span`; appends nothing and returns false if none is wanted.
pub(crate) fn write_json(span: &[u8], which: Attributes, out: &mut Vec<u8>) -> bool {
    if which == Attributes::None {
        return false;
    }
    let start = out.len();
    let mut fields = Fields::of(span);
    // The span was decoded once, so it is sound: an error cannot come.
    while let Ok(Some((field, value))) = fields.next() {
        if field != 9 {
            continue;
        }
        if let Ok((key, content)) = value.bytes().and_then(key_value)
            && (which == Attributes::All || is_telling(key))
        {
            member(key, content, out.len() == start, 0, out);
        }
    }
    let any = out.len() > start;
    if any {
        out.push(b'}');
    }
    any
}

/// Attributes that name the operation or its outcome, by OpenTelemetry's semantic conventions, old and new.
fn is_telling(key: &[u8]) -> bool {
    matches!(
        key,
        b"http.request.method"
            | b"http.method"
            | b"http.route"
            | b"http.response.status_code"
            | b"http.status_code"
            | b"http.target"
            | b"url.path"
            | b"rpc.system"
            | b"rpc.system.name"
            | b"rpc.service"
            | b"rpc.method"
            | b"rpc.grpc.status_code"
            | b"rpc.response.status_code"
            | b"db.system"
            | b"db.system.name"
            | b"db.operation"
            | b"db.operation.name"
            | b"db.collection.name"
            | b"messaging.system"
            | b"messaging.operation"
            | b"messaging.operation.type"
            | b"messaging.destination.name"
            | b"server.address"
            | b"peer.service"
            | b"error.type"
    )
}

/// `"key":value`, with the bracket or comma before it; nothing if the value is broken.
fn member(key: &[u8], content: &[u8], first: bool, depth: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(if first { b'{' } else { b',' });
    string(key, out);
    out.push(b':');
    if value(content, depth, out).is_err() {
        out.truncate(start);
    }
}

/// An `AnyValue`.
fn value(message: &[u8], depth: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut content = None;
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        // A oneof: the last one counts.
        if (1..=7).contains(&field) {
            content = Some((field, value));
        }
    }
    match content {
        Some((1, Value::Bytes(bytes))) => string(bytes, out),
        Some((2, Value::Varint(number))) => out.extend_from_slice(if number == 0 { b"false" } else { b"true" }),
        Some((3, Value::Varint(number))) => out.extend_from_slice((number as i64).to_string().as_bytes()),
        Some((4, Value::Fixed64(bits))) => double(f64::from_bits(bits), out),
        Some((5, Value::Bytes(list))) if depth < MAX_DEPTH => array(list, depth + 1, out)?,
        Some((6, Value::Bytes(list))) if depth < MAX_DEPTH => object(list, depth + 1, out)?,
        Some((7, Value::Bytes(bytes))) => string(STANDARD.encode(bytes).as_bytes(), out),
        None | Some((5 | 6, Value::Bytes(_))) => out.extend_from_slice(b"null"),
        Some(_) => return Err(WireError::Type),
    }
    Ok(())
}

fn array(message: &[u8], depth: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
    out.push(b'[');
    let mut first = true;
    let mut fields = Fields::of(message);
    while let Some((field, item)) = fields.next()? {
        if field == 1 {
            if !first {
                out.push(b',');
            }
            first = false;
            value(item.bytes()?, depth, out)?;
        }
    }
    out.push(b']');
    Ok(())
}

fn object(message: &[u8], depth: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    let mut fields = Fields::of(message);
    while let Some((field, entry)) = fields.next()? {
        if field == 1 {
            let (key, content) = key_value(entry.bytes()?)?;
            member(key, content, out.len() == start, depth, out);
        }
    }
    out.extend_from_slice(if out.len() == start { b"{}" } else { b"}" });
    Ok(())
}

fn double(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        // `{:?}` prints the shortest digits that read back as the same number, which JSON takes as they are.
        out.extend_from_slice(format!("{number:?}").as_bytes());
    } else {
        let name: &[u8] = if number.is_nan() {
            b"\"NaN\""
        } else if number > 0.0 {
            b"\"Infinity\""
        } else {
            b"\"-Infinity\""
        };
        out.extend_from_slice(name);
    }
}

fn string(bytes: &[u8], out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(bytes);
    out.push(b'"');
    let mut plain = 0;
    for (position, byte) in text.bytes().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..0x20 => b"",
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[plain..position]);
        if escape.is_empty() {
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
        } else {
            out.extend_from_slice(escape);
        }
        plain = position + 1;
    }
    out.extend_from_slice(&text.as_bytes()[plain..]);
    out.push(b'"');
}
