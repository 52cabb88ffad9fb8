//! The load of a study in all its forms: every way of pacing, scripts, fixed work, drivers, and what follows the window.

use std::fs;

use unladen_journal::notices::{LoadNotice, Notice};
use unladen_judge::findings::{AnswerNumbers, TimesFrom, Verdict};
use unladen_linux::CpuSet;

use crate::harness::{
    Scratch, assert_nothing_left, closed_loop, counting, finding, on_a_core, on_all_cores, with_load,
};

#[test]
fn every_way_of_pacing_runs() {
    let _turn = on_all_cores();
    let cases = [
        ("poisson", "  rate: 100\n  arrival: poisson", 0),
        ("stages", "  stages: [{duration: 500ms, target: 100}, {duration: 1s, target: 50}]", 0),
        ("users", "  users: {count: 4, think: 20ms}", 0),
        ("throughput", "  users: {count: 4, think: 0s, rate: 60}", 0),
        ("replay", "  replay: gaps.txt", 0),
        ("slot", "  rate: 100\n  slot: 500us", 0),
        (
            "mix",
            "  users: {count: 2, think: 5ms}\n  script: {requests: [{name: a, weight: 3, path: /work}, {name: b, path: /ready}]}",
            2,
        ),
        (
            "sequence",
            "  users: {count: 2, think: 5ms}\n  script: {order: sequence, values: {n: {counter: 1}}, requests: [{name: first, path: '/ready?{{n}}', capture: {word: {regex: 're(.*)'}}, expect: {ready: {body_contains: ready}}}, {name: second, path: '/work?{{word}}'}]}",
            2,
        ),
    ];
    // Four beside each other: whether the generator was in time is the machine's affair; what was sent is ours.
    for four in cases.chunks(4) {
        std::thread::scope(|scope| {
            four.iter().for_each(|&(name, load, named)| drop(scope.spawn(move || paced(name, load, named))));
        });
    }
}

/// A second of this load: requests were sent, of so many names, and none failed.
fn paced(name: &str, load: &str, named: usize) {
    let scratch = Scratch::with(&with_load("pacing", load, "  same: {}\n"));
    scratch.write("gaps.txt", "5000\n15000\n");
    scratch.run(&["--rounds", "1", "--window", "1s", "--set", "placebo=false"]);
    let runs = scratch.runs();
    assert!(runs.len() >= 2, "{name}");
    for run in &runs {
        let load = run.load.as_ref().unwrap_or_else(|| panic!("{name}: {:?}", run.void));
        assert!(load.requests >= 20 && load.errors == 0, "{name}: {} and {}", load.requests, load.errors);
        assert_eq!(load.named.len(), named, "{name}");
        assert!(load.named.iter().all(|request| request.requests > 0), "{name}: {:?}", load.named);
        if name == "sequence" {
            assert_eq!((load.tests[0].name.as_str(), load.tests[0].failed), ("ready", 0));
        }
        if name == "throughput" {
            assert!(load.rate <= 66.0, "users waited for their turn: {}", load.rate);
        }
    }
}

