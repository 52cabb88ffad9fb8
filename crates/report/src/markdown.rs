//! For a pull request: GitHub-flavoured Markdown. The sentences and short tables are in sight, everything else folds.
//!
//! Text from the study is escaped, so that a label can neither break a table nor bring in HTML.

use std::fmt::Write;

use unladen_judge::findings::{Align, Cell, Conclusion, Finding, Findings, Judgement, Section, VariantFindings};

use super::view;

pub(super) fn render(findings: &Findings) -> String {
    let mut out = format!("## unladen: {}\n\n", text(&findings.study));
    if !findings.question.is_empty() {
        push(&mut out, format_args!("{}\n\n", text(&findings.question)));
    }
    if let Some(reason) = &findings.void {
        push(&mut out, format_args!("> **No verdict: the study is void**, because {}.\n\n", text(reason)));
    }
    let (answers, floor) = view::answers(findings);
    let of = |conclusion: &&Conclusion| conclusion.words.clone();
    let steps = view::ladder_words(findings);
    for words in answers.iter().map(of).chain(steps).chain(floor.iter().map(of)) {
        push(&mut out, format_args!("- {}\n", text(&words)));
    }
    push(&mut out, format_args!("\n{}\n", text(&view::setting_and_design(findings))));
    for variant in &findings.variants {
        push(&mut out, format_args!("\n### {}\n\n", text(&view::heading(variant))));
        table(&mut out, variant, &view::prominent(variant));
        under(&mut out, variant);
    }
    sections(&mut out, findings.sections.iter().filter(|it| it.fold.is_none()));
    notices(&mut out, findings);
    all_metrics(&mut out, findings);
    sections(&mut out, findings.sections.iter().filter(|it| it.fold.is_some()));
    push(&mut out, format_args!("\n"));
    for line in view::reading(findings).into_iter().chain(view::instrument(findings)) {
        push(&mut out, format_args!("<sub>{}</sub>\n", text(&line)));
    }
    out
}

fn table(out: &mut String, variant: &VariantFindings, findings: &[&Finding]) {
    if findings.is_empty() {
        out.push_str("Nothing to compare.\n");
        return;
    }
    let value = variant.kind.name();
    push(out, format_args!("| | baseline | {value} | difference | relative | verdict |\n|:--|--:|--:|:--|:--|:--|\n"));
    for finding in findings {
        let row = view::row(variant, finding);
        let (name, verdict) = (text(&row.name), emphasized(row.verdict));
        push(
            out,
            format_args!(
                "| {name} | {} | {} | {} | {} | {verdict} |\n",
                row.baseline, row.value, row.difference, row.ratio
            ),
        );
    }
}

fn under(out: &mut String, variant: &VariantFindings) {
    if let Some(words) = view::measurement_error(variant) {
        push(out, format_args!("\n{words}\n"));
    }
    if let Some(faults) = view::faults(variant) {
        push(out, format_args!("\nFaults: {}.\n", text(&faults)));
    }
    if let Some(ledger) = &variant.ledger {
        push(out, format_args!("\nSpans: {}.\n", text(&view::ledger(ledger).join(", "))));
    }
    if let Some(money) = &variant.money {
        push(out, format_args!("\n{}\n", text(&view::money(money))));
    }
    if variant.valid_runs < variant.runs {
        push(out, format_args!("\n{} of {} runs count.\n", variant.valid_runs, variant.runs));
    }
}

/// Tables, those under one heading folded away together.
fn sections<'a>(out: &mut String, sections: impl Iterator<Item = &'a Section>) {
    for group in sections.collect::<Vec<_>>().chunk_by(|one, next| one.fold == next.fold) {
        let fold = group.first().and_then(|first| first.fold.as_deref());
        if let Some(fold) = fold {
            push(out, format_args!("\n<details><summary>{}</summary>\n", text(fold)));
        }
        group.iter().for_each(|it| section(out, if fold.is_some() { "####" } else { "###" }, it));
        if fold.is_some() {
            out.push_str("\n</details>\n");
        }
    }
}

fn section(out: &mut String, heading: &str, section: &Section) {
    match view::title(section) {
        title if title.is_empty() => {}
        title => push(out, format_args!("\n{heading} {}\n", text(&title))),
    }
    section.notes.iter().for_each(|note| push(out, format_args!("\n{}\n", text(note))));
    out.push('\n');
    let mut row = |cells: Vec<String>| push(out, format_args!("| {} |\n", cells.join(" | ")));
    row(section.columns.iter().map(|column| text(&column.head())).collect());
    row(section.columns.iter().map(|it| if it.align == Align::Right { "--:" } else { ":--" }.to_owned()).collect());
    section.rows.iter().for_each(|cells| row(cells.iter().map(cell).collect()));
    if let Some(drawing) = &section.drawing {
        push(out, format_args!("\nDrawn in {}\n", text(drawing)));
    }
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Verdict(verdict) => emphasized(*verdict),
        other => text(&other.to_string()),
    }
}

fn emphasized(verdict: Judgement) -> String {
    let bold = if verdict.is_difference() { "**" } else { "" };
    format!("{bold}{}{bold}", verdict.words())
}

fn notices(out: &mut String, findings: &Findings) {
    if findings.notices.is_empty() {
        return;
    }
    out.push_str("\n### Caveats\n\n");
    for notice in &findings.notices {
        push(out, format_args!("- **{}**: {}\n", notice.severity.name(), text(&notice.text)));
    }
}

/// Folded.
fn all_metrics(out: &mut String, findings: &Findings) {
    out.push_str("\n<details><summary>All metrics</summary>\n");
    for variant in &findings.variants {
        push(out, format_args!("\n#### {}\n\n", text(&view::heading(variant))));
        table(out, variant, &variant.metrics.iter().collect::<Vec<_>>());
        for finding in &variant.metrics {
            for notice in &finding.notices {
                push(out, format_args!("\n{}: {}\n", text(&view::whose(finding)), text(&notice.text)));
            }
        }
    }
    out.push_str("\n</details>\n");
}

/// Writing into a string cannot fail.
fn push(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

/// Escapes what Markdown or HTML would take for its own, and leaves intervals such as `[1, 2]` and names such as `a_b`
/// alone, which are text in both. Control characters, line breaks too, become spaces.
fn text(text: &str) -> String {
    let clean = view::clean(text);
    let mut out = String::with_capacity(clean.len());
    let mut previous = ' ';
    let mut characters = clean.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied().unwrap_or(' ');
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // `@someone` would call people.
            '@' => out.push_str("&#64;"),
            '|' | '*' | '`' | '\\' | '~' | '#' => out.extend(['\\', character]),
            ']' if matches!(next, '(' | '[' | ':') => out.extend(['\\', character]),
            '_' if !(previous.is_alphanumeric() && next.is_alphanumeric()) => out.extend(['\\', character]),
            other => out.push(other),
        }
        previous = character;
    }
    out
}
