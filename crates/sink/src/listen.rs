//! Listeners and their connections: HTTP/1.1 and HTTP/2 without TLS, and HTTP/1.1 with it, all on the thread that called. The first
//! bytes of a connection tell which it is.

use std::cell::Cell;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use http::{Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, BufReader};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use unladen_decode::frames::PREFIX;
use unladen_decode::span::Protocol;
use unladen_http2::frame::PREFACE;
use unladen_ledger::faults::Fate;

use crate::answer::{Answer, Reply};
use crate::error::SinkError;
use crate::h2::{self, Scratch};
use crate::hub::Hub;
use crate::inbound::Request;
use crate::rewind::Rewind;
use crate::tls::Tls;
use crate::web::Failure;
use crate::{
    azure, datadog, elastic, grpc, instana, jaeger, newrelic, otlp, pinpoint, sentry, skywalking, xray, zipkin,
};

/// Bytes read from a connection at once: hyper by itself asks for a frame's worth, and each time the kernel is asked.
const READ: usize = 64 << 10;
/// How long a connection may take to say which protocol it speaks.
const GREETING: Duration = Duration::from_secs(30);
/// First byte of a TLS handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// Pause after a connection could not be accepted, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Binds an address; port 0 takes a free one. `name` is that of who listens.
pub(crate) async fn bind(name: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), SinkError> {
    let error = |source| SinkError::listen(name, address, source);
    let listener = TcpListener::bind(address).await.map_err(error)?;
    let bound = listener.local_addr().map_err(error)?;
    Ok((listener, bound))
}

/// Binds an address in another network namespace.
pub(crate) fn bind_in(network: &Path, address: SocketAddr) -> io::Result<TcpListener> {
    let listener = within(network, || std::net::TcpListener::bind(address))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Binds an address for datagrams, in another network namespace if one is named.
pub(crate) fn bind_datagrams(network: Option<&Path>, address: SocketAddr) -> io::Result<UdpSocket> {
    let bind = || std::net::UdpSocket::bind(address);
    let socket = network.map_or_else(bind, |network| within(network, bind))?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// Makes a socket in another network namespace (a file, see network_namespaces(7)). It belongs to the namespace of the thread that makes
/// it, for good; the way back would take the rights of root, so it is a thread of its own.
pub(crate) fn within<T: Send>(network: &Path, make: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let make = || {
        let network = File::open(network)?;
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        make()
    };
    let made = thread::scope(|scope| scope.spawn(make).join());
    made.unwrap_or_else(|_| Err(io::Error::other("the thread that was to listen failed")))
}

/// Accepts connections until told to stop; what is done with each goes on beside it.
pub(crate) async fn accept<F: Future<Output = ()> + 'static>(
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    serve: impl Fn(TcpStream) -> F,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::task::spawn_local(serve(stream))),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// What connections share.
#[derive(Clone)]
pub(crate) struct Connections {
    hub: Rc<Hub>,
    stop: watch::Receiver<bool>,
    open: Rc<Cell<usize>>,
    limit: usize,
    /// Requests so far; only counted if there are faults.
    requests: Rc<Cell<u64>>,
    scratch: Scratch,
    /// What Datadog's tracers are told.
    about: Rc<datadog::About>,
    /// For those who come with TLS.
    tls: Option<Tls>,
    /// Where New Relic's agents come, if they do.
    newrelic_port: u16,
    /// What Pinpoint's agents have told.
    apis: Rc<pinpoint::Apis>,
    /// What Instana's tracers have told.
    services: Rc<instana::Services>,
}

impl Connections {
    /// None yet; they end when `stop` turns true. Of more than `limit`, the last are closed at once.
    pub(crate) fn new(hub: Rc<Hub>, stop: watch::Receiver<bool>, limit: usize, about: datadog::About) -> Self {
        let (open, requests, scratch) = (Rc::default(), Rc::default(), Scratch::new());
        let (about, apis, services) = (Rc::new(about), Rc::default(), Rc::default());
        Self { hub, stop, open, limit, requests, scratch, about, tls: None, newrelic_port: 0, apis, services }
    }

    /// The same, also for New Relic's agents, who come to this port with TLS.
    pub(crate) fn with_newrelic(self, newrelic_port: u16, tls: Option<Tls>) -> Self {
        Self { tls, newrelic_port, ..self }
    }

    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }

    /// Serves a connection to the listener of a protocol, which counts from now on.
    pub(crate) fn serve(self, stream: TcpStream, protocol: Protocol) -> impl Future<Output = ()> {
        let open = (self.open.get() < self.limit).then(|| Open::new(&self.open));
        async move {
            // Else closed, not left waiting: a sender that is told can say so.
            if let Some(_open) = open {
                self.run(stream, protocol).await;
            }
        }
    }

    async fn run(self, stream: TcpStream, protocol: Protocol) {
        // Replies are small: without this each would wait for the acknowledgement of the last.
        let _ = stream.set_nodelay(true);
        if self.hub.faults().is_some_and(|(faults, _)| faults.reset) {
            // Closed without a farewell: what else is a reset.
            let _ = stream.set_zero_linger();
        }
        let mut stop = self.stop.clone();
        let cut = CloseSignals::default();
        let stop = async {
            tokio::select! {
                _ = stop.changed() => {}
                () = cut.close.notified() => {}
            }
        };
        let answer = |request: Request| async {
            let fault = match self.hub.faults() {
                Some(_) => inject_fault(&self.hub, &self.requests, &cut, &request).await,
                None => None,
            };
            match fault {
                Some(refusal) => refusal.into(),
                None => self.answer(protocol, request).await,
            }
        };
        // A connection that breaks is the sender's affair: what it acknowledged is counted already.
        tokio::select! {
            () = self.speak(stream, answer, stop) => {}
            () = cut.reset.notified() => {}
        }
    }

    /// Serves a connection in the protocol that it speaks.
    async fn speak<F: Future<Output = Answer>>(
        &self,
        mut stream: TcpStream,
        answer: impl Fn(Request) -> F,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let prefix = tokio::select! {
            prefix = timeout(GREETING, greeting(&mut stream)) => prefix,
            () = stop.as_mut() => return,
        };
        let Ok(Some(prefix)) = prefix else { return };
        if prefix == PREFACE {
            let bodies = (self.hub.budget(), self.hub.max_message().saturating_add(PREFIX));
            let is_behind = || self.hub.is_behind();
            return h2::serve(stream, &prefix, &self.scratch, bodies, is_behind, answer, stop).await;
        }
        let is_handshake = prefix.first() == Some(&HANDSHAKE);
        let stream = Rewind::new(prefix, stream);
        match self.tls.as_ref().filter(|_| is_handshake) {
            None => speak_http1(stream, answer, stop).await,
            Some(tls) => {
                let accepted = tokio::select! {
                    accepted = timeout(GREETING, tls.accept(stream)) => accepted,
                    () = stop.as_mut() => return,
                };
                // Who does not trust the authority says so in its own log.
                let Ok(Ok(stream)) = accepted else { return };
                speak_http1(stream, answer, stop).await;
            }
        }
    }

    async fn answer(&self, protocol: Protocol, request: Request) -> Answer {
        let hub = &self.hub;
        match protocol {
            Protocol::OtlpGrpc => otlp::grpc::serve(hub, request).await,
            Protocol::OtlpHttp => otlp::http::serve(hub, request).await.into(),
            Protocol::Zipkin => zipkin::serve(hub, request).await.into(),
            Protocol::Skywalking => skywalking::serve(hub, request).await,
            Protocol::Elastic => elastic::serve(hub, request).await.into(),
            Protocol::Jaeger => jaeger::serve(hub, request).await,
            Protocol::Sentry => sentry::serve(hub, request).await.into(),
            Protocol::Azure => azure::serve(hub, request).await.into(),
            Protocol::Datadog => datadog::serve(hub, &self.about, request).await.into(),
            Protocol::Xray => xray::serve(hub, request).await.into(),
            Protocol::Newrelic => newrelic::serve(hub, self.newrelic_port, request).await,
            Protocol::Pinpoint => pinpoint::serve(hub, &self.apis, request).await,
            Protocol::Instana => instana::serve(hub, &self.services, request).await.into(),
        }
    }
}

