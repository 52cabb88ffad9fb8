//! The provider: a dependency that answers at once. It is never traced and ignores trace headers.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;

use super::options::ProviderOptions;
use super::server::{self, Service, text};

/// Answers `GET /provider`.
pub(super) struct Provider;

impl Service for Provider {
    async fn answer(&self, request: Request<Incoming>, _: SocketAddr) -> Response<Full<Bytes>> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/provider") => text(StatusCode::OK, "provided"),
            (&Method::GET, "/ready") => text(StatusCode::OK, "ready"),
            _ => text(StatusCode::NOT_FOUND, "not found"),
        }
    }
}

/// Is the provider until SIGTERM or SIGINT.
pub(super) async fn run(options: ProviderOptions) -> anyhow::Result<()> {
    let stop = server::stop_signal(false)?;
    let listener = server::listen("provider", options.listen, options.port).await?;
    server::serve(listener, Arc::new(Provider), stop).await;
    Ok(())
}
