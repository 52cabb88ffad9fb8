//! Datadog's trace agent over real sockets, as its tracers speak with it, and what broken ones send.

use std::net::{SocketAddr, UdpSocket};

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use rmp::encode::{write_array_len, write_bin, write_map_len, write_str, write_uint};
use serde_json::Value;
use tokio::net::TcpStream;
use unladen_ledger::summary::{Event, ReportedLoss};
use unladen_sink::config::{Config, Protocol, Requests};

use crate::payloads::{Adds, Expect, ONE, UNDECODABLE};
use crate::senders::START;
use crate::support::{Sink, block_on, columns, listening};

const REQUESTS: Requests = Requests { tag: 0x1234_5678_9abc_def0, key: 42 };

/// Texts of [`payload`] and [`payload_with_table`], but for the high half of the trace's id.
const TEXTS: [&str; 9] =
    ["", "pets", "servlet.request", "GET /vets", "web", "http.method", "GET", "_dd.p.tid", "_sampling_priority_v1"];

/// Writes one value after the other.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn array(&mut self, values: usize) -> &mut Self {
        write_array_len(&mut self.0, values as u32).expect("memory");
        self
    }

    fn map(&mut self, pairs: u32) -> &mut Self {
        write_map_len(&mut self.0, pairs).expect("memory");
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        write_str(&mut self.0, text).expect("memory");
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        write_uint(&mut self.0, number).expect("memory");
        self
    }

    /// A text of version 1.0: itself if it is new, else its number.
    fn streamed(&mut self, number: u64, text: &str, is_new: bool) -> &mut Self {
        if is_new { self.text(text) } else { self.number(number) }
    }

    fn field(&mut self, name: &str, number: u64) -> &mut Self {
        self.text(name).number(number)
    }
}

fn halves(trace: &[u8; 16]) -> (String, u64) {
    let id = u128::from_be_bytes(*trace);
    (format!("{:016x}", (id >> 64) as u64), id as u64)
}

/// Version 0.4: a chunk for each trace, of which the first span has the high half of its id.
pub(crate) fn payload(traces: &[[u8; 16]], spans: u64) -> Vec<u8> {
    let mut message = Message::default();
    message.array(traces.len());
    for trace in traces {
        let (high, low) = halves(trace);
        message.array(spans as usize);
        for number in 0..spans {
            message.map(12).text("service").text("pets").text("name").text("servlet.request");
            message.text("resource").text("GET /vets").text("type").text("web").field("trace_id", low);
            message.field("span_id", number + 1).field("parent_id", number).field("start", START + number * 1_000_000);
            message.field("duration", 1_000_000).field("error", 0).text("meta");
            message.map(1 + u32::from(number == 0)).text("http.method").text("GET");
            if number == 0 {
                message.text("_dd.p.tid").text(&high);
            }
            message.text("metrics").map(1).field("_sampling_priority_v1", 1);
        }
    }
    message.0
}

/// The same in version 0.5.
pub(crate) fn payload_with_table(traces: &[[u8; 16]], spans: u64) -> Vec<u8> {
    let mut message = Message::default();
    message.array(2).array(TEXTS.len() + traces.len());
    for text in TEXTS {
        message.text(text);
    }
    for trace in traces {
        message.text(&halves(trace).0);
    }
    message.array(traces.len());
    for (trace, high) in traces.iter().zip(TEXTS.len() as u64..) {
        message.array(spans as usize);
        for number in 0..spans {
            message.array(12).number(1).number(2).number(3).number(halves(trace).1).number(number + 1).number(number);
            message.number(START + number * 1_000_000).number(1_000_000).number(0);
            message.map(1 + u32::from(number == 0)).number(5).number(6);
            if number == 0 {
                message.number(7).number(high);
            }
            message.map(1).number(8).number(1).number(4);
        }
    }
    message.0
}

