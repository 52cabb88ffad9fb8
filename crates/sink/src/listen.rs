//! Listeners and their connections: HTTP/1.1 and HTTP/2 without TLS, all on the thread that called.

use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::error::SinkError;
use crate::hub::Hub;
use crate::span::Protocol;
use crate::{elastic, jaeger, otlp, skywalking, zipkin};

/// Bytes read from a connection at once: hyper by itself asks for a frame's worth, and each time the kernel is asked.
const READ: usize = 64 << 10;
/// Pause after a connection could not be accepted, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Binds an address; port 0 takes a free one.
pub(crate) async fn bind(protocol: Protocol, address: SocketAddr) -> Result<(TcpListener, SocketAddr), SinkError> {
    let error = |source| SinkError::listen(protocol.name(), address, source);
    let listener = TcpListener::bind(address).await.map_err(error)?;
    let bound = listener.local_addr().map_err(error)?;
    Ok((listener, bound))
}

/// What connections share.
#[derive(Clone)]
pub(crate) struct Connections {
    hub: Rc<Hub>,
    stop: watch::Receiver<bool>,
    open: Rc<Cell<usize>>,
    limit: usize,
}

impl Connections {
    /// None yet; they end when `stop` turns true. Of more than `limit`, the last are closed at once.
    pub(crate) fn new(hub: Rc<Hub>, stop: watch::Receiver<bool>, limit: usize) -> Self {
        Self { hub, stop, open: Rc::default(), limit }
    }

    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }

    /// Accepts connections until told to stop.
    pub(crate) async fn accept(mut self, listener: TcpListener, protocol: Protocol) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = self.stop.changed() => return,
            };
            match accepted {
                // Closed, not left waiting: a sender that is told can say so.
                Ok(_) if self.open.get() >= self.limit => {}
                Ok((stream, _)) => {
                    let open = Open::new(&self.open);
                    tokio::task::spawn_local(self.clone().serve(stream, protocol, open));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn serve(mut self, stream: TcpStream, protocol: Protocol, _open: Open) {
        // Replies are small: without this each would wait for the acknowledgement of the last.
        let _ = stream.set_nodelay(true);
        let hub = &self.hub;
        let service = service_fn(move |request| {
            let hub = Rc::clone(hub);
            async move {
                Ok::<_, Infallible>(match protocol {
                    Protocol::OtlpGrpc => otlp::grpc::serve(&hub, request).await,
                    Protocol::OtlpHttp => otlp::http::serve(&hub, request).await,
                    Protocol::Zipkin => zipkin::serve(&hub, request).await,
                    Protocol::Skywalking => skywalking::serve(&hub, request).await,
                    Protocol::Elastic => elastic::serve(&hub, request).await,
                    Protocol::Jaeger => jaeger::serve(&hub, request).await,
                })
            }
        });
        let mut server = auto::Builder::new(LocalExecutor);
        server.http1().timer(TokioTimer::new());
        server.http2().timer(TokioTimer::new());
        let connection = server.serve_connection(TokioIo::new(BufReader::with_capacity(READ, stream)), service);
        let mut connection = std::pin::pin!(connection);
        // A connection that breaks is the sender's affair: what it acknowledged is booked already.
        tokio::select! {
            _ = connection.as_mut() => {}
            _ = self.stop.changed() => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
}

/// Counts a connection while it lives.
struct Open(Rc<Cell<usize>>);

impl Open {
    fn new(open: &Rc<Cell<usize>>) -> Self {
        open.set(open.get() + 1);
        Self(Rc::clone(open))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Runs HTTP/2 streams on the thread of their connection.
#[derive(Debug, Clone, Copy)]
struct LocalExecutor;

impl<F: Future + 'static> Executor<F> for LocalExecutor
where
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