/// Serves a connection in HTTP/1.1, whatever carries it.
async fn speak_http1<F: Future<Output = Answer>>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: impl Fn(Request) -> F,
    stop: impl Future<Output = ()>,
) {
    let service = service_fn(|request| {
        let answer = answer(Request::from(request));
        async move { Ok::<_, Infallible>(Response::from(answer.await)) }
    });
    let stream = TokioIo::new(BufReader::with_capacity(READ, stream));
    let mut http1 = http1::Builder::new();
    // A buffer grows by as much as its sender sends at once, and stays: with many senders that is a lot.
    http1.timer(TokioTimer::new()).max_buf_size(2 * READ);
    let connection = http1.serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => {}
        () = stop => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Reads until it is clear whether a connection begins with the preface of HTTP/2; `None` if it ends before.
async fn greeting(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut prefix = Vec::with_capacity(PREFACE.len());
    while prefix.len() < PREFACE.len() && PREFACE.starts_with(&prefix) {
        let room = (PREFACE.len() - prefix.len()) as u64;
        if (&mut *stream).take(room).read_buf(&mut prefix).await.ok()? == 0 {
            return None;
        }
    }
    Some(prefix)
}

/// How faults end a connection.
#[derive(Debug, Default)]
struct CloseSignals {
    requests: Cell<u64>,
    /// At once.
    reset: Notify,
    /// Once its requests are answered.
    close: Notify,
}

/// Does to a request what the faults want; an answer if that is all it gets.
async fn inject_fault(
    hub: &Hub,
    requests: &Cell<u64>,
    cut: &CloseSignals,
    request: &Request,
) -> Option<Response<Reply>> {
    let (faults, age) = hub.faults()?;
    let number = requests.get();
    requests.set(number + 1);
    cut.requests.set(cut.requests.get() + 1);
    if faults.closes(cut.requests.get()) {
        cut.close.notify_one();
    }
    let (delay, fate) = faults.decide(number, age);
    tokio::time::sleep(delay).await;
    if fate != Fate::Serve {
        hub.faulted();
    }
    match fate {
        Fate::Serve => None,
        Fate::Refuse(refusal) if grpc::is_grpc(request) => Some(grpc::refusal(refusal.grpc)),
        Fate::Refuse(refusal) => {
            let status = StatusCode::from_u16(refusal.http).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            Some(Failure::new(status, "refused on purpose").plain())
        }
        Fate::Reset => {
            cut.reset.notify_one();
            std::future::pending().await
        }
        Fate::BlackHole => std::future::pending().await,
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
