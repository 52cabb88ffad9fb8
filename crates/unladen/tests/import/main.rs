//! `unladen import`: every format that it reads, by files such as the tools write them, through the real executable.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use unladen_journal::record::Imported;
use unladen_judge::findings::{Findings, Outcome, Verdict};
use unladen_study::measured::read;

/// Numbers by metric.
type Numbers = [(&'static str, f64)];

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/files")
}

/// `unladen import` among the example files; `{out}` in an argument is the run folder.
fn import(out: &Path, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unladen"));
    command.current_dir(files()).env("NO_COLOR", "1").arg("import").args(arguments).arg("--out").arg(out).assert()
}

/// What stands in the journal for a file that is both sides.
fn read_in(arguments: &[&str]) -> Vec<Imported> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    import(&out, arguments).success();
    read(&out).expect("a run folder").runs.into_iter().filter_map(|run| run.imported).collect()
}

#[track_caller]
fn holds(imported: &Imported, numbers: &Numbers) {
    for (metric, expected) in numbers {
        let found = imported.numbers.get(*metric).copied().unwrap_or_else(|| panic!("{}: no {metric}", imported.tool));
        assert!(
            (found - expected).abs() <= 1e-9 * expected.abs(),
            "{}: {metric} is {found}, not {expected}",
            imported.tool
        );
    }
}

#[test]
fn every_tool_is_read_in_its_own_units() {
    let cases: [(&str, &str, u64, &Numbers); 6] = [
        (
            "k6.json",
            "k6",
            90_000,
            &[
                ("latency_mean", 3_580.0),
                ("latency_p50", 2_960.0),
                ("latency_p95", 7_470.0),
                ("throughput", 1_383.3),
                ("error_rate", 0.0),
            ],
        ),
        (
            "wrk.txt",
            "wrk",
            1_511_214,
            &[
                ("latency_mean", 1_270.0),
                ("latency_max", 12_920.0),
                ("latency_p99", 2_950.0),
                ("throughput", 50_373.81),
                ("error_rate", 12.0 / 1_511_214.0),
            ],
        ),
        (
            "vegeta.txt",
            "vegeta",
            30_000,
            &[
                ("latency_mean", 1_530.0),
                ("latency_p50", 1_402.0),
                ("latency_max", 60_500_000.0),
                ("throughput", 999.98),
            ],
        ),
        ("vegeta.json", "vegeta", 30_000, &[("latency_mean", 1_530.0), ("latency_p99", 5_100.0)]),
        (
            "hyperfoil.json",
            "Hyperfoil",
            60_000,
            &[
                ("latency_mean", 1_500.0),
                ("latency_p50", 1_400.0),
                ("latency_p999", 9_000.0),
                ("throughput", 2_000.0),
                ("error_rate", 0.0001),
            ],
        ),
        (
            "samples.jtl",
            "JMeter",
            4,
            &[
                ("latency_mean", 20_000.0),
                ("latency_p50", 20_000.0),
                ("latency_p99", 30_000.0),
                ("throughput", 40.0),
                ("error_rate", 0.25),
            ],
        ),
    ];
    for (file, tool, requests, numbers) in cases {
        let runs = read_in(&["--baseline", file, "--variant", &format!("same={file}")]);
        assert_eq!(runs.len(), 2, "{file}");
        assert_eq!((runs[0].tool.as_str(), runs[0].requests), (tool, Some(requests)), "{file}");
        holds(&runs[0], numbers);
        assert_eq!(runs[0], runs[1], "{file}");
    }
}

#[test]
fn a_table_of_repetitions_is_judged() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    let output = import(
        &out,
        &["--baseline", "overhead.csv#none", "--variant", "agent=overhead.csv#agent", "--budget", "latency_mean=50%"],
    );
    let output = String::from_utf8_lossy(&output.success().get_output().stdout).into_owned();
    assert!(output.contains("imported from OpenTelemetry overhead tests"), "{output}");
    assert!(output.contains("do not show whether the variants alternated"), "{output}");
    let text = std::fs::read_to_string(out.join("findings.json")).expect("written");
    let findings: Findings = serde_json::from_str(&text).expect("findings");
    let find = |metric: &str| findings.variants[0].metrics.iter().find(|it| it.metric == metric).expect("imported");
    assert_eq!(find("latency_mean").verdict, Verdict::Costs);
    assert_eq!(find("latency_mean").rounds.len(), 7);
    assert_eq!(find("averageCpuUser").rounds.len(), 6, "a NaN leaves its round out");
    assert!((find("gc_time").baseline - 2_905.0).abs() < 1e-9, "ms, not ns");
    assert_eq!(findings.budgets[0].outcome, Outcome::Fail);
    // The folder is a run folder like any other.
    for (command, code) in [("report", 0), ("gate", 1)] {
        Command::new(env!("CARGO_BIN_EXE_unladen")).arg(command).arg(&out).assert().code(code);
    }
}

