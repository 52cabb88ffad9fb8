//! Several requests, values, captures and tests against a real server.

use std::collections::BTreeMap;
use std::time::Duration;

use unladen_load::plan::{Capture, NamedTest, Order, Pacing, Plan, Request, Source, Test, Until, Value};

use crate::engine::{closed, open, run};
use crate::server::{Behaviour, GOOD, Server};

fn json(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// `POST /jobs` makes a job, named by the number of the request on the connection; the third `GET` finds it done.
fn jobs(head: &str, number: u64) -> String {
    match head.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["POST", "/jobs"] => json(&format!("{{\"id\": \"job-{number}\"}}")),
        ["GET", path] => {
            let id: u64 = path.strip_prefix("/jobs/job-").and_then(|id| id.parse().ok()).expect("a job that was made");
            json(if number >= id + 3 { "{\"state\": \"done\"}" } else { "{\"state\": \"running\"}" })
        }
        _ => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_owned(),
    }
}

pub(crate) fn job_requests() -> Vec<Request> {
    vec![
        Request {
            method: "POST".to_owned(),
            path: Some("/jobs".to_owned()),
            body: Some("{\"user\": \"{{user}}\"}".to_owned()),
            captures: vec![Capture { name: "id".to_owned(), from: Source::Json("/id".to_owned()) }],
            checks: vec![NamedTest { name: "is json".to_owned(), test: Test::BodyMatches("^\\{.*\\}$".to_owned()) }],
            ..Request::new("create")
        },
        Request {
            path: Some("/jobs/{{id}}".to_owned()),
            until: Some(Until {
                test: Test::JsonEquals { pointer: "/state".to_owned(), value: "done".into() },
                pause_s: 0.005,
                most: 10,
            }),
            checks: vec![NamedTest { name: "has errors".to_owned(), test: Test::BodyContains("error".to_owned()) }],
            ..Request::new("poll")
        },
    ]
}

pub(crate) fn job_plan(plan: Plan) -> Plan {
    let values = BTreeMap::from([("user".to_owned(), Value::Uuid)]);
    Plan { requests: job_requests(), order: Order::Sequence, values, ..plan }
}

#[test]
fn post_read_the_id_and_get_it_until_done() {
    let server = Server::start(Behaviour::By(jobs));
    let users = Pacing::Users { from: 3.0, stages: Vec::new(), think_s: 0.01, rate: None };
    for (pacing, iterations) in [(Pacing::Constant { rate: 40.0 }, 20), (Pacing::Closed, 20), (users, 20)] {
        let before = server.requests();
        let plan = Plan { pacing, limit: Some(iterations), window_s: 20.0, ..job_plan(open(&server, 1.0, 4)) };
        let outcome = run(&plan);
        // One POST and three GETs each; the last GET's answer does not hold what the second test wants.
        assert_eq!(
            (outcome.sent_total, server.requests() - before),
            (4 * iterations, 4 * iterations),
            "{:?}",
            plan.pacing
        );
        assert_eq!((outcome.requests, outcome.errors), (3 * iterations, iterations));
        assert_eq!(outcome.error_classes.get("check"), Some(&iterations));
        let named: Vec<_> =
            outcome.named.iter().map(|named| (named.name.as_str(), named.requests, named.errors)).collect();
        assert_eq!(named, [("create", iterations, 0), ("poll", 2 * iterations, iterations)]);
        assert_eq!(outcome.named[1].latency_us.count, 2 * iterations);
        let tests: Vec<_> = outcome.tests.iter().map(|test| (test.name.as_str(), test.passed, test.failed)).collect();
        assert_eq!(tests, [("is json", iterations, 0), ("has errors", 0, iterations)]);
    }
}

/// Every third answer has sold out; the second `GET` of an iteration tells which. 20 ms pass between the two.
fn seats(head: &str, number: u64) -> String {
    let reserved = !number.is_multiple_of(9);
    match (head.starts_with("POST"), number % 3) {
        (true, _) => json("{\"id\": 1}"),
        (false, 2) => json("{\"state\": \"PROCESSING\"}"),
        _ if reserved => json("{\"state\": \"RESERVED\"}"),
        _ => json("{\"state\": \"FAILED\", \"reason\": \"sold out\"}"),
    }
}

