//! A span as every receiver hands it on, whatever the protocol: slices of the message that carried it.

use bumpalo::Bump;

use crate::broken::Broken;
use crate::ids;
use crate::otlp;
use crate::skywalking;

/// Decodes a message. What cannot be a slice of it, such as text with escapes, is put into the arena.
pub(crate) type Decode = for<'a> fn(&'a [u8], &'a Bump) -> Result<Batch<'a>, Broken>;

/// One request of a sender, decoded: nothing of it has been counted yet.
#[derive(Debug, Default)]
pub(crate) struct Batch<'a> {
    /// What the spans come from; at least one, if there are spans.
    pub(crate) sources: Vec<Source<'a>>,
    /// Spans that can be stored.
    pub(crate) spans: Vec<Span<'a>>,
    /// Spans that can never be stored.
    pub(crate) rejected: u64,
    /// Why the first of them cannot.
    pub(crate) reason: Option<&'static str>,
}

/// The process that made spans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Source<'a> {
    /// `service.name`; empty if the sender gave none.
    pub(crate) service: &'a [u8],
    /// `service.instance.id`.
    pub(crate) instance: Option<&'a [u8]>,
}

/// One span. Strings are as they came: not necessarily UTF-8.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'a> {
    /// Index in [`Batch::sources`].
    pub(crate) source: u32,
    /// Not all zeros.
    pub(crate) trace_id: [u8; 16],
    /// Not all zeros.
    pub(crate) span_id: [u8; 8],
    /// `None` for a root.
    pub(crate) parent_id: Option<[u8; 8]>,
    /// Side of the call.
    pub(crate) kind: Kind,
    /// Name of the span.
    pub(crate) operation: &'a [u8],
    /// Unix time.
    pub(crate) start_ns: u64,
    /// Negative if the sender's clock ran backwards.
    pub(crate) duration_ns: i64,
    /// How it went.
    pub(crate) status: Status,
    /// Whether another process may report a span with the same ids: the client of a call, in Zipkin's model.
    pub(crate) is_shared: bool,
    /// Bytes of the span in the message.
    pub(crate) size: u32,
    /// Still encoded.
    pub(crate) attributes: RawAttributes<'a>,
}

/// Attributes as the protocol encodes them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RawAttributes<'a> {
    /// The part of a `Span` message of OTLP that has them.
    Otlp(&'a [u8]),
    /// The part of a `SpanObject` message of SkyWalking that has them.
    Skywalking(&'a [u8]),
    /// As the store's log has them: what receivers make that cannot leave them as they came.
    Logged(&'a [u8]),
}

/// Bytes of a source's names that are kept: they are written with every span, though they come once in a message.
const MAX_SOURCE_NAME: usize = 1_024;

impl Source<'_> {
    /// Cuts names that are no names.
    pub(crate) fn bound(&mut self) {
        let head = |name: &mut &[u8]| *name = &name[..name.len().min(MAX_SOURCE_NAME)];
        head(&mut self.service);
        self.instance.iter_mut().for_each(head);
    }
}

impl Span<'_> {
    /// What tells it from the other spans of its trace: its id, unless processes share that. Then it is the id and the service, as in
    /// Zipkin's `zipkin2.internal.Trace`: a proxy that hands on the header that it got makes two servers join the span of one client.
    pub(crate) fn identity(&self, service: &[u8]) -> [u8; 8] {
        if !self.is_shared {
            return self.span_id;
        }
        ids::hash(!u64::from_be_bytes(self.span_id), service).to_be_bytes()
    }

    /// A span of which only its times are known, ns; everything else is to be filled in.
    pub(crate) fn between(start_ns: u64, end_ns: u64) -> Self {
        let duration = i128::from(end_ns) - i128::from(start_ns);
        Self::lasting(start_ns, duration.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// The same with a duration.
    pub(crate) fn lasting(start_ns: u64, duration_ns: i64) -> Self {
        Self {
            source: 0,
            trace_id: [0; 16],
            span_id: [0; 8],
            parent_id: None,
            kind: Kind::default(),
            operation: &[],
            start_ns,
            duration_ns,
            status: Status::default(),
            is_shared: false,
            size: 0,
            attributes: RawAttributes::Logged(&[]),
        }
    }
}

/// Who looks at attributes.
pub(crate) trait Visitor {
    /// Takes an attribute as it is encoded, which is not empty, if it knows what that means; most say the same as in the
    /// span before.
    #[inline]
    fn takes(&mut self, _encoded: &[u8]) -> bool {
        false
    }

    /// Takes an attribute.
    fn attribute(&mut self, encoded: &[u8], key: &[u8], value: Value<'_>);
}

impl<F: FnMut(&[u8], Value<'_>)> Visitor for F {
    #[inline]
    fn attribute(&mut self, _: &[u8], key: &[u8], value: Value<'_>) {
        self(key, value);
    }
}

impl RawAttributes<'_> {
    /// Shows every attribute, in the order of the message. What cannot be decoded is left out.
    #[inline]
    pub(crate) fn visit(&self, visitor: &mut impl Visitor) {
        match self {
            RawAttributes::Otlp(fields) => otlp::attributes::visit(fields, visitor),
            RawAttributes::Skywalking(fields) => skywalking::segment::visit(fields, visitor),
            RawAttributes::Logged(attributes) => crate::store::log::visit(attributes, visitor),
        }
    }

    /// Appends the wanted attributes as a JSON object; appends nothing and returns false if there are none.
    #[cfg(test)]
    pub(crate) fn write_json(&self, which: crate::config::Attributes, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.visit(&mut |key: &[u8], value: Value<'_>| {
            if which.wants(key) {
                crate::json::member(key, value, out.len() == start, out);
            }
        });
        if out.len() > start {
            out.push(b'}');
        }
        out.len() > start
    }
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    /// As it came: not necessarily UTF-8.
    Text(&'a [u8]),
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Real(f64),
    /// True or false.
    Truth(bool),
    /// Lists, maps, bytes and nothing, as JSON text.
    Json(&'a [u8]),
}

/// Side of a call that a span describes, as in OTLP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
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
    pub(crate) const ALL: [Self; 6] =
        [Self::Unspecified, Self::Internal, Self::Server, Self::Client, Self::Producer, Self::Consumer];
    /// Names in the store, by discriminant.
    pub(crate) const NAMES: [&str; 6] = ["unspecified", "internal", "server", "client", "producer", "consumer"];
}

/// Outcome of a span, as in OTLP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
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
    pub(crate) const ALL: [Self; 3] = [Self::Unset, Self::Ok, Self::Error];
    /// Names in the store, by discriminant.
    pub(crate) const NAMES: [&str; 3] = ["unset", "ok", "error"];
}

/// How spans come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Protocol {
    /// OTLP over gRPC.
    OtlpGrpc,
    /// OTLP over HTTP.
    OtlpHttp,
    /// Zipkin's API, version 2.
    Zipkin,
    /// Apache SkyWalking's agent protocol, version 3.
    Skywalking,
    /// Elastic APM's intake, version 2.
    Elastic,
    /// Jaeger's collector.
    Jaeger,
}

impl Protocol {
    /// All of them, by discriminant.
    pub(crate) const ALL: [Self; 6] =
        [Self::OtlpGrpc, Self::OtlpHttp, Self::Zipkin, Self::Skywalking, Self::Elastic, Self::Jaeger];
    /// Names in the store, the summary and the configuration, by discriminant.
    pub(crate) const NAMES: [&str; 6] = ["otlp_grpc", "otlp_http", "zipkin", "skywalking", "elastic", "jaeger"];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
