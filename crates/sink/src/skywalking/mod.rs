//! Apache SkyWalking's agent protocol, version 3 (apache/skywalking-data-collect-protocol): segments over gRPC or as JSON
//! over HTTP, on one port. What agents send besides segments is welcome and not kept.
//!
//! Segments have no acknowledgement of their own: `Commands`, the answer to a stream, is withheld until every segment of
//! it is taken, and the windows of HTTP/2 hold back a sender that is too fast.

pub(crate) mod json;
pub(crate) mod segment;

use bumpalo::Bump;
use http::{Method, StatusCode};

use crate::answer::Answer;
use crate::attributes::RawAttributes;
use crate::gather::Gatherer;
use crate::grpc::{self, Messages, Next};
use crate::hub::{Accepted, Hub, Refused};
use crate::ids;
use crate::inbound::Request;
use crate::span::{Batch, Kind, Protocol, Source, Span, Status};
use crate::status::Code;
use crate::web::{self, Failure, JSON};

const PACKAGE: &str = "/skywalking.v3.";
/// Services whose methods all answer with `Commands`, or with a message that is as empty: there is nothing that the sink
/// would have an agent do.
const WELCOME: [&str; 18] = [
    "AsyncProfilerTask",
    "BrowserPerfService",
    "CLRMetricReportService",
    "ConfigurationDiscoveryService",
    "ContinuousProfilingService",
    "EBPFAccessLogService",
    "EBPFProcessService",
    "EBPFProfilingService",
    "EventService",
    "GolangMetricReportService",
    "JVMMetricReportService",
    "LogReportService",
    "ManagementService",
    "MeterReportService",
    "PprofTask",
    "ProfileTask",
    "ServiceMeshMetricService",
    "SpanAttachedEventReportService",
];

/// Answers one request, gRPC or not.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Answer {
    if !grpc::is_grpc(&request) {
        return match post(hub, request).await {
            // As the OAP server answers: no commands.
            Ok(()) => web::reply(StatusCode::OK, JSON, "{}").into(),
            Err(failure) => failure.plain().into(),
        };
    }
    match call(hub, request).await {
        // An empty `Commands`.
        Ok(()) => Answer::Message(Vec::new()),
        Err(failure) => grpc::failure(&failure).into(),
    }
}

async fn call(hub: &Hub, request: Request) -> Result<(), grpc::Failure> {
    let path = request.uri().path().to_string();
    let (service, method) = path.strip_prefix(PACKAGE).and_then(|path| path.split_once('/')).unwrap_or_default();
    match (service, method) {
        ("TraceSegmentReportService", "collect") => collect(hub, Messages::of(hub, request)).await,
        ("TraceSegmentReportService", "collectInSync") => {
            let message = grpc::unary(hub, request).await?;
            let taken = hub.take(Protocol::Skywalking, message, segment::decode_collection).await;
            taken.map(drop).map_err(|reason| grpc::refused(reason, "SegmentCollection"))
        }
        _ if WELCOME.contains(&service) => Messages::of(hub, request).ignore(hub).await,
        _ => {
            let right = "/skywalking.v3.TraceSegmentReportService/collect";
            let message = format!("unladen's sink does not know {path}; segments go to {right}");
            Err(grpc::Failure::new(Code::Unimplemented, message))
        }
    }
}

/// Takes segments as they come. All are made durable together once the last one is here: there is one answer for them.
async fn collect(hub: &Hub, mut messages: Messages) -> Result<(), grpc::Failure> {
    let refused = |reason| grpc::refused(reason, "SegmentObject");
    let mut rows = 0;
    while let Some(next) = messages.next(hub).await? {
        let taken = match next {
            Next::One(segment) => hub.accept(Protocol::Skywalking, segment.bytes(), segment::decode).await,
            Next::Framed(bytes) => {
                let taken = framed(hub, messages.framed(bytes)).await;
                messages.advance(bytes);
                taken
            }
        };
        rows = taken.map_err(refused)?.1.max(rows);
    }
    hub.durable(rows).await.map_err(refused)
}

