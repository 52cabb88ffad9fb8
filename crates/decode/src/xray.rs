//! Datagrams of AWS X-Ray (<https://docs.aws.amazon.com/xray/latest/devguide/xray-api-segmentdocuments.html>): a line that says how the
//! rest is written, then a segment, or a subsegment that was sent on its own. A segment is the part of a service in a request, with its
//! subsegments within it; each of them is a span.
//!
//! Of what is still in progress only the finished subsegments are spans: the rest of it comes again when it has ended.

use bumpalo::Bump;

use crate::broken::Broken;
use crate::buffers;
use crate::gather::Gatherer;
use crate::ids::{hex, hex_exact};
use crate::json::reader::Reader;
use crate::span::{Batch, Kind, Source, Span, Status};
use crate::times;
use crate::value::Value;

/// Why a span without a trace id or an id, or with a parent that is none, can never be stored.
const IDS: [&str; 3] = [
    "a segment's trace_id is not 1, 8 and 24 hexadecimal digits with hyphens between, or all zeros",
    "a segment's id is not 16 hexadecimal digits, or all zeros",
    "a segment's parent_id is not 16 hexadecimal digits",
];
const NO_END: &str = "a segment has neither an end_time nor in_progress";
const HEADER: Broken = Broken::At { what: "the first line is not {\"format\": \"json\", \"version\": 1}", at: 0 };
/// Bytes of a usual span.
const USUAL_SPAN: usize = 500;

/// All spans of a datagram.
///
/// # Errors
/// If the datagram is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(datagram: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let end = memchr::memchr(b'\n', datagram).ok_or(HEADER)?;
    let (header, document) = (&datagram[..end], &datagram[end + 1..]);
    if !is_header(header, arena) {
        return Err(HEADER);
    }
    let mut gatherer = Gatherer::new(arena, document.len() / USUAL_SPAN);
    let mut reader = Reader::new(document, arena);
    segment(&mut reader, None, &mut gatherer).and_then(|()| reader.end()).map_err(|error| error.behind(end + 1))?;
    Ok(gatherer.finish())
}

fn is_header(line: &[u8], arena: &Bump) -> bool {
    let mut reader = Reader::new(line, arena);
    let (mut is_json, mut is_first) = (false, false);
    let read = reader.object(|reader, key| {
        match (key, reader.value()?) {
            (b"format", Value::Text(format)) => is_json = format == b"json",
            (b"version", version) => is_first = version == Value::Whole(1),
            _ => {}
        }
        Ok(())
    });
    read.and_then(|()| reader.end()).is_ok() && is_json && is_first
}

/// What a subsegment has from what it is in.
#[derive(Debug, Clone, Copy)]
struct Outer<'a> {
    trace_id: [u8; 16],
    /// `None` if it has no sound one.
    span_id: Option<[u8; 8]>,
    service: &'a [u8],
}

/// Adds a segment or a subsegment, if it has ended, and the subsegments within it.
fn segment<'a>(reader: &mut Reader<'a>, outer: Option<Outer<'a>>, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    let mut found = Found::default();
    gatherer.begin();
    let size = reader.measured(|reader, key| found.member(reader, key, gatherer))?;
    // Less than nothing if what is below had broken UTF-8 in it, which takes more when it is replaced.
    found.span.size = size.saturating_sub(buffers::size(found.below.len()));
    let below = found.below;
    let here = found.push(outer, gatherer);
    if below.is_empty() {
        return Ok(());
    }
    // They may stand before what they need: so they are read when all else is known.
    Reader::new(below, gatherer.arena()).array(|reader| segment(reader, Some(here), gatherer))
}

/// A span in the making.
#[derive(Debug, Default)]
struct Found<'a> {
    span: Span<'a>,
    parent_id: &'a [u8],
    is_subsegment: bool,
    is_in_progress: bool,
    /// What a subsegment calls: `remote`, `aws` or nothing.
    namespace: &'a [u8],
    /// Unix time, ns.
    end_ns: Option<u64>,
    /// Its subsegments: an array.
    below: &'a [u8],
}

