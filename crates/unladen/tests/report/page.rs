//! `report.html` in a browser: it opens without a complaint, draws every chart, switches variants, works by keyboard, on
//! narrow screens and on paper, and asks nothing of anybody. And it stays small and quick for a large study.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use serde_json::json;
use unladen_journal::record::{RunRecord, VariantKind};
use unladen_judge::judge;
use unladen_report::{Format, render, write_all};

use crate::alternating::alternate;
use crate::chromium::Page;
use crate::files;
use crate::sketch::{Sketch, SketchedVariant, findings, ladder, late, sketched, write};

/// A study with something for every section of the page.
fn rich() -> Sketch {
    let more = "ladder: [baseline, attached, full]\nmatrix: {spans: ['1', '2', '5']}\nvariables: {spans: '1'}\n";
    let of = |name, value: &'static str, spans: f64| SketchedVariant {
        label: "full",
        cpu: 1.05 + 0.03 * spans,
        memory: 6.0 + spans,
        latency: 1.0 + 0.02 * spans,
        spans,
        lost: 0.02 * spans,
        cell: vec![("spans", value)],
        ..sketched(name, "", VariantKind::Variant)
    };
    let change_run = |run: &mut RunRecord| {
        if run.run % 11 == 3 {
            late(run);
        }
        if run.run % 13 == 5 {
            run.notices.push(unladen_journal::notices::Notice::OthersBusy { percent: 31.0 });
        }
        let mut collector = run.processes[0].clone();
        collector.service = "collector".to_owned();
        collector.role = Some(unladen_journal::role::Role::Collector);
        collector.cpu_ns = collector.cpu_ns.map(|cpu| if run.variant == "baseline" { 0 } else { cpu / 5 });
        run.processes.push(collector);
        for process in &mut run.processes {
            process
                .extra
                .insert("telemetry_bytes".to_owned(), if run.kind == VariantKind::Variant { 4e6 } else { 0.0 });
        }
    };
    let budgets = vec![("cpu_per_request", "10%"), ("rss", "8MiB")];
    let question = "What does a rather long question about the cost of instrumentation look like on a narrow screen?";
    Sketch { more, change_run, budgets, ..Sketch::new("rich", question) }
        .with(SketchedVariant {
            cpu: 1.03,
            memory: 5.0,
            ..sketched(
                "attached",
                "agent attached <b>&amp;</b> a label that is too long for any column",
                VariantKind::Variant,
            )
        })
        .with(SketchedVariant { spans: 1.0, ..sketched("full", "", VariantKind::Variant) })
        .with(of("full@spans=1", "1", 1.0))
        .with(of("full@spans=2", "2", 2.0))
        .with(of("full@spans=5", "5", 5.0))
}

/// A run folder of this sketch with all its files, judged and reported.
fn report(sketch: &Sketch) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let runs = sketch.runs();
    write(dir.path(), &sketch.study(), &runs);
    files::write(dir.path(), &runs);
    let findings = judge(dir.path()).expect("a whole run folder");
    assert_eq!(findings.curves.as_ref().map(|curves| curves.unread), Some(0), "every file can be read");
    write_all(dir.path(), &findings).expect("a writable folder");
    let page = dir.path().join("report.html");
    (dir, page)
}

/// Opens a report and draws all of it.
#[track_caller]
fn opened(page: &Path, width: u32) -> Page {
    let mut browser = Page::new(width);
    browser.open(page);
    assert_eq!(browser.ask("document.documentElement.dataset.charts"), json!("ready"));
    browser.draw_all();
    browser
}

const UNDRAWN: &str = "[...document.querySelectorAll('.chart')].filter(it => !it.querySelector('.main-svg')).length";

