//! Journals of known content against the reports they must produce. `UNLADEN_BLESS=1` rewrites the expected files.

use std::fs;
use std::path::Path;

use unladen_journal::notices::Notice;
use unladen_journal::record::{RunRecord, VariantKind};
use unladen_judge::findings::{Finding, Findings, RoundValue};
use unladen_judge::judge;
use unladen_report::{Format, render};

use crate::alternating::alternate;
use crate::sketch::{Sketch, SketchedVariant, findings, ladder, late, sketched, write};

/// Compares with the expected files, or writes them.
pub(crate) fn check(name: &str, findings: &Findings, formats: &[Format]) {
    for format in formats {
        let extension = match format {
            Format::Text => "txt",
            Format::Markdown => "md",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Html => "html",
            Format::Svg => "svg",
            Format::Parquet => "parquet",
        };
        let file = format!("{name}.{extension}");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/golden").join(&file);
        let printed = without_elements(render(findings, *format));
        if std::env::var_os("UNLADEN_BLESS").is_some() {
            fs::write(&path, &printed).expect("the golden folder is writable");
        }
        if printed != fs::read_to_string(&path).unwrap_or_default() {
            let got = std::env::temp_dir().join(format!("unladen-{file}"));
            fs::write(&got, &printed).expect("a temporary file");
            panic!("{} differs from {}; if it is right: UNLADEN_BLESS=1", got.display(), path.display());
        }
    }
    let text = render(findings, Format::Text);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{name}: {widest:?} columns");
}

/// A page without what has files and tests of its own: style, script, the chart library, the charts' data.
fn without_elements(mut page: String) -> String {
    for (begin, end) in [("<style>", "</style>"), ("<script", "</script>")] {
        let mut from = 0;
        while let Some(at) = page[from..].find(begin).map(|at| from + at).filter(|_| page.starts_with("<!doctype")) {
            let open = at + page[at..].find('>').expect("a tag ends") + 1;
            let close = open + page[open..].find(end).expect("an element ends");
            page.replace_range(open..close, "…");
            from = open + "…".len() + end.len();
        }
    }
    page
}

fn otel() -> SketchedVariant {
    sketched("otel", "OpenTelemetry", VariantKind::Variant)
}

/// What OpenTelemetry costs when every span is kept.
fn costly() -> SketchedVariant {
    SketchedVariant { cpu: 1.18, memory: 9.0, latency: 1.12, spans: 4.0, ..otel() }
}

#[test]
fn an_effect() {
    let budgets = vec![("cpu_per_request", "10%"), ("rss", "50MiB"), ("latency_p99", "20%"), ("heap", "1MiB")];
    let all = [Format::Text, Format::Markdown, Format::Csv, Format::Html, Format::Svg];
    check("effect", &findings(&Sketch { budgets, ..ladder() }), &all);
}

/// The same effect, found side by side.
#[test]
fn an_effect_in_alternating_rounds() {
    let sketch = Sketch { change_run: alternate, ..ladder() };
    check("alternating", &findings(&sketch), &[Format::Text, Format::Markdown, Format::Html]);
}

/// From the bare service to the full agent, step by step.
#[test]
fn a_ladder() {
    let step = |name, label, cpu, memory, latency, spans| SketchedVariant {
        name,
        label,
        cpu,
        memory,
        latency,
        spans,
        ..otel()
    };
    let sketch = Sketch { more: "ladder: [baseline, attached, unsampled, full]\n", ..ladder() };
    let sketch =
        Sketch { variants: Sketch::new("", "").variants, question: "Where does the cost come from?", ..sketch }
            .with(step("attached", "agent attached", 1.03, 6.0, 1.0, 0.0))
            .with(step("unsampled", "context", 1.07, 6.5, 1.03, 0.0))
            .with(step("full", "spans and export", 1.18, 9.0, 1.12, 4.0));
    let findings = findings(&sketch);
    let steps: Vec<(&str, &str)> =
        findings.ladders[0].steps.iter().map(|step| (step.from.as_str(), step.to.as_str())).collect();
    assert_eq!(steps, [("baseline", "attached"), ("attached", "unsampled"), ("unsampled", "full")]);
    check("ladder", &findings, &[Format::Text, Format::Markdown, Format::Html]);
}

