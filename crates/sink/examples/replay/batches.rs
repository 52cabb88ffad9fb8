//! Realistic requests: traces of three spans (an HTTP server that asks MySQL and Redis) with 26 attributes, from one
//! resource with ten. Encoded once with values drawn at random; ids and times are stamped in anew for every sending.

use std::cell::{Cell, RefCell};

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use unladen_sink::requests::mix;

/// Spans with values of their own, over all templates.
const DISTINCT_SPANS: usize = 131_072;
/// Compressed flag and length of a gRPC message.
const PREFIX: usize = 5;

/// A supply of requests without end.
pub(crate) struct Batches {
    templates: Vec<Template>,
    spans: usize,
    turn: Cell<usize>,
    random: RefCell<Random>,
    clock_ns: Cell<u64>,
}

struct Template {
    message: Vec<u8>,
    spans: Vec<Places>,
}

/// Where in the message the ids and times of a span are.
#[derive(Default)]
struct Places {
    trace_id: usize,
    span_id: usize,
    parent_id: Option<usize>,
    start: usize,
    end: usize,
}

impl Batches {
    /// Requests of `spans` spans each.
    pub(crate) fn new(seed: u64, spans: usize) -> Self {
        let mut random = Random(mix(seed));
        let templates = (0..(DISTINCT_SPANS / spans).max(1)).map(|_| Template::new(spans, &mut random)).collect();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            templates,
            spans,
            turn: Cell::new(0),
            random: RefCell::new(random),
            clock_ns: Cell::new(now.as_nanos() as u64),
        }
    }

    /// Spans of each request.
    pub(crate) fn spans(&self) -> usize {
        self.spans
    }

    /// The next request, with the prefix of gRPC if wanted.
    pub(crate) fn next(&self, framed: bool) -> Bytes {
        let turn = self.turn.get();
        self.turn.set(turn + 1);
        let template = &self.templates[turn % self.templates.len()];
        let prefix = if framed { PREFIX } else { 0 };
        let mut body = Vec::with_capacity(prefix + template.message.len());
        if framed {
            body.push(0);
            body.extend_from_slice(&(template.message.len() as u32).to_be_bytes());
        }
        body.extend_from_slice(&template.message);
        self.stamp(&mut body[prefix..], &template.spans);
        body.into()
    }

    fn stamp(&self, message: &mut [u8], spans: &[Places]) {
        let mut random = self.random.borrow_mut();
        let (mut trace_id, mut root, mut start, mut duration) = ([0; 16], [0; 8], 0, 0);
        for places in spans {
            let span_id = random.next().to_be_bytes();
            let (from, length) = match places.parent_id {
                None => {
                    trace_id[..8].copy_from_slice(&random.next().to_be_bytes());
                    trace_id[8..].copy_from_slice(&random.next().to_be_bytes());
                    root = span_id;
                    // A request about every 30 µs, each of 1 to 20 ms.
                    self.clock_ns.set(self.clock_ns.get() + random.below(60_000));
                    start = self.clock_ns.get();
                    duration = 1_000_000 + random.below(19_000_000);
                    (start, duration)
                }
                Some(at) => {
                    message[at..at + 8].copy_from_slice(&root);
                    (start + random.below(duration / 2), random.below(duration / 2))
                }
            };
            message[places.trace_id..places.trace_id + 16].copy_from_slice(&trace_id);
            message[places.span_id..places.span_id + 8].copy_from_slice(&span_id);
            message[places.start..places.start + 8].copy_from_slice(&from.to_le_bytes());
            message[places.end..places.end + 8].copy_from_slice(&(from + length).to_le_bytes());
        }
    }
}

/// The sequence splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound.max(1))) >> 64) as u64
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

impl Template {
    fn new(spans: usize, random: &mut Random) -> Self {
        let spans = (0..spans).map(|number| span(number % 3, random)).collect();
        let scope = InstrumentationScope { name: "petclinic".into(), version: "1.0".into(), ..Default::default() };
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..Default::default() }];
        let resource = Some(Resource { attributes: resource(), ..Default::default() });
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans { resource, scope_spans, ..Default::default() }],
        };
        let message = request.encode_to_vec();
        let mut spans = Vec::new();
        fields(&message, 0, &mut |field, at, length| {
            if field == 1 {
                fields(&message[at..at + length], at, &mut |field, at, length| {
                    if field == 2 {
                        fields(&message[at..at + length], at, &mut |field, at, length| {
                            if field == 2 {
                                spans.push(places(&message[at..at + length], at));
                            }
                        });
                    }
                });
            }
        });
        Self { message, spans }
    }
}

