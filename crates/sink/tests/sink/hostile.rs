//! What a broken or hostile sender may send, each protocol: every case gets the protocol's own clear error and a counter in
//! the summary, the sink stays alive and takes sound spans afterwards, and its memory stays bounded.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ChildStdin;
use std::time::Duration;

use flate2::Compression;
use unladen_ledger::summary::{Event, Summary};
use unladen_sink::config::Config;

use crate::child::Process;
use crate::datadog;
use crate::loss::peak_memory;
use crate::senders::{Answer, Client, METADATA, Way, bytes, elastic_event, field, framed};
use crate::support::{PATIENCE, block_on_within, config, gzip};

/// Most memory that the sink may have had in the end, KiB. One message may have 16 MiB and a million attributes, each of
/// which is in memory several times on its way to the disk.
const MEMORY: u64 = 256 << 10;
const LARGEST: usize = 16 << 20;
const TRACE: [u8; 16] = [7; 16];

/// A sink as a process of its own, which listens for everything.
struct Victim {
    process: Process,
    addresses: BTreeMap<String, SocketAddr>,
    done: std::thread::JoinHandle<Option<Event>>,
    stdin: ChildStdin,
    _folder: tempfile::TempDir,
}

impl Victim {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let all = Config {
            zipkin: any,
            skywalking: any,
            elastic: any,
            jaeger: any,
            sentry: any,
            azure: any,
            datadog: any,
            ..config(folder.path())
        };
        let config = Config { silence_ms: 500, ..all };
        let (mut process, stdin) = Process::start(&serde_json::to_string(&config).expect("JSON"));
        let mut events = process.events();
        let Some(Event::Ready { addresses }) = events.next() else { panic!("not ready") };
        let done = std::thread::spawn(move || events.last());
        Self { process, addresses, done, stdin, _folder: folder }
    }

    fn address(&self, way: Way) -> SocketAddr {
        self.addresses[way.protocol()]
    }

    /// It still takes sound spans, has not grown beyond its bound, and ends well.
    fn end(self) -> Summary {
        block_on_within(PATIENCE * 2, async {
            for way in Way::ALL {
                let mut client = Client::connect(way, self.address(way)).await.expect("the sink listens");
                let body = way.body(&[[way as u8 + 100; 16]], 3);
                assert_eq!(client.send(body.into()).await.expect("the sink lives"), Answer::Taken, "{way:?}");
            }
        });
        let memory = peak_memory(self.process.id());
        drop(self.stdin);
        let done = self.done.join().expect("a reader");
        assert_eq!(self.process.end().0, Some(0));
        assert!(memory < MEMORY, "{memory} KiB");
        let Some(Event::Done(summary)) = done else { panic!("no summary") };
        *summary
    }
}

/// What an answer should be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    /// Taken as a whole.
    Taken,
    /// Refused for good, by HTTP status or gRPC's, saying this.
    Refused(u16, &'static str, &'static str),
}

/// What a case adds to the counters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Adds {
    pub(crate) undecodable: u64,
    pub(crate) rejected: u64,
    pub(crate) received: u64,
}

struct Case {
    name: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    expect: Expect,
    adds: Adds,
}

fn case(name: &'static str, body: Vec<u8>, expect: Expect, adds: Adds) -> Case {
    Case { name, headers: Vec::new(), body, expect, adds }
}

pub(crate) const UNDECODABLE: Adds = Adds { undecodable: 1, rejected: 0, received: 0 };
pub(crate) const ONE: Adds = Adds { undecodable: 0, rejected: 0, received: 1 };

/// Puts a message into the frame that its way wants.
fn sent(way: Way, message: Vec<u8>) -> Vec<u8> {
    if way.is_grpc() { framed(&message) } else { message }
}

/// The sound message of one span, without gRPC's frame.
fn message(way: Way) -> Vec<u8> {
    let body = way.body(&[TRACE], 1);
    if way.is_grpc() { body[5..].to_vec() } else { body }
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = text.windows(from.len()).position(|window| window == from).expect("it is there");
    [&text[..at], to, &text[at + from.len()..]].concat()
}

