//! The lines of an intake request of Elastic APM, version 2: metadata first, then transactions and spans, which become
//! spans, and errors, metrics and logs, which are only counted as taken.
//!
//! A transaction tells how many of its spans its agent threw away (`span_count.dropped`): those beyond `transaction_max_spans`, and
//! exit spans that were shorter than `exit_span_min_duration`.
//!
//! What Elastic has as members of its own and OpenTelemetry as attributes comes under OpenTelemetry's names.

use bumpalo::Bump;

use crate::broken::Broken;
use crate::gather::Gatherer;
use crate::ids::hex_exact;
use crate::json::reader::Reader;
use crate::lines::lines;
use crate::loss::Stage;
use crate::span::{Batch, Kind, Source, Span, Status};

/// Why an event without a trace id or an id, or with a parent that is none, can never be stored.
const IDS: [&str; 3] = [
    "an event's trace_id is not 32 hexadecimal digits, or all zeros",
    "an event's id is not 16 hexadecimal digits, or all zeros",
    "an event's parent_id is not 16 hexadecimal digits",
];
const LINE: &str = "a line is not a JSON object with an event in it";
/// Bytes of a usual span.
const USUAL_SPAN: usize = 500;

/// All spans of a request.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, body.len() / USUAL_SPAN);
    let mut lines = lines(body);
    let metadata = lines.next().unwrap_or_default();
    let source = metadata_of(metadata, arena)?;
    for line in lines {
        if event(line, source, &mut gatherer).is_err() {
            gatherer.reject(LINE);
        }
    }
    Ok(gatherer.finish())
}

fn metadata_of<'a>(line: &'a [u8], arena: &'a Bump) -> Result<Source<'a>, Broken> {
    let mut source = Source::default();
    let mut host = &[][..];
    let mut is_there = false;
    let mut reader = Reader::new(line, arena);
    reader.object(|reader, key| {
        if key != b"metadata" {
            return reader.skip();
        }
        is_there = true;
        reader.object(|reader, key| match key {
            b"service" => reader.object(|reader, key| match key {
                b"name" => reader.text().map(|name| source.service = name),
                b"node" => {
                    within(reader, b"configured_name", |reader| reader.text().map(|name| source.instance = Some(name)))
                }
                _ => reader.skip(),
            }),
            b"system" => reader.object(|reader, key| match key {
                b"configured_hostname" | b"detected_hostname" | b"hostname" => reader.text().map(|name| host = name),
                _ => reader.skip(),
            }),
            _ => reader.skip(),
        })
    })?;
    reader.end()?;
    if !is_there {
        return Err(Broken::At { what: "the first line is not metadata", at: 0 });
    }
    source.instance = source.instance.or(Some(host)).filter(|instance| !instance.is_empty());
    Ok(source)
}

fn event<'a>(line: &'a [u8], source: Source<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    let mut reader = Reader::new(line, gatherer.arena());
    let mut any = None;
    gatherer.begin();
    reader.object(|reader, key| match key {
        b"transaction" | b"span" => {
            let mut found = Found { source, is_transaction: key == b"transaction", ..Found::default() };
            found.span.size = reader.measured(|reader, key| found.member(reader, key, gatherer))?;
            any = Some(Some(found));
            Ok(())
        }
        b"error" | b"metricset" | b"log" | b"metadata" => {
            any.get_or_insert(None);
            reader.skip()
        }
        _ => reader.skip(),
    })?;
    reader.end()?;
    match any {
        Some(Some(found)) => found.push(gatherer),
        Some(None) => {}
        None => return Err(Broken::At { what: LINE, at: 0 }),
    }
    Ok(())
}

/// A transaction or a span.
#[derive(Debug, Default)]
struct Found<'a> {
    span: Span<'a>,
    source: Source<'a>,
    is_transaction: bool,
    parent_id: &'a [u8],
    kind_of_event: &'a [u8],
    has_destination: bool,
    /// Spans of the transaction that its agent threw away.
    dropped: u64,
}

