//! Segments of SkyWalking and their spans in the making: what both encodings have.

use crate::attributes::RawAttributes;
use crate::gather::Gatherer;
use crate::ids;
use crate::span::{Kind, Source, Span, Status};
use crate::times;

const NO_TRACE: &str = "a segment has no trace id";
pub(super) const NO_SEGMENT: &str = "a segment has no id of its own";

/// What every span of a segment shares, as it comes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Segment<'a> {
    pub(super) trace_id: &'a [u8],
    pub(super) id: &'a [u8],
    pub(super) service: &'a [u8],
    pub(super) instance: &'a [u8],
}

/// The same, once for all spans.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared<'a> {
    trace_id: [u8; 16],
    spans: ids::Named,
    source: Source<'a>,
    /// The source's number, once there is a span of it.
    number: Option<u32>,
}

impl<'a> Segment<'a> {
    /// What its spans need, or why they can never be stored.
    pub(super) fn shared(&self) -> Result<Shared<'a>, &'static str> {
        if self.trace_id.is_empty() {
            return Err(NO_TRACE);
        }
        if self.id.is_empty() {
            return Err(NO_SEGMENT);
        }
        let instance = Some(self.instance).filter(|instance| !instance.is_empty());
        Ok(Shared {
            trace_id: ids::trace_id(self.trace_id),
            spans: ids::Named::new(self.id),
            source: Source { service: self.service, instance },
            number: None,
        })
    }
}

/// A span before its segment is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found<'a> {
    pub(super) id: i64,
    /// −1 for the first of the segment.
    pub(super) parent: i64,
    /// Segment and span of the first reference.
    pub(super) reference: Option<(&'a [u8], i64)>,
    /// ms.
    pub(super) start: i64,
    /// ms.
    pub(super) end: i64,
    pub(super) operation: &'a [u8],
    pub(super) peer: &'a [u8],
    pub(super) kind: i64,
    pub(super) layer: i64,
    pub(super) is_error: bool,
    pub(super) size: u32,
}

impl<'a> Found<'a> {
    /// Adds the span; its attributes are in the gatherer already, unless they are given.
    #[inline]
    pub(super) fn push(
        self,
        segment: &mut Result<Shared<'a>, &'static str>,
        attributes: Option<RawAttributes<'a>>,
        gatherer: &mut Gatherer<'a>,
    ) {
        let Shared { trace_id, spans, source, number } = match segment {
            Ok(shared) => shared,
            Err(reason) => return gatherer.reject(reason),
        };
        let parent_id = match self.reference {
            _ if self.parent >= 0 => Some(spans.span_id(self.parent)),
            Some((parent_segment, parent)) => Some(ids::span_id(parent_segment, parent)),
            None => None,
        };
        // Messages are layer 4: entries and exits of queues, not of calls.
        let kind = match (self.kind, self.layer) {
            (0, 4) => Kind::Consumer,
            (0, _) => Kind::Server,
            (1, 4) => Kind::Producer,
            (1, _) => Kind::Client,
            _ => Kind::Internal,
        };
        let ns = |ms: i64| times::of_ms(u64::try_from(ms).unwrap_or(0));
        let span = Span {
            source: *number.get_or_insert_with(|| gatherer.source(*source)),
            trace_id: *trace_id,
            span_id: spans.span_id(self.id),
            parent_id,
            kind,
            operation: self.operation,
            status: if self.is_error { Status::Error } else { Status::Unset },
            size: self.size,
            start_ns: ns(self.start),
            duration_ns: Span::until(ns(self.start), ns(self.end)),
            ..Span::default()
        };
        match attributes {
            Some(attributes) => gatherer.push_raw(Span { attributes, ..span }),
            None => {
                gatherer.text(b"peer", self.peer);
                gatherer.push(span);
            }
        }
    }
}