#[test]
fn every_chart_is_drawn_and_switches() {
    let (_dir, file) = report(&rich());
    let mut page = opened(&file, 1400);
    let kinds = "[...new Set([...document.querySelectorAll('.chart')].map(it => it.dataset.chart))].sort().join(' ')";
    let all = "cost course dose forest ladder ledger lost operations order pairs quantiles shares shift";
    assert_eq!(page.ask(kinds), json!(all));
    assert_eq!(page.ask(UNDRAWN), json!(0));
    // Each of them shows something: lines, marks or bars.
    let empty = "[...document.querySelectorAll('.chart')].filter(it => !it.querySelector('.scatterlayer .trace, .barlayer .trace')).map(it => it.dataset.chart + it.dataset.index)";
    assert_eq!(page.ask(empty), json!([]));

    // Hover tells values.
    let hover = "Plotly.Fx.hover(document.querySelector('[data-chart=quantiles].chart'), [{curveNumber: 1, pointNumber: 9}]); document.querySelector('[data-chart=quantiles] .hoverlayer').textContent";
    let text = page.ask(hover);
    assert!(text.as_str().is_some_and(|it| it.contains("p45: ") && it.contains("of the rounds: ")), "{text}");

    // A variant can be switched off, by mouse and by keyboard, in every chart that shows it.
    let of_full = "[...document.querySelectorAll('.chart')].map(it => it.data.filter(trace => JSON.stringify(trace).includes('spans=5')).length)";
    let bars = "document.querySelector('[data-chart=ledger].chart').data[0].y.length";
    let all_bars = page.ask(bars).as_u64().expect("a number");
    let before = page.ask(of_full);
    page.ask("document.querySelector('[data-arm=\"full@spans=5\"]').click()");
    page.wait(&format!("{bars} === {} && unladen.all().then(() => 1)", all_bars - 1));
    let gone = page.ask(of_full);
    assert_ne!(before, gone);
    page.ask("document.querySelector('[data-arm=\"full@spans=5\"]').focus()");
    page.press(" ", " ");
    page.wait(&format!("{bars} === {all_bars} && unladen.all().then(() => 1)"));
    assert_eq!(page.ask(of_full), before);

    // Another metric.
    let title = "document.querySelector('[data-chart=pairs].chart').layout.yaxis.title.text";
    assert_eq!(page.ask(title), json!("µs"));
    page.ask("{ const it = document.getElementById('metric'); it.selectedIndex = 1; it.dispatchEvent(new Event('change')); }");
    page.wait(&format!("{title} === 'MiB'"));

    // Behind every chart there is a table, for whoever cannot see it.
    page.ask("document.querySelectorAll('details.numbers').forEach(it => it.open = true)");
    page.wait("[...document.querySelectorAll('details.numbers')].every(it => it.querySelectorAll('tr').length > 1)");
    assert_eq!(page.ask("[...document.querySelectorAll('.chart')].filter(it => it.getAttribute('role') !== 'img' || !it.ariaLabel).length"), json!(0));
    assert_eq!(page.ask("document.querySelectorAll('h1').length"), json!(1));
    assert_eq!(
        page.ask("[...document.querySelectorAll('input, select')].filter(it => !it.labels.length).length"),
        json!(0)
    );

    // Labels are text, in the charts, too.
    assert_eq!(
        page.ask("document.querySelectorAll('main b:not(.notices b), .chart a, .chart script').length"),
        json!(0)
    );
    assert!(
        page.ask("document.querySelector('[data-chart=forest] .annotation:nth-child(3)').parentNode.textContent")
            .as_str()
            .is_some_and(|it| it.contains("<b>&amp;</b>"))
    );

    assert!(page.complaints().is_empty(), "{:#?}", page.complaints());
    assert_eq!(page.requests(), [format!("file://{}", file.display())], "nothing but itself");
}

#[test]
fn it_fits_screens_paper_and_the_dark() {
    let (_dir, file) = report(&rich());
    let mut page = opened(&file, 390);
    assert_eq!(page.ask("document.documentElement.scrollWidth"), json!(390), "nothing sticks out");
    let too_wide = "[...document.querySelectorAll('.chart')].filter(it => it.querySelector('.main-svg').getBoundingClientRect().right > 390).length";
    assert_eq!(page.ask(too_wide), json!(0));
    page.resize(1400);
    page.wait("document.querySelector('[data-chart=quantiles] .main-svg').clientWidth > 900");

    let ink = "getComputedStyle(document.body).color + document.querySelector('[data-chart=forest].chart').layout.annotations[0].font.color";
    let light = page.ask(ink);
    page.prefer("dark");
    page.wait(&format!("({ink}) !== {light} && document.querySelector('[data-chart=forest].chart').layout.annotations[0].font.color === '#e6e9ed'"));
    page.prefer("light");

    let engine = base64::engine::general_purpose::STANDARD;
    let paper = engine.decode(page.printed()).expect("base64");
    assert!(paper.starts_with(b"%PDF") && paper.len() > 50_000, "{} bytes", paper.len());
    assert!(page.complaints().is_empty(), "{:#?}", page.complaints());
}

/// Alternating rounds show the machine's pace: under all variants at once, one round or all of them side by side.
#[test]
fn the_pace_of_the_machine_is_drawn() {
    let (_dir, file) = report(&Sketch { change_run: alternate, ..ladder() });
    let mut page = opened(&file, 1400);
    assert_eq!(page.ask(UNDRAWN), json!(0));
    let lines = |kind: &str| {
        format!(
            "document.querySelector('[data-chart={kind}].chart').data.map(it => it.x.filter(x => x !== null).length)"
        )
    };
    // Twelve rounds of 49 super-blocks that count; the baseline over itself is no line.
    assert_eq!(page.ask(&lines("pace")), json!([588, 588, 588, 588]));
    assert_eq!(page.ask(&lines("pace_ratio")), json!([588, 588, 588]));
    page.ask("{ const it = document.getElementById('round'); it.value = '7'; it.dispatchEvent(new Event('change')); }");
    page.wait(&format!("({})[0] === 49 && ({})[0] === 49", lines("pace"), lines("pace_ratio")));
    // What all have in common is gone in the second chart.
    let spread = |kind: &str, line: u32| {
        format!(
            "(() => {{ const y = document.querySelector('[data-chart={kind}].chart').data[{line}].y.filter(y => y !== null); return Math.max(...y) - Math.min(...y); }})()"
        )
    };
    let (wide, narrow) = (page.ask(&spread("pace", 2)), page.ask(&spread("pace_ratio", 1)));
    // µs of about 400, and per cent.
    assert!(wide.as_f64() > Some(60.0) && narrow.as_f64() < Some(8.0), "{wide} µs, {narrow} %");
    let text = page.ask("Plotly.Fx.hover(document.querySelector('[data-chart=pace].chart'), [{curveNumber: 2, pointNumber: 9}]); document.querySelector('[data-chart=pace] .hoverlayer').textContent");
    assert!(text.as_str().is_some_and(|it| it.contains("OpenTelemetry, round 7")), "{text}");
    page.ask("document.querySelectorAll('details.numbers').forEach(it => it.open = true)");
    page.wait("[...document.querySelectorAll('details.numbers')].every(it => it.querySelectorAll('tr').length > 1)");
    assert!(page.complaints().is_empty(), "{:#?}", page.complaints());
}

