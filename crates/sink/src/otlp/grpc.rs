//! OTLP over gRPC: the trace service, and the metrics and logs services as far as it takes to content an SDK that sends
//! all three. Failures as in OTLP's specification: what may pass later is `UNAVAILABLE`, what never will is not.

use http::{Method, Response, StatusCode, Version};
use unladen_decode::otlp::protobuf;
use unladen_decode::span::Protocol;

use super::{count_losses, reply};
use crate::answer::{Answer, Reply};
use crate::grpc::{self, Failure};
use crate::hub::Hub;
use crate::inbound::Request;
use crate::status::Code;
use crate::web::{self, TEXT};

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// Answers one call.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Answer {
    if let Some(response) = not_grpc(&request) {
        return response.into();
    }
    call(hub, request).await.into()
}

async fn call(hub: &Hub, request: Request) -> Result<Vec<u8>, Failure> {
    let path = request.uri().path();
    let (is_traces, is_metrics) = (path == TRACES, path == METRICS);
    if !is_traces && !is_metrics && path != LOGS {
        return Err(Failure::new(
            Code::Unimplemented,
            format!("unladen's sink does not know {path}; traces go to {TRACES}"),
        ));
    }
    if is_traces {
        let taken =
            grpc::take(hub, request, Protocol::OtlpGrpc, protobuf::decode, "an ExportTraceServiceRequest").await;
        return taken.map(reply::protobuf);
    }
    let message = grpc::unary(hub, request).await?;
    if is_metrics {
        count_losses(hub, message.bytes());
    }
    Ok(Vec::new())
}

/// What is not gRPC gets an answer that plain HTTP clients understand.
fn not_grpc(request: &Request) -> Option<Response<Reply>> {
    let (status, text) = if request.version() != Version::HTTP_2 {
        (
            StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            "this is the port for OTLP over gRPC, which needs HTTP/2; OTLP over HTTP has a port of its own",
        )
    } else if !grpc::is_grpc(request) {
        (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "this is the port for OTLP over gRPC: content-type must be application/grpc",
        )
    } else if request.method() != Method::POST {
        (StatusCode::METHOD_NOT_ALLOWED, "gRPC calls are POST requests")
    } else {
        return None;
    };
    Some(web::reply(status, TEXT, text))
}
