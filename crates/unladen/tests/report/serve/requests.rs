//! Pages, files, and who may ask for them.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;
use unladen_journal::record::ProcessRecord;
use unladen_journal::role::Role;

use super::{Server, history, study};
use crate::files;

pub(super) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head").1
}

#[test]
fn studies_are_listed_with_their_verdicts() {
    let root = history();
    let server = Server::start(root.path());
    let (status, page) = server.ask("/");
    assert_eq!(status, 200);
    assert!(page.contains("2 studies, 5 results"), "{page}");
    assert!(page.contains("shop &amp; co") && page.contains("/study?name=shop%20%26%20co"));
    assert!(page.contains("Open &lt;b&gt;Telemetry&lt;&#x2f;b&gt; costs") && !page.contains("<b>Telemetry"));
    assert!(page.contains("/files/old/shop%203/report.html"));
    let (_, runs) = server.ask("/api/runs");
    let runs: Value = serde_json::from_str(body(&runs)).expect("JSON");
    let ids: Vec<&str> = runs.as_array().expect("a list").iter().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!(ids, ["shop-4", "old/shop 3", "shop-2", "shop-1", "other"], "the latest first");
    assert_eq!(runs[0]["budgets"], "fail");
    assert_eq!(runs[3]["budgets"], "pass");
}

#[test]
fn a_change_is_marked_where_it_happened() {
    let root = history();
    let server = Server::start(root.path());
    let (_, trends) = server.ask("/api/trends?name=shop%20%26%20co");
    let trends: Value = serde_json::from_str(body(&trends)).expect("JSON");
    let of = |metric: &str| {
        let all = trends.as_array().expect("a list").iter();
        all.clone().find(|it| it["key"]["metric"] == metric).expect("the metric").clone()
    };
    let changes = |trend: &Value| -> Vec<Value> {
        trend["points"].as_array().expect("points").iter().map(|it| it["change"].clone()).collect()
    };
    assert_eq!(changes(&of("cpu_per_request")), [Value::Null, Value::Null, "up".into(), Value::Null]);
    assert_eq!(changes(&of("rss")), vec![Value::Null; 4]);
    let (status, page) = server.ask("/study?name=shop%20%26%20co");
    assert_eq!(status, 200);
    assert!(page.replace("&#x2f;", "/").contains("more in old/shop 3"), "{page}");
    assert_eq!(server.ask("/study?name=nothing").0, 404);
}

#[test]
fn every_service_has_its_course_over_the_run() {
    let root = history();
    let mut runs = study("shop-4", "shop & co", 1.305).runs();
    for run in &mut runs {
        let process = |service: &str, role, replica, share| ProcessRecord {
            service: service.to_owned(),
            role,
            replica,
            cpu_ns: run.processes[0].cpu_ns.map(|cpu| cpu / share),
            rss: Some(1 << 20),
            ..ProcessRecord::default()
        };
        let more = [
            process("otelcol", Some(Role::Collector), 0, 4),
            process("otelcol", Some(Role::Collector), 1, 4),
            process("sink", None, 0, 10),
        ];
        run.processes.extend(more);
    }
    files::write(&root.path().join("shop-4"), &runs);
    let server = Server::start(root.path());
    let (status, found) = server.ask("/api/resources?id=shop-4");
    assert_eq!(status, 200, "{found}");
    let found: Value = serde_json::from_str(body(&found)).expect("JSON");
    let services = found["services"].as_array().expect("services");
    let text = |it: &Value, key: &str| it[key].as_str().expect("a text").to_owned();
    let of = |variant: &str| -> Vec<(String, String)> {
        let of = services.iter().filter(|it| it["variant"] == variant);
        of.map(|it| (text(it, "service"), text(it, "role"))).collect()
    };
    let pair = |service: &str, role: &str| (service.to_owned(), role.to_owned());
    let subject = runs[0].processes[0].service.as_str();
    assert_eq!(of("otel"), [pair(subject, "subject"), pair("otelcol", "collector"), pair("sink", "instrument")]);
    assert_eq!((of("baseline").len(), found["unread"].as_u64()), (3, Some(0)));
    let median = |number: usize| services[number]["cpu_cores"]["median"][1].as_f64().expect("a number");
    let collector = services.iter().position(|it| it["role"] == "collector").expect("the collector");
    assert!(((median(0) / median(collector)) - 2.0).abs() < 0.2, "its two replicas are added up");
    // Without the files of its runs, and without a folder.
    let (_, none) = server.ask("/api/resources?id=shop-1");
    let none: Value = serde_json::from_str(body(&none)).expect("JSON");
    assert!(none["services"].as_array().is_some_and(Vec::is_empty) && none["unread"].as_u64() > Some(0), "{none}");
    assert_eq!(server.ask("/api/resources?id=nothing").0, 404);
}

