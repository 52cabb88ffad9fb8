//! The items of a request of Azure Application Insights. Of each the envelope says which trace it belongs to, and its data
//! what it is: a `RequestData` is the span of a server, a `RemoteDependencyData` any other.

use bumpalo::Bump;

use crate::broken::Broken;
use crate::gather::Gatherer;
use crate::ids::hex_exact;
use crate::json::reader::Reader;
use crate::lines::lines;
use crate::span::{Batch, Kind, Source, Span, Status};
use crate::times;
use crate::value::Value;

/// Why a span without a trace id or an id, or with a parent that is none, can never be stored.
const IDS: [&str; 3] = [
    "ai.operation.id is not 32 hexadecimal digits, or all zeros",
    "the id of a request or a dependency is not 16 hexadecimal digits, or all zeros",
    "ai.operation.parentId is not 16 hexadecimal digits",
];
/// Bytes of a usual span.
const USUAL_SPAN: usize = 800;

/// What came in a request.
#[derive(Debug, Default)]
pub struct Received {
    /// Whatever they are.
    pub items: u64,
    /// Numbers of those that can never be stored, and why.
    pub rejected: Vec<(u64, &'static str)>,
}

impl Received {
    fn add(&mut self, rejected: Option<&'static str>) {
        self.rejected.extend(rejected.map(|reason| (self.items, reason)));
        self.items += 1;
    }
}

/// All spans of a request.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump, received: &mut Received) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, body.len() / USUAL_SPAN);
    if body.trim_ascii_start().starts_with(b"[") {
        let mut reader = Reader::new(body, arena);
        reader.array(|reader| item(reader, &mut gatherer).map(|rejected| received.add(rejected)))?;
        reader.end()?;
        return Ok(gatherer.finish());
    }
    for line in lines(body) {
        let at = line.as_ptr() as usize - body.as_ptr() as usize;
        let mut reader = Reader::new(line, arena);
        let rejected = item(&mut reader, &mut gatherer).and_then(|rejected| reader.end().map(|()| rejected));
        received.add(rejected.map_err(|error| error.behind(at))?);
    }
    Ok(gatherer.finish())
}

/// Adds an item, if it is a span; why it cannot be stored, if it can not.
fn item<'a>(reader: &mut Reader<'a>, gatherer: &mut Gatherer<'a>) -> Result<Option<&'static str>, Broken> {
    let mut found = Found::default();
    gatherer.begin();
    found.span.size = reader.measured(|reader, key| match key {
        b"time" => reader.text().map(|time| found.span.start_ns = times::rfc3339(time)),
        b"tags" => reader.object(|reader, key| {
            match key {
                b"ai.operation.id" => found.span.trace_id = hex_exact(reader.text()?).unwrap_or_default(),
                b"ai.operation.parentId" => found.parent_id = reader.text()?,
                b"ai.cloud.role" => found.service = reader.text()?,
                b"ai.cloud.roleInstance" => found.instance = reader.text()?,
                _ => reader.skip()?,
            }
            Ok(())
        }),
        b"data" => reader.object(|reader, key| match key {
            b"baseType" => reader.text().map(|kind| found.base = kind),
            b"baseData" => reader.object(|reader, key| found.member(reader, key, gatherer)),
            _ => reader.skip(),
        }),
        _ => reader.skip(),
    })?;
    Ok(match found.base {
        b"RequestData" | b"RemoteDependencyData" => found.push(gatherer),
        _ => None,
    })
}

/// A span in the making.
#[derive(Debug, Default)]
struct Found<'a> {
    span: Span<'a>,
    /// What kind of telemetry it is.
    base: &'a [u8],
    parent_id: &'a [u8],
    service: &'a [u8],
    instance: &'a [u8],
    /// Of a dependency: `HTTP`, `SQL`, `InProc`, …; what it is about; where it is.
    dependency: &'a [u8],
    statement: &'a [u8],
    target: &'a [u8],
}

impl<'a> Found<'a> {
    fn member(&mut self, reader: &mut Reader<'a>, key: &[u8], gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
        match key {
            b"properties" => {
                return reader.object(|reader, key| reader.value().map(|value| gatherer.attribute(key, value)));
            }
            b"id" | b"name" | b"duration" | b"success" | b"responseCode" | b"resultCode" | b"url" | b"type"
            | b"data" | b"target" => {}
            _ => return reader.skip(),
        }
        // Other telemetry has members of these names, too, and they may be anything.
        match (key, reader.value()?) {
            (b"id", Value::Text(id)) => self.span.span_id = hex_exact(id).unwrap_or_default(),
            (b"name", Value::Text(name)) => self.span.operation = name,
            (b"duration", Value::Text(text)) => self.span.duration_ns = times::timespan(text).unwrap_or(0),
            (b"success", Value::Truth(is_good)) => self.span.status = if is_good { Status::Ok } else { Status::Error },
            (b"responseCode" | b"resultCode", code) => {
                if let Some(code @ 100..600) = code.whole() {
                    gatherer.attribute(b"http.response.status_code", Value::Whole(code));
                }
            }
            (b"url", Value::Text(url)) => gatherer.text(b"url.full", url),
            (b"type", Value::Text(kind)) => self.dependency = kind,
            (b"data", Value::Text(statement)) => self.statement = statement,
            (b"target", Value::Text(target)) => self.target = target,
            _ => {}
        }
        Ok(())
    }

