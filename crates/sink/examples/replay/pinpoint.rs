//! Spans of Pinpoint's agents, each with the methods that were called for it: `PSpanMessage` of `v1/Span.proto`.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use unladen_decode::wire::{put_bytes, put_number, put_varint};

use crate::batches::{Places, Stamp, Template};
use crate::formats::frame;
use crate::values::SpanParts;

/// A message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, field: u32, number: u64) {
        put_number(&mut self.0, field, number);
    }

    fn fixed(&mut self, field: u32, number: u64) {
        put_varint(&mut self.0, u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        put_bytes(&mut self.0, field, bytes);
    }

    /// A varint of so many bytes that is stamped in.
    fn place(&mut self, field: u32, stamp: Stamp, length: usize, places: &mut Places) {
        put_varint(&mut self.0, u64::from(field) << 3);
        places.places.push((self.0.len(), stamp));
        self.0.resize(self.0.len() + length, 0);
    }

    /// The attributes that Pinpoint has annotations for: texts and numbers with a key.
    fn annotations(&mut self, field: u32, (_, _, attributes): &SpanParts) {
        for (key, attribute) in attributes.iter().take(5).enumerate() {
            let mut value = Self::default();
            match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
                Some(Value::StringValue(text)) => value.bytes(1, text.as_bytes()),
                Some(Value::IntValue(number)) => value.number(3, *number as u64),
                _ => {}
            }
            let mut annotation = Self::default();
            annotation.number(1, 40 + key as u64);
            annotation.bytes(2, &value.0);
            self.bytes(field, &annotation.0);
        }
    }
}

/// An event of a span: the call of a database.
fn event(sequence: u64, parts: &SpanParts) -> Message {
    let mut event = Message::default();
    event.number(1, sequence);
    event.number(2, 1);
    event.number(3, 1);
    event.number(4, 1);
    // MySQL; signs alternate.
    event.number(5, 2 * 2_101);
    event.annotations(6, parts);
    event.number(10, 2 * (7 + sequence));
    let mut call = Message::default();
    call.bytes(2, b"mysql.shop.svc:3306");
    call.bytes(3, b"shop");
    let mut next = Message::default();
    next.bytes(1, &call.0);
    event.bytes(12, &next.0);
    event
}

/// Whole traces of three spans: the service's, and two events of it.
pub(crate) fn template(parts: &[SpanParts]) -> Template {
    let mut template = Template::default();
    for trace in parts.chunks(3) {
        let mut found = Places { is_root: true, ..Places::default() };
        let mut id = Message::default();
        id.bytes(1, b"unladen");
        id.place(2, Stamp::TraceHighVarint, 10, &mut found);
        id.place(3, Stamp::TraceLowVarint, 10, &mut found);
        let mut span = Message::default();
        span.number(1, 1);
        span.bytes(2, &id.0);
        // They were noted where they are in the transaction's id, which ends here.
        let begin = span.0.len() - id.0.len();
        found.places.iter_mut().for_each(|(at, _)| *at += begin);
        span.fixed(3, 2);
        span.fixed(4, 1);
        span.place(5, Stamp::StartMillis, 6, &mut found);
        span.number(6, 12);
        span.number(7, 3);
        let mut accepted = Message::default();
        accepted.bytes(1, trace[0].0.as_bytes());
        accepted.bytes(2, b"petclinic.shop.svc:8080");
        accepted.bytes(3, b"10.2.0.17");
        span.bytes(9, &accepted.0);
        span.annotations(10, &trace[0]);
        for (sequence, parts) in (0..).zip(&trace[1..]) {
            span.bytes(13, &event(sequence, parts).0);
        }
        let mut message = Message::default();
        message.bytes(1, &span.0);
        frame(&message.0, &mut template.message);
        let begin = template.message.len() - span.0.len();
        found.places.iter_mut().for_each(|(at, _)| *at += begin);
        template.spans.push(found);
        template.spans.extend(trace[1..].iter().map(|_| Places::default()));
    }
    template
}
