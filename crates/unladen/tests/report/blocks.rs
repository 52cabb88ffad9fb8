//! What is made of alternating rounds: which requests costs are spread over, where latencies come from, whether blocks are to be believed.
use unladen_journal::record::{Design, RunRecord};
use unladen_judge::findings::{Findings, Place, Range, RoundsDesign, Verdict};
use unladen_judge::pilot::{Planned, pilot};
use unladen_judge::{judge, latency_p99_us, read};
use unladen_load::outcome::{Named, Quantiles};
use unladen_report::{Format, render};

use crate::alternating::{Like, SOUND, alternate, alternate_like};
use crate::files;
use crate::sketch::{Sketch, findings, ladder, late, write};
use crate::verdicts::{finding, variant};

fn of_code<'a>(findings: &'a Findings, code: &str) -> Vec<&'a str> {
    findings.notices.iter().filter(|it| it.code == code).map(|it| it.text.as_str()).collect()
}

fn alternating() -> Sketch {
    Sketch { change_run: alternate, ..ladder() }
}

/// The findings of a sketch whose runs are changed.
fn changed(sketch: &Sketch, change: impl Fn(&mut RunRecord)) -> Findings {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut runs = sketch.runs();
    runs.iter_mut().for_each(change);
    write(dir.path(), &sketch.study(), &runs);
    judge(dir.path()).expect("a whole run folder")
}

#[test]
fn cpu_is_spread_over_the_blocks_that_count_and_counters_over_all_that_was_asked() {
    let sound = findings(&alternating());
    let spoiled = changed(&alternating(), |run| {
        let answered = run.blocks.as_ref().expect("blocks").answered;
        run.load.as_mut().expect("a load").completed_in_window /= 3;
        // Counters go on in blocks that are thrown away.
        for process in &mut run.processes {
            process.voluntary_switches = Some(answered * 2);
            process.extra.insert("allocated".to_owned(), answered as f64 * 3_000.0);
        }
    });
    let value = |findings: &Findings, metric: &str| finding(findings, "otel", metric).value;
    assert_eq!(value(&spoiled, "cpu_per_request"), value(&sound, "cpu_per_request"));
    assert_eq!(value(&spoiled, "voluntary_switches_per_request"), 2.0);
    assert_eq!(value(&spoiled, "allocated_bytes_per_request"), 3_000.0);
    // 340 µs bare, 18 % more with OpenTelemetry; the noise of a run is 1 %.
    let cpu = finding(&sound, "otel", "cpu_per_request");
    assert!((cpu.ratio.expect("twelve rounds") - 0.18).abs() < 0.02, "{cpu:?}");
    assert_eq!(cpu.verdict, Verdict::Costs);
}

/// One event has hit all variants: it is one warning. A run that is void by itself has its own.
#[test]
fn a_round_that_is_lost_for_all_is_one_warning() {
    let found = changed(&alternating(), |run| {
        if run.round == 3 || (run.round == 5 && run.variant == "otel") {
            late(run);
        }
    });
    let [lost] = of_code(&found, "rounds_lost")[..] else { panic!("{:#?}", found.notices) };
    assert!(
        lost.starts_with("alternating rounds that do not count for any variant: 1 (4 runs). The first, round 3: "),
        "{lost}"
    );
    let [void] = of_code(&found, "runs_void")[..] else { panic!("{:#?}", found.notices) };
    assert!(void.starts_with("otel: 1 of 12 runs do not count"), "{void}");
}

/// The compiler's time is known for all super-blocks, CPU for those that count: each is spread over its own requests.
#[test]
fn the_compilers_part_is_taken_out_by_request() {
    let found = changed(&alternating(), |run| {
        let requests = run.blocks.as_ref().expect("blocks").answered as f64;
        run.processes[0].extra.insert("jit_time".to_owned(), requests * 50_000.0);
    });
    let value = |metric: &str| finding(&found, "otel", metric).baseline_mean;
    assert!((value("cpu_per_request") - value("cpu_without_jit") - 50.0).abs() < 1e-6);
    assert!((value("jit_time") - 50.0).abs() < 1e-9, "ms per 1,000 requests");
}