/// 340 µs bare; a fixed 3 % and 2 % more for each span: 10.2 µs and 6.8 µs per span.
#[test]
fn a_dose() {
    let more = "matrix: {spans: ['1', '2', '5', '10']}\nvariables: {spans: '1'}\n";
    let of = |name, value: &'static str, spans: f64| SketchedVariant {
        name,
        label: "full",
        cpu: 1.03 + 0.02 * spans,
        spans,
        cell: vec![("spans", value)],
        ..otel()
    };
    let sketch = Sketch { more, question: "How does the cost grow with the spans?", ..Sketch::new("dose", "") };
    let sketch = sketch
        .with(SketchedVariant { name: "full", label: "", spans: 1.0, ..otel() })
        .with(of("full@spans=1", "1", 1.0))
        .with(of("full@spans=2", "2", 2.0))
        .with(of("full@spans=5", "5", 5.0))
        .with(of("full@spans=10", "10", 10.0));
    let findings = findings(&sketch);
    let line = findings.doses.iter().find(|it| it.metric == "cpu_per_request").expect("a line");
    let (fixed, slope) = (line.fixed.expect("12 rounds"), line.per_unit.expect("12 rounds"));
    assert!((slope.value - 6.8).abs() < 0.5 && slope.low < 6.8 && 6.8 < slope.high, "{slope:?}");
    assert!((fixed.value - 10.2).abs() < 4.0, "{fixed:?}");
    assert_eq!(line.points.iter().map(|it| it.dose).collect::<Vec<_>>(), [1.0, 2.0, 5.0, 10.0]);
    let at_five = line.points[2].fitted.expect("12 rounds");
    assert!(
        (at_five.value - 44.2).abs() < 3.0 && at_five.low < at_five.value && at_five.value < at_five.high,
        "{at_five:?}"
    );
    assert!(line.points.iter().all(|it| it.ratio.is_some()) && line.off_the_line.is_empty(), "{line:?}");
    check("dose", &findings, &[Format::Text, Format::Markdown]);
}

/// Values that are names have one table, a line each; those that are numbers have a line drawn through them.
#[test]
fn names_side_by_side() {
    let more = "matrix: {client: [http, grpc]}\nvariables: {client: http}\n";
    let of = |name, value: &'static str, cpu: f64| SketchedVariant {
        name,
        label: "full",
        cpu,
        cell: vec![("client", value)],
        ..otel()
    };
    let sketch = Sketch { more, question: "Which client costs more?", ..Sketch::new("names", "") };
    let sketch = sketch.with(SketchedVariant { name: "full", label: "", ..otel() });
    let mut findings =
        findings(&sketch.with(of("full@client=http", "http", 1.03)).with(of("full@client=grpc", "grpc", 1.2)));
    let text = render(&findings, Format::Text);
    let table = text.split("full, side by side").nth(1).expect("a table");
    assert!(!table.contains("without JIT"), "{table}");
    let line = |name: &str| table.lines().find(|line| line.trim_start().starts_with(name)).expect("a line").to_owned();
    assert!(line("client http").contains("+2.5 %"), "{table}");
    assert!(line("client grpc").contains("+19.2 %"), "{table}");
    assert!(render(&findings, Format::Markdown).contains("| client grpc |"));
    assert!(render(&findings, Format::Html).contains("client grpc"));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    // Where nothing can be said of all CPU, there is what the compiler leaves of it.
    for variant in findings.variants.iter_mut().filter(|it| !it.cell.is_empty()) {
        let whole = variant.metrics.iter_mut().find(|it| it.metric == "cpu_per_request").expect("its CPU");
        let rest = Finding { metric: "cpu_without_jit".into(), title: "CPU without JIT".into(), ..whole.clone() };
        whole.refused = Some("it fell".into());
        variant.metrics.push(rest);
    }
    findings.sections = unladen_judge::sections::of(&findings);
    let text = render(&findings, Format::Text);
    let table = text.split("full, side by side").nth(1).expect("a table");
    assert!(table.contains("CPU without JIT"), "{table}");
    let lines: Vec<&str> = table.lines().filter(|line| line.trim_start().starts_with("client ")).collect();
    assert!(lines[0].contains("+2.5 %") && lines[1].contains("+19.2 %"), "{table}");
}

/// The same cost at the user's traffic and prices, and a variant whose memory grows.
#[test]
fn money_and_a_leak() {
    let more = "prices: {requests_per_second: 5000, instances: 20, core_hour: 0.04, gib_hour: 0.005, \
                instance: {cores: 4, memory: 16GiB, utilisation: 60%}}\n";
    let leaking = SketchedVariant { name: "leaking", label: "OpenTelemetry, leaking", ..costly() };
    let change_run = |run: &mut unladen_journal::record::RunRecord| {
        // 1 MiB a minute, under the teeth of a collector; everybody else stays level.
        let per_minute = if run.variant == "leaking" { 1_048_576 } else { 0 };
        let sample = |second: u32| {
            let bytes =
                40_000_000 + u64::from(second) * per_minute / 60 + u64::from((second * 7 + run.run) % 5) * 9_000;
            (f64::from(second), bytes)
        };
        run.processes[0].rss_floor = (0..=60).map(sample).collect();
    };
    let sketch = Sketch { more, change_run, question: "What does it cost a year?", ..Sketch::new("shop", "") };
    let findings = findings(&sketch.with(costly()).with(leaking));
    let words_of = |variant: &str| &findings.conclusions.iter().find(|it| it.variant == variant).expect("told").words;
    assert!(words_of("leaking").contains("may leak: its memory grows 1."), "{}", words_of("leaking"));
    assert!(!words_of("otel").contains("leak"), "{}", words_of("otel"));
    check("money", &findings, &[Format::Text, Format::Markdown]);
}

