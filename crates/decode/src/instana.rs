//! The spans of Instana's tracers, a list of JSON objects, as they hand them to the agent of their host
//! (<https://github.com/instana/python-sensor>, <https://github.com/instana/nodejs>), and what they say of spans that they dropped.
//!
//! All spans of a list are of one process. Trace ids have 64 bits: of a longer one, which only the first span of a trace knows, they are
//! its low half.

use bumpalo::Bump;

use crate::broken::Broken;
use crate::gather::Gatherer;
use crate::ids::{hex, hex_exact};
use crate::json::reader::Reader;
use crate::loss::{LossCount, Stage};
use crate::span::{Batch, Kind, Source, Span, Status};
use crate::times;
use crate::value::Value;

/// Why a span without a trace id or an id, or with a parent that is none, can never be stored.
const IDS: [&str; 3] = [
    "t is not 1 to 32 hexadecimal digits, or all zeros",
    "s is not 16 hexadecimal digits, or all zeros",
    "p is not 16 hexadecimal digits",
];
/// Bytes of a service's name that are remembered: what is more is no name.
const MAX_SERVICE: usize = 1_024;
/// Bytes of a usual span.
const USUAL_SPAN: usize = 500;

/// All spans of a list. `process` is that of its sender, and `service` its service as far as a list before said so; if this one does, it
/// becomes that.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump, process: &[u8], service: &mut Vec<u8>) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, body.len() / USUAL_SPAN);
    let (mut reader, mut own, mut source) = (Reader::new(body, arena), None, None);
    reader.array(|reader| {
        let span = span(reader, &mut gatherer, &mut own)?;
        if let Some(span) = span {
            let source = *source.get_or_insert_with(|| gatherer.fresh_source());
            gatherer.push(Span { source, ..span });
        }
        Ok(())
    })?;
    reader.end()?;
    if let Some(own) = own {
        service.clear();
        service.extend_from_slice(&own[..own.len().min(MAX_SERVICE)]);
    }
    let known = Source { service: arena.alloc_slice_copy(service), instance: Some(arena.alloc_slice_copy(process)) };
    gatherer.known_source(source, known);
    Ok(gatherer.finish())
}

/// What a tracer says of its spans since it last did: those that it dropped, as losses. `service_of` knows the service of a process.
///
/// # Errors
/// If the body is not of this format, or ends too early.
pub fn losses(
    body: &[u8],
    service_of: impl FnOnce(u64) -> Vec<u8>,
    tell: impl FnOnce(LossCount<'_>),
) -> Result<(), Broken> {
    let arena = Bump::new();
    let mut reader = Reader::new(body, &arena);
    let (mut process, mut dropped) = (0, 0);
    reader.object(|reader, key| match key {
        b"pid" => reader.value().map(|id| process = id.count()),
        b"metrics" => reader.object(|reader, key| match key {
            b"dropped" => reader.value().map(|spans| dropped = spans.count()),
            _ => reader.skip(),
        }),
        _ => reader.skip(),
    })?;
    reader.end()?;
    if dropped > 0 {
        let service = service_of(process);
        let source = Source { service: &service, instance: None };
        let (stage, metric) = (Stage::Queue, &b"dropped"[..]);
        tell(LossCount { source, stage, metric, series: 0, spans: dropped, is_cumulative: false });
    }
    Ok(())
}

/// A span, unless it can never be stored; its attributes are in the gatherer.
fn span<'a>(
    reader: &mut Reader<'a>,
    gatherer: &mut Gatherer<'a>,
    service: &mut Option<&'a [u8]>,
) -> Result<Option<Span<'a>>, Broken> {
    let (mut span, mut parent_id, mut errors, mut own_name) = (Span::default(), &[][..], 0, None);
    gatherer.begin();
    span.size = reader.measured(|reader, key| {
        if key == b"data" {
            return data(reader, gatherer, service, &mut own_name);
        }
        match (key, reader.value()?) {
            (b"t", Value::Text(id)) => span.trace_id = low_half(id),
            (b"s", Value::Text(id)) => span.span_id = hex_exact(id).unwrap_or_default(),
            (b"p", Value::Text(id)) => parent_id = id,
            (b"n", Value::Text(name)) => span.operation = name,
            (b"k", kind) => span.kind = kind_of(kind.whole().unwrap_or(0)),
            // ms.
            (b"ts", at) => span.start_ns = times::of_ms(at.count()),
            (b"d", took) => span.duration_ns = took.whole().unwrap_or(0).saturating_mul(1_000_000),
            (b"ec", count) => errors = count.whole().unwrap_or(0),
            _ => {}
        }
        Ok(())
    })?;
    span.operation = own_name.unwrap_or(span.operation);
    span.status = if errors > 0 { Status::Error } else { Status::Unset };
    Ok(gatherer.reject_without_ids(&mut span, parent_id, IDS).is_none().then_some(span))
}

