//! HTTP/2 against servers of others and hostile ones: counts agree on both sides, errors are of their class, nothing hangs.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use unladen_load::LoadError;
use unladen_load::plan::{Check, NamedTest, Pacing, Plan, Protocol, Request, Test, Trace, TraceHeader, Value};
use unladen_trace::index_of;

use crate::engine::{at_once, run};
use crate::h2_server::{CorrectServer, Manner, RawServer, Setup, frame, greet_then};

/// A short plan at a constant rate over HTTP/2.
fn open(url: String, rate: f64, connections: u32, streams: u32) -> Plan {
    Plan {
        pacing: Pacing::Constant { rate },
        protocol: Protocol::Http2,
        connections,
        streams,
        warmup_s: 0.0,
        window_s: 0.5,
        timeout_s: 5.0,
        ..Plan::new(url)
    }
}

fn closed(url: String, connections: u32, streams: u32) -> Plan {
    Plan { pacing: Pacing::Closed, ..open(url, 1.0, connections, streams) }
}

#[test]
fn an_open_loop_sends_exactly_its_schedule() {
    let server = CorrectServer::start(Setup::new(Manner::Good));
    let outcome = run(&open(server.url(), 1000.0, 2, 8));
    assert_eq!((outcome.requests, outcome.errors), (500, 0), "{:?}", outcome.error_classes);
    assert_eq!((server.requests(), server.connections(), outcome.reconnects), (500, 2, 0));
    assert_eq!(outcome.bodies.iter().map(|body| (body.length, body.count)).collect::<Vec<_>>(), [(5, 500)]);
    assert_eq!((outcome.send_lag_us.count, outcome.resent), (500, 0));
    for head in server.heads() {
        assert_eq!((head.method.as_str(), head.uri.to_string()), ("GET", server.url()));
    }
}

#[test]
fn a_closed_loop_keeps_all_streams_busy_and_counts_what_the_server_counts() {
    let server = CorrectServer::start(Setup::new(Manner::Slow(Duration::from_millis(5))));
    let outcome = run(&closed(server.url(), 2, 16));
    assert!(outcome.requests > 32);
    assert_eq!((outcome.requests, outcome.errors), (server.requests(), 0), "{:?}", outcome.error_classes);
    assert_eq!(server.max_concurrent(), 16);
    // Those in flight at the end are answered after it.
    assert!(outcome.requests - outcome.completed_in_window <= 32);
}

#[test]
fn threads_share_the_load() {
    let server = CorrectServer::start(Setup::new(Manner::Good));
    let outcome = run(&Plan { cores: vec![0, 0], ..open(server.url(), 1000.0, 3, 4) });
    assert_eq!((outcome.requests, server.requests(), server.connections()), (500, 500, 3));
}

#[test]
fn the_servers_limit_of_streams_is_kept() {
    let server = CorrectServer::start(Setup { max_streams: 3, ..Setup::new(Manner::Slow(Duration::from_millis(2))) });
    let outcome = run(&closed(server.url(), 1, 50));
    assert_eq!((outcome.requests, outcome.errors, outcome.resent), (server.requests(), 0, 0));
    assert_eq!(server.max_concurrent(), 3);
}

#[test]
fn every_request_carries_its_index() {
    let server = CorrectServer::start(Setup::new(Manner::Good));
    let trace = Trace { header: TraceHeader::W3c, tag: 0xabcd, key: 0x1234_5678_9abc_def0, sampled: 0.3 };
    let outcome = run(&Plan { trace: Some(trace.clone()), ..open(server.url(), 1000.0, 2, 8) });
    let (mut indices, mut flagged) = (BTreeSet::new(), 0);
    for head in server.heads() {
        let value = head.headers["traceparent"].to_str().expect("ascii").to_owned();
        assert!(value.starts_with("00-000000000000abcd"), "{value}");
        let index = index_of(u64::from_str_radix(&value[19..35], 16).expect("hex"), trace.key);
        assert!(indices.insert(index), "request {index} came twice");
        assert_eq!(value.ends_with("-01"), trace.is_sampled(index));
        flagged += u64::from(value.ends_with("-01"));
    }
    assert_eq!(indices, (0..500).collect());
    assert_eq!(outcome.sampled_total, flagged);
}