#[test]
fn two_results_are_held_beside_each_other_in_the_order_of_time() {
    let root = history();
    let server = Server::start(root.path());
    let (status, page) = server.ask("/compare?a=shop-4&b=shop-1");
    assert_eq!(status, 200, "{page}");
    let row = page
        .lines()
        .find(|it| it.contains("<td>CPU per request</td>") && it.contains("Telemetry"))
        .expect("the metric");
    assert!(row.contains("change more") && row.find("+10").expect(row) < row.find("+30").expect(row), "{row}");
    assert!(page.contains("<th>commit</th><td class=\"words\">shop-1</td><td class=\"words\">shop-4</td>"), "{page}");
    assert!(!page.contains("<th>cpu</th>"), "what is the same is no difference");
    assert_eq!(server.ask("/compare?a=shop-1&b=other").0, 409);
    assert_eq!(server.ask("/compare?a=shop-1&b=nothing").0, 404);
    assert_eq!(server.ask("/compare?a=shop-1").0, 400);
}

#[test]
fn files_of_run_folders_are_served_and_no_others() {
    let root = history();
    fs::write(root.path().join("secret.txt"), "secret").expect("a temporary folder");
    let run = root.path().join("shop-1");
    symlink(root.path().join("secret.txt"), run.join("link.txt")).expect("a link");
    symlink("..", run.join("up")).expect("a link");
    let server = Server::start(root.path());
    let (status, report) = server.ask("/files/shop-1/report.html");
    assert_eq!(status, 200);
    assert!(
        report.contains("content-security-policy: sandbox") && report.trim_end().ends_with("</html>"),
        "whole, and a stranger"
    );
    assert_eq!(server.ask("/files/old/shop%203/journal.jsonl").0, 200);
    assert!(server.ask("/files/shop-1/").1.contains("findings.json"));
    assert_eq!(server.ask("/files/shop-1").0, 308);
    for path in [
        "/files/secret.txt",
        "/files/shop-1/../secret.txt",
        "/files/shop-1/%2e%2e/secret.txt",
        "/files/shop-1/..%2fsecret.txt",
        "/files/shop-1/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/passwd",
        "/files/shop-1//etc/passwd",
        "/files/%2fetc/passwd",
        "/files/shop-1/link.txt",
        "/files/shop-1/up/secret.txt",
        "/files/shop-1/up/",
        "/files/../secret.txt",
        "/files/shop-1/report.html%00.txt",
        "/live/../secret.txt",
        "/events/..%2f",
        "/assets/../secret.txt",
    ] {
        let (status, answer) = server.ask(path);
        assert!((400..500).contains(&status), "{path}: {answer}");
        assert!(
            !body(&answer).contains("secret\n") && !answer.ends_with("secret") && !answer.contains("root:"),
            "{path}"
        );
    }
}

#[test]
fn pages_on_the_web_cannot_ask() {
    let root = history();
    let server = Server::start(root.path());
    let port = server.address.rsplit_once(':').expect("a port").1.to_owned();
    for host in
        ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", "192.168.0.1", "x@localhost", ""]
    {
        let (status, answer) = server.ask_as(host, "/");
        assert!(status == 421 || status == 400, "{host}: {answer}");
        assert!(!answer.contains("shop"), "{host}");
    }
    for host in ["localhost", "127.0.0.1", &format!("localhost:{port}"), "[::1]:99"] {
        assert_eq!(server.ask_as(host, "/").0, 200, "{host}");
    }
    assert_eq!(server.send("GET / HTTP/1.0\r\n\r\n").0, 421, "without a name nobody is served");
    let two = "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert!(server.send(two).0 >= 400);
    let posted = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(server.send(posted).0, 405, "nothing is changed by asking");
}

#[test]
fn the_chart_library_comes_compressed_to_whoever_takes_it() {
    let root = history();
    let server = Server::start(root.path());
    let request =
        "GET /assets/plotly.js HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip, br\r\nConnection: close\r\n\r\n";
    let compressed = server.send(request).1;
    assert!(compressed.contains("content-encoding: gzip"));
    let plain = server.ask("/assets/plotly.js").1;
    assert!(body(&plain).contains("plotly.js v") && plain.len() > compressed.len());
}
