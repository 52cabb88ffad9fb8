//! How long answers took by request and kind, and whole iterations: a table for each, a row per variant.

use super::cells::{column, distinct, noted, with_baseline};
use crate::findings::{
    AnswerFindings, AnswerNumbers, Cell, Column, Findings, Number, Place, Range, Section, TimesFrom, Topic,
};

/// One number of a sort of answers.
type Of = fn(&AnswerNumbers) -> Option<Range>;
/// Request, kind, and where times count from.
type Sort<'a> = (&'a Option<String>, &'a Option<String>, TimesFrom);

const NOTE: &str = "As clients saw them, medians over the runs; a quantile beyond which a run has fewer than ten answers is left \
                    out. The lowest and the highest run are in findings.json.";

pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    let all = || findings.variants.iter().flat_map(|variant| &variant.answers);
    let in_sequence = all().any(|it| it.from == TimesFrom::Iteration);
    // A terminal has room for kinds (of a sequence from its first request on) and whole iterations.
    let is_short = |it: &AnswerFindings| if in_sequence { it.from == TimesFrom::Iteration } else { it.kind.is_some() };
    let sorts = distinct(all().map(sort)).into_iter();
    let sections = sorts
        .filter_map(|wanted| {
            let first = all().find(|it| sort(it) == wanted)?;
            let place = if is_short(first) { Place::Table } else { Place::Detail };
            Some(Section { place, ..section(findings, first) })
        })
        .collect();
    noted(sections, NOTE)
}

fn sort(it: &AnswerFindings) -> Sort<'_> {
    (&it.request, &it.kind, it.from)
}

fn section(findings: &Findings, first: &AnswerFindings) -> Section {
    let of_variants: Vec<Option<&AnswerFindings>> =
        findings.variants.iter().map(|it| it.answers.iter().find(|it| sort(it) == sort(first))).collect();
    // Of a matrix the baselines may differ; findings.json has each.
    let bare = of_variants.iter().find_map(|it| it.as_ref()?.baseline);
    let all: Vec<Option<AnswerNumbers>> =
        [bare].into_iter().chain(of_variants.iter().map(|it| it.and_then(|it| it.value))).collect();
    let ranges = |of: Of| all.iter().map(move |it| it.as_ref().and_then(of));
    let counts = |of: Of| ranges(of).map(|it| it.map(|it| Number::count(it.value.round() as u64)).into());
    let counted = |title: &str, of: Of| (Column::right(title), counts(of).collect::<Vec<Cell>>());
    let misses: [(&str, Of); 2] = [("failed", |it| it.failed), ("cut off", |it| it.unfinished)];
    let misses = misses.into_iter().filter(|(_, of)| ranges(*of).flatten().any(|it| it.high > 0.0));
    let times: [(&str, Of); 4] =
        [("p50", |it| it.p50_us), ("p90", |it| it.p90_us), ("p95", |it| it.p95_us), ("p99", |it| it.p99_us)];
    let times = times.map(|(title, of)| column(title, "us", &ranges(of).map(|it| Some(it?.value)).collect::<Vec<_>>()));
    let columns = [counted("per run", |it| Some(it.answers))];
    let columns = columns.into_iter().chain(misses.map(|(title, of)| counted(title, of))).chain(times).collect();
    Section::of_columns(Topic::Answers, title(first), "variant", with_baseline(findings), columns)
}

fn title(first: &AnswerFindings) -> String {
    let name = first.name();
    match (&first.request, first.from) {
        (None, _) => "Whole iterations, from the first request due to the last answer (medians)".to_owned(),
        (_, TimesFrom::Iteration) => format!("Iterations up to {name}, from their first request due (medians)"),
        (_, TimesFrom::Request) => format!("Answers to {name} (medians)"),
    }
}
