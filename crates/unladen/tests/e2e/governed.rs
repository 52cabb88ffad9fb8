//! The studies `sermant-…` in miniature: their services start, and what the governor is said to do is seen to be done.

use std::collections::BTreeMap;

use unladen_journal::record::RunRecord;
use unladen_journal::role::Role;
use unladen_study::set::Set;
use unladen_study::spec::Study;

use crate::harness::{Scratch, build, on_a_core, study};

const STUDIES: [(&str, &[&str]); 6] = [
    ("sermant-router", &["sermant"]),
    ("sermant-removal", &["sermant"]),
    ("sermant-tag-transmission", &["sermant"]),
    ("sermant-tag-queues", &["sermant"]),
    ("sermant-write-prohibition", &["sermant", "sermant-blocking"]),
    ("sermant-consume-prohibition", &["sermant", "sermant-blocking"]),
];

/// Runs a study bare and under the governor, one round in its profile `ci`, with these changes. Whether a run counts is a question of
/// how quiet the machine is; what its requests met is none.
fn miniature(name: &str, variants: &str, sets: &[&str]) -> (BTreeMap<String, RunRecord>, String) {
    build("governed");
    let _turn = on_a_core();
    let scratch = Scratch::new();
    let path = study(name).display().to_string();
    let mut arguments = vec!["run", &path, "--set", "profile=ci", "--only", variants, "--out", "out", "--plain"];
    for set in sets {
        arguments.extend(["--set", set]);
    }
    let output = scratch.unladen(&arguments);
    // 2: the bare one failed too many requests for its run to count, which is what it should do.
    assert!(matches!(output.code, Some(0 | 2)), "{}\n{}", output.out, output.err);
    println!("{}", output.out);
    scratch.assert_nothing_left();
    let runs = scratch.runs();
    let runs: BTreeMap<String, RunRecord> = runs.into_iter().map(|run| (run.variant.clone(), run)).collect();
    for variant in variants.split(',').chain(["baseline"]) {
        assert!(runs.contains_key(variant), "no run of {variant}:\n{}", output.err);
    }
    (runs, output.out)
}

/// Each request wants one of two versions of the provider; the answer of another one counts as an error.
#[test]
fn the_governor_routes_by_label() {
    let (runs, _) = miniature("sermant-router", "governor", &[]);
    for (variant, run) in &runs {
        let load = run.load.as_ref().expect("a load");
        let weighed: Vec<&str> =
            run.processes.iter().filter(|it| it.role == Some(Role::Subject)).map(|it| it.service.as_str()).collect();
        assert_eq!(weighed, ["consumer"], "{variant}");
        let [test] = &load.tests[..] else { panic!("one test: {:?}", load.tests) };
        assert!(test.passed + test.failed >= 60, "{variant}: {test:?}");
        // The bare one asks one after the other, whatever is wanted.
        assert_eq!(test.failed == 0, variant == "governor", "{variant}: {test:?}");
    }
}

/// One of three providers answers too late. The bare consumer goes on calling it; the governed one stops after a few calls, most of
/// them in the warm-up.
#[test]
fn the_governor_takes_out_who_fails() {
    let (runs, _) = miniature("sermant-removal", "governor", &[]);
    let share = |variant: &str| {
        let load = runs[variant].load.as_ref().expect("a load");
        let answers: u64 = load.statuses.values().sum();
        let late = load.statuses.get(&502).copied().unwrap_or(0);
        assert_eq!(answers, 120, "{variant}: {:?}", load.statuses);
        late as f64 / answers as f64
    };
    let bare = share("baseline");
    assert!(bare > 0.25, "a third of the answers of the bare one are late, on a slow machine more, not {bare}");
    assert!(share("governor") < bare / 2.0, "{:?}", runs["governor"].load);
}

/// A tag of the request is to reach the service that is called, by whatever library.
#[test]
fn the_governor_hands_tags_on() {
    for client in ["httpclient4", "grpc", "dubbo"] {
        let (runs, _) = miniature("sermant-tag-transmission", "governor", &[&format!("client={client}")]);
        for (variant, run) in &runs {
            let [test] = &run.load.as_ref().expect("a load").tests[..] else { panic!("one test of {variant}") };
            assert!(test.passed + test.failed >= 30, "{variant}: {test:?}");
            let all_or_none = if variant == "governor" { test.failed } else { test.passed };
            assert_eq!(all_or_none, 0, "{client}, {variant}: {test:?}");
        }
    }
}

/// And every message that is sent for it.
#[test]
fn the_governor_hands_tags_on_by_queues() {
    for queue in ["kafka", "rocketmq-push"] {
        let (runs, _) = miniature("sermant-tag-queues", "governor", &[&format!("queue={queue}")]);
        for (variant, tagged) in [("baseline", 0.0), ("governor", 2000.0)] {
            let output = &runs[variant].reported_numbers["caller"];
            assert_eq!(
                (output["sent"], output["taken"], output["tagged"]),
                (2000.0, 2000.0, tagged),
                "{queue}, {variant}"
            );
        }
    }
}

/// An insert is answered in the same way whether or not a row was written: only the rows show it, and then there is no verdict.
#[test]
fn what_writes_nothing_has_no_verdict() {
    let (runs, out) = miniature("sermant-write-prohibition", "governor,governor-blocking", &[]);
    for (variant, share) in [("baseline", 1.0), ("governor", 1.0), ("governor-blocking", 0.0)] {
        let run = &runs[variant];
        let load = run.load.as_ref().expect("a load");
        assert_eq!((load.errors, load.bodies.len()), (0, 1), "{variant}: {load:?}");
        assert!(
            (run.reported_numbers["rows"]["rows_per_insert"] - share).abs() < f64::EPSILON,
            "{variant}: {:?}",
            run.reported_numbers
        );
    }
    assert!(out.contains("No verdict on our governor, writes refused"), "{out}");
}

/// Messages stay where they are while it is prohibited to take them.
#[test]
fn what_takes_nothing_has_no_verdict() {
    let (runs, out) = miniature("sermant-consume-prohibition", "governor,governor-blocking", &[]);
    for (variant, taken) in [("baseline", 2000.0), ("governor", 2000.0), ("governor-blocking", 0.0)] {
        let output = &runs[variant].reported_numbers["producer"];
        assert_eq!((output["sent"], output["taken"]), (2000.0, taken), "{variant}");
    }
    assert!(out.contains("No verdict on our governor, nothing taken"), "{out}");
}

/// Sermant is left out where it was not brought, and the study says so.
#[test]
fn sermant_that_must_be_brought_is_left_out_loudly() {
    for (name, variants) in STUDIES {
        let without = Study::read(study(name), &[]).expect("a study that reads");
        let (_, out) = without.of_those_that_take_part().expect("a study");
        assert_eq!(out, variants, "{name}");
        let with = Study::read(study(name), &[Set::new("sermant.agent", "/opt/sermant")]).expect("a study that reads");
        let (_, out) = with.of_those_that_take_part().expect("a study");
        assert!(out.is_empty(), "{name}: {out:?}");
    }
}
