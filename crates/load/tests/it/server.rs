//! A scriptable HTTP server for tests: one thread per connection, every request counted, behaviours from polite to hostile.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What the server does with a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behaviour {
    /// Sends these bytes.
    Reply(&'static str),
    /// Sends these bytes in pieces of so many, with a pause after each.
    Pieces(&'static str, usize, Duration),
    /// Sends these bytes and closes.
    ReplyThenClose(&'static str),
    /// Sends a good reply after a while.
    Slow(Duration),
    /// Sends a good reply, but does nothing at all in the first 200 ms of every second since the server started.
    Frozen,
    /// Never answers.
    Silent,
    /// Sends a reply with a body of so many bytes.
    Large(usize),
    /// Closes after every so many requests, saying so in the last reply.
    CloseAfter(u64),
    /// Closes after every so many requests, without a word.
    CloseSilentlyAfter(u64),
    /// Sends the first bytes, then the others again and again with a pause after each, until the client leaves.
    Endless(&'static str, &'static str, Duration),
    /// Sends these bytes and resets the connection.
    Reset(&'static str),
    /// Sends what a function makes of the request's head and of its number on the connection, from 1.
    By(fn(&str, u64) -> String),
}

/// A good reply of 5 bytes.
pub(crate) const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
/// See [`GOOD`].
const GOOD_LAST: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

/// A running server; dropping it stops it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

/// What the server's threads share.
struct State {
    behaviour: Behaviour,
    started: Instant,
    stop: AtomicBool,
    requests: AtomicU64,
    connections: AtomicU64,
    heads: Mutex<Vec<String>>,
}

impl Server {
    /// Starts a server on a free port.
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let state = Arc::new(State {
            behaviour,
            started: Instant::now(),
            stop: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            heads: Mutex::new(Vec::new()),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&shared)) else { continue };
                shared.connections.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || {
                    // The client may leave at any time.
                    let _ = shared.serve(stream);
                });
            }
        });
        Self { address, state }
    }

    /// Where its resource is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/resource", self.address)
    }

    /// Requests that have arrived completely.
    pub(crate) fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// Connections that were accepted.
    pub(crate) fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Request heads in the order of arrival.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.state.heads.lock().expect("no thread panics with it").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        // Wakes the accepting thread up.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    /// Serves one connection to its end.
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_millis(100)))?;
        let mut held = Vec::new();
        for number in 1.. {
            let Some(head) = self.read_request(&mut stream, &mut held)? else { return Ok(()) };
            let last = match self.behaviour {
                Behaviour::Reply(text) => {
                    stream.write_all(text.as_bytes())?;
                    false
                }
                Behaviour::Pieces(text, size, pause) => {
                    for piece in text.as_bytes().chunks(size) {
                        stream.write_all(piece)?;
                        thread::sleep(pause);
                    }
                    false
                }
                Behaviour::ReplyThenClose(text) => {
                    stream.write_all(text.as_bytes())?;
                    true
                }
                Behaviour::Slow(pause) => {
                    thread::sleep(pause);
                    stream.write_all(GOOD.as_bytes())?;
                    false
                }
                Behaviour::Frozen => {
                    let phase = self.started.elapsed().subsec_nanos();
                    if phase < 200_000_000 {
                        thread::sleep(Duration::from_nanos(u64::from(200_000_000 - phase)));
                    }
                    stream.write_all(GOOD.as_bytes())?;
                    false
                }
                Behaviour::Silent => false,
                Behaviour::Large(size) => {
                    stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").as_bytes())?;
                    stream.write_all(&vec![b'x'; size])?;
                    false
                }
                Behaviour::CloseAfter(most) => {
                    let last = number == most;
                    stream.write_all(if last { GOOD_LAST } else { GOOD }.as_bytes())?;
                    last
                }
                Behaviour::Endless(first, again, pause) => {
                    stream.write_all(first.as_bytes())?;
                    while !self.stop.load(Ordering::Relaxed) {
                        stream.write_all(again.as_bytes())?;
                        thread::sleep(pause);
                    }
                    true
                }
                Behaviour::Reset(text) => {
                    stream.write_all(text.as_bytes())?;
                    // Without lingering, closing is a reset.
                    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
                    true
                }
                Behaviour::By(answer) => {
                    stream.write_all(answer(&head, number).as_bytes())?;
                    false
                }
                Behaviour::CloseSilentlyAfter(most) => {
                    stream.write_all(GOOD.as_bytes())?;
                    number == most
                }
            };
            if last {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads a request with its body: its head. `None`: the client has gone, or the server stops.
    fn read_request(&self, stream: &mut TcpStream, held: &mut Vec<u8>) -> std::io::Result<Option<String>> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&held[..end]).into_owned();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("Content-Length: "))
                    .map_or(0, |length| length.parse().expect("the generator sends a number"));
                if held.len() >= end + 4 + length {
                    held.drain(..end + 4 + length);
                    self.requests.fetch_add(1, Ordering::Relaxed);
                    self.heads.lock().expect("no thread panics with it").push(head.clone());
                    return Ok(Some(head));
                }
            }
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(taken) => held.extend_from_slice(&buffer[..taken]),
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                    if self.stop.load(Ordering::Relaxed) {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}