fn places(span: &[u8], offset: usize) -> Places {
    let mut places = Places::default();
    fields(span, offset, &mut |field, at, length| match field {
        1 => places.trace_id = at,
        2 => places.span_id = at,
        4 if length == 8 => places.parent_id = Some(at),
        7 => places.start = at,
        8 => places.end = at,
        _ => {}
    });
    places
}

/// Field number, position and length of every field of a message that was encoded here.
fn fields(message: &[u8], offset: usize, found: &mut dyn FnMut(u64, usize, usize)) {
    let mut at = 0;
    let varint = |at: &mut usize| {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = message[*at];
            *at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    };
    while at < message.len() {
        let tag = varint(&mut at);
        let length = match tag & 7 {
            0 => {
                varint(&mut at);
                continue;
            }
            1 => 8,
            2 => varint(&mut at) as usize,
            _ => 4,
        };
        found(tag >> 3, offset + at, length);
        at += length;
    }
}

fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

fn number(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(value as i64))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), ..Default::default() }
}

fn resource() -> Vec<KeyValue> {
    vec![
        text("service.name", "petclinic"),
        text("service.instance.id", "petclinic-7d9c6b5f4-x2x7k"),
        text("service.version", "3.4.1"),
        text("deployment.environment.name", "production"),
        text("host.name", "node-17"),
        text("os.type", "linux"),
        number("process.pid", 4711),
        text("telemetry.sdk.name", "opentelemetry"),
        text("telemetry.sdk.language", "go"),
        text("telemetry.sdk.version", "1.45.0"),
    ]
}

/// Span 0 of a trace is the server's, 1 the call of MySQL, 2 that of Redis.
fn span(place: usize, random: &mut Random) -> Span {
    let (name, kind, attributes) = match place {
        0 => server(random),
        1 => mysql(random),
        _ => redis(random),
    };
    let parent_span_id = if place == 0 { Vec::new() } else { vec![1; 8] };
    Span {
        trace_id: vec![1; 16],
        span_id: vec![1; 8],
        parent_span_id,
        name: name.into(),
        kind,
        start_time_unix_nano: 1,
        end_time_unix_nano: 1,
        attributes,
        ..Default::default()
    }
}

fn server(random: &mut Random) -> (&'static str, i32, Vec<KeyValue>) {
    let route = random.of(&["/owners/{id}", "/owners/{id}/pets", "/vets", "/visits/{id}"]);
    let attributes = vec![
        text("http.request.method", random.of(&["GET", "GET", "GET", "POST"])),
        text("url.scheme", "http"),
        text("url.path", route.replace("{id}", &random.below(10_000).to_string())),
        text("http.route", route),
        number("http.response.status_code", if random.below(50) == 0 { 404 } else { 200 }),
        text("server.address", "petclinic.shop.svc"),
        number("server.port", 8080),
        text("client.address", format!("10.2.{}.{}", random.below(4), random.below(250))),
        text("network.protocol.version", "1.1"),
        text("user_agent.original", format!("Mozilla/5.0 (X11; Linux x86_64; rv:{}.0)", 100 + random.below(30))),
    ];
    let name = match route {
        "/owners/{id}" => "GET /owners/{id}",
        "/owners/{id}/pets" => "GET /owners/{id}/pets",
        "/vets" => "GET /vets",
        _ => "GET /visits/{id}",
    };
    (name, 2, attributes)
}

fn mysql(random: &mut Random) -> (&'static str, i32, Vec<KeyValue>) {
    let table = random.of(&["owners", "pets", "vets", "visits"]);
    let attributes = vec![
        text("db.system.name", "mysql"),
        text("db.namespace", "petclinic"),
        text("db.operation.name", "SELECT"),
        text("db.collection.name", table),
        text(
            "db.query.text",
            format!("SELECT id, name, city, telephone FROM {table} WHERE id = ? ORDER BY name LIMIT 20"),
        ),
        text("server.address", "mysql.shop.svc"),
        number("server.port", 3306),
        number("thread.id", random.below(64)),
    ];
    ("SELECT petclinic", 3, attributes)
}

fn redis(random: &mut Random) -> (&'static str, i32, Vec<KeyValue>) {
    let attributes = vec![
        text("db.system.name", "redis"),
        text("db.operation.name", "GET"),
        text("db.query.text", format!("GET owner:{}", random.below(10_000))),
        text("server.address", "redis.shop.svc"),
        number("server.port", 6379),
        text("network.peer.address", "10.96.14.3"),
        number("network.peer.port", 6379),
        number("thread.id", random.below(64)),
    ];
    ("GET", 3, attributes)
}