/// 300 requests, whoever is how slow; and a burst of as many.
#[test]
fn a_fixed_number_of_requests_is_timed() {
    let _turn = on_a_core();
    let variants = "  slow:\n    spans_per_request: 4\n    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${sink.otlp_grpc}\"}, args: [--trace, otlp, --burn-us, '3000']}}\n";
    let scratch = Scratch::with(&with_load("fixed", "  requests: 300\n  connections: 4", variants));
    scratch.run(&["--warmup", "200ms", "--set", "placebo=false"]).ends_with(0);
    for run in scratch.runs() {
        let (load, work) = (run.load.expect("a load"), run.work.expect("work"));
        assert_eq!((load.requests + load.errors, work.units), (300, 300), "{}", run.variant);
        assert!((work.completion_s - load.duration_s).abs() < 1e-9 && work.completion_s > 0.0);
        assert!((run.phases.window_s - work.completion_s).abs() < 1e-9);
        let ledger = run.ledger.expect("a ledger");
        let spans = if run.variant == "slow" { 1200 } else { 0 };
        assert_eq!((ledger.expected, ledger.lost, ledger.unexplained, ledger.foreign), (spans, 0, 0, 0), "{ledger:?}");
    }
    let findings = scratch.findings();
    for metric in ["completion_time", "completion_time_per_million", "cpu_per_request"] {
        let found = finding(&findings, "slow", metric);
        assert!(found.ratio_low.expect("an interval") > 0.0, "{metric}: {}", found.words);
        assert_eq!(found.verdict, Verdict::Costs, "{metric}");
    }
    let time = finding(&findings, "slow", "completion_time");
    let million = finding(&findings, "slow", "completion_time_per_million");
    assert!((million.value / time.value - 1e6 / 300.0).abs() < 1.0, "{} {}", million.value, time.value);
    assert!(findings.load.fixed_work && findings.load.pacing.starts_with("300 requests, closed loop"));

    let scratch = Scratch::with(&with_load("burst", "  burst: 200\n  connections: 20", "  same: {}\n"));
    scratch.run(&["--rounds", "1", "--set", "placebo=false"]).ends_with(0);
    for run in scratch.runs() {
        assert_eq!(
            (run.void, run.load.map(|load| load.requests), run.work.map(|work| work.units)),
            (None, Some(200), Some(200))
        );
    }
    scratch.assert_nothing_left();
}

/// Two iterations of three end at a page that costs nothing; who is slow at the first step is slow at all.
#[test]
fn answers_have_kinds_and_iterations_a_time_of_their_own() {
    let _turn = on_a_core();
    let load = r#"  requests: 60
  connections: 1
  script:
    order: sequence
    values: {page: {csv: pages.csv, column: page}}
    requests:
      - {name: work, path: /work}
      - name: page
        path: '/{{page}}'
        kinds:
          ready: {body_contains: ready}
          also ready: {body_contains: read}
          worked: {body_matches: '^ok'}
"#;
    let variants = "  slow:\n    services: {consumer: {args: [--burn-us, '4000']}}\n";
    let scratch = Scratch::with(&with_load("kinds", load, variants));
    scratch.write("pages.csv", "page\nready\nready\nwork\n");
    let output = scratch.run(&["--rounds", "2", "--warmup", "200ms", "--set", "placebo=false"]).ends_with(0);
    for run in scratch.runs() {
        let load = run.load.expect("a load");
        let kinds: Vec<_> =
            load.kinds.iter().map(|it| (it.name.as_str(), it.requests, it.iteration_us.count)).collect();
        assert_eq!(kinds, [("ready", 40, 40), ("also ready", 0, 0), ("worked", 20, 20), ("other", 0, 0)]);
        let iterations = load.iterations.expect("of two requests");
        assert_eq!((iterations.completed, iterations.failed, iterations.unfinished), (60, 0, 0));
    }
    let findings = scratch.findings();
    let slow = findings.variants.iter().find(|it| it.name == "slow").expect("a variant");
    let sorts: Vec<_> = slow.answers.iter().map(|it| (it.name(), it.from)).collect();
    let of = |from: TimesFrom, names: &[&str]| names.iter().map(|name| ((*name).to_owned(), from)).collect::<Vec<_>>();
    let by_request = of(TimesFrom::Request, &["work", "page", "page: ready", "page: worked"]);
    let by_iteration = of(TimesFrom::Iteration, &["page: ready", "page: worked", "whole iterations"]);
    assert_eq!(sorts, [by_request, by_iteration].concat());
    let p50 = |at: usize| {
        let answers = &slow.answers[at];
        let of = |numbers: Option<AnswerNumbers>| numbers.expect("numbers").p50_us.expect("enough").value;
        (of(answers.baseline), of(answers.value))
    };
    // Nothing is burnt for pages that are just ready.
    for (at, burnt) in [(0, true), (3, true), (4, true), (5, true), (6, true), (2, false)] {
        let (bare, slow) = p50(at);
        assert_eq!(slow > bare + 3_500.0, burnt, "{at}: {bare} and {slow}");
    }
    for part in ["Whole iterations, from", "Iterations up to page: worked", "p50, ms"] {
        assert!(output.out.contains(part), "no {part} in {}", output.out);
    }
    let csv = scratch.unladen(&["report", "out", "--format", "csv"]).ends_with(0).out;
    let rows = csv.lines().filter(|line| line.contains(",answers.count,,page: worked,count,20,20,")).count();
    assert_eq!(rows, 1, "{csv}");
    scratch.assert_nothing_left();
}