    /// Adds the span; why it cannot be stored, if it can not.
    fn push(mut self, gatherer: &mut Gatherer<'a>) -> Option<&'static str> {
        let rejected = gatherer.reject_without_ids(&mut self.span, self.parent_id, IDS);
        if rejected.is_some() {
            return rejected;
        }
        self.span.kind = match (self.base, self.dependency) {
            (b"RequestData", _) => Kind::Server,
            (_, b"InProc") => Kind::Internal,
            _ => Kind::Client,
        };
        gatherer.text(b"azure.dependency.type", self.dependency);
        gatherer.text(if self.dependency == b"HTTP" { b"url.full" } else { b"db.query.text" }, self.statement);
        gatherer.text(b"peer.service", self.target);
        let instance = (!self.instance.is_empty()).then_some(self.instance);
        self.span.source = gatherer.source(Source { service: self.service, instance });
        gatherer.push(self.span);
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::hex;
    use crate::testing::broken;

    const REQUEST: &str = concat!(
        r#"{"ver":1,"name":"Request","time":"2026-11-26T17:00:00.000001Z","sampleRate":100.0,"iKey":"0","tags":{"#,
        r#""ai.operation.id":"0123456789abcdef0123456789abcdef","ai.operation.parentId":"abcdefabcdef0123","#,
        r#""ai.cloud.role":"pets","ai.cloud.roleInstance":"h1"},"data":{"baseType":"RequestData","baseData":{"ver":2,"#,
        r#""id":"945254c567a5417e","name":"GET /vets","duration":"00:00:00.004123","success":true,"responseCode":"200","#,
        r#""url":"http://h1/vets","properties":{"a":"b"}}}}"#,
    );
    const DEPENDENCY: &str = concat!(
        r#"{"time":"2026-11-26T17:00:00Z","data":{"baseData":{"id":"0000000000000011","name":"SELECT","type":"SQL","#,
        r#""data":"SELECT \"1\"","target":"db","duration":"1.02:03:04.5","success":false,"resultCode":"0"},"#,
        r#""baseType":"RemoteDependencyData"},"tags":{"ai.operation.id":"0123456789abcdef0123456789abcdef"}}"#,
    );
    const MESSAGE: &str =
        r#"{"data":{"baseType":"MessageData","baseData":{"message":"hello","id":7,"properties":{}}}}"#;

    /// All of it as lines, and as an array.
    fn bodies() -> [String; 2] {
        let broken = REQUEST.replace("945254c567a5417e", "1");
        let items = [REQUEST, MESSAGE, &broken, DEPENDENCY];
        [format!("{}\n", items.join("\n")), format!(" [{}]", items.join(","))]
    }

    #[test]
    fn requests_and_dependencies() {
        for body in bodies() {
            let (arena, mut received) = (Bump::new(), Received::default());
            let batch = decode(body.as_bytes(), &arena, &mut received).expect("sound");
            assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (2, 1, Some(IDS[1])));
            assert_eq!((received.items, &received.rejected[..]), (4, &[(2, IDS[1])][..]));
            let [request, dependency] = batch.spans[..] else { panic!("two spans") };
            let source = |span: Span<'_>| batch.sources[span.source as usize];
            assert_eq!(source(request), Source { service: b"pets", instance: Some(b"h1") });
            assert_eq!(source(dependency), Source::default());
            assert_eq!(
                (request.kind, request.status, request.operation),
                (Kind::Server, Status::Ok, &b"GET /vets"[..])
            );
            assert_eq!(request.parent_id, hex(b"abcdefabcdef0123"));
            assert_eq!((request.start_ns, request.duration_ns), (1_795_712_400_000_001_000, 4_123_000));
            assert_eq!((dependency.kind, dependency.status), (Kind::Client, Status::Error));
            assert_eq!((dependency.parent_id, dependency.duration_ns), (None, 93_784_500_000_000));
            assert_eq!((request.size as usize, dependency.size as usize), (REQUEST.len(), DEPENDENCY.len()));
            let json = |span: Span<'_>| span.attributes.json();
            let expected = r#"{"http.response.status_code":200,"url.full":"http://h1/vets","a":"b"}"#;
            assert_eq!(json(request), expected);
            let expected = r#"{"azure.dependency.type":"SQL","db.query.text":"SELECT \"1\"","peer.service":"db"}"#;
            assert_eq!(json(dependency), expected);
        }
    }

    #[test]
    fn no_telemetry() {
        let arena = Bump::new();
        for wrong in ["hello", "[", "[1]", "{} {}", "[{}] x", "{\"data\":{\"baseData\":1}}"] {
            assert!(decode(wrong.as_bytes(), &arena, &mut Received::default()).is_err(), "{wrong}");
        }
        let error = decode(b"{}\n{\"time\":1}", &arena, &mut Received::default()).expect_err("no text");
        assert_eq!(error, Broken::At { what: "a string is expected", at: 11 }, "from the start of the request");
        assert_eq!(decode(b"", &arena, &mut Received::default()).expect("nothing").spans.len(), 0);
    }

    proptest! {
        #[test]
        fn broken_items(at in any::<prop::sample::Index>(), byte: u8, cut: bool, is_array: bool) {
            let body = broken(bodies()[usize::from(is_array)].as_bytes(), at, byte, cut);
            let (arena, mut received) = (Bump::new(), Received::default());
            if let Ok(batch) = decode(&body, &arena, &mut received) {
                prop_assert_eq!(batch.rejected, received.rejected.len() as u64);
            }
        }
    }
}
