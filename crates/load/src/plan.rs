//! What to send, how often and for how long: the input of the load generator.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One load: read as JSON by the generator process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Where requests go: `http://host:port/path`, `https://…`, or `unix:/path/of/socket:/path`.
    pub url: String,
    /// HTTP method.
    pub method: String,
    /// Request headers. `Host`, `Content-Length` and the trace header are added unless given.
    pub headers: Vec<(String, String)>,
    /// Request body.
    pub body: Option<String>,
    /// When requests are due.
    pub pacing: Pacing,
    /// Connections to use.
    pub connections: u32,
    /// Instant at which the warm-up starts, `CLOCK_MONOTONIC` nanoseconds; `None`: as soon as connected.
    pub start_at_ns: Option<u64>,
    /// Seconds of load before the window.
    pub warmup_s: f64,
    /// Seconds that are measured. A request belongs to the window if it was *due* in it.
    pub window_s: f64,
    /// Seconds after which a request without an answer is an error, from the instant it was sent. Also how long the
    /// generator waits for stragglers after the window.
    pub timeout_s: f64,
    /// Trace headers to set, if any.
    pub trace: Option<Trace>,
    /// What a good answer looks like.
    pub check: Check,
    /// Folder for `latency.hdr` (see [`crate::histogram`]); `None`: nothing is written.
    pub out: Option<PathBuf>,
    /// Cores to run on, one thread pinned to each; empty: one thread wherever the system puts it.
    #[serde(default)]
    pub cores: Vec<u32>,
    /// Open loop: least microseconds between two wake-ups of a thread; requests that fall due in between are sent together.
    /// 0 sends each at its instant; `None` chooses by rate (0 up to 5,000 a second, 100 µs from 20,000).
    #[serde(default)]
    pub slot_us: Option<f64>,
    /// What to speak.
    #[serde(default)]
    pub protocol: Protocol,
    /// HTTP/2: requests at once per connection. The server may allow fewer.
    #[serde(default = "one")]
    pub streams: u32,
    /// For `https`.
    #[serde(default)]
    pub tls: Tls,
    /// A unary gRPC call instead of the request that the URL's path, `method` and `body` say. Implies HTTP/2.
    #[serde(default)]
    pub grpc: Option<Grpc>,
}

/// A unary gRPC call. Where the descriptor comes from: `.proto` files, a descriptor set, or else the server (reflection).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grpc {
    /// `package.Service/Method`.
    pub method: String,
    /// The message, in protobuf's JSON form.
    #[serde(default)]
    pub message: serde_json::Value,
    /// `.proto` files.
    #[serde(default)]
    pub protos: Vec<PathBuf>,
    /// Folders in which imports are looked for; empty: those of the files.
    #[serde(default)]
    pub includes: Vec<PathBuf>,
    /// File with a `FileDescriptorSet`, as `protoc --descriptor_set_out --include_imports` writes it.
    #[serde(default)]
    pub descriptors: Option<PathBuf>,
}

/// Whom to trust, for `https`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// File with the certificates to trust, PEM; `None`: the system's.
    pub ca: Option<PathBuf>,
    /// Trust any certificate: for test servers that have signed their own.
    pub insecure: bool,
    /// Name to ask for (SNI) and to find in the certificate; `None`: the URL's host.
    pub server_name: Option<String>,
}

/// For serde.
fn one() -> u32 {
    1
}

/// Versions of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP/1.1 with connections that are kept.
    #[default]
    Http1,
    /// HTTP/2, with prior knowledge where there is no TLS.
    Http2,
}

impl Plan {
    /// A plan with defaults: `GET url`, no headers, a closed loop over 16 connections, 2 s of warm-up, a window of 5 s,
    /// 10 s of patience, no trace headers, nothing written. For callers that set only what they mean.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: None,
            pacing: Pacing::Closed,
            connections: 16,
            start_at_ns: None,
            warmup_s: 2.0,
            window_s: 5.0,
            timeout_s: 10.0,
            trace: None,
            check: Check::default(),
            out: None,
            cores: Vec::new(),
            slot_us: None,
            protocol: Protocol::Http1,
            streams: 1,
            tls: Tls::default(),
            grpc: None,
        }
    }
}

/// When requests are due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pacing {
    /// Open loop: evenly spaced, sent when due whatever the service does.
    Constant {
        /// Requests per second.
        rate: f64,
    },
    /// Closed loop: every connection sends its next request when the last is answered.
    Closed,
}

/// The trace header of every request; ids are made so that request and run are recognised from them (see [`crate::trace`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Which header.
    pub header: TraceHeader,
    /// High 64 bits of every trace id of the run.
    pub tag: u64,
    /// Key that scrambles the request's index into the low 64 bits.
    pub key: u64,
    /// Share of requests that carry the sampled flag, 0 to 1.
    pub sampled: f64,
}

/// Kinds of trace headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceHeader {
    /// W3C Trace Context `traceparent`, <https://www.w3.org/TR/trace-context/>.
    W3c,
}

/// What a good answer looks like.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Status wanted; `None`: any below 400.
    pub status: Option<u16>,
    /// Exact body length in bytes, if it matters.
    pub length: Option<u64>,
}