/// Kinds of what the last answer of an iteration says, the first one that holds.
pub(crate) fn seat_requests() -> Vec<Request> {
    let at = |pointer: &str, value: &str| Test::JsonEquals { pointer: pointer.to_owned(), value: value.into() };
    let named = |name: &str, test| NamedTest { name: name.to_owned(), test };
    let mut requests = job_requests();
    requests.iter_mut().for_each(|request| request.checks.clear());
    requests[1].until = Some(Until { test: Test::BodyMatches("RESERVED|FAILED".to_owned()), pause_s: 0.02, most: 10 });
    requests[1].kinds = vec![
        named("reserved", at("/state", "RESERVED")),
        named("reserved again", at("/state", "RESERVED")),
        named("sold out", at("/reason", "sold out")),
    ];
    requests
}

#[test]
fn answers_are_told_apart_by_kind_and_whole_iterations_are_timed() {
    let server = Server::start(Behaviour::By(seats));
    let plan = Plan { requests: seat_requests(), limit: Some(30), window_s: 60.0, ..job_plan(closed(&server, 1)) };
    let outcome = run(&plan);
    assert_eq!((outcome.requests, outcome.errors), (90, 0), "{:?}", outcome.error_classes);
    // The work of each is a POST and the last of its GETs, whose bodies are what it came to.
    assert_eq!((outcome.statuses.get(&200), outcome.asked_again.get(&200)), (Some(&90), Some(&30)));
    assert_eq!(outcome.bodies.iter().map(|body| body.count).sum::<u64>(), 60);
    let kinds: Vec<_> =
        outcome.kinds.iter().map(|kind| (kind.request.as_str(), kind.name.as_str(), kind.requests)).collect();
    let expected = [("poll", "reserved", 20), ("poll", "reserved again", 0), ("poll", "sold out", 10)];
    assert_eq!(kinds, [&expected[..], &[("poll", "other", 0)]].concat());
    let sold_out = &outcome.kinds[2];
    assert_eq!((sold_out.latency_us.count, sold_out.iteration_us.count), (10, 10));
    // The answer itself comes at once; the user has waited for the pause before it.
    assert!(sold_out.iteration_us.p50 >= 20e3, "{:?}", sold_out.iteration_us);
    assert!(sold_out.latency_us.p50 < sold_out.iteration_us.p50 - 15e3, "{:?}", sold_out.latency_us);
    let iterations = outcome.iterations.expect("they have several requests");
    assert_eq!((iterations.completed, iterations.failed, iterations.unfinished), (30, 0, 0));
    let all: u64 = outcome.kinds.iter().map(|kind| kind.iteration_us.count).sum();
    assert_eq!((iterations.latency_us.count, all), (30, 30), "the last answer of each has a kind");
    assert!(iterations.latency_us.p50 >= 20e3 && iterations.latency_us.max >= sold_out.iteration_us.max);
}

#[test]
fn alternatives_have_kinds_too_and_what_fails_has_none() {
    let server = Server::start(Behaviour::By(|_, number| match number % 4 {
        0 => "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned(),
        1 => json("{\"hit\": true}"),
        _ => json("{}"),
    }));
    let hit = Test::JsonEquals { pointer: "/hit".to_owned(), value: true.into() };
    let kinds = vec![NamedTest { name: "hit".to_owned(), test: hit }];
    let requests = vec![Request { kinds: kinds.clone(), ..Request::new("get") }];
    let plan = Plan { requests, limit: Some(40), window_s: 60.0, ..closed(&server, 1) };
    let outcome = run(&plan);
    assert_eq!((outcome.requests, outcome.errors), (30, 10));
    let found: Vec<_> = outcome.kinds.iter().map(|kind| (kind.name.as_str(), kind.requests)).collect();
    assert_eq!((found, outcome.iterations), (vec![("hit", 10), ("other", 20)], None));
    assert!(outcome.kinds.iter().all(|kind| kind.iteration_us.count == 0), "an iteration is a request");
    for name in ["other", "hit"] {
        let taken = NamedTest { name: name.to_owned(), test: Test::Status(200) };
        let requests = vec![Request { kinds: [&kinds[..], &[taken]].concat(), ..Request::new("get") }];
        let (plan, stop) = (Plan { requests, ..plan.clone() }, std::sync::atomic::AtomicBool::new(false));
        let error = unladen_load::run(&plan, &mut |_| {}, &stop).expect_err("twice").to_string();
        assert!(error.contains(name) && error.contains("names of their own"), "{error}");
    }
}

