//! The spans of an envelope: of transactions, of which each is its root, of items with many spans (version 2) and of items
//! with one. They have the same members under a few different names.

use bumpalo::Bump;

use super::envelope::{Item, Items};
use crate::broken::Broken;
use crate::buffers;
use crate::gather::Gatherer;
use crate::ids::hex_exact;
use crate::json::reader::Reader;
use crate::span::{Batch, Kind, Source, Span, Status};
use crate::times;
use crate::value::Value;

/// Why a span without a trace id or an id, or with a parent that is none, can never be stored.
const IDS: [&str; 3] = [
    "a span's trace_id is not 32 hexadecimal digits, or all zeros",
    "a span's span_id is not 16 hexadecimal digits, or all zeros",
    "a span's parent_span_id is not 16 hexadecimal digits",
];
/// Bytes of a usual span.
const USUAL_SPAN: usize = 500;
/// Of an item with many spans.
const SPANS_V2: &[u8] = b"application/vnd.sentry.items.span.v2+json";

/// All spans of an envelope that came with the key of a DSN.
///
/// # Errors
/// If the envelope is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(envelope: &'a [u8], arena: &'a Bump, key: &[u8]) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, envelope.len() / USUAL_SPAN);
    let service = arena.alloc_slice_copy(key);
    let mut items = Items::of(envelope, arena)?;
    while let Some(item) = items.next()? {
        spans(item, service, &mut gatherer).map_err(|error| error.behind(item.at))?;
    }
    Ok(gatherer.finish())
}

fn spans<'a>(item: Item<'a>, service: &'a [u8], gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    let mut reader = Reader::new(item.payload, gatherer.arena());
    match item.kind {
        b"transaction" => transaction(&mut reader, service, gatherer)?,
        b"span" => {
            let source = gatherer.source(Source { service, instance: None });
            if item.content_type == SPANS_V2 {
                reader.object(|reader, key| match key {
                    b"items" => reader.array(|reader| span(reader, source, gatherer)),
                    _ => reader.skip(),
                })?;
            } else {
                span(&mut reader, source, gatherer)?;
            }
        }
        _ => return Ok(()),
    }
    reader.end()
}

/// A root with the spans below it.
fn transaction<'a>(reader: &mut Reader<'a>, service: &'a [u8], gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    let (mut root, mut below, mut name, mut host) = (Found::default(), &[][..], &[][..], &[][..]);
    gatherer.begin();
    let size = reader.measured(|reader, key| {
        match key {
            b"transaction" => name = reader.text()?,
            b"server_name" => host = reader.text()?,
            b"contexts" => reader.object(|reader, key| match key {
                b"trace" => reader.object(|reader, key| root.member(reader, key, gatherer)),
                _ => reader.skip(),
            })?,
            b"request" => reader.object(|reader, key| match key {
                b"method" => reader.text().map(|method| gatherer.text(b"http.request.method", method)),
                b"url" => reader.text().map(|url| gatherer.text(b"url.full", url)),
                _ => reader.skip(),
            })?,
            // They may stand before what they need: so they are read when all else is known.
            b"spans" => match reader.value()? {
                Value::Json(list) => below = list,
                _ => return Err(Broken::At { what: "the spans of a transaction are no array", at: 0 }),
            },
            b"start_timestamp" | b"timestamp" | b"tags" => root.member(reader, key, gatherer)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    // Less than nothing if what is below had broken UTF-8 in it, which takes more when it is replaced.
    root.span.size = size.saturating_sub(buffers::size(below.len()));
    root.name = if name.is_empty() { root.name } else { name };
    let instance = (!host.is_empty()).then_some(host);
    let source = gatherer.source(Source { service, instance });
    root.push(source, gatherer);
    if below.is_empty() {
        return Ok(());
    }
    Reader::new(below, gatherer.arena()).array(|reader| span(reader, source, gatherer))
}

fn span<'a>(reader: &mut Reader<'a>, source: u32, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    let mut found = Found::default();
    gatherer.begin();
    found.span.size = reader.measured(|reader, key| found.member(reader, key, gatherer))?;
    found.push(source, gatherer);
    Ok(())
}

/// A span in the making.
#[derive(Debug, Default)]
struct Found<'a> {
    span: Span<'a>,
    parent_id: &'a [u8],
    name: &'a [u8],
    /// What it does, such as `http.server` or `db`.
    op: &'a [u8],
    /// Unix time, ns; 0 if it has none.
    end_ns: u64,
}