#[test]
fn alternatives_and_values_are_sent_and_counted_by_name() {
    let server = CorrectServer::start(Setup::new(Manner::CountBody));
    let mut plan = open(server.url(), 1000.0, 2, 8);
    let read = Request { path: Some("/item/{{id}}".to_owned()), weight: 3.0, ..Request::new("read") };
    let write = Request { method: "POST".to_owned(), body: Some("{{text}}".to_owned()), ..Request::new("write") };
    plan.requests = vec![read, write];
    plan.values.insert("id".to_owned(), Value::Counter { from: 0 });
    plan.values.insert("text".to_owned(), Value::Text { length: 100 });
    let trace = Trace { header: TraceHeader::W3c, tag: 7, key: 9, sampled: 1.0 };
    plan.trace = Some(trace.clone());
    let outcome = run(&plan);
    assert_eq!((outcome.requests, outcome.errors), (500, 0), "{:?}", outcome.error_classes);
    let (mut reads, mut writes) = (0, 0);
    for head in server.heads() {
        let value = head.headers["traceparent"].to_str().expect("ascii");
        let index = index_of(u64::from_str_radix(&value[19..35], 16).expect("hex"), trace.key);
        match head.method.as_str() {
            "GET" => {
                assert_eq!(head.uri.path(), format!("/item/{index}"), "values belong to the iteration");
                reads += 1;
            }
            _ => {
                assert_eq!((head.uri.path(), head.headers["content-length"].as_bytes()), ("/resource", &b"100"[..]));
                writes += 1;
            }
        }
    }
    let named: Vec<_> = outcome.named.iter().map(|named| (named.name.as_str(), named.requests, named.errors)).collect();
    assert_eq!(named, [("read", reads, 0), ("write", writes, 0)]);
    assert!((320..430).contains(&reads), "three in four: {reads} of 500");
    // "0" for what has no body, "100" for what has.
    let bodies: std::collections::BTreeMap<u64, u64> =
        outcome.bodies.iter().map(|body| (body.length, body.count)).collect();
    assert_eq!(bodies.into_iter().collect::<Vec<_>>(), [(1, reads), (3, writes)]);
}

#[test]
fn what_http2_cannot_do_is_refused() {
    let good = open("http://127.0.0.1:9/".to_owned(), 10.0, 1, 1);
    let users = Pacing::Users { from: 5.0, stages: Vec::new(), think_s: 0.0, rate: None };
    let unknown = NamedTest { name: "it".to_owned(), test: Test::GrpcStatus("FOUND".to_owned()) };
    for plan in [
        // Four streams for five users.
        Plan { pacing: users, connections: 2, streams: 2, ..good.clone() },
        Plan { streams: 0, ..good.clone() },
    ] {
        let error = unladen_load::run(&plan, &mut |_| {}, &std::sync::atomic::AtomicBool::new(false));
        assert!(matches!(error, Err(LoadError::Plan { .. })), "{error:?}");
    }
    let plan = Plan { requests: vec![Request { checks: vec![unknown], ..Request::new("a") }], ..good };
    let error = unladen_load::run(&plan, &mut |_| {}, &std::sync::atomic::AtomicBool::new(false));
    assert!(matches!(error, Err(LoadError::Grpc { .. })), "{error:?}");
}

#[test]
fn bodies_of_any_size_arrive_whatever_the_windows() {
    at_once(
        [(10, 65_535), (10_000, 65_535), (300_000, 65_535), (300_000, 1_000), (70_000, 16), (1_000_000, 1 << 20)],
        |(size, window)| {
            let server = CorrectServer::start(Setup { window, ..Setup::new(Manner::CountBody) });
            let mut plan = open(server.url(), 40.0, 1, 10);
            (plan.method, plan.body) = ("POST".to_owned(), Some("x".repeat(size)));
            plan.check.length = Some(size.to_string().len() as u64);
            // Long enough for bytes that are sent late to be sent in the window.
            (plan.timeout_s, plan.window_s, plan.limit) = (20.0, 600.0, Some(20));
            let outcome = run(&plan);
            assert_eq!((outcome.requests, outcome.errors), (20, 0), "{size} {window}: {:?}", outcome.error_classes);
            assert_eq!(outcome.bodies.len(), 1, "every body had the same length");
            assert!(outcome.bytes_sent as usize >= 19 * size, "{}", outcome.bytes_sent);
        },
    );
}

