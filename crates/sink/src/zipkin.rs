//! Zipkin's API, version 2 (<https://zipkin.io/zipkin-api/>): `POST /api/v2/spans`, as JSON or protobuf. Answers 202, as
//! Zipkin's server does, but not before the spans are taken.

use http::{Response, StatusCode};
use unladen_decode::span::Protocol;
use unladen_decode::zipkin::{json, protobuf};

use crate::answer::Reply;
use crate::hub::{Accepted, Hub};
use crate::inbound::Request;
use crate::web::{self, Failure, JSON, TEXT, content_type};

const SPANS: &str = "/api/v2/spans";

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Response<Reply> {
    match post(hub, request).await {
        Ok(_) => web::reply(StatusCode::ACCEPTED, TEXT, ""),
        Err(failure) => failure.plain(),
    }
}

async fn post(hub: &Hub, request: Request) -> Result<Accepted, Failure> {
    web::expect_post(&request, &[SPANS], SPANS)?;
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
    web::take(hub, request, Protocol::Zipkin, decode, "list of Zipkin's spans").await
}