/// A JVM keeps its memory, whatever it does with it, and takes more of it for minutes: then what collections leave tells.
#[test]
fn a_leak_that_only_the_heap_shows() {
    let change_run = |run: &mut unladen_journal::record::RunRecord| {
        let if_it_is = |name: &str| if run.variant == name { 1_048_576 } else { 0 };
        let sample = |second: u32, per_minute: u32| {
            let bytes =
                40_000_000 + u64::from(second * per_minute / 60) + u64::from((second * 7 + run.run) % 5) * 9_000;
            (f64::from(second), bytes)
        };
        run.processes[0].rss_floor = (0..=60).map(|second| sample(second, if_it_is("taking"))).collect();
        run.processes[0].heap_floor = (0..=60).map(|second| sample(second, if_it_is("leaking"))).collect();
    };
    let leaking = SketchedVariant { name: "leaking", label: "OpenTelemetry, leaking", ..costly() };
    let taking = SketchedVariant { name: "taking", label: "OpenTelemetry, taking memory", ..costly() };
    let sketch = Sketch { change_run, question: "Does it leak?", ..Sketch::new("heap", "") };
    let findings = findings(&sketch.with(costly()).with(leaking).with(taking));
    let words_of = |variant: &str| &findings.conclusions.iter().find(|it| it.variant == variant).expect("told").words;
    assert!(words_of("leaking").contains("may leak: its heap grows 1."), "{}", words_of("leaking"));
    assert!(!words_of("otel").contains("leak"), "{}", words_of("otel"));
    let taking = words_of("taking");
    assert!(taking.contains("its memory grows 1.") && taking.contains("its heap does not"), "{taking}");
    assert!(!taking.contains("leak"), "{taking}");
}

#[test]
fn no_effect() {
    let sketch =
        Sketch { noise: 0.001, seed: 3, ..Sketch::new("idle", "Does an agent that is switched off cost anything?") };
    check("no-effect", &findings(&sketch.with(otel())), &[Format::Text]);
}

#[test]
fn spans_are_lost() {
    let lossy = SketchedVariant { lost: 0.31, name: "lossy", label: "OpenTelemetry, small queue", ..costly() };
    let sketch = Sketch::new("loss", "What does it cost to lose a third of the spans?").with(lossy);
    check("loss", &findings(&sketch), &[Format::Text, Format::Markdown]);
}

#[test]
fn runs_are_void() {
    let sketch = Sketch {
        change_run: |run| {
            if run.run % 7 == 0 {
                late(run);
            }
            if run.run % 5 == 0 {
                run.notices.push(Notice::OthersBusy { percent: f64::from(run.run) });
            }
        },
        ..ladder()
    };
    check("void-runs", &findings(&sketch), &[Format::Text]);
}

#[test]
fn the_harness_is_broken() {
    let mut sketch = ladder();
    sketch.variants[1].cpu = 1.06;
    check("broken-harness", &findings(&sketch), &[Format::Text, Format::Markdown, Format::Html]);
}

#[test]
fn a_variant_answers_with_errors() {
    let sketch = Sketch {
        change_run: |run| {
            if let (true, Some(load)) = (run.variant == "otel", &mut run.load) {
                load.errors = load.requests / 25;
                load.requests -= load.errors;
                load.statuses = [(200, load.requests), (500, load.errors)].into();
            }
        },
        budgets: vec![("cpu_per_request", "10%")],
        ..ladder()
    };
    check("errors", &findings(&sketch), &[Format::Text]);
}

/// A writer that is told to throw its rows away, and says so.
#[test]
fn a_variant_stores_nothing() {
    let sketch = Sketch {
        change_run: |run| {
            let stored = if run.variant == "otel" { 0.0 } else { 12_000.0 };
            let numbers = [("sent".to_owned(), 12_000.0), ("stored".to_owned(), stored)];
            run.reported_numbers = [("writer".to_owned(), numbers.into())].into();
        },
        ..ladder()
    };
    let findings = findings(&sketch);
    check("other-work", &findings, &[Format::Text, Format::Markdown, Format::Csv]);
    let page = render(&findings, Format::Html);
    assert!(page.contains("writer · stored</th>") && page.contains(">0 (not 12,000)</td>"), "the page has the table");
}

