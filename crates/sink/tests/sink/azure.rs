//! Application Insights over real sockets, as its agents send telemetry, and as a hostile sender might.

use unladen_sink::config::{Config, Protocol, Requests};

use crate::http::{post, send};
use crate::payloads::{Adds, Expect, ONE, UNDECODABLE};
use crate::senders::{MS, START};
use crate::support::{Sink, block_on, columns, gzip, listening};

const REQUESTS: Requests = Requests { tag: 0x1234_5678_9abc_def0, key: 42 };
/// Where telemetry goes.
pub(crate) const PATH: &str = "/v2.1/track";

/// A line with the request, which has the number 0, or a dependency of a trace.
pub(crate) fn item(trace: &str, number: u64) -> String {
    assert_eq!(START, 1_700_000_000 * 1_000 * MS, "which is 22:13:20");
    let (id, second, ms) = (number + 1, 20 + number / 1_000, number % 1_000);
    let parent = if number == 0 { String::new() } else { format!(r#","ai.operation.parentId":"{:016x}""#, 1) };
    let kind = if number == 0 { "RequestData" } else { "RemoteDependencyData" };
    format!(
        "{{\"time\":\"2023-11-14T22:13:{second:02}.{ms:03}Z\",\"tags\":{{\"ai.operation.id\":\"{trace}\",\"ai.cloud.role\":\"pets\"{parent}}},\
         \"data\":{{\"baseType\":\"{kind}\",\"baseData\":{{\"id\":\"{id:016x}\",\"name\":\"GET /vets\",\"duration\":\"00:00:00.001\",\
         \"success\":true,\"properties\":{{\"number\":\"{number}\"}}}}}}}}\n"
    )
}

/// What a hostile sender may send, and what it gets and counts for.
pub(crate) fn hostile(trace: &str) -> Vec<(&'static str, String, Expect, Adds)> {
    let rejected = Adds { rejected: 1, ..Adds::default() };
    let million = 1_000_000;
    let sound = |number: u64| item(trace, 0).replace("0001\"", &format!("{number:04}\""));
    let many: String = (0..million).map(|number| format!("\"{number}\":1,")).collect();
    vec![
        (
            "ids of the wrong length",
            sound(1).replace(trace, "0707"),
            Expect::Refused(400, "", "32 hexadecimal digits"),
            rejected,
        ),
        ("time running backwards", sound(2).replace("\"00:00:00.001\"", "\"-106751.00:00:00\""), Expect::Taken, ONE),
        (
            "a million attributes",
            sound(3).replace("\"properties\":{", &format!("\"properties\":{{{many}")),
            Expect::Taken,
            ONE,
        ),
        (
            "deep nesting",
            format!("[{{\"data\":{{\"baseData\":{{\"properties\":{{\"a\":{}", "[".repeat(100_000)),
            Expect::Refused(400, "", "nested too deeply"),
            UNDECODABLE,
        ),
        ("a million items", "{}\n".repeat(million), Expect::Taken, Adds::default()),
        (
            "a million broken items",
            format!("{}{}", sound(4), "{\"data\":{\"baseType\":\"RequestData\"}}\n".repeat(200_000)),
            Expect::Taken,
            Adds { rejected: 200_000, ..ONE },
        ),
    ]
}

#[test]
fn telemetry() {
    let sink = Sink::with(|config| Config {
        requests: Some(REQUESTS),
        max_message: 100_000,
        ..listening(config, &[Protocol::Azure])
    });
    let address = sink.addresses["azure"];
    let trace = |index| REQUESTS.trace_id(index).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let message = "{\"data\":{\"baseType\":\"MessageData\",\"baseData\":{\"message\":\"hello\"}}}\n";
    let lines = |index| [item(&trace(index), 0), item(&trace(index), 1), message.into()].concat();
    let array = |index| format!("[{}]", [item(&trace(index), 0), message.into()].join(","));
    let gzipped = ("content-encoding", "gzip");
    let json = |answer: &[u8]| serde_json::from_slice::<serde_json::Value>(answer).expect("JSON");
    block_on(async {
        let (status, answer) = send(address, post(PATH, &[gzipped], gzip(lines(0).as_bytes()))).await;
        let all = serde_json::json!({"itemsReceived": 3, "itemsAccepted": 3, "errors": []});
        assert_eq!((status, json(&answer)), (200, all));
        let (status, answer) = send(address, post("/v2/track", &[], array(1).into())).await;
        let all = serde_json::json!({"itemsReceived": 2, "itemsAccepted": 2, "errors": []});
        assert_eq!((status, json(&answer)), (200, all));
        let broken = [message.into(), item("0707", 0), item(&trace(2), 0)].concat();
        let (status, answer) = send(address, post(PATH, &[], broken.into())).await;
        let answer = json(&answer);
        assert_eq!((status, &answer["itemsReceived"], &answer["itemsAccepted"]), (206, &3.into(), &2.into()));
        assert_eq!((&answer["errors"][0]["index"], &answer["errors"][0]["statusCode"]), (&1.into(), &400.into()));
        for (path, body, expected) in [
            ("/v2.1/track", "hello", 400),
            ("/v2.1/track", &" ".repeat(200_000), 413),
            ("/v3/track", "{}", 404),
            ("/QuickPulseService.svc/ping?ikey=0", "", 200),
            ("/QuickPulseService.svc/post", "[]", 200),
        ] {
            assert_eq!(send(address, post(path, &[], body.into())).await.0, expected, "{path} {body:.10}");
        }
        let get = hyper::Request::get("/api/profiles/0/appId").header("host", "sink");
        let (status, id) = send(address, get.body(http_body_util::Full::default()).expect("a request")).await;
        assert_eq!((status, id.len()), (200, 36));
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.rejected, summary.undecodable), (4, 1, 2));
    assert_eq!(summary.spans_by_request, [(2, 1), (1, 2)]);
    assert_eq!(summary.by_protocol["azure"], 4);
    assert_eq!(summary.by_service, [("pets".to_owned(), 4)].into());
    let shape = summary.shape.expect("the spans are stored");
    assert_eq!((shape.rows, shape.orphaned, shape.wrong_parent), (4, 0, 0));
    let (request, dependency) = (columns(&rows[0]), columns(&rows[1]));
    assert_eq!((request["kind"].as_str(), dependency["kind"].as_str()), ("\"server\"", "\"client\""));
    assert_eq!(dependency["parent_id"], request["span_id"]);
    assert_eq!((request["start_ns"].as_str(), request["duration_ns"].as_str()), ("1700000000000000000", "1000000"));
}
