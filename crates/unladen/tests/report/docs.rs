//! The pages in `docs/` name every metric and every key of the journal.

use std::fs;
use std::path::Path;

use unladen::under_way::LiveFile;
use unladen::under_way::{Live, Second, Service, Variant};
use unladen_judge::metrics::METRICS;

use crate::sketch::ladder;

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).expect("the page is there")
}

#[test]
fn every_metric_is_described() {
    let page = page("reference/metrics.md");
    for metric in METRICS.iter() {
        assert!(
            page.contains(&format!("`{}`", metric.name)),
            "docs/reference/metrics.md says nothing of {}",
            metric.name
        );
    }
}

#[test]
fn every_key_of_the_journal_is_described() {
    let page = page("reference/journal.md");
    let mut run = serde_json::to_value(&ladder().runs()[0]).expect("a record is JSON");
    // Described as "as in its summary.json"; the inner keys of these two are names, not fields.
    run["sink"] = serde_json::Value::Null;
    run["load"]["statuses"] = serde_json::Value::Null;
    let mut keys = Vec::new();
    collect(&run, &mut keys);
    for key in keys {
        assert!(page.contains(&format!("`{key}`")), "docs/reference/journal.md says nothing of {key}");
    }
}

#[test]
fn every_key_of_the_live_file_is_described() {
    let page = page("reference/journal.md");
    let section = page.split("## live.json").nth(1).expect("a section of its own");
    let mut live = Live::default();
    (live.second, live.services) = (Some(Second::default()), vec![Service::default()]);
    let mut keys = Vec::new();
    collect(&serde_json::to_value(LiveFile { pid: 1, start_ticks: 1, live }).expect("JSON"), &mut keys);
    // Of `variants` the keys are names.
    collect(&serde_json::to_value(Variant::default()).expect("JSON"), &mut keys);
    for key in keys {
        assert!(section.contains(&format!("`{key}`")), "docs/reference/journal.md says nothing of {key} in live.json");
    }
}

fn collect(value: &serde_json::Value, keys: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                keys.push(key.clone());
                collect(value, keys);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, keys)),
        _ => {}
    }
}