impl<'a> Found<'a> {
    fn member(&mut self, reader: &mut Reader<'a>, key: &[u8], gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
        match key {
            b"trace_id" => self.span.trace_id = hex_exact(reader.text()?).unwrap_or_default(),
            b"span_id" => self.span.span_id = hex_exact(reader.text()?).unwrap_or_default(),
            b"parent_span_id" => self.parent_id = reader.text()?,
            b"name" | b"description" => self.name = reader.text()?,
            b"op" => self.op = reader.text()?,
            b"status" => self.span.status = status(reader.text()?),
            b"start_timestamp" => self.span.start_ns = times::unix(reader.value()?),
            b"timestamp" | b"end_timestamp" => self.end_ns = times::unix(reader.value()?),
            // Tags may also be a list of pairs; no SDK sends them so.
            b"data" | b"tags" | b"attributes" if reader.peek() == Some(b'{') => {
                let is_typed = key == b"attributes";
                reader.object(|reader, key| {
                    let value = if is_typed { typed(reader)? } else { reader.value()? };
                    self.attribute(key, value, gatherer);
                    Ok(())
                })?;
            }
            _ => reader.skip()?,
        }
        Ok(())
    }

    fn attribute(&mut self, key: &[u8], value: Value<'a>, gatherer: &mut Gatherer<'a>) {
        match (key, value) {
            (_, Value::Json(b"null")) => {}
            (b"otel.kind", Value::Text(kind)) => self.span.kind = Kind::named(kind),
            // As a member it comes once more.
            (b"sentry.op", Value::Text(op)) => self.op = op,
            _ => gatherer.attribute(key, value),
        }
    }

    fn push(mut self, source: u32, gatherer: &mut Gatherer<'a>) {
        if gatherer.reject_without_ids(&mut self.span, self.parent_id, IDS).is_some() {
            return;
        }
        gatherer.text(b"sentry.op", self.op);
        if self.span.kind == Kind::Unspecified {
            self.span.kind = kind(self.op);
        }
        self.span.operation = if self.name.is_empty() { self.op } else { self.name };
        if self.end_ns != 0 {
            self.span.duration_ns = Span::until(self.span.start_ns, self.end_ns);
        }
        self.span.source = source;
        gatherer.push(self.span);
    }
}

/// The value of an attribute that is an object with its type: `{"value":1,"type":"integer"}`. `null` if there is none.
fn typed<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, Broken> {
    if reader.peek() != Some(b'{') {
        return reader.value();
    }
    let mut value = Value::Json(b"null");
    reader.object(|reader, key| match key {
        b"value" => reader.value().map(|found| value = found),
        _ => reader.skip(),
    })?;
    Ok(value)
}

/// By its name: `ok`, or one of the many names of failures. `unknown` and `cancelled` are none to Sentry's server either
/// (`NON_FAILURE_STATUS` in getsentry/sentry).
fn status(name: &[u8]) -> Status {
    match name {
        b"ok" => Status::Ok,
        b"" | b"unknown" | b"cancelled" => Status::Unset,
        _ => Status::Error,
    }
}

