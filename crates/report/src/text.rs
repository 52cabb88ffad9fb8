//! For a terminal: the sentences first, then a short table per variant, then what a reader should know.
//!
//! Fits 100 columns. Colours only repeat what the words say.

use std::cmp::Reverse;

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use unladen_judge::findings::{
    Align, Cell, Conclusion, Findings, Judgement, Outcome, Place, Section, Severity, VariantFindings, Verdict,
};

use super::view::{self, Row};

const WIDTH: usize = 100;
/// Longest name in a table; longer ones are cut.
const NAME: usize = 26;
/// What of a cell with a sentence is shown.
const SENTENCE: usize = 30;
/// What of any other cell is shown, but for the first of a row.
const PATH: usize = 50;
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
    budgets(&mut out, findings);
    findings.sections.iter().filter(|it| it.place != Place::Detail).for_each(|it| section(&mut out, it));
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
            out.line(&with_colour(line, row.verdict));
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

/// The end of a path, which tells more than its beginning.
fn ending(text: &str, width: usize) -> String {
    let all = text.chars().count();
    if all <= width {
        return text.to_owned();
    }
    let end: String = text.chars().skip(all + 1 - width).collect();
    format!("…{end}")
}

/// A table; its first column gets the room that the others leave. Sentences lose their ends and paths their beginnings, which the long reports
/// have.
fn section(out: &mut Page, section: &Section) {
    out.line("");
    out.wrapped("", "  ", &view::clean(&section.title), BOLD);
    let heads = section.columns.iter().map(|column| view::clean(&column.head())).collect();
    let cells = |row: &Vec<Cell>| row.iter().map(|cell| view::clean(&cell.to_string())).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = [heads].into_iter().chain(section.rows.iter().map(cells)).collect();
    let width = |index: usize| rows.iter().map(|row| row[index].chars().count() + 2).max().unwrap_or(0);
    let room = WIDTH.saturating_sub((1..section.columns.len()).map(width).sum()).max(NAME / 2);
    let is_right = |index: usize| section.columns[index].align == Align::Right;
    let cut = |row: &Vec<String>| {
        let cell = |(index, text): (usize, &String)| match section.columns[index].align {
            _ if index == 0 => view::shortened(text, room),
            Align::Wrapped => view::shortened(text, SENTENCE),
            Align::Left => ending(text, PATH),
            _ => text.clone(),
        };
        row.iter().enumerate().map(cell).collect()
    };
    let mut lines = beneath_each_other(rows.iter().map(cut), is_right, 2).into_iter();
    out.line(&paint(&lines.next().unwrap_or_default(), DIM));
    for (line, row) in lines.zip(&section.rows) {
        match row.last() {
            Some(Cell::Verdict(verdict)) => out.line(&with_colour(&line, *verdict)),
            _ => out.line(&line),
        }
    }
    if let Some(drawing) = &section.drawing {
        out.line(&format!("drawn in {}", view::clean(drawing)));
    }
}

/// What stands under a table: how to read it, the ledger, and runs that do not count.
fn runs(out: &mut Page, variant: &VariantFindings) {
    if let Some(words) = view::measurement_error(variant) {
        out.wrapped("  ", "  ", words, DIM);
    }
    if let Some(faults) = view::faults(variant) {
        out.wrapped("  faults: ", "          ", &format!("{faults}."), Style::new());
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
    let head = ["", "baseline", "variant", "difference", "relative", "verdict"].map(str::to_owned);
    let cells = |row: &Row| {
        let name = format!("  {}", view::shortened(&row.short, name));
        let verdict = row.verdict.words().to_owned();
        [name, row.baseline.clone(), row.value.clone(), row.difference.clone(), row.ratio.clone(), verdict].to_vec()
    };
    let rows = tables.iter().flat_map(|(_, rows)| rows).map(cells);
    beneath_each_other([head.to_vec()].into_iter().chain(rows), |index| matches!(index, 1 | 2), gap)
}

/// Rows of cells as lines, with this gap between the columns.
pub(super) fn beneath_each_other(
    rows: impl Iterator<Item = Vec<String>>,
    is_right: impl Fn(usize) -> bool,
    gap: u16,
) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, gap));
        column.set_cell_alignment(if is_right(index) { CellAlignment::Right } else { CellAlignment::Left });
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

/// A line that ends with this verdict.
fn with_colour(line: &str, verdict: Judgement) -> String {
    let style = match verdict {
        Judgement::Of(Verdict::Costs) => AnsiColor::Yellow.on_default().bold(),
        Judgement::Of(Verdict::Saves) => AnsiColor::Cyan.on_default().bold(),
        Judgement::Of(Verdict::NoDifference) => AnsiColor::Green.on_default(),
        Judgement::NoVerdict => red(),
        Judgement::Of(Verdict::CannotTell) | Judgement::TooFewRounds => DIM,
    };
    let start = line.strip_suffix(verdict.words());
    start.map_or_else(|| line.to_owned(), |start| format!("{start}{}", paint(verdict.words(), style)))
}

fn red() -> Style {
    AnsiColor::Red.on_default().bold()
}

fn paint(text: &str, style: Style) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}

/// Lines of at most [`WIDTH`] columns.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Wraps at spaces, but not between a number and its unit; `first` stands before the first line, `rest` before the others.
    pub(super) fn wrapped(&mut self, first: &str, rest: &str, text: &str, style: Style) {
        let mut start = first;
        for line in view::lines(&view::glued(text), WIDTH - rest.chars().count()) {
            self.line(&format!("{start}{}", paint(&line.replace(view::NO_BREAK, " "), style)));
            start = rest;
        }
    }
}
