//! Redirects: followed on the same connection when asked, counted, and never to another server.

use unladen_load::outcome::Outcome;
use unladen_load::plan::{Capture, Check, Order, Pacing, Plan, Protocol, Request, Source};

use crate::engine::{open, run};
use crate::h2_server::{CorrectServer, Manner, Setup};
use crate::server::{Behaviour, Server};

/// A chain of two redirects, a loop, and one that leads elsewhere: status and location.
fn leads(path: &str) -> (u16, Option<&'static str>) {
    match path {
        "/resource" => (302, Some("/folder/first")),
        "/folder/first" => (301, Some("../second?x=1")),
        "/loop" => (307, Some("/loop")),
        "/elsewhere" => (308, Some("http://127.0.0.2:1/")),
        "/nowhere" => (302, None),
        "/form" => (303, Some("/done")),
        "/kept" => (307, Some("/done")),
        _ => (200, None),
    }
}

fn http1(head: &str, _: u64) -> String {
    let path = head.split(' ').nth(1).expect("a request line");
    let (status, location) = leads(path.split('?').next().unwrap_or_default());
    let location = location.map(|location| format!("Location: {location}\r\n")).unwrap_or_default();
    format!("HTTP/1.1 {status} Moved\r\n{location}Content-Length: 2\r\n\r\nok")
}

fn http2(path: &str, _: u64) -> (u16, Option<String>, String) {
    let (status, location) = leads(path);
    (status, location.map(str::to_owned), "ok".to_owned())
}

/// The plan for a path of the HTTP/1.1 server: 50 iterations over 2 connections.
fn plan(server: &Server, path: &str, redirects: u32) -> Plan {
    let url = server.url().replace("/resource", path);
    // The window does not cut chains off: the load ends with the answer to the last of them.
    Plan { url, redirects, limit: Some(50), window_s: 600.0, ..open(server, 100.0, 2) }
}

fn classes(outcome: Outcome) -> Vec<(String, u64)> {
    outcome.error_classes.into_iter().collect()
}

#[test]
fn a_chain_is_followed_on_its_connection_and_every_request_is_counted() {
    let server = Server::start(Behaviour::By(http1));
    let other = CorrectServer::start(Setup::new(Manner::By(http2)));
    let over_http2 = Plan {
        url: other.url().replace("?x=1", ""),
        protocol: Protocol::Http2,
        streams: 4,
        ..plan(&server, "/resource", 2)
    };
    for plan in [plan(&server, "/resource", 2), over_http2] {
        // The status that is wanted is that of the last answer.
        let plan = Plan { check: Check { status: Some(200), length: None }, ..plan };
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.errors), (150, 0), "{:?}", outcome.error_classes);
        assert_eq!((outcome.redirected, outcome.sent_total, outcome.reconnects), (100, 150, 0));
        assert_eq!(outcome.statuses.into_iter().collect::<Vec<_>>(), [(200, 50), (301, 50), (302, 50)]);
    }
    assert_eq!((server.requests(), server.connections()), (150, 2));
    assert_eq!((other.requests(), other.connections()), (150, 2));
    let last = server.heads().iter().filter(|head| head.starts_with("GET /second?x=1 HTTP/1.1")).count();
    assert_eq!(last, 50);
}

#[test]
fn redirects_are_answers_unless_asked_for() {
    let server = Server::start(Behaviour::By(http1));
    for plan in [
        plan(&server, "/resource", 0),
        Plan { check: Check { status: Some(302), length: None }, ..plan(&server, "/resource", 5) },
    ] {
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.errors, outcome.redirected), (50, 0, 0));
        assert_eq!(outcome.statuses.into_iter().collect::<Vec<_>>(), [(302, 50)]);
    }
    assert_eq!(server.requests(), 100);
}

#[test]
fn loops_and_ways_out_are_errors_of_their_own() {
    for (path, redirects, each) in [("/loop", 3, 4), ("/resource", 1, 2), ("/elsewhere", 3, 1), ("/nowhere", 3, 1)] {
        let server = Server::start(Behaviour::By(http1));
        let outcome = run(&plan(&server, path, redirects));
        assert_eq!((outcome.requests, outcome.errors), (50 * (each - 1), 50), "{path}");
        assert_eq!((outcome.redirected, server.requests()), (50 * (each - 1), 50 * each), "{path}");
        assert_eq!(classes(outcome), [("redirect".to_owned(), 50)], "{path}");
    }
}

#[test]
fn a_form_becomes_a_get_and_what_is_to_be_kept_is_kept() {
    for (path, method) in [("/form", "GET"), ("/kept", "POST")] {
        let server = Server::start(Behaviour::By(http1));
        let mut plan = plan(&server, path, 1);
        (plan.method, plan.body) = ("POST".to_owned(), Some("a=b".to_owned()));
        plan.headers = vec![("Content-Type".to_owned(), "text/form".to_owned()), ("X-A".to_owned(), "1".to_owned())];
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.errors), (100, 0), "{path}: {:?}", outcome.error_classes);
        let heads = server.heads();
        let followed: Vec<_> = heads.iter().filter(|head| head.contains(" /done ")).collect();
        assert_eq!(followed.len(), 50, "{path}");
        for head in followed {
            assert!(head.starts_with(method) && head.contains("X-A: 1"), "{head}");
            assert_eq!(head.contains("Content-"), method == "POST", "{head}");
        }
    }
}

#[test]
fn a_captured_location_is_a_path_of_a_later_step() {
    let answer: fn(&str, u64) -> (u16, Option<String>, String) = |path, number| match path {
        "/start" => (201, Some(format!("http://any.example/next/{number}?x=y")), String::new()),
        path if path.starts_with("/next/") => (200, None, String::new()),
        _ => (404, None, String::new()),
    };
    let server = CorrectServer::start(Setup::new(Manner::By(answer)));
    let location = Capture { name: "next".to_owned(), from: Source::Header("location".to_owned()) };
    let start = Request { path: Some("/start".to_owned()), captures: vec![location], ..Request::new("start") };
    let next = Request { path: Some("{{next}}".to_owned()), ..Request::new("next") };
    let plan = Plan {
        requests: vec![start, next],
        order: Order::Sequence,
        pacing: Pacing::Closed,
        limit: Some(300),
        cores: vec![0, 0],
        protocol: Protocol::Http2,
        connections: 3,
        streams: 5,
        warmup_s: 0.0,
        window_s: 60.0,
        ..Plan::new(server.url())
    };
    let outcome = run(&plan);
    assert_eq!((outcome.requests, outcome.errors, server.requests()), (600, 0, 600), "{:?}", outcome.error_classes);
    let queries = server.heads().iter().filter(|head| head.uri.query() == Some("x=y")).count();
    assert_eq!(queries, 300);
}
