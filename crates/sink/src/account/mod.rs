//! The accounts: what has been received, by protocol, service, operation, trace and request. Knows no protocol, no
//! clock and no file.

mod distinct;
mod losses;
mod operations;

use std::collections::BTreeMap;

use unladen_decode::loss::LossCount;
use unladen_decode::span::{Batch, Protocol, Source, Span};
use unladen_ledger::summary::{self, Summary};

use crate::config::Requests;
use distinct::{DistinctSpans, TraceMarks};
use losses::Losses;
use operations::Operations;

/// What a span has been counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedAs {
    /// Seen before: not to be stored again.
    Duplicate,
    /// New, with the index of its request if it belongs to one.
    New {
        /// See [`Requests::index`].
        request: Option<u64>,
    },
}

/// How long after their end spans arrive.
#[derive(Debug, Default)]
struct Delays {
    /// Spans by the power of two of the milliseconds, from 0 upwards.
    milliseconds: [u64; 32],
    late: u64,
}

/// Spans whose marks are fetched before the first of them is looked at.
const AHEAD: usize = 128;

/// Delay from which on a span is late: twice what the slowest common agent waits for a full batch.
const LATE_MS: u64 = 10_000;

impl Delays {
    #[inline]
    fn count(&mut self, span: &Span<'_>, arrival_ns: i64) {
        let end = span.start_ns.saturating_add_signed(span.duration_ns);
        let delay = u64::try_from(arrival_ns).unwrap_or(0).saturating_sub(end) / 1_000_000;
        self.late += u64::from(delay > LATE_MS);
        let power = (u64::BITS - delay.leading_zeros()) as usize;
        self.milliseconds[power.min(self.milliseconds.len() - 1)] += 1;
    }

    /// Upper bounds of the quantiles.
    fn quantiles(&self) -> summary::Delay {
        let all: u64 = self.milliseconds.iter().sum();
        let quantile = |share: f64| {
            let mut left = (all as f64 * share).ceil().max(1.0) as u64;
            let power = self.milliseconds.iter().position(|spans| {
                let is_here = *spans >= left;
                left -= (*spans).min(left);
                is_here
            });
            power.map_or(0, |power| (1_u64 << power) - 1)
        };
        summary::Delay { p50: quantile(0.5), p99: quantile(0.99), max: quantile(1.0) }
    }
}

/// All counters of a sink.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// What is a plain number: counted here and by the hub.
    pub(crate) counts: Summary,
    requests: Option<Requests>,
    by_protocol: [u64; Protocol::NAMES.len()],
    operations: Operations,
    distinct: DistinctSpans,
    losses: Losses,
    delays: Delays,
    counted: Vec<CountedAs>,
    /// Requests and marks of the spans at hand.
    prefetched: Vec<(Option<u64>, [u64; 2])>,
}

impl Accounts {
    /// Empty accounts.
    pub(crate) fn new(requests: Option<Requests>) -> Self {
        Self { requests, ..Self::default() }
    }

    /// Counts a batch; what became of each span is in [`Accounts::counted`].
    pub(crate) fn batch(&mut self, protocol: Protocol, batch: &Batch<'_>, arrival_ns: i64) {
        self.counts.rejected += batch.rejected;
        self.counts.received += batch.spans.len() as u64;
        self.by_protocol[protocol as usize] += batch.spans.len() as u64;
        self.counted.clear();
        // Some at a time: what is fetched must still be near when it is needed.
        for spans in batch.spans.chunks(AHEAD) {
            self.prefetch(spans, &batch.sources);
            self.spans(spans, &batch.sources, arrival_ns);
        }
    }

    /// Finds out which requests spans belong to, and fetches what is known of those of none.
    fn prefetch(&mut self, spans: &[Span<'_>], sources: &[Source<'_>]) {
        self.prefetched.clear();
        let mut last: Option<(&[u8; 16], Option<u64>, TraceMarks)> = None;
        for span in spans {
            // Spans of a trace often follow each other.
            let (_, request, trace) = *match &mut last {
                Some(last) if last.0 == &span.trace_id => last,
                last => {
                    let request = self.requests.and_then(|requests| requests.index(&span.trace_id));
                    last.insert((&span.trace_id, request, TraceMarks::of(request, &span.trace_id)))
                }
            };
            let service = sources[span.source as usize].service;
            self.prefetched.push((request, DistinctSpans::marks(trace, span.identity(service))));
        }
        // What is known of requests is at hand.
        let others = self.prefetched.iter().filter(|(request, _)| request.is_none());
        self.distinct.fetch(others.flat_map(|(_, marks)| *marks));
    }

    fn spans(&mut self, spans: &[Span<'_>], sources: &[Source<'_>], arrival_ns: i64) {
        let mut last = None;
        for (span, (request, marks)) in spans.iter().zip(&self.prefetched) {
            let is_new = match request {
                Some(index) => self.distinct.of_request(*index, marks[0]),
                None => self.distinct.of_trace(*marks),
            };
            if is_new {
                self.counts.saved += 1;
                self.counts.foreign += u64::from(self.requests.is_some() && request.is_none());
                // Neighbours mostly have one source.
                let service = match last {
                    Some((source, service)) if source == span.source => service,
                    _ => self.operations.number(sources[span.source as usize].service()),
                };
                last = Some((span.source, service));
                self.operations.count(service, span.operation, span.duration_ns, request.is_some());
                self.delays.count(span, arrival_ns);
                self.counted.push(CountedAs::New { request: *request });
            } else {
                self.counts.duplicates += 1;
                self.counted.push(CountedAs::Duplicate);
            }
        }
    }

    /// Counts what an agent reports of its own losses.
    pub(crate) fn add_loss(&mut self, mut loss: LossCount<'_>) {
        loss.source.bound();
        self.losses.add(&loss);
    }

    /// What became of the spans of the last batch.
    pub(crate) fn counted(&self) -> &[CountedAs] {
        &self.counted
    }

    /// Everything counted; `stored_bytes` and `shape` are left to the store.
    pub(crate) fn summary(&mut self) -> Summary {
        let by_protocol: BTreeMap<String, u64> = Protocol::NAMES
            .iter()
            .zip(self.by_protocol)
            .filter(|(_, spans)| *spans > 0)
            .map(|(name, spans)| (String::from(*name), spans))
            .collect();
        Summary {
            traces: self.distinct.traces(),
            late: self.delays.late,
            delay_ms: self.delays.quantiles(),
            reported_losses: self.losses.list(),
            by_protocol,
            by_service: self.operations.by_service(),
            operations: self.operations.list(),
            spans_by_request: self.distinct.spans_by_request(),
            ..self.counts.clone()
        }
    }
}
