//! The engine against a real server in this process: counts agree on both sides, whatever the server does.
//!
//! Times are compared with bounds that hold on a busy machine with two cores; where a bound is about time it says how it
//! was chosen. Everything else is exact.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use unladen_load::LoadError;
use unladen_load::outcome::{Event, Outcome};
use unladen_load::plan::{Check, Order, Pacing, Plan, Trace, TraceHeader};
use unladen_trace::index_of;

use crate::server::{Behaviour, GOOD, Server};

/// A short plan at a constant rate: no warm-up, a window of half a second.
pub(crate) fn open(server: &Server, rate: f64, connections: u32) -> Plan {
    Plan {
        pacing: Pacing::Constant { rate },
        connections,
        warmup_s: 0.0,
        window_s: 0.5,
        timeout_s: 5.0,
        ..Plan::new(server.url())
    }
}

/// A short plan in a closed loop.
pub(crate) fn closed(server: &Server, connections: u32) -> Plan {
    Plan { pacing: Pacing::Closed, ..open(server, 1.0, connections) }
}

pub(crate) fn run(plan: &Plan) -> Outcome {
    let outcome =
        unladen_load::run(plan, &mut |_| {}, &AtomicBool::new(false)).expect("the server listens, so the load runs");
    // Holds for every load, whatever the server does.
    assert_eq!(outcome.seconds.iter().map(|second| second.sent).sum::<u64>(), outcome.sent_total);
    assert_eq!(outcome.seconds.iter().map(|second| second.answered).sum::<u64>(), outcome.answered_total);
    assert_eq!(outcome.seconds.iter().map(|second| second.sampled).sum::<u64>(), outcome.sampled_total);
    assert_eq!(outcome.errors, outcome.error_classes.values().sum::<u64>());
    assert_eq!(outcome.latency_us.count, outcome.requests);
    if plan.order == Order::Sequence || plan.redirects > 0 {
        // Steps get their index when they are sent, which may be a second after they were due.
        return outcome;
    }
    let mut next = 0;
    for second in &outcome.seconds {
        assert_eq!(second.first_index, next, "indices are dense");
        next += second.sent;
    }
    outcome
}

/// Runs the cases side by side: they mostly wait.
pub(crate) fn at_once<T: Send, const N: usize>(cases: [T; N], check: impl Fn(T) + Sync) {
    let check = &check;
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || check(case));
        }
    });
}

#[test]
fn an_open_loop_sends_exactly_its_schedule() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let mut plan = open(&server, 400.0, 4);
    plan.warmup_s = 0.25;
    let outcome = run(&plan);
    assert_eq!((outcome.requests, outcome.errors), (200, 0));
    assert_eq!((outcome.sent_total, outcome.answered_total, server.requests()), (300, 300, 300));
    assert_eq!(server.connections(), 4);
    assert_eq!(outcome.statuses.into_iter().collect::<Vec<_>>(), [(200, 200)]);
    assert_eq!(outcome.bodies.iter().map(|body| (body.length, body.count)).collect::<Vec<_>>(), [(5, 200)]);
    assert_eq!((outcome.other_bodies, outcome.reconnects, outcome.unanswered), (0, 0, 0));
    assert_eq!(outcome.target_rate, Some(400.0));
    assert_eq!(outcome.send_lag_us.count, 200);
    assert!((outcome.duration_s - 0.5).abs() < 1e-9);
    assert!(!outcome.interrupted && outcome.cpu_us_per_request > 0.0);
}

#[test]
fn a_closed_loop_counts_what_the_server_counts() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let outcome = run(&closed(&server, 4));
    assert!(outcome.requests > 0);
    assert_eq!((outcome.sent_total, outcome.answered_total), (server.requests(), server.requests()));
    assert_eq!((outcome.requests, outcome.errors, outcome.target_rate), (server.requests(), 0, None));
    // Those in flight at the end are answered after it, at most one per connection.
    assert!(outcome.requests - outcome.completed_in_window <= 4);
}

#[test]
fn threads_share_the_schedule_and_the_counter() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let cores = vec![0, 0, 0];
    let outcome = run(&Plan { cores: cores.clone(), ..open(&server, 500.0, 4) });
    assert_eq!((outcome.requests, outcome.sent_total, server.requests()), (250, 250, 250));
    let outcome = run(&Plan { cores, ..closed(&server, 5) });
    assert_eq!(outcome.sent_total, server.requests() - 250);
}

