//! A `ListOfSpans` (openzipkin/zipkin-api, `zipkin.proto`).

use bumpalo::Bump;

use super::found::Found;
use crate::broken::Broken;
use crate::buffers::size;
use crate::gather::Gatherer;
use crate::ids::padded;
use crate::span::{Batch, Kind};
use crate::value::Value;
use crate::wire::{Fields, WireError, pair, repeated};

/// Bytes of a usual span.
const USUAL_SPAN: usize = 250;

/// By number.
const KINDS: [Kind; 5] = [Kind::Unspecified, Kind::Client, Kind::Server, Kind::Producer, Kind::Consumer];

/// All spans of a request.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, body.len() / USUAL_SPAN);
    for message in repeated(body, 1) {
        span(message?, &mut gatherer)?;
    }
    Ok(gatherer.finish())
}

fn span<'a>(message: &'a [u8], gatherer: &mut Gatherer<'a>) -> Result<(), WireError> {
    let mut found = Found::default();
    found.span.size = size(message.len());
    gatherer.begin();
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => found.span.trace_id = padded(value.bytes()?).unwrap_or_default(),
            2 => {
                let id = value.bytes()?;
                found.parent(padded(id), id.iter().any(|byte| *byte != 0));
            }
            3 => found.span.span_id = padded(value.bytes()?).unwrap_or_default(),
            4 => found.span.kind = KINDS.get(value.varint()? as usize).copied().unwrap_or_default(),
            5 => found.span.operation = value.bytes()?,
            6 => found.timestamp = value.fixed64()?,
            7 => found.duration = value.varint()?,
            8 => found.service = service_name(value.bytes()?)?,
            9 => found.remote = service_name(value.bytes()?)?,
            11 => {
                let (key, content) = pair(value.bytes()?)?;
                found.tag(key, Value::Text(content), gatherer);
            }
            13 => found.span.is_shared = value.varint()? != 0,
            _ => {}
        }
    }
    found.push(gatherer);
    Ok(())
}

fn service_name(endpoint: &[u8]) -> Result<&[u8], WireError> {
    repeated(endpoint, 1).try_fold(&[][..], |_, name| name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use prost::Message;

    use super::super::found::IDS;
    use super::*;
    use crate::span::Status;

    #[derive(Clone, PartialEq, Message)]
    struct Endpoint {
        #[prost(string, tag = "1")]
        service_name: String,
    }

    #[derive(Clone, PartialEq, Message)]
    struct SpanMessage {
        #[prost(bytes = "vec", tag = "1")]
        trace_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        parent_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "3")]
        id: Vec<u8>,
        #[prost(int32, tag = "4")]
        kind: i32,
        #[prost(string, tag = "5")]
        name: String,
        #[prost(fixed64, tag = "6")]
        timestamp: u64,
        #[prost(uint64, tag = "7")]
        duration: u64,
        #[prost(message, optional, tag = "8")]
        local: Option<Endpoint>,
        #[prost(message, optional, tag = "9")]
        remote: Option<Endpoint>,
        #[prost(map = "string, string", tag = "11")]
        tags: HashMap<String, String>,
        #[prost(bool, tag = "13")]
        shared: bool,
    }

    #[derive(Clone, PartialEq, Message)]
    struct ListOfSpans {
        #[prost(message, repeated, tag = "1")]
        spans: Vec<SpanMessage>,
    }

    fn list() -> ListOfSpans {
        let sound = SpanMessage {
            trace_id: vec![7; 8],
            parent_id: vec![2; 8],
            id: vec![3; 8],
            kind: 2,
            name: "get".into(),
            timestamp: 1_556_604_172_355_737,
            duration: 1_431,
            local: Some(Endpoint { service_name: "backend".into() }),
            remote: None,
            tags: HashMap::from([("error".into(), "500".into())]),
            shared: true,
        };
        let broken = SpanMessage { id: vec![1; 9], ..sound.clone() };
        ListOfSpans { spans: vec![sound, broken] }
    }

    #[test]
    fn spans() {
        let (body, arena) = (list().encode_to_vec(), Bump::new());
        let batch = decode(&body, &arena).expect("sound");
        assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (1, 1, Some(IDS[1])));
        let span = batch.spans[0];
        assert_eq!(span.trace_id, [0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7]);
        assert_eq!((span.span_id, span.parent_id, span.is_shared), ([3; 8], Some([2; 8]), true));
        assert_eq!((span.kind, span.status, span.operation), (Kind::Server, Status::Error, &b"get"[..]));
        assert_eq!((span.start_ns, span.duration_ns), (1_556_604_172_355_737_000, 1_431_000));
        assert_eq!(batch.sources[0].service, b"backend");
        assert_eq!(span.attributes.json(), r#"{"error":"500","zipkin.shared":true}"#);
        assert_eq!(span.size as usize, list().spans[0].encoded_len());
    }

    /// Why a body is refused that prost decodes; what both decode has as many spans.
    fn refused(body: &[u8], at: usize, byte: Option<u8>) -> Option<String> {
        let arena = Bump::new();
        match (ListOfSpans::decode(body), decode(body, &arena)) {
            (Ok(decoded), Ok(batch)) => {
                let spans = batch.spans.len() as u64 + batch.rejected;
                assert_eq!(spans, decoded.spans.len() as u64, "{at}: {byte:?}");
                None
            }
            (Ok(_), Err(error)) => Some(format!("{at}: {byte:?}: {error}")),
            (Err(_), _) => None,
        }
    }

    /// Every single byte changed to every value, and every cut: what prost decodes we decode, with as many spans.
    #[test]
    fn broken_lists() {
        let whole = list().encode_to_vec();
        let mut all = Vec::new();
        for at in 0..whole.len() {
            all.extend(refused(&whole[..at], at, None));
            for byte in 0..=u8::MAX {
                let mut body = whole.clone();
                body[at] = byte;
                // Of a map prost does not look at the wire type; a field 11 of another type is broken nevertheless.
                let is_overlooked = byte >> 3 == 11 && byte & 7 != 2;
                all.extend(refused(&body, at, Some(byte)).filter(|_| !is_overlooked));
            }
        }
        assert!(all.is_empty(), "{all:?}");
    }
}
