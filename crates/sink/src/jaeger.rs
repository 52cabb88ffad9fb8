//! Jaeger's collector: `POST /api/traces` with a Thrift batch, and the gRPC `CollectorService`, on one port. Samplers may
//! ask for their strategy, and are told to take everything.

use http::{Method, StatusCode};
use unladen_decode::jaeger::{model, thrift};
use unladen_decode::span::Protocol;

use crate::answer::Answer;
use crate::grpc;
use crate::hub::{Accepted, Hub};
use crate::inbound::Request;
use crate::status::Code;
use crate::web::{self, Failure, JSON, TEXT, content_type};

const TRACES: &str = "/api/traces";
const POST_SPANS: &str = "/jaeger.api_v2.CollectorService/PostSpans";

/// Answers one request, gRPC or not.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Answer {
    if grpc::is_grpc(&request) {
        // An empty `PostSpansResponse`.
        return call(hub, request).await.map(|_| Vec::new()).into();
    }
    if request.method() == Method::GET && matches!(request.uri().path(), "/api/sampling" | "/sampling") {
        let all = r#"{"strategyType":"PROBABILISTIC","probabilisticSampling":{"samplingRate":1}}"#;
        return web::reply(StatusCode::OK, JSON, all).into();
    }
    match post(hub, request).await {
        Ok(_) => web::reply(StatusCode::ACCEPTED, TEXT, "").into(),
        Err(failure) => failure.plain().into(),
    }
}

async fn call(hub: &Hub, request: Request) -> Result<Accepted, grpc::Failure> {
    let path = request.uri().path();
    if path != POST_SPANS {
        let message = format!("unladen's sink does not know {path}; spans go to {POST_SPANS}");
        return Err(grpc::Failure::new(Code::Unimplemented, message));
    }
    grpc::take(hub, request, Protocol::Jaeger, model::decode, "PostSpansRequest").await
}

async fn post(hub: &Hub, request: Request) -> Result<Accepted, Failure> {
    web::expect_post(&request, &[TRACES], "/api/traces, or by gRPC")?;
    if !matches!(content_type(&request), b"application/x-thrift" | b"application/vnd.apache.thrift.binary") {
        let message = "the sink takes Jaeger's spans as application/x-thrift, or by gRPC";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    web::take(hub, request, Protocol::Jaeger, thrift::decode, "Thrift batch of Jaeger").await
}