#[test]
fn idle_cpu_is_compared_by_service() {
    let found = changed(&Sketch { change_run: |_| {}, ..ladder() }, |run| {
        let mut gateway = run.processes[0].clone();
        gateway.service = "gateway".to_owned();
        run.processes.push(gateway);
        alternate(run);
    });
    let idle = finding(&found, "otel", "idle_cpu");
    assert_eq!((idle.unit.as_str(), idle.verdict, idle.place), ("cores", Verdict::Costs, Place::Detail));
    assert!((idle.difference.expect("twelve rounds") - 0.0082).abs() < 1e-9, "{idle:?}");
    let services = variant(&found, "otel").metrics.iter().filter(|it| it.metric == "idle_cpu");
    let services: Vec<_> = services.filter_map(|it| it.service.as_deref()).collect();
    assert_eq!(services, ["app", "gateway"]);
    assert!(render(&found, Format::Markdown).contains("| idle CPU, ms/s | 4.2 | 12.4 | +8.2 "), "the table says it");
    let row = "| OpenTelemetry | gateway | 2.1 | 6.2 | +4.1 [4.1, 4.1] | **costs** |";
    assert!(render(&found, Format::Markdown).contains(row), "and a table of its own says of whom");
    assert!(!render(&findings(&ladder()), Format::Markdown).contains("Idle CPU"), "where it was measured");
}

/// The tail of blocks is that of all variants that are alive: it comes from the stretch alone, or is not told.
#[test]
fn no_tail_of_blocks_is_told() {
    let tail = ["latency_p95", "latency_p99", "latency_p999", "latency_mean", "latency_max"];
    // 12 rounds of 4,000 requests alone are not enough for p99.9.
    let (separate, alone) = (findings(&ladder()), findings(&alternating()));
    for metric in ["latency_p50", "latency_p90", "latency_p95", "latency_p99", "latency_mean", "latency_max"] {
        let (there, here) = (finding(&separate, "otel", metric), finding(&alone, "otel", metric));
        assert_eq!((there.baseline, there.value), (here.baseline, here.value), "{metric}");
    }
    let few = of_code(&alone, "too_few_requests");
    assert_eq!(few.len(), 1, "{few:?}");
    assert!(few[0].starts_with("latency p99.9 not shown") && few[0].contains("Raise `alone`"), "{few:?}");
    assert!(of_code(&alone, "not_in_blocks").is_empty());

    let without = Sketch { change_run: |run| alternate_like(run, Like { alone: false, ..SOUND }), ..ladder() };
    let found = findings(&without);
    let texts = variant(&found, "otel").metrics.iter().filter(|it| tail.contains(&it.metric.as_str())).count();
    assert_eq!(texts, 0);
    assert!(variant(&found, "otel").finding("latency_p90").is_some());
    let notices = of_code(&found, "not_in_blocks");
    assert!(
        notices[0].starts_with("latency p95, latency p99, latency p99.9, mean latency and largest latency not shown")
    );
    assert_eq!(latency_p99_us(&without.runs()[0]), None, "whoever watches sees none either");
    assert!(latency_p99_us(&alternating().runs()[0]).is_some());
}