/// The same in version 1.0: each text once, in the first span, and its number from then on.
pub(crate) fn payload_streamed(traces: &[[u8; 16]], spans: u64) -> Vec<u8> {
    let mut message = Message::default();
    let mut is_first = true;
    message.map(1).number(11).array(traces.len());
    for trace in traces {
        message.map(3).number(1).number(1).number(4).array(spans as usize);
        for number in 0..spans {
            message.map(10);
            for (field, text) in (1..).zip(&TEXTS[1..4]) {
                message.number(field).streamed(field, text, is_first);
            }
            message.number(4).number(number + 1).number(5).number(number).number(6).number(START + number * 1_000_000);
            message.number(7).number(1_000_000).number(8).0.push(0xc2);
            message.number(9).array(3).streamed(4, "http.method", is_first).number(1).streamed(5, "GET", is_first);
            message.number(10).streamed(6, "web", is_first);
            is_first = false;
        }
        message.number(6);
        write_bin(&mut message.0, trace).expect("memory");
    }
    message.0
}

/// What broken senders of version 1.0 send.
pub(crate) fn hostile_streamed() -> Vec<(&'static str, Vec<u8>, Expect, Adds)> {
    let refused = |text| Expect::Refused(400, "", text);
    let spans = |before: &[u8], spans: &[u8]| [b"\x81\x0b\x91\x81\x04", before, spans].concat();
    // A payload whose first field is texts.
    let texts = [&b"\x81\x01\xdd\0\xf4\x24\0"[..], &vec![0xa0; 16_000_001]].concat();
    let long = [
        &b"\x82\x01\x91\xdb\0\x80\0\0"[..],
        &vec![b'x'; 8 << 20],
        b"\x0b\x91\x81\x04\x91\xdf\0\x10\0\0",
        &[3, 1].repeat(1 << 20),
    ]
    .concat();
    let crowd = [&b"\xdd\0\x0f\x42\x40"[..], &vec![0x80; 1_000_000]].concat();
    let deep = [vec![0x81, 0x63], vec![0x91; 100_000], vec![0xc0]].concat();
    vec![
        ("ids of zeros", payload_streamed(&[[0; 16]], 1), Expect::Taken, Adds { rejected: 1, ..Adds::default() }),
        ("a number without text", spans(b"\x91\x81\x03", b"\x05"), refused("beyond the table"), UNDECODABLE),
        ("sixteen million texts", texts, refused("more than 1048576 texts"), UNDECODABLE),
        ("a text for every byte", long, refused("more than 64 MiB"), UNDECODABLE),
        ("a chunk that lies", b"\x81\x0b\xdd\xff\xff\xff\xff".to_vec(), refused("more values"), UNDECODABLE),
        ("a type that is none", spans(b"\x91\x81\x09", b"\x93\xa1x\x08\0"), refused("1 to 7"), UNDECODABLE),
        ("deep nesting", deep, Expect::Taken, Adds::default()),
        (
            "a million spans of a byte",
            spans(b"", &crowd),
            Expect::Taken,
            Adds { rejected: 1_000_000, ..Adds::default() },
        ),
    ]
}

