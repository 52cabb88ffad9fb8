//! A span of Zipkin's in the making: what both encodings have.

use crate::gather::Gatherer;
use crate::span::{Kind, Source, Span, Status};
use crate::value::Value;

/// Why a span without a trace id or an id can never be stored.
pub(super) const IDS: [&str; 2] =
    ["a span's trace id is not 64 or 128 bits, or all zeros", "a span's id is not 64 bits, or all zeros"];
const PARENT_ID: &str = "a span's parent id is not 64 bits";

#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    /// Whether it is shared says that the client of the call made its id, and may report a span with the same.
    pub(super) span: Span<'a>,
    /// µs.
    pub(super) timestamp: u64,
    /// µs.
    pub(super) duration: u64,
    pub(super) service: &'a [u8],
    pub(super) remote: &'a [u8],
    is_parent_broken: bool,
}

impl<'a> Found<'a> {
    /// Sets the parent; `is_there` if its id is not empty or all zeros.
    pub(super) fn parent(&mut self, id: Option<[u8; 8]>, is_there: bool) {
        self.is_parent_broken = is_there && id.is_none();
        self.span.parent_id = id;
    }

    /// Adds a tag.
    pub(super) fn tag(&mut self, key: &[u8], value: Value<'_>, gatherer: &mut Gatherer<'a>) {
        if key == b"error" {
            self.span.status = Status::Error;
        }
        gatherer.attribute(key, value);
    }

    /// Adds the span.
    pub(super) fn push(self, gatherer: &mut Gatherer<'a>) {
        let Self { mut span, timestamp, duration, service, remote, is_parent_broken } = self;
        if !gatherer.has_ids(&span, IDS) {
            return;
        }
        if is_parent_broken {
            return gatherer.reject(PARENT_ID);
        }
        gatherer.text(b"peer.service", remote);
        if span.is_shared {
            gatherer.attribute(b"zipkin.shared", Value::Truth(true));
        }
        span.source = gatherer.source(Source { service, instance: None });
        span.start_ns = timestamp.saturating_mul(1_000);
        span.duration_ns = i64::try_from(duration.saturating_mul(1_000)).unwrap_or(i64::MAX);
        // Not every tracer says that it shares an id, but only the server's half of a call can.
        span.is_shared |= span.kind == Kind::Server;
        gatherer.push(span);
    }
}