/// The costlier variant has the lower limit, and the ledger is none the worse for the requests after the window.
#[test]
fn capacity_and_saturation_follow_the_window() {
    let _turn = on_a_core();
    let variants = "  slow:\n    spans_per_request: 4\n    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${sink.otlp_grpc}\"}, args: [--trace, otlp, --burn-us, '5000']}}\n";
    let after = "\ncapacity: {limit: 500ms, errors: 1%, trial: 200ms, precision: 50%, connections: 16}\nsaturation: {time: 1s, ramp: 200ms}\n";
    let study = closed_loop("capacity", variants) + after;
    let scratch = Scratch::with(&study);
    scratch.run(&["--set", "placebo=false", "--warmup", "200ms", "--window", "500ms", "--rounds", "7"]);
    for run in scratch.runs().iter().filter(|run| run.void.is_none()) {
        let capacity = run.capacity.as_ref().expect("a search");
        assert!(capacity.trials.len() >= 4, "{capacity:?}");
        let saturation = run.saturation.expect("a saturation");
        assert!(saturation.mean > 0.0 && saturation.max > 0.0 && saturation.time_to_max_s >= 1.0, "{saturation:?}");
        let ledger = run.ledger.as_ref().expect("a ledger");
        assert_eq!((ledger.lost, ledger.unexplained, ledger.foreign), (0, 0, 0), "{}: {ledger:?}", run.variant);
    }
    let findings = scratch.findings();
    for metric in ["capacity", "throughput_mean", "throughput_max"] {
        let found = finding(&findings, "slow", metric);
        // 5 ms of CPU on top of a fraction of one: the limit falls to a small part.
        let high = found.ratio_high.unwrap_or_else(|| panic!("{metric}: {:?} {:?}", found.rounds, findings.notices));
        assert!(high < -0.3, "{metric}: {}", found.words);
        assert_eq!(found.verdict, Verdict::Costs, "{metric}: less is worse");
    }
    let words = &findings.conclusions[0].words;
    assert!(words.contains("of capacity") && words.contains("of CPU per request"), "side by side: {words}");
}

/// Requests at full speed before the warm-up are no part of the window, and their spans none of the ledger.
#[test]
fn preheating_is_not_measured() {
    let _turn = counting();
    let variants = "  otel:\n    spans_per_request: 4\n    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${sink.otlp_grpc}\"}, args: [--trace, otlp]}}\n";
    let scratch = Scratch::with(&with_load("preheat", "  connections: 2\n  rate: 50", variants));
    let sets =
        ["--set", "placebo=false", "--set", "preheat=600ms", "--warmup", "200ms", "--window", "1s", "--rounds", "1"];
    scratch.run(&sets);
    for run in scratch.runs() {
        let load = run.load.as_ref().expect("a load");
        // 60 requests with those of the warm-up; at full speed it would be many more.
        assert!(load.sent_total <= 62 && load.requests <= 51, "{}: {} sent", run.variant, load.sent_total);
        assert!((0.5..10.0).contains(&run.phases.preheat_s), "{:?}", run.phases);
        let received = run.sink.as_ref().map_or(0, |sink| sink.received);
        if run.variant == "otel" {
            let ledger = run.ledger.as_ref().expect("a ledger");
            assert_eq!((ledger.lost, ledger.unexplained, ledger.foreign), (0, 0, 0), "{ledger:?}");
            assert!(received > 2 * ledger.saved, "{received} spans, {} of them of the load: {ledger:?}", ledger.saved);
        }
    }
}

