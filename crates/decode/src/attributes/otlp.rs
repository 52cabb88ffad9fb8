//! Attributes of an OTLP span: strings, numbers and booleans as such; arrays and objects as JSON; bytes as base64,
//! infinities and NaN within them as strings (both as in OTLP's own JSON); an empty value as `null`.
//!
//! Forgiving, because the span itself is sound: an attribute that cannot be decoded is left out, broken UTF-8 is shown
//! with replacement characters.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::json;
use crate::value::{Value as Attribute, Visitor};
use crate::wire::{Fields, Value, WireError, pair, repeated};

/// Values within values that are followed; deeper ones become `null`.
const MAX_DEPTH: u32 = 16;

/// The tag of an attribute in a `Span`: field 9, of bytes.
pub(crate) const ATTRIBUTE: u8 = 9 << 3 | 2;

/// Shows the attributes among the fields of a `Span`, one by one.
#[inline]
pub(crate) fn visit(fields: &[u8], visitor: &mut impl Visitor) {
    let mut fields = Fields::of(fields);
    let mut json = Vec::new();
    loop {
        let rest = fields.rest();
        let field = match fields.another(ATTRIBUTE) {
            Some(attribute) => Ok(Some((9, Value::Bytes(attribute)))),
            None => fields.next(),
        };
        let attribute = match field {
            Ok(Some((9, Value::Bytes(attribute)))) => attribute,
            Ok(Some(_)) => continue,
            // The fields were walked once, so they are sound: an error cannot come.
            Ok(None) | Err(_) => return,
        };
        // As a whole: it is never empty.
        let encoded = &rest[..rest.len() - fields.rest().len()];
        if !visitor.takes(encoded)
            && let Ok((key, content)) = pair(attribute)
            && let Ok(value) = any_value(content, &mut json)
        {
            visitor.attribute(encoded, key, value);
        }
    }
}

/// An `AnyValue`; what is no plain value is written to `json`.
#[inline]
fn any_value<'a>(message: &'a [u8], json: &'a mut Vec<u8>) -> Result<Attribute<'a>, WireError> {
    // As every encoder writes it: one field. A short string, then a small number, are by far the most frequent.
    match message {
        [0x0a, length @ 0..0x80, text @ ..] if text.len() == usize::from(*length) => return Ok(Attribute::Text(text)),
        [0x18, number @ 0..0x80] => return Ok(Attribute::Whole(i64::from(*number))),
        [0x18, low @ 0x80..=0xff, high @ 0..0x80] => {
            return Ok(Attribute::Whole(i64::from(*low & 0x7f) | i64::from(*high) << 7));
        }
        _ => {}
    }
    seldom_value(message, json)
}

#[inline(never)]
fn seldom_value<'a>(message: &'a [u8], json: &'a mut Vec<u8>) -> Result<Attribute<'a>, WireError> {
    let content = content(message)?;
    if let Some(plain) = plain(content) {
        return Ok(plain);
    }
    json.clear();
    write(content, 0, json)?;
    Ok(Attribute::Json(json))
}

type Content<'a> = Option<(u32, Value<'a>)>;

/// What is the same in JSON.
fn plain(content: Content<'_>) -> Option<Attribute<'_>> {
    Some(match content? {
        (1, Value::Bytes(bytes)) => Attribute::Text(bytes),
        (2, Value::Varint(number)) => Attribute::Truth(number != 0),
        (3, Value::Varint(number)) => Attribute::Whole(number as i64),
        (4, Value::Fixed64(bits)) => Attribute::Real(f64::from_bits(bits)),
        _ => return None,
    })
}

/// The field of an `AnyValue` that counts.
#[inline]
fn content(message: &[u8]) -> Result<Content<'_>, WireError> {
    let mut content = None;
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        // A oneof: the last one counts.
        if (1..=7).contains(&field) {
            content = Some((field, value));
        }
    }
    Ok(content)
}

/// An `AnyValue` as JSON.
fn write(content: Content<'_>, depth: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
    if let Some(plain) = plain(content) {
        json::value(plain, out);
        return Ok(());
    }
    match content {
        Some((5, Value::Bytes(list))) if depth < MAX_DEPTH => array(list, depth + 1, out)?,
        Some((6, Value::Bytes(list))) if depth < MAX_DEPTH => object(list, depth + 1, out)?,
        Some((7, Value::Bytes(bytes))) => json::string(STANDARD.encode(bytes).as_bytes(), out),
        None | Some((5 | 6, Value::Bytes(_))) => out.extend_from_slice(b"null"),
        Some(_) => return Err(WireError::Type),
    }
    Ok(())
}

fn array(message: &[u8], depth: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    for item in repeated(message, 1) {
        out.push(if out.len() == start { b'[' } else { b',' });
        write(content(item?)?, depth, out)?;
    }
    out.extend_from_slice(if out.len() == start { b"[]" } else { b"]" });
    Ok(())
}

fn object(message: &[u8], depth: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    for entry in repeated(message, 1) {
        let (key, value) = pair(entry?)?;
        let before = out.len();
        json::key(key, before == start, out);
        // A value that is broken is left out.
        if content(value).and_then(|value| write(value, depth, out)).is_err() {
            out.truncate(before);
        }
    }
    out.extend_from_slice(if out.len() == start { b"{}" } else { b"}" });
    Ok(())
}
