//! What is found by request, by kind of answer, and from spans beside clients.

use unladen_journal::record::RunRecord;
use unladen_judge::judge;
use unladen_load::outcome::{Iterations, Kind, Named, Quantiles};
use unladen_report::{Format, render};

use crate::files;
use crate::golden::check;
use crate::sketch::{Sketch, findings, ladder, write};

fn times(count: u64, took: f64) -> Quantiles {
    Quantiles { count, p50: took, p90: 2.0 * took, p95: 3.0 * took, p99: 5.0 * took, ..Quantiles::default() }
}

/// Users who reserve a seat and wait for the answer: some are told that it has sold out, which an agent does not slow down.
fn reserving(run: &mut RunRecord) {
    let slower = if run.variant == "otel" { 1.25 } else { 1.0 } * (1.0 + f64::from(run.round) / 100.0);
    let Some(load) = &mut run.load else { return };
    let (request, sold_out) = ("result".to_owned(), if run.variant == "otel" { 900 } else { 1_200 });
    let kind = |name: &str, requests: u64, took: f64| Kind {
        request: request.clone(),
        name: name.to_owned(),
        requests,
        latency_us: times(requests, took),
        iteration_us: times(requests, took + 1_500.0),
    };
    load.named = vec![
        Named { name: "reserve".to_owned(), requests: 5_000, latency_us: times(5_000, 900.0), ..Named::default() },
        Named {
            name: request.clone(),
            requests: 4_900,
            errors: u64::from(run.round),
            latency_us: times(4_900, 40_000.0 * slower),
            ..Named::default()
        },
    ];
    load.kinds = vec![
        kind("reserved", 4_900 - sold_out, 45_000.0 * slower),
        kind("sold out", sold_out, 30_000.0),
        kind("never", 0, 0.0),
        kind("other", 0, 0.0),
    ];
    let latency_us = times(4_900, 41_000.0 * slower);
    load.iterations = Some(Iterations { completed: 4_900, failed: u64::from(run.round), unfinished: 40, latency_us });
}

#[test]
fn answers_are_of_several_kinds() {
    let sketch = Sketch { change_run: reserving, ..ladder() };
    let findings = findings(&sketch);
    check("kinds", &findings, &[Format::Text, Format::Markdown, Format::Csv]);
    let otel = findings.variants.iter().find(|variant| variant.name == "otel").expect("it is there");
    let sold_out = otel.answers.iter().find(|it| it.kind.as_deref() == Some("sold out")).expect("it is told");
    let (bare, here) = (sold_out.baseline.expect("numbers"), sold_out.value.expect("numbers"));
    assert_eq!((bare.answers.value, here.answers.value), (1_200.0, 900.0));
    assert!(bare.p99_us.is_some() && here.p99_us.is_none(), "nine of 900 are beyond the 99th percentile");
    let page = render(&findings, Format::Html);
    for part in
        ["<h2>Answers, by request and kind</h2>", "<h3>Answers to result: sold out (medians)</h3>", "href=\"#answers\""]
    {
        assert!(page.contains(part), "the page has {part}");
    }
    assert!(!page.contains("never"), "a kind that no answer was of has no table");
}

/// The spans of a tenth of the requests (of an even hundred, to be exact) beside the times of all of them.
#[test]
fn sampled_spans_are_held_to_what_clients_saw() {
    let with_truth = |run: &mut RunRecord| {
        let Some(load) = &mut run.load else { return };
        let times =
            |count: u64| Quantiles { count, p50: 160.0, p90: 200.0, p95: 250.0, p99: 990.0, ..Quantiles::default() };
        let mut named =
            Named { name: "work".to_owned(), requests: 4_500, service_time_us: times(4_500), ..Named::default() };
        if run.variant == "otel-10pct" {
            named.sampled_us = Quantiles { p99: 495.0, ..times(450) };
            load.sampled_total = load.sent_total / 10;
        }
        load.named = vec![named];
    };
    let sketch = Sketch { change_run: with_truth, ..ladder() };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let script = "  script: {requests: [{name: work, span: GET /work}, {name: other}]}\n";
    let study = sketch.study().replace("  connections: 16\n", &format!("  connections: 16\n{script}"));
    let runs = sketch.runs();
    write(dir.path(), &study, &runs);
    files::write(dir.path(), &runs);
    let findings = judge(dir.path()).expect("a whole run folder");
    let names: Vec<_> = findings.sampled.iter().map(|it| (it.variant.as_str(), it.request.as_str())).collect();
    assert_eq!(
        names,
        [("otel", "work"), ("otel-10pct", "work")],
        "the baseline has no spans, the other request names none"
    );
    let tenth = &findings.sampled[1];
    assert!((tenth.ratio - 0.1).abs() < 1e-3 && tenth.rounds.len() == 12, "{tenth:?}");
    // Every other of the 900 spans of the window is of this name; those of the warm-up took 90 ms.
    assert_eq!((tenth.rounds[0].spans, tenth.rounds[0].requests, tenth.spans), (450, 4_500, 12 * 450));
    assert!((tenth.rounds[0].from_spans.p99_us - 198.0).abs() < 1.0, "{:?}", tenth.rounds[0]);
    let off = tenth.error_p99.expect("a number");
    assert!((off.value + 0.8).abs() < 0.01 && off.low <= off.value && off.value <= off.high, "{off:?}");
    assert_eq!(tenth.sampling_p99.map(|it| it.value), Some(-0.5));
    assert!((tenth.mean_from_clients.p99_us - 990.0).abs() < 1e-6, "{:?}", tenth.mean_from_clients);
    assert_eq!(findings.sampled[0].sampling_p99.map(|it| it.value), Some(0.0), "all are sampled");
    let text = render(&findings, Format::Text);
    for part in ["What sampling hides of work", "10 % in spans", "of it by sampling"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let (markdown, page, csv) =
        (render(&findings, Format::Markdown), render(&findings, Format::Html), render(&findings, Format::Csv));
    assert!(
        markdown.lines().any(|line| line.contains("of it by sampling, % |") && line.ends_with("| −50 |")),
        "{markdown}"
    );
    assert!(page.contains("<h3>What sampling hides of work</h3>"), "the page has the table");
    let rounds = markdown
        .split("<summary>Every round, number by number</summary>")
        .nth(1)
        .expect("every round stands in Markdown");
    let of_spans = rounds.lines().find(|line| line.contains(": p95 of clients |")).expect("a line");
    assert_eq!(of_spans.matches(" 250 |").count(), 12 + 1, "twelve rounds and their mean: {of_spans}");
    assert!(csv.lines().any(|line| line.contains(",sampled.sampling_p99,,work,share,,-0.5,")), "{csv}");
}
