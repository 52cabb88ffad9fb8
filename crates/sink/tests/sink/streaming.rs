//! Elastic's agents hold a request open and write into it whenever something happened: spans are booked when they come,
//! and acknowledged when the request ends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use unladen_ledger::summary::Event;
use unladen_sink::config::{Config, Protocol};

use crate::senders::{METADATA, elastic_event};
use crate::support::{PATIENCE, Sink, gzip, listening};

const TRACE: &str = "0123456789abcdef0123456789abcdef";

fn sink() -> (Sink, SocketAddr) {
    let sink = Sink::with(|config| Config {
        max_message: 1_000_000,
        silence_ms: 1_000,
        ..listening(config, &[Protocol::Elastic])
    });
    let address = sink.addresses["elastic"];
    (sink, address)
}

/// An intake request that is written piece by piece.
struct Open(TcpStream);

impl Open {
    fn new(address: SocketAddr, encoding: &str) -> Self {
        let mut stream = TcpStream::connect(address).expect("the sink listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let head = format!(
            "POST /intake/v2/events?verbose HTTP/1.1\r\nhost: sink\r\ncontent-type: application/x-ndjson\r\n\
             content-encoding: {encoding}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("the sink reads");
        Self(stream)
    }

    fn write(&mut self, bytes: &[u8]) {
        let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        self.0.write_all(&chunk).expect("the sink reads");
    }

    /// Ends the request; the answer.
    fn end(mut self) -> String {
        self.0.write_all(b"0\r\n\r\n").expect("the sink reads");
        self.answer()
    }

    fn answer(mut self) -> String {
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

/// Waits until the sink has booked that many spans.
fn wait_until_counted(sink: &Sink, spans: u64) {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let event = sink.events.recv_timeout(PATIENCE).expect("a tick");
        if matches!(event, Event::Tick { received, .. } if received == spans) {
            return;
        }
    }
    panic!("{spans} spans are not booked");
}

/// Packs a part of a body; true for the last.
type Pack = Box<dyn FnMut(&[u8], bool) -> Vec<u8>>;

/// A body in every encoding, such that what was written can be read without what follows.
fn flushed(encoding: &str) -> Pack {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    macro_rules! flate {
        ($encoder:expr) => {{
            let mut encoder = Some($encoder);
            Box::new(move |text, is_last| {
                let mut open = encoder.take().expect("not ended");
                open.write_all(text).and_then(|()| open.flush()).expect("writing to memory");
                if is_last {
                    return open.finish().expect("writing to memory");
                }
                let part = std::mem::take(open.get_mut());
                encoder = Some(open);
                part
            })
        }};
    }
    match encoding {
        "gzip" => flate!(GzEncoder::new(Vec::new(), Compression::fast())),
        "deflate" => flate!(ZlibEncoder::new(Vec::new(), Compression::fast())),
        "bare deflate" => flate!(DeflateEncoder::new(Vec::new(), Compression::fast())),
        // A frame each; several make one body.
        "zstd" => Box::new(|text, _| zstd::bulk::compress(text, 1).expect("writing to memory")),
        _ => Box::new(|text, _| text.to_vec()),
    }
}

#[test]
fn spans_are_counted_while_the_request_is_open() {
    for encoding in ["identity", "gzip", "deflate", "bare deflate", "zstd"] {
        let (sink, address) = sink();
        let mut pack = flushed(encoding);
        let mut open = Open::new(address, encoding.trim_start_matches("bare "));
        open.write(&pack(METADATA.as_bytes(), false));
        let first = elastic_event(TRACE, 0);
        // Cut within a line: what is whole is booked, the rest waits for the rest.
        let second = elastic_event(TRACE, 1);
        let (head, tail) = second.split_at(40);
        open.write(&pack(format!("{first}{head}").as_bytes(), false));
        wait_until_counted(&sink, 1);
        open.write(&pack(tail.as_bytes(), false));
        wait_until_counted(&sink, 2);
        // The last line need not end.
        open.write(&pack(elastic_event(TRACE, 2).trim_end().as_bytes(), true));
        let answer = open.end();
        assert!(answer.starts_with("HTTP/1.1 202") && answer.ends_with("{\"accepted\":3}"), "{encoding}: {answer}");
        let (summary, rows) = sink.stop();
        assert_eq!((summary.saved, summary.rejected, summary.undecodable, rows.len()), (3, 0, 0, 3), "{encoding}");
        assert_eq!(summary.by_service["pets"], 3, "{encoding}");
    }
}

#[test]
fn what_came_before_a_break_is_kept_and_said() {
    let (sink, address) = sink();
    let mut broken = Open::new(address, "identity");
    broken.write(format!("{METADATA}{}hello\n", elastic_event(TRACE, 0)).as_bytes());
    wait_until_counted(&sink, 1);
    broken.write(elastic_event(TRACE, 1).as_bytes());
    let answer = broken.end();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("\"accepted\":2"), "{answer}");

    let mut cut = Open::new(address, "gzip");
    let body = gzip(format!("{METADATA}{}", elastic_event(TRACE, 2).repeat(3)).as_bytes());
    cut.write(&body[..body.len() - 4]);
    // Its lines are whole, though what follows them is not.
    let answer = cut.end();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("\"accepted\":3"), "{answer}");
    assert!(answer.contains("cannot be decompressed"), "{answer}");

    let mut large = Open::new(address, "identity");
    large.write(format!("{METADATA}{}", elastic_event(TRACE, 3)).as_bytes());
    wait_until_counted(&sink, 6);
    let _ = large.0.write_all(format!("{:x}\r\n", 2_000_000).as_bytes());
    let _ = large.0.write_all(&vec![b'x'; 2_000_000]);
    let answer = large.answer();
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("\"accepted\":1"), "{answer}");

    let mut silent = Open::new(address, "identity");
    silent.write(format!("{METADATA}{}{{\"span\"", elastic_event(TRACE, 4)).as_bytes());
    let answer = silent.answer();
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("\"accepted\":1"), "{answer}");
    let summary = sink.stop().0;
    assert_eq!((summary.rejected, summary.undecodable), (1, 3));
}

#[test]
fn no_metadata_is_said_at_once() {
    let (sink, address) = sink();
    let mut open = Open::new(address, "identity");
    open.write(elastic_event(TRACE, 0).as_bytes());
    let answer = open.answer();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("the first line is not metadata"), "{answer}");
    let mut large = Open::new(address, "identity");
    large.write(&[&b"{\"metadata\":\""[..], &[b'x'; 100_000], b"\"}\n"].concat());
    let answer = large.answer();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("the metadata is larger than"), "{answer}");
    assert_eq!(sink.stop().0.undecodable, 2);
}

#[test]
fn a_bomb_of_lines_is_refused_and_takes_no_time() {
    let (sink, address) = sink();
    let bomb = gzip(format!("{METADATA}{}", "{}\n".repeat(20_000_000)).as_bytes());
    let begun = Instant::now();
    let mut open = Open::new(address, "gzip");
    let chunk = [format!("{:x}\r\n", bomb.len()).as_bytes(), &bomb].concat();
    // The sink may close before it has everything.
    let _ = open.0.write_all(&chunk);
    let answer = open.answer();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(begun.elapsed() < PATIENCE / 2 + Duration::from_secs(1));
    assert_eq!(sink.stop().0.undecodable, 1);
}
