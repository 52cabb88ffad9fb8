//! Several requests, values, captures, tests and users over HTTP/2: the same plans as over HTTP/1.1 do the same.

use std::collections::BTreeSet;

use unladen_load::plan::{NamedTest, Pacing, Plan, Protocol, Request, Test, Tls};

use crate::engine::{at_once, run};
use crate::h2_server::{CorrectServer, Manner, Setup, Way};
use crate::scripts::{job_plan, seat_requests};

/// A plan over HTTP/2 for this server.
fn plan(server: &CorrectServer, connections: u32, streams: u32) -> Plan {
    Plan {
        protocol: Protocol::Http2,
        connections,
        streams,
        warmup_s: 0.0,
        window_s: 20.0,
        timeout_s: 5.0,
        tls: Tls { insecure: true, ..Tls::default() },
        ..Plan::new(server.url())
    }
}

fn users(count: f64) -> Pacing {
    Pacing::Users { from: count, stages: Vec::new(), think_s: 0.01, rate: None }
}

#[test]
fn post_read_the_id_and_get_it_until_done() {
    let pacings = [Pacing::Constant { rate: 100.0 }, Pacing::Closed, users(5.0)];
    at_once(pacings, |pacing| {
        for way in [Way::Tcp, Way::Tls(&[b"h2"])] {
            let server = CorrectServer::start_on(Setup::new(Manner::Jobs), way);
            let iterations = 30;
            let mut plan = job_plan(plan(&server, 2, 3));
            (plan.pacing, plan.limit) = (pacing.clone(), Some(iterations));
            let outcome = run(&plan);
            let details = format!("{pacing:?}: {:?} {:?}", outcome.error_classes, outcome.tests);
            // One POST and three GETs each; the last GET's answer does not hold what the second test wants.
            assert_eq!((outcome.sent_total, server.requests()), (4 * iterations, 4 * iterations), "{details}");
            assert_eq!((outcome.requests, outcome.errors), (3 * iterations, iterations), "{details}");
            assert_eq!(outcome.error_classes.get("check"), Some(&iterations), "{details}");
            let named: Vec<_> = outcome.named.iter().map(|named| (named.requests, named.errors)).collect();
            assert_eq!(named, [(iterations, 0), (2 * iterations, iterations)], "{details}");
            let tests: Vec<_> = outcome.tests.iter().map(|test| (test.passed, test.failed)).collect();
            assert_eq!(tests, [(iterations, 0), (0, iterations)], "{details}");
            assert_eq!((server.connections(), outcome.reconnects), (2, 0), "{details}");
            let jobs: BTreeSet<_> = server.heads().iter().map(|head| head.uri.path().to_owned()).collect();
            assert_eq!(jobs.len() as u64, iterations + 1, "each iteration polls its own job");
        }
    });
}

#[test]
fn users_share_the_streams_that_the_server_allows() {
    let server = CorrectServer::start(Setup { max_streams: 2, ..Setup::new(Manner::Jobs) });
    let mut plan = job_plan(plan(&server, 1, 10));
    (plan.pacing, plan.limit) = (users(10.0), Some(60));
    let outcome = run(&plan);
    assert_eq!((outcome.sent_total, server.requests(), outcome.resent), (240, 240, 0));
    assert_eq!((outcome.requests, outcome.errors), (180, 60), "{:?}", outcome.error_classes);
    assert!(server.max_concurrent() <= 2, "{}", server.max_concurrent());
}

#[test]
fn iterations_survive_a_server_that_goes_away() {
    for pacing in [Pacing::Constant { rate: 200.0 }, Pacing::Closed, users(6.0)] {
        let server = CorrectServer::start(Setup { max_requests: 9, ..Setup::new(Manner::Jobs) });
        let mut plan = job_plan(plan(&server, 2, 4));
        (plan.pacing, plan.limit) = (pacing.clone(), Some(50));
        plan.requests[1].checks.clear();
        let outcome = run(&plan);
        let details = format!("{pacing:?}: {:?} {outcome:?}", outcome.error_classes);
        assert_eq!((outcome.requests, outcome.errors), (200, 0), "{details}");
        assert_eq!(outcome.sent_total, 200, "{details}");
        assert!(outcome.reconnects >= 10, "{details}");
        assert_eq!(server.connections(), 2 + outcome.reconnects, "{details}");
    }
}

