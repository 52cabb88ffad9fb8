//! HTTP/2 servers for tests: a correct one by the `h2` crate, and one that sends whatever bytes it is told to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};

use crate::certificates::{Secure, acceptor};

/// What the correct server does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    /// Replies with 5 bytes.
    Good,
    /// Replies after a while.
    Slow(Duration),
    /// Replies with so many bytes.
    Large(usize),
    /// Reads the request's body and replies with its length in decimal digits.
    CountBody,
    /// Replies with 5 bytes and trailers.
    Trailers,
    /// Resets every stream.
    Reset(h2::Reason),
    /// Replies, and goes away after so many requests.
    GoAwayAfter(u64),
    /// Takes requests and never replies.
    Silent,
    /// `POST /jobs` makes a job and names it; the third `GET` of its path finds it done.
    Jobs,
    /// Replies with what a function makes of the path and of the request's number, from 1: status, location and body. The
    /// body comes in two frames.
    By(fn(&str, u64) -> (u16, Option<String>, String)),
}

/// How the correct server is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) manner: Manner,
    pub(crate) max_streams: u32,
    pub(crate) window: u32,
    /// Goes away after so many requests on a connection.
    pub(crate) max_requests: u64,
    /// HTTP/1.1 over TLS: goes away without saying so to TLS.
    pub(crate) abrupt: bool,
}

impl Setup {
    /// A server with this manner and the usual limits.
    pub(crate) fn new(manner: Manner) -> Self {
        Self { manner, max_streams: 100, window: 65_535, max_requests: u64::MAX, abrupt: false }
    }
}

/// How the correct server is reached.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// Over TCP.
    Tcp,
    /// Over TLS, with these protocols for ALPN.
    Tls(&'static [&'static [u8]]),
    /// Over TLS, in some particular way.
    Secure(Secure),
    /// Over TLS and IPv6.
    Ipv6(Secure),
    /// Over a Unix socket.
    Unix,
    /// Over a Unix socket, speaking HTTP/1.1.
    UnixHttp1,
}

/// A running server; dropping it stops it.
pub(crate) struct CorrectServer {
    pub(crate) observed: Arc<Observations>,
    /// Where it listens, as the URL has it.
    place: String,
    /// Holds its certificate and its socket.
    folder: tempfile::TempDir,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

/// What a server has seen.
#[derive(Default)]
pub(crate) struct Observations {
    requests: AtomicU64,
    connections: AtomicU64,
    max_concurrent: AtomicU64,
    heads: Mutex<Vec<http::request::Parts>>,
    /// Names that clients have asked for (SNI).
    names: Mutex<std::collections::BTreeSet<Option<String>>>,
    /// How often each job has been asked for.
    polls: Mutex<std::collections::HashMap<String, u64>>,
}

impl CorrectServer {
    /// Starts a server on a free port.
    pub(crate) fn start(setup: Setup) -> Self {
        Self::start_on(setup, Way::Tcp)
    }

