//! AWS X-Ray's daemon over real sockets, as its SDKs speak with it, and what broken ones send.

use std::fmt::Write;
use std::net::{SocketAddr, UdpSocket};

use serde_json::Value;
use unladen_ledger::summary::Summary;
use unladen_sink::config::{Config, Protocol, Requests};

use crate::http::{post, send};
use crate::payloads::{Adds, ONE, UNDECODABLE};
use crate::senders::START;
use crate::support::{Sink, block_on, columns, listening};

const REQUESTS: Requests = Requests { tag: 0x1234_5678_9abc_def0, key: 42 };

/// A datagram with a trace: a segment, and the other spans as subsegments, each within the one before.
fn datagram(trace: &[u8; 16], spans: u64) -> Vec<u8> {
    let mut text = "{\"format\": \"json\", \"version\": 1}\n".to_owned();
    let hex = trace.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for number in 0..spans {
        let seconds = |ms: u64| format!("{}.{:03}", START / 1_000_000_000, ms);
        let (start, end) = (seconds(number), seconds(number + 1));
        let is_first = number == 0;
        let (name, kind) = if is_first { ("pets", "") } else { ("SELECT vets", r#""namespace":"remote","#) };
        let ids = format!(r#""id":"{:016x}","trace_id":"1-{}-{}""#, number + 1, &hex[..8], &hex[8..]);
        let open = if is_first { "" } else { r#","subsegments":["# };
        let _ = write!(
            text,
            r#"{open}{{"name":"{name}",{kind}{ids},"start_time":{start},"end_time":{end},"annotations":{{"n":{number}}}"#
        );
    }
    (text + &"}]".repeat(spans.saturating_sub(1) as usize) + "}").into()
}

fn replaced(datagram: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(datagram.to_vec()).expect("it is text");
    assert!(text.contains(from), "{text}");
    text.replacen(from, to, 1).into()
}

/// A sink that receives X-Ray's, and a sender to it.
fn sink() -> (Sink, UdpSocket) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let sink = Sink::with(|config| Config { requests: Some(REQUESTS), ..listening(config, &[Protocol::Xray]) });
    let socket = UdpSocket::bind(any).expect("a socket");
    socket.connect(sink.addresses["xray"]).expect("an address");
    (sink, socket)
}

fn counts(summary: &Summary) -> Adds {
    Adds { undecodable: summary.undecodable, rejected: summary.rejected, received: summary.received }
}

#[test]
fn segments_are_spans() {
    let (sink, sender) = sink();
    let trace = |index| REQUESTS.trace_id(index);
    let streamed = replaced(
        &datagram(&trace(1), 1),
        "\"name\"",
        "\"type\":\"subsegment\",\"parent_id\":\"00000000000000aa\",\"name\"",
    );
    let ends = r#""end_time":1700000000.001"#;
    let in_progress = replaced(&datagram(&trace(2), 1), ends, r#""in_progress":true"#);
    for message in [datagram(&trace(0), 3), streamed, in_progress, datagram(&trace(2), 1), datagram(&trace(2), 1)] {
        sender.send(&message).expect("sent");
    }
    // What was sent before the sink was told to stop is in the socket, and must be in the files.
    let (summary, rows) = sink.stop();
    assert_eq!((summary.received, summary.saved, summary.duplicates), (6, 5, 1), "what is in progress is no span yet");
    assert_eq!((summary.rejected, summary.undecodable, summary.foreign), (0, 0, 0));
    assert_eq!(summary.spans_by_request, [(3, 1), (1, 2)]);
    assert_eq!(summary.by_protocol, [("xray".to_owned(), 6)].into());
    assert_eq!(summary.by_service, [("pets".to_owned(), 4), ("unknown_service".to_owned(), 1)].into());
    assert_eq!(summary.reported_losses, []);
    let rows: Vec<_> = rows.iter().map(columns).collect();
    let kinds: Vec<_> = rows.iter().map(|row| row["kind"].trim_matches('"')).collect();
    assert_eq!(kinds, ["server", "client", "client", "internal", "server"]);
    assert_eq!(rows[2]["parent_id"], rows[1]["span_id"]);
    assert_eq!(rows[1]["parent_id"], rows[0]["span_id"]);
    assert_eq!(
        (rows[0]["start_ns"].as_str(), rows[2]["start_ns"].as_str()),
        ("1700000000000000000", "1700000000002000000")
    );
    assert_eq!((rows[0]["duration_ns"].as_str(), rows[0]["n"].as_str()), ("1000000", "0"));
}

#[test]
fn many_datagrams_arrive() {
    let (sink, sender) = sink();
    let all = 20_000;
    for number in 0..all {
        // As fast as a service with a lot to do: in bursts for which any machine has room.
        sender.send(&datagram(&REQUESTS.trace_id(number), 2)).expect("sent");
        if number % 100 == 99 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    let (summary, folder) = sink.stop_and_keep();
    let lost: u64 = summary.reported_losses.iter().map(|loss| loss.spans).sum();
    // Each has two spans; of a lost one at least one is known.
    assert_eq!(summary.saved + 2 * lost, 2 * all, "{:?}", summary.reported_losses);
    assert_eq!(crate::support::rows(folder.path()).len() as u64, summary.saved);
}

#[test]
fn what_broken_senders_send() {
    let rejected = |rejected| Adds { rejected, ..Adds::default() };
    let trace = |index: u8| [index; 16];
    let sound = |index| datagram(&trace(index), 1);
    // Members in front of the name, as many as a datagram has room for.
    let full = |index, open: &str, one: &str, close: &str| {
        let many = vec![one; 60_000 / (one.len() + 1)];
        (replaced(&sound(index), "\"name\"", &format!("{open}{}{close},\"name\"", many.join(","))), many.len() as u64)
    };
    let (attributes, _) = full(1, "\"annotations\":{", "\"a\":1", "}");
    let (crowd, crowded) = full(2, "\"subsegments\":[", "{}", "]");
    let mut odd = sound(7);
    let at = odd.windows(4).position(|four| four == b"pets").expect("its name");
    odd[at] = 0xff;
    let cases: Vec<(&str, Vec<u8>, Adds)> = vec![
        ("nothing", Vec::new(), UNDECODABLE),
        ("noise", b"\xff\xfe\xfd\xfc and more".to_vec(), UNDECODABLE),
        ("no header", replaced(&sound(3), "{\"format\": \"json\", \"version\": 1}\n", ""), UNDECODABLE),
        ("another version", replaced(&sound(3), "\"version\": 1", "\"version\": 2"), UNDECODABLE),
        ("cut", sound(3)[..sound(3).len() - 1].to_vec(), UNDECODABLE),
        ("two documents", [sound(3), b"{}".to_vec()].concat(), UNDECODABLE),
        ("deep nesting", replaced(&sound(3), "\"pets\"", &"[".repeat(60_000)), UNDECODABLE),
        ("ids of zeros", datagram(&[0; 16], 3), rejected(3)),
        ("an id of the wrong length", replaced(&sound(3), "\"id\":\"0000", "\"id\":\""), rejected(1)),
        ("no end", replaced(&sound(3), "end_time", "end"), rejected(1)),
        ("time running backwards", replaced(&sound(4), "\"end_time\":17", "\"end_time\":1"), ONE),
        ("time beyond numbers", replaced(&sound(5), "\"end_time\":17", "\"end_time\":1e300,\"x\":17"), ONE),
        ("attributes without end", attributes, ONE),
        ("subsegments of two bytes", crowd, Adds { rejected: crowded, ..ONE }),
        ("the deepest subsegments", datagram(&trace(6), 30), Adds { received: 30, ..Adds::default() }),
        ("invalid UTF-8", odd, ONE),
    ];
    for (name, message, expected) in cases {
        let (sink, sender) = sink();
        sender.send(&message).expect("sent");
        sender.send(&datagram(&REQUESTS.trace_id(0), 1)).expect("sent");
        let (summary, _) = sink.stop();
        assert_eq!(counts(&summary), Adds { received: expected.received + 1, ..expected }, "{name}");
        assert_eq!(summary.saved, summary.received, "{name}");
    }
}

#[test]
fn questions_how_to_sample_are_answered_as_by_a_new_account() {
    let (sink, _) = sink();
    let address = sink.addresses["xray"];
    let json = |answer: &[u8]| serde_json::from_slice::<Value>(answer).expect("JSON");
    block_on(async {
        let (status, rules) = send(address, post("/GetSamplingRules", &[], "{}".into())).await;
        let rule = &json(&rules)["SamplingRuleRecords"][0]["SamplingRule"];
        assert_eq!((status, &rule["RuleName"], &rule["Version"]), (200, &"Default".into(), &1.into()));
        assert_eq!((&rule["FixedRate"], &rule["ReservoirSize"]), (&0.05.into(), &1.into()));
        let statistics = r#"{"SamplingStatisticsDocuments":[{"RuleName":"Default","RequestCount":1}]}"#;
        let (status, targets) = send(address, post("/SamplingTargets", &[], statistics.into())).await;
        let targets = json(&targets);
        assert_eq!((status, &targets["SamplingTargetDocuments"]), (200, &Value::Array(Vec::new())));
        assert_eq!(targets["LastRuleModification"], 1.0, "Node.js's SDK takes 0 for none");
        let (status, text) = send(address, post("/TraceSegments", &[], "{}".into())).await;
        assert_eq!(status, 404);
        assert!(String::from_utf8_lossy(&text).contains("spans go to the port of the same number over UDP"));
        let get = hyper::Request::get("/GetSamplingRules").header("host", "sink");
        let get = get.body(http_body_util::Full::default()).expect("a request");
        assert_eq!(send(address, get).await.0, 405);
    });
    sink.stop();
}
