//! OTLP's JSON: an `ExportTraceServiceRequest` as <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding> has
//! it. Ids are hexadecimal, 64-bit numbers come as text or as numbers, enums as numbers or names; unknown members are
//! skipped, names in snake case are known too, as proto3's JSON wants it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bumpalo::Bump;

use super::protobuf::{PARENT_ID, SPAN_ID, TRACE_ID};
use crate::broken::Broken;
use crate::gather::Gatherer;
use crate::ids::hex_exact;
use crate::json;
use crate::json::reader::Reader;
use crate::span::{Batch, Kind, Source, Span, Status};
use crate::value::Value;

/// Values within values that are followed; deeper ones become `null`.
const MAX_DEPTH: u32 = 16;
/// The value of what has none.
const NULL: Value<'_> = Value::Json(b"null");
/// Bytes of a usual span.
const USUAL_SPAN: usize = 700;

/// All spans of a request.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut reader = Reader::new(body, arena);
    let mut gatherer = Gatherer::new(arena, body.len() / USUAL_SPAN);
    reader.object(|reader, key| match key {
        b"resourceSpans" | b"resource_spans" => reader.array(|reader| resource_spans(reader, &mut gatherer)),
        _ => reader.skip(),
    })?;
    reader.end()?;
    Ok(gatherer.finish())
}

fn resource_spans<'a>(reader: &mut Reader<'a>, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    // The resource may follow its spans, so their source is known for good only at the end.
    let mut source = Source::default();
    let mut number = None;
    reader.object(|reader, key| match key {
        b"resource" => reader.object(|reader, key| match key {
            b"attributes" => attributes(reader, |key, value| match (key, value) {
                (b"service.name", Value::Text(text)) => source.service = text,
                (b"service.instance.id", Value::Text(text)) => source.instance = Some(text),
                _ => {}
            }),
            _ => reader.skip(),
        }),
        b"scopeSpans" | b"scope_spans" => reader.array(|reader| {
            reader.object(|reader, key| match key {
                b"spans" => reader.array(|reader| {
                    let number = *number.get_or_insert_with(|| gatherer.fresh_source());
                    span(reader, number, gatherer)
                }),
                _ => reader.skip(),
            })
        }),
        _ => reader.skip(),
    })?;
    gatherer.known_source(number, source);
    Ok(())
}

fn span<'a>(reader: &mut Reader<'a>, source: u32, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    let mut span = Span { source, ..Span::default() };
    let (mut parent_id, mut end) = (&[][..], 0);
    gatherer.begin();
    span.size = reader.measured(|reader, key| {
        match key {
            b"traceId" | b"trace_id" => span.trace_id = hex_exact(reader.text()?).unwrap_or_default(),
            b"spanId" | b"span_id" => span.span_id = hex_exact(reader.text()?).unwrap_or_default(),
            b"parentSpanId" | b"parent_span_id" => parent_id = reader.text()?,
            b"name" => span.operation = reader.text()?,
            b"kind" => span.kind = kind_from(reader.value()?),
            b"startTimeUnixNano" | b"start_time_unix_nano" => span.start_ns = unsigned(reader.value()?),
            b"endTimeUnixNano" | b"end_time_unix_nano" => end = unsigned(reader.value()?),
            b"status" => reader.object(|reader, key| match key {
                b"code" => reader.value().map(|code| span.status = status_from(code)),
                _ => reader.skip(),
            })?,
            b"attributes" => attributes(reader, |key, value| gatherer.attribute(key, value))?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    if !gatherer.has_ids(&span, [TRACE_ID, SPAN_ID]) {
        return Ok(());
    }
    let is_root = parent_id.iter().all(|digit| *digit == b'0') && matches!(parent_id.len(), 0 | 16);
    span.parent_id = hex_exact(parent_id);
    if span.parent_id.is_none() && !is_root {
        gatherer.reject(PARENT_ID);
        return Ok(());
    }
    gatherer.push(Span { duration_ns: Span::until(span.start_ns, end), ..span });
    Ok(())
}

fn kind_from(value: Value<'_>) -> Kind {
    match value {
        Value::Text(text) if text.starts_with(b"SPAN_KIND_") => Kind::named(&text[b"SPAN_KIND_".len()..]),
        value => Kind::of(unsigned(value)),
    }
}

fn status_from(value: Value<'_>) -> Status {
    match value {
        Value::Text(b"STATUS_CODE_OK") => Status::Ok,
        Value::Text(b"STATUS_CODE_ERROR") => Status::Error,
        value => Status::of(unsigned(value)),
    }
}

fn unsigned(value: Value<'_>) -> u64 {
    match value {
        Value::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0),
        Value::Real(number) => number as u64,
        value => value.count(),
    }
}

/// Shows a list of `KeyValue`.
fn attributes<'a>(reader: &mut Reader<'a>, mut visit: impl FnMut(&'a [u8], Value<'a>)) -> Result<(), Broken> {
    reader.array(|reader| {
        let (mut name, mut content) = (&[][..], NULL);
        reader.object(|reader, key| match key {
            b"key" => reader.text().map(|text| name = text),
            b"value" => any_value(reader).map(|value| content = value),
            _ => reader.skip(),
        })?;
        visit(name, content);
        Ok(())
    })
}

