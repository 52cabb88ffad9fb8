//! The TLS part of a connection.

use std::io::Write;

use rustls::ClientConnection;

/// The TLS part of a connection.
#[derive(Debug)]
pub(super) struct Secure {
    pub(super) session: ClientConnection,
    /// Sealed bytes on their way to the socket.
    sealed: Vec<u8>,
}

impl Secure {
    /// Before the handshake.
    pub(super) fn new(session: ClientConnection) -> Self {
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