impl<'a> Found<'a> {
    fn member(&mut self, reader: &mut Reader<'a>, key: &[u8], gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
        match key {
            b"id" => self.span.span_id = hex_exact(reader.text()?).unwrap_or_default(),
            b"trace_id" => self.span.trace_id = hex_exact(reader.text()?).unwrap_or_default(),
            b"parent_id" => self.parent_id = reader.text()?,
            b"name" => self.span.operation = reader.text()?,
            b"type" => {
                self.kind_of_event = reader.text()?;
                gatherer.text(b"type", self.kind_of_event);
            }
            b"subtype" | b"action" | b"result" => gatherer.text(key, reader.text()?),
            b"outcome" => {
                self.span.status = match reader.text()? {
                    b"success" => Status::Ok,
                    b"failure" => Status::Error,
                    _ => Status::Unset,
                }
            }
            // µs.
            b"timestamp" => {
                let timestamp = reader.value()?.whole().unwrap_or(0);
                self.span.start_ns = u64::try_from(timestamp).unwrap_or(0).saturating_mul(1_000);
            }
            // ms. A float that is out of range becomes the nearest number in it.
            b"duration" => self.span.duration_ns = (reader.value()?.real().unwrap_or(0.0) * 1e6).round() as i64,
            b"otel" => reader.object(|reader, key| match key {
                b"span_kind" => reader.text().map(|kind| self.span.kind = Kind::named(kind)),
                b"attributes" => flat(reader, gatherer),
                _ => reader.skip(),
            })?,
            b"context" => reader.object(|reader, key| self.context(reader, key, gatherer))?,
            b"span_count" => within(reader, b"dropped", |reader| {
                self.dropped = reader.value()?.count();
                Ok(())
            })?,
            _ => reader.skip()?,
        }
        Ok(())
    }

    fn context(&mut self, reader: &mut Reader<'a>, key: &[u8], gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
        let names: &[(&[u8], &[u8])] = match key {
            b"tags" => return flat(reader, gatherer),
            b"service" => {
                return within(reader, b"name", |reader| {
                    let name = reader.text()?;
                    if !name.is_empty() {
                        self.source.service = name;
                    }
                    Ok(())
                });
            }
            b"request" => {
                return reader.object(|reader, key| match key {
                    b"method" => reader.text().map(|method| gatherer.text(b"http.request.method", method)),
                    b"url" => named(
                        reader,
                        gatherer,
                        &[(b"full", b"url.full"), (b"pathname", b"url.path"), (b"search", b"url.query")],
                    ),
                    _ => reader.skip(),
                });
            }
            b"destination" => {
                self.has_destination = true;
                return reader.object(|reader, key| match key {
                    b"address" => reader.text().map(|address| gatherer.text(b"server.address", address)),
                    b"port" => reader.value().map(|port| gatherer.attribute(b"server.port", port)),
                    b"service" => named(reader, gatherer, &[(b"resource", b"peer.service")]),
                    _ => reader.skip(),
                });
            }
            b"message" => {
                let name: &[(&[u8], &[u8])] = &[(b"name", b"messaging.destination.name")];
                return within(reader, b"queue", |reader| named(reader, gatherer, name));
            }
            b"response" => &[(b"status_code", b"http.response.status_code")],
            b"http" => &[
                (b"url", b"url.full"),
                (b"method", b"http.request.method"),
                (b"status_code", b"http.response.status_code"),
            ],
            b"db" => &[(b"type", b"db.system.name"), (b"statement", b"db.query.text"), (b"instance", b"db.namespace")],
            _ => return reader.skip(),
        };
        named(reader, gatherer, names)
    }

    fn push(mut self, gatherer: &mut Gatherer<'a>) {
        if gatherer.reject_without_ids(&mut self.span, self.parent_id, IDS).is_some() {
            return;
        }
        if self.span.kind == Kind::Unspecified {
            self.span.kind = self.kind();
        }
        self.span.source = gatherer.source(self.source);
        if self.dropped > 0 {
            gatherer.lose(self.source, Stage::Filter, b"span_count.dropped", self.dropped);
        }
        gatherer.push(self.span);
    }

    /// If it does not say so itself.
    fn kind(&self) -> Kind {
        match (self.is_transaction, self.kind_of_event) {
            (true, b"request") => Kind::Server,
            (true, b"messaging") => Kind::Consumer,
            (false, b"messaging") => Kind::Producer,
            (false, b"db" | b"external" | b"storage" | b"cache") => Kind::Client,
            (false, _) if self.has_destination => Kind::Client,
            _ => Kind::Internal,
        }
    }
}

/// The members of an object as attributes of the same names.
fn flat<'a>(reader: &mut Reader<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    reader.object(|reader, key| reader.value().map(|value| gatherer.attribute(key, value)))
}

/// One member of an object.
fn within<'a>(
    reader: &mut Reader<'a>,
    member: &[u8],
    mut read: impl FnMut(&mut Reader<'a>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    reader.object(|reader, key| if key == member { read(reader) } else { reader.skip() })
}

