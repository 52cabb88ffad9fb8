//! One page that needs nothing else: no network, no other file. The template is `page.html.j2`; everything that it prints is
//! escaped by minijinja. The charts are drawn in the browser by plotly.js, which build.rs has compressed; the page holds
//! it and unpacks it. What is drawn stands in the page as JSON, and what is important also as text.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use unladen_judge::curves::Curves;
use unladen_judge::findings::{
    Align, Cell, Column, CommandLine, Conclusion, Finding, Findings, NoticeLine, RunLine, Section, Severity, Topic,
    VariantFindings, VariantKind,
};

use super::{template, view};
use charts::{AvailableCharts, Charts};

mod charts;

const TEMPLATE: &str = include_str!("page.html.j2");
pub(super) const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("charts.js"), include_str!("page.js"));
/// plotly.js, compressed by gzip.
pub(super) const COMPRESSED_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plotly.min.js.gz"));
/// The same in base64.
static LIBRARY: LazyLock<String> = LazyLock::new(|| STANDARD.encode(COMPRESSED_LIBRARY));

/// What the template prints.
#[derive(Serialize)]
struct Page<'a> {
    study: &'a str,
    question: &'a str,
    void: Option<&'a str>,
    /// Variant, or nothing, and the sentence.
    answers: Vec<(&'a str, String)>,
    /// The sentence on the noise floor.
    floor: Vec<String>,
    setting: String,
    style: &'static str,
    script: &'static str,
    library: &'static str,
    /// What the charts show, as JSON that cannot end the element around it.
    data: String,
    legend: Vec<LegendEntry<'a>>,
    forests: Vec<(&'a str, &'a str, usize)>,
    has: AvailableCharts,
    warnings: usize,
    variants: Vec<Variant<'a>>,
    tables: BTreeMap<Topic, Vec<Table<'a>>>,
    notices: Vec<&'a NoticeLine>,
    reading: Vec<String>,
    instrument: Option<String>,
    commands: &'a [CommandLine],
    facts: Vec<(&'static str, String)>,
    aside: Vec<&'a RunLine>,
    unread: u32,
    host: String,
    version: &'a str,
}

#[derive(Serialize)]
struct LegendEntry<'a> {
    name: &'a str,
    label: String,
    kind: VariantKind,
}

#[derive(Serialize)]
struct Table<'a> {
    /// Neighbours of the same are folded away together.
    fold: Option<String>,
    title: String,
    notes: &'a [String],
    heads: Vec<(String, String)>,
    /// Text and class of every cell.
    rows: Vec<Vec<(String, String)>>,
    drawing: Option<&'a str>,
}

#[derive(Serialize)]
struct Variant<'a> {
    heading: String,
    /// Head of the column with its values.
    value: &'a str,
    rows: Vec<Row<'a>>,
    more: Vec<Row<'a>>,
    measurement_error: Option<&'static str>,
    faults: Option<String>,
    ledger: Option<String>,
    money: Option<String>,
    valid_runs: u32,
    runs: u32,
}

#[derive(Serialize)]
struct Row<'a> {
    cells: view::Row,
    class: String,
    verdict: &'static str,
    words: &'a str,
    notices: Vec<&'a str>,
}

pub(super) fn render(findings: &Findings) -> String {
    // The template is part of the program and its context is made here: a failure is a bug, and is shown as one.
    page(findings).unwrap_or_else(|error| {
        let text = format!("{error:#}").replace('&', "&amp;").replace('<', "&lt;");
        format!("<!doctype html><title>unladen</title><pre>{text}</pre>")
    })
}

fn page(findings: &Findings) -> Result<String, minijinja::Error> {
    let (answers, floor) = view::answers(findings);
    let none = Curves::default();
    let charts = Charts::of(findings, findings.curves.as_ref().unwrap_or(&none));
    let notices: Vec<_> = findings.notices.iter().filter(|it| findings.void.as_ref() != Some(&it.text)).collect();
    let mut tables: BTreeMap<Topic, Vec<Table<'_>>> = BTreeMap::new();
    for section in &findings.sections {
        tables.entry(section.topic).or_default().push(table(section));
    }
    let page = Page {
        study: &findings.study,
        question: &findings.question,
        void: findings.void.as_deref(),
        answers: answers
            .iter()
            .map(|it| (it.variant.as_str(), view::glued(&it.words)))
            .chain(view::ladder_words(findings).into_iter().map(|words| ("", words)))
            .collect(),
        floor: words(&floor),
        setting: view::setting_and_design(findings),
        style: STYLE,
        script: SCRIPT,
        library: &LIBRARY,
        data: in_element(&serde_json::to_string(&charts).unwrap_or_default()),
        legend: charts
            .variants()
            .map(|it| LegendEntry { name: &it.name, label: it.label.clone(), kind: it.kind })
            .collect(),
        forests: charts.forests().collect(),
        has: charts.has(),
        warnings: notices.iter().filter(|it| it.severity != Severity::Note).count(),
        variants: findings.variants.iter().map(variant).collect(),
        tables,
        notices,
        reading: view::reading(findings),
        instrument: view::instrument(findings),
        commands: &findings.commands,
        facts: facts(&findings.host),
        aside: findings.runs.iter().filter(|it| !it.counts || !it.disturbances.is_empty()).collect(),
        unread: findings.curves.as_ref().map_or(0, |curves| curves.unread),
        host: serde_json::to_string_pretty(&findings.host).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION"),
    };
    template::render(TEMPLATE, page)
}

