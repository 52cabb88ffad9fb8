//! The least that an OpenTelemetry exporter takes for a collector: OTLP over gRPC that keeps what it gets.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;

/// A collector on a free port. Ends with the runtime.
pub(super) struct Collector {
    pub(super) address: SocketAddr,
    exports: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let exports = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&exports);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let received = Arc::clone(&received);
                let keep = service_fn(move |request| keep(request, Arc::clone(&received)));
                tokio::spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), keep));
            }
        });
        Self { address, exports }
    }

    /// All spans so far, each with the `service.name` it came with.
    pub(super) fn spans(&self) -> Vec<(String, Span)> {
        let exports = self.exports.lock().expect("not poisoned");
        let resources = exports.iter().flat_map(|export| &export.resource_spans);
        resources
            .flat_map(|group| {
                let attributes = group.resource.iter().flat_map(|resource| &resource.attributes);
                let name =
                    attributes.filter(|attribute| attribute.key == "service.name").find_map(
                        |attribute| match attribute.value.as_ref()?.value.as_ref()? {
                            Value::StringValue(name) => Some(name.clone()),
                            _ => None,
                        },
                    );
                let spans = group.scope_spans.iter().flat_map(|scope| &scope.spans);
                spans.map(move |span| (name.clone().unwrap_or_default(), span.clone()))
            })
            .collect()
    }
}

async fn keep(
    request: Request<Incoming>,
    received: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
) -> Result<Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>>, hyper::Error> {
    assert_eq!(request.uri().path(), "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
    let body = request.into_body().collect().await?.to_bytes();
    // A gRPC message: one byte of flags, four of length, then the message.
    let export = ExportTraceServiceRequest::decode(&body[5..]).expect("a well-formed export");
    received.lock().expect("not poisoned").push(export);

    let done = HeaderMap::from_iter([("grpc-status".parse().expect("a name"), HeaderValue::from_static("0"))]);
    let empty_message = Full::new(Bytes::from_static(&[0; 5]));
    let mut response = Response::new(empty_message.with_trailers(async move { Some(Ok(done)) }));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    Ok(response)
}
