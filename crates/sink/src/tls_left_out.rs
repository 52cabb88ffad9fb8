//! What stands in for TLS in an unladen that was built without it.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::SinkError;

/// Never made.
#[derive(Clone)]
pub(crate) enum Tls {}

impl Tls {
    /// There is none.
    pub(crate) fn new(_path: &Path, _address: IpAddr) -> Result<Self, SinkError> {
        Err(SinkError::Certificate("this unladen was built without the feature `tls`".to_owned()))
    }

    /// Never called.
    #[expect(clippy::unused_async, reason = "as with TLS")]
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, _stream: S) -> io::Result<S> {
        match *self {}
    }
}
