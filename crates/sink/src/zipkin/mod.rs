//! Zipkin's API, version 2 (<https://zipkin.io/zipkin-api/>): `POST /api/v2/spans`, as JSON or protobuf. Answers 202, as
//! Zipkin's server does, but not before the spans are taken.

pub(crate) mod json;
pub(crate) mod protobuf;

use http::{Method, Response, StatusCode};

use crate::answer::Reply;
use crate::gather::Gatherer;
use crate::hub::Hub;
use crate::inbound::Request;
use crate::span::{Kind, Protocol, Source, Span, Status};
use crate::value::Value;
use crate::web::{self, Failure, JSON, TEXT, content_type};

const SPANS: &str = "/api/v2/spans";
const TRACE_ID: &str = "a span's trace id is not 64 or 128 bits, or all zeros";
const SPAN_ID: &str = "a span's id is not 64 bits, or all zeros";
const PARENT_ID: &str = "a span's parent id is not 64 bits";

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Response<Reply> {
    match post(hub, request).await {
        Ok(()) => web::reply(StatusCode::ACCEPTED, TEXT, ""),
        Err(failure) => failure.plain(),
    }
}

async fn post(hub: &Hub, request: Request) -> Result<(), Failure> {
    let path = request.uri().path();
    if path != SPANS {
        return Err(Failure::unknown(path, SPANS));
    }
    if request.method() != Method::POST {
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("{SPANS} takes POST requests only")));
    }
    // Some senders name no type and mean JSON.
    let decode = match content_type(&request) {
        b"" => json::decode,
        kind if kind == JSON.as_bytes() => json::decode,
        b"application/x-protobuf" | b"application/protobuf" => protobuf::decode,
        _ => {
            let message = "the sink takes Zipkin's spans as application/json or application/x-protobuf";
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
    };
    let body = web::receive(hub, request).await?;
    let taken = hub.take(Protocol::Zipkin, body, decode).await;
    taken.map(drop).map_err(|reason| web::refused(reason, "list of Zipkin's spans"))
}

/// What both encodings have.
#[derive(Debug, Default)]
struct Found<'a> {
    /// `None` if it is broken.
    trace_id: Option<[u8; 16]>,
    span_id: Option<[u8; 8]>,
    /// `Err` if it is broken.
    parent_id: Option<Result<[u8; 8], ()>>,
    kind: Kind,
    name: &'a [u8],
    /// µs.
    timestamp: u64,
    /// µs.
    duration: u64,
    /// Whether the client of the call made the span's id, and may report a span with the same.
    shared: bool,
    service: &'a [u8],
    remote: &'a [u8],
    is_error: bool,
    size: u32,
}

impl<'a> Found<'a> {
    fn push(self, gatherer: &mut Gatherer<'a>) {
        let Some(trace_id) = self.trace_id else { return gatherer.reject(TRACE_ID) };
        let Some(span_id) = self.span_id else { return gatherer.reject(SPAN_ID) };
        let Ok(parent_id) = self.parent_id.transpose() else { return gatherer.reject(PARENT_ID) };
        gatherer.text(b"peer.service", self.remote);
        if self.shared {
            gatherer.attribute(b"zipkin.shared", Value::Truth(true));
        }
        let source = gatherer.source(Source { service: self.service, instance: None });
        let duration = i64::try_from(self.duration.saturating_mul(1_000)).unwrap_or(i64::MAX);
        gatherer.push(Span {
            source,
            trace_id,
            span_id,
            parent_id,
            kind: self.kind,
            operation: self.name,
            status: if self.is_error { Status::Error } else { Status::Unset },
            size: self.size,
            // Not every tracer says that it shares an id, but only the server's half of a call can.
            is_shared: self.shared || self.kind == Kind::Server,
            ..Span::lasting(self.timestamp.saturating_mul(1_000), duration)
        });
    }
}
