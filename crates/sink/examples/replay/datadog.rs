//! Datadog's traces, version 0.4: a map for each span, a chunk for each trace.

use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use rmp::encode::{write_array_len, write_f64, write_map_len, write_str, write_u64, write_uint};

use crate::batches::{Places, Stamp, Template};
use crate::values::{SpanParts, as_text};

/// A message in the making; writing to memory cannot fail.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn array(&mut self, values: usize) {
        let _ = write_array_len(&mut self.0, values as u32);
    }

    fn map(&mut self, name: &str, pairs: usize) {
        self.text(name);
        let _ = write_map_len(&mut self.0, pairs as u32);
    }

    fn text(&mut self, text: &str) {
        let _ = write_str(&mut self.0, text);
    }

    fn field(&mut self, name: &str, text: &str) {
        self.text(name);
        self.text(text);
    }

    /// A number of eight bytes that is stamped in.
    fn place(&mut self, name: &str, stamp: Stamp, places: &mut Places) {
        self.text(name);
        let _ = write_u64(&mut self.0, 0);
        places.places.push((self.0.len() - 8, stamp));
    }
}

/// Whole traces of three spans each, the first of which has the high half of the trace's id, as tracers write it.
pub(crate) fn template(parts: &[SpanParts]) -> Template {
    let (mut message, mut spans) = (Message::default(), Vec::new());
    message.array(parts.len() / 3);
    for trace in parts.chunks(3) {
        message.array(trace.len());
        for (id, (resource, kind, attributes)) in trace.iter().enumerate() {
            let mut found = Places { is_root: id == 0, ..Places::default() };
            let (name, of_type) = [("servlet.request", "web"), ("mysql.query", "sql"), ("redis.command", "redis")][id];
            let _ = write_map_len(&mut message.0, if found.is_root { 11 } else { 12 });
            message.field("service", "petclinic");
            message.field("name", name);
            message.field("resource", resource);
            message.field("type", of_type);
            message.place("trace_id", Stamp::TraceLow, &mut found);
            message.place("span_id", Stamp::Span, &mut found);
            if !found.is_root {
                message.place("parent_id", Stamp::Root, &mut found);
            }
            message.place("start", Stamp::StartNanosBig, &mut found);
            message.place("duration", Stamp::DurationNanosBig, &mut found);
            message.text("error");
            let _ = write_uint(&mut message.0, 0);
            let is_number = |tag: &&KeyValue| {
                matches!(tag.value.as_ref().and_then(|value| value.value.as_ref()), Some(Value::IntValue(_)))
            };
            let (numbers, texts): (Vec<_>, Vec<_>) = attributes.iter().partition(is_number);
            message.map("meta", texts.len() + if found.is_root { 2 } else { 1 });
            message.field("span.kind", if *kind == 2 { "server" } else { "client" });
            if found.is_root {
                message.field("_dd.p.tid", "0000000000000000");
                found.places.push((message.0.len() - 16, Stamp::TraceHighHex));
            }
            texts.iter().for_each(|tag| message.field(&tag.key, &as_text(tag, false)));
            message.map("metrics", numbers.len() + 1);
            message.text("_sampling_priority_v1");
            let _ = write_f64(&mut message.0, 1.0);
            for tag in numbers {
                message.text(&tag.key);
                let _ = write_f64(&mut message.0, as_text(tag, false).parse().unwrap_or_default());
            }
            spans.push(found);
        }
    }
    Template { message: message.0, spans }
}
