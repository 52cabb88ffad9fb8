//! The load of a study: where requests go, when they are due, what they hold, and what a good answer looks like.
//!
//! A simple load is a `url` and a `rate`. Everything else is optional, and what contradicts itself is refused by
//! [`crate::check`]. No file is read here: a recorded load or a `.proto` is only named.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unladen_journal::units::{Ratio, Time};

use super::script::Script;

/// The requests to the service, and their pace: at a `rate` (open loop), or, without one, as fast as its `connections`
/// get their answers (closed loop). `stages`, `users`, `burst` and `replay` pace it in other ways; `requests` and `driver`
/// make it a fixed amount of work, whose time is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// URL to send requests to: `http://127.0.0.1:${port.app}/vets`, `https://…`, or `unix:/path/of/socket:/path`. Required
    /// unless there is a `driver`.
    #[serde(default)]
    pub url: String,
    /// Allow a host that isn't loopback. Every load stays on this machine unless this is `true`.
    #[serde(default)]
    pub allow_remote: bool,
    /// Requests per second, open loop: each is sent when due, however slow the service is. Absent: closed loop, every
    /// connection sends its next request when the last is answered.
    #[serde(default)]
    pub rate: Option<f64>,
    /// How the requests of `rate` or `stages` arrive: evenly, or at random (Poisson), like those of many users.
    #[serde(default)]
    pub arrival: Arrival,
    /// Linear ramps of the rate from `rate` (or 0) to each value in turn, starting in the warm-up; the last value stays.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Closed loop of users that pause between their iterations.
    #[serde(default)]
    pub users: Option<Users>,
    /// Send this many requests as fast as possible, one at a time per connection. The window ends with the last answer.
    #[serde(default)]
    pub burst: Option<u64>,
    /// File with recorded gaps between requests, one number of microseconds per line, repeated; relative to the study file.
    #[serde(default)]
    pub replay: Option<String>,
    /// Fixed work: this many requests (iterations of a sequence) after the warm-up. The window ends with the last answer; its
    /// length is the metric `completion_time`.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Fixed work that a program of your own does: a service with the role `driver`, started when everything else is ready. The
    /// window is from its start to its end with exit code 0.
    #[serde(default)]
    pub driver: Option<String>,
    /// Units of work that the driver does (messages, transactions); costs are per unit.
    #[serde(default)]
    pub work: Option<u64>,
    /// How often the driver runs before the window, not measured.
    #[serde(default)]
    pub rehearsals: u32,
    /// Longest time that fixed work may take. A run that takes longer does not count.
    #[serde(default = "defaults::at_most")]
    pub at_most: Time,
    /// Connections to use. With `users`, each has one of its own, or with HTTP/2 a stream.
    #[serde(default = "defaults::connections")]
    pub connections: u32,
    /// HTTP version: 1 (1.1, keep-alive) or 2 (by ALPN over TLS, by prior knowledge otherwise).
    #[serde(default = "defaults::one_version")]
    pub http: u8,
    /// HTTP/2: concurrent requests per connection.
    #[serde(default = "defaults::streams")]
    pub streams: u32,
    /// Whom to trust, for `https`.
    #[serde(default)]
    pub tls: Tls,
    /// A unary gRPC call instead of the request that path, `method` and `body` say.
    #[serde(default)]
    pub grpc: Option<Grpc>,
    /// Open loop: least time between two wake-ups of the load generator; requests that fall due in between are sent together. `0s`
    /// sends each at its instant. Absent: chosen by rate, `0s` up to 5,000 a second.
    #[serde(default)]
    pub slot: Option<Time>,
    /// How many redirects to follow, within the same server. By default a redirect counts as the answer.
    #[serde(default)]
    pub redirects: u32,
    /// HTTP method.
    #[serde(default = "defaults::method")]
    pub method: String,
    /// Request headers.
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    /// Request body.
    #[serde(default)]
    pub body: Option<String>,
    /// Several requests instead of the one that `url`, `method` and `body` say: a mix or a sequence.
    #[serde(default)]
    pub script: Option<Script>,
    /// Request timeout.
    #[serde(default = "defaults::request_timeout")]
    pub timeout: Time,
    /// Connection timeout, including TLS. Absent: `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Time>,
    /// Which trace header every request carries.
    #[serde(default)]
    pub trace: TraceHeader,
    /// What a good answer looks like.
    #[serde(default)]
    pub check: Check,
    /// A run counts only if at most this share of its requests fails. More for studies of services that are meant to fail.
    #[serde(default = "defaults::errors")]
    pub errors: Ratio,
}