/// What is the same for all.
fn general(way: Way) -> Vec<Case> {
    let sound = message(way);
    let broken = Expect::Refused(400, "3", "this is no");
    // A stream of events is not broken by a broken line; the error names it.
    let cut = match way {
        Way::Elastic => {
            let adds = Adds { rejected: 1, ..Adds::default() };
            let end = sound.len() - 3;
            case("cut", sound[..end].to_vec(), Expect::Refused(400, "", "a line is not a JSON object"), adds)
        }
        _ => case("cut", sent(way, sound[..sound.len() - 1].to_vec()), broken, UNDECODABLE),
    };
    let mut cases = vec![cut, case("noise", sent(way, b"\xff\xfe\xfd\xfc and more".to_vec()), broken, UNDECODABLE)];
    let name = |way: Way| match way {
        Way::OtlpGrpc | Way::OtlpHttp => &b"GET /vets"[..],
        Way::ZipkinJson | Way::ZipkinProtobuf => b"get /vets",
        Way::SkywalkingGrpc | Way::SkywalkingHttp => b"GET:/vets",
        _ => b"GET /vets",
    };
    let odd = replaced(&sound, name(way), b"\xff\xfe\x80 vets/");
    cases.push(case("invalid UTF-8", sent(way, odd), Expect::Taken, ONE));
    let large = Expect::Refused(413, "8", "send smaller batches");
    cases.push(case("too large", sent(way, vec![b' '; LARGEST + 1]), large, UNDECODABLE));
    let zeros = vec![b' '; 64 << 20];
    if way.is_grpc() {
        let mut bomb = framed(&gzip(&zeros));
        bomb[0] = 1;
        let headers = vec![("grpc-encoding", "gzip")];
        cases.push(Case { headers, ..case("gzip bomb", bomb, large, UNDECODABLE) });
        let lie = [&[0][..], &u32::MAX.to_be_bytes(), b"short"].concat();
        let short =
            if way == Way::SkywalkingGrpc { large } else { Expect::Refused(0, "13", "shorter than its prefix") };
        cases.push(case("a length that lies", lie, short, UNDECODABLE));
        cases.push(case("no frame", vec![9; 3], Expect::Refused(0, "13", "ends"), UNDECODABLE));
    } else {
        let zlib = {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&zeros).and_then(|()| encoder.finish()).expect("writing to memory")
        };
        let zstd = zstd::bulk::compress(&zeros, 1).expect("writing to memory");
        for (name, encoding, bomb) in
            [("gzip bomb", "gzip", gzip(&zeros)), ("deflate bomb", "deflate", zlib), ("zstd bomb", "zstd", zstd)]
        {
            assert!(bomb.len() < 1 << 20, "{name}");
            let headers = vec![("content-encoding", encoding)];
            cases.push(Case { headers, ..case(name, bomb, large, UNDECODABLE) });
        }
        let headers = vec![("content-encoding", "gzip")];
        let scrap = Expect::Refused(400, "", "cannot be decompressed");
        cases.push(Case { headers, ..case("no gzip", sound, scrap, UNDECODABLE) });
    }
    cases
}

