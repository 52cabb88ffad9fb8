//! The span files in a reader that has nothing to do with the crate that reads them elsewhere: DuckDB, by way of Python. `make deps`
//! sets it up in `target/python`.

use std::path::Path;
use std::process::Command;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value::Value};

use crate::support::{Sink, block_on, request, span};

/// Runs SQL over the files of `$spans` and returns its rows as text.
fn query(out: &Path, sql: &str) -> String {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    let script = "import duckdb, sys\nfor row in duckdb.sql(sys.argv[1]).fetchall(): print(*row)";
    let files = format!("read_parquet('{}/spans/*.parquet', union_by_name = true)", out.display());
    let output = Command::new(python).args(["-c", script, &sql.replace("$spans", &files)]).output();
    let output = output.expect("`make deps` puts a Python with DuckDB into target/python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_string()
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

#[test]
fn duckdb_reads_what_was_sent() {
    const SPANS: u64 = 40_000;
    let sink = Sink::start();
    let list = |number: u64| {
        let values = vec![AnyValue { value: Some(Value::IntValue(number as i64)) }];
        attribute("list", Value::ArrayValue(ArrayValue { values }))
    };
    block_on(async {
        let mut client = TraceServiceClient::connect(format!("http://{}", sink.grpc)).await.expect("the sink listens");
        for first in (0..SPANS).step_by(1_000) {
            let spans = (first..first + 1_000)
                .map(|number| {
                    let mut span = span(number / 4, number % 4);
                    span.attributes = vec![
                        attribute("whole", Value::IntValue(number as i64)),
                        attribute("few", Value::IntValue((number % 5) as i64)),
                        attribute("real", Value::DoubleValue(number as f64 / 8.0)),
                        attribute("truth", Value::BoolValue(number % 3 == 0)),
                        attribute("text", Value::StringValue(format!("größe {}", number % 7))),
                        attribute("own", Value::StringValue(format!("value {number}"))),
                        list(number),
                    ];
                    // A key that not every span has, and one whose type changes.
                    if number % 10 == 0 {
                        span.attributes.push(attribute("seldom", Value::BoolValue(true)));
                    }
                    let turned = if number < 20_000 { Value::IntValue(1) } else { Value::StringValue("one".into()) };
                    span.attributes.push(attribute("turned", turned));
                    span
                })
                .collect();
            client.export(request(spans)).await.expect("accepted");
        }
    });
    let (summary, folder) = sink.stop_and_keep();
    assert_eq!(summary.saved, SPANS);
    let query = |sql: &str| query(folder.path(), sql);
    assert_eq!(
        query("SELECT count(*), count(DISTINCT trace_id), sum(duration_ns) FROM $spans"),
        "40000 10000 40000000000"
    );
    let sums = "SELECT sum(whole), sum(few), sum(real), count(*) FILTER (truth), count(DISTINCT own) FROM $spans";
    assert_eq!(query(sums), "799980000 80000 99997500.0 13334 40000");
    assert_eq!(
        query("SELECT count(*) FROM $spans WHERE own <> 'value ' || whole OR text <> 'größe ' || whole % 7"),
        "0"
    );
    assert_eq!(query("SELECT count(*), count(DISTINCT whole % 10) FROM $spans WHERE seldom"), "4000 1");
    // What has no column of its own is in the JSON object.
    assert_eq!(query("SELECT count(*) FROM $spans WHERE (attributes->'list'->>0)::BIGINT <> whole"), "0");
    let turned = "SELECT turned, attributes->>'turned', count(*) FROM $spans GROUP BY ALL ORDER BY 1";
    assert_eq!(query(turned), "1 None 20000\nNone one 20000");
    let parents = "SELECT count(*) FROM $spans WHERE (parent_id IS NULL) <> (hex(span_id) = '0000000000000001')";
    assert_eq!(query(parents), "0");
    let names = "SELECT DISTINCT service, instance, kind, status, protocol FROM $spans ORDER BY ALL";
    assert_eq!(query(names), "pets pets-1 client unset otlp_grpc\npets pets-1 server unset otlp_grpc");
}
