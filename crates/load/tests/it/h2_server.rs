//! HTTP/2 servers for tests: a correct one by the `h2` crate, and one that sends whatever bytes it is told to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};

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
}

/// How the correct server is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) manner: Manner,
    pub(crate) most_streams: u32,
    pub(crate) window: u32,
}

impl Setup {
    /// A server with this manner and the usual limits.
    pub(crate) fn new(manner: Manner) -> Self {
        Self { manner, most_streams: 100, window: 65_535 }
    }
}

/// A running server; dropping it stops it.
pub(crate) struct CorrectServer {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

/// What a server has seen.
#[derive(Default)]
pub(crate) struct Seen {
    requests: AtomicU64,
    connections: AtomicU64,
    most_at_once: AtomicU64,
    heads: Mutex<Vec<http::request::Parts>>,
}

impl CorrectServer {
    /// Starts a server on a free port.
    pub(crate) fn start(setup: Setup) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        listener.set_nonblocking(true).expect("supported");
        let seen = Arc::new(Seen::default());
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("registers");
                loop {
                    tokio::select! {
                        accepted = listener.accept() => {
                            let (stream, _) = accepted.expect("accepts");
                            shared.connections.fetch_add(1, Ordering::Relaxed);
                            let shared = Arc::clone(&shared);
                            // The client may leave at any time.
                            tokio::spawn(async move { let _ = serve(stream, setup, shared).await; });
                        }
                        _ = &mut stopped => return,
                    }
                }
            });
        });
        Self { address, seen, stop: Some(stop) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/resource?x=1", self.address)
    }

    /// Requests whose head has arrived.
    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// Most streams open at the same time on one connection.
    pub(crate) fn most_at_once(&self) -> u64 {
        self.seen.most_at_once.load(Ordering::Relaxed)
    }

    pub(crate) fn heads(&self) -> Vec<http::request::Parts> {
        self.seen.heads.lock().expect("no thread panics with it").clone()
    }
}

impl Drop for CorrectServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

/// Serves a connection to its end.
async fn serve(stream: tokio::net::TcpStream, setup: Setup, seen: Arc<Seen>) -> Result<(), h2::Error> {
    let mut connection = h2::server::Builder::new()
        .max_concurrent_streams(setup.most_streams)
        .initial_window_size(setup.window)
        .handshake::<_, Bytes>(stream)
        .await?;
    let open = Arc::new(AtomicU64::new(0));
    let mut count = 0;
    while let Some(request) = connection.accept().await {
        let (request, respond) = request?;
        count += 1;
        seen.requests.fetch_add(1, Ordering::Relaxed);
        seen.most_at_once.fetch_max(open.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        if matches!(setup.manner, Manner::GoAwayAfter(most) if count == most) {
            connection.graceful_shutdown();
        }
        let (seen, open) = (Arc::clone(&seen), Arc::clone(&open));
        tokio::spawn(async move {
            let _ = answer(request, respond, setup.manner, &seen).await;
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
    seen: &Seen,
) -> Result<(), h2::Error> {
    let (head, mut body) = request.into_parts();
    seen.heads.lock().expect("no thread panics with it").push(head);
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
