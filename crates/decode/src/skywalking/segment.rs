//! `SegmentObject` and `SegmentCollection` (`language-agent/Tracing.proto`), walked without copying.

use bumpalo::Bump;

use super::found::{Found, Segment};
use crate::attributes::RawAttributes;
use crate::attributes::skywalking::TAG;
use crate::broken::Broken;
use crate::buffers::size;
use crate::frames::Together;
use crate::gather::Gatherer;
use crate::span::Batch;
use crate::wire::{Fields, WireError, repeated};

/// Bytes of a usual span.
const USUAL_SPAN: usize = 350;

/// Segments that came together.
///
/// # Errors
/// If one is not of this format, or ends too early. Then none of their spans may be counted.
pub fn decode<'a>(messages: Together<'a>, arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, messages.bytes().len() / USUAL_SPAN);
    for message in messages.each() {
        segment(message, &mut gatherer)?;
    }
    Ok(gatherer.finish())
}

/// Several segments.
///
/// # Errors
/// If the message is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode_collection<'a>(message: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, 0);
    for message in repeated(message, 1) {
        segment(message?, &mut gatherer)?;
    }
    Ok(gatherer.finish())
}

fn segment<'a>(message: &'a [u8], gatherer: &mut Gatherer<'a>) -> Result<(), WireError> {
    // Service and instance follow the spans on the wire: so they are read in a pass of their own.
    let mut segment = Segment::default();
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => segment.trace_id = value.bytes()?,
            2 => segment.id = value.bytes()?,
            4 => segment.service = value.bytes()?,
            5 => segment.instance = value.bytes()?,
            _ => {}
        }
    }
    let mut segment = segment.shared();
    for message in repeated(message, 3) {
        let (found, attributes) = span(message?)?;
        found.push(&mut segment, Some(attributes), gatherer);
    }
    Ok(())
}

/// A span, and its fields from the first on that is an attribute.
fn span(message: &[u8]) -> Result<(Found<'_>, RawAttributes<'_>), WireError> {
    let mut found = Found { size: size(message.len()), ..Found::default() };
    let mut attributes = &[][..];
    let mut fields = Fields::of(message);
    loop {
        let rest = fields.rest();
        let Some((field, value)) = fields.next()? else { break };
        match field {
            1 => found.id = value.int32()?.into(),
            2 => found.parent = value.int32()?.into(),
            3 => found.start = value.varint()? as i64,
            4 => found.end = value.varint()? as i64,
            5 => {
                let reference = reference(value.bytes()?)?;
                found.reference.get_or_insert(reference);
            }
            6 => found.operation = value.bytes()?,
            8 => found.kind = value.int32()?.into(),
            9 => found.layer = value.int32()?.into(),
            11 => found.is_error = value.varint()? != 0,
            // Peer and tags: read when they are stored, and only then.
            7 | 12 => {
                value.bytes()?;
                if attributes.is_empty() {
                    attributes = rest;
                }
                while fields.another(TAG).is_some() {}
            }
            _ => {}
        }
    }
    Ok((found, RawAttributes::Skywalking(attributes)))
}