/// What a span says beside its place: members of groups, such as `http`, the service, and the name of one that the program made itself.
fn data<'a>(
    reader: &mut Reader<'a>,
    gatherer: &mut Gatherer<'a>,
    service: &mut Option<&'a [u8]>,
    own_name: &mut Option<&'a [u8]>,
) -> Result<(), Broken> {
    let mut name = Vec::new();
    reader.object(|reader, group| {
        if reader.peek() != Some(b'{') {
            match (group, reader.value()?) {
                (b"service", Value::Text(own)) if !own.is_empty() => *service = Some(own),
                (b"service", _) => {}
                (key, value) => attribute(key, value, gatherer),
            }
            return Ok(());
        }
        reader.object(|reader, key| {
            if group == b"sdk" && key == b"custom" && reader.peek() == Some(b'{') {
                return custom(reader, gatherer);
            }
            name.clear();
            name.extend_from_slice(group);
            name.push(b'.');
            name.extend_from_slice(key);
            match (&name[..], reader.value()?) {
                (b"sdk.name", Value::Text(text)) => *own_name = Some(text),
                (name, value) => attribute(name, value, gatherer),
            }
            Ok(())
        })
    })
}

/// The attributes of a span that the program made itself.
fn custom<'a>(reader: &mut Reader<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    reader.object(|reader, key| match (key, reader.peek()) {
        (b"tags", Some(b'{')) => reader.object(|reader, key| {
            attribute(key, reader.value()?, gatherer);
            Ok(())
        }),
        _ => reader.skip(),
    })
}

/// An attribute by the field's name, if there is one.
fn attribute(key: &[u8], value: Value<'_>, gatherer: &mut Gatherer<'_>) {
    if value.is_null() {
        return;
    }
    let name: &[u8] = match key {
        b"http.method" => b"http.request.method",
        b"http.status" => b"http.response.status_code",
        b"http.path_tpl" => b"http.route",
        b"http.path" => b"url.path",
        b"http.url" => b"url.full",
        b"http.host" => b"server.address",
        b"pg.stmt" | b"mysql.stmt" | b"mssql.stmt" | b"db2.stmt" | b"sqlalchemy.sql" => b"db.query.text",
        other => other,
    };
    gatherer.attribute(name, value);
}

/// Entries, exits and what is between them.
fn kind_of(number: i64) -> Kind {
    match number {
        1 => Kind::Server,
        2 => Kind::Client,
        _ => Kind::Internal,
    }
}

