//! Pinpoint's collector over real sockets, as its agents call it, and as a hostile sender might.

use unladen_decode::wire::put_number;
use unladen_sink::config::{Config, Protocol, Requests};

use crate::payloads::{Adds, Expect, ONE, UNDECODABLE};
use crate::senders::{Client, MS, START, Way, field, framed};
use crate::support::{Sink, block_on, columns, listening};

const REQUESTS: Requests = Requests { tag: 0x1234_5678_9abc_def0, key: 42 };

fn numbers(fields: &[(u32, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|(field, value)| put_number(&mut out, *field, *value));
    out
}

fn transaction(trace: &[u8; 16]) -> Vec<u8> {
    let half = |half: &[u8]| half.try_into().map(u64::from_be_bytes).expect("eight bytes");
    let id = [field(1, b"unladen"), numbers(&[(2, half(&trace[..8])), (3, half(&trace[8..]))])].concat();
    field(2, &id)
}

/// A `PSpan` without events.
fn bare(trace: &[u8; 16]) -> Vec<u8> {
    let span_id = [&[3 << 3 | 1][..], &2_u64.to_le_bytes()].concat();
    let parent = [&[4 << 3 | 1][..], &1_u64.to_le_bytes()].concat();
    let times = numbers(&[(5, START / MS), (6, 1), (7, 3)]);
    [transaction(trace), span_id, parent, times, field(9, &field(1, b"GET /vets"))].concat()
}

/// A `PSpanMessage` with a span and its events, so many together.
pub(crate) fn span(trace: &[u8; 16], spans: u64) -> Vec<u8> {
    let mut out = bare(trace);
    for sequence in 1..spans {
        out.extend(field(13, &numbers(&[(1, sequence), (2, 1), (3, 1), (4, 1), (10, 8)])));
    }
    field(1, &out)
}

/// What a hostile sender may send, and what it gets and counts for.
pub(crate) fn hostile(trace: &[u8; 16]) -> Vec<(&'static str, Vec<u8>, Expect, Adds)> {
    let million = 1_000_000;
    let rejected = |rejected| Adds { rejected, ..Adds::default() };
    let mut other = *trace;
    let mut next = || {
        other[0] += 1;
        other
    };
    let back = [bare(&next()), numbers(&[(6, (-5_i32) as u64)])].concat();
    let mut many = bare(&next());
    for key in 0..million {
        many.extend(field(10, &[numbers(&[(1, key)]), field(2, &[3 << 3, 1])].concat()));
    }
    let small = [bare(&next()), [13 << 3 | 2, 0].repeat(million as usize)].concat();
    let deep = [bare(&next()), field(13, &numbers(&[(1, 1), (2, i32::MAX as u64)]))].concat();
    let of_small = Adds { rejected: million + 1 - 65_536, received: 65_536, ..Adds::default() };
    vec![
        ("no ids", field(1, &transaction(trace)), Expect::Taken, rejected(1)),
        ("time running backwards", field(1, &back), Expect::Taken, ONE),
        ("a million attributes", field(1, &many), Expect::Taken, ONE),
        ("a million spans of two bytes", field(1, &small), Expect::Taken, of_small),
        ("deep nesting", field(1, &deep), Expect::Taken, Adds { received: 2, ..Adds::default() }),
        (
            "a transaction that is none",
            field(1, &field(2, &[0xff])),
            Expect::Refused(0, "3", "this is no PSpanMessage"),
            UNDECODABLE,
        ),
    ]
}

#[test]
fn an_agent_tells_its_methods_and_its_spans() {
    let sink = Sink::with(|config| Config { requests: Some(REQUESTS), ..listening(config, &[Protocol::Pinpoint]) });
    let address = sink.addresses["pinpoint"];
    let agent = [("agentid", "pets-1"), ("applicationname", "pets"), ("starttime", "1795712400000")];
    block_on(async {
        let mut client = Client::connect(Way::Pinpoint, address).await.expect("the sink listens");
        let method = |id: u64, name: &[u8]| framed(&[numbers(&[(1, id)]), field(2, name)].concat());
        for (path, message, code, answer) in [
            ("/v1.Agent/RequestAgentInfo", framed(&field(1, b"host")), "0", &[0, 0, 0, 0, 2, 8, 1][..]),
            ("/v1.Metadata/RequestApiMetaData", method(3, b"Tomcat Servlet Process"), "0", &[0, 0, 0, 0, 2, 8, 1]),
            ("/v1.Metadata/RequestSqlMetaData", method(1, b"SELECT 1"), "0", &[0, 0, 0, 0, 2, 8, 1]),
            ("/v1.Metadata/RequestApiMetaData", framed(&[8]), "3", b"this is no PApiMetaData"),
            ("/v1.Agent/PingSession", [framed(&[]), framed(&[])].concat(), "0", &[0; 5]),
            ("/v1.Stat/SendAgentStat", framed(&[9, 9]), "0", &[0; 5]),
            ("/v1.ProfilerCommandService/HandleCommandV2", framed(&field(2, &[])), "0", &[0; 5]),
            ("/v1.Span/SendSpans", framed(&[]), "12", b"spans go to /v1.Span/SendSpan"),
        ] {
            let (status, grpc, text) = client.call_at(path, &agent, message.into()).await.expect("an answer");
            let is_so = text.as_bytes() == answer || text.contains(&*String::from_utf8_lossy(answer));
            assert!((status, grpc.as_deref()) == (200, Some(code)) && is_so, "{path}: {grpc:?} {text:?}");
        }
        let body = Way::Pinpoint.body(&[REQUESTS.trace_id(0), REQUESTS.trace_id(1)], 3);
        let (_, grpc, _) = client.call(&agent, body.into()).await.expect("an answer");
        assert_eq!(grpc.as_deref(), Some("0"));
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.rejected, summary.undecodable), (6, 0, 1));
    assert_eq!((&summary.spans_by_request[..], summary.by_service["pets"]), (&[(3, 2)][..], 6));
    let (request, method) = (columns(&rows[0]), columns(&rows[1]));
    assert_eq!((request["operation"].as_str(), request["kind"].as_str()), ("\"Tomcat Servlet Process\"", "\"server\""));
    assert_eq!((method["operation"].as_str(), method["instance"].as_str()), ("\"api 4\"", "\"pets-1\""));
    assert_eq!((&method["parent_id"], method["duration_ns"].as_str()), (&request["span_id"], "1000000"));
}
