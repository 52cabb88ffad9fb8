//! TLS and Unix sockets against a server by tokio-rustls and the `h2` crate: counts agree, trust is asked for, refusals say why.

use std::time::{Duration, Instant};

use unladen_load::LoadError;
use unladen_load::plan::{Pacing, Plan, Protocol, Tls};

use crate::certificates::Secure;
use crate::engine::{at_once, run};
use crate::h2_server::{CorrectServer, Manner, Setup, Way};
use crate::server::{Behaviour, Server};

/// What servers of both versions offer.
const BOTH: Way = Way::Tls(&[b"h2", b"http/1.1"]);

fn plan(server: &CorrectServer, protocol: Protocol, streams: u32) -> Plan {
    Plan {
        pacing: Pacing::Constant { rate: 400.0 },
        protocol,
        connections: 2,
        streams,
        warmup_s: 0.0,
        window_s: 0.5,
        timeout_s: 5.0,
        tls: Tls { ca: Some(server.certificate()), ..Tls::default() },
        ..Plan::new(server.url())
    }
}

fn refused(plan: &Plan) -> String {
    let error = unladen_load::run(plan, &mut |_| {}, &std::sync::atomic::AtomicBool::new(false)).expect_err("refused");
    assert!(matches!(error, LoadError::Handshake { .. } | LoadError::Tls { .. }), "{error}");
    error.to_string()
}

#[test]
fn both_protocols_over_tls_count_what_the_server_counts() {
    at_once([(Protocol::Http1, 1), (Protocol::Http2, 8)], |(protocol, streams)| {
        let server = CorrectServer::start_on(Setup::new(Manner::Good), BOTH);
        let mut plan = plan(&server, protocol, streams);
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.errors), (200, 0), "{protocol:?}: {:?}", outcome.error_classes);
        assert_eq!((server.requests(), server.connections(), outcome.reconnects), (200, 2, 0), "{protocol:?}");
        plan.pacing = Pacing::Closed;
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.errors), (server.requests() - 200, 0), "{protocol:?}");
        assert!(outcome.requests > 10);
    });
}

#[test]
fn large_bodies_pass_both_ways_through_tls() {
    for (manner, body) in [(Manner::Large(2_000_000), 10), (Manner::CountBody, 2_000_000)] {
        let server = CorrectServer::start_on(Setup::new(manner), BOTH);
        let mut plan = plan(&server, Protocol::Http2, 4);
        (plan.method, plan.body) = ("POST".to_owned(), Some("x".repeat(body)));
        (plan.pacing, plan.timeout_s) = (Pacing::Constant { rate: 20.0 }, 30.0);
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.errors), (10, 0), "{manner:?}: {:?}", outcome.error_classes);
        assert_eq!(outcome.bodies.len(), 1, "{manner:?}");
    }
}

#[test]
fn a_server_that_goes_away_is_connected_to_again_over_tls() {
    let server = CorrectServer::start_on(Setup::new(Manner::GoAwayAfter(20)), BOTH);
    let outcome = run(&plan(&server, Protocol::Http2, 4));
    assert_eq!((outcome.requests, outcome.errors), (200, 0), "{:?}", outcome.error_classes);
    assert_eq!(server.connections(), 2 + outcome.reconnects);
    assert!(outcome.reconnects >= 4);
}

#[test]
fn trust_is_asked_for_and_may_be_waived() {
    let server = CorrectServer::start_on(Setup::new(Manner::Good), BOTH);
    let other = CorrectServer::start_on(Setup::new(Manner::Good), BOTH);
    let mut plan = plan(&server, Protocol::Http2, 1);
    plan.tls.ca = Some(other.certificate());
    assert!(refused(&plan).contains("certificate"), "signed by somebody else");
    plan.tls = Tls { insecure: true, ..Tls::default() };
    assert_eq!(run(&plan).requests, 200);
    plan.tls = Tls { ca: Some(server.certificate()), server_name: Some("other.example".to_owned()), ..Tls::default() };
    assert!(refused(&plan).contains("certificate"), "not the name on the certificate");
    plan.tls.server_name = Some("localhost".to_owned());
    plan.url = plan.url.replace("localhost", "127.0.0.1");
    assert_eq!(run(&plan).requests, 200, "the name in the certificate, whatever the address");
    plan.tls.ca = Some(server.certificate().with_file_name("none.pem"));
    assert!(refused(&plan).contains("none.pem"));
}

