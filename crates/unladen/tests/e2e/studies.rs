//! The studies in `studies/` in their profile `ci`: real databases, real agents, the built-in sink; every span arrives. Their
//! backends, which take long to fetch and to start, are left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use unladen_journal::record::RunRecord;

use crate::harness::{CliOutput, Scratch, on_a_core, study};

/// Runs a study in its profile `ci`. What it keeps for a while goes into the scratch folder, too, so that nothing of it may be left.
fn miniature(name: &str, variants: &[&str]) -> (Scratch, CliOutput, Vec<RunRecord>) {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/subjects/.ready");
    assert!(built.exists(), "the subjects are not built: `make go-subjects` builds them");
    let scratch = Scratch::new();
    let folder = study(name).display().to_string();
    let only = variants.join(",");
    let arguments = ["run", &folder, "--set", "profile=ci", "--only", &only, "--out", "out", "--plain"];
    let output = scratch.command(&arguments).env("TMPDIR", scratch.path("")).output().expect("unladen starts");
    let output = CliOutput::new(&output).ends_with(0);
    scratch.assert_nothing_left();
    let left: Vec<_> =
        fs::read_dir(scratch.path("")).expect("the scratch folder").flatten().map(|it| it.file_name()).collect();
    assert_eq!(left, ["out"], "a folder of a database is left");
    let runs = scratch.runs();
    for variant in variants.iter().chain(&["baseline"]) {
        assert!(runs.iter().any(|run| run.variant == *variant), "no run of {variant}:\n{}", output.err);
    }
    (scratch, output, runs)
}

/// Whether a run counts is a question of how quiet the machine is; whether its spans arrived is none.
fn assert_all_arrived(runs: &[RunRecord], per_request: &BTreeMap<&str, u64>) {
    for run in runs {
        let ledger = run.ledger.as_ref().expect("a ledger");
        let load = run.load.as_ref().expect("a load");
        let wanted = per_request.get(run.variant.as_str()).copied().unwrap_or(0);
        assert_eq!(load.errors, 0, "{}", run.variant);
        assert_eq!(ledger.saved, wanted * load.answered_total, "{}: {ledger:?}", run.variant);
        assert_eq!((ledger.lost, ledger.unexplained, ledger.duplicates), (0, 0, 0), "{}: {ledger:?}", run.variant);
        assert!(run.reported_losses.iter().all(|loss| loss.spans == 0), "{}: {:?}", run.variant, run.reported_losses);
    }
}

#[test]
fn skywalking_go_in_miniature() {
    let _turn = on_a_core();
    let variants = ["skywalking", "skywalking-unsampled", "otel", "otel-unexported", "elastic"];
    let (_scratch, _said, runs) = miniature("skywalking-go", &variants);
    assert_all_arrived(&runs, &[("skywalking", 4), ("otel", 4), ("elastic", 4)].into());
    let sampled_out: u64 = runs
        .iter()
        .filter(|run| run.variant == "skywalking-unsampled")
        .filter_map(|run| Some(run.ledger.as_ref()?.sampled_out))
        .sum();
    assert!(sampled_out > 0, "its sampler says no");
}

#[test]
fn tracing_benchmark_in_miniature() {
    let _turn = on_a_core();
    let variants = ["otlp", "zipkin", "apm", "skywalking"];
    let (_scratch, _said, runs) = miniature("tracing-benchmark", &variants);
    assert_all_arrived(&runs, &variants.map(|variant| (variant, 3)).into());
    for run in &runs {
        let services: Vec<&str> = run.processes.iter().map(|process| process.service.as_str()).collect();
        for service in ["ping", "mariadb", "redis"] {
            assert!(services.contains(&service), "{services:?}");
        }
    }
}