impl<'a> Found<'a> {
    fn member(&mut self, reader: &mut Reader<'a>, key: &[u8], gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
        match key {
            b"http" => {
                return members(reader, |reader, key| match key {
                    b"request" | b"response" => members(reader, |reader, key| http(reader, key, gatherer)),
                    _ => reader.skip(),
                });
            }
            b"annotations" => {
                return members(reader, |reader, key| reader.value().map(|value| attribute(gatherer, b"", key, value)));
            }
            b"metadata" | b"aws" | b"sql" | b"service" => {
                return members(reader, |reader, inner| {
                    let value = reader.value()?;
                    match (key, inner) {
                        (b"sql", b"sanitized_query") => attribute(gatherer, b"", b"db.query.text", value),
                        (b"sql", b"database_type") => attribute(gatherer, b"", b"db.system.name", value),
                        _ => attribute(gatherer, key, inner, value),
                    }
                    Ok(())
                });
            }
            b"cause" => return cause(reader, gatherer),
            _ => {}
        }
        match (key, reader.value()?) {
            (b"trace_id", Value::Text(id)) => self.span.trace_id = trace_id(id).unwrap_or_default(),
            (b"id", Value::Text(id)) => self.span.span_id = hex_exact(id).unwrap_or_default(),
            (b"parent_id", Value::Text(id)) => self.parent_id = id,
            (b"name", Value::Text(name)) => self.span.operation = name,
            (b"type", Value::Text(kind)) => self.is_subsegment = kind == b"subsegment",
            (b"namespace", Value::Text(namespace)) => self.namespace = namespace,
            (b"start_time", time) => self.span.start_ns = times::unix(time),
            (b"end_time", time @ (Value::Whole(_) | Value::Real(_))) => self.end_ns = Some(times::unix(time)),
            (b"in_progress", Value::Truth(is_in_progress)) => self.is_in_progress = is_in_progress,
            (b"error" | b"fault" | b"throttle", Value::Truth(true)) => self.span.status = Status::Error,
            (b"user", Value::Text(user)) => gatherer.text(b"user.id", user),
            (b"origin", Value::Text(origin)) => gatherer.text(b"aws.origin", origin),
            (b"subsegments", Value::Json(list)) if list.first() == Some(&b'[') => self.below = list,
            _ => {}
        }
        Ok(())
    }

    /// Adds the span, if it has ended; what the spans within it have from it.
    fn push(mut self, outer: Option<Outer<'a>>, gatherer: &mut Gatherer<'a>) -> Outer<'a> {
        if let Some(outer) = outer {
            // What is within something says itself where it is, or not.
            self.span.trace_id = outer.trace_id;
        }
        let service: &[u8] = match outer {
            Some(outer) => outer.service,
            // A subsegment that comes alone has the name of what it calls, and none of who calls.
            None if self.is_subsegment => b"",
            None => self.span.operation,
        };
        let id = self.span.span_id;
        let here = Outer { trace_id: self.span.trace_id, span_id: (id != [0; 8]).then_some(id), service };
        let Some(end_ns) = self.end_ns else {
            if !self.is_in_progress {
                gatherer.reject(NO_END);
            }
            return here;
        };
        let parent_id: &[u8] = if outer.is_some() { b"" } else { self.parent_id };
        if gatherer.reject_without_ids(&mut self.span, parent_id, IDS).is_some() {
            return here;
        }
        if let Some(outer) = outer {
            self.span.parent_id = outer.span_id;
        }
        self.span.kind = match (outer.is_some() || self.is_subsegment, self.namespace) {
            (false, _) => Kind::Server,
            (true, b"remote" | b"aws") => Kind::Client,
            (true, _) => Kind::Internal,
        };
        gatherer.text(b"aws.namespace", self.namespace);
        self.span.duration_ns = Span::until(self.span.start_ns, end_ns);
        self.span.source = gatherer.source(Source { service, instance: None });
        gatherer.push(self.span);
        here
    }
}

/// Leads through an object; anything else is of no interest.
fn members<'a>(
    reader: &mut Reader<'a>,
    member: impl FnMut(&mut Reader<'a>, &'a [u8]) -> Result<(), Broken>,
) -> Result<(), Broken> {
    if reader.peek() == Some(b'{') { reader.object(member) } else { reader.skip() }
}

