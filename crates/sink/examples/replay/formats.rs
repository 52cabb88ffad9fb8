//! The formats: how a request is encoded, and where in it ids and times are.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as otlp;
use prost::Message;

use crate::batches::{DIGITS, DURATION, Places, Random, Stamp, Template};
use crate::values::{self, SpanParts, as_text};
use crate::{datadog, instana, newrelic, pinpoint, texts};

/// How spans are encoded.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Format {
    /// `ExportTraceServiceRequest`, after the prefix of gRPC if `framed`.
    Otlp { framed: bool },
    /// Segments, each after the prefix of gRPC.
    Skywalking,
    /// JSON of version 2.
    Zipkin,
    /// Lines of the intake, version 2.
    Elastic,
    /// Envelopes, each with one item of spans of version 2.
    Sentry,
    /// MessagePack of version 0.4.
    Datadog,
    /// Segments of X-Ray, each a trace of three spans.
    Xray,
    /// A harvest of New Relic's.
    Newrelic,
    /// Lists of Instana's.
    Instana,
    /// Spans of Pinpoint's with two events, each after the prefix of gRPC.
    Pinpoint,
}

/// A request of about `spans` spans, of traces of a load or of others.
pub(crate) fn template(format: Format, spans: usize, is_of_load: bool, random: &mut Random) -> Template {
    // Whole traces, where a message holds such.
    let spans = match format {
        Format::Skywalking | Format::Datadog | Format::Pinpoint => spans.next_multiple_of(3),
        Format::Xray => 3,
        _ => spans,
    };
    let parts: Vec<SpanParts> = (0..spans).map(|place| values::span(place, random)).collect();
    match format {
        Format::Otlp { framed } => otlp(framed, parts),
        Format::Skywalking => skywalking(&parts, is_of_load),
        Format::Zipkin => zipkin(&parts),
        Format::Elastic => elastic(&parts),
        Format::Sentry => sentry(&parts),
        Format::Datadog => datadog::template(&parts),
        Format::Xray => xray(&parts),
        Format::Newrelic => newrelic::template(&parts),
        Format::Instana => instana::template(&parts),
        Format::Pinpoint => pinpoint::template(&parts),
    }
}

pub(crate) fn frame(message: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
}

fn otlp(framed: bool, parts: Vec<SpanParts>) -> Template {
    let span = |(place, (name, kind, attributes)): (usize, SpanParts)| otlp::Span {
        trace_id: vec![1; 16],
        span_id: vec![1; 8],
        parent_span_id: if place % 3 == 0 { Vec::new() } else { vec![1; 8] },
        name: name.into(),
        kind,
        start_time_unix_nano: 1,
        end_time_unix_nano: 1,
        attributes,
        ..Default::default()
    };
    let spans = parts.into_iter().enumerate().map(span).collect();
    let scope = InstrumentationScope { name: "petclinic".into(), version: "1.0".into(), ..Default::default() };
    let scope_spans = vec![otlp::ScopeSpans { scope: Some(scope), spans, ..Default::default() }];
    let resource = Some(Resource { attributes: values::resource(), ..Default::default() });
    let request = ExportTraceServiceRequest {
        resource_spans: vec![otlp::ResourceSpans { resource, scope_spans, ..Default::default() }],
    };
    let mut message = Vec::new();
    let encoded = request.encode_to_vec();
    if framed {
        frame(&encoded, &mut message);
    } else {
        message = encoded;
    }
    let begin = if framed { 5 } else { 0 };
    let mut spans = Vec::new();
    within(&message[begin..], begin, &[1, 2, 2], &mut |span, offset| {
        let mut found = Places { is_root: true, ..Places::default() };
        fields(span, offset, &mut |field, at, length| {
            found.is_root &= field != 4;
            found.places.extend(match field {
                1 => Some((at, Stamp::Trace)),
                2 => Some((at, Stamp::Span)),
                4 if length == 8 => Some((at, Stamp::Root)),
                7 => Some((at, Stamp::StartNanos)),
                8 => Some((at, Stamp::EndNanos)),
                _ => None,
            });
        });
        spans.push(found);
    });
    Template { message, spans }
}

/// `SegmentObject` (`language-agent/Tracing.proto`), as far as agents fill it.
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
    #[prost(string, tag = "6")]
    operation: String,
    #[prost(string, tag = "7")]
    peer: String,
    /// 0 entry, 1 exit.
    #[prost(int32, tag = "8")]
    kind: i32,
    /// 1 database, 3 HTTP, 5 cache.
    #[prost(int32, tag = "9")]
    layer: i32,
    #[prost(int32, tag = "10")]
    component: i32,
    #[prost(message, repeated, tag = "12")]
    tags: Vec<Tag>,
}

