//! Puts a batch together from what a decoder finds, piece by piece. For the protocols whose attributes cannot stay as they
//! came: JSON has escapes, Thrift is not to be walked twice, and some fields are attributes in all but name.

use bumpalo::Bump;

use crate::attributes::{RawAttributes, logged};
use crate::ids::hex_exact;
use crate::loss::{LossCount, Stage};
use crate::span::{Batch, MAX_SPANS, Source, Span};
use crate::value::Value;

/// A batch in the making.
#[derive(Debug)]
pub(crate) struct Gatherer<'a> {
    arena: &'a Bump,
    batch: Batch<'a>,
    /// Of the span at hand.
    attributes: Vec<u8>,
}

impl<'a> Gatherer<'a> {
    /// Empty, with room for about so many spans.
    pub(crate) fn new(arena: &'a Bump, spans: usize) -> Self {
        let batch = Batch { spans: Vec::with_capacity(spans.min(MAX_SPANS)), ..Batch::default() };
        Self { arena, batch, attributes: Vec::new() }
    }

    /// Where text may be put that is no slice of the message.
    pub(crate) fn arena(&self) -> &'a Bump {
        self.arena
    }

    /// Forgets the attributes of a span that was given up.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.attributes.clear();
    }

    /// Adds an attribute to the span at hand.
    #[inline]
    pub(crate) fn attribute(&mut self, key: &[u8], value: Value<'_>) {
        logged::put(key, value, &mut self.attributes);
    }

    /// The same for text that may not be there.
    #[inline]
    pub(crate) fn text(&mut self, key: &[u8], text: &[u8]) {
        if !text.is_empty() {
            self.attribute(key, Value::Text(text));
        }
    }

    /// Notes spans that their sender threw away since its last report.
    pub(crate) fn lose(&mut self, source: Source<'a>, stage: Stage, metric: &'a [u8], spans: u64) {
        match self.batch.losses.last_mut() {
            Some(last) if (last.source, last.stage, last.metric) == (source, stage, metric) => {
                last.spans = last.spans.saturating_add(spans);
            }
            _ => self.batch.losses.push(LossCount { source, stage, metric, series: 0, spans, is_cumulative: false }),
        }
    }

    /// The number of a source; the one before, if it is the same.
    #[inline]
    pub(crate) fn source(&mut self, source: Source<'a>) -> u32 {
        if self.batch.sources.last() != Some(&source) {
            self.batch.sources.push(source);
        }
        (self.batch.sources.len() - 1) as u32
    }

    /// The number of a source of which nothing is known yet.
    pub(crate) fn fresh_source(&mut self) -> u32 {
        self.batch.sources.push(Source::default());
        (self.batch.sources.len() - 1) as u32
    }

    /// Says what is known by now of the source that was given a number, if one was.
    pub(crate) fn known_source(&mut self, number: Option<u32>, source: Source<'a>) {
        if let Some(known) = number.and_then(|number| self.batch.sources.get_mut(number as usize)) {
            *known = source;
        }
    }

    /// Whether a span has its ids; else it is counted as rejected, for the first or the second of the reasons.
    #[inline]
    pub(crate) fn has_ids(&mut self, span: &Span<'_>, reasons: [&'static str; 2]) -> bool {
        let missing = missing_id(span, reasons);
        missing.into_iter().for_each(|reason| self.reject(reason));
        missing.is_none()
    }

    /// The same for a span whose parent's id is in hexadecimal digits, none or all zeros if it has none. It is set; the third of the
    /// reasons is that it is no id. Returns the reason that counted.
    pub(crate) fn reject_without_ids(
        &mut self,
        span: &mut Span<'_>,
        parent_id: &[u8],
        [trace_id, own_id, no_parent_id]: [&'static str; 3],
    ) -> Option<&'static str> {
        span.parent_id = hex_exact(parent_id);
        let is_no_id = span.parent_id.is_none() && parent_id.iter().any(|digit| *digit != b'0');
        let reason = missing_id(span, [trace_id, own_id]).or(is_no_id.then_some(no_parent_id));
        reason.into_iter().for_each(|reason| self.reject(reason));
        reason
    }

    /// Adds the span at hand with its attributes.
    #[inline]
    pub(crate) fn push(&mut self, span: Span<'a>) {
        let attributes = RawAttributes::Logged(self.arena.alloc_slice_copy(&self.attributes));
        self.attributes.clear();
        self.push_raw(Span { attributes, ..span });
    }

    /// Adds a span whose attributes stay as they came.
    #[inline]
    pub(crate) fn push_raw(&mut self, span: Span<'a>) {
        self.batch.push(span);
    }

    /// Spans so far, for what is known of them only later.
    pub(crate) fn spans(&mut self) -> &mut [Span<'a>] {
        &mut self.batch.spans
    }

    /// Takes back the spans from this one on: they can never be stored.
    pub(crate) fn reject_from(&mut self, first: usize, reason: &'static str) {
        while self.batch.spans.len() > first {
            self.batch.spans.pop();
            self.batch.reject(reason);
        }
    }

    /// Counts a span that can never be stored.
    pub(crate) fn reject(&mut self, reason: &'static str) {
        self.attributes.clear();
        self.batch.reject(reason);
    }

    /// All of it.
    pub(crate) fn finish(self) -> Batch<'a> {
        self.batch
    }
}

/// Which of its ids a span lacks: the first or the second of the reasons.
fn missing_id(span: &Span<'_>, [trace_id, span_id]: [&'static str; 2]) -> Option<&'static str> {
    if span.trace_id == [0; 16] {
        return Some(trace_id);
    }
    (span.span_id == [0; 8]).then_some(span_id)
}
