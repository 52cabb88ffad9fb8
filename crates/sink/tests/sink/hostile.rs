//! What a broken or hostile sender may send, each protocol: every case gets the protocol's own clear error and a counter in
//! the summary, the sink stays alive and takes sound spans afterwards, and its memory stays bounded.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ChildStdin;
use std::time::Duration;

use unladen_ledger::summary::{Event, Summary};
use unladen_sink::config::{Config, Protocol};

use crate::child::Process;
use crate::loss::peak_memory;
use crate::payloads::{Adds, Case, Expect, LARGEST, general, particular};
use crate::senders::{Answer, Client, Way};
use crate::support::{PATIENCE, block_on_within, config, listening};

/// Most memory that the sink may have had in the end, KiB. One message may have 16 MiB and a million attributes, each of
/// which is in memory several times on its way to the disk.
const MEMORY: u64 = 256 << 10;

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
        let config = Config { silence_ms: 500, ..listening(config(folder.path()), &Protocol::ALL) };
        let (mut process, stdin) = Process::start(&serde_json::to_string(&config).expect("JSON"));
        let mut events = process.events();
        let Some(Event::Ready { addresses }) = events.next() else { panic!("not ready") };
        let done = std::thread::spawn(move || events.last());
        Self { process, addresses, done, stdin, _folder: folder }
    }

    fn address(&self, way: Way) -> SocketAddr {
        self.addresses[way.protocol().name()]
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
