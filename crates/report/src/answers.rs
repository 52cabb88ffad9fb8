//! How long answers took by request and kind, and whole iterations, as tables: one for each, a line per variant.

use unladen_judge::findings::{AnswerFindings, AnswerNumbers, Findings, Range, VariantFindings};
use unladen_judge::units::{self, Scale};

use super::view::{self, LadderTable};

/// All tables, in the form of a ladder's.
pub(super) fn tables(findings: &Findings) -> Vec<LadderTable> {
    of(findings, |_| true)
}

/// Those that a terminal has room for: kinds (of a sequence from its first request on) and whole iterations.
pub(super) fn short(findings: &Findings) -> Vec<LadderTable> {
    let all = || findings.variants.iter().flat_map(|variant| &variant.answers);
    let in_sequence = all().any(|it| it.from == "iteration");
    of(findings, |it| if in_sequence { it.from == "iteration" } else { it.kind.is_some() })
}

fn of(findings: &Findings, is_wanted: impl Fn(&AnswerFindings) -> bool) -> Vec<LadderTable> {
    let mut sorts: Vec<&AnswerFindings> = Vec::new();
    for answers in findings.variants.iter().flat_map(|variant| &variant.answers).filter(|it| is_wanted(it)) {
        if !sorts.iter().any(|sort| is_same(sort, answers)) {
            sorts.push(answers);
        }
    }
    sorts.into_iter().map(|sort| table(findings, sort)).collect()
}

/// One number of a sort of answers.
type Of = fn(&AnswerNumbers) -> Option<Range>;

fn is_same(one: &AnswerFindings, other: &AnswerFindings) -> bool {
    (&one.request, &one.kind, &one.from) == (&other.request, &other.kind, &other.from)
}

fn table(findings: &Findings, sort: &AnswerFindings) -> LadderTable {
    let of_variant = |variant: &VariantFindings| variant.answers.iter().find(|it| is_same(it, sort)).cloned();
    // Of a matrix the baselines may differ; findings.json has each.
    let bare = findings.variants.iter().find_map(|variant| of_variant(variant)?.baseline);
    let variants = findings.variants.iter().map(|it| (view::clean(&it.label), of_variant(it).and_then(|it| it.value)));
    let lines: Vec<(String, Option<AnswerNumbers>)> =
        std::iter::once(("baseline".to_owned(), bare)).chain(variants).collect();
    let mut columns = vec!["per run".to_owned()];
    let mut cells: Vec<Vec<String>> =
        lines.iter().map(|(_, numbers)| vec![count(numbers.map(|it| it.answers))]).collect();
    let misses: [(&str, Of); 2] = [("failed", |it| it.failed), ("cut off", |it| it.unfinished)];
    for (name, of) in misses {
        if lines.iter().any(|(_, numbers)| numbers.and_then(|it| of(&it)).is_some_and(|it| it.high > 0.0)) {
            columns.push(name.to_owned());
            let column = lines.iter().map(|(_, numbers)| count(numbers.and_then(|it| of(&it))));
            cells.iter_mut().zip(column).for_each(|(line, cell)| line.push(cell));
        }
    }
    let times: [(&str, Of); 4] =
        [("p50", |it| it.p50_us), ("p90", |it| it.p90_us), ("p95", |it| it.p95_us), ("p99", |it| it.p99_us)];
    for (name, of) in times {
        let values: Vec<Option<f64>> = lines.iter().map(|(_, numbers)| Some(of(numbers.as_ref()?)?.value)).collect();
        // One scale for the column, so that variants can be compared at a glance.
        let scale = Scale::of("us", values.iter().flatten().copied().fold(0.0, f64::max), None);
        columns.push(format!("{name}, {}", scale.unit()));
        let column = values.into_iter().map(|value| value.map_or_else(none, |value| scale.number(value)));
        cells.iter_mut().zip(column).for_each(|(line, cell)| line.push(cell));
    }
    LadderTable { title: title(sort), columns, lines: lines.into_iter().map(|(name, _)| name).zip(cells).collect() }
}

fn title(sort: &AnswerFindings) -> String {
    let name = view::shortened(&view::clean(&sort.name()), 40);
    match (&sort.request, sort.from.as_str()) {
        (None, _) => "Whole iterations, from the first request due to the last answer (medians)".to_owned(),
        (_, "iteration") => format!("Iterations up to {name}, from their first request due (medians)"),
        _ => format!("Answers to {name} (medians)"),
    }
}

fn count(range: Option<Range>) -> String {
    range.map_or_else(none, |range| units::count(range.value.round() as u64))
}

fn none() -> String {
    view::NONE.to_owned()
}
