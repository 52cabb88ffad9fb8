//! What an agent hands in every few seconds: `[run, {"reservoir_size", "events_seen"}, [event, …]]`.
//!
//! An agent keeps a random sample of the spans of a minute (a reservoir). It says how many there were, so how many were lost.

use bumpalo::Bump;

use super::found::Found;
use crate::broken::Broken;
use crate::gather::Gatherer;
use crate::json::reader::Reader;
use crate::loss::Stage;
use crate::span::{Batch, Source};

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
                    seen = reader.value()?.count();
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
            1 => reader.measured(|reader, key| {
                found.intrinsic(key, reader.value()?, gatherer);
                Ok(())
            })?,
            2 | 3 => reader.measured(|reader, key| {
                found.attribute(key, reader.value()?, gatherer);
                Ok(())
            })?,
            _ => return reader.skip(),
        };
        found.takes(size);
        Ok(())
    })?;
    found.push(gatherer, source);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::found::IDS;
    use super::*;
    use crate::ids::hex;
    use crate::span::{Kind, Status};
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