/// The side of a call, by what a span does (<https://develop.sentry.dev/sdk/telemetry/traces/span-operations/>).
fn kind(op: &[u8]) -> Kind {
    let mut words = op.split(|byte| *byte == b'.');
    match (words.next().unwrap_or_default(), words.next().unwrap_or_default()) {
        (_, b"server") => Kind::Server,
        (_, b"client") | (b"db" | b"cache", _) => Kind::Client,
        (b"queue" | b"topic", b"publish" | b"submit" | b"send") => Kind::Producer,
        (b"queue" | b"topic", b"process" | b"receive" | b"task") => Kind::Consumer,
        _ => Kind::Internal,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::hex;
    use crate::testing::broken;

    /// A transaction with a span below it, an item with two spans and one with a single span.
    const ENVELOPE: &str = concat!(
        r#"{"event_id":"9ec79c33ec9942ab8353589fcb2e04dc","sent_at":"2026-11-26T17:00:00.000000Z"}"#,
        "\n",
        r#"{"type":"transaction","content_type":"application/json"}"#,
        "\n",
        r#"{"type":"transaction","spans":[{"trace_id":"0123456789abcdef0123456789abcdef","span_id":"0000000000000011","#,
        r#""parent_span_id":"945254c567a5417e","op":"db","description":"SELECT \"1\"","start_timestamp":1496170407.1552,"#,
        r#""timestamp":"2017-05-30T18:53:27.158701234Z","data":{"db.system":"mysql","n":null},"tags":{"status":"not_found"},"#,
        r#""status":"not_found","origin":"auto.db"}],"transaction":"/vets","server_name":"h1","tags":{},"#,
        r#""contexts":{"trace":{"trace_id":"0123456789abcdef0123456789abcdef","span_id":"945254c567a5417e","#,
        r#""parent_span_id":"abcdefabcdef0123","op":"http.server","description":null,"status":"ok","#,
        r#""data":{"sentry.op":"http.server","http.response.status_code":200}},"runtime":{"name":"CPython"}},"#,
        r#""start_timestamp":"2017-05-30T18:53:27.154000Z","timestamp":"2017-05-30T18:53:27.186593Z","#,
        r#""request":{"url":"http://h1/vets","method":"GET","headers":{}}}"#,
        "\n",
        r#"{"type":"span","item_count":2,"content_type":"application/vnd.sentry.items.span.v2+json"}"#,
        "\n",
        r#"{"version":2,"items":[{"trace_id":"0123456789abcdef0123456789abcdee","span_id":"0000000000000021","name":"GET /pets","#,
        r#""status":"error","is_segment":true,"start_timestamp":1742921669.158209,"end_timestamp":1742921669.180536,"#,
        r#""attributes":{"sentry.op":{"type":"string","value":"http.server"},"otel.kind":{"value":"CLIENT","type":"string"},"#,
        r#""list":{"type":"array","value":["a"]},"nothing":{}}},{"trace_id":"1"}]}"#,
        "\n",
        r#"{"type":"span"}"#,
        "\n",
        r#"{"trace_id":"0123456789abcdef0123456789abcded","span_id":"0000000000000031","op":"queue.publish","start_timestamp":1}"#,
        "\n",
        r#"{"type":"session"}"#,
        "\n",
        "not looked into",
    );

    #[test]
    fn every_kind_of_item() {
        let arena = Bump::new();
        let batch = decode(ENVELOPE.as_bytes(), &arena, b"pets").expect("sound");
        assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (4, 1, Some(IDS[0])));
        let [root, below, streamed, single] = batch.spans[..] else { panic!("four spans") };
        let source = |span: Span<'_>| batch.sources[span.source as usize];
        assert_eq!(source(root), Source { service: b"pets", instance: Some(b"h1") });
        assert_eq!(source(below), source(root));
        assert_eq!(source(streamed), Source { service: b"pets", instance: None });

        assert_eq!((root.kind, root.status, root.operation), (Kind::Server, Status::Ok, &b"/vets"[..]));
        assert_eq!(
            (root.span_id, root.parent_id),
            (hex(b"945254c567a5417e").unwrap_or_default(), hex(b"abcdefabcdef0123"))
        );
        assert_eq!((root.start_ns, root.duration_ns), (1_496_170_407_154_000_000, 32_593_000));
        assert_eq!((below.kind, below.status, below.operation), (Kind::Client, Status::Error, &b"SELECT \"1\""[..]));
        assert_eq!((below.parent_id, below.trace_id), (Some(root.span_id), root.trace_id));
        assert_eq!((below.start_ns, below.duration_ns), (1_496_170_407_155_200_000, 3_501_234));
        assert_eq!(
            (streamed.kind, streamed.status, streamed.operation),
            (Kind::Client, Status::Error, &b"GET /pets"[..])
        );
        assert_eq!((streamed.start_ns, streamed.duration_ns), (1_742_921_669_158_209_000, 22_327_000));
        assert_eq!(
            (single.kind, single.status, single.operation),
            (Kind::Producer, Status::Unset, &b"queue.publish"[..])
        );
        assert_eq!((single.start_ns, single.duration_ns), (1_000_000_000, 0), "it has no end");

        let line = |number| ENVELOPE.lines().nth(number).map_or(0, str::len) as u32;
        assert_eq!((root.size + below.size + 2, single.size), (line(2), line(6)), "and brackets");
        let json = |span: Span<'_>| span.attributes.json();
        assert_eq!(
            json(root),
            r#"{"http.response.status_code":200,"url.full":"http://h1/vets","http.request.method":"GET","sentry.op":"http.server"}"#
        );
        assert_eq!(json(below), r#"{"db.system":"mysql","status":"not_found","sentry.op":"db"}"#);
        assert_eq!(json(streamed), r#"{"list":["a"],"sentry.op":"http.server"}"#);
    }

    #[test]
    fn what_is_no_envelope_of_spans() {
        let arena = Bump::new();
        let of = |kind: &str, payload: &str| format!("{{}}\n{{\"type\":\"{kind}\"}}\n{payload}");
        for wrong in [
            "hello".into(),
            of("transaction", "[]"),
            of("transaction", "{\"spans\":1}"),
            of("transaction", "{\"spans\":{}}"),
            of("transaction", "{} x"),
            of("span", "{\"data\":{\"x\":[}}"),
            of("span", ""),
        ] {
            assert!(decode(wrong.as_bytes(), &arena, b"").is_err(), "{wrong}");
        }
        let error = decode(of("span", "{\"op\":1}").as_bytes(), &arena, b"").expect_err("no text");
        assert_eq!(error, Broken::At { what: "a string is expected", at: 25 }, "from the start of the envelope");
        for (odd, spans) in [(of("transaction", "{\"tags\":[[\"a\",\"b\"]],\"spans\":null}"), 1), ("{}".into(), 0)] {
            let batch = decode(odd.as_bytes(), &arena, b"").expect("sound");
            assert_eq!((batch.spans.len(), batch.rejected), (0, spans), "{odd}");
        }
    }

    #[test]
    fn kinds_by_operation() {
        for (op, expected) in [
            ("http.server", Kind::Server),
            ("grpc.client", Kind::Client),
            ("cache.get", Kind::Client),
            ("db", Kind::Client),
            ("queue.submit.celery", Kind::Producer),
            ("queue.task.celery", Kind::Consumer),
            ("function", Kind::Internal),
            ("", Kind::Internal),
        ] {
            assert_eq!(kind(op.as_bytes()), expected, "{op}");
        }
    }

    proptest! {
        #[test]
        fn broken_envelopes(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let envelope = broken(ENVELOPE.as_bytes(), at, byte, cut);
            let arena = Bump::new();
            if let Ok(batch) = decode(&envelope, &arena, b"pets") {
                prop_assert!(batch.spans.len() as u64 + batch.rejected <= 5);
            }
        }
    }
}