/// A service that tells where it runs: on its own cores, while it is heated up on all, and then on its own again.
#[test]
fn services_are_heated_up_on_all_cores_and_measured_on_their_own() {
    let _turn = on_all_cores();
    let study = closed_loop("heated", "  same: {}\n").replace(
        "  consumer:\n",
        "  teller:\n    role: dependency\n    command: [sh, -c, 'while :; do grep Cpus_allowed_list /proc/self/status; sleep 0.02; done']\n  consumer:\n",
    );
    let scratch = Scratch::with(&format!("{study}preheat: 600ms\npreheat_cpuset: all\n"));
    let short = ["--set", "placebo=false", "--warmup", "200ms", "--window", "500ms", "--rounds", "1"];
    scratch.run(&short).ends_with(0);
    let run = &scratch.runs()[0];
    let log = fs::read_to_string(scratch.path("out").join(&run.dir).join("logs/teller.log")).expect("its log");
    let mut places: Vec<&str> = log.lines().collect();
    places.dedup();
    let host = fs::read_to_string(scratch.path("out/host.json")).expect("host.json");
    if CpuSet::allowed().expect("affinity").len() == 1 {
        assert_eq!(places.len(), 1, "{places:?}\n{host}");
    } else {
        assert!(places.len() == 3 && places[0] == places[2] && places[0] != places[1], "{places:?}\n{host}");
    }
}

/// `unladen load` as a driver of 200 units of work; spans are counted, not tied to requests.
#[test]
fn a_driver_does_the_work() {
    let _turn = counting();
    let variants = "  otel:\n    spans_per_request: 4\n    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${sink.otlp_grpc}\"}, args: [--trace, otlp]}}\n";
    let driver = "  driver:\n    role: driver\n    command: [\"${unladen}\", load, \"http://127.0.0.1:${port.consumer}/work\", --requests, '200', -c, '2', --duration, 60s, --json, \"${run.dir}/driver.json\"]\n  consumer:\n";
    let study = with_load("driver", "  driver: driver\n  work: 200\n  rehearsals: 1", variants)
        .replace("  url: \"http://127.0.0.1:${port.consumer}/work\"\n", "")
        .replace("  consumer:\n    needs", &format!("{driver}    needs"));
    let scratch = Scratch::with(&study);
    let output = scratch.run(&["--rounds", "2", "--set", "placebo=false"]).ends_with(0);
    assert!(output.out.contains("200 units of work by driver"), "{}", output.out);
    for run in scratch.runs() {
        assert_eq!(run.void, None);
        assert!(run.load.is_none() && run.phases.warmup_s > 0.0);
        let work = run.work.expect("work");
        assert!(work.units == 200 && work.completion_s > 0.02 && work.completion_s < 60.0, "{work:?}");
        let outcome = fs::read_to_string(scratch.path("out").join(&run.dir).join("driver.json")).expect("its outcome");
        let outcome: serde_json::Value = serde_json::from_str(&outcome).expect("JSON");
        assert_eq!(outcome["requests"], 200);
        assert!(outcome["duration_s"].as_f64().expect("seconds") <= work.completion_s, "{outcome}");
        if run.variant == "otel" {
            let ledger = run.ledger.expect("a ledger by counts");
            // The rehearsal makes spans, too.
            assert_eq!(
                (ledger.expected, ledger.saved, ledger.lost, ledger.unexplained),
                (1600, 1600, 0, 0),
                "{ledger:?}"
            );
            assert!(run.notices.contains(&Notice::LedgerByCounts));
        }
    }
    let findings = scratch.findings();
    assert!(finding(&findings, "otel", "cpu_per_request").value > 10.0, "µs per unit of work");
    assert!(finding(&findings, "otel", "completion_time").value > 20.0, "ms");
}