#[test]
fn every_request_carries_its_index_and_the_sampled_share_is_exact() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let trace = Trace { header: TraceHeader::W3c, tag: 0xabcd, key: 0x1234_5678_9abc_def0, sampled: 0.3 };
    let outcome = run(&Plan { trace: Some(trace.clone()), ..open(&server, 1000.0, 8) });
    let mut indices = BTreeSet::new();
    let mut flagged = 0;
    for head in server.heads() {
        let value = head.lines().find_map(|line| line.strip_prefix("traceparent: ")).expect("every request has one");
        assert!(value.starts_with("00-000000000000abcd"), "{value}");
        let index = index_of(u64::from_str_radix(&value[19..35], 16).expect("hex"), trace.key);
        assert!(indices.insert(index), "request {index} came twice");
        assert_eq!(value.ends_with("-01"), trace.is_sampled(index));
        flagged += u64::from(value.ends_with("-01"));
    }
    assert_eq!(indices, (0..500).collect());
    assert_eq!(outcome.sampled_total, flagged);
    assert!((100..200).contains(&flagged), "the ids are fixed: about 150 of 500, {flagged}");
}

#[test]
fn a_body_is_sent_and_the_plan_is_checked() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let mut plan = open(&server, 100.0, 2);
    (plan.method, plan.body) = ("POST".to_owned(), Some("x".repeat(10_000)));
    assert_eq!(run(&plan).requests, 50);
    assert_eq!(server.requests(), 50);
    plan.check = Check { status: Some(201), length: None };
    assert_eq!(run(&plan).error_classes.into_iter().collect::<Vec<_>>(), [("status".to_owned(), 50)]);
    plan.check = Check { status: None, length: Some(6) };
    assert_eq!(run(&plan).error_classes.into_iter().collect::<Vec<_>>(), [("length".to_owned(), 50)]);
}

