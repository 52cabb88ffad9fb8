//! Why the sink cannot start or go on.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use thiserror::Error;

/// Why the sink cannot start or go on; the text says what to do.
#[derive(Debug, Error)]
pub enum SinkError {
    /// The configuration names no listener.
    #[error("the sink has nothing to listen on; give at least one address, such as otlp_grpc 127.0.0.1:4317")]
    NothingToListenOn,
    /// Another process listens there.
    #[error(
        "port {} for {protocol} is already in use on {}; stop the process that has it or choose another port (0 takes a free one)",
        address.port(), address.ip()
    )]
    PortInUse {
        /// Protocol of the listener.
        protocol: &'static str,
        /// Address wanted.
        address: SocketAddr,
    },
    /// Any other failure to listen.
    #[error(
        "cannot listen on {address} for {protocol}: {source}; choose an address of this machine and a port above 1023"
    )]
    Listen {
        /// Protocol of the listener.
        protocol: &'static str,
        /// Address wanted.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The folder for the results cannot be made or written.
    #[error("cannot write to {}: {source}; choose a folder that you may write to, on a disk with space", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Spans of another run are in the folder.
    #[error("{} already holds span files; choose an empty folder, so that two runs are not mixed", path.display())]
    FolderInUse {
        /// The folder of span files.
        path: PathBuf,
    },
    /// Spans could not be written; those in finished row groups are kept.
    #[error("cannot write spans to {}: {source}; free space there or choose another folder", path.display())]
    Store {
        /// The span file.
        path: PathBuf,
        /// What the system or the Parquet writer says.
        source: ParquetError,
    },
    /// The thread that writes spans has died; a fault of unladen.
    #[error("the thread that writes spans has died; please report this as a bug")]
    StoreDied,
    /// No certificate could be made for those who come with TLS.
    #[error("cannot set up TLS, which New Relic's agents need: {0}; build unladen with its default features")]
    Certificate(String),
    /// No event loop.
    #[error("cannot start the event loop: {0}; check the limit of open files (ulimit -n)")]
    Runtime(io::Error),
    /// The configuration on standard input is missing or wrong.
    #[error("cannot read the configuration from standard input: {0}; give one line of JSON")]
    Config(String),
}

impl SinkError {
    pub(crate) fn listen(protocol: &'static str, address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::PortInUse { protocol, address },
            _ => Self::Listen { protocol, address, source },
        }
    }

    pub(crate) fn folder(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::Folder { path, source }
    }
}
