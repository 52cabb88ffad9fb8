//! The instrumentation, as one would write it for a real service: a server span around every request, a client span
//! around every call, attributes after the HTTP semantic conventions
//! (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/>), W3C Trace Context in and out.
//!
//! Business code does not see it: spans find their parents in OpenTelemetry's current context. The sampler, the batch
//! processor, the exporter and the resource obey the SDK's standard environment variables; nothing is set here.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use http::{Request, Response, Uri, header};
use hyper_util::client::legacy::connect::HttpInfo;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{FutureExt as _, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use opentelemetry_semantic_conventions::attribute;

use super::provider_client::CallError;

/// How long the SDK may take to end once its last spans have left (for which it has 5 s, by its own limit).
const SHUTDOWN: Duration = Duration::from_secs(1);

/// Makes spans and sends them.
#[derive(Clone)]
pub(super) struct Telemetry {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
}

impl Telemetry {
    /// The SDK as it comes: batch span processor, OTLP over gRPC. To be called within the runtime, which then also
    /// drives the exporter's connection.
    pub(super) fn otlp() -> anyhow::Result<Self> {
        // The SDK tells what it drops and what it cannot export in its own log. To standard error, as an application would.
        let log = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_ansi(false)
            .with_writer(std::io::stderr);
        // Another one is there only within tests.
        let _ = log.try_init();
        let exporter = SpanExporter::builder()
            .with_tonic()
            .build()
            .context("cannot export spans: see OTEL_EXPORTER_OTLP_ENDPOINT, a URL such as http://127.0.0.1:4317")?;
        Ok(Self::new(SdkTracerProvider::builder().with_batch_exporter(exporter).build()))
    }

    /// Spans go where `provider` sends them.
    pub(super) fn new(provider: SdkTracerProvider) -> Self {
        let tracer = provider.tracer("unladen.demo");
        Self { provider, tracer, propagator: TraceContextPropagator::new() }
    }

    /// Runs `answer` inside a server span, child of the span that the request's `traceparent` names.
    pub(super) async fn server_span<In, Out>(
        &self,
        request: &Request<In>,
        route: &'static str,
        peer: SocketAddr,
        answer: impl Future<Output = Response<Out>>,
    ) -> Response<Out> {
        let parent = self.propagator.extract(&HeaderExtractor(request.headers()));
        let span = self
            .tracer
            .span_builder(format!("{} {route}", request.method()))
            .with_kind(SpanKind::Server)
            .with_attributes(server_attributes(request, route, peer))
            .start_with_context(&self.tracer, &parent);
        let context = parent.with_span(span);
        let response = answer.with_context(context.clone()).await;

        let span = context.span();
        span.set_attribute(KeyValue::new(attribute::HTTP_RESPONSE_STATUS_CODE, i64::from(response.status().as_u16())));
        if response.status().is_server_error() {
            span.set_attribute(KeyValue::new(attribute::ERROR_TYPE, response.status().as_str().to_owned()));
            span.set_status(Status::error(""));
        }
        span.end();
        response
    }

    /// Runs `call` inside a client span, child of the current one, and lets the request carry it as `traceparent`.
    pub(super) async fn client_span<Body, Out, Call>(
        &self,
        mut request: Request<Body>,
        call: impl FnOnce(Request<Body>) -> Call,
    ) -> Result<Response<Out>, CallError>
    where
        Call: Future<Output = Result<Response<Out>, CallError>>,
    {
        let span = self
            .tracer
            .span_builder(request.method().to_string())
            .with_kind(SpanKind::Client)
            .with_attributes(client_attributes(&request))
            .start(&self.tracer);
        let context = Context::current_with_span(span);
        self.propagator.inject_context(&context, &mut HeaderInjector(request.headers_mut()));
        let result = call(request).with_context(context.clone()).await;

        let span = context.span();
        match &result {
            Ok(response) => {
                let status = i64::from(response.status().as_u16());
                span.set_attribute(KeyValue::new(attribute::HTTP_RESPONSE_STATUS_CODE, status));
                if let Some(connection) = response.extensions().get::<HttpInfo>() {
                    let peer = connection.remote_addr();
                    span.set_attribute(KeyValue::new(attribute::NETWORK_PEER_ADDRESS, peer.ip().to_string()));
                    span.set_attribute(KeyValue::new(attribute::NETWORK_PEER_PORT, i64::from(peer.port())));
                }
            }
            Err(error) => {
                span.set_attribute(KeyValue::new(attribute::ERROR_TYPE, error.class()));
                span.set_status(Status::error(error.to_string()));
            }
        }
        span.end();
        result
    }

    /// Makes `count` more children of the current span, each with as many attributes as the others have, so that cost
    /// over spans per request is a line.
    pub(super) fn internal_spans(&self, count: u32) {
        for step in 0..count {
            let span = self
                .tracer
                .span_builder("step")
                .with_kind(SpanKind::Internal)
                .with_attributes([
                    KeyValue::new(attribute::CODE_FUNCTION_NAME, concat!(module_path!(), "::internal_spans")),
                    KeyValue::new(attribute::CODE_FILE_PATH, file!()),
                    KeyValue::new(attribute::CODE_LINE_NUMBER, i64::from(line!())),
                    KeyValue::new("thread.name", std::thread::current().name().unwrap_or_default().to_owned()),
                    KeyValue::new("demo.step", i64::from(step)),
                    KeyValue::new("demo.steps", i64::from(count)),
                    KeyValue::new("demo.part", "work".to_owned()),
                    KeyValue::new("demo.note", format!("step {step} of {count}")),
                ])
                .start(&self.tracer);
            drop(span);
        }
    }

    /// Sends the spans that are still held, for some seconds at most, and stops.
    pub(super) async fn shut_down(self) {
        // The SDK blocks until the spans have left, over a connection that this thread has to go on driving.
        let flushed = tokio::task::spawn_blocking(move || {
            // Flushed apart, because shutting down flushes too but does not tell whether that went well.
            let flushed = self.provider.force_flush();
            flushed.and(self.provider.shutdown_with_timeout(SHUTDOWN))
        });
        match flushed.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => eprintln!("the last spans are lost: {error}"),
            Err(error) => eprintln!("the last spans are lost: {error}"),
        }
    }
}