#[test]
fn answers_of_any_size_arrive() {
    // Together more than the connection's window of 64 MiB.
    let server = CorrectServer::start(Setup::new(Manner::Large(9_000_000)));
    let outcome = run(&Plan { timeout_s: 30.0, ..open(server.url(), 20.0, 1, 10) });
    assert_eq!((outcome.requests, outcome.errors), (10, 0), "{:?}", outcome.error_classes);
    assert_eq!(outcome.bodies.iter().map(|body| (body.length, body.count)).collect::<Vec<_>>(), [(9_000_000, 10)]);
}

#[test]
fn trailers_end_an_answer_and_checks_are_heeded() {
    let server = CorrectServer::start(Setup::new(Manner::Trailers));
    let mut plan = open(server.url(), 100.0, 1, 4);
    assert_eq!(run(&plan).requests, 50);
    plan.check = Check { status: Some(201), length: None };
    assert_eq!(run(&plan).error_classes.into_iter().collect::<Vec<_>>(), [("status".to_owned(), 50)]);
}

#[test]
fn a_server_that_goes_away_costs_reconnects_and_no_request() {
    let server = CorrectServer::start(Setup::new(Manner::GoAwayAfter(7)));
    let outcome = run(&open(server.url(), 400.0, 2, 4));
    assert_eq!((outcome.requests, outcome.errors), (200, 0), "{:?}", outcome.error_classes);
    assert!(outcome.reconnects >= 200 / 16, "{}", outcome.reconnects);
    assert_eq!(server.connections(), 2 + outcome.reconnects);
    let outcome = run(&closed(server.url(), 2, 8));
    assert!(outcome.requests > 50 && outcome.errors == 0, "{:?}", outcome.error_classes);
}

#[test]
fn refused_requests_are_tried_again_a_few_times_and_reset_ones_fail() {
    let server = CorrectServer::start(Setup::new(Manner::Reset(h2::Reason::INTERNAL_ERROR)));
    let outcome = run(&open(server.url(), 100.0, 1, 4));
    assert_eq!(outcome.error_classes.into_iter().collect::<Vec<_>>(), [("reset".to_owned(), 50)]);
    assert_eq!((server.requests(), server.connections(), outcome.resent), (50, 1, 0));
    let server = CorrectServer::start(Setup::new(Manner::Reset(h2::Reason::REFUSED_STREAM)));
    let outcome = run(&open(server.url(), 100.0, 1, 4));
    assert_eq!(outcome.error_classes.into_iter().collect::<Vec<_>>(), [("reset".to_owned(), 50)]);
    assert_eq!((server.requests(), outcome.resent), (200, 150), "each once and three times more");
}

#[test]
fn latency_counts_from_the_due_time_when_streams_are_short() {
    // Two streams, 20 ms an answer: 100 a second at most, 200 a second wanted.
    let server = CorrectServer::start(Setup::new(Manner::Slow(Duration::from_millis(20))));
    let outcome = run(&open(server.url(), 200.0, 1, 2));
    assert_eq!((outcome.requests, outcome.errors, server.requests()), (100, 0, 100));
    assert!(outcome.latency_us.max >= 500e3, "{}", outcome.latency_us.max);
    assert!(outcome.send_lag_us.max >= 480e3, "{}", outcome.send_lag_us.max);
    assert!(outcome.queued >= 90, "{}", outcome.queued);
    assert!(outcome.service_time_us.p50 >= 20e3 && outcome.service_time_us.p50 < 200e3);
}

#[test]
fn requests_without_an_answer_time_out_and_are_cancelled() {
    let server = CorrectServer::start(Setup::new(Manner::Silent));
    let outcome = run(&Plan { timeout_s: 0.3, ..open(server.url(), 40.0, 2, 2) });
    assert_eq!((outcome.requests, outcome.errors), (0, 20));
    assert!(outcome.error_classes["timeout"] >= 4, "{:?}", outcome.error_classes);
}

