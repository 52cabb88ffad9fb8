//! Jaeger's collector: `POST /api/traces` with a Thrift batch, and the gRPC `CollectorService`, on one port. Samplers may
//! ask for their strategy, and are told to take everything.

pub(crate) mod model;
pub(crate) mod thrift;

use http::{Method, StatusCode};

use crate::answer::Answer;
use crate::grpc;
use crate::hub::Hub;
use crate::inbound::Request;
use crate::span::Protocol;
use crate::status::Code;
use crate::web::{self, Failure, JSON, TEXT, content_type};

const TRACES: &str = "/api/traces";
const POST_SPANS: &str = "/jaeger.api_v2.CollectorService/PostSpans";
const TRACE_ID: &str = "a span's trace id is not 16 bytes, or all zeros";
const SPAN_ID: &str = "a span's id is not 8 bytes, or all zeros";

/// Answers one request, gRPC or not.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Answer {
    if grpc::is_grpc(&request) {
        return match call(hub, request).await {
            // An empty `PostSpansResponse`.
            Ok(()) => Answer::Message(Vec::new()),
            Err(failure) => grpc::failure(&failure).into(),
        };
    }
    if request.method() == Method::GET && matches!(request.uri().path(), "/api/sampling" | "/sampling") {
        let all = r#"{"strategyType":"PROBABILISTIC","probabilisticSampling":{"samplingRate":1}}"#;
        return web::reply(StatusCode::OK, JSON, all).into();
    }
    match post(hub, request).await {
        Ok(()) => web::reply(StatusCode::ACCEPTED, TEXT, "").into(),
        Err(failure) => failure.plain().into(),
    }
}

async fn call(hub: &Hub, request: Request) -> Result<(), grpc::Failure> {
    let path = request.uri().path();
    if path != POST_SPANS {
        let message = format!("unladen's sink does not know {path}; spans go to {POST_SPANS}");
        return Err(grpc::Failure::new(Code::Unimplemented, message));
    }
    let message = grpc::unary(hub, request).await?;
    let taken = hub.take(Protocol::Jaeger, message, model::decode).await;
    taken.map(drop).map_err(|reason| grpc::refused(reason, "PostSpansRequest"))
}

async fn post(hub: &Hub, request: Request) -> Result<(), Failure> {
    let path = request.uri().path();
    if path != TRACES {
        return Err(Failure::unknown(path, "/api/traces, or by gRPC"));
    }
    if request.method() != Method::POST {
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("{TRACES} takes POST requests only")));
    }
    if !matches!(content_type(&request), b"application/x-thrift" | b"application/vnd.apache.thrift.binary") {
        let message = "the sink takes Jaeger's spans as application/x-thrift, or by gRPC";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let body = web::receive(hub, request).await?;
    let taken = hub.take(Protocol::Jaeger, body, thrift::decode).await;
    taken.map(drop).map_err(|reason| web::refused(reason, "Thrift batch of Jaeger"))
}

/// What tags say that is more than an attribute.
#[derive(Debug, Default)]
struct SpecialTags {
    kind: crate::span::Kind,
    is_error: bool,
}

impl SpecialTags {
    fn text(&mut self, key: &[u8], text: &[u8]) {
        use crate::span::Kind;
        match (key, text) {
            (b"span.kind", b"client") => self.kind = Kind::Client,
            (b"span.kind", b"server") => self.kind = Kind::Server,
            (b"span.kind", b"producer") => self.kind = Kind::Producer,
            (b"span.kind", b"consumer") => self.kind = Kind::Consumer,
            (b"span.kind", b"internal") => self.kind = Kind::Internal,
            (b"error", b"true") => self.is_error = true,
            _ => {}
        }
    }

    fn truth(&mut self, key: &[u8], truth: bool) {
        if key == b"error" {
            self.is_error = truth;
        }
    }

    fn status(&self) -> crate::span::Status {
        if self.is_error { crate::span::Status::Error } else { crate::span::Status::Unset }
    }
}