#[derive(Clone, PartialEq, Message)]
struct Tag {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// An agent takes the trace id over that a load sends, and else makes one of its own kind.
fn skywalking(parts: &[SpanParts], is_of_load: bool) -> Template {
    let mut template = Template::default();
    for trace in parts.chunks(3) {
        let span = |(id, (name, kind, attributes)): (usize, &SpanParts)| SpanObject {
            id: id as i32,
            parent: id.min(1) as i32 - 1,
            // Six bytes, as those that are stamped in.
            start: 1 << 40,
            end: 1 << 40,
            operation: (*name).into(),
            peer: if *kind == 3 { "mysql.shop.svc:3306".into() } else { String::new() },
            kind: i32::from(*kind == 3),
            layer: [3, 1, 5][id % 3],
            component: 1,
            tags: attributes.iter().map(|tag| Tag { key: tag.key.clone(), value: as_text(tag, false) }).collect(),
        };
        let id = |thread: u32| format!("0af7651916cd43dd8448eb211c80319c.{thread}.{}", "0".repeat(DIGITS));
        let segment = SegmentObject {
            trace_id: if is_of_load { "0".repeat(32) } else { id(72) },
            id: id(73),
            spans: trace.iter().enumerate().map(span).collect(),
            service: "petclinic".into(),
            instance: "petclinic-7d9c6b5f4-x2x7k".into(),
        };
        let encoded = segment.encode_to_vec();
        let offset = template.message.len() + 5;
        frame(&encoded, &mut template.message);
        let first = template.spans.len();
        within(&encoded, offset, &[3], &mut |span, offset| {
            let mut found = Places { is_root: template.spans.len() == first, ..Places::default() };
            fields(span, offset, &mut |field, at, _| {
                // A varint's place is behind its tag.
                found.places.extend(match field {
                    3 => Some((at, Stamp::StartMillis)),
                    4 => Some((at, Stamp::EndMillis)),
                    _ => None,
                });
            });
            template.spans.push(found);
        });
        fields(&encoded, offset, &mut |field, at, length| {
            let place = match field {
                1 if is_of_load => (at, Stamp::TraceHex),
                1 => (at + length - DIGITS, Stamp::TraceDigits),
                2 => (at + length - DIGITS, Stamp::SegmentDigits),
                _ => return,
            };
            template.spans[first].places.push(place);
        });
    }
    template
}

fn zipkin(parts: &[SpanParts]) -> Template {
    texts::request(parts, ["[", ",", "]"], |text, place, parts| {
        text.put("{\"traceId\":\"");
        text.place(Stamp::TraceHex, 32);
        if place > 0 {
            text.put("\",\"parentId\":\"");
            text.place(Stamp::RootHex, 16);
        }
        text.put("\",\"id\":\"");
        text.place(Stamp::SpanHex, 16);
        let kind = if parts.1 == 2 { "SERVER" } else { "CLIENT" };
        text.put(&format!("\",\"kind\":\"{kind}\",\"name\":\"{}\",\"timestamp\":", parts.0));
        text.place(Stamp::StartMicros, 16);
        text.put(",\"duration\":");
        text.place(Stamp::DurationMicros, DURATION);
        text.put(",\"localEndpoint\":{\"serviceName\":\"petclinic\",\"ipv4\":\"10.2.0.17\"},\"tags\":{");
        text.members(parts, false);
        text.put("}}");
    })
}

fn elastic(parts: &[SpanParts]) -> Template {
    let metadata = "{\"metadata\":{\"service\":{\"name\":\"petclinic\",\"node\":{\"configured_name\":\"petclinic-7d9c6b5f4-x2x7k\"},\
         \"agent\":{\"name\":\"go\",\"version\":\"2.7.1\"},\"language\":{\"name\":\"go\",\"version\":\"1.26\"}},\
         \"process\":{\"pid\":4711},\"system\":{\"hostname\":\"node-17\",\"platform\":\"linux\"}}}\n";
    texts::request(parts, [metadata, "", ""], |text, place, parts| {
        let is_root = place == 0;
        text.put(if is_root { "{\"transaction\":{\"id\":\"" } else { "{\"span\":{\"id\":\"" });
        text.place(Stamp::SpanHex, 16);
        text.put("\",\"trace_id\":\"");
        text.place(Stamp::TraceHex, 32);
        if !is_root {
            text.put("\",\"parent_id\":\"");
            text.place(Stamp::RootHex, 16);
            text.put("\",\"transaction_id\":\"");
            text.place(Stamp::RootHex, 16);
        }
        text.put(&format!("\",\"name\":\"{}\",\"timestamp\":", parts.0));
        text.place(Stamp::StartMicros, 16);
        text.put(",\"duration\":");
        text.place(Stamp::DurationMillis, DURATION);
        text.put(if is_root {
            ",\"type\":\"request\",\"result\":\"HTTP 2xx\",\"outcome\":\"success\",\"sampled\":true,\
             \"span_count\":{\"started\":2,\"dropped\":0},\"context\":{\"tags\":{"
        } else {
            ",\"type\":\"db\",\"subtype\":\"mysql\",\"action\":\"query\",\"outcome\":\"success\",\"context\":{\"tags\":{"
        });
        text.members(parts, true);
        text.put("}}}}\n");
    })
}

fn sentry(parts: &[SpanParts]) -> Template {
    let count = parts.len();
    let before = format!(
        "{{\"sent_at\":\"2026-11-26T17:00:00.000Z\",\"sdk\":{{\"name\":\"sentry.javascript.node\",\"version\":\"11.12.0\"}}}}\n\
         {{\"type\":\"span\",\"item_count\":{count},\"content_type\":\"application/vnd.sentry.items.span.v2+json\"}}\n\
         {{\"version\":2,\"items\":["
    );
    texts::request(parts, [&before, ",", "]}"], |text, place, parts| {
        let is_root = place == 0;
        text.put("{\"span_id\":\"");
        text.place(Stamp::SpanHex, 16);
        text.put("\",\"trace_id\":\"");
        text.place(Stamp::TraceHex, 32);
        if !is_root {
            text.put("\",\"parent_span_id\":\"");
            text.place(Stamp::RootHex, 16);
        }
        let op = if is_root { "http.server" } else { "db" };
        text.put(&format!(
            "\",\"name\":\"{}\",\"is_segment\":{is_root},\"status\":\"ok\",\"start_timestamp\":",
            parts.0
        ));
        text.place(Stamp::StartSeconds, 17);
        text.put(",\"end_timestamp\":");
        text.place(Stamp::EndSeconds, 17);
        text.put(&format!(",\"attributes\":{{\"sentry.op\":{{\"value\":\"{op}\",\"type\":\"string\"}}"));
        for tag in &parts.2 {
            let value = as_text(tag, true);
            let kind = if value.starts_with('"') { "string" } else { "integer" };
            text.put(&format!(",\"{}\":{{\"value\":{value},\"type\":\"{kind}\"}}", tag.key));
        }
        text.put("}}");
    })
}

/// One trace, as a datagram has it.
fn xray(parts: &[SpanParts]) -> Template {
    texts::request(parts, ["{\"format\": \"json\", \"version\": 1}\n", "", "}]}"], |text, place, parts| {
        text.put(
            [
                "{\"name\":\"petclinic\",\"id\":\"",
                ",\"subsegments\":[{\"name\":\"petclinic@mysql\",\"namespace\":\"remote\",\"id\":\"",
                "},{\"name\":\"petclinic@redis\",\"namespace\":\"remote\",\"id\":\"",
            ][place],
        );
        text.place(Stamp::SpanHex, 16);
        if place == 0 {
            text.put("\",\"trace_id\":\"1-");
            text.place(Stamp::TraceTimeHex, 8);
            text.put("-");
            text.place(Stamp::TraceRestHex, 24);
        }
        text.put("\",\"start_time\":");
        text.place(Stamp::StartSeconds, 17);
        text.put(",\"end_time\":");
        text.place(Stamp::EndSeconds, 17);
        text.put(",\"annotations\":{");
        text.members(parts, true);
        text.put("}");
    })
}

/// Shows the messages at the end of a path of fields, with their offsets.
fn within(message: &[u8], offset: usize, path: &[u64], found: &mut dyn FnMut(&[u8], usize)) {
    let Some((first, rest)) = path.split_first() else { return found(message, offset) };
    fields(message, offset, &mut |field, at, length| {
        if field == *first {
            within(&message[at - offset..at - offset + length], at, rest, found);
        }
    });
}

/// Field number, position and length of every field of a message that was encoded here.
fn fields(message: &[u8], offset: usize, found: &mut dyn FnMut(u64, usize, usize)) {
    let mut at = 0;
    let varint = |at: &mut usize| {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = message[*at];
            *at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    };
    while at < message.len() {
        let tag = varint(&mut at);
        let length = match tag & 7 {
            0 => {
                let start = at;
                varint(&mut at);
                found(tag >> 3, offset + start, at - start);
                continue;
            }
            1 => 8,
            2 => varint(&mut at) as usize,
            _ => 4,
        };
        found(tag >> 3, offset + at, length);
        at += length;
    }
}
