//! A study of two machines, put together by `unladen merge`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use unladen_journal::record::VariantKind;
use unladen_judge::findings::{Cell, Findings};

use crate::sketch::{Sketch, SketchedVariant, sketched, write};
use crate::verdicts::{codes, finding};

/// Six rounds of a variant that costs so much, on a machine of that name.
fn measured(root: &Path, machine: &str, seed: u64, cost: f64) {
    let otel = sketched("otel", "OpenTelemetry", VariantKind::Variant);
    let study = Sketch::new("two", "Does it cost the same on both machines?");
    let study = Sketch { rounds: 6, seed, ..study.with(SketchedVariant { cpu: cost, ..otel }) };
    let dir = root.join(machine);
    fs::create_dir(&dir).expect("a folder");
    let runs = study.runs();
    write(&dir, &study.study(), &runs);
    for run in &runs {
        fs::create_dir_all(dir.join(&run.dir).join("logs")).expect("a folder");
        fs::write(dir.join(&run.dir).join("logs/app.log"), machine).expect("a file");
    }
    let host = json!({"hostname": machine, "unladen": "1.0.0", "cpu": format!("CPU of {machine}"), "cores": 4, "cores_apart": true, "seed": seed});
    fs::write(dir.join("host.json"), host.to_string()).expect("a file");
}

fn unladen(root: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unladen")).args(arguments).current_dir(root).output().expect("the executable")
}

/// What is found of a study of two machines, on which the variant costs this, and what is printed.
fn merged(costs: [f64; 2]) -> (tempfile::TempDir, Findings, String) {
    let root = tempfile::tempdir().expect("a folder");
    measured(root.path(), "xeon", 1, costs[0]);
    measured(root.path(), "epyc", 2, costs[1]);
    let output = unladen(root.path(), &["merge", "xeon", "amd=epyc", "--out", "both"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let findings = fs::read_to_string(root.path().join("both/findings.json")).expect("findings");
    (root, serde_json::from_str(&findings).expect("findings"), printed)
}

#[test]
fn rounds_of_two_machines_are_rounds_of_one_study() {
    let (root, findings, printed) = merged([1.20, 1.20]);
    assert_eq!((findings.rounds, findings.rounds_begun, findings.runs.len()), (12, 12, 36));
    assert_eq!(finding(&findings, "otel", "cpu_per_request").rounds.len(), 12);
    assert!(!codes(&findings).contains(&"machines_disagree"), "{:?}", findings.notices);
    let table = findings.sections.iter().find(|it| it.title == "CPU per request by machine").expect("a table");
    let names: Vec<String> = table.rows.iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    let aa = "A/A control (baseline vs. itself)";
    assert_eq!(
        names,
        [format!("{aa} xeon"), format!("{aa} amd"), "OpenTelemetry xeon".into(), "OpenTelemetry amd".into()]
    );
    for row in &table.rows[2..] {
        let Cell::Number(cost) = &row[5] else { panic!("{row:?}") };
        assert!(cost.low < Some(20.0) && Some(20.0) < cost.high, "{cost}");
    }
    assert!(printed.contains("CPU of xeon") && printed.contains("CPU of epyc"), "{printed}");
    // The files of each run are where its line says.
    for run in &findings.runs {
        let log = fs::read_to_string(root.path().join("both").join(&run.dir).join("logs/app.log")).expect("a log");
        assert_eq!(log, if run.machine == "amd" { "epyc" } else { "xeon" });
    }
}

#[test]
fn machines_that_disagree_are_told() {
    let (_root, findings, printed) = merged([1.10, 1.40]);
    let notice = findings.notices.iter().find(|it| it.code == "machines_disagree").expect("a warning");
    assert!(notice.text.contains("on xeon (6 rounds)") && notice.text.contains("on amd (6 rounds)"), "{}", notice.text);
    assert!(notice.text.starts_with("otel does not cost the same"), "the A/A control agrees: {}", notice.text);
    assert!(printed.contains("does not cost the same on all machines"), "{printed}");
    assert!(!codes(&findings).contains(&"starts_in_groups"), "it is told once");
}

#[test]
fn what_cannot_be_merged_or_resumed_is_told() {
    let (root, _, _) = merged([1.2, 1.2]);
    let error = |arguments: &[&str]| {
        let output = unladen(root.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(error(&["merge", "xeon", "epyc", "--out", "both"]).contains("nothing is overwritten"));
    assert!(error(&["merge", "xeon", "a=xeon", "--out", "new"]).contains("one is a copy of the other"));
    assert!(error(&["merge", "both", "epyc", "--out", "new"]).contains("merged study"));
    assert!(error(&["merge", "xeon", "nowhere", "--out", "new"]).contains("cannot read nowhere/study.yaml"));
    assert!(error(&["run", "--resume", "both"]).contains("rounds of several machines"));
    assert!(!root.path().join("new").exists(), "nothing is left of what was refused");
    let study = fs::read_to_string(root.path().join("epyc/study.yaml")).expect("a study");
    fs::write(root.path().join("epyc/study.yaml"), study.replace("rate: 2000", "rate: 1000")).expect("a file");
    let told = error(&["merge", "xeon", "epyc", "--out", "new"]);
    assert!(told.contains("`rate: 2000.0` and `rate: 1000.0`"), "{told}");
}
