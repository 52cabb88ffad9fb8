//! An HTTP/1.1 server on loopback that ends well: it stops accepting, answers what has been asked, then returns.

use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How long requests under way may take to be answered once the server is to stop.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// What answers the requests of a server.
pub(super) trait Service: Send + Sync + 'static {
    /// Answers one request, which came from `peer`.
    fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// Binds a port and says so on standard output: `consumer listens on http://127.0.0.1:8080`.
pub(super) async fn listen(name: &str, address: IpAddr, port: u16) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind((address, port))
        .await
        .with_context(|| format!("cannot listen on port {port}: choose another, or 0 for a free one"))?;
    // Nobody may be reading; that is no reason not to serve.
    let _ = writeln!(io::stdout(), "{name} listens on http://{}", listener.local_addr()?);
    Ok(listener)
}

/// Answers requests until `stop` is ready, then those under way, and returns.
pub(super) async fn serve(listener: TcpListener, service: Arc<impl Service>, stop: impl Future<Output = ()>) {
    let connections = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new());
    tokio::pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, mostly: trying again at once would spin.
                    eprintln!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        // Answers are small and wanted at once. Fails only on a connection that is already gone.
        let _ = stream.set_nodelay(true);
        let service = Arc::clone(&service);
        let answer = service_fn(move |request| {
            let service = Arc::clone(&service);
            async move { Ok::<_, std::convert::Infallible>(service.answer(request, peer).await) }
        });
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), answer));
        // A connection that breaks off is the client's affair.
        tokio::spawn(async move {
            let _ = connection.await;
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(LAST_ANSWERS, connections.shutdown()).await;
}

/// Waits for SIGTERM or SIGINT; for ever with `ignore`, which also keeps them from ending the process.
pub(super) fn stop_signal(ignore: bool) -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if !ignore {
                return;
            }
        }
    })
}

/// A text as an answer.
pub(super) fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain"));
    response
}
