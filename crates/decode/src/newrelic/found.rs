//! A span as New Relic's agents describe it, in whichever encoding.

use crate::gather::Gatherer;
use crate::ids::hex_exact;
use crate::span::{Kind, Source, Span, Status};
use crate::times;
use crate::value::Value;

/// Why a span without a trace id or an id, or with a parent that is none, can never be stored.
pub(super) const IDS: [&str; 3] = [
    "traceId is not 32 hexadecimal digits, or all zeros",
    "guid is not 16 hexadecimal digits, or all zeros",
    "parentId is not 16 hexadecimal digits",
];

/// A span in the making.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    span: Span<'a>,
    parent_id: &'a [u8],
    category: &'a [u8],
    is_entry: bool,
    /// `Span`, `SpanLink`, `SpanEvent`.
    kind_of_event: &'a [u8],
}

impl<'a> Found<'a> {
    /// Notes that so many bytes of the message are this span's.
    pub(super) fn takes(&mut self, size: u32) {
        self.span.size = self.span.size.saturating_add(size);
    }

    /// Takes what the agent says of the span.
    pub(super) fn intrinsic(&mut self, key: &[u8], value: Value<'a>, gatherer: &mut Gatherer<'a>) {
        match (key, value) {
            (b"type", Value::Text(kind)) => self.kind_of_event = kind,
            (b"traceId", Value::Text(id)) => self.span.trace_id = hex_exact(id).unwrap_or_default(),
            (b"guid", Value::Text(id)) => self.span.span_id = hex_exact(id).unwrap_or_default(),
            (b"parentId", Value::Text(id)) => self.parent_id = id,
            (b"name", Value::Text(name)) => self.span.operation = name,
            // ms.
            (b"timestamp", at) => self.span.start_ns = times::of_ms(at.count()),
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
    }

    /// Takes an attribute of the program, or of the agent.
    pub(super) fn attribute(&mut self, key: &[u8], value: Value<'_>, gatherer: &mut Gatherer<'a>) {
        if matches!(key, b"error.class" | b"error.message") && !value.is_null() {
            self.span.status = Status::Error;
        }
        attribute(key, value, gatherer);
    }

    /// Adds the span. Links and events of spans come as events of their own: they are none.
    pub(super) fn push(mut self, gatherer: &mut Gatherer<'a>, source: Source<'a>) {
        if !matches!(self.kind_of_event, b"Span" | b"") {
            return;
        }
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
    if value.is_null() {
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
