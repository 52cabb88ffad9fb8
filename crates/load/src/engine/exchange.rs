//! The way of a request: connect, send, receive, judge, and again. Everything that goes wrong here is counted on the request
//! it hit, and the connection is made anew for the next one.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::connection::State;
use super::{Engine, RETRY};
use crate::error::LoadError;
use crate::http1::response::{Body, Response};
use crate::record::{Answer, Failure, Request};
use crate::sys::{self, Ready};

/// Connections that are being made at the same time at the start: a server's accept queue may be short.
const CONNECTING_AT_ONCE: usize = 4;

impl Engine<'_> {
    /// Makes all connections, a few at a time. If the very first fails, so does the load; others are tried again when needed.
    pub(crate) fn connect_all(&mut self) -> Result<(), LoadError> {
        let patience = sys::monotonic_ns() + self.shared.timeout;
        let total = self.connections.len();
        let mut next = 0;
        self.closed.clear();
        while next < total || self.active > 0 {
            while next < total && self.active < CONNECTING_AT_ONCE {
                self.connect(next, None);
                next += 1;
            }
            let ready = self.poller.wait(super::TICK).map_err(LoadError::system("wait for the sockets"))?;
            for at in 0..ready {
                self.attend(self.poller.get(at));
            }
            if sys::monotonic_ns() >= patience {
                for at in 0..total {
                    if matches!(self.connections[at].state, State::Connecting { .. }) {
                        self.fail(at, Failure::Connect);
                    }
                }
                break;
            }
        }
        self.closed.extend((next..total).collect::<Vec<_>>());
        if self.connections.iter().any(|connection| connection.stood) {
            return Ok(());
        }
        // Ask once more in the simple way, for the system's words.
        let patience = std::time::Duration::from_secs(1);
        let source = match std::net::TcpStream::connect_timeout(&self.shared.address, patience) {
            Err(error) => error,
            Ok(_) => std::io::Error::from(std::io::ErrorKind::TimedOut),
        };
        Err(LoadError::Connect { address: self.shared.address.to_string(), source })
    }

    /// Gives a request to a connection: sends it, or connects first.
    pub(super) fn assign(&mut self, at: usize, index: u64, due: u64) {
        if self.connections[at].is_idle() {
            let sent = if self.is_open() { sys::monotonic_ns() } else { due };
            self.send(at, index, due, sent);
        } else {
            self.connect(at, Some((index, due)));
        }
    }

    /// Starts to connect.
    fn connect(&mut self, at: usize, request: Option<(u64, u64)>) {
        let since = sys::monotonic_ns();
        let connection = &mut self.connections[at];
        connection.state = State::Connecting { since, request };
        self.active += 1;
        self.set_delicate(at, true);
        let begun = sys::connect(self.shared.address, self.is_open())
            .and_then(|socket| self.poller.add(&socket, at, true).map(|()| socket));
        match begun {
            Ok(socket) => self.connections[at].socket = Some(socket),
            Err(_) => self.fail(at, Failure::Connect),
        }
    }

    /// Whether a connection must be attended to as soon as its socket is ready.
    fn set_delicate(&mut self, at: usize, delicate: bool) {
        let connection = &mut self.connections[at];
        if connection.delicate != delicate {
            connection.delicate = delicate;
            if delicate { self.delicate += 1 } else { self.delicate -= 1 }
        }
    }

    /// Sends a request on a connection that stands.
    #[inline]
    fn send(&mut self, at: usize, index: u64, due: u64, sent: u64) {
        let connection = &mut self.connections[at];
        let Some(socket) = &connection.socket else { return };
        let (bytes, sampled) = self.template.render(index);
        let request = Request { index, due, sent, sampled };
        if !matches!(connection.state, State::Connecting { .. }) {
            self.active += 1;
        }
        connection.state = State::Busy(request);
        let result = sys::send(socket, bytes);
        self.recorder.sent(&request);
        match result {
            Ok(taken) if taken == bytes.len() => self.count_sent(taken, sent),
            Ok(taken) => self.send_later(at, index, taken),
            Err(Errno::AGAIN | Errno::INTR) => self.send_later(at, index, 0),
            Err(_) => self.fail(at, Failure::Reset),
        }
    }

    /// Counts bytes sent in the window.
    #[inline]
    fn count_sent(&mut self, bytes: usize, at: u64) {
        if self.span.in_window(at) {
            self.recorder.bytes_sent += bytes as u64;
        }
    }

    /// Keeps the end of a request until the socket takes it.
    #[cold]
    fn send_later(&mut self, at: usize, index: u64, taken: usize) {
        let (bytes, _) = self.template.render(index);
        let connection = &mut self.connections[at];
        connection.unsent.clear();
        connection.unsent.extend_from_slice(&bytes[taken..]);
        self.count_sent(taken, sys::monotonic_ns());
        self.set_delicate(at, true);
        self.watch_writing(at, true);
    }

    /// Watches for writability, or stops to.
    fn watch_writing(&mut self, at: usize, writing: bool) {
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
        if ready.readable && !matches!(self.connections[at].state, State::Connecting { .. } | State::Closed { .. }) {
            self.receive(at);
        }
    }

    /// A socket can be written to: its connection stands or has failed, or it takes more of a request.
    #[cold]
    fn attend_writing(&mut self, at: usize) {
        let Some(socket) = &self.connections[at].socket else { return };
        match self.connections[at].state {
            State::Connecting { request, .. } => {
                if sys::connected(socket).is_err() {
                    return self.fail(at, Failure::Connect);
                }
                self.watch_writing(at, false);
                self.set_delicate(at, false);
                let connection = &mut self.connections[at];
                self.recorder.reconnects += u64::from(connection.stood);
                connection.stood = true;
                match request {
                    Some((index, due)) => self.send(at, index, due, sys::monotonic_ns()),
                    None => {
                        connection.state = State::Idle;
                        self.active -= 1;
                        self.idle.push_back(at);
                    }
                }
            }
            State::Busy(_) if !self.connections[at].unsent.is_empty() => {
                match sys::send(socket, &self.connections[at].unsent) {
                    Ok(taken) => {
                        self.connections[at].unsent.drain(..taken);
                        self.count_sent(taken, sys::monotonic_ns());
                        if self.connections[at].unsent.is_empty() {
                            self.set_delicate(at, false);
                            self.watch_writing(at, false);
                        }
                    }
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(_) => self.fail(at, Failure::Reset),
                }
            }
            State::Busy(_) | State::Idle | State::Closed { .. } => {}
        }
    }

    /// Reads what has come.
    #[inline]
    fn receive(&mut self, at: usize) {
        let Some(socket) = &self.connections[at].socket else { return };
        let received = if self.is_open() {
            sys::receive_stamped(socket, &mut self.buffer)
        } else {
            sys::receive(socket, &mut self.buffer).map(|taken| (taken, None))
        };
        match received {
            Ok((0, _)) => self.ended(at),
            Ok((taken, stamp)) => self.take_in(at, taken, stamp),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.fail(at, Failure::Reset),
        }
    }

    /// Takes in the bytes at the start of the buffer.
    #[inline]
    fn take_in(&mut self, at: usize, taken: usize, stamp: Option<u64>) {
        let now = sys::monotonic_ns();
        if self.span.in_window(now) {
            self.recorder.bytes_received += taken as u64;
        }
        let connection = &mut self.connections[at];
        let State::Busy(request) = connection.state else {
            // A server that talks unasked, or says why it closes (408): no request is hit.
            return self.close(at, now);
        };
        let arrived = stamp.map_or(now, |stamp| self.bridge.to_monotonic(stamp, request.sent, now));
        match connection.reader.push(&mut self.heads, &self.buffer[..taken]) {
            Ok(Some(response)) => {
                let (close, size) = (response.close, response.body.length());
                let answer = judge(&self.shared.check, &mut self.recorder.bodies, &response, arrived);
                self.largest = self.largest.max(size);
                self.complete(at, &request, &answer, close, now);
            }
            // The rest may not fit into the socket's buffer while we sleep.
            Ok(None) => self.set_delicate(at, true),
            Err(_) => self.fail(at, Failure::Protocol),
        }
    }

    /// A request has its answer.
    #[inline]
    fn complete(&mut self, at: usize, request: &Request, answer: &Answer, close: bool, now: u64) {
        self.recorder.answered(request, answer);
        // A request that is still being sent when its answer comes cannot share the connection with the next one.
        if close || !self.connections[at].unsent.is_empty() {
            return self.close(at, now);
        }
        self.set_delicate(at, false);
        let connection = &mut self.connections[at];
        connection.reader.reset();
        connection.state = State::Idle;
        self.active -= 1;
        match self.take_due(now) {
            Some((index, due)) => {
                // Due before this connection was free, and no other was. (Due after, it waited for us, not for a connection.)
                if due < answer.arrived && self.is_open() {
                    self.recorder.queued(due);
                }
                self.assign(at, index, due);
            }
            None => self.idle.push_back(at),
        }
    }

    /// The server has ended the connection.
    #[cold]
    fn ended(&mut self, at: usize) {
        let now = sys::monotonic_ns();
        let connection = &mut self.connections[at];
        let State::Busy(request) = connection.state else { return self.close(at, now) };
        match connection.reader.end() {
            Some(response) => {
                let answer = judge(&self.shared.check, &mut self.recorder.bodies, &response, now);
                self.complete(at, &request, &answer, true, now);
            }
            None => self.fail(at, Failure::Reset),
        }
    }

    /// A connection is given up, and the request on it has failed.
    #[cold]
    pub(super) fn fail(&mut self, at: usize, failure: Failure) {
        if let Some(due) = self.connections[at].outstanding_due() {
            self.recorder.failed(due, failure);
        }
        self.close(at, sys::monotonic_ns() + if failure == Failure::Connect { RETRY } else { 0 });
    }

    /// Closes a connection; whatever was on it has been accounted for.
    #[cold]
    pub(super) fn close(&mut self, at: usize, not_before: u64) {
        self.set_delicate(at, false);
        let connection = &mut self.connections[at];
        match connection.state {
            State::Busy(_) | State::Connecting { .. } => self.active -= 1,
            State::Idle => self.idle.retain(|&other| other != at),
            State::Closed { .. } => return,
        }
        // Closing the socket takes it out of the epoll set.
        drop::<Option<OwnedFd>>(connection.socket.take());
        connection.state = State::Closed { not_before };
        connection.reader.reset();
        connection.unsent.clear();
        self.closed.push_back(at);
    }
}

/// What an answer is worth.
#[inline]
fn judge(
    check: &crate::plan::Check,
    bodies: &mut crate::bodies::Bodies,
    response: &Response<'_>,
    arrived: u64,
) -> Answer {
    let failure = if check.status.map_or(response.status >= 400, |wanted| response.status != wanted) {
        Some(Failure::Status)
    } else if check.length.is_some_and(|wanted| response.body.length() != wanted) {
        Some(Failure::Length)
    } else {
        None
    };
    let class = match &response.body {
        Body::Whole(bytes) => bodies.whole(bytes),
        Body::Pieces(hash) => bodies.hashed(hash),
    };
    Answer { arrived, status: response.status, class, failure }
}