/// Takes segments that came together.
async fn framed(hub: &Hub, segments: &[u8]) -> Result<(Accepted, u64), Refused> {
    // Faults count messages.
    if hub.faults().is_none() {
        let taken = hub.accept(Protocol::Skywalking, segments, segment::decode_framed).await;
        if !matches!(taken, Err(Refused::Undecodable(_))) {
            return taken;
        }
        // One is broken; those before it need not be.
        hub.undo_undecodable();
    }
    let (mut accepted, mut rows) = (Accepted { rejected: 0, reason: None }, 0);
    for segment in grpc::frames(segments) {
        let (last, so_far) = hub.accept(Protocol::Skywalking, segment, segment::decode).await?;
        accepted.rejected += last.rejected;
        accepted.reason = accepted.reason.or(last.reason);
        rows = so_far.max(rows);
    }
    Ok((accepted, rows))
}

async fn post(hub: &Hub, request: Request) -> Result<(), Failure> {
    let path = request.uri().path();
    let is_welcome = matches!(
        path,
        "/v3/management/reportProperties"
            | "/v3/management/keepAlive"
            | "/v3/logs"
            | "/browser/perfData"
            | "/browser/errorLogs"
    );
    let decode: crate::span::Decode = match path {
        "/v3/segment" => |body, arena| json::decode(body, arena, false),
        _ => |body, arena| json::decode(body, arena, true),
    };
    if !is_welcome && path != "/v3/segment" && path != "/v3/segments" {
        return Err(Failure::unknown(path, "/v3/segments, or by gRPC"));
    }
    if request.method() != Method::POST {
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("{path} takes POST requests only")));
    }
    let body = web::receive(hub, request).await?;
    if is_welcome {
        return Ok(());
    }
    let taken = hub.take(Protocol::Skywalking, body, decode).await;
    taken.map(drop).map_err(|reason| web::refused(reason, "segment of SkyWalking"))
}

/// What every span of a segment shares, as it comes.
#[derive(Debug, Clone, Copy, Default)]
struct Segment<'a> {
    trace_id: &'a [u8],
    id: &'a [u8],
    service: &'a [u8],
    instance: &'a [u8],
}

/// The same, once for all spans.
#[derive(Debug, Clone, Copy)]
struct Shared<'a> {
    trace_id: [u8; 16],
    spans: ids::Named,
    source: Source<'a>,
    /// The source's number, once there is a span of it.
    number: Option<u32>,
}

impl<'a> Segment<'a> {
    /// What its spans need, or why they can never be stored.
    fn shared(&self) -> Result<Shared<'a>, &'static str> {
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
struct Found<'a> {
    id: i64,
    /// −1 for the first of the segment.
    parent: i64,
    /// Segment and span of the first reference.
    reference: Option<(&'a [u8], i64)>,
    /// ms.
    start: i64,
    /// ms.
    end: i64,
    operation: &'a [u8],
    peer: &'a [u8],
    kind: i64,
    layer: i64,
    is_error: bool,
    size: u32,
}

const NO_TRACE: &str = "a segment has no trace id";
const NO_SEGMENT: &str = "a segment has no id of its own";

impl<'a> Found<'a> {
    /// Adds the span; its attributes are in the gatherer already, unless they are given.
    #[inline]
    fn push(
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
        let ns = |ms: i64| u64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000);
        let span = Span {
            source: *number.get_or_insert_with(|| gatherer.source(*source)),
            trace_id: *trace_id,
            span_id: spans.span_id(self.id),
            parent_id,
            kind,
            operation: self.operation,
            status: if self.is_error { Status::Error } else { Status::Unset },
            size: self.size,
            ..Span::between(ns(self.start), ns(self.end))
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