/// Within an element of a script nothing is escaped; only the beginning of a tag could end it.
fn in_element(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// What a reader looks for first in the environment.
fn facts(host: &serde_json::Value) -> Vec<(&'static str, String)> {
    const KEYS: [(&str, &str); 12] = [
        ("command", "command"),
        ("started", "started"),
        ("seed", "seed"),
        ("unladen", "unladen"),
        ("commit", "commit"),
        ("cpu", "CPU"),
        ("cores", "cores"),
        ("subject_cores", "cores of the subject"),
        ("instrument_cores", "cores of the instrument"),
        ("kernel", "kernel"),
        ("distribution", "distribution"),
        ("virtualisation", "virtualisation"),
    ];
    let written = |value: &serde_json::Value| match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Array(words) => Some(
            words
                .iter()
                .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
                .collect::<Vec<_>>()
                .join(" "),
        ),
        other => Some(other.to_string()),
    };
    let mut facts: Vec<_> = KEYS.iter().filter_map(|(key, name)| Some((*name, written(host.get(key)?)?))).collect();
    let tools = host.get("toolchains").and_then(serde_json::Value::as_object);
    let tools: Vec<String> = tools.into_iter().flat_map(serde_json::Map::values).filter_map(written).collect();
    facts.extend((!tools.is_empty()).then(|| ("toolchains", tools.join("; "))));
    facts
}

fn words(conclusions: &[&Conclusion]) -> Vec<String> {
    conclusions.iter().map(|conclusion| view::glued(&conclusion.words)).collect()
}

fn table(section: &Section) -> Table<'_> {
    let class = |column: &Column, cell: Option<&Cell>| match (cell, column.align) {
        (Some(Cell::Verdict(verdict)), _) => format!("verdict {}", view::class(*verdict)),
        (Some(Cell::Outcome(outcome)), _) => format!("outcome {}", outcome.name()),
        (_, Align::Left) => String::new(),
        (_, Align::Right) => "right".to_owned(),
        (_, Align::Wrapped) => "words".to_owned(),
    };
    let cells = |row: &Vec<Cell>| {
        let cells = row.iter().zip(&section.columns);
        cells.map(|(cell, column)| (view::clean(&cell.to_string()), class(column, Some(cell)))).collect()
    };
    Table {
        fold: section.fold.as_deref().map(view::clean),
        title: view::title(section),
        notes: &section.notes,
        heads: section.columns.iter().map(|column| (view::clean(&column.head()), class(column, None))).collect(),
        rows: section.rows.iter().map(cells).collect(),
        drawing: section.drawing.as_deref(),
    }
}

fn variant(variant: &VariantFindings) -> Variant<'_> {
    let prominent = view::prominent(variant);
    let detail = variant.metrics.iter().filter(|it| !prominent.contains(it));
    Variant {
        heading: view::heading(variant),
        value: variant.kind.name(),
        rows: prominent.iter().map(|it| row(variant, it)).collect(),
        more: detail.map(|it| row(variant, it)).collect(),
        measurement_error: view::measurement_error(variant),
        faults: view::faults(variant),
        ledger: variant.ledger.as_ref().map(|ledger| view::ledger(ledger).join(", ")),
        money: variant.money.as_ref().map(view::money),
        valid_runs: variant.valid_runs,
        runs: variant.runs,
    }
}

fn row<'a>(variant: &VariantFindings, finding: &'a Finding) -> Row<'a> {
    let cells = view::row(variant, finding);
    Row {
        class: view::class(cells.verdict),
        verdict: cells.verdict.words(),
        cells,
        words: &finding.words,
        notices: finding.notices.iter().map(|it| it.text.as_str()).collect(),
    }
}