/// Ids that are none, time running backwards, a million attributes, values in values without end, counts that lie.
pub(crate) fn hostile(has_table: bool) -> Vec<(&'static str, Vec<u8>, Expect, Adds)> {
    let rejected = Adds { rejected: 1, ..Adds::default() };
    let refused = |text| Expect::Refused(400, "", text);
    let lie = "more values than the message has bytes";
    let million = 1_000_000;
    if has_table {
        let beyond = [&b"\x92\x91\xa0\x91\x91\x9c"[..], b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", &[0; 11]].concat();
        let texts = [&b"\x92\xdd\0\xf4\x24\0"[..], &vec![0xa0; 16_000_001]].concat();
        let long = [
            &b"\x92\x91\xdb\0\x80\0\0"[..],
            &vec![b'x'; 8 << 20],
            b"\x91\x91\x9c\0\0\0\x07\x07\0\0\0\0\xdf\0\x10\0\0",
            &vec![0; 3 << 20],
        ]
        .concat();
        return vec![
            ("ids of zeros", b"\x92\x91\xa0\x91\x91\x9c\0\0\0\0\0\0\0\0\0\x80\x80\0".to_vec(), Expect::Taken, rejected),
            ("an index without text", beyond, refused("beyond the table"), UNDECODABLE),
            ("sixteen million texts", texts, refused("more than 1048576 texts"), UNDECODABLE),
            ("a text for every byte", long, refused("more than 64 MiB"), UNDECODABLE),
            ("a table that lies", b"\x92\xdd\xff\xff\xff\xff".to_vec(), refused(lie), UNDECODABLE),
            (
                "a span of eleven",
                b"\x92\x91\xa0\x91\x91\x9b\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
                refused("a span of 12"),
                UNDECODABLE,
            ),
        ];
    }
    let span = |pairs: u32, id: u64, rest: &dyn Fn(&mut Message)| {
        let mut message = Message::default();
        message.array(1).array(1).map(pairs + 2).field("trace_id", 7).field("span_id", id);
        rest(&mut message);
        message.0
    };
    let back = span(2, 2, &|message| {
        message.field("start", u64::MAX).text("duration").0.extend(b"\xd3\x80\0\0\0\0\0\0\0");
    });
    let many = span(1, 3, &|message| {
        message.text("meta").map(million);
        for number in 0..million {
            message.text(&number.to_string()).text("");
        }
    });
    let deep = span(1, 4, &|message| message.text("x").0.extend([vec![0x91; 100_000], vec![0xc0]].concat()));
    let mut small = vec![0x91, 0xdd];
    small.extend(million.to_be_bytes());
    let spans = 500_000_u32;
    let mut crowd = vec![0x91, 0xdd];
    crowd.extend(spans.to_be_bytes());
    (0..spans).for_each(|number| {
        crowd.extend(b"\x82\xa8trace_id\x07\xa7span_id\xce");
        crowd.extend((number + 5).to_be_bytes());
    });
    let most = 65_536;
    let of_crowd = Adds { rejected: u64::from(spans) - most, received: most, ..Adds::default() };
    vec![
        ("ids of zeros", payload(&[[0; 16]], 1), Expect::Taken, rejected),
        ("time running backwards", back, Expect::Taken, ONE),
        ("a million attributes", many, Expect::Taken, ONE),
        ("deep nesting", deep, Expect::Taken, ONE),
        ("a chunk that lies", b"\x91\xdd\xff\xff\xff\xff".to_vec(), refused(lie), UNDECODABLE),
        (
            "a text that lies",
            b"\x91\x91\x81\xdb\xff\xff\xff\xffx".to_vec(),
            refused("longer than the message"),
            UNDECODABLE,
        ),
        (
            "a million spans of a byte",
            [small, vec![0x80; million as usize]].concat(),
            Expect::Taken,
            Adds { rejected: million.into(), ..Adds::default() },
        ),
        ("a crowd", crowd, Expect::Taken, of_crowd),
    ]
}

fn sink() -> Sink {
    Sink::with(|config| Config { requests: Some(REQUESTS), ..listening(config, &[Protocol::Datadog]) })
}

struct Answered {
    status: u16,
    state: String,
    text: String,
}

async fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answered {
    let stream = TcpStream::connect(address).await.expect("the sink listens");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
    tokio::spawn(connection);
    let request = Request::builder().method(method).uri(path).header("host", "sink");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let request = request.body(Full::new(Bytes::from(body))).expect("a request");
    let (head, body) = sender.send_request(request).await.expect("an answer").into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let state = head.headers["datadog-agent-state"].to_str().expect("text").to_owned();
    Answered { status: head.status.as_u16(), state, text: String::from_utf8_lossy(&body).into_owned() }
}

const MSGPACK: (&str, &str) = ("content-type", "application/msgpack");

#[test]
fn a_tracer_is_answered_as_by_an_agent() {
    let sink = sink();
    let address = sink.addresses["datadog"];
    let trace = |index| REQUESTS.trace_id(index);
    block_on(async {
        let info = ask(address, "GET", "/info", &[], Vec::new()).await;
        let about: Value = serde_json::from_str(&info.text).expect("JSON");
        assert_eq!((info.status, &about["client_drop_p0s"]), (200, &Value::Bool(true)));
        assert_eq!(about["config"]["statsd_port"], address.port());
        assert_eq!(info.state.len(), 64, "SHA-256 in hexadecimal digits");
        let rates = r#"{"rate_by_service":{"service:,env:":1}}"#;
        for (method, path, body, status, text) in [
            ("PUT", "/v0.4/traces", payload(&[trace(0), trace(1)], 3), 200, rates),
            ("POST", "/v0.3/traces", payload(&[trace(2)], 2), 200, "OK\n"),
            ("PUT", "/v0.5/traces", payload_with_table(&[trace(3)], 4), 200, rates),
            ("POST", "/v0.5/traces", payload_with_table(&[trace(3)], 4), 200, rates),
            ("PUT", "/v1.0/traces", payload_streamed(&[trace(4), trace(5)], 2), 200, rates),
            ("PUT", "/v0.4/traces", b"\x90".to_vec(), 200, rates),
            ("POST", "/v0.6/stats", b"\x80".to_vec(), 200, ""),
            ("POST", "/telemetry/proxy/api/v2/apmtelemetry", b"{}".to_vec(), 202, "{}"),
            (
                "PUT",
                "/v0.4/traces",
                b"\x91\x91\xa1x".to_vec(),
                400,
                "this is no payload of Datadog's spans: expected a span, a map of its fields at byte 2\n",
            ),
            ("GET", "/v0.4/traces", Vec::new(), 405, "/v0.4/traces takes PUT and POST requests only\n"),
        ] {
            let answered = ask(address, method, path, &[MSGPACK], body).await;
            assert_eq!((answered.status, answered.text.as_str()), (status, text), "{method} {path}");
            assert_eq!(answered.state, info.state);
        }
        // What is not listed must not be there.
        let listed: Vec<String> = serde_json::from_value(about["endpoints"].clone()).expect("a list");
        assert_eq!(
            listed,
            ["/v0.3/traces", "/v0.4/traces", "/v0.5/traces", "/v1.0/traces", "/v0.6/stats", "/telemetry/proxy/"]
        );
        for path in ["/v0.7/config", "/evp_proxy/v2/", "/profiling/v1/input", "/telemetry/proxy/api/v2/x"] {
            assert_eq!(ask(address, "POST", path, &[], Vec::new()).await.status, 404, "{path}");
        }
        let json = [("content-type", "application/json")];
        assert_eq!(ask(address, "PUT", "/v0.4/traces", &json, b"[]".to_vec()).await.status, 415);
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.duplicates, summary.undecodable, summary.foreign), (16, 4, 1, 0));
    assert_eq!(
        summary.spans_by_request,
        [(3, 2), (2, 1), (4, 1), (2, 2)],
        "the half of the id that all have, and the other one"
    );
    assert_eq!(summary.by_protocol["datadog"], 20);
    assert_eq!(summary.reported_losses, []);
    for row in rows.iter().map(columns) {
        assert_eq!((row["kind"].as_str(), row["operation"].as_str()), ("\"server\"", "\"GET /vets\""));
        assert_eq!(row["operation.name"], "\"servlet.request\"");
    }
}

#[test]
fn tracers_tell_what_they_lost() {
    let sink = sink();
    let address = sink.addresses["datadog"];
    block_on(async {
        // Two chunks of three did not get into the request.
        let headers = [MSGPACK, ("x-datadog-trace-count", "3")];
        let answered = ask(address, "PUT", "/v0.4/traces", &headers, payload(&[REQUESTS.trace_id(0)], 2)).await;
        assert_eq!(answered.status, 200);
        let telemetry = r#"{"request_type":"generate-metrics","application":{"service_name":"pets"},"payload":{"series":[
            {"metric":"spans_dropped","points":[[1,40]],"tags":["reason:overfull_buffer"]}]}}"#;
        ask(address, "POST", "/telemetry/proxy/api/v2/apmtelemetry", &[], telemetry.into()).await;
    });
    let statsd = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let datagram = b"datadog.tracer.queue.dropped.spans:50|c|#service:pets,priority:user_keep";
    statsd.send_to(datagram, address).expect("sent");
    // A datagram is not answered; the sink hears it within a tick or two of its own.
    sink.events.try_iter().for_each(drop);
    let ticks = sink.events.iter().filter(|event| matches!(event, Event::Tick { .. }));
    assert_eq!(ticks.take(10).count(), 10);
    let (summary, _) = sink.stop();
    let loss = |service: &str, stage: &str, spans| ReportedLoss { service: service.into(), stage: stage.into(), spans };
    // The same loss under two names counts once.
    assert_eq!(summary.reported_losses, [loss("pets", "queue", 50), loss("unknown_service", "export", 2)]);
}