/// A study whose driver is a script.
fn driven_by(script: &str, at_most: &str) -> String {
    let driver = format!("  pump:\n    role: driver\n    command: [sh, -c, \"{script}\"]\n  consumer:\n");
    with_load("drivers", &format!("  driver: pump\n  at_most: {at_most}"), "  same: {}\n")
        .replace("  url: \"http://127.0.0.1:${port.consumer}/work\"\n", "")
        .replace("  consumer:\n    needs", &format!("{driver}    needs"))
}

/// What the driver uses is not called that of other processes, however busy the machine is.
#[test]
fn the_cpu_time_of_a_driver_is_the_study_s() {
    let _turn = counting();
    let scratch = Scratch::with(&driven_by("timeout 1 sh -c 'while :; do :; done'; true", "60s"));
    scratch.run(&["--rounds", "1", "--set", "placebo=false"]);
    for run in scratch.runs() {
        let ours_s = run.host.busy_s - run.host.others_s;
        assert!(ours_s > 0.25, "a second of looping: {:?}", run.host);
    }
}

#[test]
fn a_driver_that_fails_or_lingers_is_told() {
    let _turn = counting();
    let scratch = Scratch::with(&driven_by("echo no broker; exit 3", "300ms"));
    scratch.run(&[]).ends_with(2).complains(&["driver pump failed (exit 3)", "no broker"]);
    let scratch = Scratch::with(&driven_by("sleep 600 # lingers", "300ms"));
    scratch.run(&["--rounds", "1", "--set", "placebo=false"]).ends_with(2);
    let runs = scratch.runs();
    assert_eq!(runs.len(), 2);
    assert!(
        runs.iter().all(|run| matches!(run.void, Some(Notice::Load(LoadNotice::WorkUnfinished { .. })))),
        "{runs:?}"
    );
    assert_nothing_left("600 # lingers");
}

/// Without trace headers the ledger is kept by counts, and that is said.
#[test]
fn without_trace_headers_spans_are_counted() {
    let _turn = counting();
    let variants = "  otel:\n    spans_per_request: 4\n    services: {consumer: {env: {OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${sink.otlp_grpc}\"}, args: [--trace, otlp]}}\n";
    let scratch = Scratch::with(&with_load("counts", "  connections: 2\n  trace: none", variants));
    scratch.run(&["--rounds", "1", "--window", "500ms", "--set", "placebo=false"]);
    let runs = scratch.runs();
    let otel = runs.iter().find(|run| run.variant == "otel").expect("a run");
    let (ledger, load) = (otel.ledger.as_ref().expect("a ledger"), otel.load.as_ref().expect("a load"));
    assert_eq!((ledger.expected, ledger.lost), (4 * load.answered_total, 0), "{ledger:?}");
    assert!(otel.notices.contains(&Notice::LedgerByCounts));
    assert!(Notice::LedgerByCounts.to_string().contains("spans are only counted"));
}

/// One slow connection cannot carry the rate; the generator is not to blame.
#[test]
fn a_load_that_runs_out_of_connections_does_not_count() {
    let _turn = counting();
    let variants = "  same: {}\n";
    let load = "  rate: 70\n  connections: 1";
    let study = with_load("connections", load, variants)
        .replace("- --provider", "- --delay-us\n      - '16000'\n      - --provider");
    let scratch = Scratch::with(&study);
    scratch.run(&["--rounds", "1", "--set", "placebo=false"]);
    for run in scratch.runs() {
        let void = run.void.expect("it does not count");
        assert!(
            matches!(
                void,
                Notice::Load(LoadNotice::OutOfConnections { .. }) | Notice::Load(LoadNotice::RateMissed { .. })
            ),
            "{void}"
        );
    }
}
