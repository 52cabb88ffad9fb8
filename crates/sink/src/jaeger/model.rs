//! A `PostSpansRequest` (jaegertracing/jaeger-idl, `api_v2/collector.proto` and `model.proto`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bumpalo::Bump;

use super::{SPAN_ID, SpecialTags, TRACE_ID};
use crate::broken::Broken;
use crate::buffers::size;
use crate::gather::Gatherer;
use crate::ids::padded;
use crate::span::{Batch, Source, Span};
use crate::value::Value;
use crate::wire::{self, Fields, WireError};

/// Bytes of a usual span.
const USUAL_SPAN: usize = 300;

/// All spans of a request.
pub(crate) fn decode<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, body.len() / USUAL_SPAN);
    let mut request = Fields::of(body);
    while let Some((field, value)) = request.next()? {
        if field == 1 {
            batch(value.bytes()?, &mut gatherer)?;
        }
    }
    Ok(gatherer.finish())
}

fn batch<'a>(message: &'a [u8], gatherer: &mut Gatherer<'a>) -> Result<(), WireError> {
    // The process follows its spans on the wire: so it is read in a pass of its own.
    let mut source = Source::default();
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        if field == 2 {
            source = process(value.bytes()?)?;
        }
    }
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        if field == 1 {
            span(value.bytes()?, source, gatherer)?;
        }
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
                let tag = tag(value.bytes()?)?;
                if let (b"service.instance.id", wire::Value::Bytes(text)) = (tag.key, tag.value) {
                    source.instance = Some(text);
                }
            }
            _ => {}
        }
    }
    Ok(source)
}

fn span<'a>(message: &'a [u8], mut source: Source<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), WireError> {
    let (mut trace_id, mut span_id, mut parent_id) = (None, None, None);
    let (mut operation, mut start, mut duration) = (&[][..], 0, 0);
    let mut special = SpecialTags::default();
    gatherer.begin();
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => trace_id = padded(value.bytes()?),
            2 => span_id = padded(value.bytes()?),
            3 => operation = value.bytes()?,
            4 => {
                let (span, is_child) = reference(value.bytes()?)?;
                // What a span follows from is its parent only if there is no other.
                if parent_id.is_none() || is_child {
                    parent_id = span;
                }
            }
            6 => start = seconds_and_nanos(value.bytes()?)?,
            7 => duration = seconds_and_nanos(value.bytes()?)?,
            8 => attribute(&tag(value.bytes()?)?, &mut special, gatherer),
            10 => source = process(value.bytes()?)?,
            _ => {}
        }
    }
    let Some(trace_id) = trace_id else {
        gatherer.reject(TRACE_ID);
        return Ok(());
    };
    let Some(span_id) = span_id else {
        gatherer.reject(SPAN_ID);
        return Ok(());
    };
    let source = gatherer.source(source);
    let (kind, status, size) = (special.kind, special.status(), size(message.len()));
    let times = Span::lasting(u64::try_from(start).unwrap_or(0), duration);
    gatherer.push(Span { source, trace_id, span_id, parent_id, kind, operation, status, size, ..times });
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

struct Tag<'a> {
    key: &'a [u8],
    kind: u64,
    value: wire::Value<'a>,
}

fn tag(message: &[u8]) -> Result<Tag<'_>, WireError> {
    // A value that is the default of its type is left out.
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
    let default = [wire::Value::Bytes(&[]), wire::Value::Varint(0), wire::Value::Varint(0), wire::Value::Fixed64(0)];
    let position = usize::try_from(kind).unwrap_or(usize::MAX);
    let default = default.get(position).copied().unwrap_or(wire::Value::Bytes(&[]));
    Ok(Tag { key, kind, value: values.get(position).copied().flatten().unwrap_or(default) })
}

fn attribute(tag: &Tag<'_>, special: &mut SpecialTags, gatherer: &mut Gatherer<'_>) {
    match (tag.kind, tag.value) {
        (0, wire::Value::Bytes(text)) => {
            special.text(tag.key, text);
            gatherer.attribute(tag.key, Value::Text(text));
        }
        (1, wire::Value::Varint(number)) => {
            special.truth(tag.key, number != 0);
            gatherer.attribute(tag.key, Value::Truth(number != 0));
        }
        (2, wire::Value::Varint(number)) => gatherer.attribute(tag.key, Value::Whole(number as i64)),
        (3, wire::Value::Fixed64(bits)) => gatherer.attribute(tag.key, Value::Real(f64::from_bits(bits))),
        (4, wire::Value::Bytes(bytes)) => gatherer.attribute(tag.key, Value::Text(STANDARD.encode(bytes).as_bytes())),
        // A value of another type than the tag says: the span is sound without it.
        _ => {}
    }
}
