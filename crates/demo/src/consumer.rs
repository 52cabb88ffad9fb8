//! The consumer: three times a little work and a call to the provider, then a body that is the same for every request.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;

use super::knobs::Injector;
use super::options::ConsumerOptions;
use super::provider_client::{CallError, ProviderClient};
use super::server::{self, Service, text};
use super::telemetry::Telemetry;
use super::work::logarithms;

/// Calls to the provider per request.
pub(super) const CALLS: u32 = 3;

/// Answers `GET /work`.
pub(super) struct Consumer {
    provider: ProviderClient,
    iterations: u32,
    /// Absent: not traced, and the path of a request does not touch tracing at all.
    telemetry: Option<Telemetry>,
    client_spans: u32,
    internal_spans: u32,
    injector: Injector,
}

impl Consumer {
    /// The consumer as told, traced if there is `telemetry`.
    pub(super) fn new(options: &ConsumerOptions, telemetry: Option<Telemetry>) -> anyhow::Result<Self> {
        let below_server_span = options.spans.saturating_sub(1);
        let client_spans = below_server_span.min(CALLS);
        Ok(Self {
            provider: ProviderClient::new(options.provider.clone()),
            iterations: options.iterations,
            telemetry,
            client_spans,
            internal_spans: below_server_span - client_spans,
            injector: Injector::new(&options.knobs)?,
        })
    }

    /// One request's work; the sum of its logarithms.
    async fn work(&self) -> Result<f64, CallError> {
        self.injector.burn();
        self.injector.delay().await;
        if let Some(telemetry) = &self.telemetry {
            telemetry.internal_spans(self.internal_spans);
        }
        let mut sum = 0.0;
        for call in 0..CALLS {
            sum += logarithms(self.iterations);
            self.provider.call(self.telemetry.as_ref().filter(|_| call < self.client_spans)).await?;
        }
        Ok(sum)
    }

    async fn answer_work(&self) -> Response<Full<Bytes>> {
        match self.work().await {
            Ok(_) if self.injector.fails() => text(StatusCode::INTERNAL_SERVER_ERROR, "failed as told"),
            Ok(sum) => text(StatusCode::OK, self.injector.extend(format!("ok {sum:.3}"))),
            Err(error) => {
                eprintln!("{error}");
                text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
            }
        }
    }
}

impl Service for Consumer {
    async fn answer(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Full<Bytes>> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/work") => match &self.telemetry {
                None => self.answer_work().await,
                Some(telemetry) => telemetry.server_span(&request, "/work", peer, self.answer_work()).await,
            },
            // Not traced, as health checks usually are not.
            (&Method::GET, "/ready") => text(StatusCode::OK, "ready"),
            _ => text(StatusCode::NOT_FOUND, "not found"),
        }
    }
}

/// Is the consumer until SIGTERM or SIGINT; then answers what it has been asked and sends the spans that it still holds.
pub(super) async fn run(options: ConsumerOptions) -> anyhow::Result<()> {
    let stop = server::stop_signal(options.knobs.ignore_sigterm)?;
    super::knobs::start(&options.knobs).await?;
    let telemetry = if options.trace.is_on() { Some(Telemetry::otlp()?) } else { None };
    let consumer = Arc::new(Consumer::new(&options, telemetry.clone())?);
    let listener = server::listen("consumer", options.listen, options.port).await?;
    server::serve(listener, consumer, stop).await;
    if let Some(telemetry) = telemetry {
        telemetry.shut_down().await;
    }
    Ok(())
}