/// Some members of an object as attributes, by member and attribute.
fn named<'a>(reader: &mut Reader<'a>, gatherer: &mut Gatherer<'a>, names: &[(&[u8], &[u8])]) -> Result<(), Broken> {
    reader.object(|reader, key| match names.iter().find(|(member, _)| *member == key) {
        Some((_, attribute)) => reader.value().map(|value| {
            if !value.is_null() {
                gatherer.attribute(attribute, value);
            }
        }),
        None => reader.skip(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::hex;
    use crate::testing::broken;

    const STREAM: &str = concat!(
        r#"{"metadata":{"service":{"name":"pets","agent":{"name":"java","version":"1.55"}},"system":{"hostname":"h1"}}}"#,
        "\n",
        r#"{"transaction":{"id":"945254c567a5417e","trace_id":"0123456789abcdef0123456789abcdef","parent_id":"abcdefabcdef0123","#,
        r#""type":"request","duration":32.592981,"timestamp":1496170407154000,"result":"HTTP 2xx","name":"GET /vets","#,
        r#""outcome":"success","span_count":{"started":1},"context":{"request":{"method":"GET","url":{"pathname":"/vets"}},"#,
        r#""response":{"status_code":200,"headers":{"a":["b"]}},"tags":{"n":1.5}}}}"#,
        "\n",
        r#"{"span":{"id":"0000000000000011","trace_id":"0123456789abcdef0123456789abcdef","parent_id":"945254c567a5417e","#,
        r#""type":"db","subtype":"mysql","name":"SELECT","duration":3.5,"timestamp":1496170407155000,"#,
        r#""context":{"db":{"statement":"SELECT \"1\"","type":"sql"},"destination":{"address":"db","service":null}}}}"#,
        "\n",
        r#"{"metricset":{"samples":{},"timestamp":1}}"#,
        "\n\n",
    );

    #[test]
    fn events() {
        let arena = Bump::new();
        let batch = decode(STREAM.as_bytes(), &arena).expect("sound");
        assert_eq!((batch.spans.len(), batch.rejected, batch.sources.len()), (2, 0, 1));
        assert_eq!(batch.sources[0], Source { service: b"pets", instance: Some(b"h1") });
        let [transaction, span] = [batch.spans[0], batch.spans[1]];
        assert_eq!((transaction.kind, transaction.status), (Kind::Server, Status::Ok));
        assert_eq!(transaction.parent_id, hex(b"abcdefabcdef0123"));
        assert_eq!((transaction.start_ns, transaction.duration_ns), (1_496_170_407_154_000_000, 32_592_981));
        assert_eq!((span.kind, span.status), (Kind::Client, Status::Unset));
        assert_eq!((span.parent_id, span.trace_id), (Some(transaction.span_id), transaction.trace_id));
        let json = |span: Span<'_>| span.attributes.json();
        assert_eq!(
            json(transaction),
            r#"{"type":"request","result":"HTTP 2xx","http.request.method":"GET","url.path":"/vets","http.response.status_code":200,"n":1.5}"#
        );
        assert_eq!(
            json(span),
            r#"{"type":"db","subtype":"mysql","db.query.text":"SELECT \"1\"","db.system.name":"sql","server.address":"db"}"#
        );
    }

    #[test]
    fn spans_that_the_agent_threw_away() {
        let more = r#"{"transaction":{"id":"945254c567a5417f","trace_id":"0123456789abcdef0123456789abcdef","#;
        let stream: String = [r#""started":1}"#, r#""dropped":2}"#, r#""started":3,"dropped":3}"#, r#""dropped":-1}"#]
            .into_iter()
            .fold(STREAM.to_owned(), |stream, count| format!("{stream}{more}\"span_count\":{{{count}}}}}\n"));
        let arena = Bump::new();
        let batch = decode(stream.as_bytes(), &arena).expect("sound");
        assert_eq!((batch.spans.len(), batch.rejected), (6, 0));
        let losses = batch.losses.iter().map(|loss| (loss.source, loss.stage, loss.spans, loss.is_cumulative));
        assert_eq!(losses.collect::<Vec<_>>(), [(batch.sources[0], Stage::Filter, 5, false)]);
    }

    #[test]
    fn broken_lines_do_not_cost_the_others() {
        let mut stream = STREAM.to_string();
        stream += "{\"span\":{\"id\":\"1\"}}\nhello\n{\"other\":{}}\n{\"transaction\":{\"id\":\"";
        let arena = Bump::new();
        let batch = decode(stream.as_bytes(), &arena).expect("metadata is sound");
        assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (2, 4, Some(IDS[0])));
        for wrong in ["", "{}", "{\"span\":{}}", "hello", "{\"metadata\":{\"service\":1}}"] {
            assert!(decode(wrong.as_bytes(), &arena).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn broken_streams(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let stream = broken(STREAM.as_bytes(), at, byte, cut);
            let arena = Bump::new();
            if let Ok(batch) = decode(&stream, &arena) {
                prop_assert!(batch.spans.len() as u64 + batch.rejected <= 3 + 1);
            }
        }
    }
}
