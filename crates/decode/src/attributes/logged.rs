//! Attributes in an encoding of their own: how decoders keep what cannot stay as it came, and how the sink's store logs them.

use crate::buffers::{put_bytes, take, take_bytes};
use crate::value::{Value, Visitor};

/// Appends one attribute.
#[inline]
pub fn put(key: &[u8], value: Value<'_>, out: &mut Vec<u8>) {
    put_bytes(key, out);
    match value {
        Value::Text(text) => {
            out.push(0);
            put_bytes(text, out);
        }
        Value::Json(json) => {
            out.push(1);
            put_bytes(json, out);
        }
        Value::Whole(number) => {
            out.push(2);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Value::Real(number) => {
            out.push(3);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Value::Truth(truth) => out.extend_from_slice(&[4, u8::from(truth)]),
    }
}

/// Shows what [`put`] appended.
#[inline]
pub fn visit(mut rest: &[u8], visitor: &mut impl Visitor) {
    let mut before = rest;
    while let Some(key) = take_bytes(&mut rest) {
        let value = take::<1>(&mut rest).and_then(|[kind]| match kind {
            0 => take_bytes(&mut rest).map(Value::Text),
            1 => take_bytes(&mut rest).map(Value::Json),
            2 => take(&mut rest).map(|number| Value::Whole(i64::from_le_bytes(number))),
            3 => take(&mut rest).map(|number| Value::Real(f64::from_le_bytes(number))),
            _ => take(&mut rest).map(|[truth]| Value::Truth(truth != 0)),
        });
        let Some(value) = value else { return };
        let encoded = &before[..before.len() - rest.len()];
        if !visitor.takes(encoded) {
            visitor.attribute(encoded, key, value);
        }
        before = rest;
    }
}
