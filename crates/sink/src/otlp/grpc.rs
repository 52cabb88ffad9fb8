//! OTLP over gRPC: the trace service, and the metrics and logs services as far as it takes to content an SDK that sends
//! all three. gRPC as in <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>; failures as in OTLP's
//! specification: what may pass later is `UNAVAILABLE`, what never will is not.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;

use super::decode::decode;
use super::reply::{Code, export_response, status_with_retry};
use crate::body::{self, BodyError, Payload, Reply};
use crate::hub::{Hub, Refused};
use crate::span::Protocol;

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// Seconds after which a refused sender may come again.
const RETRY_AFTER: u64 = 1;
/// Compressed flag and length before every message.
const PREFIX: usize = 5;

/// A call that failed: status code and message.
type Failure = (Code, String);

/// Answers one call.
pub(crate) async fn serve(hub: &Hub, request: Request<Incoming>) -> Response<Reply> {
    if let Some(response) = not_grpc(&request) {
        return response;
    }
    match call(hub, request).await {
        Ok(message) => success(&message),
        Err((code, message)) => failure(code, &message),
    }
}

async fn call(hub: &Hub, request: Request<Incoming>) -> Result<Vec<u8>, Failure> {
    let path = request.uri().path();
    let (is_traces, is_metrics) = (path == TRACES, path == METRICS);
    if !is_traces && !is_metrics && path != LOGS {
        return Err((Code::Unimplemented, format!("unladen's sink does not know {path}; traces go to {TRACES}")));
    }
    let encoding = request.headers().get("grpc-encoding").cloned();
    let limit = hub.max_message();
    let framed = body::read(request.into_body(), limit.saturating_add(PREFIX), hub.budget())
        .await
        .map_err(|error| refuse(hub, &error))?;
    hub.body(framed.bytes().len());
    let message = unframe(framed.bytes()).inspect_err(|_| hub.undecodable())?;
    let message: Payload = match (message.compressed, encoding.as_ref().map(HeaderValue::as_bytes)) {
        (false, _) => framed.skip(PREFIX),
        (true, Some(b"gzip")) => {
            body::gunzip(message.bytes, limit, hub.budget()).map_err(|error| refuse(hub, &error))?
        }
        (true, None | Some(b"identity")) => {
            hub.undecodable();
            return Err((Code::Internal, "the message is compressed but grpc-encoding names no compression".into()));
        }
        (true, Some(other)) => {
            hub.undecodable();
            let other = String::from_utf8_lossy(other);
            return Err((Code::Unimplemented, format!("compression {other} is not supported; use gzip or identity")));
        }
    };
    if !is_traces {
        if is_metrics {
            hub.metrics(message.bytes());
        }
        return Ok(Vec::new());
    }
    match hub.take(Protocol::OtlpGrpc, message, decode).await {
        Ok(accepted) => Ok(export_response(accepted.rejected, accepted.reason)),
        Err(Refused::Undecodable(error)) => {
            Err((Code::InvalidArgument, format!("this is no ExportTraceServiceRequest: {error}")))
        }
        Err(Refused::Busy) => Err((Code::Unavailable, "the store is behind; try again".into())),
        Err(Refused::Closed) => Err((Code::Unavailable, "the sink is closing".into())),
    }
}

/// What is not gRPC gets an answer that plain HTTP clients understand.
fn not_grpc(request: &Request<Incoming>) -> Option<Response<Reply>> {
    let is_grpc = request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|content_type| content_type.as_bytes().starts_with(b"application/grpc"));
    let (status, text) = if request.version() != Version::HTTP_2 {
        (
            StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            "this is the port for OTLP over gRPC, which needs HTTP/2; OTLP over HTTP has a port of its own",
        )
    } else if !is_grpc {
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

fn refuse(hub: &Hub, error: &BodyError) -> Failure {
    match error {
        BodyError::TooLarge => {
            hub.undecodable();
            let limit = hub.max_message();
            (Code::ResourceExhausted, format!("the message is larger than {limit} bytes; send smaller batches"))
        }
        BodyError::Busy => (Code::Unavailable, "too many bytes are being received at once; try again".into()),
        BodyError::Connection => (Code::Unavailable, "the connection broke off within the message".into()),
        BodyError::Compression => {
            hub.undecodable();
            (Code::Internal, "the message cannot be decompressed with gzip".into())
        }
    }
}

#[derive(Debug, PartialEq)]
struct Message<'a> {
    compressed: bool,
    bytes: &'a [u8],
}

/// The one message of a unary call.
fn unframe(body: &[u8]) -> Result<Message<'_>, Failure> {
    let broken = |text: &str| (Code::Internal, text.to_string());
    let Some((prefix, bytes)) = body.split_first_chunk::<PREFIX>() else {
        return Err(broken("the call ends before its message"));
    };
    let [flag, length @ ..] = *prefix;
    if flag > 1 {
        return Err(broken("the compressed flag of the message is neither 0 nor 1"));
    }
    match bytes.len().cmp(&(u32::from_be_bytes(length) as usize)) {
        std::cmp::Ordering::Less => Err(broken("the message is shorter than its prefix says")),
        std::cmp::Ordering::Greater => Err(broken("Export takes one message, not several")),
        std::cmp::Ordering::Equal => Ok(Message { compressed: flag == 1, bytes }),
    }
}

fn success(message: &[u8]) -> Response<Reply> {
    let mut framed = Vec::with_capacity(PREFIX + message.len());
    framed.push(0);
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(message);
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    response(Reply::new(framed, Some(trailers)))
}

/// A "trailers-only" response: the status stands in the headers.
fn failure(code: Code, message: &str) -> Response<Reply> {
    let mut response = response(Reply::default());
    let headers = response.headers_mut();
    headers.insert("grpc-status", HeaderValue::from(code as u16));
    if let Ok(message) = HeaderValue::from_str(&percent_encode(message)) {
        headers.insert("grpc-message", message);
    }
    if code == Code::Unavailable {
        // Binary headers are base64 without padding.
        let details = STANDARD_NO_PAD.encode(status_with_retry(code, message, RETRY_AFTER));
        if let Ok(details) = HeaderValue::from_str(&details) {
            headers.insert("grpc-status-details-bin", details);
        }
    }
    if code == Code::Unimplemented {
        headers.insert("grpc-accept-encoding", HeaderValue::from_static("gzip,identity"));
    }
    response
}

fn response(reply: Reply) -> Response<Reply> {
    let mut response = Response::new(reply);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// `grpc-message` is percent-encoded outside of printable ASCII.
fn percent_encode(message: &str) -> String {
    message
        .bytes()
        .map(|byte| match byte {
            b' '..=b'~' if byte != b'%' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing() {
        assert_eq!(unframe(&[0, 0, 0, 0, 2, 7, 8]), Ok(Message { compressed: false, bytes: &[7, 8] }));
        assert_eq!(unframe(&[1, 0, 0, 0, 0]), Ok(Message { compressed: true, bytes: &[] }));
        let broken: [&[u8]; 5] = [&[], &[0, 0, 0], &[0, 0, 0, 0, 3, 1], &[0, 0, 0, 0, 1, 1, 0], &[2, 0, 0, 0, 0]];
        for body in broken {
            assert_eq!(unframe(body).expect_err("broken").0, Code::Internal, "{body:?}");
        }
    }

    #[test]
    fn messages_are_printable_ascii() {
        assert_eq!(percent_encode("100 % größer\n"), "100 %25 gr%C3%B6%C3%9Fer%0A");
    }
}