/// The window ends while iterations pause: nobody knows how long those would have been.
#[test]
fn iterations_that_the_end_cuts_off_are_told() {
    let never = |head: &str, _| json(if head.starts_with("POST") { "{\"id\": 1}" } else { "{}" });
    let server = Server::start(Behaviour::By(never));
    let mut plan = Plan { requests: seat_requests(), warmup_s: 0.0, window_s: 0.3, ..job_plan(closed(&server, 2)) };
    if let Some(until) = &mut plan.requests[1].until {
        until.pause_s = 5.0;
    }
    let outcome = run(&plan);
    let iterations = outcome.iterations.expect("they have several requests");
    assert_eq!((iterations.completed, iterations.failed), (0, 0));
    assert!(iterations.unfinished >= 2, "{iterations:?}");
}

#[test]
fn a_failing_step_ends_its_iteration_only() {
    let server =
        Server::start(Behaviour::By(
            |_, number| {
                if number % 3 == 0 { json("{\"nothing\": 1}") } else { json("{\"id\": 5}") }
            },
        ));
    // The load ends with the last iteration, not in the middle of one.
    let mut plan = Plan { limit: Some(50), window_s: 600.0, ..job_plan(open(&server, 100.0, 1)) };
    plan.requests[1].until = None;
    plan.requests[1].checks.clear();
    let outcome = run(&plan);
    // On the one connection: a POST, the GET after it, a POST whose answer holds no id, and so on.
    let named: Vec<_> = outcome.named.iter().map(|named| (named.requests, named.errors)).collect();
    assert_eq!(named, [(25, 25), (25, 0)]);
    let iterations = outcome.iterations.expect("they have several requests");
    assert_eq!((iterations.completed, iterations.failed, iterations.latency_us.count), (25, 25, 25));
    assert_eq!(outcome.error_classes.into_iter().collect::<Vec<_>>(), [("capture".to_owned(), 25)]);
}

#[test]
fn answers_in_pieces_and_compressed_are_looked_at_too() {
    let chunked =
        "HTTP/1.1 200 OK\r\nX-Id: 12\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n5\r\n: 1 }\r\n0\r\n\r\n";
    for behaviour in [
        Behaviour::Reply(chunked),
        Behaviour::Pieces(chunked, 11, Duration::from_micros(200)),
        Behaviour::ReplyThenClose("HTTP/1.0 200 OK\r\nX-Id: 12\r\n\r\n{\"a\": 1}"),
    ] {
        let server = Server::start(behaviour);
        let tests = [
            Test::JsonEquals { pointer: "/a".to_owned(), value: 1.into() },
            Test::HeaderEquals { name: "x-id".to_owned(), value: "12".to_owned() },
        ];
        let checks = tests.map(|test| NamedTest { name: "it".to_owned(), test }).to_vec();
        let requests = vec![Request { checks, ..Request::new("get") }];
        let outcome = run(&Plan { requests, ..open(&server, 60.0, 2) });
        assert_eq!((outcome.requests, outcome.errors), (30, 0), "{behaviour:?}: {:?}", outcome.tests);
        assert!(outcome.tests.iter().all(|test| (test.passed, test.failed) == (30, 0)), "{behaviour:?}");
    }
}

#[test]
fn alternatives_are_counted_by_name_and_judged_by_their_own_check() {
    let server = Server::start(Behaviour::By(|head, _| match head.split(' ').nth(1) {
        Some("/missing") => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ if head.starts_with("HEAD") => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_owned(),
        _ => GOOD.to_owned(),
    }));
    let request = |name: &str, path: &str| Request { path: Some(path.to_owned()), ..Request::new(name) };
    let mut missing = request("missing", "/missing");
    missing.check = Some(unladen_load::plan::Check { status: Some(404), length: None });
    let head = Request { method: "HEAD".to_owned(), ..request("head", "/") };
    let values = BTreeMap::from([("n".to_owned(), Value::Counter { from: 0 })]);
    let plan = Plan {
        requests: vec![request("plain", "/a?n={{n}}"), missing, head],
        values,
        limit: Some(300),
        window_s: 60.0,
        ..closed(&server, 3)
    };
    let outcome = run(&plan);
    assert_eq!((outcome.requests, outcome.errors, server.requests()), (300, 0, 300));
    for (named, start) in outcome.named.iter().zip(["GET /a?n=", "GET /missing ", "HEAD / "]) {
        let seen = server.heads().iter().filter(|head| head.starts_with(start)).count() as u64;
        assert_eq!(named.requests, seen, "{}", named.name);
        // A third each: far from 0 at any seed.
        assert!(seen > 60, "{}: {seen}", named.name);
    }
    let distinct: std::collections::BTreeSet<String> =
        server.heads().into_iter().filter(|head| head.starts_with("GET /a")).collect();
    assert_eq!(distinct.len() as u64, outcome.named[0].requests, "every iteration has its own number");
}