impl Load {
    /// A closed loop with every default.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            allow_remote: false,
            rate: None,
            arrival: Arrival::default(),
            stages: Vec::new(),
            users: None,
            burst: None,
            replay: None,
            requests: None,
            driver: None,
            work: None,
            rehearsals: 0,
            at_most: defaults::at_most(),
            connections: defaults::connections(),
            http: defaults::one_version(),
            streams: defaults::streams(),
            tls: Tls::default(),
            grpc: None,
            slot: None,
            method: defaults::method(),
            headers: IndexMap::new(),
            body: None,
            script: None,
            redirects: 0,
            timeout: defaults::request_timeout(),
            connect_timeout: None,
            trace: TraceHeader::default(),
            check: Check::default(),
            errors: defaults::errors(),
        }
    }

    /// Whether requests are due at instants that do not depend on the service.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.users.is_none()
            && (self.rate.is_some() || !self.stages.is_empty() || self.burst.is_some() || self.replay.is_some())
    }

    /// Whether every connection sends its next request as soon as the last is answered, so that all are always busy.
    #[must_use]
    pub fn is_saturating(&self) -> bool {
        !self.is_open() && self.users.is_none() && self.driver.is_none()
    }

    /// Whether the window ends when the work is done, not at a fixed time.
    #[must_use]
    pub fn is_fixed_work(&self) -> bool {
        self.requests.is_some() || self.driver.is_some() || self.burst.is_some()
    }

    /// Connections that are opened: the load's; with users one for each, or for as many as it has streams.
    #[must_use]
    pub fn max_connections(&self) -> u32 {
        let streams = if self.http == 2 || self.grpc.is_some() { self.streams } else { 1 };
        self.users.as_ref().map_or(self.connections, |users| (users.most() / f64::from(streams)).ceil() as u32)
    }
}

/// How requests are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Evenly.
    #[default]
    Constant,
    /// Independently of each other (a Poisson process), from the study's seed: all variants get the same instants.
    Poisson,
}

/// A part of a load in which the rate, or the number of users, changes linearly to a new value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// How long it takes; `0s` is a jump.
    pub duration: Time,
    /// Value at its end: requests per second, or users.
    pub target: f64,
}

/// Users, each with a connection of its own, that pause after every iteration (one request, or the script's sequence).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Users {
    /// Users at the start.
    pub count: f64,
    /// Linear ramps of their number, starting in the warm-up; the last value stays.
    pub stages: Vec<Stage>,
    /// How long a user pauses after an iteration.
    pub think: Time,
    /// Maximum of iterations per second of all users together, like JMeter's constant throughput timer. Missed turns are not
    /// caught up.
    pub rate: Option<f64>,
}

impl Users {
    /// Most users at a time.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.stages.iter().map(|stage| stage.target).fold(self.count, f64::max)
    }
}

impl Default for Users {
    fn default() -> Self {
        Self { count: 0.0, stages: Vec::new(), think: Time::seconds(1.0), rate: None }
    }
}

/// Whom to trust, for `https`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// File with the certificates to trust, PEM; relative to the study file. Absent: the system's.
    pub ca: Option<String>,
    /// Do not verify certificates. On this machine only.
    pub insecure: bool,
    /// Name to ask for and to find in the certificate. Absent: the URL's host.
    pub server_name: Option<String>,
    /// Client certificate, PEM file, with its chain.
    pub client_certificate: Option<String>,
    /// Key of the client certificate, PEM file. Absent: the certificate's file.
    pub client_key: Option<String>,
}

/// A unary gRPC call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grpc {
    /// `package.Service/Method`.
    pub method: String,
    /// The message, as protobuf's JSON form has it.
    #[serde(default = "defaults::message")]
    pub message: serde_json::Value,
    /// `.proto` files that describe it; relative to the study file. Absent: the server is asked (reflection).
    #[serde(default)]
    pub protos: Vec<String>,
    /// Folders in which imports are looked for. Absent: those of the files.
    #[serde(default)]
    pub includes: Vec<String>,
    /// File with a descriptor set, as `protoc --descriptor_set_out --include_imports` writes it.
    #[serde(default)]
    pub descriptors: Option<String>,
    /// Status of a good answer, by name (`NOT_FOUND`) or as a number. Absent: OK.
    #[serde(default)]
    pub status: Option<String>,
}

/// Which trace header the load generator sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceHeader {
    /// W3C Trace Context `traceparent`.
    #[default]
    W3c,
    /// Zipkin's single header `b3`.
    B3,
    /// SkyWalking's `sw8`.
    Sw8,
    /// Sentry's `sentry-trace`.
    Sentry,
    /// `X-Amzn-Trace-Id` of AWS X-Ray.
    Xray,
    /// Pinpoint's `Pinpoint-TraceID`, and what belongs to it.
    Pinpoint,
    /// None: spans cannot be tied to their requests. Where `spans_per_request` is declared, the ledger is kept by counts.
    None,
}

/// What a good answer looks like. Bodies are compared between the variants in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Check {
    /// Status code wanted. Absent: any below 400.
    pub status: Option<u16>,
    /// Exact length of the body in bytes.
    pub length: Option<u64>,
}

/// Defaults that `serde` asks for by path.
mod defaults {
    use unladen_journal::units::{Ratio, Time};

    pub(super) fn errors() -> Ratio {
        Ratio(0.01)
    }
    pub(super) fn at_most() -> Time {
        Time::seconds(600.0)
    }
    pub(super) fn connections() -> u32 {
        16
    }
    pub(super) fn one_version() -> u8 {
        1
    }
    pub(super) fn streams() -> u32 {
        1
    }
    pub(super) fn message() -> serde_json::Value {
        serde_json::json!({})
    }
    pub(super) fn method() -> String {
        "GET".to_owned()
    }
    pub(super) fn request_timeout() -> Time {
        Time::seconds(10.0)
    }
}
