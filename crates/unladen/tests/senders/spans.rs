//! What was sent beside what was stored.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value};

use crate::sink::{Had, run};

/// Every row that the sink stored in a folder, as DuckDB reads it: see `rows.py`.
#[track_caller]
pub(crate) fn stored(folder: &Path) -> Vec<Value> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    assert!(python.exists(), "{} is not there; `make deps` sets up a Python with DuckDB", python.display());
    parse(&run(Command::new(python).args(["-c", include_str!("rows.py")]).arg(folder)))
}

/// Lines of JSON.
#[track_caller]
pub(crate) fn parse(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

/// Only those members of a row that `wanted` has, in objects within it as well.
fn reduced(row: &Value, wanted: &Value) -> Value {
    match (row, wanted) {
        (Value::Object(row), Value::Object(wanted)) => {
            let member =
                |(key, wanted): (&String, &Value)| (key.clone(), reduced(row.get(key).unwrap_or(&Value::Null), wanted));
            Value::Object(wanted.iter().map(member).collect::<Map<_, _>>())
        }
        _ => row.clone(),
    }
}

/// An operation as the sink prints it: whole in 39 columns, else without its middle.
fn in_print(operation: &str) -> String {
    const ENDS: usize = 19;
    let characters: Vec<char> = operation.chars().collect();
    if characters.len() <= 2 * ENDS + 1 {
        return operation.to_owned();
    }
    let (start, end) = (&characters[..ENDS], &characters[characters.len() - ENDS..]);
    start.iter().chain(&['…']).chain(end).collect()
}

/// How often each row is there, by its text.
fn counted(rows: impl Iterator<Item = Value>) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row.to_string()).or_insert(0) += 1;
    }
    counts
}

/// Fails unless the stored rows are exactly the sent ones, in the members that the sent ones name.
#[track_caller]
pub(crate) fn assert_same(sent: &[Value], stored: &[Value]) {
    let form = sent.first().expect("something was sent");
    let mut counts = counted(stored.iter().map(|row| reduced(row, form)));
    for (row, count) in counted(sent.iter().cloned()) {
        *counts.entry(row).or_insert(0) -= count;
    }
    counts.retain(|_, count| *count != 0);
    let first: Vec<_> = counts.iter().take(6).map(|(row, count)| format!("{count:+} {row}")).collect();
    let text = first.join("\n");
    assert!(counts.is_empty(), "{} rows differ; + is too many, - is missing:\n{text}", counts.len());
}

impl Had {
    /// Fails unless the summary, what was printed and the rows all say that exactly `sent` came in by `protocol`.
    #[track_caller]
    pub(crate) fn has_exactly(&self, sent: &[Value], traces: usize, protocol: &str) {
        let (summary, spans) = (&self.summary, sent.len() as u64);
        assert_eq!((summary.received, summary.saved), (spans, spans), "{summary:#?}");
        let amiss = [summary.duplicates, summary.rejected, summary.undecodable, summary.dropped];
        assert_eq!(amiss, [0; 4], "duplicates, rejected, undecodable, dropped");
        assert_eq!(summary.reported_losses, [], "no agent tells of a loss");
        assert_eq!(summary.by_protocol, BTreeMap::from([(protocol.to_string(), spans)]));
        assert!(self.rows.iter().all(|row| row["protocol"] == protocol));
        let by = |member: &str| {
            let mut counts = BTreeMap::new();
            for row in sent {
                *counts.entry(row[member].as_str().expect("a text").to_string()).or_insert(0) += 1;
            }
            counts
        };
        assert_eq!(summary.by_service, by("service"));
        assert_eq!(summary.traces, traces as u64);
        let operations = summary.operations.iter().map(|row| (row.operation.clone(), row.spans)).collect();
        assert_eq!(by("operation"), operations);
        // 1,500 in print.
        let printed = format!("{},{:03}", spans / 1000, spans % 1000);
        let printed = printed.trim_start_matches("0,");
        let head = self.printed.lines().next().unwrap_or_default();
        assert!(head.starts_with(&format!("{printed} spans received (")), "{}", self.printed);
        assert!(head.contains(&format!(", {printed} stored in ")), "{}", self.printed);
        for trouble in ["received twice", "rejected", "undecodable"] {
            assert!(!head.contains(trouble), "{}", self.printed);
        }
        for operation in by("operation").keys() {
            assert!(self.printed.contains(&in_print(operation)), "no {operation} in:\n{}", self.printed);
        }
        assert_same(sent, &self.rows);
    }
}

#[test]
fn a_row_too_many_or_too_few_or_another_is_found() {
    let row = |span: &str, parent: &str, text: &str| serde_json::json!({"span_id": span, "parent_id": parent, "attributes": {"text": text}, "arrival_ns": 1});
    let sent = |span: &str, parent: &str, text: &str| serde_json::json!({"span_id": span, "parent_id": parent, "attributes": {"text": text}});
    let all = [sent("1", "", "ä"), sent("2", "1", "ö")];
    assert_same(&all, &[row("2", "1", "ö"), row("1", "", "ä")]);
    for wrong in [
        vec![row("1", "", "ä")],
        vec![row("1", "", "ä"), row("2", "1", "ö"), row("2", "1", "ö")],
        vec![row("1", "", "ä"), row("2", "", "ö")],
        vec![row("1", "", "ä"), row("2", "1", "o")],
    ] {
        let found = std::panic::catch_unwind(|| assert_same(&all, &wrong));
        found.expect_err("the rows differ");
    }
}