/// Spans that a backend only counts belong to no second, and are lost all the same.
#[test]
fn losses_without_a_second_are_not_denied() {
    let text = |lost: f64| {
        let otel = SketchedVariant { spans: 4.0, lost, ..sketched("otel", "OpenTelemetry", VariantKind::Variant) };
        let mut findings = findings(&Sketch::new("counted", "").with(otel));
        findings.variants.iter_mut().flat_map(|it| &mut it.ledger).for_each(|it| it.lost_by_second.clear());
        render(&findings, Format::Html)
    };
    let (denied, undated) = ("No span was lost in any run", "In which second is unknown");
    assert!(text(0.1).contains(undated) && !text(0.1).contains(denied));
    assert!(text(0.0).contains(denied) && !text(0.0).contains(undated));
}

/// Studies without much in them leave sections out, not holes.
#[test]
fn a_meagre_study_opens_too() {
    let meagre = Sketch { rounds: 3, ..Sketch::new("meagre", "") };
    let without_files = tempfile::tempdir().expect("a temporary folder");
    write(without_files.path(), &meagre.study(), &meagre.runs());
    let findings = judge(without_files.path()).expect("a journal is enough");
    write_all(without_files.path(), &findings).expect("a writable folder");
    let page = opened(&without_files.path().join("report.html"), 800);
    assert!(page.complaints().is_empty(), "{:#?}", page.complaints());
}

/// 24 rounds of six variants, baseline and placebo, twenty minutes each: 64 hours of measuring.
#[test]
fn a_large_study_stays_small_and_quick() {
    let mut sketch = Sketch { rounds: 24, window_s: 1200, rate: Some(500.0), ..Sketch::new("large", "How large?") };
    let names = ["a", "b", "c", "d", "e", "f"];
    for (name, cost) in names.into_iter().zip([1.02, 1.05, 1.1, 1.15, 1.2, 1.3]) {
        sketch = sketch.with(SketchedVariant {
            cpu: cost,
            memory: 4.0,
            latency: cost,
            spans: 3.0,
            ..sketched(name, name, VariantKind::Variant)
        });
    }
    let (_dir, file) = report(&sketch);
    let bytes = fs::metadata(&file).expect("just written").len();
    let mut page = Page::new(1400);
    let idle_s = page.cpu_s();
    let took = page.open(&file);
    let cpu_s = page.cpu_s() - idle_s;
    let began = std::time::Instant::now();
    page.draw_all();
    println!(
        "{:.1} MB, open after {:.2} s ({cpu_s:.2} s of CPU in all processes of the browser), everything drawn {:.2} s later",
        bytes as f64 / 1e6,
        took.as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    assert!(bytes < 8_000_000, "{bytes} bytes");
    // A quiet machine needs less than two seconds; tests run beside each other.
    assert!(took.as_secs() < 10, "{took:?}");
    assert_eq!(page.ask(UNDRAWN), json!(0));
    assert!(page.complaints().is_empty(), "{:#?}", page.complaints());
}

/// `UNLADEN_REPORT=runs/x/report.html cargo test -p unladen --test report -- --ignored pictures`: pictures of a report to look at.
#[test]
#[ignore = "makes pictures for people"]
fn pictures() {
    let file = PathBuf::from(std::env::var_os("UNLADEN_REPORT").expect("UNLADEN_REPORT names a report.html"));
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pictures");
    fs::create_dir_all(&out).expect("a writable folder");
    let engine = base64::engine::general_purpose::STANDARD;
    let keep = |name: &str, content: String| {
        fs::write(out.join(name), engine.decode(content).expect("base64")).expect("a writable folder")
    };
    let file = fs::canonicalize(file).expect("it is there");
    let mut page = opened(&file, 1400);
    keep("wide.png", page.picture());
    keep("paper.pdf", page.printed());
    page.prefer("dark");
    page.draw_all();
    keep("dark.png", page.picture());
    page.prefer("light");
    page.resize(390);
    page.draw_all();
    keep("narrow.png", page.picture());
    println!("{}", out.display());
}