/// An `AnyValue`.
fn any_value<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, Broken> {
    let mut found = NULL;
    reader.object(|reader, key| {
        found = match key {
            b"stringValue" | b"string_value" => Value::Text(reader.text()?),
            b"boolValue" | b"bool_value" => reader.value()?,
            b"intValue" | b"int_value" => reader.value()?.whole().map_or(NULL, Value::Whole),
            b"doubleValue" | b"double_value" => real(reader.value()?),
            b"arrayValue" | b"array_value" | b"kvlistValue" | b"kvlist_value" | b"bytesValue" | b"bytes_value" => {
                let mut out = Vec::new();
                nested(reader, key, 0, &mut out)?;
                Value::Json(reader.keep(&out))
            }
            _ => return reader.skip(),
        };
        Ok(())
    })?;
    Ok(found)
}

fn real(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Text(b"NaN") => Value::Real(f64::NAN),
        Value::Text(b"Infinity") => Value::Real(f64::INFINITY),
        Value::Text(b"-Infinity") => Value::Real(f64::NEG_INFINITY),
        value => value.real().map_or(NULL, Value::Real),
    }
}

/// The content of an `AnyValue` as plain JSON; `key` says what it is.
fn nested(reader: &mut Reader<'_>, key: &[u8], depth: u32, out: &mut Vec<u8>) -> Result<(), Broken> {
    match key {
        b"arrayValue" | b"array_value" if depth < MAX_DEPTH => {
            let mut first = true;
            values(reader, |reader| {
                out.push(if std::mem::take(&mut first) { b'[' } else { b',' });
                item(reader, depth + 1, out)
            })?;
            out.extend_from_slice(if first { b"[]" } else { b"]" });
        }
        b"kvlistValue" | b"kvlist_value" if depth < MAX_DEPTH => {
            let mut first = true;
            values(reader, |reader| {
                let (mut name, mut content) = (&[][..], b"null".to_vec());
                reader.object(|reader, key| match key {
                    b"key" => reader.text().map(|text| name = text),
                    b"value" => {
                        content.clear();
                        item(reader, depth + 1, &mut content)
                    }
                    _ => reader.skip(),
                })?;
                json::member(name, Value::Json(&content), std::mem::take(&mut first), out);
                Ok(())
            })?;
            out.extend_from_slice(if first { b"{}" } else { b"}" });
        }
        b"stringValue" | b"string_value" => json::string(reader.text()?, out),
        // Base64 as it came, if it is: else as much as nothing.
        b"bytesValue" | b"bytes_value" => {
            let text = reader.text()?;
            json::string(if STANDARD.decode(text).is_ok() { text } else { b"" }, out);
        }
        b"boolValue" | b"bool_value" | b"intValue" | b"int_value" | b"doubleValue" | b"double_value" => {
            let value = reader.value()?;
            let value = match (key, value) {
                (_, Value::Truth(_)) => value,
                (b"doubleValue" | b"double_value", value) => real(value),
                (_, value) => value.whole().map_or(NULL, Value::Whole),
            };
            json::value(value, out);
        }
        _ => {
            reader.skip()?;
            out.extend_from_slice(b"null");
        }
    }
    Ok(())
}

/// The values in an `ArrayValue` or a `KeyValueList`.
fn values<'a>(
    reader: &mut Reader<'a>,
    mut value: impl FnMut(&mut Reader<'a>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    reader.object(|reader, key| if key == b"values" { reader.array(&mut value) } else { reader.skip() })
}

/// An `AnyValue` within another, as plain JSON.
fn item(reader: &mut Reader<'_>, depth: u32, out: &mut Vec<u8>) -> Result<(), Broken> {
    let start = out.len();
    out.extend_from_slice(b"null");
    reader.object(|reader, key| {
        out.truncate(start);
        nested(reader, key, depth, out)
    })
}
