//! The way of a request, as far as all protocols share it: connect, send, receive, judge, and again. Everything that goes wrong
//! is counted on the requests it hit, and the connection is made anew for the next one.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::connection::{Phase, State};
use super::protocol::{Http2, Protocol, RETRY};
use super::{Engine, TICK};
use crate::error::LoadError;
use crate::network::within;
use crate::request::{Failure, Request};
use crate::sys::{self, Ready};
use crate::target::Address;

/// Connections that are being made at the same time at the start: a server's accept queue may be short.
const CONNECTING_AT_ONCE: usize = 4;

impl Engine<'_> {
    /// Makes all connections, a few at a time. If the very first fails, so does the load; others are tried again when needed.
    pub(crate) fn connect_all(&mut self) -> Result<(), LoadError> {
        let patience = self.now() + self.shared.timeout.max(self.shared.connect_timeout);
        let total = self.connections.len();
        let mut next = 0;
        self.closed.clear();
        while next < total || self.active > 0 {
            while next < total && self.active < CONNECTING_AT_ONCE {
                self.connect(next, None);
                next += 1;
            }
            let ready = self.poller.wait(TICK).map_err(LoadError::system("wait for the sockets"))?;
            for at in 0..ready {
                self.attend(self.poller.get(at));
            }
            let now = self.now();
            if now >= self.next_tick {
                self.time_out(now);
                self.next_tick = now + TICK;
            }
            if now >= patience {
                break;
            }
        }
        for at in 0..next {
            if matches!(self.connections[at].state, State::Connecting { .. }) {
                self.fail(at, Failure::Connect);
            }
        }
        self.closed.extend(next..total);
        if self.connections.iter().any(|connection| connection.was_open) {
            return Ok(());
        }
        if let Some(message) = self.reason.take() {
            return Err(LoadError::Handshake { address: self.shared.address(0).to_string(), message });
        }
        // Ask once more in the simple way, for the system's words.
        let again = match self.shared.address(0) {
            Address::Tcp(address, network) => within(network.as_ref(), || {
                std::net::TcpStream::connect_timeout(address, std::time::Duration::from_secs(1)).map(drop)
            }),
            Address::Unix(path) => std::os::unix::net::UnixStream::connect(path).map(drop),
        };
        let source = again.err().unwrap_or_else(|| std::io::Error::from(std::io::ErrorKind::TimedOut));
        Err(LoadError::Connect { address: self.shared.address(0).to_string(), source })
    }

    /// Gives an iteration to a connection: sends its first request, or connects first.
    #[inline]
    pub(super) fn assign(&mut self, at: usize, index: u64, due: u64, waited: bool) {
        let lane = self.open_lane(at);
        if let Some(script) = &self.script {
            script.begin(&mut self.progress[lane as usize], self.iteration);
            self.progress[lane as usize].begun = due;
        }
        self.go(at, Request { index, due, waited, lane, ..Request::default() });
    }

    /// Gives a request to a connection: sends it, or connects first.
    #[inline]
    pub(super) fn go(&mut self, at: usize, request: Request) {
        if self.connections[at].can_send() {
            let sent = if self.is_timed() { self.now() } else { request.due };
            self.send(at, Request { sent, ..request });
        } else {
            self.connect(at, Some(Request { waited: true, ..request }));
        }
    }

    /// Starts to connect.
    pub(super) fn connect(&mut self, at: usize, request: Option<Request>) {
        let since = self.now();
        let connection = &mut self.connections[at];
        connection.state = State::Connecting { since, request, phase: Phase::Socket };
        self.active += 1;
        self.set_delicate(at, true);
        let begun = sys::connect(self.shared.address(at), self.is_stamped())
            .and_then(|socket| self.poller.add(&socket, at, true).map(|()| socket));
        match begun {
            Ok(socket) => self.connections[at].socket = Some(socket),
            Err(_) => self.fail(at, Failure::Connect),
        }
    }

    /// Whether a connection must be attended to as soon as its socket is ready.
    pub(super) fn set_delicate(&mut self, at: usize, delicate: bool) {
        let connection = &mut self.connections[at];
        if connection.delicate != delicate {
            connection.delicate = delicate;
            if delicate { self.delicate += 1 } else { self.delicate -= 1 }
        }
    }

    /// Sends a request on an open connection with room.
    #[inline]
    fn send(&mut self, at: usize, request: Request) {
        match self.connections[at].protocol {
            Protocol::Http1(_) => self.send_http1(at, request),
            Protocol::Http2(_) => self.send_http2(at, request, 0),
        }
    }

    /// Counts bytes sent in the window.
    #[inline]
    pub(super) fn count_sent(&mut self, bytes: usize, at: u64) {
        if self.span.in_window(at) {
            self.recorder.bytes_sent += bytes as u64;
        }
    }

    /// A request is taken on by a connection that has just become free: whether it waited for that.
    #[inline]
    pub(super) fn note_queued(&mut self, due: u64, free_since: u64) -> bool {
        // Due before this connection was free, and no other was. (Due after, it waited for us, not for a connection.)
        let waited = due < free_since && self.cursor.is_some();
        if waited {
            self.recorder.queued(due);
        }
        waited
    }

    /// Sees to it that what the socket did not take is sent as soon as it does.
    #[inline]
    pub(super) fn watch_rest(&mut self, at: usize) {
        if !self.connections[at].unsent.is_empty() {
            self.set_delicate(at, true);
            self.watch_writing(at, true);
        }
    }

    /// Watches for writability, or stops to.
    pub(super) fn watch_writing(&mut self, at: usize, writing: bool) {
        let Some(socket) = &self.connections[at].socket else { return };
        if self.poller.set_writing(socket, at, writing).is_err() {
            self.fail(at, Failure::Reset);
        }
    }

    /// Does what a ready socket asks for.
    #[inline]
    pub(super) fn attend(&mut self, ready: Ready) {
        let at = ready.token;
        if ready.writable && self.connections[at].delicate {
            self.attend_writing(at);
        }
        if ready.readable {
            // The poller tells of what comes once: what a read has left must be read now, and after the last bytes the end.
            while self.listens(at) && self.receive(at, ready.ended) {}
        }
    }

    /// Whether what comes on a connection is for us to read.
    #[inline]
    fn listens(&self, at: usize) -> bool {
        match self.connections[at].state {
            State::Open => true,
            State::Connecting { phase, .. } => phase != Phase::Socket,
            State::Closed { .. } => false,
        }
    }

    /// A socket can be written to: its connection is open or has failed, or it takes more of what is unsent.
    #[cold]
    fn attend_writing(&mut self, at: usize) {
        let Some(socket) = &self.connections[at].socket else { return };
        match self.connections[at].state {
            State::Connecting { since, request, phase: Phase::Socket } => {
                if sys::connected(socket).is_err() {
                    return self.fail(at, Failure::Connect);
                }
                self.watch_writing(at, false);
                if self.shared.tls.is_some() {
                    self.connections[at].state = State::Connecting { since, request, phase: Phase::Tls };
                    self.greet_tls(at);
                } else {
                    self.on_socket_open(at, since, request, self.now());
                }
            }
            State::Open | State::Connecting { .. } if !self.connections[at].unsent.is_empty() => {
                match sys::send(socket, &self.connections[at].unsent) {
                    Ok(taken) => {
                        self.connections[at].unsent.drain(..taken);
                        self.count_sent(taken, self.now());
                        if self.connections[at].unsent.is_empty() {
                            self.watch_writing(at, false);
                            self.set_delicate(at, self.connections[at].state != State::Open);
                            self.settle_http2(at, self.now());
                        }
                    }
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(_) => self.fail(at, Failure::Reset),
                }
            }
            State::Open | State::Connecting { .. } | State::Closed { .. } => {}
        }
    }

    /// Bytes can be exchanged (with TLS: after its handshake): HTTP/2 has settings to exchange first.
    #[cold]
    pub(super) fn on_socket_open(&mut self, at: usize, since: u64, request: Option<Request>, now: u64) {
        match self.connections[at].protocol {
            Protocol::Http1(_) => self.on_open(at),
            Protocol::Http2(_) => {
                self.connections[at].state = State::Connecting { since, request, phase: Phase::Settings };
                self.greet_http2(at, now);
            }
        }
    }

    /// A connection has opened: it sends the request that it was made for.
    #[cold]
    pub(super) fn on_open(&mut self, at: usize) {
        self.set_delicate(at, false);
        let connection = &mut self.connections[at];
        let State::Connecting { request, .. } = connection.state else { return };
        self.recorder.reconnects += u64::from(connection.was_open);
        connection.was_open = true;
        connection.state = State::Open;
        self.active -= 1;
        match (request, &connection.protocol) {
            (Some(request), _) => self.send(at, Request { sent: self.now(), ..request }),
            (None, Protocol::Http1(_)) => self.idle.push_back(at),
            (None, Protocol::Http2(_)) => {}
        }
    }

    /// Reads what has come: whether there may be more.
    #[inline]
    fn receive(&mut self, at: usize, ended: bool) -> bool {
        let stamped = self.is_stamped();
        let connection = &self.connections[at];
        let Some(socket) = &connection.socket else { return false };
        let secure = connection.secure.is_some();
        let carried = if secure { 0 } else { connection.protocol.put_carry(&mut self.buffer) };
        let free = if secure { &mut self.sealed[..] } else { &mut self.buffer[carried..] };
        let room = free.len();
        let received = if stamped {
            sys::receive_stamped(socket, free)
        } else {
            sys::receive(socket, free).map(|taken| (taken, None))
        };
        match received {
            Ok((taken, stamp)) => {
                let now = self.now();
                if self.span.in_window(now) {
                    self.recorder.bytes_received += taken as u64;
                }
                match taken {
                    // Anybody can end a TCP connection: with TLS what has come is then no whole answer.
                    0 if secure && connection.state == State::Open && connection.in_flight() > 0 => {
                        self.fail(at, Failure::Reset);
                    }
                    0 => self.ended(at, now),
                    _ if secure => self.open_tls(at, taken, stamp, now),
                    _ => self.take_in(at, carried, taken, stamp, now),
                }
                taken == room || (ended && taken > 0)
            }
            Err(Errno::AGAIN) => false,
            Err(Errno::INTR) => true,
            Err(_) => {
                self.fail(at, Failure::Reset);
                false
            }
        }
    }

    /// Takes in `taken` bytes of the buffer, after `carried` bytes that were left of the last ones. They came at `now` or when
    /// the kernel stamped them.
    #[inline]
    pub(super) fn take_in(&mut self, at: usize, carried: usize, taken: usize, stamp: Option<u64>, now: u64) {
        match self.connections[at].protocol {
            Protocol::Http1(_) => self.take_in_http1(at, taken, stamp, now),
            Protocol::Http2(_) => self.take_in_http2(at, carried + taken, stamp, now),
        }
    }

    /// The server has ended the connection.
    #[cold]
    pub(super) fn ended(&mut self, at: usize, now: u64) {
        let connection = &self.connections[at];
        if matches!(connection.state, State::Connecting { .. }) {
            self.reason = Some("it closed the connection before it said anything".to_owned());
            return self.fail(at, Failure::Connect);
        }
        match connection.protocol {
            Protocol::Http1(_) => self.ended_http1(at, now),
            Protocol::Http2(_) => self.ended_http2(at, now),
        }
    }

    /// A connection is given up, and the requests on it have failed.
    #[cold]
    pub(super) fn fail(&mut self, at: usize, failure: Failure) {
        let outstanding: Vec<Request> = self.connections[at].outstanding().collect();
        for request in &outstanding {
            match self.connections[at].protocol {
                Protocol::Http1(_) => self.abandon(request, failure),
                Protocol::Http2(_) => self.abandon_http2(request, failure),
            }
        }
        let connection = &self.connections[at];
        let is_new = failure == Failure::Connect || matches!(connection.state, State::Connecting { .. });
        let pause = if is_new { RETRY } else { connection.protocol.pause() };
        self.close(at, self.now() + pause);
        if !outstanding.is_empty() && self.shared.http2.is_none() {
            self.go_on(at, None, self.now());
        }
    }

    /// Closes a connection; whatever was on it has been accounted for.
    #[cold]
    pub(super) fn close(&mut self, at: usize, not_before: u64) {
        self.set_delicate(at, false);
        let connection = &mut self.connections[at];
        match connection.state {
            State::Connecting { .. } => self.active -= 1,
            State::Open => {
                self.active -= connection.in_flight();
                self.idle.retain(|&other| other != at);
            }
            State::Closed { .. } => return,
        }
        // Closing the socket takes it out of the epoll set.
        drop::<Option<OwnedFd>>(connection.socket.take());
        connection.secure = None;
        connection.state = State::Closed { not_before };
        match &mut connection.protocol {
            Protocol::Http1(http1) => http1.reset(),
            Protocol::Http2(http2) => **http2 = Http2::new(self.shared.streams, &self.shared.method),
        }
        connection.unsent.clear();
        self.closed.push_back(at);
    }
}
