//! For a terminal: the sentences first, then a short table per variant, then what a reader should know.
//!
//! Fits 100 columns. Colours only repeat what the words say.

use std::cmp::Reverse;

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use unladen_judge::findings::{Conclusion, Findings, Outcome, Place, Severity, VariantFindings};

use super::answers;
use super::sampled;
use super::view::{self, Row};

const WIDTH: usize = 100;
/// Longest name in a table; longer ones are cut.
const NAME: usize = 26;
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Without colours.
pub(super) fn plain(findings: &Findings) -> String {
    anstream::adapter::strip_str(&coloured(findings)).to_string()
}

/// With colours.
pub(super) fn coloured(findings: &Findings) -> String {
    let mut out = Page::default();
    head(&mut out, findings);
    answer(&mut out, findings);
    out.line("");
    out.wrapped("", "", &view::setting_and_design(findings), DIM);
    tables(&mut out, findings);
    ladders(&mut out, findings);
    budgets(&mut out, findings);
    profiles(&mut out, findings);
    notices(&mut out, findings);
    foot(&mut out, findings);
    out.text
}

fn head(out: &mut Page, findings: &Findings) {
    let study = view::clean(&findings.study);
    let title =
        if findings.question.is_empty() { study } else { format!("{study}: {}", view::clean(&findings.question)) };
    out.wrapped("", "", &title, BOLD);
    out.line("");
}

/// What a user came for.
fn answer(out: &mut Page, findings: &Findings) {
    if let Some(reason) = &findings.void {
        out.wrapped("  ", "  ", &format!("No verdict: the study is void, because {}.", view::clean(reason)), red());
    }
    let (answers, floor) = view::answers(findings);
    let steps = view::ladder_words(findings);
    let of = |conclusion: &&Conclusion| conclusion.words.clone();
    for words in answers.iter().map(of).chain(steps).chain(floor.iter().map(of)) {
        out.wrapped("  ", "  ", &view::clean(&words), Style::new());
    }
}

fn tables(out: &mut Page, findings: &Findings) {
    let tables: Vec<(&VariantFindings, Vec<Row>)> = findings
        .variants
        .iter()
        .map(|variant| (variant, view::prominent(variant).into_iter().map(|it| view::row(variant, it)).collect()))
        .collect();
    // One set of column widths, so that the tables line up beneath each other.
    let lines = aligned(&tables);
    let mut lines = lines.iter();
    out.line("");
    out.line(&paint(lines.next().map_or("", String::as_str), DIM));
    for (variant, rows) in &tables {
        out.line(&paint(&view::heading(variant), BOLD));
        for row in rows {
            let Some(line) = lines.next() else { return };
            out.line(&match line.strip_suffix(row.verdict) {
                Some(start) => format!("{start}{}", paint(row.verdict, style(row.verdict))),
                None => line.clone(),
            });
        }
        runs(out, variant);
        out.line("");
    }
    let detail = findings.variants.iter().flat_map(|variant| &variant.metrics).filter(|it| it.place == Place::Detail);
    let hidden = detail.map(|finding| finding.metric.as_str()).collect::<std::collections::BTreeSet<_>>().len();
    if hidden > 0 {
        out.wrapped("", "", &format!("{hidden} more metrics are in report.md, report.html and findings.json."), DIM);
    }
}

/// What each step of a ladder adds, and each dose; and whether all did the same work.
fn ladders(out: &mut Page, findings: &Findings) {
    for ladder in view::after_verdicts(findings).chain(answers::short(findings)).chain(sampled::tables(findings)) {
        out.line("");
        out.line(&paint(&ladder.title, BOLD));
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header([String::new()].into_iter().chain(ladder.columns));
        for (name, cells) in ladder.lines {
            table.add_row([view::shortened(&name, NAME + 8)].into_iter().chain(cells));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            column.set_cell_alignment(if index > 0 { CellAlignment::Right } else { CellAlignment::Left });
        }
        let mut lines = table.lines();
        out.line(&paint(lines.next().unwrap_or_default().trim_end(), DIM));
        lines.for_each(|line| out.line(line.trim_end()));
    }
}

/// What stands under a table: the ledger, and runs that do not count.
fn runs(out: &mut Page, variant: &VariantFindings) {
    if let Some(faults) = view::faults(variant) {
        out.wrapped("  bad day: ", "           ", &format!("{faults}."), Style::new());
    }
    if let Some(ledger) = &variant.ledger {
        out.wrapped("  spans: ", "         ", &format!("{}.", view::ledger(ledger).join(", ")), Style::new());
    }
    if let Some(money) = &variant.money {
        out.wrapped("  ", "  ", &view::money(money), Style::new());
    }
    if variant.valid_runs < variant.runs {
        let line = format!("{} of {} runs count.", variant.valid_runs, variant.runs);
        out.wrapped("  ", "  ", &line, AnsiColor::Yellow.on_default());
    }
    if variant.metrics.is_empty() {
        out.line("  nothing to compare");
    }
}