/// Polite servers of all kinds: everything is answered well.
#[test]
fn answers_of_every_shape_are_understood() {
    at_once(
        [
            Behaviour::Pieces("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 9, Duration::from_millis(1)),
            Behaviour::Reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            Behaviour::Pieces(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
                7,
                Duration::from_micros(100),
            ),
            Behaviour::Reply("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
            Behaviour::ReplyThenClose("HTTP/1.0 200 OK\r\n\r\nhello"),
            Behaviour::ReplyThenClose("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"),
            Behaviour::CloseAfter(7),
        ],
        |behaviour| {
            let server = Server::start(behaviour);
            let outcome = run(&open(&server, 100.0, 4));
            assert_eq!((outcome.requests, outcome.errors), (50, 0), "{behaviour:?}: {:?}", outcome.error_classes);
            assert_eq!(server.requests(), 50, "{behaviour:?}");
            assert_eq!(outcome.bodies.iter().map(|body| (body.length, body.count)).collect::<Vec<_>>(), [(5, 50)]);
            // Whoever closes is connected to again, and every connection is on the books.
            assert_eq!(server.connections(), 4 + outcome.reconnects, "{behaviour:?}");
        },
    );
}

#[test]
fn a_closed_loop_survives_servers_that_close() {
    let server = Server::start(Behaviour::CloseAfter(3));
    let outcome = run(&closed(&server, 4));
    assert!(outcome.requests > 12, "{}", outcome.requests);
    assert_eq!((outcome.requests, outcome.errors), (server.requests(), 0));
    assert_eq!(server.connections(), 4 + outcome.reconnects);
}

#[test]
fn large_answers_are_read_as_they_come() {
    let server = Server::start(Behaviour::Large(3_000_000));
    let outcome = run(&open(&server, 20.0, 2));
    assert_eq!((outcome.requests, outcome.errors), (10, 0));
    assert_eq!(outcome.bodies.iter().map(|body| (body.length, body.count)).collect::<Vec<_>>(), [(3_000_000, 10)]);
}

/// Impolite servers: every request fails in the class that fits, none hangs, none is lost.
#[test]
fn what_is_no_answer_is_an_error_of_its_class() {
    at_once(
        [
            (Behaviour::Reply("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), "status"),
            (Behaviour::Reply("SSH-2.0-OpenSSH_9.9\r\n"), "protocol"),
            (Behaviour::Reply("\0\u{1}\u{2}garbage without end\n\n"), "protocol"),
            (Behaviour::Reply("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello"), "protocol"),
            (Behaviour::Reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "protocol"),
            (Behaviour::ReplyThenClose("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), "reset"),
            (Behaviour::ReplyThenClose("HTTP/1.1 200"), "reset"),
            (Behaviour::ReplyThenClose(""), "reset"),
            (Behaviour::Reply("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello"), "timeout"),
            (Behaviour::Silent, "timeout"),
        ],
        |(behaviour, class)| {
            let server = Server::start(behaviour);
            let mut plan = open(&server, 40.0, 4);
            // Any answer comes within a fraction of this, on any machine that can run the test at all.
            plan.timeout_s = 0.4;
            let outcome = run(&plan);
            assert_eq!((outcome.requests, outcome.errors), (0, 20), "{behaviour:?}");
            let fitting: u64 = outcome.error_classes.get(class).copied().unwrap_or(0)
                + outcome.error_classes.get("unsent").copied().unwrap_or(0);
            assert_eq!(fitting, 20, "{behaviour:?}: {:?}", outcome.error_classes);
            assert!(outcome.error_classes.contains_key(class), "{behaviour:?}");
        },
    );
}

#[test]
fn a_server_that_closes_without_a_word_costs_at_most_the_requests_it_hit() {
    let server = Server::start(Behaviour::CloseSilentlyAfter(5));
    let outcome = run(&open(&server, 200.0, 2));
    // A request sent before the end was noticed is lost; the others are answered, and all are accounted for.
    assert_eq!(outcome.requests + outcome.errors, 100);
    assert!(outcome.requests >= 80, "{}", outcome.requests);
    assert_eq!(outcome.errors, outcome.error_classes.get("reset").copied().unwrap_or(0));
}

#[test]
fn a_server_that_goes_away_makes_connect_errors() {
    let server = Server::start(Behaviour::CloseAfter(1));
    let plan = Plan { window_s: 1.0, ..open(&server, 50.0, 1) };
    let holder = std::sync::Mutex::new(Some(server));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            holder.lock().expect("not poisoned").take();
        });
        run(&plan)
    });
    assert_eq!(outcome.requests + outcome.errors, 50);
    assert!(outcome.requests > 0 && outcome.error_classes["connect"] > 0, "{:?}", outcome.error_classes);
}

#[test]
fn nobody_listening_is_an_error_that_says_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let plan = Plan::new(format!("http://{address}/"));
    let error = unladen_load::run(&plan, &mut |_| {}, &AtomicBool::new(false)).expect_err("nobody listens");
    assert!(matches!(error, LoadError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let good = Plan::new("http://127.0.0.1:9/");
    for plan in [
        Plan { connections: 0, ..good.clone() },
        Plan { pacing: Pacing::Constant { rate: 0.0 }, ..good.clone() },
        Plan { pacing: Pacing::Constant { rate: f64::NAN }, ..good.clone() },
        Plan { window_s: 0.0, ..good.clone() },
        Plan { window_s: f64::INFINITY, ..good.clone() },
        Plan { warmup_s: -1.0, ..good.clone() },
        Plan { timeout_s: 0.0, ..good.clone() },
        Plan { slot_us: Some(-1.0), ..good.clone() },
    ] {
        let error = unladen_load::run(&plan, &mut |_| {}, &AtomicBool::new(false)).expect_err("refused");
        assert!(matches!(error, LoadError::Plan { .. }), "{error}");
    }
    let plan = Plan { start_at_ns: Some(1), ..Plan::new(Server::start(Behaviour::Reply(GOOD)).url()) };
    let error = unladen_load::run(&plan, &mut |_| {}, &AtomicBool::new(false)).expect_err("long ago");
    assert!(matches!(error, LoadError::StartPassed { .. } | LoadError::Connect { .. }), "{error}");
}

#[test]
fn requests_queue_for_a_connection_and_their_latency_counts_from_the_due_time() {
    // One connection, 20 ms an answer: 50 a second at most, 100 a second wanted. The last of 50 requests is due at 490 ms
    // and answered at 50 × 20 = 1,000 ms or later: lag and latency grow to 490 ms at least, the service time stays.
    let server = Server::start(Behaviour::Slow(Duration::from_millis(20)));
    let outcome = run(&open(&server, 100.0, 1));
    assert_eq!((outcome.requests, outcome.errors, server.requests()), (50, 0, 50));
    assert!(outcome.latency_us.max >= 500e3, "{}", outcome.latency_us.max);
    assert!(outcome.send_lag_us.max >= 480e3, "{}", outcome.send_lag_us.max);
    assert!(outcome.queued >= 45, "all but the first ones found the connection busy: {}", outcome.queued);
    assert!(outcome.service_time_us.p50 >= 20e3 && outcome.service_time_us.p50 < 200e3);
    assert!(outcome.completed_in_window <= 25, "only 25 fit into the window: {}", outcome.completed_in_window);
}

#[test]
fn a_stall_of_the_server_is_not_omitted() {
    // Frozen for the first 200 ms of every second, evenly spaced arrivals: a request that comes at x ms of the freeze waits
    // 200 - x, so the share with more than t ms is (200 - t) / 1000: p90 = 100 ms, p99 = 190 ms. A generator that leaves
    // out what it did not send shows below 5 ms at 8 connections. The upper bounds leave room for a machine that is
    // busy for tens of milliseconds; the lower ones cannot be missed by being slow.
    let server = Server::start(Behaviour::Frozen);
    let outcome = run(&Plan { window_s: 3.0, ..open(&server, 1000.0, 8) });
    assert_eq!((outcome.requests, outcome.errors), (3000, 0));
    let (p90, p99) = (outcome.latency_us.p90 / 1e3, outcome.latency_us.p99 / 1e3);
    assert!((90.0..180.0).contains(&p90), "p90 {p90} ms");
    assert!((180.0..300.0).contains(&p99), "p99 {p99} ms");
    // 1000 a second on 8 connections: nearly all of the 200 requests due in a freeze find no connection free.
    assert!(outcome.queued >= 500, "{}", outcome.queued);
    // The omission that others report: eight requests per freeze waited after they were sent.
    assert!(outcome.service_time_us.p90 < outcome.latency_us.p90);
}

#[test]
fn stopping_ends_the_window_and_delivers_the_outcome() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let plan = Plan { window_s: 60.0, ..open(&server, 200.0, 2) };
    let stop = AtomicBool::new(false);
    let mut events = Vec::new();
    let outcome = unladen_load::run(
        &plan,
        &mut |event| {
            if matches!(event, Event::Second(_)) {
                stop.store(true, Ordering::Relaxed);
            }
            events.push(event);
        },
        &stop,
    )
    .expect("the load runs");
    assert!(outcome.interrupted);
    // Stopped after the first second; the bound is that the 60 are not waited for.
    assert!((1.0..20.0).contains(&outcome.duration_s), "{}", outcome.duration_s);
    assert_eq!((outcome.requests, outcome.errors, outcome.unanswered), (server.requests(), 0, 0));
    assert_eq!(events[0], Event::Ready);
    let Event::Second(second) = &events[1] else { panic!("a second has passed: {:?}", events[1]) };
    assert_eq!((second.second, second.first_index), (0, 0));
    assert!(second.sent <= 200 && second.answered > 0);
}

#[test]
fn a_load_starts_when_the_plan_says() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let at = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64 + 300_000_000;
    let outcome = run(&Plan { start_at_ns: Some(at), warmup_s: 0.1, ..open(&server, 100.0, 1) });
    assert_eq!((outcome.window_start_ns, outcome.window_end_ns), (at + 100_000_000, at + 600_000_000));
    assert_eq!(outcome.requests, 50);
}

#[test]
fn the_histograms_are_written_where_the_plan_says() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = run(&Plan { out: Some(folder.path().to_owned()), ..open(&server, 100.0, 1) });
    let read = unladen_load::histogram::read(&folder.path().join("latency.hdr")).expect("readable");
    assert_eq!(
        read.iter().map(|(tag, _)| tag.as_str()).collect::<Vec<_>>(),
        ["latency", "service_time", "send_lag", "lateness"]
    );
    assert_eq!(read[0].1.len(), outcome.requests);
    assert!((read[0].1.value_at_quantile(0.99) as f64 / 1e3 - outcome.latency_us.p99).abs() < 1e-9);
}
