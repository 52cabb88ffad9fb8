//! Why a load could not run at all. What goes wrong with single requests is counted, not returned: see [`crate::outcome`].

use std::io;
use std::path::PathBuf;

/// Why a load could not run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The URL cannot be used.
    #[error(
        "cannot use the url {url:?}: {reason}. Write it as http://host:port/path, https://host:port/path or unix:/path/of/socket:/path"
    )]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A number of the plan makes no sense.
    #[error("{field} is {value}: {remedy}")]
    Plan {
        /// Name of the field.
        field: &'static str,
        /// As given.
        value: String,
        /// What to write instead.
        remedy: &'static str,
    },
    /// A header cannot be sent.
    #[error("the header {name:?} cannot be sent: {reason}")]
    Header {
        /// Name, as given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The host's name has no address.
    #[error("cannot find an address for {host:?}: {source}. Check the url")]
    Resolve {
        /// Host and port.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The network namespace cannot be used.
    #[error(
        "cannot enter the network namespace {path}: {source}. Check the path, and that this process has CAP_SYS_ADMIN",
        path = .path.display()
    )]
    Network {
        /// File that stands for it.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing accepts connections at the address.
    #[error("cannot connect to {address}: {source}. Is the service running and listening there?")]
    Connect {
        /// Address and port.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// This build cannot.
    #[error("this unladen was built without {what}. Install a released one, or build it with `make build`")]
    LeftOut {
        /// What it lacks.
        what: &'static str,
    },
    /// A gRPC call cannot be made ready.
    #[error("cannot prepare the gRPC call: {message}")]
    Grpc {
        /// What is wrong, and what to do.
        message: String,
    },
    /// TLS cannot be set up.
    #[error("cannot set TLS up: {message}")]
    Tls {
        /// What is wrong, and what to do.
        message: String,
    },
    /// What listens at the address does not speak the protocol.
    #[error("protocol handshake with {address} failed: {message}. Check the protocol and port")]
    Handshake {
        /// Address and port.
        address: String,
        /// What it did instead.
        message: String,
    },
    /// The instant of the start has passed.
    #[error("the start time passed {late_ms} ms ago. Set a later start: connecting takes time")]
    StartPassed {
        /// Milliseconds.
        late_ms: u64,
    },
    /// The system refused something that the generator needs.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the plan cannot be read.
    #[error("cannot read {path}: {message}", path = .path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The histograms could not be written.
    #[error("cannot write {path}: {message}. Check that the folder exists and has room", path = .path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// What went wrong.
        message: String,
    },
    /// One of the processes that share a load.
    #[error("{message}")]
    Parts {
        /// What went wrong, and what to do.
        message: String,
    },
    /// A thread of the generator ended by itself.
    #[error("a thread of the load generator failed unexpectedly; please report this with the plan that was run")]
    Thread,
}

impl LoadError {
    /// Shorthand for `map_err`: what was tried when the system refused.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}
