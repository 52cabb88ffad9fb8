//! `docs/findings.schema.json` is what the types say, and findings are what it says.

use std::fs;
use std::path::Path;

use unladen_judge::findings::Findings;
use unladen_report::{Format, render};

use crate::alternating::alternate;
use crate::sketch::{Sketch, findings, ladder, late};

fn schema() -> serde_json::Value {
    schemars::schema_for!(Findings).to_value()
}

#[test]
fn the_published_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.schema.json");
    let current = serde_json::to_string_pretty(&schema()).expect("a schema is JSON") + "\n";
    if std::env::var_os("UNLADEN_BLESS").is_some() {
        fs::write(&path, &current).expect("docs is writable");
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert!(published == current, "docs/findings.schema.json is out of date: UNLADEN_BLESS=1 cargo test");
}

#[test]
fn findings_are_valid() {
    let validator = jsonschema::validator_for(&schema()).expect("a JSON Schema");
    let studies = [
        ladder(),
        Sketch { rounds: 3, ..ladder() },
        Sketch { rate: None, budgets: vec![("throughput", "5%"), ("heap", "1MiB")], ..ladder() },
        Sketch { change_run: late, ..ladder() },
        Sketch { change_run: alternate, ..ladder() },
    ];
    for sketch in studies {
        let json = render(&findings(&sketch), Format::Json);
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
        let back: Findings = serde_json::from_value(value).expect("what was written is read back");
        assert_eq!(render(&back, Format::Json), json);
    }
}

#[test]
fn an_invalid_one_is_told_apart() {
    let validator = jsonschema::validator_for(&schema()).expect("a JSON Schema");
    let mut value = serde_json::to_value(findings(&ladder())).expect("findings are JSON");
    value["variants"][0]["metrics"][0]["ratio_low"] = "none".into();
    assert!(!validator.is_valid(&value));
}

/// The keys that other programs were promised.
#[test]
fn the_promised_keys_are_there() {
    let value = serde_json::to_value(findings(&ladder())).expect("findings are JSON");
    let has = |value: &serde_json::Value, keys: &[&str]| {
        for key in keys {
            assert!(value.get(key).is_some(), "{key}");
        }
    };
    has(&value, &["schema", "study", "rounds", "void", "variants"]);
    let variant = &value["variants"][1];
    has(variant, &["name", "valid_runs", "metrics", "ledger"]);
    let finding = &variant["metrics"][0];
    has(finding, &["metric", "unit", "service", "baseline", "value", "verdict", "words", "budget"]);
    has(finding, &["difference", "difference_low", "difference_high", "ratio", "ratio_low", "ratio_high"]);
    let ledger = &variant["ledger"];
    has(ledger, &["expected", "saved", "lost", "duplicates", "unexplained", "loss_ratio", "by_stage"]);
    has(ledger, &["cpu_us_per_delivered_span"]);
}
