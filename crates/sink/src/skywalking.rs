//! Apache SkyWalking's agent protocol, version 3 (apache/skywalking-data-collect-protocol): segments over gRPC or as JSON
//! over HTTP, on one port. What agents send besides segments is welcome and not kept.
//!
//! Segments have no acknowledgement of their own: `Commands`, the answer to a stream, is withheld until every segment of
//! it is taken, and the windows of HTTP/2 hold back a sender that is too fast.

use http::StatusCode;
use unladen_decode::skywalking::{json, segment};
use unladen_decode::span::{Decode, Protocol};

use crate::answer::Answer;
use crate::grpc::{self, Messages};
use crate::hub::Hub;
use crate::inbound::Request;
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

/// Over HTTP; what does not begin with `/v3/segment` is welcome.
const PATHS: [&str; 7] = [
    "/v3/segments",
    "/v3/segment",
    "/v3/management/reportProperties",
    "/v3/management/keepAlive",
    "/v3/logs",
    "/browser/perfData",
    "/browser/errorLogs",
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
    // An empty `Commands`.
    call(hub, request).await.map(|()| Vec::new()).into()
}

async fn call(hub: &Hub, request: Request) -> Result<(), grpc::Failure> {
    let path = request.uri().path().to_string();
    let (service, method) = path.strip_prefix(PACKAGE).and_then(|path| path.split_once('/')).unwrap_or_default();
    match (service, method) {
        ("TraceSegmentReportService", "collect") => {
            grpc::take_stream(hub, request, Protocol::Skywalking, "SegmentObject", segment::decode).await
        }
        ("TraceSegmentReportService", "collectInSync") => {
            let decode = segment::decode_collection;
            grpc::take(hub, request, Protocol::Skywalking, decode, "SegmentCollection").await.map(drop)
        }
        _ if WELCOME.contains(&service) => Messages::of(hub, request).ignore(hub).await,
        _ => {
            let right = "/skywalking.v3.TraceSegmentReportService/collect";
            let message = format!("unladen's sink does not know {path}; segments go to {right}");
            Err(grpc::Failure::new(Code::Unimplemented, message))
        }
    }
}

async fn post(hub: &Hub, request: Request) -> Result<(), Failure> {
    web::expect_post(&request, &PATHS, "/v3/segments, or by gRPC")?;
    let decode: Decode = match request.uri().path() {
        "/v3/segments" => |body, arena| json::decode(body, arena, true),
        "/v3/segment" => |body, arena| json::decode(body, arena, false),
        _ => return web::receive(hub, request).await.map(drop),
    };
    web::take(hub, request, Protocol::Skywalking, decode, "segment of SkyWalking").await.map(drop)
}