#[test]
fn a_plain_table_keeps_what_it_does_not_know() {
    let runs = read_in(&["--baseline", "rounds.csv#bare", "--variant", "agent=rounds.csv#agent"]);
    assert_eq!(runs.len(), 4);
    holds(&runs[0], &[("cpu_per_request", 100.0), ("latency_p99", 910.0), ("queue_depth", 3.0)]);
    holds(&runs[1], &[("cpu_per_request", 101.5)]);
    assert!(!runs[3].numbers.contains_key("latency_p99"), "an empty cell was not measured");
}

/// 50,373 requests per second of 1.27 ms each need 64 connections to be busy; 32 cannot be.
#[test]
fn numbers_that_cannot_be_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let wrk = std::fs::read_to_string(files().join("wrk.txt")).expect("the example");
    std::fs::write(dir.path().join("odd.txt"), wrk.replace("64 connections", "32 connections")).expect("written");
    let odd = dir.path().join("odd.txt").display().to_string();
    let output =
        import(&dir.path().join("out"), &["--baseline", "wrk.txt", "--variant", &format!("odd={odd}")]).success();
    let output = String::from_utf8_lossy(&output.get_output().stdout)
        .into_owned()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(output.contains("imply 64.0 requests in flight, but at most 32 were possible"), "{output}");
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let cases = [
        ("strange.txt", "what is this\n", "strange.txt: this is the output of no tool that unladen knows"),
        ("half.json", "{\"metrics\": {\n", "half.json:2: this is not whole JSON"),
        ("idle.json", "{\"metrics\": {}}", "idle.json: this k6 summary has no `http_req_duration`"),
        ("odd.csv", "round,rss\n1,many\n", "odd.csv:2: `many` in the column `rss` is not a number"),
        (
            "sides.csv",
            "variant,rss\na,1\n",
            "sides.csv: this file has a column `variant`; name the one that is meant with `FILE#VARIANT`",
        ),
        (
            "nightly.csv",
            "timestamp,none:requestAvg\n1,2\n",
            "nightly.csv: this file holds several agents; name one with `FILE#AGENT`: none",
        ),
        (
            "times.jtl",
            "timeStamp,elapsed,success\n1,soon,true\n",
            "times.jtl:2: `soon` is not a number of milliseconds",
        ),
        (
            "wrk.txt",
            "Latency fast 1ms 2ms 90%\nLatency 1xs 1ms 2ms\nRequests/sec: 3\n",
            "wrk.txt:2: `1xs` is not a time of wrk's",
        ),
    ];
    for (name, text, expected) in cases {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        let path = path.display().to_string();
        let output = import(&dir.path().join("out"), &["--baseline", &path, "--variant", "x=k6.json"]).code(2);
        let error = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(error.contains(expected) && !error.contains("panicked"), "{name}: {error}");
        assert!(!dir.path().join("out/journal.jsonl").exists(), "nothing is written for {name}");
    }
    for (arguments, expected) in [
        (vec!["--baseline", "missing.json", "--variant", "x=k6.json"], "cannot read missing.json"),
        (vec!["--baseline", "no-*.json", "--variant", "x=k6.json"], "no file fits"),
        (vec!["--baseline", "k6.json", "--variant", "k6.json"], "write NAME=FILES"),
        (vec!["--baseline", "k6.json", "--variant", "placebo=k6.json"], "cannot be the name of a variant"),
        (vec!["--baseline", "rounds.csv#nobody", "--variant", "x=k6.json"], "baseline has no run"),
    ] {
        let output = import(&dir.path().join("out"), &arguments).code(2);
        let error = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

/// `run-9` comes before `run-10`.
#[test]
fn patterns_are_in_the_order_of_their_numbers() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for round in [1, 2, 9, 10] {
        let text = format!("throughput,latency_mean\n{round},1\n");
        std::fs::write(dir.path().join(format!("run-{round}.csv")), text).expect("written");
    }
    let pattern = dir.path().join("run-*.csv").display().to_string();
    let runs = read_in(&["--baseline", &pattern, "--variant", &format!("same={pattern}")]);
    let order: Vec<f64> = runs.iter().take(4).map(|run| run.numbers["throughput"]).collect();
    assert_eq!(order, [1.0, 2.0, 9.0, 10.0]);
}