    /// Starts a server that is reached in some way.
    pub(crate) fn start_on(setup: Setup, way: Way) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("socket");
        let acceptor = match way {
            Way::Tls(protocols) => Some(acceptor(folder.path(), &Secure { protocols, ..Secure::default() })),
            Way::Secure(ref secure) | Way::Ipv6(ref secure) => Some(acceptor(folder.path(), secure)),
            Way::Tcp | Way::Unix | Way::UnixHttp1 => None,
        };
        let local = if matches!(way, Way::Ipv6(_)) { "[::1]:0" } else { "127.0.0.1:0" };
        let listener = TcpListener::bind(local).expect("a free port");
        let address = listener.local_addr().expect("bound");
        listener.set_nonblocking(true).expect("supported");
        let unix = matches!(way, Way::Unix | Way::UnixHttp1)
            .then(|| std::os::unix::net::UnixListener::bind(&socket).expect("a new path"));
        let place = match way {
            Way::Tcp => format!("http://{address}"),
            Way::Tls(_) | Way::Secure(_) => format!("https://localhost:{}", address.port()),
            Way::Ipv6(_) => format!("https://{address}"),
            Way::Unix | Way::UnixHttp1 => format!("unix:{}:", socket.display()),
        };
        let unix_http1 = matches!(way, Way::UnixHttp1);
        let observed = Arc::new(Observations::default());
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let shared = Arc::clone(&observed);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("registers");
                let unix = unix.map(|unix| {
                    unix.set_nonblocking(true).expect("supported");
                    tokio::net::UnixListener::from_std(unix).expect("registers")
                });
                loop {
                    let (shared, acceptor) = (Arc::clone(&shared), acceptor.clone());
                    // The client may leave at any time: what becomes of a connection does not matter here.
                    match &unix {
                        Some(unix) => tokio::select! {
                            accepted = unix.accept() => {
                                let (stream, _) = accepted.expect("accepts");
                                tokio::spawn(async move { let _ = speak(stream, setup, shared, unix_http1).await; });
                            }
                            _ = &mut stopped => return,
                        },
                        None => tokio::select! {
                            accepted = listener.accept() => {
                                let (stream, _) = accepted.expect("accepts");
                                tokio::spawn(async move {
                                    match acceptor {
                                        None => { let _ = speak(stream, setup, shared, false).await; }
                                        Some(acceptor) => {
                                            let Ok(stream) = acceptor.accept(stream).await else { return };
                                            let session = stream.get_ref().1;
                                            let http1 = session.alpn_protocol() != Some(b"h2");
                                            let name = session.server_name().map(str::to_owned);
                                            shared.names.lock().expect("no thread panics with it").insert(name);
                                            let _ = speak(stream, setup, shared, http1).await;
                                        }
                                    }
                                });
                            }
                            _ = &mut stopped => return,
                        },
                    }
                }
            });
        });
        Self { observed, place, folder, stop: Some(stop) }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/resource?x=1", self.place)
    }

    /// Its certificate.
    pub(crate) fn certificate(&self) -> std::path::PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The folder with its certificates.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Names that clients have asked for (SNI).
    pub(crate) fn names(&self) -> Vec<Option<String>> {
        self.observed.names.lock().expect("no thread panics with it").iter().cloned().collect()
    }

    /// Requests whose head has arrived.
    pub(crate) fn requests(&self) -> u64 {
        self.observed.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.observed.connections.load(Ordering::Relaxed)
    }

    /// Most streams open at the same time on one connection.
    pub(crate) fn max_concurrent(&self) -> u64 {
        self.observed.max_concurrent.load(Ordering::Relaxed)
    }

    pub(crate) fn heads(&self) -> Vec<http::request::Parts> {
        self.observed.heads.lock().expect("no thread panics with it").clone()
    }
}

impl Drop for CorrectServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

/// Serves a connection to its end: HTTP/2, or HTTP/1.1 if agreed or if the client's first words say so.
async fn speak<S>(stream: S, setup: Setup, observed: Arc<Observations>, http1: bool) -> std::io::Result<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    observed.connections.fetch_add(1, Ordering::Relaxed);
    if http1 {
        return speak_http1(stream, setup, &observed).await;
    }
    serve(stream, setup, observed).await.map_err(std::io::Error::other)
}