#[test]
fn a_certificate_of_an_authority_is_trusted_if_the_plan_names_it() {
    let server = CorrectServer::start_on(
        Setup::new(Manner::Good),
        Way::Secure(Secure { is_authority: true, ..Secure::default() }),
    );
    let mut plan = plan(&server, Protocol::Http1, 1);
    assert_eq!(run(&plan).requests, 200);
    plan.tls.server_name = Some("other.example".to_owned());
    assert!(refused(&plan).contains("certificate"), "the name must fit all the same");
}

#[test]
fn the_protocol_must_be_agreed_on() {
    let server = CorrectServer::start_on(Setup::new(Manner::Good), Way::Tls(&[]));
    assert!(refused(&plan(&server, Protocol::Http2, 1)).contains("ALPN"));
    // HTTP/1.1 needs no agreement.
    assert_eq!(run(&plan(&server, Protocol::Http1, 1)).requests, 200);
    let server = CorrectServer::start_on(Setup::new(Manner::Good), Way::Tls(&[b"http/1.1"]));
    assert!(refused(&plan(&server, Protocol::Http2, 1)).contains("protocol handshake with "));
}

#[test]
fn a_server_without_tls_is_named() {
    let server = CorrectServer::start(Setup::new(Manner::Good));
    let plan =
        Plan { url: server.url().replace("http:", "https:"), timeout_s: 1.0, ..plan(&server, Protocol::Http1, 1) };
    let plan = Plan { tls: Tls { insecure: true, ..Tls::default() }, ..plan };
    assert!(refused(&plan).contains("protocol handshake with "));
}

#[test]
fn patience_with_a_connection_is_apart_from_patience_with_a_request() {
    let server = Server::start(Behaviour::Silent);
    let plan = Plan {
        timeout_s: 60.0,
        connect_timeout_s: Some(0.3),
        tls: Tls { insecure: true, ..Tls::default() },
        ..Plan::new(server.url().replace("http:", "https:"))
    };
    let begun = Instant::now();
    let error = unladen_load::run(&plan, &mut |_| {}, &std::sync::atomic::AtomicBool::new(false)).expect_err("refused");
    assert!(matches!(error, LoadError::Connect { .. }), "{error}");
    // The plan's ten connections are tried four at a time.
    assert!(begun.elapsed() < Duration::from_secs(20), "gave up after {:?}", begun.elapsed());
}

#[test]
fn unix_sockets_carry_both_protocols_in_open_and_closed_loops() {
    at_once([(Protocol::Http1, 1, Way::UnixHttp1), (Protocol::Http2, 8, Way::Unix)], |(protocol, streams, way)| {
        let server = CorrectServer::start_on(Setup::new(Manner::Good), way);
        let mut plan = plan(&server, protocol, streams);
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.errors), (200, 0), "{protocol:?}: {:?}", outcome.error_classes);
        assert_eq!((server.requests(), server.connections()), (200, 2), "{protocol:?}");
        if protocol == Protocol::Http2 {
            assert_eq!(server.heads()[0].uri.to_string(), "http://localhost/resource?x=1");
        }
        plan.pacing = Pacing::Closed;
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.errors), (server.requests() - 200, 0), "{protocol:?}");
        assert!(outcome.requests > 10, "{protocol:?}");
    });
}

#[test]
fn a_socket_that_nobody_listens_on_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan::new(format!("unix:{}/none:/x", folder.path().display()));
    let error = unladen_load::run(&plan, &mut |_| {}, &std::sync::atomic::AtomicBool::new(false)).expect_err("nobody");
    assert!(matches!(error, LoadError::Connect { .. }) && error.to_string().contains("none"), "{error}");
}

