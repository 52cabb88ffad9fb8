//! TLS on a connection: what it says is sealed before it is sent, what comes is opened before the protocol sees it.

use std::io::{Read, Write};

use rustls::ClientConnection;

use super::Engine;
use super::connection::{Phase, State};
use super::protocol::Protocol;
use crate::request::Failure;

/// The TLS part of a connection.
#[derive(Debug)]
pub(super) struct Secure {
    session: ClientConnection,
    /// Sealed bytes on their way to the socket.
    sealed: Vec<u8>,
}

impl Secure {
    /// Before the handshake.
    fn new(session: ClientConnection) -> Self {
        Self { session, sealed: Vec::new() }
    }

    /// Seals bytes, and whatever TLS itself has to say.
    pub(super) fn seal(&mut self, bytes: &[u8]) -> &[u8] {
        self.sealed.clear();
        // Both write to memory, which does not fail.
        let _ = self.session.writer().write_all(bytes);
        while self.session.wants_write() {
            if self.session.write_tls(&mut self.sealed).is_err() {
                break;
            }
        }
        &self.sealed
    }
}

impl Engine<'_> {
    /// Sends what TLS has to say by itself.
    fn transmit_tls(&mut self, at: usize) {
        match self.connections[at].transmit(&[]) {
            Ok(_) => self.watch_rest(at),
            Err(_) => self.fail(at, Failure::Reset),
        }
    }

    /// Begins the handshake on a socket that is open.
    pub(super) fn greet_tls(&mut self, at: usize) {
        let Some(tls) = &self.shared.tls else { return };
        match ClientConnection::new(tls.config.clone(), tls.name.clone()) {
            Ok(mut session) => {
                session.set_buffer_limit(None);
                self.connections[at].secure = Some(Box::new(Secure::new(session)));
                self.transmit_tls(at);
            }
            Err(error) => {
                self.reason = Some(error.to_string());
                self.fail(at, Failure::Connect);
            }
        }
    }

    /// Takes in sealed bytes, which are at the start of the buffer for them.
    pub(super) fn open_tls(&mut self, at: usize, taken: usize, stamp: Option<u64>, now: u64) {
        let mut place = 0;
        while place < taken {
            let Some(secure) = &mut self.connections[at].secure else { return };
            let mut rest = &self.sealed[place..taken];
            let result = secure
                .session
                .read_tls(&mut rest)
                .map_err(|error| error.to_string())
                .and_then(|_| secure.session.process_new_packets().map_err(|error| error.to_string()));
            place = taken - rest.len();
            match result {
                Ok(_) => {
                    if secure.session.wants_write() {
                        self.transmit_tls(at);
                    }
                    self.hand_on(at, stamp, now);
                }
                Err(message) => return self.break_off_tls(at, message),
            }
        }
    }

    /// Ends a handshake that is over, and gives the protocol what has been opened.
    fn hand_on(&mut self, at: usize, stamp: Option<u64>, now: u64) {
        loop {
            let connection = &mut self.connections[at];
            let Some(secure) = &mut connection.secure else { return };
            if let State::Connecting { since, request, phase: Phase::Tls } = connection.state {
                if secure.session.is_handshaking() {
                    return;
                }
                let wanted = self.shared.tls.as_ref().and_then(|tls| tls.config.alpn_protocols.first());
                match secure.session.alpn_protocol() {
                    Some(agreed) if wanted.is_some_and(|wanted| agreed != wanted) => {
                        return self.break_off_tls(at, "it chose another protocol (ALPN)".to_owned());
                    }
                    None if matches!(connection.protocol, Protocol::Http2(_)) => {
                        return self.break_off_tls(at, "it did not agree to HTTP/2 (ALPN)".to_owned());
                    }
                    _ => self.on_socket_open(at, since, request, now),
                }
                continue;
            }
            let carried = connection.protocol.put_carry(&mut self.buffer);
            match secure.session.reader().read(&mut self.buffer[carried..]) {
                Ok(0) => return self.ended(at, now),
                Ok(opened) => self.take_in(at, carried, opened, stamp, now),
                // Nothing more for now.
                Err(_) => return,
            }
        }
    }

    /// The handshake or a record is broken.
    #[cold]
    fn break_off_tls(&mut self, at: usize, message: String) {
        self.reason = Some(message);
        // Tells the server why, if it still listens.
        let _ = self.connections[at].transmit(&[]);
        let standing = self.connections[at].state == State::Open;
        self.fail(at, if standing { Failure::Protocol } else { Failure::Connect });
    }
}