/// An attribute, its key behind the name of the object that it is in; `null` is none.
fn attribute(gatherer: &mut Gatherer<'_>, within: &[u8], key: &[u8], value: Value<'_>) {
    match (within, value) {
        (_, Value::Json(b"null")) => {}
        (b"", value) => gatherer.attribute(key, value),
        (within, value) => gatherer.attribute(&[within, b".", key].concat(), value),
    }
}

/// What is said of a request or its answer.
fn http<'a>(reader: &mut Reader<'a>, key: &[u8], gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    match (key, reader.value()?) {
        (b"method", Value::Text(method)) => gatherer.text(b"http.request.method", method),
        (b"url", Value::Text(url)) => gatherer.text(b"url.full", url),
        (b"user_agent", Value::Text(agent)) => gatherer.text(b"user_agent.original", agent),
        (b"client_ip", Value::Text(address)) => gatherer.text(b"client.address", address),
        (b"status", status) => {
            if let Some(status @ 100..600) = status.whole() {
                gatherer.attribute(b"http.response.status_code", Value::Whole(status));
            }
        }
        (b"content_length", length @ Value::Whole(_)) => gatherer.attribute(b"http.response.body.size", length),
        _ => {}
    }
    Ok(())
}

/// Why a segment failed: exceptions, of which the first counts, or the id of another that has them.
fn cause<'a>(reader: &mut Reader<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    let mut is_first = true;
    members(reader, |reader, key| {
        if key != b"exceptions" || reader.peek() != Some(b'[') {
            return reader.skip();
        }
        reader.array(|reader| {
            if !std::mem::take(&mut is_first) {
                return reader.skip();
            }
            members(reader, |reader, key| {
                match (key, reader.value()?) {
                    (b"type", Value::Text(kind)) => gatherer.text(b"exception.type", kind),
                    (b"message", Value::Text(message)) => gatherer.text(b"exception.message", message),
                    _ => {}
                }
                Ok(())
            })
        })
    })
}

