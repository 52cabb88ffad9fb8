//! Findings for other programs: Parquet as DuckDB reads it, by the queries of the documentation, and OTLP metrics as a receiver
//! gets them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsPartialSuccess, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use prost::Message;
use unladen::push::{PushError, push};
use unladen_judge::findings::Findings;
use unladen_report::{Format, bytes};

use crate::sketch::{findings, ladder};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What DuckDB finds, a line per row.
fn duckdb(folder: &Path, query: &str) -> Vec<String> {
    let python = root().join("target/python/bin/python");
    let script = "import duckdb, sys\nfor row in duckdb.sql(sys.argv[1]).fetchall(): print(*row, sep='|')";
    let output = Command::new(&python).args(["-c", script, query]).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}. `make deps` installs it", python.display()));
    assert!(output.status.success(), "{query}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

fn parquet(findings: &Findings) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = bytes(findings, Format::Parquet).expect("Parquet");
    fs::write(folder.path().join("findings.parquet"), file).expect("a temporary folder");
    folder
}

#[test]
fn duckdb_reads_every_number() {
    let findings = findings(&ladder());
    let folder = parquet(&findings);
    let rows = duckdb(folder.path(), "SELECT count(*), count(round), count(DISTINCT variant) FROM 'findings.parquet'");
    let metrics = || findings.variants.iter().flat_map(|it| &it.metrics);
    let rounds: usize = metrics().map(|it| it.rounds.len()).sum();
    let ledgers = 5 * findings.variants.iter().filter(|it| it.ledger.is_some()).count();
    assert_eq!(rows, [format!("{}|{rounds}|{}", metrics().count() + rounds + ledgers, findings.variants.len())]);
    let query = "SELECT variant, value, difference_low, ratio FROM 'findings.parquet' \
                 WHERE metric = 'cpu_per_request' AND service IS NULL AND round IS NULL";
    let mut wanted: Vec<String> = findings
        .variants
        .iter()
        .filter_map(|variant| {
            let it = variant.metrics.iter().find(|it| it.metric == "cpu_per_request" && it.service.is_none())?;
            Some(format!("{}|{:?}|{:?}|{:?}", variant.name, it.value, it.difference_low?, it.ratio?))
        })
        .collect();
    wanted.sort();
    let mut found = duckdb(folder.path(), query);
    found.sort();
    assert_eq!(found, wanted, "to the last digit");
}

#[test]
fn the_queries_of_the_documentation_answer() {
    let folder = parquet(&findings(&ladder()));
    let page = fs::read_to_string(root().join("docs/how-to/watching.md")).expect("the page");
    let answers: Vec<Vec<String>> = page
        .split("```sql\n")
        .skip(1)
        .filter_map(|it| it.split("```").next())
        .map(|query| duckdb(folder.path(), query))
        .collect();
    assert!(answers.len() == 2 && answers[0].iter().any(|it| it.starts_with("otel|rss|None")), "{answers:?}");
    assert_eq!(answers[1].len(), 3 * 12, "three variants, twelve rounds");
}

/// Answers one request, and hands it over.
fn receiver(status: &'static str, answer: Vec<u8>) -> (String, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1/metrics", listener.local_addr().expect("an address"));
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut request = Vec::new();
        let mut piece = [0; 65536];
        let body = loop {
            let length = stream.read(&mut piece).expect("a request");
            request.extend_from_slice(&piece[..length]);
            let Some(end) = request.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
            assert!(head.starts_with("post /v1/metrics http/1.1") && head.contains("application/x-protobuf"), "{head}");
            let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).expect("a length");
            if request.len() >= end + 4 + length.parse::<usize>().expect("a number") {
                break request.split_off(end + 4);
            }
        };
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", answer.len())
            .expect("a reader");
        stream.write_all(&answer).expect("a reader");
        body
    });
    (url, thread)
}

#[test]
fn a_receiver_gets_the_findings_as_gauges() {
    let mut findings = findings(&ladder());
    findings.variants[2].refused = Some("unequal work".to_owned());
    let (url, receiver) = receiver("200 OK", ExportMetricsServiceResponse::default().encode_to_vec());
    let sent = push(&findings, &url, 1_700_000_000_000_000_000).expect("it is taken");
    let request = ExportMetricsServiceRequest::decode(receiver.join().expect("a request").as_slice()).expect("OTLP");
    let metrics: Vec<Metric> =
        request.resource_metrics.into_iter().flat_map(|it| it.scope_metrics).flat_map(|it| it.metrics).collect();
    let mut points = Vec::new();
    for metric in &metrics {
        let Some(metric::Data::Gauge(gauge)) = &metric.data else { panic!("{} is no gauge", metric.name) };
        for point in &gauge.data_points {
            assert_eq!(point.time_unix_nano, 1_700_000_000_000_000_000);
            let Some(number_data_point::Value::AsDouble(value)) = point.value else { panic!("no number") };
            let attributes = format!("{:?}", point.attributes);
            points.push((metric.name.as_str(), attributes, value));
        }
    }
    assert_eq!(points.len(), sent);
    let of = |name: &str, words: &[&str]| -> Vec<f64> {
        let quoted: Vec<String> = words.iter().map(|it| format!("{it:?}")).collect();
        let matches = points.iter().filter(|it| it.0 == name && quoted.iter().all(|word| it.1.contains(word)));
        matches.map(|it| it.2).collect()
    };
    let otel = findings.variants.iter().find(|it| it.name == "otel").expect("the variant");
    let cpu = otel.metrics.iter().find(|it| it.metric == "cpu_per_request").expect("the metric");
    assert_eq!(of("unladen.finding.ratio", &["otel", "cpu_per_request", "low"]), [cpu.ratio_low.expect("an interval")]);
    assert_eq!(of("unladen.finding.value", &["otel", "cpu_per_request"]), [cpu.value]);
    let refused = findings.variants[2].name.clone();
    assert!(of("unladen.finding.ratio", &[&refused]).is_empty(), "what is refused has no difference");
    assert!(!of("unladen.finding.value", &[&refused]).is_empty());
}

#[test]
fn what_is_not_taken_is_told() {
    let findings = findings(&ladder());
    let (url, thread) = receiver("503 Service Unavailable", b"come back later".to_vec());
    let error = push(&findings, &url, 1).expect_err("a refusal");
    assert_eq!(error.to_string(), format!("{url} answered 503 Service Unavailable: come back later"));
    thread.join().expect("it was asked");
    let partial = ExportMetricsPartialSuccess { rejected_data_points: 3, error_message: "too old".to_owned() };
    let partial = ExportMetricsServiceResponse { partial_success: Some(partial) };
    let (url, thread) = receiver("200 OK", partial.encode_to_vec());
    assert!(matches!(push(&findings, &url, 1), Err(PushError::Partial { rejected: 3, .. })));
    thread.join().expect("it was asked");
    // Nobody listens there any more.
    assert!(matches!(push(&findings, &url, 1), Err(PushError::Unreachable { .. })));
    assert!(matches!(push(&findings, "https://127.0.0.1/v1/metrics", 1), Err(PushError::Url(_))));
}
