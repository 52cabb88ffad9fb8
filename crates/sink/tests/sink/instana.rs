//! Instana's host agent over real sockets, as its tracers call it, and as a hostile sender might.

use std::fmt::Write;

use serde_json::Value;
use unladen_sink::config::{Config, Protocol, Requests};

use crate::http::{post, send};
use crate::payloads::{Adds, Expect, ONE, UNDECODABLE};
use crate::senders::{MS, START};
use crate::support::{Sink, block_on, columns, listening};

const REQUESTS: Requests = Requests { tag: 0x1234_5678_9abc_def0, key: 42 };
const TRACES: &str = "/com.instana.plugin.python/traces.17";

/// A span of a trace; that of the request has the number 0 and names the service.
pub(crate) fn span(trace: &str, number: u64, out: &mut String) {
    let (id, at) = (number + 1, START / MS + number);
    let (kind, more, service) = match number {
        0 => (1, format!(r#""lt":"{trace}","#), r#""service":"pets","#),
        _ => (2, r#""p":"0000000000000001","#.to_owned(), ""),
    };
    let low = &trace[trace.len().saturating_sub(16)..];
    let _ = write!(
        out,
        r#"{{"t":"{low}","s":"{id:016x}",{more}"n":"GET /vets","k":{kind},"ts":{at},"d":1,"data":{{{service}"http":{{"status":200}},"number":"{number}"}}}}"#
    );
}

fn one(trace: &str, number: u64) -> String {
    let mut out = String::new();
    span(trace, number, &mut out);
    out
}

/// What a hostile sender may send, and what it gets and counts for.
pub(crate) fn hostile(trace: &str) -> Vec<(&'static str, String, Expect, Adds)> {
    let rejected = Adds { rejected: 1, ..Adds::default() };
    let million = 1_000_000;
    let many: String = (0..million).map(|number| format!("\"{number}\":1,")).collect();
    let refused = Expect::Refused(400, "", "nested too deeply");
    vec![
        (
            "ids of the wrong length",
            format!("[{}]", one(trace, 5).replace("\"s\":\"0", "\"s\":\"")),
            Expect::Taken,
            rejected,
        ),
        (
            "time running backwards",
            format!("[{}]", one(trace, 6).replace("\"d\":1", "\"d\":-1e300")),
            Expect::Taken,
            ONE,
        ),
        (
            "a million attributes",
            format!("[{}]", one(trace, 7).replace("\"status\"", &format!("{many}\"status\""))),
            Expect::Taken,
            ONE,
        ),
        ("deep nesting", format!("[{{\"data\":{{\"a\":{}", "[".repeat(100_000)), refused, UNDECODABLE),
        (
            "a million spans of two bytes",
            format!("[{}{{}}]", "{},".repeat(million)),
            Expect::Taken,
            Adds { rejected: 1 + million as u64, ..Adds::default() },
        ),
    ]
}

#[test]
fn a_tracer_announces_itself_and_hands_in_spans() {
    let sink = Sink::with(|config| Config { requests: Some(REQUESTS), ..listening(config, &[Protocol::Instana]) });
    let address = sink.addresses["instana"];
    let trace: String = REQUESTS.trace_id(0).iter().map(|byte| format!("{byte:02x}")).collect();
    block_on(async {
        let ask = async |method: &str, path: &str, body: &str| {
            let mut request = post(path, &[], body.as_bytes().to_vec());
            *request.method_mut() = method.parse().expect("a method");
            let (status, answer) = send(address, request).await;
            (status, String::from_utf8_lossy(&answer).into_owned())
        };
        let (status, answer) = ask("GET", "/", "").await;
        let told: Value = serde_json::from_str(&answer).expect("JSON");
        assert!(status == 200 && told["version"].is_string(), "{status} {answer}");
        let (status, answer) =
            ask("PUT", "/com.instana.plugin.python.discovery", r#"{"pid":17,"name":"python"}"#).await;
        let told: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!((status, &told["pid"], &told["agentUuid"]), (200, &17.into(), &"unladen".into()));
        assert_eq!(ask("HEAD", "/com.instana.plugin.python.17", "").await.0, 200);
        for (path, body, expected) in [
            ("/com.instana.plugin.python.17", "{\"metrics\":{}}", (200, "[]")),
            (TRACES, &format!("[{},{}]", one(&trace, 1), one(&trace, 0)), (200, "[]")),
            (TRACES, &format!("[{}]", one(&trace, 2)), (200, "[]")),
            ("/tracermetrics", r#"{"tracer":"x","pid":17,"metrics":{"dropped":5}}"#, (200, "[]")),
            ("/tracermetrics", "hello", (200, "[]")),
            ("/com.instana.agent.logger", "{\"m\":\"hello\"}", (200, "[]")),
            (TRACES, "hello", (400, "this is no list of Instana's spans")),
            ("/v1/traces", "[]", (404, "spans go to /com.instana.plugin.LANGUAGE/traces.PID")),
        ] {
            let (status, answer) = ask("POST", path, body).await;
            assert!(status == expected.0 && answer.contains(expected.1), "{path} {body:.10}: {status} {answer}");
        }
        assert_eq!(ask("DELETE", TRACES, "").await.0, 405);
    });
    let (summary, rows) = sink.stop();
    assert_eq!((summary.saved, summary.rejected, summary.undecodable), (3, 0, 1));
    assert_eq!((&summary.spans_by_request[..], summary.by_service["pets"]), (&[(3, 1)][..], 3));
    let [lost] = &summary.reported_losses[..] else { panic!("one loss: {:?}", summary.reported_losses) };
    assert_eq!((lost.service.as_str(), lost.stage.as_str(), lost.spans), ("pets", "queue", 5));
    let (query, request) = (columns(&rows[0]), columns(&rows[1]));
    assert_eq!((request["kind"].as_str(), query["kind"].as_str()), ("\"server\"", "\"client\""));
    assert_eq!((&query["parent_id"], request["instance"].as_str()), (&request["span_id"], "\"17\""));
}
