//! Every way to bring spans to the sink, as a sender that does nothing but send: for what must hold whatever the protocol.
//! Spans are encoded by hand where no crate of ours has the messages; that agents speak alike is for other tests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;
use unladen_decode::wire::{put_bytes, put_number};
use unladen_sink::config::{Config, Protocol};

use crate::datadog;
use crate::support::{listening, request, with_trace};
use crate::{azure, instana, newrelic, pinpoint, sentry};

/// A protocol with one of its encodings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Way {
    OtlpGrpc,
    OtlpHttp,
    OtlpJson,
    ZipkinJson,
    ZipkinProtobuf,
    SkywalkingGrpc,
    SkywalkingHttp,
    Elastic,
    JaegerThrift,
    JaegerGrpc,
    Sentry,
    Azure,
    Datadog,
    DatadogTable,
    DatadogStreamed,
    Newrelic,
    NewrelicStreamed,
    Pinpoint,
    Instana,
}

/// Start of span 0 of every trace, ns; each further one starts a millisecond later: what every protocol can tell.
pub(crate) const START: u64 = 1_700_000_000_000_000_000;
pub(crate) const MS: u64 = 1_000_000;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    /// Acknowledged as a whole.
    Taken,
    /// To be sent again.
    Later,
}

impl Way {
    pub(crate) const ALL: [Self; 19] = [
        Self::OtlpGrpc,
        Self::OtlpHttp,
        Self::OtlpJson,
        Self::ZipkinJson,
        Self::ZipkinProtobuf,
        Self::SkywalkingGrpc,
        Self::SkywalkingHttp,
        Self::Elastic,
        Self::JaegerThrift,
        Self::JaegerGrpc,
        Self::Sentry,
        Self::Azure,
        Self::Datadog,
        Self::DatadogTable,
        Self::DatadogStreamed,
        Self::Newrelic,
        Self::NewrelicStreamed,
        Self::Pinpoint,
        Self::Instana,
    ];

    /// Listens for this way only, on a free port.
    pub(crate) fn listen(self, config: Config) -> Config {
        listening(Config { listen: BTreeMap::new(), ..config }, &[self.protocol()])
    }

