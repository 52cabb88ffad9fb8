//! Spans on their way to the store, column by column: filled on the receiving thread, written by the other.

use std::collections::HashMap;

use crate::account::UNKNOWN_SERVICE;
use crate::config::Attributes;
use crate::json;
use crate::span::{Protocol, Source, Span};

/// A column of strings of which few differ: each is kept once and rows hold its number.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    numbers: HashMap<Box<[u8]>, u32>,
    /// The distinct strings, valid UTF-8, back to back.
    pub(crate) text: Vec<u8>,
    /// Where each of them ends in `text`.
    pub(crate) ends: Vec<usize>,
    /// Number of each row's string; `None` for none.
    pub(crate) rows: Vec<Option<u32>>,
    last: Option<u32>,
}

impl Strings {
    fn push(&mut self, bytes: Option<&[u8]>) {
        let number = bytes.map(|bytes| self.number(bytes));
        self.rows.push(number);
    }

    fn number(&mut self, bytes: &[u8]) -> u32 {
        // Neighbours are often alike, and comparing is cheaper than hashing.
        if let Some(last) = self.last
            && self.get(last) == bytes
        {
            return last;
        }
        let number = match self.numbers.get(bytes) {
            Some(number) => *number,
            None => {
                let number = self.ends.len() as u32;
                self.text.extend_from_slice(String::from_utf8_lossy(bytes).as_bytes());
                self.ends.push(self.text.len());
                self.numbers.insert(bytes.into(), number);
                number
            }
        };
        self.last = Some(number);
        number
    }

    fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.text[start..self.ends[number]]
    }
}

/// Some thousand spans, as columns of equal length.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// 16 bytes a row.
    pub(crate) trace_id: Vec<u8>,
    /// 8 bytes a row.
    pub(crate) span_id: Vec<u8>,
    /// 8 bytes for each row that has one.
    pub(crate) parent_id: Vec<u8>,
    /// Whether each row has a parent.
    pub(crate) has_parent: Vec<bool>,
    /// [`crate::span::Kind`].
    pub(crate) kind: Vec<u8>,
    /// Service names.
    pub(crate) service: Strings,
    /// Instances of services.
    pub(crate) instance: Strings,
    /// Span names.
    pub(crate) operation: Strings,
    /// Unix time, ns.
    pub(crate) start_ns: Vec<i64>,
    /// ns.
    pub(crate) duration_ns: Vec<i64>,
    /// [`crate::span::Status`].
    pub(crate) status: Vec<u8>,
    /// [`Protocol`].
    pub(crate) protocol: Vec<u8>,
    /// Unix time, ns.
    pub(crate) arrival_ns: Vec<i64>,
    /// Bytes in the message.
    pub(crate) size: Vec<i32>,
    /// Index of the request.
    pub(crate) request: Vec<Option<i64>>,
    /// JSON objects, back to back.
    pub(crate) attributes: Vec<u8>,
    /// Where each row's object ends; `None` if it has none.
    pub(crate) attributes_end: Vec<Option<usize>>,
}

impl Rows {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.kind.len()
    }

    /// Appends a span.
    pub(crate) fn push(
        &mut self,
        span: &Span<'_>,
        source: &Source<'_>,
        request: Option<u64>,
        protocol: Protocol,
        arrival_ns: i64,
        which: Attributes,
    ) {
        self.trace_id.extend_from_slice(&span.trace_id);
        self.span_id.extend_from_slice(&span.span_id);
        self.parent_id.extend_from_slice(span.parent_id.as_ref().map_or(&[][..], |id| id));
        self.has_parent.push(span.parent_id.is_some());
        self.kind.push(span.kind as u8);
        let service = if source.service.is_empty() { UNKNOWN_SERVICE.as_bytes() } else { source.service };
        self.service.push(Some(service));
        self.instance.push(source.instance);
        self.operation.push(Some(span.operation));
        self.start_ns.push(i64::try_from(span.start_ns).unwrap_or(i64::MAX));
        self.duration_ns.push(span.duration_ns);
        self.status.push(span.status as u8);
        self.protocol.push(protocol as u8);
        self.arrival_ns.push(arrival_ns);
        self.size.push(i32::try_from(span.size).unwrap_or(i32::MAX));
        self.request.push(request.map(|index| index as i64));
        let start = self.attributes.len();
        if which != Attributes::None {
            span.attributes.visit(|key, value| {
                if which.wants(key) {
                    json::member(key, value, self.attributes.len() == start, &mut self.attributes);
                }
            });
        }
        let any = self.attributes.len() > start;
        if any {
            self.attributes.push(b'}');
        }
        self.attributes_end.push(any.then_some(self.attributes.len()));
    }
}
