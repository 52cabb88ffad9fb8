//! One page that needs nothing else: no network, no script. The template is `report.html.j2`; everything that it prints is
//! escaped by minijinja.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, syntax::SyntaxConfig};
use serde::Serialize;

use super::{plot, view};
use crate::judge::findings::{BudgetLine, Conclusion, Finding, Findings, NoticeLine, ProfileFindings, VariantFindings};

const TEMPLATE: &str = include_str!("report.html.j2");

/// What the template prints.
#[derive(Serialize)]
struct Page<'a> {
    study: &'a str,
    question: &'a str,
    void: Option<&'a str>,
    answers: Vec<String>,
    /// The sentence on the noise floor.
    floor: Vec<String>,
    setting: String,
    panels: Vec<plot::Panel>,
    variants: Vec<Variant<'a>>,
    profiles: Vec<Profile<'a>>,
    ladders: Vec<view::LadderTable>,
    budgets: &'a [BudgetLine],
    notices: Vec<&'a NoticeLine>,
    reading: Vec<String>,
    instrument: Option<String>,
    host: String,
    version: &'a str,
}

#[derive(Serialize)]
struct Profile<'a> {
    heading: String,
    rows: Vec<[String; 4]>,
    flame_graph: &'a str,
}

#[derive(Serialize)]
struct Variant<'a> {
    heading: String,
    /// Head of the column with its values.
    value: &'a str,
    rows: Vec<Row<'a>>,
    more: Vec<Row<'a>>,
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
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    let (answers, floor) = view::answers(findings);
    let page = Page {
        study: &findings.study,
        question: &findings.question,
        void: findings.void.as_deref(),
        answers: words(&answers).into_iter().chain(view::ladder_words(findings)).collect(),
        floor: words(&floor),
        setting: view::setting(findings),
        panels: plot::panels(findings),
        variants: findings.variants.iter().map(variant).collect(),
        profiles: findings.profiles.iter().map(profile).collect(),
        ladders: findings.ladders.iter().map(view::ladder).collect(),
        budgets: &findings.budgets,
        notices: findings.notices.iter().filter(|it| findings.void.as_ref() != Some(&it.text)).collect(),
        reading: view::reading(findings),
        instrument: view::instrument(findings),
        host: serde_json::to_string_pretty(&findings.host).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION"),
    };
    environment.render_str(TEMPLATE, Serde(page))
}

fn words(conclusions: &[&Conclusion]) -> Vec<String> {
    conclusions.iter().map(|conclusion| view::glued(&conclusion.words)).collect()
}

fn profile(profile: &ProfileFindings) -> Profile<'_> {
    Profile { heading: view::profile_heading(profile), rows: view::frames(profile), flame_graph: &profile.flame_graph }
}

fn variant(variant: &VariantFindings) -> Variant<'_> {
    let prominent = view::prominent(variant);
    let detail = variant.metrics.iter().filter(|it| !prominent.contains(it));
    Variant {
        heading: view::heading(variant),
        value: if variant.kind == "placebo" { "placebo" } else { "variant" },
        rows: prominent.iter().map(|it| row(variant, it)).collect(),
        more: detail.map(|it| row(variant, it)).collect(),
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
        class: cells.verdict.replace(' ', "-"),
        cells,
        words: &finding.words,
        notices: finding.notices.iter().map(|it| it.text.as_str()).collect(),
    }
}