/// The last 64 bits of a trace id.
fn low_half(id: &[u8]) -> [u8; 16] {
    let low: Option<[u8; 8]> = hex(&id[id.len().saturating_sub(16)..]);
    let is_id = id.len() <= 32 && id.iter().all(u8::is_ascii_hexdigit);
    let mut trace_id = [0; 16];
    if let (Some(low), true) = (low, is_id) {
        trace_id[8..].copy_from_slice(&low);
    }
    trace_id
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::broken;

    const ENTRY: &str = concat!(
        r#"{"t":"8899aabbccddeeff","s":"1111111111111111","p":"abcdefabcdef0123","n":"wsgi","k":1,"ts":1795712400000,"#,
        r#""d":4,"f":{"e":"17","h":"unladen"},"ec":null,"lt":"00112233445566778899aabbccddeeff","stack":[],"#,
        r#""data":{"service":"pets","http":{"method":"GET","status":200,"path_tpl":"/vets","url":null},"sdk":{"a":{"b":[1]}}}}"#,
    );
    const QUERY: &str = concat!(
        r#"{"data":{"pg":{"stmt":"SELECT 1","port":5432},"n":7},"t":"8899aabbccddeeff","s":"3333333333333333","#,
        r#""p":"1111111111111111","n":"postgres","k":2,"ts":1795712400001,"d":1,"ec":1}"#,
    );

    #[test]
    fn spans_of_a_process() {
        let (arena, body) = (Bump::new(), format!("[{QUERY},{ENTRY},{{\"t\":\"1\"}},{{\"s\":\"1\"}}]"));
        let mut service = b"other".to_vec();
        let batch = decode(body.as_bytes(), &arena, b"17", &mut service).expect("sound");
        assert_eq!(batch.sources, [Source { service: b"pets", instance: Some(b"17") }]);
        assert_eq!((service.as_slice(), batch.rejected, batch.reason), (&b"pets"[..], 2, Some(IDS[1])));
        let [query, entry] = batch.spans[..] else { panic!("two spans") };
        let mut trace = [0; 16];
        trace[8..].copy_from_slice(&0x8899_aabb_ccdd_eeff_u64.to_be_bytes());
        assert_eq!((query.trace_id, entry.trace_id), (trace, trace));
        assert_eq!((query.kind, entry.kind), (Kind::Client, Kind::Server));
        assert_eq!((query.status, entry.status), (Status::Error, Status::Unset));
        assert_eq!((query.parent_id, entry.parent_id), (Some([0x11; 8]), hex(b"abcdefabcdef0123")));
        assert_eq!((entry.start_ns, entry.duration_ns), (1_795_712_400_000_000_000, 4_000_000));
        assert_eq!((query.operation, query.size as usize), (&b"postgres"[..], QUERY.len()));
        let expected = concat!(
            r#"{"http.request.method":"GET","http.response.status_code":200,"http.route":"/vets","#,
            r#""sdk.a":{"b":[1]}}"#
        );
        assert_eq!(entry.attributes.json(), expected);
        assert_eq!(query.attributes.json(), r#"{"db.query.text":"SELECT 1","pg.port":5432,"n":7}"#);

        let later = format!("[{QUERY}]");
        let batch = decode(later.as_bytes(), &arena, b"17", &mut service).expect("sound");
        assert_eq!(batch.sources[0].service, b"pets", "as an earlier list said");
    }

    #[test]
    fn spans_of_the_program_have_its_names() {
        let one = |data: &str| {
            let body = format!(r#"[{{"n":"sdk","t":"1","s":"1111111111111111","k":3,"data":{data}}}]"#);
            let arena = Bump::new();
            let batch = decode(body.as_bytes(), &arena, b"17", &mut Vec::new()).expect("sound");
            let span = batch.spans[0];
            (String::from_utf8_lossy(span.operation).into_owned(), span.attributes.json())
        };
        let data =
            r#"{"sdk":{"custom":{"tags":{"number":7,"none":null},"events":{}},"type":"intermediate","name":"wählt"}}"#;
        assert_eq!(one(data), ("wählt".to_owned(), r#"{"number":7,"sdk.type":"intermediate"}"#.to_owned()));
        let data = r#"{"sdk":{"custom":{"tags":[1]},"name":null}}"#;
        assert_eq!(one(data), ("sdk".to_owned(), String::new()));
        assert_eq!(one(r#"{"sdk":{"custom":1}}"#), ("sdk".to_owned(), r#"{"sdk.custom":1}"#.to_owned()));
    }

    #[test]
    fn trace_ids_of_any_length() {
        let low = |id: &str| low_half(id.as_bytes());
        assert_eq!(low("00112233445566778899aabbccddeeff"), low("8899aabbccddeeff"));
        assert_eq!(low("0a")[15], 10);
        for none in ["", "0", "xyz", "0000000000000000", "x0112233445566778899aabbccddeeff", &"1".repeat(33)] {
            assert_eq!(low(none), [0; 16], "{none}");
        }
    }

    #[test]
    fn dropped_spans_are_losses() {
        let lost = |body: &str| {
            let mut lost = Vec::new();
            let service_of = |process: u64| format!("pets of {process}").into_bytes();
            losses(body.as_bytes(), service_of, |loss| {
                assert_eq!(loss.source.service, b"pets of 17");
                lost.push((loss.stage, loss.spans, loss.is_cumulative));
            })
            .map(|()| lost)
        };
        let body = r#"{"tracer":"nodejs-collector","pid":17,"metrics":{"opened":9,"closed":9,"dropped":3}}"#;
        assert_eq!(lost(body).expect("sound"), [(Stage::Queue, 3, false)]);
        assert!(lost(&body.replace(":3}", ":0}")).expect("sound").is_empty());
        assert!(lost("[]").is_err() && lost("{} x").is_err());
    }

    #[test]
    fn no_spans() {
        for wrong in ["hello", "{}", "[[]]", "[] x", "[{\"data\":{\"a\":{]}}]"] {
            assert!(decode(wrong.as_bytes(), &Bump::new(), b"1", &mut Vec::new()).is_err(), "{wrong}");
        }
        assert_eq!(decode(b"[]", &Bump::new(), b"1", &mut Vec::new()).expect("none").spans.len(), 0);
    }

    proptest! {
        #[test]
        fn broken_lists(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let body = broken(format!("[{ENTRY},{QUERY}]").as_bytes(), at, byte, cut);
            let _ = decode(&body, &Bump::new(), b"17", &mut Vec::new());
        }
    }
}
