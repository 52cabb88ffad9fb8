//! The span events of New Relic's agents: `[run, {"reservoir_size", "events_seen"}, [event, …]]`, an event being three objects: what the
//! agent says of the span (intrinsics), attributes of the program, attributes of the agent. Their names and units are those of
//! <https://github.com/newrelic/newrelic-python-agent> and its kin; the field's names replace the agent's where there are any.
//!
//! An agent keeps a random sample of the spans of a minute (a reservoir). It says how many there were, so how many were lost.

use bumpalo::Bump;

use crate::broken::Broken;
use crate::gather::Gatherer;
use crate::ids::hex_exact;
use crate::json::reader::Reader;
use crate::loss::Stage;
use crate::span::{Batch, Kind, Source, Span, Status};
use crate::value::Value;

/// Why a span without a trace id or an id, or with a parent that is none, can never be stored.
const IDS: [&str; 3] = [
    "traceId is not 32 hexadecimal digits, or all zeros",
    "guid is not 16 hexadecimal digits, or all zeros",
    "parentId is not 16 hexadecimal digits",
];
/// Bytes of a usual span.
const USUAL_SPAN: usize = 500;

/// All spans of a request, and how many the agent threw away. Which service sends them is known from its address.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump, service: &[u8]) -> Result<Batch<'a>, Broken> {
    let source = Source { service: arena.alloc_slice_copy(service), instance: None };
    let mut gatherer = Gatherer::new(arena, body.len() / USUAL_SPAN);
    let mut reader = Reader::new(body, arena);
    let (mut part, mut seen, mut sent) = (0, 0, 0);
    reader.array(|reader| {
        part += 1;
        match part {
            2 => reader.object(|reader, key| match key {
                b"events_seen" => {
                    seen = reader.value()?.whole().and_then(|events| u64::try_from(events).ok()).unwrap_or(0);
                    Ok(())
                }
                _ => reader.skip(),
            }),
            3 => reader.array(|reader| {
                sent += 1;
                event(reader, &mut gatherer, source)
            }),
            _ => reader.skip(),
        }
    })?;
    reader.end()?;
    if seen > sent {
        gatherer.lose(source, Stage::Reservoir, b"events_seen", seen - sent);
    }
    Ok(gatherer.finish())
}

/// Adds a span, if the event is one.
fn event<'a>(reader: &mut Reader<'a>, gatherer: &mut Gatherer<'a>, source: Source<'a>) -> Result<(), Broken> {
    let mut found = Found::default();
    gatherer.begin();
    let mut part = 0;
    reader.array(|reader| {
        part += 1;
        let size = match part {
            1 => reader.measured(|reader, key| found.intrinsic(reader, key, gatherer))?,
            2 | 3 => reader.measured(|reader, key| found.attribute(reader, key, gatherer))?,
            _ => return reader.skip(),
        };
        found.span.size = found.span.size.saturating_add(size);
        Ok(())
    })?;
    if found.is_span() {
        found.push(gatherer, source);
    }
    Ok(())
}

/// A span in the making.
#[derive(Debug, Default)]
struct Found<'a> {
    span: Span<'a>,
    parent_id: &'a [u8],
    category: &'a [u8],
    is_entry: bool,
    /// `Span`, `SpanLink`, `SpanEvent`.
    kind_of_event: &'a [u8],
}

impl<'a> Found<'a> {
    /// Links and events of spans come as events of their own.
    fn is_span(&self) -> bool {
        matches!(self.kind_of_event, b"Span" | b"")
    }

    fn intrinsic(&mut self, reader: &mut Reader<'a>, key: &[u8], gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
        match (key, reader.value()?) {
            (b"type", Value::Text(kind)) => self.kind_of_event = kind,
            (b"traceId", Value::Text(id)) => self.span.trace_id = hex_exact(id).unwrap_or_default(),
            (b"guid", Value::Text(id)) => self.span.span_id = hex_exact(id).unwrap_or_default(),
            (b"parentId", Value::Text(id)) => self.parent_id = id,
            (b"name", Value::Text(name)) => self.span.operation = name,
            // ms.
            (b"timestamp", at) => {
                let ms = at.whole().and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0);
                self.span.start_ns = ms.saturating_mul(1_000_000);
            }
            // Seconds.
            (b"duration", took) => self.span.duration_ns = (took.real().unwrap_or(0.0) * 1e9).round() as i64,
            (b"span.kind", Value::Text(kind)) => self.span.kind = Kind::named(kind),
            (b"nr.entryPoint", Value::Truth(is_entry)) => self.is_entry = is_entry,
            (b"category", Value::Text(category)) => {
                self.category = category;
                gatherer.text(key, category);
            }
            // What all have, and what says how the agent sampled.
            (b"sampled" | b"priority" | b"transactionId", _) => {}
            (_, value) => attribute(key, value, gatherer),
        }
        Ok(())
    }

    fn attribute(&mut self, reader: &mut Reader<'a>, key: &[u8], gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
        let value = reader.value()?;
        if matches!(key, b"error.class" | b"error.message") && value != Value::Json(b"null") {
            self.span.status = Status::Error;
        }
        attribute(key, value, gatherer);
        Ok(())
    }

    fn push(mut self, gatherer: &mut Gatherer<'a>, source: Source<'a>) {
        if gatherer.reject_without_ids(&mut self.span, self.parent_id, IDS).is_some() {
            return;
        }
        if self.span.kind == Kind::Unspecified {
            self.span.kind = match (self.is_entry, self.category) {
                (true, _) => Kind::Server,
                (false, b"http" | b"datastore") => Kind::Client,
                _ => Kind::Internal,
            };
        }
        self.span.source = gatherer.source(source);
        gatherer.push(self.span);
    }
}