    /// What it is a way of.
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::OtlpGrpc => Protocol::OtlpGrpc,
            Self::OtlpHttp | Self::OtlpJson => Protocol::OtlpHttp,
            Self::ZipkinJson | Self::ZipkinProtobuf => Protocol::Zipkin,
            Self::SkywalkingGrpc | Self::SkywalkingHttp => Protocol::Skywalking,
            Self::Elastic => Protocol::Elastic,
            Self::JaegerThrift | Self::JaegerGrpc => Protocol::Jaeger,
            Self::Sentry => Protocol::Sentry,
            Self::Azure => Protocol::Azure,
            Self::Datadog | Self::DatadogTable | Self::DatadogStreamed => Protocol::Datadog,
            Self::Newrelic | Self::NewrelicStreamed => Protocol::Newrelic,
            Self::Pinpoint => Protocol::Pinpoint,
            Self::Instana => Protocol::Instana,
        }
    }

    pub(crate) fn is_grpc(self) -> bool {
        self.is_streamed() || matches!(self, Self::OtlpGrpc | Self::JaegerGrpc)
    }

    /// Messages come in one call, as many as there are.
    pub(crate) fn is_streamed(self) -> bool {
        matches!(self, Self::SkywalkingGrpc | Self::NewrelicStreamed | Self::Pinpoint)
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::OtlpGrpc => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Self::OtlpHttp | Self::OtlpJson => "/v1/traces",
            Self::ZipkinJson | Self::ZipkinProtobuf => "/api/v2/spans",
            Self::SkywalkingGrpc => "/skywalking.v3.TraceSegmentReportService/collect",
            Self::SkywalkingHttp => "/v3/segments",
            Self::Elastic => "/intake/v2/events",
            Self::JaegerThrift => "/api/traces",
            Self::JaegerGrpc => "/jaeger.api_v2.CollectorService/PostSpans",
            Self::Sentry => sentry::PATH,
            Self::Azure => azure::PATH,
            Self::Datadog => "/v0.4/traces",
            Self::DatadogTable => "/v0.5/traces",
            Self::DatadogStreamed => "/v1.0/traces",
            Self::Newrelic => newrelic::PATH,
            Self::NewrelicStreamed => "/com.newrelic.trace.v1.IngestService/RecordSpanBatch",
            Self::Pinpoint => "/v1.Span/SendSpan",
            Self::Instana => "/com.instana.plugin.python/traces.17",
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            _ if self.is_grpc() => "application/grpc",
            Self::OtlpHttp | Self::ZipkinProtobuf => "application/x-protobuf",
            Self::OtlpJson | Self::ZipkinJson | Self::SkywalkingHttp | Self::Azure | Self::Newrelic | Self::Instana => {
                "application/json"
            }
            Self::Elastic => "application/x-ndjson",
            Self::JaegerThrift => "application/x-thrift",
            Self::Sentry => "application/x-sentry-envelope",
            _ => "application/msgpack",
        }
    }

    /// A body with `spans` spans of each trace.
    pub(crate) fn body(self, traces: &[[u8; 16]], spans: u64) -> Vec<u8> {
        let messages = |one: &dyn Fn(&[u8; 16], &mut Vec<u8>)| {
            let mut out = Vec::with_capacity(traces.len() * spans as usize * 300);
            traces.iter().for_each(|trace| one(trace, &mut out));
            out
        };
        match self {
            Self::OtlpGrpc => framed(&otlp(traces, spans)),
            Self::OtlpHttp => otlp(traces, spans),
            Self::OtlpJson => otlp_json(traces, spans).into(),
            Self::ZipkinJson => list(traces, spans, zipkin_json).into(),
            Self::ZipkinProtobuf => messages(&|trace, out| {
                (0..spans).for_each(|number| put_bytes(out, 1, &zipkin_protobuf(trace, number)));
            }),
            Self::SkywalkingGrpc => messages(&|trace, out| out.extend(framed(&segment(trace, spans)))),
            Self::SkywalkingHttp => segments_json(traces, spans).into(),
            Self::Elastic => elastic(traces, spans).into(),
            Self::JaegerThrift => jaeger_thrift(traces, spans),
            Self::Datadog => datadog::payload(traces, spans),
            Self::DatadogTable => datadog::payload_with_table(traces, spans),
            Self::DatadogStreamed => datadog::payload_streamed(traces, spans),
            Self::JaegerGrpc => {
                let mut batch = messages(&|trace, out| {
                    (0..spans).for_each(|number| put_bytes(out, 1, &jaeger_protobuf(trace, number)));
                });
                put_bytes(&mut batch, 2, &field(1, b"pets"));
                framed(&field(1, &batch))
            }
            Self::Azure => traces
                .iter()
                .flat_map(|trace| (0..spans).map(|number| azure::item(&hex(trace), number)))
                .collect::<String>()
                .trim_end()
                .into(),
            Self::Newrelic => {
                let events =
                    traces.iter().flat_map(|trace| (0..spans).map(|number| newrelic::event(&hex(trace), number)));
                newrelic::harvest(&events.collect::<Vec<_>>()).into()
            }
            Self::NewrelicStreamed => messages(&|trace, out| {
                let trace = hex(trace);
                let spans = (0..spans).flat_map(|number| field(1, &newrelic::streamed(&trace, number)));
                out.extend(framed(&spans.collect::<Vec<_>>()));
            }),
            Self::Pinpoint => messages(&|trace, out| out.extend(framed(&pinpoint::span(trace, spans)))),
            Self::Instana => list(traces, spans, instana::span).into(),
            Self::Sentry => {
                traces.iter().fold("{}".to_owned(), |out, trace| out + &sentry::item(&hex(trace), spans)).into()
            }
        }
    }
}

/// A connection to the sink.
pub(crate) struct Client {
    way: Way,
    address: SocketAddr,
    connection: Connection,
}