/// A head with status 200 from the static table.
const OK: u8 = 0x88;
/// Flags.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Every way to break the rules ends the connection or the stream, in the class that fits; nothing hangs.
#[test]
fn hostile_servers_are_classified() {
    type Say = fn(&mut TcpStream) -> std::io::Result<()>;
    let cases: [(&str, Say, &str); 24] = [
        ("garbage", |s| greet_then(s, &[0xff; 100]), "protocol"),
        ("frame too large", |s| greet_then(s, &frame(0, 0, 1, &vec![0; 16_385])), "protocol"),
        ("data before the head", |s| greet_then(s, &frame(0, 0, 1, b"x")), "protocol"),
        ("data on an idle stream", |s| greet_then(s, &frame(0, 0, 99_999, b"x")), "protocol"),
        ("head on an even stream", |s| greet_then(s, &frame(1, 5, 2, &[OK])), "protocol"),
        ("head on stream 0", |s| greet_then(s, &frame(1, 5, 0, &[OK])), "protocol"),
        ("push", |s| greet_then(s, &frame(5, 4, 1, &[0, 0, 0, 2, OK])), "protocol"),
        ("settings of a wrong size", |s| greet_then(s, &frame(4, 0, 0, &[0; 5])), "protocol"),
        ("settings on a stream", |s| greet_then(s, &frame(4, 0, 1, &[])), "protocol"),
        ("a window of 2^31", |s| greet_then(s, &frame(4, 0, 0, &[0, 4, 0x80, 0, 0, 0])), "protocol"),
        ("a frame size of 0", |s| greet_then(s, &frame(4, 0, 0, &[0, 5, 0, 0, 0, 0])), "protocol"),
        ("pushes allowed", |s| greet_then(s, &frame(4, 0, 0, &[0, 2, 0, 0, 0, 1])), "protocol"),
        ("window overflow", |s| greet_then(s, &frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff])), "protocol"),
        ("window overflow of a stream", |s| greet_then(s, &frame(8, 0, 1, &[0x7f, 0xff, 0xff, 0xff])), "protocol"),
        ("window of nothing", |s| greet_then(s, &frame(8, 0, 0, &[0; 4])), "protocol"),
        ("padding without end", |s| greet_then(s, &frame(1, 0xd, 1, &[200, OK])), "protocol"),
        ("ping of a wrong size", |s| greet_then(s, &frame(6, 0, 0, &[0; 7])), "protocol"),
        ("broken header block", |s| greet_then(s, &frame(1, 5, 1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff])), "protocol"),
        ("no status", |s| greet_then(s, &frame(1, 5, 1, b"\0\x01x\x01y")), "protocol"),
        (
            "interrupted block",
            |s| greet_then(s, &[frame(1, 1, 1, &[OK]), frame(6, 0, 0, &[0; 8])].concat()),
            "protocol",
        ),
        (
            "a wrong length",
            |s| greet_then(s, &[frame(1, 4, 1, b"\x88\x0f\x0d\x015"), frame(0, 1, 1, b"hell")].concat()),
            "protocol",
        ),
        (
            "the end in a block",
            |s| {
                greet_then(s, &frame(1, END_STREAM, 1, &[OK]))?;
                s.shutdown(std::net::Shutdown::Both)
            },
            "reset",
        ),
        ("never an end", |s| greet_then(s, &frame(1, END_HEADERS, 1, &[OK])), "timeout"),
        ("half a frame", |s| greet_then(s, &frame(1, 5, 1, &[OK])[..9]), "timeout"),
    ];
    at_once(cases, |(name, say, class)| {
        let server = RawServer::start(say);
        let outcome = run(&Plan { timeout_s: 0.4, ..open(server.url(), 40.0, 2, 2) });
        assert_eq!((outcome.requests, outcome.errors), (0, 20), "{name}");
        let found: u64 = [class, "unsent", "reset", "timeout"]
            .iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .filter_map(|class| outcome.error_classes.get(*class))
            .sum();
        assert_eq!(found, 20, "{name}: {:?}", outcome.error_classes);
        assert!(outcome.error_classes.contains_key(class), "{name}: {:?}", outcome.error_classes);
    });
}