/// Segment and span that a reference names.
fn reference(message: &[u8]) -> Result<(&[u8], i64), WireError> {
    let (mut segment, mut span) = (&[][..], 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            3 => segment = value.bytes()?,
            4 => span = value.int32()?.into(),
            _ => {}
        }
    }
    Ok((segment, span))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::super::found::NO_SEGMENT;
    use super::*;
    use crate::ids;
    use crate::span::{Kind, Status};
    use crate::testing::{broken, message};

    #[derive(Clone, PartialEq, Message)]
    struct Pair {
        #[prost(string, tag = "1")]
        key: String,
        #[prost(string, tag = "2")]
        value: String,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Reference {
        #[prost(int32, tag = "1")]
        ref_type: i32,
        #[prost(string, tag = "2")]
        trace_id: String,
        #[prost(string, tag = "3")]
        segment: String,
        #[prost(int32, tag = "4")]
        span: i32,
    }

    #[derive(Clone, PartialEq, Message)]
    struct SpanObject {
        #[prost(int32, tag = "1")]
        id: i32,
        #[prost(int32, tag = "2")]
        parent: i32,
        #[prost(int64, tag = "3")]
        start: i64,
        #[prost(int64, tag = "4")]
        end: i64,
        #[prost(message, repeated, tag = "5")]
        refs: Vec<Reference>,
        #[prost(string, tag = "6")]
        operation: String,
        #[prost(string, tag = "7")]
        peer: String,
        #[prost(int32, tag = "8")]
        kind: i32,
        #[prost(int32, tag = "9")]
        layer: i32,
        #[prost(bool, tag = "11")]
        is_error: bool,
        #[prost(message, repeated, tag = "12")]
        tags: Vec<Pair>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct SegmentObject {
        #[prost(string, tag = "1")]
        trace_id: String,
        #[prost(string, tag = "2")]
        id: String,
        #[prost(message, repeated, tag = "3")]
        spans: Vec<SpanObject>,
        #[prost(string, tag = "4")]
        service: String,
        #[prost(string, tag = "5")]
        instance: String,
    }

    fn object() -> SegmentObject {
        let entry = SpanObject {
            id: 0,
            parent: -1,
            start: 1_700_000_000_000,
            end: 1_700_000_000_007,
            refs: vec![Reference { segment: "far".into(), span: 3, ..Reference::default() }],
            operation: "GET:/vets".into(),
            layer: 3,
            tags: vec![Pair { key: "http.method".into(), value: "GET".into() }],
            ..SpanObject::default()
        };
        let exit =
            SpanObject { id: 1, parent: 0, kind: 1, layer: 1, is_error: true, peer: "db:3306".into(), ..entry.clone() };
        let local = SpanObject { id: 2, parent: 1, kind: 2, ..SpanObject::default() };
        SegmentObject {
            trace_id: "0af7651916cd43dd8448eb211c80319c".into(),
            id: "a1.2.3".into(),
            spans: vec![entry, exit, local],
            service: "pets".into(),
            instance: "pets-1".into(),
        }
    }

    #[test]
    fn spans() {
        let (body, arena) = (object().encode_to_vec(), Bump::new());
        let batch = decode(Together::One(&body), &arena).expect("sound");
        assert_eq!((batch.spans.len(), batch.rejected, batch.sources.len()), (3, 0, 1));
        assert_eq!((batch.sources[0].service, batch.sources[0].instance), (&b"pets"[..], Some(&b"pets-1"[..])));
        let [entry, exit, local] = [batch.spans[0], batch.spans[1], batch.spans[2]];
        assert_eq!(entry.trace_id, ids::hex::<16>(b"0af7651916cd43dd8448eb211c80319c").expect("hex"));
        assert_eq!(entry.parent_id, Some(ids::span_id(b"far", 3)), "the reference leads to another segment");
        assert_eq!((exit.parent_id, local.parent_id), (Some(entry.span_id), Some(exit.span_id)));
        assert_eq!((entry.kind, exit.kind, local.kind), (Kind::Server, Kind::Client, Kind::Internal));
        assert_eq!((entry.status, exit.status), (Status::Unset, Status::Error));
        assert_eq!((entry.start_ns, entry.duration_ns), (1_700_000_000_000_000_000, 7_000_000));
        assert_eq!(exit.attributes.json(), r#"{"http.method":"GET","peer":"db:3306"}"#);
    }

    #[test]
    fn collections_and_segments_without_ids() {
        let nameless = SegmentObject { id: String::new(), ..object() };
        let lost = SegmentObject { trace_id: String::new(), ..object() };
        let segments = [object(), nameless, lost, SegmentObject { trace_id: "a.b.1".into(), ..object() }];
        let body: Vec<u8> = segments.iter().flat_map(|segment| message(&[(1, &segment.encode_to_vec())])).collect();
        let arena = Bump::new();
        let batch = decode_collection(&body, &arena).expect("sound");
        assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (6, 6, Some(NO_SEGMENT)));
        assert_eq!(batch.spans[3].trace_id, ids::trace_id(b"a.b.1"));
        assert_ne!(batch.spans[3].trace_id, batch.spans[0].trace_id);
    }

    #[test]
    fn a_broken_tag_is_left_out() {
        // Out of order: attributes may stand anywhere.
        let span = message(&[
            (12, b"\x0a\x01a\x12\x01b"),
            (12, b"\x0a\x09cut"),
            (12, b"\x12\x01d\x0a\x01c"),
            (6, b"GET:/vets"),
            (7, b"db:3306"),
        ]);
        let body = message(&[(1, b"0af7651916cd43dd8448eb211c80319c"), (2, b"a1.2.3"), (3, &span)]);
        let arena = Bump::new();
        let batch = decode(Together::One(&body), &arena).expect("sound but for a tag");
        assert_eq!(batch.spans[0].attributes.json(), r#"{"a":"b","c":"d","peer":"db:3306"}"#);
        assert_eq!(batch.spans[0].operation, b"GET:/vets");
    }

    proptest! {
        #[test]
        fn broken_segments(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let body = broken(&object().encode_to_vec(), at, byte, cut);
            let arena = Bump::new();
            let ours = decode(Together::One(&body), &arena);
            if let Ok(decoded) = SegmentObject::decode(&body[..]) {
                let batch = ours.expect("prost decoded it");
                prop_assert_eq!(batch.spans.len() as u64 + batch.rejected, decoded.spans.len() as u64);
            }
        }
    }
}
