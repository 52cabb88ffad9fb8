//! Calls to the provider: an HTTP/1.1 client whose connections are pooled and kept alive.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::telemetry::Telemetry;

/// How long one call may take, its body included.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The connection could not be made or broke.
    #[error("the provider cannot be reached: {}", chain(.0))]
    Unreachable(#[from] hyper_util::client::legacy::Error),
    /// The connection broke within the body.
    #[error("the provider's answer broke off: {0}")]
    BrokeOff(#[from] hyper::Error),
    /// Nothing came in time.
    #[error("the provider did not answer within {} s", TIMEOUT.as_secs())]
    TimedOut,
    /// It answered, but not well.
    #[error("the provider answered {0}")]
    Refused(StatusCode),
}

impl CallError {
    /// The error's class, as the semantic conventions want it in `error.type`.
    pub(super) fn class(&self) -> String {
        match self {
            Self::Unreachable(_) => "unreachable".to_owned(),
            Self::BrokeOff(_) => "broke_off".to_owned(),
            Self::TimedOut => "timeout".to_owned(),
            Self::Refused(status) => status.as_str().to_owned(),
        }
    }
}

/// Calls the provider.
pub(super) struct ProviderClient {
    http: Client<HttpConnector, Empty<Bytes>>,
    uri: Uri,
}

impl ProviderClient {
    /// A client of the provider at `uri`. Connects at the first call.
    pub(super) fn new(uri: Uri) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Self { http, uri }
    }

    /// Calls the provider once and reads its answer to the end; with `telemetry`, inside a client span of its own.
    pub(super) async fn call(&self, telemetry: Option<&Telemetry>) -> Result<(), CallError> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = self.uri.clone();
        let call = |request| async {
            tokio::time::timeout(TIMEOUT, self.exchange(request)).await.unwrap_or(Err(CallError::TimedOut))
        };
        match telemetry {
            None => call(request).await?,
            Some(telemetry) => telemetry.client_span(request, call).await?,
        };
        Ok(())
    }

    async fn exchange(&self, request: Request<Empty<Bytes>>) -> Result<Response<()>, CallError> {
        let (head, mut body) = self.http.request(request).await?.into_parts();
        read_to_end(&mut body).await?;
        if head.status != StatusCode::OK {
            return Err(CallError::Refused(head.status));
        }
        Ok(Response::from_parts(head, ()))
    }
}

/// A connection goes back to the pool only when its last answer has been read.
async fn read_to_end(body: &mut Incoming) -> Result<(), hyper::Error> {
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

/// The error with all its causes: hyper's own text alone says no more than "client error (Connect)".
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