/// An attribute by the field's name, if there is one. Agents send `null` for what they do not know.
fn attribute(key: &[u8], value: Value<'_>, gatherer: &mut Gatherer<'_>) {
    if value == Value::Json(b"null") {
        return;
    }
    let name: &[u8] = match key {
        b"http.statusCode" | b"response.status" => b"http.response.status_code",
        b"http.method" | b"request.method" => b"http.request.method",
        b"http.url" => b"url.full",
        b"request.uri" => b"url.path",
        b"db.statement" => b"db.query.text",
        b"db.instance" => b"db.namespace",
        b"db.collection" => b"db.collection.name",
        b"db.operation" => b"db.operation.name",
        b"peer.hostname" => b"server.address",
        b"error.class" => b"error.type",
        other => other,
    };
    gatherer.attribute(name, value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::hex;
    use crate::testing::broken;

    const ENTRY: &str = concat!(
        r#"[{"type":"Span","traceId":"0123456789abcdef0123456789abcdef","guid":"1111111111111111","#,
        r#""parentId":"abcdefabcdef0123","transactionId":"2222222222222222","sampled":true,"priority":1.9,"#,
        r#""timestamp":1795712400000,"duration":0.004123,"name":"WebTransaction/Function/vets","category":"generic","#,
        r#""nr.entryPoint":true,"transaction.name":"vets"},{"number":7},{"request.method":"GET","request.uri":"/vets","#,
        r#""response.status":"200","error.class":null}]"#,
    );
    const QUERY: &str = concat!(
        r#"[{"traceId":"0123456789abcdef0123456789abcdef","guid":"3333333333333333","parentId":"1111111111111111","#,
        r#""timestamp":1795712400001,"duration":0.001,"name":"Datastore/select","category":"datastore","#,
        r#""span.kind":"client","component":"Postgres"},{},{"db.statement":"SELECT 1","error.class":"Oops"}]"#,
    );

    fn body(events: &[&str], seen: u64) -> String {
        format!(r#"["run",{{"reservoir_size":2000,"events_seen":{seen}}},[{}]]"#, events.join(","))
    }

    #[test]
    fn spans_and_what_the_reservoir_threw_away() {
        let (arena, body) =
            (Bump::new(), body(&[ENTRY, QUERY, r#"[{"guid":"1"},{},{}]"#, r#"[{"type":"SpanLink"},{},{}]"#], 11));
        let batch = decode(body.as_bytes(), &arena, b"pets").expect("sound");
        let source = Source { service: b"pets", instance: None };
        assert_eq!((&batch.sources[..], batch.rejected, batch.reason), (&[source][..], 1, Some(IDS[0])));
        let losses = batch.losses.iter().map(|loss| (loss.source, loss.stage, loss.spans, loss.is_cumulative));
        assert_eq!(losses.collect::<Vec<_>>(), [(source, Stage::Reservoir, 7, false)]);
        let [entry, query] = batch.spans[..] else { panic!("two spans") };
        assert_eq!((entry.kind, query.kind), (Kind::Server, Kind::Client));
        assert_eq!((entry.status, query.status), (Status::Unset, Status::Error));
        assert_eq!((entry.parent_id, query.parent_id), (hex(b"abcdefabcdef0123"), hex(b"1111111111111111")));
        assert_eq!((entry.start_ns, entry.duration_ns), (1_795_712_400_000_000_000, 4_123_000));
        assert_eq!(query.start_ns, 1_795_712_400_001_000_000, "exactly");
        assert_eq!(entry.operation, b"WebTransaction/Function/vets");
        let expected = concat!(
            r#"{"category":"generic","transaction.name":"vets","number":7,"http.request.method":"GET","#,
            r#""url.path":"/vets","http.response.status_code":"200"}"#,
        );
        assert_eq!(entry.attributes.json(), expected);
        let expected =
            r#"{"category":"datastore","component":"Postgres","db.query.text":"SELECT 1","error.type":"Oops"}"#;
        assert_eq!(query.attributes.json(), expected);
    }

    #[test]
    fn no_span_events() {
        for wrong in ["hello", "{}", "[\"run\",{},[{}]]", "[\"run\",{},[[1]]]", "[\"run\",{},[]] x"] {
            assert!(decode(wrong.as_bytes(), &Bump::new(), b"pets").is_err(), "{wrong}");
        }
        for none in ["[]", "[\"run\",{},[]]", "[null,null,null]"] {
            let (arena, empty) = (Bump::new(), (0, 0));
            let batch = decode(none.as_bytes(), &arena, b"pets").expect(none);
            assert_eq!((batch.spans.len(), batch.losses.len()), empty, "{none}");
        }
    }

    proptest! {
        #[test]
        fn broken_events(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let body = broken(body(&[ENTRY, QUERY], 2).as_bytes(), at, byte, cut);
            let _ = decode(&body, &Bump::new(), b"pets");
        }
    }
}