#[test]
fn a_server_that_asks_gets_the_clients_certificate() {
    let secure = Secure { protocols: &[b"h2", b"http/1.1"], asks_clients: true, ..Secure::default() };
    let server = CorrectServer::start_on(Setup::new(Manner::Good), Way::Secure(secure));
    let file = |name: &str| Some(server.folder().join(name));
    for (protocol, certificate, key) in
        [(Protocol::Http1, "client.pem", Some("client.key")), (Protocol::Http2, "both.pem", None)]
    {
        let mut plan = plan(&server, protocol, 2);
        (plan.tls.client_certificate, plan.tls.client_key) = (file(certificate), key.and_then(file));
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.errors), (200, 0), "{protocol:?}: {:?}", outcome.error_classes);
    }
    let refused_with = |certificate: Option<&str>, key: Option<&str>| {
        let mut plan = Plan { timeout_s: 1.0, ..plan(&server, Protocol::Http2, 1) };
        (plan.tls.client_certificate, plan.tls.client_key) = (certificate.and_then(file), key.and_then(file));
        refused(&plan)
    };
    for words in [refused_with(None, None), refused_with(Some("stranger.pem"), None)] {
        assert!(words.contains("alert"), "the server says why: {words}");
    }
    assert!(refused_with(None, Some("client.key")).contains("tls.client_certificate"));
    assert!(refused_with(Some("client.pem"), None).contains("tls.client_key"));
    assert!(refused_with(Some("client.key"), None).contains("no certificate"));
    assert!(refused_with(Some("none.pem"), None).contains("none.pem"));
    assert!(refused_with(Some("ca.pem"), Some("client.key")).contains("belong together"));
}

#[test]
fn the_name_asked_for_is_the_urls_or_the_plans_and_addresses_are_none() {
    let server = CorrectServer::start_on(Setup::new(Manner::Good), BOTH);
    let mut plan = plan(&server, Protocol::Http1, 1);
    plan.window_s = 0.1;
    assert_eq!(run(&plan).errors, 0);
    assert_eq!(server.names(), [Some("localhost".to_owned())]);
    plan.tls = Tls { insecure: true, server_name: Some("shop.example".to_owned()), ..Tls::default() };
    assert_eq!(run(&plan).errors, 0);
    plan.tls.server_name = None;
    plan.url = plan.url.replace("localhost", "127.0.0.1");
    assert_eq!(run(&plan).errors, 0);
    assert_eq!(server.names(), [None, Some("localhost".to_owned()), Some("shop.example".to_owned())]);
}

#[test]
fn addresses_of_ipv6_work_for_both_protocols() {
    for (protocol, streams) in [(Protocol::Http1, 1), (Protocol::Http2, 4)] {
        let secure = Secure { protocols: &[b"h2", b"http/1.1"], ..Secure::default() };
        let server = CorrectServer::start_on(Setup::new(Manner::Good), Way::Ipv6(secure));
        assert!(server.url().starts_with("https://[::1]:"), "{}", server.url());
        let outcome = run(&plan(&server, protocol, streams));
        assert_eq!((outcome.requests, outcome.errors), (200, 0), "{protocol:?}: {:?}", outcome.error_classes);
        if protocol == Protocol::Http2 {
            assert_eq!(server.heads()[0].uri.to_string(), server.url());
        }
    }
}

#[test]
fn servers_that_close_are_connected_to_again_over_tls() {
    for (abrupt, max_requests) in [(false, 1), (true, 1), (false, 7), (true, 7)] {
        let setup = Setup { max_requests, abrupt, ..Setup::new(Manner::Good) };
        let server = CorrectServer::start_on(setup, Way::Tls(&[b"http/1.1"]));
        for pacing in [Pacing::Constant { rate: 400.0 }, Pacing::Closed] {
            let before = (server.requests(), server.connections());
            let plan = Plan { pacing, limit: Some(200), window_s: 30.0, ..plan(&server, Protocol::Http1, 1) };
            let outcome = run(&plan);
            assert_eq!((outcome.requests, outcome.errors), (200, 0), "{setup:?}: {:?}", outcome.error_classes);
            assert_eq!(server.requests() - before.0, 200, "{setup:?}");
            assert_eq!(server.connections() - before.1, 2 + outcome.reconnects, "{setup:?}");
            assert!(outcome.reconnects >= 200 / max_requests - 2, "{setup:?}: {}", outcome.reconnects);
        }
    }
}

#[test]
fn a_body_that_ends_with_the_connection_is_whole_only_if_tls_says_so() {
    for abrupt in [false, true] {
        let setup = Setup { max_requests: 1, abrupt, ..Setup::new(Manner::Trailers) };
        let server = CorrectServer::start_on(setup, Way::Tls(&[b"http/1.1"]));
        let plan = Plan { limit: Some(50), window_s: 30.0, ..plan(&server, Protocol::Http1, 1) };
        let outcome = run(&plan);
        let expected = if abrupt { (0, 50) } else { (50, 0) };
        assert_eq!((outcome.requests, outcome.errors), expected, "{setup:?}: {:?}", outcome.error_classes);
        assert_eq!(outcome.error_classes.get("reset").copied().unwrap_or(0), expected.1);
    }
}
