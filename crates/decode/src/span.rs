//! A span as every receiver hands it on, whatever the protocol: slices of the message that carried it.

use bumpalo::Bump;
use serde::{Deserialize, Serialize};

use crate::attributes::RawAttributes;
use crate::broken::Broken;
use crate::ids;
use crate::loss::LossCount;

/// Decodes a message. What cannot be a slice of it, such as text with escapes, is put into the arena.
pub type Decode = for<'a> fn(&'a [u8], &'a Bump) -> Result<Batch<'a>, Broken>;

/// Spans of one message that are taken: many times what any agent sends at once. A span may take two bytes in a message
/// and hundreds in memory, so the size of a message alone is no bound.
pub const MAX_SPANS: usize = 65_536;
pub(crate) const TOO_MANY: &str = "a message has more than 65536 spans; send smaller batches";
/// Bytes of a span that is taken, however large messages may be. Its attributes may take six times as much in memory, in
/// one piece.
pub const MAX_SPAN: usize = 16 << 20;
pub(crate) const TOO_LARGE: &str = "a span takes more than 16 MiB";

/// One request of a sender, decoded: nothing of it has been counted yet.
#[derive(Debug, Default)]
pub struct Batch<'a> {
    /// What the spans come from; at least one, if there are spans.
    pub sources: Vec<Source<'a>>,
    /// Spans that can be stored.
    pub spans: Vec<Span<'a>>,
    /// Spans that can never be stored.
    pub rejected: u64,
    /// Why the first of them cannot.
    pub reason: Option<&'static str>,
    /// What the sender says in it of spans that it lost itself.
    pub losses: Vec<LossCount<'a>>,
}

impl<'a> Batch<'a> {
    /// Adds a span within the bounds; whether it was.
    #[inline]
    pub fn push(&mut self, span: Span<'a>) -> bool {
        if self.spans.len() == MAX_SPANS {
            self.reject(TOO_MANY);
        } else if span.size as usize > MAX_SPAN {
            self.reject(TOO_LARGE);
        } else {
            self.spans.push(span);
            return true;
        }
        false
    }

    /// Counts a span that can never be stored.
    #[cold]
    pub fn reject(&mut self, reason: &'static str) {
        self.rejected += 1;
        self.reason.get_or_insert(reason);
    }
}

/// The process that made spans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Source<'a> {
    /// `service.name`; empty if the sender gave none.
    pub service: &'a [u8],
    /// `service.instance.id`.
    pub instance: Option<&'a [u8]>,
}

/// One span. Strings are as they came: not necessarily UTF-8. An id of zeros is none, and such a span is not stored.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Span<'a> {
    /// Index in [`Batch::sources`].
    pub source: u32,
    /// Which request it belongs to.
    pub trace_id: [u8; 16],
    /// Its own.
    pub span_id: [u8; 8],
    /// `None` for a root.
    pub parent_id: Option<[u8; 8]>,
    /// Side of the call.
    pub kind: Kind,
    /// Name of the span.
    pub operation: &'a [u8],
    /// Unix time.
    pub start_ns: u64,
    /// Negative if the sender's clock ran backwards.
    pub duration_ns: i64,
    /// How it went.
    pub status: Status,
    /// Whether another process may report a span with the same ids: the client of a call, in Zipkin's model.
    pub is_shared: bool,
    /// Bytes of the span in the message, with those of texts that it shares with others.
    pub size: u32,
    /// Still encoded.
    pub attributes: RawAttributes<'a>,
}

/// Name of a service that gives none, as OpenTelemetry's resource conventions have it.
pub const UNKNOWN_SERVICE: &str = "unknown_service";
/// Bytes of a source's names that are kept: they are written with every span, though they come once in a message.
const MAX_SOURCE_NAME: usize = 1_024;

impl Source<'_> {
    /// The service under the name that it is counted and stored by.
    #[inline]
    pub fn service(&self) -> &[u8] {
        if self.service.is_empty() { UNKNOWN_SERVICE.as_bytes() } else { self.service }
    }

    /// Cuts names that are no names.
    #[inline]
    pub fn bound(&mut self) {
        let head = |name: &mut &[u8]| *name = &name[..name.len().min(MAX_SOURCE_NAME)];
        head(&mut self.service);
        self.instance.iter_mut().for_each(head);
    }
}

