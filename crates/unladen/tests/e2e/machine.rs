//! Can this machine tell? The doctor's checks, and a pilot that says what a study would find in what time.

use crate::harness::{Scratch, closed_loop, counting};

#[test]
fn the_doctor_looks_at_everything_and_has_remedies() {
    let scratch = Scratch::new();
    let output = scratch.unladen(&["doctor", "--json"]).ends_with(0);
    let checks: Vec<serde_json::Value> = serde_json::from_str(&output.out).expect("JSON");
    let names: Vec<&str> = checks.iter().filter_map(|check| check["what"].as_str()).collect();
    let expected = [
        "cores",
        "SMT",
        "frequency",
        "idle CPUs",
        "cgroups",
        "limits",
        "networks",
        "containers",
        "Compose",
        "Kubernetes",
        "other load",
        "steal",
        "pressure",
        "memory",
        "clock",
        "timer",
        "open files",
        "io_uring",
        "layout",
    ];
    assert_eq!(names, expected);
    for check in &checks {
        assert!(check["found"].as_str().is_some_and(|found| !found.is_empty()), "{check}");
        assert!(check["remedy"].is_null() || check["remedy"].as_str().is_some_and(|it| it.len() > 20), "{check}");
    }
    let text = scratch.unladen(&["doctor"]).ends_with(0).out;
    assert!(text.contains("This machine can measure") && text.contains("--plan"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

/// What the noise is, is the machine's affair; that it is told with rounds
/// and times is ours.
#[test]
fn a_pilot_tells_what_the_study_would_find_in_what_time() {
    let _turn = counting();
    let study = closed_loop("pilot", "  burn:\n    services: {consumer: {args: [--burn-us, '100']}}\n  same: {}\n");
    let scratch = Scratch::with(&format!("{study}budgets: {{cpu_per_request: 100%}}\n"));
    let output = scratch.run(&["--plan=2", "--rounds", "7", "--warmup", "200ms", "--window", "400ms"]).ends_with(0);
    assert!(output.out.contains("noise of 2 baseline pairs"), "{}", output.out);
    assert!(output.out.contains("7 rounds*") && output.out.contains("Budget on CPU per request"), "{}", output.out);
    let plan = std::fs::read_to_string(scratch.path("out/plan.json")).expect("plan.json");
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!((plan["pairs"].as_u64(), plan["arms"].as_u64(), plan["rounds"].as_u64()), (Some(2), Some(4), Some(7)));
    let cpu = plan["metrics"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|it| it["metric"] == "cpu_per_request")
        .expect("it is told");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    assert!(number(&cpu["noise"]) > 0.0 && number(&cpu["noise_at_most"]) > number(&cpu["noise"]), "{cpu}");
    let reach = cpu["reach"].as_array().expect("a list");
    assert_eq!(reach.iter().map(|it| number(&it["rounds"])).collect::<Vec<_>>(), [6.0, 7.0, 12.0, 24.0]);
    for pair in reach.windows(2) {
        assert!(number(&pair[1]["effect"]) < number(&pair[0]["effect"]), "more rounds find smaller effects: {cpu}");
        assert!(number(&pair[1]["seconds"]) > number(&pair[0]["seconds"]));
    }
    let seconds = number(&plan["seconds_per_run"]) * 4.0 * 7.0;
    assert!((number(&reach[1]["seconds"]) - seconds).abs() < 1e-6, "four arms, seven rounds");
    // Nothing but the baseline was run, and the folder is a study's that can be judged.
    let runs = scratch.runs();
    assert!(runs.iter().all(|run| run.variant == "baseline" || run.variant == "placebo"), "{runs:?}");
    scratch.unladen(&["report", "out"]).ends_with(0);
    // A study that has begun is not planned any more.
    scratch.unladen(&["run", "--resume", "out", "--plan"]).ends_with(2).complains(&["leave out --plan"]);
}
