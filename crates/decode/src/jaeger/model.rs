//! A `PostSpansRequest` (jaegertracing/jaeger-idl, `api_v2/collector.proto` and `model.proto`).

use bumpalo::Bump;

use super::tags;
use crate::broken::Broken;
use crate::buffers::size;
use crate::gather::Gatherer;
use crate::ids::padded;
use crate::span::{Batch, Source, Span};
use crate::value::Value;
use crate::wire::{self, Fields, WireError, repeated};

/// Bytes of a usual span.
const USUAL_SPAN: usize = 300;

/// All spans of a request.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, body.len() / USUAL_SPAN);
    for message in repeated(body, 1) {
        batch(message?, &mut gatherer)?;
    }
    Ok(gatherer.finish())
}

fn batch<'a>(message: &'a [u8], gatherer: &mut Gatherer<'a>) -> Result<(), WireError> {
    // The process follows its spans on the wire: so it is read in a pass of its own.
    let mut source = Source::default();
    for message in repeated(message, 2) {
        source = process(message?)?;
    }
    for message in repeated(message, 1) {
        span(message?, source, gatherer)?;
    }
    Ok(())
}

fn process(message: &[u8]) -> Result<Source<'_>, WireError> {
    let mut source = Source::default();
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => source.service = value.bytes()?,
            2 => {
                if let (b"service.instance.id", _, Some(Value::Text(text))) = tag(value.bytes()?)? {
                    source.instance = Some(text);
                }
            }
            _ => {}
        }
    }
    Ok(source)
}

fn span<'a>(message: &'a [u8], mut source: Source<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), WireError> {
    let mut span = Span { size: size(message.len()), ..Span::default() };
    gatherer.begin();
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => span.trace_id = padded(value.bytes()?).unwrap_or_default(),
            2 => span.span_id = padded(value.bytes()?).unwrap_or_default(),
            3 => span.operation = value.bytes()?,
            4 => {
                let (parent_id, is_child) = reference(value.bytes()?)?;
                // What a span follows from is its parent only if there is no other.
                if span.parent_id.is_none() || is_child {
                    span.parent_id = parent_id;
                }
            }
            6 => span.start_ns = u64::try_from(seconds_and_nanos(value.bytes()?)?).unwrap_or(0),
            7 => span.duration_ns = seconds_and_nanos(value.bytes()?)?,
            8 => {
                // A value of another type than the tag says: the span is sound without it.
                if let (key, kind, Some(value)) = tag(value.bytes()?)? {
                    tags::add(key, kind, value, &mut span, gatherer);
                }
            }
            10 => source = process(value.bytes()?)?,
            _ => {}
        }
    }
    if gatherer.has_ids(&span, tags::IDS) {
        span.source = gatherer.source(source);
        gatherer.push(span);
    }
    Ok(())
}

/// The span that a reference names, and whether this one is its child.
fn reference(message: &[u8]) -> Result<(Option<[u8; 8]>, bool), WireError> {
    let (mut span, mut is_child) = (None, true);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            2 => span = padded(value.bytes()?),
            3 => is_child = value.varint()? == 0,
            _ => {}
        }
    }
    Ok((span, is_child))
}

/// A `Timestamp` or `Duration`, ns.
fn seconds_and_nanos(message: &[u8]) -> Result<i64, WireError> {
    let (mut seconds, mut nanos) = (0_i64, 0_i64);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => seconds = value.varint()? as i64,
            2 => nanos = i64::from(value.varint()? as i32),
            _ => {}
        }
    }
    Ok(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// A `KeyValue`: its key, its type, and its value if that is of the type.
fn tag(message: &[u8]) -> Result<(&[u8], u8, Option<Value<'_>>), WireError> {
    let (mut key, mut kind, mut values) = (&[][..], 0, [None; 5]);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => key = value.bytes()?,
            2 => kind = value.varint()?,
            3..=7 => values[field as usize - 3] = Some(value),
            _ => {}
        }
    }
    let kind = u8::try_from(kind).unwrap_or(u8::MAX);
    let value = values.get(usize::from(kind)).copied().flatten();
    let value = match (kind, value) {
        (0 | 4, Some(wire::Value::Bytes(text))) => Some(Value::Text(text)),
        (1, Some(wire::Value::Varint(number))) => Some(Value::Truth(number != 0)),
        (2, Some(wire::Value::Varint(number))) => Some(Value::Whole(number as i64)),
        (3, Some(wire::Value::Fixed64(bits))) => Some(Value::Real(f64::from_bits(bits))),
        // A value that is the default of its type is left out.
        (0 | 4, None) => Some(Value::Text(&[])),
        (1, None) => Some(Value::Truth(false)),
        (2, None) => Some(Value::Whole(0)),
        (3, None) => Some(Value::Real(0.0)),
        _ => None,
    };
    Ok((key, kind, value))
}