/// A round that one variant lacks is missing in its line alone, and the baseline's has it.
#[test]
fn every_round_stands_in_markdown_with_its_mean() {
    let lose_one = |run: &mut RunRecord| {
        if run.round == 3 && run.variant == "otel" {
            late(run);
        }
    };
    let findings = findings(&Sketch { change_run: lose_one, ..ladder() });
    let otel = findings.variants.iter().find(|it| it.name == "otel").expect("it is there");
    let cpu = otel.finding("cpu_per_request").expect("a finding");
    let mean = |of: fn(&RoundValue) -> f64| cpu.rounds.iter().map(of).sum::<f64>() / 11.0;
    assert!((cpu.value_mean - mean(|it| it.value)).abs() < 1e-9, "{cpu:?}");
    assert!((cpu.baseline_mean - mean(|it| it.baseline)).abs() < 1e-9, "{cpu:?}");
    let markdown = render(&findings, Format::Markdown);
    let table = markdown.split("#### CPU per request, µs").nth(1).expect("a table");
    let line = |name: &str| {
        let starts = format!("| {name} |");
        let found = table.lines().find(|line| line.starts_with(&starts)).unwrap_or_else(|| panic!("{name}: {table}"));
        found.split(" | ").skip(1).map(|cell| cell.trim_end_matches(" |").to_owned()).collect::<Vec<_>>()
    };
    let (bare, here) = (line("baseline"), line(&otel.label));
    assert_eq!((bare.len(), here.len()), (13, 13), "twelve rounds and the mean");
    assert_eq!(here[2], "–");
    assert!(!bare.contains(&"–".to_owned()), "{bare:?}");
    assert_eq!(here[12].parse::<f64>().expect("a number"), cpu.value_mean.round());
}

#[test]
fn none_of_a_variants_runs_counts() {
    let sketch = Sketch {
        change_run: |run| {
            if run.variant == "otel" {
                run.void = Some(Notice::ServiceDied {
                    service: "app".to_owned(),
                    how: "signal 9".to_owned(),
                    log_tail: "Error: could not find libagent.so\n\tat start\n".to_owned(),
                });
            }
        },
        ..ladder()
    };
    check("nothing-counts", &findings(&sketch), &[Format::Text]);
}

#[test]
fn three_rounds() {
    check("three-rounds", &findings(&Sketch { rounds: 3, ..ladder() }), &[Format::Text, Format::Html]);
}

#[test]
fn a_closed_loop() {
    check("closed-loop", &findings(&Sketch { rate: None, ..ladder() }), &[Format::Text]);
}

#[test]
fn several_services() {
    let sketch = Sketch {
        change_run: |run| {
            let mut gateway = run.processes[0].clone();
            gateway.service = "api-gateway".to_owned();
            gateway.cpu_ns = gateway.cpu_ns.map(|cpu| cpu / 3);
            gateway.extra.insert("heap".to_owned(), 21_000_000.0 + f64::from(run.run) * 9_000.0);
            run.processes.push(gateway);
        },
        ..ladder()
    };
    check("several-services", &findings(&sketch), &[Format::Text, Format::Markdown]);
}

#[test]
fn a_study_that_was_killed() {
    let sketch = ladder();
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &sketch.study(), &sketch.runs());
    let journal = dir.path().join("journal.jsonl");
    let whole = fs::read(&journal).expect("just written");
    fs::write(&journal, &whole[..whole.len() - 700]).expect("a temporary folder");
    fs::remove_file(dir.path().join("host.json")).expect("just written");
    let findings = judge(dir.path()).expect("the whole lines are enough");
    assert_eq!(findings.rounds, 11, "the last round lacks a run");
    check("killed", &findings, &[Format::Text]);
}

/// What `compare` on a busy laptop gives: no placebo, wide intervals, a label that is a whole command.
#[test]
fn a_noisy_host() {
    let label = "java -javaagent:opentelemetry-javaagent.jar -Dotel.traces.exporter=otlp -jar petclinic.jar";
    let mut sketch = Sketch { noise: 0.12, rounds: 8, rate: Some(400.0), ..Sketch::new("compare", "") };
    sketch.variants.pop();
    let sketch = sketch.with(SketchedVariant { name: "with", label, ..costly() });
    check("noisy", &findings(&sketch), &[Format::Text, Format::Html]);
}