/// What exists of the blocks only: answers by kind, operations, curves, seconds.
#[test]
fn nor_by_kind_operation_quantile_or_second() {
    let change_run = |run: &mut RunRecord| {
        let load = run.load.as_mut().expect("a load");
        let times = Quantiles { count: 5_000, p50: 900.0, p90: 1_000.0, p95: 1_100.0, p99: 1_200.0, ..load.latency_us };
        let named =
            |name: &str| Named { name: name.to_owned(), requests: 5_000, latency_us: times, ..Named::default() };
        load.named = vec![named("reserve"), named("result")];
        load.seconds.iter_mut().for_each(|second| second.p99_us = 5_000.0);
        alternate(run);
    };
    let sketch = Sketch { change_run, ..ladder() };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let runs = sketch.runs();
    write(dir.path(), &sketch.study(), &runs);
    files::write(dir.path(), &runs);
    let found = judge(dir.path()).expect("a whole run folder");
    let answers = variant(&found, "otel").answers.iter().filter_map(|it| it.value);
    let texts: Vec<_> = answers.map(|it| (it.p90_us.is_some(), it.p95_us, it.p99_us)).collect();
    assert_eq!(texts, [(true, None, None); 2]);
    assert!(!found.operations.is_empty() && found.operations.iter().all(|it| it.p99_us.is_none()));
    let curves = found.curves.as_ref().expect("read");
    let quantiles = &curves.latency.as_ref().expect("histograms").quantiles;
    assert!(quantiles.len() > 10 && quantiles.iter().all(|it| *it < 0.901), "{quantiles:?}");
    assert!(curves.courses.iter().any(|it| it.name == "latency_p50"));
    assert!(curves.courses.iter().all(|it| it.name != "latency_p99"));
    assert!(render(&found, Format::Html).contains("<td>–</td>"), "the table of operations");
}

/// A second of the clock has several variants in it: what still falls is seen in the blocks.
#[test]
fn cpu_that_falls_over_the_blocks_has_no_verdict() {
    let falls = changed(&alternating(), |run| {
        if run.variant == "otel" {
            let points = &mut run.blocks.as_mut().expect("blocks").points;
            points.iter_mut().filter(|point| point.t_s < 10.0).for_each(|point| point.cpu_ns = point.cpu_ns * 9 / 5);
        }
    });
    let refused = |name: &str| finding(&falls, name, "cpu_per_request").refused.clone();
    assert!(
        refused("otel").is_some_and(|it| it.contains("CPU per request of otel changed by −")),
        "{:?}",
        refused("otel")
    );
    assert_eq!(refused("otel-10pct"), None);
}

#[test]
fn blocks_are_held_to_what_users_see() {
    let ratio = |findings: &Findings| findings.design.as_ref().expect("measured").baseline_against_alone;
    let sound = findings(&alternating());
    assert!(ratio(&sound).expect("twelve rounds").magnitude() < 0.02);
    assert!(variant(&sound, "otel").blocks_against_alone.expect("twelve rounds").magnitude() < 0.02);
    assert!(of_code(&sound, "blocks_unlike_alone").is_empty());

    let cold = findings(&Sketch { change_run: |run| alternate_like(run, Like { colder: 1.12, ..SOUND }), ..ladder() });
    let Range { value, low, high } = ratio(&cold).expect("twelve rounds");
    assert!((value - 0.12).abs() < 0.01 && low <= value && value <= high, "{low} {value} {high}");
    let texts = of_code(&cold, "blocks_unlike_alone");
    assert_eq!(texts.len(), 1, "one for all variants: {texts:?}");
    let named = ["baseline", "placebo", "otel", "otel-10pct"];
    assert!(named.iter().all(|name| texts[0].contains(name)), "{texts:?}");
    assert!(texts[0].contains("12 % higher"), "{texts:?}");
    assert!(texts[0].contains("higher in blocks than alone") && texts[0].contains("`design: separate`"), "{texts:?}");
    assert!(render(&cold, Format::Text).contains("CPU per request in blocks against alone: baseline +1"));
    // Within 3 % nobody is warned, nor where the interval reaches into it.
    let little =
        findings(&Sketch { change_run: |run| alternate_like(run, Like { colder: 1.02, ..SOUND }), ..ladder() });
    assert!(of_code(&little, "blocks_unlike_alone").is_empty());
    let five = Sketch { rounds: 5, change_run: |run| alternate_like(run, Like { colder: 1.12, ..SOUND }), ..ladder() };
    assert_eq!(ratio(&findings(&five)), None, "too few rounds");
}