/// A good reply to every request without a body. After so many on the connection it says that it closes, and does.
async fn speak_http1<S>(mut stream: S, setup: Setup, observed: &Observations) -> std::io::Result<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut held, mut count) = (Vec::new(), 0);
    while stream.read_buf(&mut held).await? > 0 {
        while let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") {
            held.drain(..end + 4);
            observed.requests.fetch_add(1, Ordering::Relaxed);
            count += 1;
            let last = count == setup.max_requests;
            match (setup.manner, last) {
                // Without a length the body ends with the connection.
                (Manner::Trailers, _) => stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").await?,
                (_, true) => {
                    let text = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
                    stream.write_all(text).await?;
                }
                (_, false) => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await?,
            }
            stream.flush().await?;
            if last {
                if !setup.abrupt {
                    stream.shutdown().await?;
                }
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Serves HTTP/2.
async fn serve<S>(stream: S, setup: Setup, observed: Arc<Observations>) -> Result<(), h2::Error>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut connection = h2::server::Builder::new()
        .max_concurrent_streams(setup.max_streams)
        .initial_window_size(setup.window)
        .handshake::<_, Bytes>(stream)
        .await?;
    let open = Arc::new(AtomicU64::new(0));
    let mut count = 0;
    while let Some(request) = connection.accept().await {
        let (request, respond) = request?;
        count += 1;
        let number = observed.requests.fetch_add(1, Ordering::Relaxed) + 1;
        observed.max_concurrent.fetch_max(open.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        if count == setup.max_requests || matches!(setup.manner, Manner::GoAwayAfter(most) if count == most) {
            connection.graceful_shutdown();
        }
        let (observed, open) = (Arc::clone(&observed), Arc::clone(&open));
        tokio::spawn(async move {
            let _ = answer(request, respond, setup.manner, &observed, number).await;
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(())
}

/// Answers a request.
async fn answer(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    manner: Manner,
    observed: &Observations,
    number: u64,
) -> Result<(), h2::Error> {
    let (head, mut body) = request.into_parts();
    let (method, path) = (head.method.clone(), head.uri.path().to_owned());
    observed.heads.lock().expect("no thread panics with it").push(head);
    let ok = |length: usize| Response::builder().header("content-length", length).body(()).expect("good");
    match manner {
        Manner::Good | Manner::GoAwayAfter(_) => {
            respond.send_response(ok(5), false)?.send_data(Bytes::from_static(b"hello"), true)?;
        }
        Manner::Slow(pause) => {
            tokio::time::sleep(pause).await;
            respond.send_response(ok(5), false)?.send_data(Bytes::from_static(b"hello"), true)?;
        }
        Manner::Large(size) => {
            respond.send_response(ok(size), false)?.send_data(Bytes::from(vec![b'x'; size]), true)?;
        }
        Manner::CountBody => {
            let mut length = 0;
            while let Some(part) = body.data().await {
                let part = part?;
                length += part.len();
                body.flow_control().release_capacity(part.len())?;
            }
            let text = length.to_string();
            respond.send_response(ok(text.len()), false)?.send_data(Bytes::from(text), true)?;
        }
        Manner::Trailers => {
            let mut stream = respond.send_response(Response::new(()), false)?;
            stream.send_data(Bytes::from_static(b"hello"), false)?;
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
            stream.send_trailers(trailers)?;
        }
        Manner::Jobs => {
            let text = if method == http::Method::POST {
                format!("{{\"id\": \"job-{number}\"}}")
            } else {
                let mut polls = observed.polls.lock().expect("no thread panics with it");
                let polls = polls.entry(path).or_default();
                *polls += 1;
                format!("{{\"state\": \"{}\"}}", if *polls == 3 { "done" } else { "running" })
            };
            respond.send_response(ok(text.len()), false)?.send_data(Bytes::from(text), true)?;
        }
        Manner::By(answer) => {
            let (status, location, text) = answer(&path, number);
            let mut response = Response::builder().status(status);
            if let Some(location) = location {
                response = response.header("location", location);
            }
            let mut stream = respond.send_response(response.body(()).expect("good"), text.is_empty())?;
            if !text.is_empty() {
                let (first, rest) = text.split_at(text.len() / 2);
                stream.send_data(Bytes::from(first.to_owned()), false)?;
                stream.send_data(Bytes::from(rest.to_owned()), true)?;
            }
        }
        Manner::Reset(reason) => respond.send_reset(reason),
        Manner::Silent => std::future::pending().await,
    }
    Ok(())
}

/// A server that greets, waits for the first request's head if asked to, sends bytes and then only reads.
pub(crate) struct RawServer {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl RawServer {
    /// Starts it. `say` gets the socket after the greeting, at once.
    pub(crate) fn start(say: fn(&mut TcpStream) -> std::io::Result<()>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                let stopped = Arc::clone(&stopped);
                thread::spawn(move || {
                    let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
                    // The client ends most of these connections.
                    let _ = say(&mut stream);
                    let mut buffer = [0; 4096];
                    while !stopped.load(Ordering::Relaxed) {
                        match stream.read(&mut buffer) {
                            Ok(0) => return,
                            Ok(_) => {}
                            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                            Err(_) => return,
                        }
                    }
                });
            }
        });
        Self { address, stop }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the accepting thread up.
        let _ = TcpStream::connect(self.address);
    }
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Reads until the head of a request has come; returns its stream.
fn read_request(stream: &mut TcpStream) -> std::io::Result<u32> {
    let mut held = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let mut at = 24;
        while held.len() >= at + 9 {
            let length = usize::from(held[at]) << 16 | usize::from(held[at + 1]) << 8 | usize::from(held[at + 2]);
            if held[at + 3] == 1 && held.len() >= at + 9 + length {
                return Ok(u32::from_be_bytes([held[at + 5], held[at + 6], held[at + 7], held[at + 8]]));
            }
            at += 9 + length;
        }
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            taken => held.extend_from_slice(&buffer[..taken]),
        }
    }
}

/// Sends SETTINGS, waits for a request, sends `bytes` with its stream number (1) in them.
pub(crate) fn greet_then(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(&frame(4, 0, 0, &[]))?;
    read_request(stream)?;
    stream.write_all(bytes)
}
