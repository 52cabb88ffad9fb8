//! For a pull request: GitHub-flavoured Markdown. The sentences and short tables are in sight, everything else folds.
//!
//! Text from the study is escaped, so that a label can neither break a table nor bring in HTML.

use std::fmt::Write;

use unladen_judge::findings::{Conclusion, Finding, Findings, VariantFindings};

use super::answers;
use super::rounds;
use super::sampled;
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
    ladders(&mut out, findings);
    budgets(&mut out, findings);
    profiles(&mut out, findings);
    notices(&mut out, findings);
    folded(&mut out, findings);
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
        let bold = if matches!(row.verdict, "costs" | "saves") { "**" } else { "" };
        let verdict = format!("{bold}{}{bold}", row.verdict);
        let name = text(&row.name);
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
    if let Some(faults) = view::faults(variant) {
        push(out, format_args!("\nBad day: {}.\n", text(&faults)));
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

fn ladders(out: &mut String, findings: &Findings) {
    for ladder in view::after_verdicts(findings).chain(answers::tables(findings)).chain(sampled::tables(findings)) {
        steps(out, "###", &ladder);
    }
}

/// A table in the form of a ladder's, under a heading.
fn steps(out: &mut String, heading: &str, ladder: &view::LadderTable) {
    push(out, format_args!("\n{heading} {}\n\n", text(&ladder.title)));
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let escaped = |cells: &[String]| cells.iter().map(|cell| text(cell)).collect::<Vec<_>>();
    out.push_str(&row([vec![String::new()], escaped(&ladder.columns)].concat()));
    out.push_str(&row([vec![":--".to_owned()], vec!["--:".to_owned(); ladder.columns.len()]].concat()));
    for (name, cells) in &ladder.lines {
        out.push_str(&row([vec![text(name)], escaped(cells)].concat()));
    }
}

fn budgets(out: &mut String, findings: &Findings) {
    if findings.budgets.is_empty() {
        return;
    }
    out.push_str("\n### Budgets\n\n| outcome | variant | metric | limit | |\n|:--|:--|:--|--:|:--|\n");
    for line in &findings.budgets {
        let cells = [line.outcome.name(), &line.variant, &line.metric, &line.limit, &line.words].map(text);
        push(out, format_args!("| {} |\n", cells.join(" | ")));
    }
}

/// Where the CPU goes, if it was sampled.
fn profiles(out: &mut String, findings: &Findings) {
    for profile in &findings.profiles {
        push(out, format_args!("\n<details><summary>{}</summary>\n\n", text(&view::profile_heading(profile))));
        push(out, format_args!("| frame | baseline | variant | difference |\n|:--|--:|--:|--:|\n"));
        for [name, baseline, value, difference] in view::frames(profile) {
            push(out, format_args!("| {} | {baseline} | {value} | {difference} |\n", text(&name)));
        }
        push(out, format_args!("\nFlame graph of the difference: {}\n\n</details>\n", text(&profile.flame_graph)));
    }
}

fn notices(out: &mut String, findings: &Findings) {
    if findings.notices.is_empty() {
        return;
    }
    out.push_str("\n### Before believing\n\n");
    for notice in &findings.notices {
        push(out, format_args!("- **{}**: {}\n", notice.severity.name(), text(&notice.text)));
    }
}

/// All metrics, folded.
fn folded(out: &mut String, findings: &Findings) {
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
    let rounds = rounds::tables(findings);
    if !rounds.is_empty() {
        out.push_str("\n<details><summary>Every round</summary>\n");
        rounds.iter().for_each(|table| steps(out, "####", table));
        out.push_str("\n</details>\n");
    }
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
