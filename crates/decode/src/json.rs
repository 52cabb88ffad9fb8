//! JSON written by hand, value by value, straight into a buffer.

pub(crate) mod reader;

use crate::value::Value;

/// `"key":value`, with the bracket or comma before it.
pub fn member(key: &[u8], value: Value<'_>, first: bool, out: &mut Vec<u8>) {
    self::key(key, first, out);
    self::value(value, out);
}

/// `"key":`, with the bracket or comma before it.
pub(crate) fn key(key: &[u8], first: bool, out: &mut Vec<u8>) {
    out.push(if first { b'{' } else { b',' });
    string(key, out);
    out.push(b':');
}

/// Any value.
pub(crate) fn value(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) => string(text, out),
        Value::Whole(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Real(number) => double(number, out),
        Value::Truth(truth) => out.extend_from_slice(if truth { b"true" } else { b"false" }),
        Value::Json(json) => out.extend_from_slice(json),
    }
}

/// A number; infinities and NaN as strings, as in OTLP's own JSON.
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

/// A string; broken UTF-8 is shown with replacement characters.
pub(crate) fn string(bytes: &[u8], out: &mut Vec<u8>) {
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
