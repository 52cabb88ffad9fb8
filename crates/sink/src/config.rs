//! What the sink listens on and where it writes: the input of the sink process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
pub use unladen_decode::span::Protocol;
use unladen_ledger::faults::Faults;

/// Read as JSON by the sink process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where it listens for which protocol; port 0 takes a free one. New Relic's agents come with TLS, by the certificate authority in
    /// `out` ([`crate::CA_FILE`]).
    pub listen: BTreeMap<Protocol, SocketAddr>,
    /// `/metrics` for Prometheus and `/healthz`, over HTTP.
    pub admin: Option<SocketAddr>,
    /// Folder for `summary.json` and `spans/*.parquet`; made if it does not exist.
    pub out: PathBuf,
    /// How the load generator made its trace ids; `None`: spans are counted but not tied to requests.
    pub requests: Option<Requests>,
    /// Which attributes are stored.
    pub attributes: Attributes,
    /// Largest message in bytes, after decompression.
    pub max_message: usize,
    /// How long a sender may be silent in the middle of a body, ms. Then its request is refused, so that what came of it
    /// does not take memory for ever. Elastic's agents pause for ten seconds.
    pub silence_ms: u64,
    /// When spans become durable.
    pub sync: Sync,
    /// Whether spans are stored at all; if not, they are only counted.
    pub store: bool,
    /// At most so many spans are stored per second, to see what senders do when the store is slow.
    pub write_rate: Option<u64>,
    /// For how long that holds, from the start of the sink, ms; `None`: always.
    pub write_rate_ms: Option<u64>,
    /// What goes wrong on purpose.
    pub faults: Option<Faults>,
    /// Whether a whole summary is reported every second ([`unladen_ledger::summary::Event::Live`]), for somebody who watches.
    pub live: bool,
    /// Connections at once; further ones are closed.
    pub max_connections: usize,
}

/// When spans become durable: whether an acknowledged span survives a crash of the machine, not just of the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// Before they are acknowledged.
    #[default]
    Always,
    /// About every second.
    Interval,
    /// At the end of each file.
    End,
}

/// How trace ids hold the index of the request: see [`crate::requests`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// High 64 bits of every trace id of the run.
    pub tag: u64,
    /// Key that scrambles the request's index into the low 64 bits.
    pub key: u64,
}

/// Which attributes of a span are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attributes {
    /// None.
    None,
    /// Those that name the operation and its outcome: HTTP method, route and status, RPC service and method, ….
    #[default]
    Few,
    /// All of them.
    All,
}

impl Attributes {
    /// Whether an attribute is stored.
    pub(crate) fn wants(self, key: &[u8]) -> bool {
        match self {
            Self::None => false,
            Self::Few => is_telling(key),
            Self::All => true,
        }
    }
}

/// Attributes that name the operation or its outcome, by OpenTelemetry's semantic conventions, old and new; and Datadog's that say so.
fn is_telling(key: &[u8]) -> bool {
    matches!(
        key,
        b"http.request.method"
            | b"http.method"
            | b"http.route"
            | b"http.response.status_code"
            | b"http.status_code"
            | b"http.target"
            | b"url.path"
            | b"rpc.system"
            | b"rpc.system.name"
            | b"rpc.service"
            | b"rpc.method"
            | b"rpc.grpc.status_code"
            | b"rpc.response.status_code"
            | b"db.system"
            | b"db.system.name"
            | b"db.operation"
            | b"db.operation.name"
            | b"db.collection.name"
            | b"messaging.system"
            | b"messaging.operation"
            | b"messaging.operation.type"
            | b"messaging.destination.name"
            | b"server.address"
            | b"peer.service"
            | b"error.type"
            | b"operation.name"
            | b"_sampling_priority_v1"
    )
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: BTreeMap::new(),
            admin: None,
            out: PathBuf::new(),
            requests: None,
            attributes: Attributes::default(),
            max_message: 16 << 20,
            silence_ms: 30_000,
            sync: Sync::default(),
            store: true,
            write_rate: None,
            write_rate_ms: None,
            faults: None,
            live: false,
            max_connections: 1_024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_attributes_are_those_that_tell_what_was_called() {
        let keys = ["thread.id", "http.route", "http.response.status_code", "_sampling_priority_v1", "span.type"];
        let wanted = |which: Attributes| keys.map(|key| which.wants(key.as_bytes()));
        assert_eq!(wanted(Attributes::None), [false; 5]);
        assert_eq!(wanted(Attributes::Few), [false, true, true, true, false]);
        assert_eq!(wanted(Attributes::All), [true; 5]);
    }
}