#[test]
fn what_is_thrown_away_is_told_with_its_reasons() {
    assert!(of_code(&findings(&alternating()), "blocks_thrown_away").is_empty(), "2 % are nothing");
    let found = changed(&alternating(), |run| {
        let blocks = run.blocks.as_mut().expect("blocks");
        (blocks.kept, blocks.late, blocks.disturbed) = (40, 4, 6);
    });
    let texts = of_code(&found, "blocks_thrown_away");
    assert!(texts[0].starts_with("20 % of the super-blocks were discarded"), "{texts:?}");
    assert!(texts[0].contains("48 because the load generator was late"), "a round counts once: {texts:?}");
    assert!(texts[0].contains(" and 72 because the hypervisor or other processes"), "{texts:?}");
    let design = found.design.expect("measured");
    assert_eq!((design.late, design.disturbed, design.thrown_away), (48, 72, Some(0.2)));
}

#[test]
fn how_it_was_measured_is_said_in_a_sentence() {
    let separate = findings(&ladder());
    let words = |findings: &Findings| findings.design.as_ref().expect("measured").words.clone();
    assert_eq!(
        words(&separate),
        "Measured one after the other: in every round each variant had the machine for itself."
    );
    let alternating = findings(&alternating());
    assert_eq!(
        words(&alternating),
        "Measured alternating: in every round the load alternated between 4 live variants in blocks of 100 ms \
         (50 super-blocks a round, 2.0 % discarded), then ran on each alone for 2 s; cold caches added 60 µs of CPU \
         time to the first half of each baseline block (not charged)."
    );
    for found in [&separate, &alternating] {
        for format in [Format::Text, Format::Markdown, Format::Html] {
            // Lines are broken.
            let printed = render(found, format).split_whitespace().collect::<Vec<_>>().join(" ").replace('\u{a0}', " ");
            assert!(printed.contains(&words(found)), "{format:?}: {printed}");
        }
    }
}

/// A study that was continued with another design: each round is of the design that more of its variants have.
#[test]
fn designs_do_not_meet_within_a_round() {
    let sketch = Sketch { change_run: |_| {}, ..ladder() };
    let mixed = changed(&sketch, |run| {
        let torn = run.round == 7 && run.variant != "otel";
        if run.round > 7 || torn {
            alternate(run);
        }
        // A number that only a comparison across designs could find.
        if run.round == 7 && run.variant == "otel" {
            run.processes[0].cpu_ns = Some(1);
        }
    });
    let design = mixed.design.as_ref().expect("measured");
    assert_eq!((design.design, design.alternating_rounds, design.separate_rounds), (RoundsDesign::Mixed, 6, 6));
    assert!(design.words.starts_with("Measured by two designs, never mixed in a round."), "{}", design.words);
    let rounds = |name: &str| finding(&mixed, name, "cpu_per_request").rounds.len();
    assert_eq!((rounds("otel"), rounds("otel-10pct")), (11, 12), "the one run that is of the other design is left out");
    let texts = of_code(&mixed, "designs_mixed");
    assert!(texts[0].contains("mix both designs: 1. ") && texts[0].contains("Excluded: 1 run"), "{texts:?}");
    assert!(of_code(&mixed, "rounds_repeated").is_empty(), "nothing was done again");

    // The same round, finished by the new design beside the run that was there.
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut runs = sketch.runs();
    let mut first = runs[0].clone();
    runs.iter_mut().filter(|run| run.round == 1).for_each(alternate);
    (first.run, first.design) = (99, Design::Separate);
    first.processes[0].cpu_ns = Some(1);
    runs.insert(0, first);
    write(dir.path(), &sketch.study(), &runs);
    let found = judge(dir.path()).expect("a whole run folder");
    let cpu = finding(&found, "otel", "cpu_per_request");
    assert!(cpu.rounds.len() == 12 && cpu.rounds.iter().all(|it| it.baseline > 1.0 && it.value > 1.0), "{cpu:?}");
}