impl Span<'_> {
    /// What tells it from the other spans of its trace: its id, unless processes share that. Then it is the id and the service, as in
    /// Zipkin's `zipkin2.internal.Trace`: a proxy that hands on the header that it got makes two servers join the span of one client.
    #[inline]
    pub fn identity(&self, service: &[u8]) -> [u8; 8] {
        if !self.is_shared {
            return self.span_id;
        }
        ids::hash(!u64::from_be_bytes(self.span_id), service).to_be_bytes()
    }

    /// How long it took, by its start and its end.
    #[inline]
    pub fn until(start_ns: u64, end_ns: u64) -> i64 {
        let duration = i128::from(end_ns) - i128::from(start_ns);
        duration.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// Side of a call that a span describes, as in OTLP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Not given.
    #[default]
    Unspecified,
    /// Within a process.
    Internal,
    /// Answers a call.
    Server,
    /// Makes a call.
    Client,
    /// Sends a message.
    Producer,
    /// Receives a message.
    Consumer,
}

impl Kind {
    /// All of them, by discriminant.
    pub const ALL: [Self; 6] =
        [Self::Unspecified, Self::Internal, Self::Server, Self::Client, Self::Producer, Self::Consumer];
    /// Names in the store, by discriminant.
    pub const NAMES: [&str; 6] = ["unspecified", "internal", "server", "client", "producer", "consumer"];

    /// By its number in OTLP.
    #[inline]
    pub fn of(number: u64) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or_default()
    }

    /// By its name, as protocols spell it.
    #[inline]
    pub fn named(name: &[u8]) -> Self {
        match name {
            b"internal" | b"INTERNAL" => Self::Internal,
            b"server" | b"SERVER" => Self::Server,
            b"client" | b"CLIENT" => Self::Client,
            b"producer" | b"PRODUCER" => Self::Producer,
            b"consumer" | b"CONSUMER" => Self::Consumer,
            _ => Self::Unspecified,
        }
    }
}

/// Outcome of a span, as in OTLP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Not given.
    #[default]
    Unset,
    /// Declared good.
    Ok,
    /// Failed.
    Error,
}

impl Status {
    /// All of them, by discriminant.
    pub const ALL: [Self; 3] = [Self::Unset, Self::Ok, Self::Error];
    /// Names in the store, by discriminant.
    pub const NAMES: [&str; 3] = ["unset", "ok", "error"];

    /// By its number in OTLP.
    #[inline]
    pub fn of(number: u64) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or_default()
    }
}

/// How spans come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Protocol {
    /// OTLP over gRPC.
    OtlpGrpc,
    /// OTLP over HTTP, as protobuf or JSON.
    OtlpHttp,
    /// Zipkin's API, version 2: `POST /api/v2/spans`, as JSON or protobuf.
    Zipkin,
    /// Apache SkyWalking's agent protocol, version 3: gRPC, and `POST /v3/segments` and `/v3/segment`, on one port.
    Skywalking,
    /// Elastic APM's intake, version 2: `POST /intake/v2/events`.
    Elastic,
    /// Jaeger's collector: `POST /api/traces` (Thrift) and gRPC, on one port.
    Jaeger,
    /// Sentry's envelopes: `POST /api/PROJECT/envelope/`.
    Sentry,
    /// Azure Application Insights: `POST /v2.1/track`.
    Azure,
    /// Datadog's trace agent: `/info`, `/v0.3/traces` to `/v1.0/traces`, and DogStatsD over UDP on the port of the same number.
    Datadog,
    /// AWS X-Ray's daemon: segments over UDP; `POST /GetSamplingRules` and `/SamplingTargets` on the port of the same number of TCP.
    Xray,
    /// New Relic's collector: `POST /agent_listener/invoke_raw_method`, with TLS or without; and Infinite Tracing over gRPC.
    Newrelic,
    /// Pinpoint's collector: gRPC, all of its services on one port.
    Pinpoint,
    /// Instana's host agent: `POST /com.instana.plugin.LANGUAGE/traces.PID`.
    Instana,
}

impl Protocol {
    /// All of them, by discriminant.
    pub const ALL: [Self; 13] = [
        Self::OtlpGrpc,
        Self::OtlpHttp,
        Self::Zipkin,
        Self::Skywalking,
        Self::Elastic,
        Self::Jaeger,
        Self::Sentry,
        Self::Azure,
        Self::Datadog,
        Self::Xray,
        Self::Newrelic,
        Self::Pinpoint,
        Self::Instana,
    ];
    /// Names in the store, the summary and the configuration, by discriminant.
    pub const NAMES: [&str; 13] = [
        "otlp_grpc",
        "otlp_http",
        "zipkin",
        "skywalking",
        "elastic",
        "jaeger",
        "sentry",
        "azure",
        "datadog",
        "xray",
        "newrelic",
        "pinpoint",
        "instana",
    ];

    /// Its name.
    #[inline]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