#[test]
fn a_failing_step_ends_its_iteration_only() {
    let answer = |_: &str, number: u64| match number % 3 {
        0 => (200, None, "{\"nothing\": 1}".to_owned()),
        _ => (200, Some("x".to_owned()), "{\"id\": 5}".to_owned()),
    };
    let server = CorrectServer::start(Setup::new(Manner::By(answer)));
    let mut plan = job_plan(plan(&server, 1, 1));
    (plan.pacing, plan.limit, plan.window_s) = (Pacing::Constant { rate: 100.0 }, Some(50), 600.0);
    plan.requests[1].until = None;
    plan.requests[1].checks.clear();
    let outcome = run(&plan);
    // On the one stream at a time: a POST, the GET after it, a POST whose answer holds no id, and so on.
    let named: Vec<_> = outcome.named.iter().map(|named| (named.requests, named.errors)).collect();
    assert_eq!(named, [(25, 25), (25, 0)]);
    assert_eq!(outcome.error_classes.into_iter().collect::<Vec<_>>(), [("capture".to_owned(), 25)]);
}

#[test]
fn answers_are_told_apart_by_kind_and_whole_iterations_are_timed() {
    // On the one stream at a time: a POST, a GET that does not know as yet, and one that does.
    let answer = |_: &str, number: u64| {
        let body = match (number % 3, number % 9) {
            (1, _) => "{\"id\": 1}",
            (2, _) => "{\"state\": \"PROCESSING\"}",
            (_, 0) => "{\"state\": \"FAILED\", \"reason\": \"sold out\"}",
            _ => "{\"state\": \"RESERVED\"}",
        };
        (200, None, body.to_owned())
    };
    for pacing in [Pacing::Closed, users(1.0)] {
        let server = CorrectServer::start(Setup::new(Manner::By(answer)));
        let mut plan = job_plan(plan(&server, 1, 1));
        (plan.requests, plan.pacing, plan.limit) = (seat_requests(), pacing, Some(30));
        let outcome = run(&plan);
        let details = format!("{:?} {:?}", plan.pacing, outcome.error_classes);
        let kinds: Vec<_> = outcome.kinds.iter().map(|kind| (kind.requests, kind.iteration_us.count)).collect();
        assert_eq!(kinds, [(20, 20), (0, 0), (10, 10), (0, 0)], "{details}");
        let iterations = outcome.iterations.expect("they have several requests");
        assert_eq!((iterations.completed, iterations.failed, iterations.unfinished), (30, 0, 0), "{details}");
        assert!(iterations.latency_us.p50 >= 20e3, "{details}: {iterations:?}");
    }
}

#[test]
fn bodies_in_pieces_fields_and_trailers_are_looked_at() {
    let pieces: fn(&str, u64) -> (u16, Option<String>, String) =
        |_, _| (201, Some("/elsewhere".to_owned()), "{\"a\": [1, 2]}".to_owned());
    let trailers = [Test::GrpcStatus("OK".to_owned()), Test::BodyContains("hello".to_owned())];
    let fields = [
        Test::JsonEquals { pointer: "/a/1".to_owned(), value: 2.into() },
        Test::HeaderEquals { name: "Location".to_owned(), value: "/elsewhere".to_owned() },
    ];
    for (manner, tests) in [(Manner::By(pieces), fields), (Manner::Trailers, trailers)] {
        let server = CorrectServer::start(Setup::new(manner));
        let checks = tests.map(|test| NamedTest { name: "it".to_owned(), test }).to_vec();
        let mut plan = plan(&server, 2, 4);
        (plan.pacing, plan.limit) = (Pacing::Constant { rate: 400.0 }, Some(100));
        plan.requests = vec![Request { checks, ..Request::new("get") }];
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.errors), (100, 0), "{manner:?}: {:?}", outcome.tests);
        assert!(outcome.tests.iter().all(|test| (test.passed, test.failed) == (100, 0)), "{manner:?}");
    }
}
