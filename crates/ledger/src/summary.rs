//! What the sink has seen: its output, live and at the end.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// One line of the sink process's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// All listeners are bound.
    Ready {
        /// Bound addresses by protocol: `otlp_grpc`, `otlp_http`, ….
        addresses: BTreeMap<String, SocketAddr>,
    },
    /// The answer to being asked to listen in another network namespace as well.
    Listening {
        /// Why it does not; `None`: it does.
        error: Option<String>,
    },
    /// Every 100 ms.
    Tick {
        /// Spans received so far.
        received: u64,
        /// Spans in the store so far.
        saved: u64,
        /// Milliseconds since the last span arrived (since start, if none has).
        quiet_ms: u64,
    },
    /// Every second, if the configuration wants it: everything counted so far.
    Live(Box<Summary>),
    /// The sink has written everything and stops.
    Done(Box<Summary>),
}

/// Everything the sink counted. Also `DIR/summary.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Spans received and understood.
    pub received: u64,
    /// Distinct spans in the store.
    pub saved: u64,
    /// Spans received more than once (same trace id and span id).
    pub duplicates: u64,
    /// Spans refused because they can never be stored (broken ids, …).
    pub rejected: u64,
    /// Spans thrown away on purpose, though their sender was told that they were taken: see [`crate::faults`].
    #[serde(default)]
    pub dropped: u64,
    /// Requests refused, reset or never answered on purpose.
    #[serde(rename = "struck", default)]
    pub faulted: u64,
    /// Requests that could not be decoded.
    pub undecodable: u64,
    /// Distinct spans whose trace id is not of this load (the service's own start-up, health checks, other traffic); 0 if
    /// the sink was not told how the load makes its ids.
    pub foreign: u64,
    /// Bytes of telemetry received, before decompression.
    pub bytes: u64,
    /// Bytes of the span files.
    pub stored_bytes: u64,
    /// Distinct traces, of the load and others.
    #[serde(default)]
    pub traces: u64,
    /// Distinct spans that arrived more than ten seconds after their end.
    #[serde(default)]
    pub late: u64,
    /// How long after their end spans arrived.
    #[serde(default)]
    pub delay_ms: Delay,
    /// Losses that agents told of themselves, and the kernel of datagrams, by service and stage.
    #[serde(rename = "told", default)]
    pub reported_losses: Vec<ReportedLoss>,
    /// How the spans of the load hang together, read back from the store; `None` if they were not stored.
    #[serde(default)]
    pub shape: Option<Shape>,
    /// Spans received by protocol, duplicates included.
    pub by_protocol: BTreeMap<String, u64>,
    /// Distinct spans by service name.
    pub by_service: BTreeMap<String, u64>,
    /// Distinct spans by service and operation, in the order of their names; what comes after the first few hundred names
    /// is in `(other)`.
    pub operations: Vec<Operation>,
    /// Distinct spans by request index, run-length encoded: `(spans, how many requests in a row)`, from index 0 to the last
    /// request that has any.
    pub spans_by_request: Vec<(u32, u64)>,
}

/// Time from the end of a span to its arrival, in milliseconds, rounded up to one less than a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Delay {
    /// Median.
    pub p50: u64,
    /// 99 of 100 spans took no longer.
    pub p99: u64,
    /// No span took longer.
    pub max: u64,
}

/// A loss that an agent told of itself, in its own metrics, or the kernel of datagrams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedLoss {
    /// Service name.
    pub service: String,
    /// `queue` (the agent's queue was full), `export` (sending failed for good), `filter` (the program's own rules), `reservoir`
    /// (the agent keeps a sample of so many a minute) or `socket` (datagrams found no room in the sink's socket: a span for each, at least).
    pub stage: String,
    /// Spans lost there.
    pub spans: u64,
}

/// How the spans of the load's traces hang together. A trace has one entry: the span that starts first among those that
/// name no parent, or one that is not in the trace (the load generator's).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shape {
    /// Rows in the store, of the load and others.
    pub rows: u64,
    /// Traces with a span, other than the entry, whose parent is not in the trace: it was lost.
    pub orphaned: u64,
    /// Traces with a span, other than the entry, that names no parent, or that is its own ancestor.
    pub wrong_parent: u64,
}

/// Spans of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Service name.
    pub service: String,
    /// Span name.
    pub operation: String,
    /// Distinct spans.
    pub spans: u64,
    /// Of those, spans of the load's requests.
    #[serde(default)]
    pub of_load: u64,
    /// Quantiles of their durations, µs.
    pub p50_us: f64,
    /// See `p50_us`.
    pub p90_us: f64,
    /// See `p50_us`.
    pub p99_us: f64,
}

/// Run-length encoding of the spans of every request from index 0: `(spans, how many requests in a row)`.
/// `counts` are `(index, spans)` in ascending order; indices left out have no span.
pub fn run_lengths(counts: impl IntoIterator<Item = (u64, u32)>) -> Vec<(u32, u64)> {
    let mut runs: Vec<(u32, u64)> = Vec::new();
    let mut push = |spans: u32, requests: u64| match runs.last_mut() {
        _ if requests == 0 => {}
        Some(last) if last.0 == spans => last.1 += requests,
        _ => runs.push((spans, requests)),
    };
    let mut next = 0;
    for (index, spans) in counts {
        push(0, index - next);
        push(spans, 1);
        next = index + 1;
    }
    runs
}

#[cfg(test)]
mod tests {
    use unladen_trace::MAX_INDEX;

    use super::*;

    #[test]
    fn runs_cover_gaps() {
        assert_eq!(run_lengths([]), []);
        assert_eq!(run_lengths([(0, 3), (1, 3), (2, 1), (5, 1), (6, 1)]), [(3, 2), (1, 1), (0, 2), (1, 2)]);
        assert_eq!(run_lengths([(MAX_INDEX, 1)]), [(0, MAX_INDEX), (1, 1)]);
    }
}
