//! What to send, how often and for how long: the input of the load generator.

mod script;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use unladen_pace::Pacing;

pub use script::{Capture, Check, NamedTest, Order, Request, Source, Test, Until, Value};

use crate::pace::Span;

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
    /// Seconds after which a connection that does not stand is given up, TLS and settings included; `None`: `timeout_s`.
    #[serde(default)]
    pub connect_timeout_s: Option<f64>,
    /// Trace headers to set, if any.
    pub trace: Option<Trace>,
    /// What a good answer looks like.
    pub check: Check,
    /// Folder for `latency.hdr` (see [`crate::histogram`]) and, for a shard, `outcome.json` (see [`crate::merge`]); `None`:
    /// nothing is written.
    pub out: Option<PathBuf>,
    /// Cores to run on, one thread pinned to each; empty: one thread wherever the system puts it.
    #[serde(default)]
    pub cores: Vec<u32>,
    /// Open loop: microseconds that a request waits at most for later ones, to share a wake-up with them.
    /// 0 sends each at its instant; `None` chooses by rate, see [`crate::pace::Schedule::slot_ns`].
    #[serde(default)]
    pub slot_us: Option<f64>,
    /// Open loop: never sleep. A thread then takes its whole core and sends within a microsecond or two of the due time.
    #[serde(default)]
    pub spin: bool,
    /// Iterations (requests, unless there is a sequence) at most, warm-up included. The load ends with the answer to the last.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Several requests instead of the one that `url`, `method` and `body` say; `headers` go with all of them. Their texts
    /// may hold `{{name}}`, see [`Plan::values`].
    #[serde(default)]
    pub requests: Vec<Request>,
    /// Whether `requests` are alternatives or steps.
    #[serde(default)]
    pub order: Order,
    /// What stands for `{{name}}` in paths, header values and bodies; captures of earlier steps may be used too. Every value
    /// is a function of seed, name and iteration: it is the same in all steps of an iteration, and in every repetition of
    /// the load.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// Seed of the values and of the choice among alternatives.
    #[serde(default)]
    pub seed: u64,
    /// This process's part, if several share the load.
    #[serde(default)]
    pub shard: Option<Shard>,
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
    /// Redirects (301, 302, 303, 307, 308) that are followed at most, one after the other. They are followed on the connection
    /// that they came on, as requests of their own; one that leads to another server, and one too many, is an error
    /// (`redirect`). 0: they are answers like others. An answer with the very status that [`Check::status`] wants is not
    /// followed.
    #[serde(default)]
    pub redirects: u32,
    /// Network namespace in which the service listens, as a file: `/run/netns/NAME`, `/proc/PID/ns/net`, `/proc/PID/fd/N`. `None`:
    /// that of the process. To enter another one takes the capability `CAP_SYS_ADMIN`.
    #[serde(default)]
    pub network: Option<PathBuf>,
    /// Where the service is, instead of what its URL's host is found to be: its replicas, among which the connections are dealt round.
    /// Empty: the host is looked up.
    #[serde(default)]
    pub replicas: Vec<Replica>,
}

/// Where one of the replicas of a service is; all listen at the URL's port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replica {
    /// Its address.
    pub address: IpAddr,
    /// Network namespace in which it is reached there, as [`Plan::network`].
    #[serde(default)]
    pub network: Option<PathBuf>,
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
    /// Status that a good answer has, by name (`NOT_FOUND`) or as a number; `None`: OK.
    #[serde(default)]
    pub status: Option<String>,
}

/// Whom to trust and who to be, for `https`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// File with the certificates to trust, PEM; `None`: the system's.
    pub ca: Option<PathBuf>,
    /// Trust any certificate: for test servers that have signed their own.
    pub insecure: bool,
    /// Name to ask for (SNI) and to find in the certificate; `None`: the URL's host.
    pub server_name: Option<String>,
    /// File with the certificate to show to a server that asks for one, PEM, with those that lead to its authority.
    pub client_certificate: Option<PathBuf>,
    /// File with its key, PEM; `None`: it is in the file of the certificate.
    pub client_key: Option<PathBuf>,
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
    /// Its parts on the clock if it starts at `start`.
    pub(crate) fn span(&self, start: u64) -> Span {
        Span::of(self.warmup_s, self.window_s, start)
    }

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
            connect_timeout_s: None,
            trace: None,
            check: Check::default(),
            out: None,
            cores: Vec::new(),
            slot_us: None,
            spin: false,
            limit: None,
            requests: Vec::new(),
            order: Order::Weighted,
            values: BTreeMap::new(),
            seed: 0,
            shard: None,
            protocol: Protocol::Http1,
            streams: 1,
            tls: Tls::default(),
            grpc: None,
            redirects: 0,
            network: None,
            replicas: Vec::new(),
        }
    }
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
    /// Zipkin's single header `b3`, <https://github.com/openzipkin/b3-propagation>, with the same 128-bit trace id.
    B3,
    /// SkyWalking's `sw8`, <https://skywalking.apache.org/docs/main/latest/en/api/x-process-propagation-headers-v3/>. Its trace
    /// id is text: the 32 hex digits of the same id.
    Sw8,
    /// `sentry-trace`, <https://develop.sentry.dev/sdk/foundations/trace-propagation/>, with the same 128-bit trace id.
    Sentry,
    /// `X-Amzn-Trace-Id`, <https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader>, with
    /// the same 128-bit trace id: its first 32 bits stand where X-Ray has the time, which its SDKs do not look at.
    Xray,
    /// `Pinpoint-TraceID` and the headers beside it (`Header.java` of <https://github.com/pinpoint-apm/pinpoint>). A trace id is an agent's
    /// id and two numbers: `unladen`, and the halves of the same 128-bit trace id. Either all requests are sampled or none.
    Pinpoint,
}

/// This process's part of a load that several processes share: their parts together are the whole, and no request is sent
/// twice. Connections, users and limits are numbers of the whole load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Number of the part, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}