/// Header and rows of all tables as lines of equal layout. What does not fit is first drawn closer together, then loses the
/// ends of its names.
fn aligned(tables: &[(&VariantFindings, Vec<Row>)]) -> Vec<String> {
    let layouts = [(2, NAME), (1, NAME), (1, NAME - 6), (1, NAME - 12)];
    let widest = |lines: &Vec<String>| lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (gap, name) in layouts {
        lines = laid_out(tables, gap, name);
        if widest(&lines) <= WIDTH {
            break;
        }
    }
    lines
}

fn laid_out(tables: &[(&VariantFindings, Vec<Row>)], gap: u16, name: usize) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.add_row(["", "baseline", "variant", "difference", "relative", "verdict"]);
    for row in tables.iter().flat_map(|(_, rows)| rows) {
        let name = format!("  {}", view::shortened(&row.short, name));
        table.add_row([name.as_str(), &row.baseline, &row.value, &row.difference, &row.ratio, row.verdict]);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let right = matches!(index, 1 | 2);
        column.set_padding((0, if index == 5 { 0 } else { gap }));
        column.set_cell_alignment(if right { CellAlignment::Right } else { CellAlignment::Left });
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn budgets(out: &mut Page, findings: &Findings) {
    if findings.budgets.is_empty() {
        return;
    }
    out.line("");
    out.line(&paint("Budgets", BOLD));
    for line in &findings.budgets {
        let variant = findings.variants.iter().find(|it| it.name == line.variant);
        let label = variant.map_or_else(|| view::clean(&line.variant), |it| view::clean(&it.label));
        let style = match line.outcome {
            Outcome::Pass => AnsiColor::Green.on_default(),
            Outcome::Fail => red(),
            Outcome::Undecided => AnsiColor::Yellow.on_default(),
        };
        out.wrapped(
            &paint(&format!("{:<11}", line.outcome.name()), style),
            "           ",
            &format!("{label}: {}", view::clean(&line.words)),
            Style::new(),
        );
    }
}

/// Where the CPU goes, if it was sampled.
fn profiles(out: &mut Page, findings: &Findings) {
    for profile in &findings.profiles {
        out.line("");
        out.wrapped("", "  ", &format!("{}:", view::profile_heading(profile)), Style::new());
        for [name, baseline, value, difference] in view::frames(profile) {
            out.line(&format!("  {difference:>8}  {name} ({baseline} → {value})"));
        }
        out.line(&format!("  flame graph of the difference: {}", profile.flame_graph));
    }
}

fn notices(out: &mut Page, findings: &Findings) {
    let mut own: Vec<(String, &unladen_judge::findings::NoticeLine)> =
        findings.notices.iter().map(|notice| (String::new(), notice)).collect();
    for variant in findings.real_variants() {
        for finding in view::prominent(variant) {
            let of = format!("{}, {}: ", view::clean(&variant.name), view::whose(finding));
            // What is said of the whole study is not said again of a finding.
            let own_of_it =
                finding.notices.iter().filter(|it| findings.notices.iter().all(|known| known.text != it.text));
            own.extend(own_of_it.map(|notice| (of.clone(), notice)));
        }
    }
    // A void study has said so at the top.
    own.retain(|(_, notice)| findings.void.as_deref() != Some(notice.text.as_str()));
    own.sort_by_key(|(_, notice)| Reverse(notice.severity));
    if own.is_empty() {
        return;
    }
    out.line("");
    for (of, notice) in own {
        let style = match notice.severity {
            Severity::Refusal => red(),
            Severity::Warning => AnsiColor::Yellow.on_default(),
            Severity::Note => DIM,
        };
        let tag = format!("{:<9}", notice.severity.name());
        out.wrapped(&paint(&tag, style), "         ", &format!("{of}{}", view::clean(&notice.text)), Style::new());
    }
}

fn foot(out: &mut Page, findings: &Findings) {
    out.line("");
    for line in view::reading(findings).into_iter().chain(view::instrument(findings)) {
        out.wrapped("", "", &line, DIM);
    }
}

fn style(verdict: &str) -> Style {
    match verdict {
        "costs" => AnsiColor::Yellow.on_default().bold(),
        "saves" => AnsiColor::Cyan.on_default().bold(),
        "no difference" => AnsiColor::Green.on_default(),
        "no verdict" => red(),
        _ => DIM,
    }
}

fn red() -> Style {
    AnsiColor::Red.on_default().bold()
}

fn paint(text: &str, style: Style) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}

/// Lines of at most [`WIDTH`] columns.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Wraps at spaces, but not between a number and its unit; `first` stands before the first line, `rest` before the others.
    fn wrapped(&mut self, first: &str, rest: &str, text: &str, style: Style) {
        let mut start = first;
        for line in view::lines(&view::glued(text), WIDTH - rest.chars().count()) {
            self.line(&format!("{start}{}", paint(&line.replace(view::NO_BREAK, " "), style)));
            start = rest;
        }
    }
}