/// Floods end the connection before they cost memory or the other requests.
#[test]
fn floods_are_cut_off() {
    type Say = fn(&mut TcpStream) -> std::io::Result<()>;
    let cases: [(&str, Say); 7] = [
        ("ping", |s| greet_then(s, &frame(6, 0, 0, &[0; 8]).repeat(50_000))),
        ("settings", |s| greet_then(s, &frame(4, 0, 0, &[]).repeat(50_000))),
        ("empty data", |s| {
            greet_then(s, &[frame(1, END_HEADERS, 1, &[OK]), frame(0, 0, 1, &[]).repeat(50_000)].concat())
        }),
        ("unknown frames", |s| greet_then(s, &frame(0xee, 0, 1, &[]).repeat(50_000))),
        ("continuation", |s| greet_then(s, &[frame(1, 0, 1, &[OK]), frame(9, 0, 1, &[]).repeat(50_000)].concat())),
        ("endless head", |s| {
            greet_then(s, &[frame(1, 0, 1, &[OK]), frame(9, 0, 1, &[OK; 16_384]).repeat(100)].concat())
        }),
        ("bomb", |s| {
            // One entry of 4 KiB, referred to 16,000 times.
            let mut entry = vec![OK, 0x40, 1, b'a', 0x7f, 0xa1, 0x1e];
            entry.extend_from_slice(&[b'x'; 4000]);
            greet_then(s, &[frame(1, 0, 1, &entry), frame(9, END_HEADERS, 1, &[0xbe; 16_000])].concat())
        }),
    ];
    at_once(cases, |(name, say)| {
        let server = RawServer::start(say);
        let outcome = run(&Plan { timeout_s: 3.0, ..open(server.url(), 20.0, 1, 4) });
        assert_eq!((outcome.requests, outcome.errors), (0, 10), "{name}");
        assert!(
            outcome.error_classes.get("protocol").is_some_and(|&count| count >= 5),
            "{name}: {:?}",
            outcome.error_classes
        );
    });
}

#[test]
fn a_server_that_goes_away_at_once_is_not_asked_in_a_tight_loop() {
    // It has processed nothing, it says, so requests may be sent again; their patience ends that.
    let server = RawServer::start(|stream| greet_then(stream, &frame(7, 0, 0, &[0; 8])));
    let outcome = run(&Plan { timeout_s: 0.4, ..open(server.url(), 40.0, 2, 2) });
    assert_eq!((outcome.requests, outcome.errors), (0, 20), "{:?}", outcome.error_classes);
    let found: u64 =
        ["timeout", "unsent", "connect"].iter().filter_map(|class| outcome.error_classes.get(*class)).sum();
    assert_eq!(found, 20, "{:?}", outcome.error_classes);
    // Two connections, each at most once in 10 ms for about a second; far more would be a tight loop.
    assert!(outcome.reconnects > 0 && outcome.reconnects < 1_000, "{}", outcome.reconnects);
}

#[test]
fn a_body_that_the_server_gives_no_window_for_ends_with_the_patience() {
    let server = RawServer::start(|stream| greet_then(stream, &[]));
    let mut plan = Plan { timeout_s: 0.4, ..open(server.url(), 40.0, 2, 2) };
    (plan.method, plan.body) = ("POST".to_owned(), Some("x".repeat(300_000)));
    let outcome = run(&plan);
    assert_eq!((outcome.requests, outcome.errors), (0, 20), "{:?}", outcome.error_classes);
    assert!(outcome.error_classes.get("timeout").is_some_and(|&count| count >= 4), "{:?}", outcome.error_classes);
    // The first window of each connection, and no more, however often it was replaced.
    assert!(outcome.bytes_sent <= (2 + outcome.reconnects) * 70_000, "{}", outcome.bytes_sent);
}

#[test]
fn more_than_the_window_is_refused() {
    // 16 MiB are the window of a stream.
    let server = RawServer::start(|stream| {
        greet_then(stream, &frame(1, END_HEADERS, 1, &[OK]))?;
        let part = frame(0, 0, 1, &[b'x'; 16_384]);
        // The client grants more as it reads, so this is no overflow; it must not end in an error or an endless answer either.
        for _ in 0..1100 {
            stream.write_all(&part)?;
        }
        stream.write_all(&frame(0, END_STREAM, 1, b""))
    });
    let plan = Plan { window_s: 0.05, timeout_s: 20.0, ..open(server.url(), 20.0, 1, 1) };
    let outcome = run(&plan);
    assert_eq!(outcome.requests, 1, "{:?}", outcome.error_classes);
    assert_eq!(outcome.bodies[0].length, 1100 * 16_384);
}

#[test]
fn a_server_of_another_protocol_is_named() {
    for say in [
        |stream: &mut TcpStream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
        |stream: &mut TcpStream| stream.shutdown(std::net::Shutdown::Both),
    ] {
        let server = RawServer::start(say);
        let plan = Plan { timeout_s: 1.0, ..open(server.url(), 10.0, 2, 1) };
        let error =
            unladen_load::run(&plan, &mut |_| {}, &std::sync::atomic::AtomicBool::new(false)).expect_err("not HTTP/2");
        assert!(matches!(error, LoadError::Handshake { .. }), "{error}");
    }
}
