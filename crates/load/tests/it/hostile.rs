//! Servers that mean harm: every request ends in time and in the class that fits, whatever comes.

use std::time::{Duration, Instant};

use unladen_load::plan::{NamedTest, Plan, Request, Test};

use crate::engine::{closed, open, run};
use crate::server::{Behaviour, Server};

/// How long a request may take here, seconds. What ends by itself has all the time that a busy machine may take.
fn patience(class: &str) -> f64 {
    if class == "timeout" { 0.3 } else { 15.0 }
}

/// The behaviours, with the class in which requests end.
fn hostile() -> Vec<(Behaviour, &'static str)> {
    let no_pause = Duration::ZERO;
    let often = Duration::from_micros(100);
    // In large pieces, so that it is not the writing that takes the time. A few kilobytes are leaked per test.
    let long = |text: &str| &*text.repeat(1000).leak();
    vec![
        (Behaviour::Endless("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "", Duration::from_millis(20)), "timeout"),
        (Behaviour::Endless("HTTP/1.1 200 OK\r\n", "A", Duration::from_millis(5)), "timeout"),
        (Behaviour::Endless("HTTP/1.1 200 OK\r\n", long("A: b\r\n"), no_pause), "protocol"),
        (Behaviour::Endless("HTTP/1.1 200 ", long("O"), no_pause), "protocol"),
        (Behaviour::Endless("", "HTTP/1.1 102 Processing\r\n\r\n", often), "protocol"),
        (Behaviour::Endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", often), "timeout"),
        (
            Behaviour::Endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1", long(";ext=1"), no_pause),
            "protocol",
        ),
        (
            Behaviour::Endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", "x", often),
            "timeout",
        ),
        (Behaviour::Reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"), "protocol"),
        (Behaviour::Reply("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"), "protocol"),
        (Behaviour::Endless("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", "x", often), "timeout"),
        (Behaviour::Endless("HTTP/1.0 200 OK\r\n\r\n", "body without end ", often), "timeout"),
        (
            Behaviour::Reply("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            "protocol",
        ),
        (Behaviour::Reply("HTTP/1.1 101 Switching Protocols\r\n\r\n"), "protocol"),
        (Behaviour::Reset(""), "reset"),
        (Behaviour::Reset("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"), "reset"),
    ]
}

#[test]
fn hostile_answers_end_in_time_and_in_their_class() {
    std::thread::scope(|scope| {
        for (behaviour, class) in hostile() {
            scope.spawn(move || {
                let server = Server::start(behaviour);
                let plan = Plan { timeout_s: patience(class), ..open(&server, 40.0, 4) };
                let begun = Instant::now();
                let outcome = run(&plan);
                assert_eq!((outcome.requests, outcome.errors), (0, 20), "{behaviour:?}");
                // Requests that found no connection free count as unsent; a reset may come before the request is out.
                let fitting: u64 = [class, "unsent"].iter().filter_map(|class| outcome.error_classes.get(*class)).sum();
                assert_eq!(fitting, 20, "{behaviour:?}: {:?}", outcome.error_classes);
                assert!(outcome.error_classes.contains_key(class), "{behaviour:?}: {:?}", outcome.error_classes);
                // Half a second of load and one timeout; a hang is longer.
                assert!(begun.elapsed() < Duration::from_secs(60), "{behaviour:?}");
            });
        }
    });
}

#[test]
fn hostile_answers_do_not_stop_a_closed_loop_nor_one_that_looks_at_them() {
    std::thread::scope(|scope| {
        for (behaviour, class) in hostile() {
            scope.spawn(move || {
                let server = Server::start(behaviour);
                let checks = vec![NamedTest { name: "any".to_owned(), test: Test::BodyContains("unladen".to_owned()) }];
                let requests = vec![Request { checks, ..Request::new("get") }];
                let outcome = run(&Plan { timeout_s: patience(class), requests, ..closed(&server, 2) });
                assert_eq!(outcome.requests, 0, "{behaviour:?}");
                assert!(outcome.error_classes.contains_key(class), "{behaviour:?}: {:?}", outcome.error_classes);
                assert_eq!(outcome.named[0].errors, outcome.errors, "{behaviour:?}");
            });
        }
    });
}
