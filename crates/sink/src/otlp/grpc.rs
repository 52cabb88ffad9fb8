//! OTLP over gRPC: the trace service, and the metrics and logs services as far as it takes to content an SDK that sends
//! all three. Failures as in OTLP's specification: what may pass later is `UNAVAILABLE`, what never will is not.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, Version, header};

use super::decode::decode;
use super::{metrics, reply};
use crate::answer::{Answer, Reply};
use crate::grpc::{self, Failure, failure, refused};
use crate::hub::Hub;
use crate::inbound::Request;
use crate::span::Protocol;
use crate::status::Code;

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// Answers one call.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Answer {
    if let Some(response) = not_grpc(&request) {
        return response.into();
    }
    match call(hub, request).await {
        Ok(message) => Answer::Message(message),
        Err(error) => failure(&error).into(),
    }
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
    let message = grpc::unary(hub, request).await?;
    if !is_traces {
        if is_metrics {
            metrics::count(hub, message.bytes());
        }
        return Ok(Vec::new());
    }
    match hub.take(Protocol::OtlpGrpc, message, |message, _| Ok(decode(message)?)).await {
        Ok(accepted) => Ok(reply::protobuf(accepted)),
        Err(reason) => Err(refused(reason, "an ExportTraceServiceRequest")),
    }
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
    let mut response = Response::new(Reply::new(Bytes::from_static(text.as_bytes()), None));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Some(response)
}
