//! OTLP over HTTP, as protobuf or JSON: `POST /v1/traces`, and `/v1/metrics` and `/v1/logs` as far as it takes to content
//! an SDK that sends all three. Answers come in the encoding of the request. Failures carry a `google.rpc.Status`, as
//! OTLP's specification wants it; 503 with `Retry-After` is what may pass later.

use http::{Response, StatusCode};
use unladen_decode::otlp::{json, protobuf};
use unladen_decode::span::Protocol;

use super::{count_losses, reply};
use crate::answer::Reply;
use crate::hub::{Accepted, Hub};
use crate::inbound::Request;
use crate::status::{self, Code};
use crate::web::{self, Failure, JSON, content_type};

const PROTOBUF: &str = "application/x-protobuf";

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Response<Reply> {
    let is_json = content_type(&request) == JSON.as_bytes();
    match export(hub, request, is_json).await {
        Ok(accepted) if is_json => web::reply(StatusCode::OK, JSON, reply::json(accepted)),
        Ok(accepted) => web::reply(StatusCode::OK, PROTOBUF, reply::protobuf(accepted)),
        Err(failure) => fail(failure, is_json),
    }
}

async fn export(hub: &Hub, request: Request, is_json: bool) -> Result<Accepted, Failure> {
    web::expect_post(&request, &["/v1/traces", "/v1/metrics", "/v1/logs"], "/v1/traces")?;
    let (is_traces, is_metrics) = (request.uri().path() == "/v1/traces", request.uri().path() == "/v1/metrics");
    let is_protobuf = content_type(&request) == PROTOBUF.as_bytes();
    if is_traces && !is_protobuf && !is_json {
        let message = "the sink takes application/x-protobuf and application/json; \
                       set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    if is_traces {
        let decode = if is_json { json::decode } else { protobuf::decode };
        return web::take(hub, request, Protocol::OtlpHttp, decode, "ExportTraceServiceRequest").await;
    }
    let message = web::receive(hub, request).await?;
    // Only what is encoded as protobuf is looked into.
    if is_metrics && is_protobuf {
        count_losses(hub, message.bytes());
    }
    Ok(Accepted::default())
}

/// Failures come in the encoding of the request.
fn fail(failure: Failure, is_json: bool) -> Response<Reply> {
    let Failure { status, message } = failure;
    let code = match status {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Code::Unimplemented,
        StatusCode::PAYLOAD_TOO_LARGE => Code::ResourceExhausted,
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        _ => Code::InvalidArgument,
    };
    let mut response = if is_json {
        let text = serde_json::json!({"code": code as u8, "message": message}).to_string();
        web::reply(status, JSON, text)
    } else {
        web::reply(status, PROTOBUF, status::status(code, &message))
    };
    web::retry(&mut response);
    response
}