enum Connection {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    pub(crate) async fn connect(way: Way, address: SocketAddr) -> Result<Self, Box<dyn std::error::Error>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let io = TokioIo::new(stream);
        let connection = if way.is_grpc() {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
            tokio::spawn(connection);
            Connection::Two(sender)
        } else {
            let (sender, connection) = http1::handshake(io).await?;
            tokio::spawn(connection);
            Connection::One(sender)
        };
        Ok(Self { way, address, connection })
    }

    /// Sends one request; panics if it is refused for good.
    pub(crate) async fn send(&mut self, body: Bytes) -> Result<Answer, hyper::Error> {
        let (status, grpc, message) = self.call(&[], body).await?;
        Ok(match (status, grpc.as_deref()) {
            (200 | 202, None | Some("0")) => Answer::Taken,
            (503, _) | (200, Some("14")) => Answer::Later,
            _ => panic!("{:?}: {status} {grpc:?} {message:?}", self.way),
        })
    }

    /// Sends one request; its status, that of gRPC, and what it says.
    pub(crate) async fn call(
        &mut self,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<(u16, Option<String>, String), hyper::Error> {
        self.call_at(self.way.path(), headers, body).await
    }

    /// The same to another path.
    pub(crate) async fn call_at(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<(u16, Option<String>, String), hyper::Error> {
        let (way, address) = (self.way, self.address);
        let request = match &self.connection {
            Connection::Two(_) => Request::post(format!("http://{address}{path}")).header("te", "trailers"),
            Connection::One(_) => Request::post(path).header("host", "sink"),
        };
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.header("content-type", way.content_type()).body(Full::new(body)).expect("a request");
        let response = match &mut self.connection {
            Connection::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Connection::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        let (head, body) = response.into_parts();
        let body = body.collect().await?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        let header = |name: &str| {
            let value = head.headers.get(name).or(trailers.get(name));
            value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let message = match header("grpc-message") {
            Some(message) => message,
            None => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        };
        Ok((head.status.as_u16(), header("grpc-status"), message))
    }
}

pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A protobuf message of one field of bytes.
pub(crate) fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 4);
    put_bytes(&mut out, number, content);
    out
}

fn otlp(traces: &[[u8; 16]], spans: u64) -> Vec<u8> {
    let all = traces.iter().flat_map(|trace| {
        (0..spans).map(|number| {
            let start = START + number * MS;
            let span = with_trace(trace.to_vec(), number);
            opentelemetry_proto::tonic::trace::v1::Span {
                start_time_unix_nano: start,
                end_time_unix_nano: start + MS,
                ..span
            }
        })
    });
    request(all.collect()).encode_to_vec()
}

/// Every span of every trace as JSON, with commas between.
fn joined(traces: &[[u8; 16]], spans: u64, one: impl Fn(&str, u64, &mut String)) -> String {
    let mut out = String::with_capacity(traces.len() * spans as usize * 400);
    for trace in traces {
        let trace = hex(trace);
        for number in 0..spans {
            out.push_str(if out.is_empty() { "" } else { "," });
            one(&trace, number, &mut out);
        }
    }
    out
}

fn list(traces: &[[u8; 16]], spans: u64, one: impl Fn(&str, u64, &mut String)) -> String {
    format!("[{}]", joined(traces, spans, one))
}

fn otlp_json(traces: &[[u8; 16]], spans: u64) -> String {
    let spans = joined(traces, spans, |trace, number, out| {
        let (id, start) = (number + 1, START + number * MS);
        let _ = write!(
            out,
            r#"{{"traceId":"{trace}","spanId":"{id:016x}","name":"GET /vets","kind":2,"startTimeUnixNano":"{start}","endTimeUnixNano":"{}","attributes":[{{"key":"http.route","value":{{"stringValue":"/vets"}}}},{{"key":"number","value":{{"intValue":"{number}"}}}}]}}"#,
            start + MS
        );
    });
    let resource = r#"{"attributes":[{"key":"service.name","value":{"stringValue":"pets"}}]}"#;
    format!(r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#)
}

fn zipkin_json(trace: &str, number: u64, out: &mut String) {
    let (id, start) = (number + 1, (START + number * MS) / 1_000);
    let _ = write!(
        out,
        r#"{{"traceId":"{trace}","id":"{id:016x}","kind":"SERVER","name":"get /vets","timestamp":{start},"duration":1000,"localEndpoint":{{"serviceName":"pets"}},"tags":{{"http.path":"/vets","number":"{number}"}}}}"#
    );
}

fn zipkin_protobuf(trace: &[u8; 16], index: u64) -> Vec<u8> {
    let mut out = field(1, trace);
    put_bytes(&mut out, 3, &(index + 1).to_be_bytes());
    put_number(&mut out, 4, 2);
    put_bytes(&mut out, 5, b"get /vets");
    out.push(6 << 3 | 1);
    out.extend_from_slice(&((START + index * MS) / 1_000).to_le_bytes());
    put_number(&mut out, 7, 1_000);
    put_bytes(&mut out, 8, &field(1, b"pets"));
    put_bytes(&mut out, 11, &[field(1, b"http.path"), field(2, b"/vets")].concat());
    out
}

fn segment(trace: &[u8; 16], spans: u64) -> Vec<u8> {
    let name = hex(trace);
    let mut out = field(1, name.as_bytes());
    put_bytes(&mut out, 2, name.as_bytes());
    for index in 0..spans {
        let mut span = Vec::new();
        put_number(&mut span, 1, index);
        put_number(&mut span, 2, index.wrapping_sub(1));
        put_number(&mut span, 3, START / MS + index);
        put_number(&mut span, 4, START / MS + index + 1);
        put_bytes(&mut span, 6, b"GET:/vets");
        put_bytes(&mut span, 12, &[field(1, b"http.method"), field(2, b"GET")].concat());
        put_bytes(&mut out, 3, &span);
    }
    put_bytes(&mut out, 4, b"pets");
    out
}

fn segments_json(traces: &[[u8; 16]], spans: u64) -> String {
    let segments = traces.iter().map(|trace| {
        let spans = joined(&[*trace], spans, |_, number, out| {
            let (parent, start) = (number as i64 - 1, START / MS + number);
            let _ = write!(
                out,
                r#"{{"spanId":{number},"parentSpanId":{parent},"startTime":{start},"endTime":{},"operationName":"GET:/vets","spanType":"Entry","spanLayer":"Http","tags":[{{"key":"http.method","value":"GET"}}]}}"#,
                start + 1
            );
        });
        let trace = hex(trace);
        format!(r#"{{"traceId":"{trace}","traceSegmentId":"{trace}","service":"pets","spans":[{spans}]}}"#)
    });
    format!("[{}]", segments.collect::<Vec<_>>().join(","))
}

/// The first line of every intake request.
pub(crate) const METADATA: &str = "{\"metadata\":{\"service\":{\"name\":\"pets\",\"agent\":{\"name\":\"java\"}}}}\n";

/// A line with a transaction or a span.
pub(crate) fn elastic_event(trace: &str, number: u64) -> String {
    let (kind, id, start) =
        (if number == 0 { "transaction" } else { "span" }, number + 1, (START + number * MS) / 1_000);
    format!(
        "{{\"{kind}\":{{\"id\":\"{id:016x}\",\"trace_id\":\"{trace}\",\"parent_id\":\"{number:016x}\",\"type\":\"request\",\
         \"name\":\"GET /vets\",\"timestamp\":{start},\"duration\":1.0,\"outcome\":\"success\",\
         \"context\":{{\"tags\":{{\"number\":{number}}}}}}}}}\n"
    )
}

fn elastic(traces: &[[u8; 16]], spans: u64) -> String {
    let mut out = String::from(METADATA);
    for trace in traces {
        let trace = hex(trace);
        (0..spans).for_each(|number| out += &elastic_event(&trace, number));
    }
    out
}

/// A field of Thrift.
fn thrift(out: &mut Vec<u8>, kind: u8, field: u8, content: &[u8]) {
    out.extend_from_slice(&[kind, 0, field]);
    out.extend_from_slice(content);
}

fn thrift_text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

fn jaeger_thrift(traces: &[[u8; 16]], spans: u64) -> Vec<u8> {
    let mut out = Vec::new();
    thrift(&mut out, 12, 1, &[]);
    thrift(&mut out, 11, 1, &thrift_text("pets"));
    out.push(0);
    thrift(&mut out, 15, 2, &[12]);
    out.extend_from_slice(&(traces.len() as u32 * spans as u32).to_be_bytes());
    for trace in traces {
        for number in 0..spans {
            thrift(&mut out, 10, 1, &trace[8..]);
            thrift(&mut out, 10, 2, &trace[..8]);
            thrift(&mut out, 10, 3, &(number + 1).to_be_bytes());
            thrift(&mut out, 10, 4, &number.to_be_bytes());
            thrift(&mut out, 11, 5, &thrift_text("GET /vets"));
            thrift(&mut out, 10, 8, &((START + number * MS) / 1_000).to_be_bytes());
            thrift(&mut out, 10, 9, &1_000_u64.to_be_bytes());
            thrift(&mut out, 15, 10, &[12, 0, 0, 0, 1]);
            thrift(&mut out, 11, 1, &thrift_text("span.kind"));
            thrift(&mut out, 8, 2, &[0; 4]);
            thrift(&mut out, 11, 3, &thrift_text("server"));
            // The end of the tag, and of the span.
            out.extend_from_slice(&[0, 0]);
        }
    }
    out.push(0);
    out
}

fn jaeger_protobuf(trace: &[u8; 16], index: u64) -> Vec<u8> {
    let mut out = field(1, trace);
    put_bytes(&mut out, 2, &(index + 1).to_be_bytes());
    put_bytes(&mut out, 3, b"GET /vets");
    let mut start = Vec::new();
    put_number(&mut start, 1, START / 1_000_000_000);
    put_number(&mut start, 2, index * MS);
    put_bytes(&mut out, 6, &start);
    let mut duration = Vec::new();
    put_number(&mut duration, 2, MS);
    put_bytes(&mut out, 7, &duration);
    put_bytes(&mut out, 8, &[field(1, b"span.kind"), field(3, b"server")].concat());
    out
}
