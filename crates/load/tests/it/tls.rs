//! TLS and Unix sockets against a server by tokio-rustls and the `h2` crate: counts agree, trust is asked for, refusals say why.

use crate::engine::{at_once, run};
use crate::h2_server::{CorrectServer, Manner, Setup, Way};
use unladen_load::LoadError;
use unladen_load::plan::{Pacing, Plan, Protocol, Tls};

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
    plan.tls = Tls { ca: Some(server.certificate()), server_name: Some("other.example".to_owned()), insecure: false };
    assert!(refused(&plan).contains("certificate"), "not the name on the certificate");
    plan.tls.server_name = Some("localhost".to_owned());
    plan.url = plan.url.replace("localhost", "127.0.0.1");
    assert_eq!(run(&plan).requests, 200, "the name in the certificate, whatever the address");
    plan.tls.ca = Some(server.certificate().with_file_name("none.pem"));
    assert!(refused(&plan).contains("none.pem"));
}

#[test]
fn a_certificate_of_an_authority_is_trusted_if_the_plan_names_it() {
    let server = CorrectServer::start_on(Setup::new(Manner::Good), Way::TlsAsAuthority);
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
    assert!(refused(&plan(&server, Protocol::Http2, 1)).contains("speak"));
}

#[test]
fn a_server_without_tls_is_named() {
    let server = CorrectServer::start(Setup::new(Manner::Good));
    let plan =
        Plan { url: server.url().replace("http:", "https:"), timeout_s: 1.0, ..plan(&server, Protocol::Http1, 1) };
    let plan = Plan { tls: Tls { insecure: true, ..Tls::default() }, ..plan };
    assert!(refused(&plan).contains("cannot speak the planned protocol"));
}

#[test]
fn unix_sockets_carry_http2_in_an_open_and_a_closed_loop() {
    let server = CorrectServer::start_on(Setup::new(Manner::Good), Way::Unix);
    let mut plan = plan(&server, Protocol::Http2, 8);
    let outcome = run(&plan);
    assert_eq!((outcome.requests, outcome.errors), (200, 0), "{:?}", outcome.error_classes);
    assert_eq!((server.requests(), server.connections()), (200, 2));
    assert_eq!(server.heads()[0].uri.to_string(), "http://localhost/resource?x=1");
    plan.pacing = Pacing::Closed;
    let outcome = run(&plan);
    assert_eq!((outcome.requests, outcome.errors), (server.requests() - 200, 0));
}