fn server_attributes<Body>(request: &Request<Body>, route: &'static str, peer: SocketAddr) -> Vec<KeyValue> {
    let mut attributes = Vec::with_capacity(12);
    attributes.extend([
        KeyValue::new(attribute::HTTP_REQUEST_METHOD, request.method().to_string()),
        KeyValue::new(attribute::HTTP_ROUTE, route),
        KeyValue::new(attribute::URL_PATH, request.uri().path().to_owned()),
        KeyValue::new(attribute::URL_SCHEME, "http"),
        KeyValue::new(attribute::NETWORK_PROTOCOL_VERSION, protocol_version(request.version())),
        KeyValue::new(attribute::NETWORK_PEER_ADDRESS, peer.ip().to_string()),
        KeyValue::new(attribute::NETWORK_PEER_PORT, i64::from(peer.port())),
    ]);
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(host) = text(header::HOST).and_then(|host| host.parse::<http::uri::Authority>().ok()) {
        attributes.push(KeyValue::new(attribute::SERVER_ADDRESS, host.host().to_owned()));
        attributes.extend(host.port_u16().map(|port| KeyValue::new(attribute::SERVER_PORT, i64::from(port))));
    }
    if let Some(agent) = text(header::USER_AGENT) {
        attributes.push(KeyValue::new(attribute::USER_AGENT_ORIGINAL, agent.to_owned()));
    }
    attributes
}

fn client_attributes<Body>(request: &Request<Body>) -> Vec<KeyValue> {
    let uri: &Uri = request.uri();
    let mut attributes = Vec::with_capacity(8);
    attributes.extend([
        KeyValue::new(attribute::HTTP_REQUEST_METHOD, request.method().to_string()),
        KeyValue::new(attribute::URL_FULL, uri.to_string()),
        KeyValue::new(attribute::NETWORK_PROTOCOL_VERSION, protocol_version(request.version())),
        KeyValue::new(attribute::SERVER_ADDRESS, uri.host().unwrap_or_default().to_owned()),
    ]);
    attributes.extend(uri.port_u16().map(|port| KeyValue::new(attribute::SERVER_PORT, i64::from(port))));
    attributes
}

fn protocol_version(version: http::Version) -> &'static str {
    if version == http::Version::HTTP_10 { "1.0" } else { "1.1" }
}
