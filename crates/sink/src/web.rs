//! HTTP without gRPC, as the receivers share it: bodies in, whatever their compression; plain answers and refusals out.

use http::{HeaderValue, Response, StatusCode, header};

use crate::answer::Reply;
use crate::body::{BodyError, Payload};
use crate::hub::{Hub, Refused};
use crate::inbound::Request;
use crate::inflate::{Encoding, unpack};

/// A media type.
pub(crate) const JSON: &str = "application/json";
/// A media type.
pub(crate) const TEXT: &str = "text/plain";

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Status.
    pub(crate) status: StatusCode,
    /// What to do.
    pub(crate) message: String,
}

impl Failure {
    /// A failure with its text.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// No such path.
    pub(crate) fn unknown(path: &str, right: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("unladen's sink does not know {path} here; spans go to {right}"))
    }

    /// As plain text.
    pub(crate) fn plain(self) -> Response<Reply> {
        let (status, text) = (self.status, format!("{}\n", self.message));
        let mut response = reply(status, TEXT, text);
        retry(&mut response);
        response
    }
}

/// Tells a sender that is to come again when, or which method to use.
pub(crate) fn retry(response: &mut Response<Reply>) {
    let (name, value) = match response.status() {
        StatusCode::SERVICE_UNAVAILABLE => (header::RETRY_AFTER, "1"),
        StatusCode::METHOD_NOT_ALLOWED => (header::ALLOW, "POST"),
        _ => return,
    };
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

/// How the body of a request is compressed.
pub(crate) fn encoding(request: &Request) -> Result<Encoding, Failure> {
    Encoding::of(request.headers()).map_err(|other| {
        let message = format!("content-encoding {other} is not supported; use gzip, deflate, zstd or none");
        Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    })
}

/// Reads and decompresses a body.
pub(crate) async fn receive(hub: &Hub, request: Request) -> Result<Payload, Failure> {
    let encoding = encoding(&request)?;
    let limit = hub.max_message();
    let body = request.into_body().whole(limit, hub.budget(), hub.silence()).await;
    let body = body.map_err(|error| refuse(hub, &error))?;
    hub.body(body.bytes().len());
    unpack(encoding, body, limit, hub.budget()).map_err(|error| refuse(hub, &error))
}

/// Why a body is not read.
pub(crate) fn refuse(hub: &Hub, error: &BodyError) -> Failure {
    match error {
        BodyError::TooLarge => {
            hub.undecodable();
            let message = format!("the body is larger than {} bytes; send smaller batches", hub.max_message());
            Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        }
        BodyError::Busy => {
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, "too many bytes are being received at once; try again")
        }
        BodyError::Connection => Failure::new(StatusCode::BAD_REQUEST, "the connection broke off within the body"),
        BodyError::Silent => {
            hub.undecodable();
            let message = "nothing came for too long in the middle of the body; send it at once";
            Failure::new(StatusCode::REQUEST_TIMEOUT, message)
        }
        BodyError::Compression => {
            hub.undecodable();
            Failure::new(StatusCode::BAD_REQUEST, "the body cannot be decompressed as content-encoding says")
        }
    }
}

/// Why spans are not taken; `what` they should have been.
pub(crate) fn refused(reason: Refused, what: &str) -> Failure {
    match reason {
        Refused::Undecodable(error) => Failure::new(StatusCode::BAD_REQUEST, format!("this is no {what}: {error}")),
        Refused::Busy => Failure::new(StatusCode::SERVICE_UNAVAILABLE, "the store is behind; try again"),
        Refused::Closed => Failure::new(StatusCode::SERVICE_UNAVAILABLE, "the sink is closing"),
    }
}

/// The media type without its parameters.
pub(crate) fn content_type(request: &Request) -> &[u8] {
    let value = request.headers().get(header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

/// An answer.
pub(crate) fn reply(status: StatusCode, content_type: &'static str, body: impl Into<bytes::Bytes>) -> Response<Reply> {
    let mut response = Response::new(Reply::new(body, None));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
