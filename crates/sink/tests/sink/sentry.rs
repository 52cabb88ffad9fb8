//! Sentry's envelopes over real sockets, as its SDKs send them, and as a hostile sender might.

use unladen_ledger::summary::ReportedLoss;
use unladen_sink::config::{Config, Protocol, Requests};

use crate::http::{post, send};
use crate::payloads::{Adds, Expect, ONE, UNDECODABLE};
use crate::senders::{MS, START};
use crate::support::{Sink, block_on, columns, gzip, listening};

const REQUESTS: Requests = Requests { tag: 0x1234_5678_9abc_def0, key: 42 };
/// Where envelopes go.
pub(crate) const PATH: &str = "/api/1/envelope/";

/// A transaction of a trace: a root and the spans below it, of which the first has the number 0.
pub(crate) fn item(trace: &str, spans: u64) -> String {
    let seconds = |ms: u64| format!("{}.{:03}", ms / 1_000, ms % 1_000);
    let times = |number: u64, end: &str| {
        let start = START / MS + number;
        format!(r#""start_timestamp":{},"{end}":{}"#, seconds(start), seconds(start + 1))
    };
    let ids = |number: u64| format!(r#""trace_id":"{trace}","span_id":"{:016x}""#, number + 1);
    let below: Vec<_> = (1..spans)
        .map(|number| {
            let parent = format!(r#""parent_span_id":"{:016x}""#, 1);
            format!(
                r#"{{{},{parent},"op":"db","description":"SELECT vets",{}}}"#,
                ids(number),
                times(number, "timestamp")
            )
        })
        .collect();
    let data = r#""data":{"http.request.method":"GET"}"#;
    format!(
        "\n{{\"type\":\"transaction\"}}\n{{\"type\":\"transaction\",\"transaction\":\"GET /vets\",{},\
         \"contexts\":{{\"trace\":{{{},\"op\":\"http.server\",{data}}}}},\"spans\":[{}]}}",
        times(0, "timestamp"),
        ids(0),
        below.join(",")
    )
}

/// An item with a report of lost spans.
fn report(events: &str) -> String {
    format!("\n{{\"type\":\"client_report\"}}\n{{\"timestamp\":1.5,\"discarded_events\":[{events}]}}")
}

/// What a hostile sender may send, and what it gets and counts for.
pub(crate) fn hostile(trace: &str) -> Vec<(&'static str, String, Expect, Adds)> {
    let broken = |text| Expect::Refused(400, "", text);
    let rejected = Adds { rejected: 1, ..Adds::default() };
    let million = 1_000_000;
    let sound = |number: u64| format!("{{}}{}", item(trace, 1).replace("0001\"", &format!("{number:04}\"")));
    let many: String = (0..million).map(|number| format!("\"{number}\":1,")).collect();
    let small = vec!["{}"; million].join(",");
    let reasons: Vec<_> = (0..200_000)
        .map(|number| format!(r#"{{"reason":"{number}","category":"span","quantity":9223372036854775807}}"#))
        .collect();
    vec![
        ("ids of the wrong length", sound(1).replace(trace, "0707"), Expect::Taken, rejected),
        ("time running backwards", sound(2).replace("\"timestamp\":17", "\"timestamp\":1"), Expect::Taken, ONE),
        ("a million attributes", sound(3).replace("\"data\":{", &format!("\"data\":{{{many}")), Expect::Taken, ONE),
        (
            "deep nesting",
            format!("{{}}\n{{\"type\":\"span\"}}\n{{\"data\":{}", "[".repeat(100_000)),
            broken("nested too deeply"),
            UNDECODABLE,
        ),
        (
            "a million spans of two bytes",
            sound(4).replace("\"spans\":[", &format!("\"spans\":[{small}")),
            Expect::Taken,
            Adds { rejected: million as u64, ..ONE },
        ),
        ("a million items", format!("{{}}{}", "\n{}\n{}".repeat(million)), Expect::Taken, Adds::default()),
        (
            "a length that lies",
            "{}\n{\"type\":\"span\",\"length\":18446744073709551615}\n{}".into(),
            broken("shorter than the length"),
            UNDECODABLE,
        ),
        (
            "a length too short",
            "{}\n{\"type\":\"span\",\"length\":1}\n{}".into(),
            broken("longer than its length"),
            UNDECODABLE,
        ),
        ("reasons without end", format!("{{}}{}", report(&reasons.join(","))), Expect::Taken, Adds::default()),
        ("no header", "x\n".repeat(million), broken("this is no envelope"), UNDECODABLE),
    ]
}

#[test]
fn envelopes() {
    let sink = Sink::with(|config| Config {
        requests: Some(REQUESTS),
        max_message: 100_000,
        ..listening(config, &[Protocol::Sentry])
    });
    let address = sink.addresses["sentry"];
    let trace = |index| REQUESTS.trace_id(index).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let envelope = |index, spans| format!("{{\"event_id\":\"12\"}}{}\n", item(&trace(index), spans)).into_bytes();
    let auth = ("x-sentry-auth", "Sentry sentry_key=till, sentry_version=7, sentry_client=sentry.python/2.75.0");
    let gzipped = ("content-encoding", "gzip");
    let lost = |reason: &str, category: &str, quantity: u64| {
        format!(r#"{{"reason":"{reason}","category":"{category}","quantity":{quantity}}}"#)
    };
    let tells = |events: &[String]| format!("{{}}{}", report(&events.join(","))).into_bytes();
    let overflow = |spans| tells(&[lost("queue_overflow", "transaction", 1), lost("queue_overflow", "span", spans)]);
    block_on(async {
        let query = format!("{PATH}?sentry_version=7&sentry_key=pets&sentry_client=sentry.javascript.node%2F11.12.0");
        for (path, headers, body, id) in [
            (&*query, vec![], envelope(0, 3), "12"),
            (PATH, vec![auth, gzipped], gzip(&envelope(1, 1)), "12"),
            ("/api/pets/envelope", vec![], envelope(2, 1), "12"),
            (PATH, vec![auth], overflow(5), ""),
            // The counts of a report are what came since the one before.
            (PATH, vec![auth], overflow(4), ""),
            (PATH, vec![auth], tells(&[lost("network_error", "span", 2), lost("sample_rate", "span", 9)]), ""),
        ] {
            let (status, answer) = send(address, post(path, &headers, body)).await;
            assert_eq!((status, &answer[..]), (200, format!("{{\"id\":\"{id}\"}}").as_bytes()), "{path}");
        }
        for (path, headers, body, expected) in [
            ("/api/1/store/", vec![], envelope(3, 1), 404),
            ("/v1/traces", vec![], envelope(3, 1), 404),
            (PATH, vec![], b"hello".to_vec(), 400),
            (PATH, vec![gzipped], envelope(3, 1), 400),
            (PATH, vec![gzipped], gzip(&[b' '; 200_000]), 413),
            // Python's SDK takes Brotli if that is installed.
            (PATH, vec![("content-encoding", "br")], envelope(3, 1), 415),
        ] {
            assert_eq!(send(address, post(path, &headers, body)).await.0, expected, "{path} {headers:?}");
        }
        let get = hyper::Request::get(PATH).header("host", "sink").body(http_body_util::Full::default());
        assert_eq!(send(address, get.expect("a request")).await.0, 405);
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.rejected, summary.undecodable), (5, 0, 3));
    assert_eq!(summary.spans_by_request, [(3, 1), (1, 2)]);
    assert_eq!(summary.by_protocol["sentry"], 5);
    let services = [("pets", 3), ("till", 1), ("unknown_service", 1)].map(|(name, spans)| (name.to_owned(), spans));
    assert_eq!(summary.by_service, services.into());
    let told = |stage: &str, spans| ReportedLoss { service: "till".into(), stage: stage.into(), spans };
    assert_eq!(summary.reported_losses, [told("queue", 9), told("export", 2)]);
    let shape = summary.shape.expect("the spans are stored");
    assert_eq!((shape.rows, shape.orphaned, shape.wrong_parent), (5, 0, 0));
    let (root, below) = (columns(&rows[0]), columns(&rows[1]));
    assert_eq!((root["kind"].as_str(), root["operation"].as_str()), ("\"server\"", "\"GET /vets\""));
    assert_eq!((below["kind"].as_str(), below["operation"].as_str()), ("\"client\"", "\"SELECT vets\""));
    assert_eq!(below["parent_id"], root["span_id"]);
    assert_eq!((root["start_ns"].as_str(), root["duration_ns"].as_str()), ("1700000000000000000", "1000000"));
}