/// The sketch has 1 % from start to start, and what is asked for within.
#[test]
fn what_varies_is_told() {
    let of = |sketch: &Sketch| variant(&findings(sketch), "placebo").variance.clone().expect("twelve rounds");
    let start = of(&Sketch { noise: 0.02, ..alternating() });
    assert!(start.rounds_help && start.between > 5.0 * start.within, "{start:?}");
    assert!(start.words.starts_with("Most noise is between starts (") && start.words.ends_with("more rounds help"));
    let noisy = |run: &mut RunRecord| alternate_like(run, Like { within: 0.2, ..SOUND });
    let within = of(&Sketch { noise: 0.0005, change_run: noisy, ..ladder() });
    // 20 % in each of 49 blocks, on both sides.
    assert!((within.within - 0.2 * 2.0_f64.sqrt() / 7.0).abs() < 0.01, "{within:?}");
    assert!(!within.rounds_help && within.words.ends_with("a longer window helps"), "{within:?}");
    assert_eq!(variant(&findings(&ladder()), "otel").variance, None, "one after the other nobody knows");
    let text = render(&findings(&alternating()), Format::Text);
    assert!(text.contains("between starts and within a start"), "{text}");
}

#[test]
fn starts_of_two_kinds_are_told() {
    let groups = |findings: &Findings| {
        of_code(findings, "starts_in_groups").iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()
    };
    assert!(groups(&findings(&alternating())).is_empty());
    let dearer = |name: &'static str| {
        changed(&ladder(), |run| {
            if run.variant == name && [1, 4, 5, 9, 10].contains(&run.round) {
                run.processes[0].cpu_ns = run.processes[0].cpu_ns.map(|ns| ns * 14 / 10);
            }
            alternate(run);
        })
    };
    let otel = groups(&dearer("otel"));
    assert_eq!(otel.len(), 1, "{otel:?}");
    assert!(otel[0].starts_with("the starts of otel fall into two groups: 7 rounds near 4"), "{otel:?}");
    assert!(otel[0].contains(" of CPU per request (+19 %), 5 near 5") && otel[0].contains(" (+6"), "{otel:?}");
    // If all variants part in the same rounds, it is the baseline.
    let bare = groups(&dearer("baseline"));
    assert_eq!(bare.len(), 1, "{bare:?}");
    assert!(bare[0].starts_with("the starts of baseline fall into two groups: 7 rounds near 3"), "{bare:?}");
}

#[test]
fn a_pilot_of_which_nothing_counts_says_why() {
    let mut sketch = alternating();
    sketch.variants.truncate(2);
    let mut runs = sketch.runs();
    runs.iter_mut().for_each(late);
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &sketch.study(), &runs);
    let folder = read(dir.path()).expect("a run folder");
    let planned = Planned { study: &folder.study, variants: 2, groups: &|_, _| vec![2] };
    let error = pilot(&folder, planned).expect_err("no pair of runs counts").to_string();
    assert!(error.contains("the load generator was late"), "{error}");
}

#[test]
fn a_pilot_says_what_to_buy_and_what_a_round_takes() {
    let mut sketch = alternating();
    sketch.variants.truncate(2);
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &sketch.study(), &sketch.runs());
    let folder = read(dir.path()).expect("a run folder");
    let found =
        pilot(&folder, Planned { study: &folder.study, variants: 5, groups: &|_, _| vec![5] }).expect("twelve pairs");
    // 0.12 + 2 + 5 + 0.05 s and 2 s alone for each of five, and 0.5 s once.
    assert!((found.round_seconds.alternating - (5.0 * 9.17 + 0.5)).abs() < 1e-9, "{:?}", found.round_seconds);
    assert!((found.round_seconds.separate - 5.0 * 7.67).abs() < 1e-9, "{:?}", found.round_seconds);
    assert!((found.seconds_per_run * 5.0 - found.round_seconds.alternating).abs() < 1e-9);
    let variance = found.variance.as_ref().expect("twelve rounds");
    assert!(variance.rounds_help && found.best_window_s.is_some_and(|it| it < 5.0), "{found:?}");
    let text = unladen_report::pilot::text(&found).replace('\n', " ");
    assert!(text.contains("a round of 5 runs 46 s alternating, as here (38 s one after the other)"), "{text}");
    assert!(text.contains("more rounds help: windows of about "), "{text}");
}