/// `1-`, the time as 8 hexadecimal digits, a hyphen and 24 more: the 128 bits of any other trace id.
fn trace_id(text: &[u8]) -> Option<[u8; 16]> {
    let (time, rest) = text.strip_prefix(b"1-")?.split_at_checked(8)?;
    let rest: &[u8; 24] = rest.strip_prefix(b"-")?.try_into().ok()?;
    let mut digits = [0; 32];
    digits[..8].copy_from_slice(time);
    digits[8..].copy_from_slice(rest);
    hex(&digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::broken;

    const LINE: &str = "{\"format\": \"json\", \"version\": 1}\n";
    /// As X-Ray's documentation has it, with a bit of everything.
    const SEGMENT: &str = concat!(
        r#"{"subsegments":[{"id":"0000000000000011","name":"pets@db","namespace":"remote","start_time":1478293361.5,"end_time":1478293361.75,"#,
        r#""error":true,"throttle":true,"sql":{"sanitized_query":"SELECT ?","database_type":"MySQL","user":"me"},"#,
        r#""cause":{"working_directory":"/","exceptions":[{"id":"1","type":"Gone","message":"no \"db\"","stack":[]},{"type":"Other"}]},"#,
        r#""type":"subsegment","trace_id":"ignored","parent_id":"ignored","#,
        r#""subsegments":[{"id":"0000000000000012","name":"wählt","start_time":1478293361.5,"end_time":1478293361.5,"fault":false}]},"#,
        r#"{"id":"0000000000000013","name":"S3","namespace":"aws","start_time":1478293361.5,"in_progress":true}],"#,
        r#""name":"pets","id":"70de5b6f19ff9a0a","start_time":1.478293361271E9,"trace_id":"1-581cf771-a006649127e371903a2de979","#,
        r#""end_time":1478293362,"parent_id":"abcdefabcdef0123","user":"ada","origin":"AWS::EC2::Instance","in_progress":false,"#,
        r#""http":{"request":{"method":"GET","url":"http://h1/vets","client_ip":"10.0.0.1","user_agent":"curl","traced":true},"#,
        r#""response":{"status":503,"content_length":60}},"fault":true,"#,
        r#""annotations":{"color":"red","size":7,"none":null},"metadata":{"default":{"a":[1]}},"aws":{"operation":"Get"},"#,
        r#""service":{"version":"1.2"},"links":[{"a":1}],"cause":"0000000000000011"}"#,
    );

    fn datagram(document: &str) -> Vec<u8> {
        [LINE, document].concat().into()
    }

    #[test]
    fn a_segment_with_its_subsegments() {
        let (arena, bytes) = (Bump::new(), datagram(SEGMENT));
        let batch = decode(&bytes, &arena).expect("sound");
        assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (3, 0, None), "one of them is in progress");
        let [root, remote, inner] = batch.spans[..] else { panic!("three spans") };
        for span in [root, remote, inner] {
            assert_eq!(batch.sources[span.source as usize], Source { service: b"pets", instance: None });
            assert_eq!(Some(span.trace_id), hex(b"581cf771a006649127e371903a2de979"));
        }
        assert_eq!((Some(root.span_id), root.parent_id), (hex(b"70de5b6f19ff9a0a"), hex(b"abcdefabcdef0123")));
        assert_eq!((remote.parent_id, inner.parent_id), (Some(root.span_id), Some(remote.span_id)));
        assert_eq!((root.kind, remote.kind, inner.kind), (Kind::Server, Kind::Client, Kind::Internal));
        assert_eq!((root.status, remote.status, inner.status), (Status::Error, Status::Error, Status::Unset));
        assert_eq!((root.operation, inner.operation), (&b"pets"[..], "wählt".as_bytes()));
        assert_eq!((root.start_ns, root.duration_ns), (1_478_293_361_271_000_000, 729_000_000));
        assert_eq!((remote.start_ns, remote.duration_ns), (1_478_293_361_500_000_000, 250_000_000));
        // All but brackets and the comma, and what is in progress.
        let in_progress =
            SEGMENT.split_once(r#"{"id":"0000000000000013""#).expect("it").1.split_once('}').expect("it").0;
        let sizes = (root.size + remote.size + inner.size) as usize;
        assert_eq!(sizes + r#"{"id":"0000000000000013"}"#.len() + in_progress.len() + "[,][]".len(), SEGMENT.len());
        let json = |span: Span<'_>| span.attributes.json();
        assert_eq!(
            json(root),
            concat!(
                r#"{"user.id":"ada","aws.origin":"AWS::EC2::Instance","http.request.method":"GET","url.full":"http://h1/vets","#,
                r#""client.address":"10.0.0.1","user_agent.original":"curl","http.response.status_code":503,"#,
                r#""http.response.body.size":60,"color":"red","size":7,"metadata.default":{"a":[1]},"aws.operation":"Get","#,
                r#""service.version":"1.2"}"#,
            )
        );
        assert_eq!(
            json(remote),
            concat!(
                r#"{"db.query.text":"SELECT ?","db.system.name":"MySQL","sql.user":"me","exception.type":"Gone","#,
                r#""exception.message":"no \"db\"","aws.namespace":"remote"}"#,
            )
        );
        assert_eq!(json(inner), "", "none");
    }

    #[test]
    fn a_subsegment_on_its_own() {
        let bytes = datagram(
            r#"{"name":"S3","id":"0000000000000021","type":"subsegment","namespace":"aws","parent_id":"70de5b6f19ff9a0a",
               "trace_id":"1-581cf771-a006649127e371903a2de979","start_time":1,"end_time":3}"#,
        );
        let arena = Bump::new();
        let batch = decode(&bytes, &arena).expect("sound");
        let [span] = batch.spans[..] else { panic!("one span") };
        assert_eq!((span.kind, span.operation, span.parent_id), (Kind::Client, &b"S3"[..], hex(b"70de5b6f19ff9a0a")));
        assert_eq!((span.start_ns, span.duration_ns), (1_000_000_000, 2_000_000_000));
        assert_eq!(batch.sources[span.source as usize].service, b"", "it does not say whose it is");
    }

    /// Spans, and those that are rejected.
    fn counted(document: &str) -> (usize, u64, Option<&'static str>) {
        let (arena, bytes) = (Bump::new(), datagram(document));
        let batch = decode(&bytes, &arena).expect("sound");
        (batch.spans.len(), batch.rejected, batch.reason)
    }

    #[test]
    fn what_is_in_progress_is_no_span_yet() {
        let trace = r#""trace_id":"1-581cf771-a006649127e371903a2de979","start_time":1"#;
        let one = |more: &str| format!(r#"{{"name":"pets","id":"70de5b6f19ff9a0a",{trace}{more}}}"#);
        assert_eq!(counted(&one(r#","in_progress":true"#)), (0, 0, None));
        let ended = r#","in_progress":true,"subsegments":[{"id":"0000000000000011","start_time":1,"end_time":2}]"#;
        assert_eq!(counted(&one(ended)), (1, 0, None), "what has ended within it is");
        assert_eq!(counted(&one(r#","in_progress":true,"end_time":2"#)), (1, 0, None), "it has ended");
        assert_eq!(counted(&one("")), (0, 1, Some(NO_END)));
        assert_eq!(counted(&one(r#","end_time":"now""#)), (0, 1, Some(NO_END)));
    }

    #[test]
    fn ids() {
        let one = |trace: &str, id: &str, parent: &str| {
            let times = r#""start_time":1,"end_time":2"#;
            let below = format!(r#""subsegments":[{{"id":"0000000000000011",{times}}}]"#);
            counted(&format!(r#"{{"trace_id":"{trace}","id":"{id}","parent_id":"{parent}",{times},{below}}}"#))
        };
        let (trace, id) = ("1-581cf771-a006649127e371903a2de979", "70de5b6f19ff9a0a");
        assert_eq!(one(trace, id, ""), (2, 0, None));
        for wrong in [
            "",
            "1-581cf771",
            "1-581cf771-a006649127e371903a2de97",
            "1-581cf771-a006649127e371903a2de9790",
            "1-581cf771a006649127e371903a2de9790",
            "2-581cf771-a006649127e371903a2de979",
            "1-581cf77g-a006649127e371903a2de979",
            "1-00000000-000000000000000000000000",
            "581cf771a006649127e371903a2de979",
        ] {
            assert_eq!(one(wrong, id, ""), (0, 2, Some(IDS[0])), "{wrong}");
        }
        assert_eq!(one(trace, "1", ""), (1, 1, Some(IDS[1])), "the trace of what is within it is known");
        assert_eq!(one(trace, id, "1"), (1, 1, Some(IDS[2])));
    }

    #[test]
    fn no_segments() {
        let arena = Bump::new();
        let error = |bytes: &[u8]| decode(bytes, &arena).expect_err("broken");
        for wrong in [
            "",
            "{}",
            "{}\n{}",
            "{\"format\":\"xml\",\"version\":1}\n{}",
            "{\"format\":\"json\",\"version\":2}\n{}",
            "json\n{}",
        ] {
            assert_eq!(error(wrong.as_bytes()), HEADER, "{wrong}");
        }
        for wrong in ["", "hello", "[]", "{} {}", "{\"subsegments\":[1]}", "{\"http\":{\"request\":{\"url\":}}}"] {
            error(&datagram(wrong));
        }
        let wrong = Broken::At { what: "a value is expected", at: LINE.len() + 6 };
        assert_eq!(error(&datagram("{\"id\":x}")), wrong, "from the start of the datagram");
        let deep = "{\"subsegments\":[".repeat(1_000);
        assert!(error(&datagram(&deep)).to_string().starts_with("values are nested too deeply"));
        for (odd, rejected) in [
            ("null", 1),
            ("{\"http\":1,\"annotations\":[],\"cause\":[],\"subsegments\":{}}", 1),
            ("{\"id\":{},\"status\":\"x\"}", 1),
        ] {
            assert_eq!(counted(odd), (0, rejected, Some(NO_END)), "{odd}");
        }
    }

    proptest! {
        #[test]
        fn broken_datagrams(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let (arena, bytes) = (Bump::new(), broken(&datagram(SEGMENT), at, byte, cut));
            if let Ok(batch) = decode(&bytes, &arena) {
                prop_assert!(batch.spans.len() as u64 + batch.rejected <= 4);
            }
        }
    }
}
