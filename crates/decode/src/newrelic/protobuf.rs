//! Infinite Tracing: `Span` and `SpanBatch` of `com.newrelic.trace.v1`, as its agents stream them.

use bumpalo::Bump;

use super::found::Found;
use crate::broken::Broken;
use crate::buffers::size;
use crate::frames::Together;
use crate::gather::Gatherer;
use crate::span::{Batch, Source};
use crate::value::Value;
use crate::wire::{Fields, WireError, pair, repeated};

/// Bytes of a usual span.
const USUAL_SPAN: usize = 400;

/// What a message of a stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// One span: `RecordSpan`.
    One,
    /// Several: `RecordSpanBatch`.
    Many,
}

/// The spans of messages that came together. Which service sends them is known from its call.
///
/// # Errors
/// If one is not of this format, or ends too early. Then none of their spans may be counted.
pub fn decode<'a>(messages: Together<'a>, arena: &'a Bump, holds: Holds, service: &[u8]) -> Result<Batch<'a>, Broken> {
    let source = Source { service: arena.alloc_slice_copy(service), instance: None };
    let mut gatherer = Gatherer::new(arena, messages.bytes().len() / USUAL_SPAN);
    for message in messages.each() {
        add(message, holds, source, &mut gatherer)?;
    }
    Ok(gatherer.finish())
}

fn add<'a>(message: &'a [u8], holds: Holds, source: Source<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), WireError> {
    match holds {
        Holds::One => span(message, source, gatherer),
        Holds::Many => repeated(message, 1).try_for_each(|message| span(message?, source, gatherer)),
    }
}

fn span<'a>(message: &'a [u8], source: Source<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), WireError> {
    let mut found = Found::default();
    gatherer.begin();
    found.takes(size(message.len()));
    let mut fields = Fields::of(message);
    while let Some((field, entry)) = fields.next()? {
        match field {
            1 => found.intrinsic(b"traceId", Value::Text(entry.bytes()?), gatherer),
            2..=4 => {
                let (key, encoded) = pair(entry.bytes()?)?;
                let Some(value) = value(encoded)? else { continue };
                match field {
                    2 => found.intrinsic(key, value, gatherer),
                    _ => found.attribute(key, value, gatherer),
                }
            }
            _ => {}
        }
    }
    found.push(gatherer, source);
    Ok(())
}

/// An `AttributeValue`; `None` if nothing is set.
fn value(encoded: &[u8]) -> Result<Option<Value<'_>>, WireError> {
    let mut fields = Fields::of(encoded);
    let mut last = None;
    while let Some((field, value)) = fields.next()? {
        last = match field {
            1 => Some(Value::Text(value.bytes()?)),
            2 => Some(Value::Truth(value.varint()? != 0)),
            3 => Some(Value::Whole(value.varint()? as i64)),
            4 => Some(Value::Real(f64::from_bits(value.fixed64()?))),
            _ => last,
        };
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::found::IDS;
    use super::*;
    use crate::span::{Kind, Status};
    use crate::testing::{broken, message};
    use crate::wire::put_number;

    const TRACE: &[u8] = b"0123456789abcdef0123456789abcdef";

    fn text(text: &str) -> Vec<u8> {
        message(&[(1, text.as_bytes())])
    }

    fn whole(number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 3, number);
        out
    }

    fn real(number: f64) -> Vec<u8> {
        [&[4 << 3 | 1][..], &number.to_bits().to_le_bytes()].concat()
    }

    fn entry(map: u32, key: &str, value: &[u8]) -> Vec<u8> {
        message(&[(map, &message(&[(1, key.as_bytes()), (2, value)]))])
    }

    fn query(trace: &[u8]) -> Vec<u8> {
        [
            message(&[(1, trace)]),
            entry(2, "type", &text("Span")),
            entry(2, "traceId", &text("0123456789abcdef0123456789abcdef")),
            entry(2, "guid", &text("3333333333333333")),
            entry(2, "parentId", &text("1111111111111111")),
            entry(2, "timestamp", &whole(1_795_712_400_001)),
            entry(2, "duration", &real(0.001)),
            entry(2, "name", &text("Datastore/select")),
            entry(2, "category", &text("datastore")),
            entry(3, "nothing", &[]),
            entry(4, "db.statement", &text("SELECT 1")),
            entry(4, "error.class", &text("Oops")),
        ]
        .concat()
    }

    #[test]
    fn spans_alone_and_in_batches() {
        let (arena, one) = (Bump::new(), query(TRACE));
        let none = [entry(2, "type", &text("SpanLink")), message(&[(1, TRACE)])].concat();
        let many = message(&[(1, &one), (1, &none), (1, &message(&[(1, TRACE)]))]);
        let batch = decode(Together::One(&many), &arena, Holds::Many, b"pets").expect("sound");
        assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (1, 1, Some(IDS[1])));
        assert_eq!(batch.sources, [Source { service: b"pets", instance: None }]);
        let query = batch.spans[0];
        assert_eq!(
            (query.kind, query.status, query.operation),
            (Kind::Client, Status::Error, &b"Datastore/select"[..])
        );
        assert_eq!((query.start_ns, query.duration_ns), (1_795_712_400_001_000_000, 1_000_000));
        assert_eq!((query.span_id, query.parent_id), ([0x33; 8], Some([0x11; 8])));
        let expected = r#"{"category":"datastore","db.query.text":"SELECT 1","error.type":"Oops"}"#;
        assert_eq!(query.attributes.json(), expected);

        let framed = |message: &[u8]| [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat();
        let stream = [framed(&one), framed(&one)].concat();
        let batch = decode(Together::Framed(&stream), &arena, Holds::One, b"pets").expect("sound");
        assert_eq!((batch.spans.len(), batch.sources.len()), (2, 1));
    }

    proptest! {
        #[test]
        fn broken_spans(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let body = broken(&query(TRACE), at, byte, cut);
            let _ = decode(Together::One(&body), &Bump::new(), Holds::One, b"pets");
        }
    }
}
