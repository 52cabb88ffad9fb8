//! OTLP over HTTP with protobuf bodies: `POST /v1/traces`, and `/v1/metrics` and `/v1/logs` as far as it takes to content
//! an SDK that sends all three. Failures carry a `google.rpc.Status`, as OTLP's specification wants it; 503 with
//! `Retry-After` is what may pass later. JSON bodies are told to come as protobuf.

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;

use super::decode::decode;
use super::reply::{self, Code, export_response};
use crate::body::{self, BodyError, Payload, Reply};
use crate::hub::{Hub, Refused};
use crate::span::Protocol;

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// A request that failed.
struct Failure {
    status: StatusCode,
    code: Code,
    message: String,
}

impl Failure {
    fn new(status: StatusCode, code: Code, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }
}

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, request: Request<Incoming>) -> Response<Reply> {
    let is_json = content_type(&request) == JSON.as_bytes();
    match export(hub, request).await {
        Ok(message) => response(StatusCode::OK, PROTOBUF, message),
        Err(failure) => fail(failure, is_json),
    }
}

async fn export(hub: &Hub, request: Request<Incoming>) -> Result<Vec<u8>, Failure> {
    let path = request.uri().path();
    let (is_traces, mut is_metrics) = (path == "/v1/traces", path == "/v1/metrics");
    if !is_traces && !is_metrics && path != "/v1/logs" {
        let message = format!("unladen's sink does not know {path}; traces go to /v1/traces");
        return Err(Failure::new(StatusCode::NOT_FOUND, Code::Unimplemented, message));
    }
    if request.method() != Method::POST {
        let message = format!("{path} takes POST requests only");
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, Code::Unimplemented, message));
    }
    if is_traces && content_type(&request) != PROTOBUF.as_bytes() {
        let message = "the sink takes application/x-protobuf; set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidArgument, message));
    }
    // Only what is encoded as protobuf is looked into.
    is_metrics &= content_type(&request) == PROTOBUF.as_bytes();
    let encoding = request.headers().get(header::CONTENT_ENCODING).cloned();
    let is_gzip = match encoding.as_ref().map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => false,
        Some(b"gzip") => true,
        Some(other) => {
            let other = String::from_utf8_lossy(other);
            let message = format!("content-encoding {other} is not supported; use gzip or none");
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidArgument, message));
        }
    };
    let limit = hub.max_message();
    let received = body::read(request.into_body(), limit, hub.budget()).await.map_err(|error| refuse(hub, &error))?;
    hub.body(received.bytes().len());
    let message: Payload = if is_gzip {
        body::gunzip(received.bytes(), limit, hub.budget()).map_err(|error| refuse(hub, &error))?
    } else {
        received
    };
    if !is_traces {
        if is_metrics {
            hub.metrics(message.bytes());
        }
        return Ok(Vec::new());
    }
    match hub.take(Protocol::OtlpHttp, message, decode).await {
        Ok(accepted) => Ok(export_response(accepted.rejected, accepted.reason)),
        Err(Refused::Undecodable(error)) => {
            let message = format!("this is no ExportTraceServiceRequest: {error}");
            Err(Failure::new(StatusCode::BAD_REQUEST, Code::InvalidArgument, message))
        }
        Err(Refused::Busy) => {
            let message = "the store is behind; try again";
            Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, message))
        }
        Err(Refused::Closed) => {
            let message = "the sink is closing";
            Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, message))
        }
    }
}

/// The media type without its parameters.
fn content_type(request: &Request<Incoming>) -> &[u8] {
    let value = request.headers().get(header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

fn refuse(hub: &Hub, error: &BodyError) -> Failure {
    match error {
        BodyError::TooLarge => {
            hub.undecodable();
            let message = format!("the body is larger than {} bytes; send smaller batches", hub.max_message());
            Failure::new(StatusCode::PAYLOAD_TOO_LARGE, Code::ResourceExhausted, message)
        }
        BodyError::Busy => {
            let message = "too many bytes are being received at once; try again";
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, message)
        }
        BodyError::Connection => {
            let message = "the connection broke off within the body";
            Failure::new(StatusCode::BAD_REQUEST, Code::Unavailable, message)
        }
        BodyError::Compression => {
            hub.undecodable();
            let message = "the body cannot be decompressed with gzip";
            Failure::new(StatusCode::BAD_REQUEST, Code::InvalidArgument, message)
        }
    }
}

/// Failures come in the encoding of the request.
fn fail(failure: Failure, is_json: bool) -> Response<Reply> {
    let Failure { status, code, message } = failure;
    let mut response = if is_json {
        let text = serde_json::json!({"code": code as u8, "message": message}).to_string();
        response(status, JSON, text.into_bytes())
    } else {
        response(status, PROTOBUF, reply::status(code, &message))
    };
    let headers = response.headers_mut();
    match status {
        StatusCode::SERVICE_UNAVAILABLE => headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1")),
        StatusCode::METHOD_NOT_ALLOWED => headers.insert(header::ALLOW, HeaderValue::from_static("POST")),
        _ => None,
    };
    response
}

fn response(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response<Reply> {
    let mut response = Response::new(Reply::new(body, None));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