/// Ids of the wrong length, time running backwards, a million attributes, values in values without end.
fn particular(way: Way) -> Vec<Case> {
    let sound = message(way);
    let rejected = Adds { rejected: 1, ..Adds::default() };
    let million = 1_000_000;
    let mut cases = Vec::new();
    let mut add = |name, message, expect, adds| cases.push(case(name, sent(way, message), expect, adds));
    let deep = |inner: &str| [inner.as_bytes(), &vec![b'['; 100_000]].concat();
    let broken = Expect::Refused(400, "3", "nested too deeply");
    let hex = "07".repeat(16);
    match way {
        Way::OtlpGrpc | Way::OtlpHttp => {
            let wrap = |span: Vec<u8>| field(1, &field(2, &field(2, &span)));
            let ids = [field(1, &TRACE), field(2, &[1; 8])].concat();
            add(
                "ids of the wrong length",
                wrap([field(1, &[1; 15]), field(2, &[1; 8])].concat()),
                Expect::Taken,
                rejected,
            );
            let mut back = ids.clone();
            back.extend([&[0x39][..], &u64::MAX.to_le_bytes(), &[0x41], &[0; 8]].concat());
            add("time running backwards", wrap(back), Expect::Taken, ONE);
            let mut many = [field(1, &TRACE), field(2, &[2; 8])].concat();
            (0..million).for_each(|number: u32| bytes(&mut many, 9, &field(1, &number.to_le_bytes())));
            add("a million attributes", wrap(many), Expect::Taken, ONE);
            let mut nested = field(1, b"x");
            (0..2_000).for_each(|_| nested = field(5, &field(1, &nested)));
            let attribute = [field(1, b"deep"), field(2, &nested)].concat();
            let deep = [field(1, &TRACE), field(2, &[3; 8]), field(9, &attribute)].concat();
            add("deep nesting", wrap(deep), Expect::Taken, ONE);
        }
        Way::OtlpJson => {
            let text = String::from_utf8(sound).expect("JSON");
            add("ids of the wrong length", text.replace(&hex, "0707").into(), Expect::Taken, rejected);
            let back = text.replace("\"endTimeUnixNano\":\"17", "\"endTimeUnixNano\":\"1").replace("0001\"", "0002\"");
            add("time running backwards", back.into(), Expect::Taken, ONE);
            let many = vec![r#"{"key":"","x":{}}"#; 900_000].join(",");
            let many =
                text.replace("\"attributes\":[{\"key\":\"http", &format!("\"attributes\":[{many},{{\"key\":\"http"));
            add("a million attributes", many.replace("0001\"", "0003\"").into(), Expect::Taken, ONE);
            add("deep nesting", deep("{\"x\":"), broken, UNDECODABLE);
        }
        Way::ZipkinJson => {
            let text = String::from_utf8(sound).expect("JSON");
            add("ids of the wrong length", text.replace(&hex, &"7".repeat(33)).into(), Expect::Taken, rejected);
            let back = text.replace("\"duration\":1000", "\"duration\":-1").replace("0001\"", "0002\"");
            add("time running backwards", back.into(), Expect::Taken, ONE);
            let many: String = (0..million).map(|number| format!("\"{number}\":1,")).collect();
            let many = text.replace("\"tags\":{", &format!("\"tags\":{{{many}")).replace("0001\"", "0003\"");
            add("a million attributes", many.into(), Expect::Taken, ONE);
            add("deep nesting", deep("[{\"x\":"), broken, UNDECODABLE);
        }
        Way::ZipkinProtobuf => {
            let ids = [field(1, &[1; 17]), field(3, &[1; 8])].concat();
            add("ids of the wrong length", field(1, &ids), Expect::Taken, rejected);
            let mut many = [field(1, &TRACE), field(3, &[2; 8])].concat();
            (0..million).for_each(|number: u32| bytes(&mut many, 11, &field(1, &number.to_le_bytes())));
            add("a million attributes", field(1, &many), Expect::Taken, ONE);
        }
        Way::SkywalkingGrpc => {
            let names = [field(1, b"trace"), field(2, b"segment")].concat();
            add("no ids", field(3, &[]), Expect::Taken, rejected);
            add("time running backwards", [names.clone(), field(3, &[0x18, 9, 0x20, 1])].concat(), Expect::Taken, ONE);
            let mut many = Vec::new();
            (0..million).for_each(|number: u32| bytes(&mut many, 12, &field(1, &number.to_le_bytes())));
            add(
                "a million attributes",
                [field(2, b"many"), field(1, b"t"), field(3, &many)].concat(),
                Expect::Taken,
                ONE,
            );
            let small = [names, [0x1a, 0].repeat(1_000_000)].concat();
            let adds = Adds { rejected: 1_000_000 - 65_536, received: 65_536, ..Adds::default() };
            add("a million spans of two bytes", small, Expect::Taken, adds);
        }
        Way::SkywalkingHttp => {
            let text = String::from_utf8(sound).expect("JSON");
            add("no ids", text.replace(&hex, "").into(), Expect::Taken, rejected);
            let small = vec!["{}"; 1_000_000].join(",");
            let small = format!(r#"[{{"traceId":"t","traceSegmentId":"u","spans":[{small}]}}]"#);
            let adds = Adds { rejected: 1_000_000 - 65_536, received: 65_536, ..Adds::default() };
            add("a million spans of two bytes", small.into(), Expect::Taken, adds);
            add("deep nesting", deep("[{\"x\":"), broken, UNDECODABLE);
        }
        Way::Elastic => {
            let refused = |text| Expect::Refused(400, "", text);
            let event = elastic_event(&hex, 5);
            let short = format!("{METADATA}{}", event.replace(&hex, "07"));
            add("ids of the wrong length", short.into(), refused("trace_id is not 32"), rejected);
            let back = format!("{METADATA}{}", event.replace("\"duration\":1.0", "\"duration\":-1e300"));
            add("time running backwards", back.into(), Expect::Taken, ONE);
            let many: String = (0..million).map(|number| format!("\"{number}\":1,")).collect();
            let event = elastic_event(&hex, 6).replace("\"tags\":{", &format!("\"tags\":{{{many}"));
            add("a million attributes", format!("{METADATA}{event}").into(), Expect::Taken, ONE);
            let nested = [METADATA.as_bytes(), &deep("{\"span\":")].concat();
            add("deep nesting", nested, refused("a line is not a JSON object"), rejected);
            add(
                "a million broken lines",
                format!("{METADATA}{}", "x\n".repeat(1_000_000)).into(),
                refused("a line"),
                Adds { rejected: 1_000_000, ..Adds::default() },
            );
        }
        Way::JaegerThrift => {
            let zeros = replaced(&sound, &[7; 8], &[0; 8]);
            let zeros = replaced(&zeros, &[7; 8], &[0; 8]);
            add("ids of zeros", zeros, Expect::Taken, rejected);
            let mut endless = vec![15, 0, 2, 12];
            endless.extend(i32::MAX.to_be_bytes());
            endless.extend([0; 1_000]);
            add("a list without end", endless, Expect::Refused(400, "", "ends in the middle"), UNDECODABLE);
            let deep = [12, 0, 9].repeat(100_000);
            add("deep nesting", deep, broken, UNDECODABLE);
        }
        Way::JaegerGrpc => {
            let ids = [field(1, &[1; 17]), field(2, &[1; 8])].concat();
            add("ids of the wrong length", field(1, &field(1, &ids)), Expect::Taken, rejected);
            let mut many = [field(1, &TRACE), field(2, &[2; 8])].concat();
            (0..million).for_each(|number: u32| bytes(&mut many, 8, &field(1, &number.to_le_bytes())));
            add("a million attributes", field(1, &field(1, &many)), Expect::Taken, ONE);
        }
        Way::Sentry | Way::Azure => {
            let all = if way == Way::Sentry { crate::sentry::hostile(&hex) } else { crate::azure::hostile(&hex) };
            all.into_iter().for_each(|(name, body, expect, adds)| add(name, body.into(), expect, adds));
        }
        Way::Datadog | Way::DatadogTable => {
            let cases = datadog::hostile(way == Way::DatadogTable);
            cases.into_iter().for_each(|(name, message, expect, adds)| add(name, message, expect, adds));
        }
    }
    cases
}

#[test]
fn every_protocol_withstands_every_payload() {
    let mut wanted = Adds::default();
    let victim = Victim::start();
    block_on_within(PATIENCE * 10, async {
        for way in Way::ALL {
            for Case { name, headers, body, expect, adds } in general(way).into_iter().chain(particular(way)) {
                let mut client = Client::connect(way, victim.address(way)).await.expect("the sink listens");
                wanted.undecodable += adds.undecodable;
                wanted.rejected += adds.rejected;
                wanted.received += adds.received;
                let (status, grpc, message) = match client.call(&headers, body.into()).await {
                    Ok(answer) => answer,
                    // A client that is still sending may miss the answer to the beginning of what it sends.
                    Err(error) if name == "too large" => {
                        assert!(
                            error.is_canceled() || error.is_incomplete_message() || error.is_closed() || is_io(&error)
                        );
                        continue;
                    }
                    Err(error) => panic!("{way:?}, {name}: {error:?}"),
                };
                // Shown if it is too much in the end: the peaks that led there.
                println!("{way:?}, {name}: {} KiB", peak_memory(victim.process.id()));
                match expect {
                    Expect::Taken => {
                        let is_taken = matches!((status, grpc.as_deref()), (200 | 202 | 206, None | Some("0")));
                        assert!(is_taken, "{way:?}, {name}: {status} {grpc:?} {message}");
                    }
                    Expect::Refused(http, code, text) => {
                        let is_refused = if way.is_grpc() { grpc.as_deref() == Some(code) } else { status == http };
                        assert!(is_refused && message.contains(text), "{way:?}, {name}: {status} {grpc:?} {message}");
                    }
                }
            }
        }
    });
    let summary = victim.end();
    let sound = 3 * Way::ALL.len() as u64;
    assert_eq!(
        (summary.undecodable, summary.rejected, summary.received),
        (wanted.undecodable, wanted.rejected, wanted.received + sound)
    );
    assert_eq!(summary.saved + summary.duplicates, summary.received);
}

fn is_io(error: &hyper::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

/// Writes bytes and reads whatever comes until the sink hangs up; both within some seconds.
fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("the sink listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    // It may hang up in the middle.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn absurd_heads_are_refused() {
    let victim = Victim::start();
    for way in Way::ALL.into_iter().filter(|way| !way.is_grpc()) {
        let (address, path, kind) = (victim.address(way), way.path(), way.content_type());
        let head = |more: &str| format!("POST {path} HTTP/1.1\r\nhost: sink\r\ncontent-type: {kind}\r\n{more}\r\n\r\n");
        let endless = head(&format!("{}x: y", "x-y: z\r\n".repeat(200_000)));
        let long = head(&format!("x: {}", "y".repeat(8 << 20)));
        for (name, request, status) in [
            ("a length beyond numbers", head("content-length: 99999999999999999999999"), "400"),
            ("a negative length", head("content-length: -1"), "400"),
            ("two lengths", head("content-length: 3\r\ncontent-length: 4"), "400"),
            ("headers without end", endless, "431"),
            ("a header without end", long, "431"),
        ] {
            let answer = raw(address, request.as_bytes());
            let answer = String::from_utf8_lossy(&answer);
            assert!(
                answer.is_empty() || answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{way:?}, {name}: {answer}"
            );
        }
        // Elastic's bodies are streams: their length is looked at as they come.
        if way != Way::Elastic {
            let answer = raw(address, head("content-length: 1073741824").as_bytes());
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with("HTTP/1.1 413"), "{way:?}: {answer}");
        }
    }
    victim.end();
}

#[test]
fn a_gibibyte_that_keeps_coming_is_cut_off() {
    let victim = Victim::start();
    for way in Way::ALL.into_iter().filter(|way| !way.is_grpc()) {
        let mut stream = TcpStream::connect(victim.address(way)).expect("the sink listens");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
        let (path, kind) = (way.path(), way.content_type());
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: sink\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("the sink reads");
        let chunk = [&b"100000\r\n"[..], &vec![b' '; 1 << 20], b"\r\n"].concat();
        let sent = (0..1_024).take_while(|_| stream.write_all(&chunk).is_ok()).count();
        assert!(sent < 200, "{way:?} took {sent} MiB");
    }
    assert!(victim.end().undecodable >= 7);
}

#[test]
fn those_who_fall_silent_are_told_off() {
    let victim = Victim::start();
    let mut open = Vec::new();
    for way in Way::ALL.into_iter().filter(|way| !way.is_grpc()) {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(victim.address(way)).expect("the sink listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
            let (path, kind) = (way.path(), way.content_type());
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: sink\r\ncontent-type: {kind}\r\ncontent-length: {LARGEST}\r\n\r\n{{"
            );
            stream.write_all(head.as_bytes()).expect("the sink reads");
            open.push((way, stream));
        }
    }
    let all = open.len() as u64;
    for (way, mut stream) in open {
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 408", "{way:?}");
    }
    assert_eq!(victim.end().undecodable, all);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[test]
fn floods_of_http2_are_cut_off() {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const WINDOW: u8 = 8;
    const CONTINUATION: u8 = 9;
    let victim = Victim::start();
    let way = Way::OtlpGrpc;
    let mut block = Vec::new();
    for (name, value) in
        [(":method", "POST"), (":scheme", "http"), (":path", way.path()), ("content-type", "application/grpc")]
    {
        block.extend([&[0, name.len() as u8][..], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat());
    }
    let greeting = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(SETTINGS, 0, 0, &[])].concat();
    let many = |count: u32, one: &dyn Fn(u32) -> Vec<u8>| (0..count).flat_map(one).collect::<Vec<_>>();
    let heads = |number: u32| frame(HEADERS, 4, 2 * number + 1, &block);
    let floods: [(&str, Vec<u8>); 10] = [
        ("pings", many(100_000, &|_| frame(PING, 0, 0, &[0; 8]))),
        ("settings", many(100_000, &|_| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255]))),
        ("empty DATA", [heads(0), many(200_000, &|_| frame(DATA, 0, 1, &[]))].concat()),
        (
            "rapid reset",
            many(100_000, &|number| [heads(number), frame(RESET, 0, 2 * number + 1, &[0, 0, 0, 8])].concat()),
        ),
        ("a header block without end", {
            [frame(HEADERS, 0, 1, &block), many(2_000, &|_| frame(CONTINUATION, 0, 1, &[0; 10_000]))].concat()
        }),
        (
            "empty continuations",
            [frame(HEADERS, 0, 1, &block), many(100_000, &|_| frame(CONTINUATION, 0, 1, &[]))].concat(),
        ),
        ("a window beyond bounds", many(3, &|_| frame(WINDOW, 0, 0, &0x7fff_ffff_u32.to_be_bytes()))),
        ("a frame beyond bounds", frame(DATA, 0, 1, &vec![0; 1 << 20])),
        ("beyond the window", [heads(0), many(4_000, &|_| frame(DATA, 0, 1, &[0; 16_384]))].concat()),
        ("streams without end", many(20_000, &heads)),
    ];
    for (name, flood) in floods {
        let begun = std::time::Instant::now();
        let mut stream = TcpStream::connect(victim.address(way)).expect("the sink listens");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
        stream.set_write_timeout(Some(Duration::from_secs(5))).expect("a socket");
        let mut answers = stream.try_clone().expect("a socket");
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = answers.read_to_end(&mut all);
            all.len()
        });
        let _ = stream.write_all(&greeting).and_then(|()| stream.write_all(&flood));
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let answered = reader.join().expect("a reader");
        assert!(answered < 4 << 20, "{name}: {answered} bytes of answers");
        assert!(begun.elapsed() < PATIENCE, "{name}");
    }
    // Streams that are opened and then left alone cost their head only.
    let mut idle = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(victim.address(way)).expect("the sink listens");
        let opened = [greeting.clone(), many(200, &heads)].concat();
        stream.write_all(&opened).expect("the sink reads");
        idle.push(stream);
    }
    victim.end();
}
