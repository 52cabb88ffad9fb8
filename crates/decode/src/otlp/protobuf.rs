//! Walks an `ExportTraceServiceRequest` (opentelemetry-proto, `trace_service.proto` and `trace.proto`) without copying:
//! spans are slices of the body. A broken message gives an error and no span at all, so that what the sender is told
//! (refused) is what is counted. Attributes, events and links are not looked into here.

use bumpalo::Bump;

use crate::attributes::RawAttributes;
use crate::attributes::otlp::ATTRIBUTE;
use crate::broken::Broken;
use crate::buffers::size;
use crate::span::{Batch, Kind, Source, Span, Status};
use crate::wire::{Fields, Value, WireError, pair, repeated};

/// Why a span can never be stored.
pub(super) const TRACE_ID: &str = "a span's trace id is not 16 bytes, or all zeros";
pub(super) const SPAN_ID: &str = "a span's id is not 8 bytes, or all zeros";
pub(super) const PARENT_ID: &str = "a span's parent id is neither empty nor 8 bytes";

/// Bytes of a usual span; most are larger.
const USUAL_SPAN: usize = 320;

/// All spans of a request. Nothing is put into the arena.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], _: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut batch = Batch::default();
    // So that most messages need no second allocation.
    batch.spans.reserve(body.len() / USUAL_SPAN);
    for group in repeated(body, 1) {
        resource_spans(group?, &mut batch)?;
    }
    Ok(batch)
}

fn resource_spans<'a>(message: &'a [u8], batch: &mut Batch<'a>) -> Result<(), WireError> {
    // The resource may follow its spans on the wire, and parts of it may come apart: so it is read in a pass of its own.
    let mut source = Source::default();
    for part in repeated(message, 1) {
        resource(part?, &mut source)?;
    }
    let known = batch.sources.len();
    for scope in repeated(message, 2) {
        for message in repeated(scope?, 2) {
            match span(message?, known as u32)? {
                Ok(span) => {
                    // Only a source with spans is kept: a body of empty ones must not grow into gigabytes.
                    if batch.push(span) && batch.sources.len() == known {
                        batch.sources.push(source);
                    }
                }
                Err(reason) => batch.reject(reason),
            }
        }
    }
    Ok(())
}

/// What a `Resource` says of the process.
///
/// # Errors
/// If it is not Protocol Buffers.
pub fn resource<'a>(message: &'a [u8], source: &mut Source<'a>) -> Result<(), WireError> {
    for attribute in repeated(message, 1) {
        let (key, value) = pair(attribute?)?;
        match key {
            b"service.name" => source.service = string(value)?.unwrap_or_default(),
            b"service.instance.id" => source.instance = string(value)?,
            _ => {}
        }
    }
    Ok(())
}

/// The string in an `AnyValue`, if it is one.
fn string(message: &[u8]) -> Result<Option<&[u8]>, WireError> {
    let mut found = None;
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (1, Value::Bytes(bytes)) => found = Some(bytes),
            (1, _) => return Err(WireError::Type),
            (2..=7, _) => found = None,
            _ => {}
        }
    }
    Ok(found)
}

/// A span, or why it cannot be stored.
#[inline]
fn span(message: &[u8], source: u32) -> Result<Result<Span<'_>, &'static str>, WireError> {
    let (mut trace_id, mut span_id, mut parent_id, mut operation) = (&[][..], &[][..], &[][..], &[][..]);
    let (mut start, mut end, mut kind, mut status) = (0, 0, Kind::default(), Status::default());
    let mut attributes = &[][..];
    let mut fields = Fields::of(message);
    loop {
        let rest = fields.rest();
        let Some((field, value)) = fields.next()? else { break };
        match field {
            1 => trace_id = value.bytes()?,
            2 => span_id = value.bytes()?,
            4 => parent_id = value.bytes()?,
            5 => operation = value.bytes()?,
            6 => kind = Kind::of(value.varint()?),
            7 => start = value.fixed64()?,
            8 => end = value.fixed64()?,
            9 => {
                value.bytes()?;
                // Whoever reads them need not pass over what stands before.
                if attributes.is_empty() {
                    attributes = rest;
                }
                while fields.another(ATTRIBUTE).is_some() {}
            }
            15 => status_of(value.bytes()?, &mut status)?,
            _ => {}
        }
    }
    let Some(trace_id) = id::<16>(trace_id) else { return Ok(Err(TRACE_ID)) };
    let Some(span_id) = id::<8>(span_id) else { return Ok(Err(SPAN_ID)) };
    if !parent_id.is_empty() && parent_id.len() != 8 {
        return Ok(Err(PARENT_ID));
    }
    Ok(Ok(Span {
        source,
        trace_id,
        span_id,
        parent_id: id::<8>(parent_id),
        kind,
        operation,
        start_ns: start,
        duration_ns: Span::until(start, end),
        status,
        is_shared: false,
        size: size(message.len()),
        attributes: RawAttributes::Otlp(attributes),
    }))
}

/// An id of the right length that is not all zeros (W3C Trace Context calls zeros invalid).
fn id<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    <[u8; N]>::try_from(bytes).ok().filter(|id| *id != [0; N])
}

fn status_of(message: &[u8], status: &mut Status) -> Result<(), WireError> {
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        if field == 3 {
            *status = Status::of(value.varint()?);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "protobuf_tests.rs"]
mod tests;
