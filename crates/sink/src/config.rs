//! What the sink listens on and where it writes: the input of the sink process.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Read as JSON by the sink process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// OTLP over gRPC; port 0 takes a free one.
    pub otlp_grpc: Option<SocketAddr>,
    /// OTLP over HTTP with protobuf.
    pub otlp_http: Option<SocketAddr>,
    /// Folder for `summary.json` and `spans/*.parquet`; made if it does not exist.
    pub out: PathBuf,
    /// How the load generator made its trace ids; `None`: spans are counted but not tied to requests.
    pub requests: Option<Requests>,
    /// Which attributes are stored.
    pub attributes: Attributes,
    /// Largest message in bytes, after decompression.
    pub max_message: usize,
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

impl Default for Config {
    fn default() -> Self {
        Self {
            otlp_grpc: None,
            otlp_http: None,
            out: PathBuf::new(),
            requests: None,
            attributes: Attributes::default(),
            max_message: 16 << 20,
        }
    }
}
