//! The accounts: what has been received, by protocol, service, operation, trace and request. Knows no protocol, no
//! clock and no file.

mod operations;
mod seen;

use std::collections::BTreeMap;

use crate::config::Requests;
use crate::span::{Protocol, Source, Span};
use crate::summary::Summary;
use operations::Operations;
pub(crate) use operations::UNKNOWN_SERVICE;
use seen::Seen;

/// What is known of a span once it is booked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Booked {
    /// Seen before: not to be stored again.
    Duplicate,
    /// New, with the index of its request if it belongs to one.
    New {
        /// See [`Requests::index`].
        request: Option<u64>,
    },
}

/// All counters of a sink.
#[derive(Debug)]
pub(crate) struct Accounts {
    requests: Option<Requests>,
    received: u64,
    saved: u64,
    duplicates: u64,
    foreign: u64,
    rejected: u64,
    undecodable: u64,
    bytes: u64,
    by_protocol: [u64; Protocol::NAMES.len()],
    operations: Operations,
    seen: Seen,
}

impl Accounts {
    /// Empty accounts.
    pub(crate) fn new(requests: Option<Requests>) -> Self {
        Self {
            requests,
            received: 0,
            saved: 0,
            duplicates: 0,
            foreign: 0,
            rejected: 0,
            undecodable: 0,
            bytes: 0,
            by_protocol: Default::default(),
            operations: Operations::default(),
            seen: Seen::default(),
        }
    }

    /// Spans received and understood.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Distinct spans.
    pub(crate) fn saved(&self) -> u64 {
        self.saved
    }

    /// Books the bytes of a body, before decompression.
    pub(crate) fn body(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Books spans that can never be stored.
    pub(crate) fn rejected(&mut self, spans: u64) {
        self.rejected += spans;
    }

    /// Books a request that cannot be decoded.
    pub(crate) fn undecodable(&mut self) {
        self.undecodable += 1;
    }

    /// Prepares for these spans, which are booked next.
    pub(crate) fn foresee(&self, spans: &[Span<'_>]) {
        let index = |span: &Span<'_>| self.requests.and_then(|requests| requests.index(&span.trace_id));
        self.seen.foresee(spans.iter().map(|span| (index(span), &span.trace_id, span.span_id)));
    }

    /// Books a span.
    pub(crate) fn span(&mut self, protocol: Protocol, source: &Source<'_>, span: &Span<'_>) -> Booked {
        self.received += 1;
        self.by_protocol[protocol as usize] += 1;
        let request = self.requests.and_then(|requests| requests.index(&span.trace_id));
        let new = match request {
            Some(index) => self.seen.of_request(index, span.span_id),
            None => self.seen.of_trace(span.trace_id, span.span_id),
        };
        if !new {
            self.duplicates += 1;
            return Booked::Duplicate;
        }
        self.saved += 1;
        if self.requests.is_some() && request.is_none() {
            self.foreign += 1;
        }
        self.operations.book(source.service, span.operation, span.duration_ns);
        Booked::New { request }
    }

    /// Everything counted; `stored_bytes` is left to the store.
    pub(crate) fn summary(&self) -> Summary {
        let by_protocol: BTreeMap<String, u64> = Protocol::NAMES
            .iter()
            .zip(self.by_protocol)
            .filter(|(_, spans)| *spans > 0)
            .map(|(name, spans)| (String::from(*name), spans))
            .collect();
        Summary {
            received: self.received,
            saved: self.saved,
            duplicates: self.duplicates,
            rejected: self.rejected,
            undecodable: self.undecodable,
            foreign: self.foreign,
            bytes: self.bytes,
            stored_bytes: 0,
            traces: self.seen.traces(),
            by_protocol,
            by_service: self.operations.by_service(),
            operations: self.operations.list(),
            spans_by_request: self.seen.spans_by_request(),
        }
    }
}
