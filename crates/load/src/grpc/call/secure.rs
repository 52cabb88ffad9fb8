//! The connection for questions, with TLS.

use std::io;
use std::net::TcpStream;

use rustls::{ClientConnection, StreamOwned};

use super::reflection::Stream;
use crate::tls::Tls;

/// Makes a connection secure; the handshake goes with what is sent first.
pub(super) fn secure(tls: &Tls, stream: TcpStream) -> io::Result<Box<dyn Stream>> {
    let session = ClientConnection::new(tls.config.clone(), tls.name.clone()).map_err(io::Error::other)?;
    Ok(Box::new(StreamOwned::new(session, stream)))
}
