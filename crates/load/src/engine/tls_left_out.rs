//! What takes the place of TLS on a connection in a build without it.

use super::Engine;

/// The TLS part of a connection: none ever has one in this build.
#[derive(Debug)]
pub(super) enum Secure {}

impl Secure {
    /// Seals bytes.
    pub(super) fn seal(&mut self, _bytes: &[u8]) -> &[u8] {
        match *self {}
    }
}

impl Engine<'_> {
    /// Begins the handshake: no plan that has been made ready needs one.
    pub(super) fn greet_tls(&mut self, _at: usize) {
        if let Some(tls) = &self.shared.tls {
            match *tls {}
        }
    }

    /// Takes in sealed bytes.
    pub(super) fn open_tls(&mut self, at: usize, _taken: usize, _stamp: Option<u64>, _now: u64) {
        if let Some(secure) = &self.connections[at].secure {
            match **secure {}
        }
    }
}
