//! HTTP without gRPC, as the receivers share it: bodies in, whatever their compression; plain answers and refusals out.

use http::{HeaderValue, Method, Response, StatusCode, header};
use unladen_decode::span::{Decode, Protocol};

use crate::answer::Reply;
use crate::body::{BodyError, Payload};
use crate::failure::Statuses;
use crate::hub::{Accepted, Hub, Refused};
use crate::inbound::Request;
use crate::inflate::{Encoding, unpack};

/// A media type.
pub(crate) const JSON: &str = "application/json";
/// A media type.
pub(crate) const TEXT: &str = "text/plain";

/// A request that failed.
pub(crate) type Failure = crate::failure::Failure<StatusCode>;

impl Statuses for StatusCode {
    const BODY: &'static str = "body";
    const COMPRESSED: &'static str = "as content-encoding says";

    fn of_body(error: &BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::PAYLOAD_TOO_LARGE,
            BodyError::Busy => Self::SERVICE_UNAVAILABLE,
            BodyError::Silent => Self::REQUEST_TIMEOUT,
            BodyError::Connection | BodyError::Compression => Self::BAD_REQUEST,
        }
    }

    fn of_spans(refused: &Refused) -> Self {
        match refused {
            Refused::Undecodable(_) => Self::BAD_REQUEST,
            Refused::Busy | Refused::Closed => Self::SERVICE_UNAVAILABLE,
        }
    }
}

impl Failure {
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
    let body = body.map_err(|error| Failure::unread(hub, &error))?;
    hub.body(body.bytes().len());
    unpack(encoding, body, limit, hub.budget()).map_err(|error| Failure::unread(hub, &error))
}

/// Reads a body and has its spans taken; `what` they should be.
pub(crate) async fn take(
    hub: &Hub,
    request: Request,
    protocol: Protocol,
    decode: Decode,
    what: &str,
) -> Result<Accepted, Failure> {
    let body = receive(hub, request).await?;
    hub.take(protocol, body, decode).await.map_err(|reason| Failure::refused(reason, what))
}

/// A failure unless a request posts to one of these paths; `right` is where spans go.
pub(crate) fn expect_post(request: &Request, paths: &[&str], right: &str) -> Result<(), Failure> {
    let path = request.uri().path();
    if !paths.contains(&path) {
        let message = format!("unladen's sink does not know {path} here; spans go to {right}");
        return Err(Failure::new(StatusCode::NOT_FOUND, message));
    }
    if request.method() != Method::POST {
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("{path} takes POST requests only")));
    }
    Ok(())
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
