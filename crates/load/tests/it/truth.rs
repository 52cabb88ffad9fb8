//! What a load says about itself: rows by name and second, its own lateness apart from waits for connections, Little's law, and
//! reasons to doubt it.

use std::time::Duration;

use unladen_load::plan::{Check, Plan, Protocol, Request, Test, Until};
use unladen_load::warning::LoadWarning;

use crate::engine::{closed, open, run};
use crate::h2_server::{CorrectServer, Manner, Setup};
use crate::server::{Behaviour, GOOD, Server};

#[test]
fn every_request_is_in_the_row_of_its_name_and_second() {
    let http1 = Server::start(Behaviour::By(|head, _| match head.split(' ').nth(1) {
        Some("/bad") => "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => GOOD.to_owned(),
    }));
    let http2 = CorrectServer::start(Setup::new(Manner::By(|path, _| match path {
        "/bad" => (500, None, String::new()),
        _ => (200, None, "hello".to_owned()),
    })));
    let request = |name: &str| Request { path: Some(format!("/{name}")), ..Request::new(name) };
    let requests = vec![Request { weight: 3.0, ..request("good") }, request("bad")];
    let plan = Plan { requests, warmup_s: 0.5, window_s: 2.0, cores: vec![0, 0], ..open(&http1, 400.0, 4) };
    let over_http2 = Plan { url: http2.url(), protocol: Protocol::Http2, streams: 4, ..plan.clone() };
    for plan in [plan, over_http2] {
        let outcome = run(&plan);
        assert_eq!(outcome.requests + outcome.errors, 800, "{:?}", outcome.error_classes);
        let rows = |at: usize| &outcome.named[at].seconds;
        for second in &outcome.seconds {
            let here: Vec<_> =
                (0..2).flat_map(|at| rows(at).iter().filter(|row| row.second == second.second)).collect();
            assert_eq!(here.iter().map(|row| row.requests + row.errors).sum::<u64>(), second.sent);
            assert_eq!(here.iter().map(|row| row.errors).sum::<u64>(), second.errors);
        }
        // The warm-up is in the rows and not in the sums; of its 200 requests some have each name.
        let (good, bad) = (&outcome.named[0], &outcome.named[1]);
        let of = |rows: &[unladen_load::outcome::NamedSecond]| rows.iter().map(|row| row.requests).sum::<u64>();
        assert!(of(&good.seconds) > good.requests && good.requests > 500);
        assert_eq!((of(&bad.seconds), bad.requests, good.errors), (0, 0, 0));
        assert!(good.seconds.iter().all(|row| row.seconds == 1 && row.p50_us > 0.0 && row.max_us >= row.p50_us));
    }
}

#[test]
fn waiting_for_a_connection_is_not_lateness() {
    // One connection, 20 ms an answer, 100 a second wanted: all but the first wait.
    let server = Server::start(Behaviour::Slow(Duration::from_millis(20)));
    let outcome = run(&open(&server, 100.0, 1));
    assert_eq!((outcome.requests, outcome.errors), (50, 0));
    assert_eq!(outcome.lateness_us.count, 50 - outcome.queued);
    assert!(outcome.send_lag_us.max >= 480e3 && outcome.lateness_us.max < 400e3, "{:?}", outcome.lateness_us);
    let queued = LoadWarning::OutOfConnections { queued: outcome.queued, requests: 50 };
    assert!(outcome.warnings.contains(&queued), "{:?}", outcome.warnings);
    assert!(
        outcome.warnings.iter().any(|warning| matches!(warning, LoadWarning::RateMissed { .. })),
        "{:?}",
        outcome.warnings
    );
    assert!(
        !outcome.warnings.iter().any(|warning| matches!(warning, LoadWarning::Saturated { .. })),
        "{:?}",
        outcome.warnings
    );
}

#[test]
fn littles_law_holds_where_it_says_anything() {
    let server = Server::start(Behaviour::Slow(Duration::from_millis(5)));
    let http2 = CorrectServer::start(Setup::new(Manner::Slow(Duration::from_millis(5))));
    let plan = Plan { window_s: 1.0, ..closed(&server, 8) };
    let over_http2 = Plan { url: http2.url(), protocol: Protocol::Http2, connections: 2, streams: 4, ..plan.clone() };
    // Answers that are errors are on their way, too.
    let refused = Plan { check: Check { status: Some(404), ..Check::default() }, ..plan.clone() };
    for plan in [plan, over_http2, refused] {
        let little = run(&plan).little;
        assert_eq!(little.holds, Some(true), "{little:?}");
        assert!((little.in_flight - 8.0).abs() < 1.0, "eight at a time: {little:?}");
    }
    let silent = Server::start(Behaviour::Silent);
    let outcome = run(&Plan { timeout_s: 0.2, ..open(&silent, 40.0, 2) });
    assert_eq!(outcome.little.holds, None, "nobody knows how long they took");
}

#[test]
fn a_connection_between_two_steps_is_not_given_away_when_the_server_closes_it() {
    let server = Server::start(Behaviour::CloseAfter(1));
    let until = Until { test: Test::Status(404), pause_s: 0.01, most: 3 };
    let requests = vec![Request { until: Some(until), ..Request::new("poll") }];
    let order = unladen_load::plan::Order::Sequence;
    let outcome = run(&Plan { requests, order, limit: Some(20), window_s: 20.0, ..open(&server, 400.0, 2) });
    // Each is asked for three times, and has failed then.
    assert_eq!((outcome.sent_total, server.requests()), (60, 60));
    assert_eq!((outcome.requests, outcome.errors), (40, 20), "{:?}", outcome.error_classes);
}
