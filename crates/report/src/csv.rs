//! One line per finding, with plain numbers in the unit that the line names (RFC 4180).
//!
//! Text from the study (names, labels) may begin with a character that spreadsheets take for a formula; such cells get a leading
//! apostrophe.

use std::fmt::Write;

use unladen_judge::findings::{
    AnswerFindings, AnswerNumbers, Finding, Findings, LedgerFindings, Range, ReportedNumberFindings, SampledFindings,
    TimesFrom, VariantFindings,
};

const HEAD: &str = "study,variant,label,kind,valid_runs,metric,service,operation,unit,baseline,value,difference,\
difference_low,difference_high,ratio,ratio_low,ratio_high,mean_ratio,level,detectable,verdict,words,budget,budget_outcome\n";

pub(super) fn render(findings: &Findings) -> String {
    let mut csv = HEAD.to_owned();
    for variant in &findings.variants {
        for finding in &variant.metrics {
            row(&mut csv, findings, variant, &of_finding(finding));
        }
        for line in
            variant.ledger.iter().flat_map(of_ledger).chain(variant.reported_numbers.iter().map(of_reported_number))
        {
            row(&mut csv, findings, variant, &line);
        }
        let of_spans = findings.sampled.iter().filter(|it| it.variant == variant.name).flat_map(of_sampled);
        for line in variant.answers.iter().flat_map(of_answers).chain(of_spans) {
            row(&mut csv, findings, variant, &line);
        }
    }
    csv
}

/// The columns from `metric` on.
type Cells = [String; 19];

fn row(csv: &mut String, findings: &Findings, variant: &VariantFindings, cells: &Cells) {
    let head = [
        text(&findings.study),
        text(&variant.name),
        text(&variant.label),
        variant.kind.name().to_owned(),
        variant.valid_runs.to_string(),
    ];
    for (index, cell) in head.iter().chain(cells).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing into a string cannot fail.
        let _ = write!(csv, "{comma}{cell}");
    }
    csv.push('\n');
}

fn of_finding(finding: &Finding) -> Cells {
    let budget = finding.budget.as_ref();
    [
        text(&finding.metric),
        text(finding.service.as_deref().unwrap_or_default()),
        text(finding.operation.as_deref().unwrap_or_default()),
        text(&finding.unit),
        finding.baseline.to_string(),
        finding.value.to_string(),
        number(finding.difference),
        number(finding.difference_low),
        number(finding.difference_high),
        number(finding.ratio),
        number(finding.ratio_low),
        number(finding.ratio_high),
        number(finding.mean_ratio),
        number(finding.level),
        number(finding.detectable),
        finding.verdict.name().to_owned(),
        text(&finding.words),
        budget.map_or_else(String::new, |budget| text(&budget.limit)),
        budget.map_or_else(String::new, |budget| budget.outcome.name().to_owned()),
    ]
}

/// A number without an interval.
fn line(metric: &str, service: &str, operation: &str, unit: &str, baseline: Option<f64>, value: Option<f64>) -> Cells {
    let mut cells = Cells::default();
    (cells[0], cells[1], cells[2], cells[3]) = (text(metric), text(service), text(operation), unit.to_owned());
    (cells[4], cells[5]) = (number(baseline), number(value));
    cells
}

/// The ledger has totals, no comparison.
fn of_ledger(ledger: &LedgerFindings) -> Vec<Cells> {
    let lines = [
        ("spans_wanted", "count", Some(ledger.wanted as f64)),
        ("spans_saved", "count", Some(ledger.saved as f64)),
        ("spans_lost", "count", Some(ledger.lost as f64)),
        ("spans_duplicates", "count", Some(ledger.duplicates as f64)),
        ("spans_unexplained", "count", Some(ledger.unexplained as f64)),
        ("spans_loss_ratio", "share", Some(ledger.loss_ratio)),
        ("cpu_per_delivered_span", "us", ledger.cpu_us_per_delivered_span),
    ];
    let lines = lines.into_iter().filter(|(_, _, value)| value.is_some());
    lines.map(|(metric, unit, value)| line(metric, "", "", unit, None, value)).collect()
}

/// Medians over the rounds.
fn of_reported_number(it: &ReportedNumberFindings) -> Cells {
    line(&format!("said.{}", it.name), &it.service, "", "", it.baseline, it.value)
}

/// Medians: times of answers, or of iterations.
fn of_answers(answers: &AnswerFindings) -> Vec<Cells> {
    type Of = fn(&AnswerNumbers) -> Option<Range>;
    let columns: [(&str, &str, Of); 7] = [
        ("count", "count", |it| Some(it.answers)),
        ("failed", "count", |it| it.failed),
        ("unfinished", "count", |it| it.unfinished),
        ("p50", "us", |it| it.p50_us),
        ("p90", "us", |it| it.p90_us),
        ("p95", "us", |it| it.p95_us),
        ("p99", "us", |it| it.p99_us),
    ];
    let what = match answers.from {
        TimesFrom::Request => "answers",
        TimesFrom::Iteration => "iterations",
    };
    let operation = answers.request.as_ref().map_or_else(String::new, |_| answers.name());
    let line = |(name, unit, of): (&str, &str, Of)| {
        let median = |numbers: &Option<AnswerNumbers>| numbers.as_ref().and_then(of).map(|range| range.value);
        let (baseline, value) = (median(&answers.baseline), median(&answers.value));
        let cells = line(&format!("{what}.{name}"), "", &operation, unit, baseline, value);
        (baseline.is_some() || value.is_some()).then_some(cells)
    };
    columns.into_iter().filter_map(line).collect()
}

/// How far quantiles of spans are off, as shares of those that clients saw; medians over the rounds.
fn of_sampled(sampled: &SampledFindings) -> Vec<Cells> {
    let off = [("error", sampled.errors()), ("sampling", sampled.sampling())];
    let off = off
        .into_iter()
        .flat_map(|(what, ranges)| ["p50", "p90", "p95", "p99"].map(|it| (what, it)).into_iter().zip(ranges));
    let line = |((what, quantile), range): ((&str, &str), Option<Range>)| {
        Some(line(&format!("sampled.{what}_{quantile}"), "", &sampled.request, "share", None, Some(range?.value)))
    };
    off.filter_map(line).collect()
}

fn number(number: Option<f64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

fn text(text: &str) -> String {
    // Line breaks inside of cells are legal CSV, and still break every tool that counts lines.
    let mut safe: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if safe.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        safe.insert(0, '\'');
    }
    if safe.contains([',', '"', '\n']) { format!("\"{}\"", safe.replace('"', "\"\"")) } else { safe }
}
