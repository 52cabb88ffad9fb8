//! What the study's own programs said of their work, as a table: whether everybody did the same.

use unladen_judge::findings::{Findings, ReportedNumberFindings, VariantFindings};
use unladen_judge::units;

use super::view;

/// A table in the form of a ladder's, if anything was said: baseline and variants as lines, numbers as columns.
pub(super) fn table(findings: &Findings) -> Option<view::LadderTable> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    let all = || findings.variants.iter().flat_map(|variant| &variant.reported_numbers);
    for name in all().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let number = |number: Option<f64>| number.map_or_else(|| view::NONE.to_owned(), |it| units::chosen("", it));
    // Of a matrix the baselines may differ; then the cells say so.
    let of_baseline = |wanted: &(&str, &str)| all().find(|it| name(it) == *wanted).and_then(|it| it.baseline);
    let cell = |variant: &VariantFindings, wanted: &(&str, &str)| {
        let Some(it) = variant.reported_numbers.iter().find(|it| name(it) == *wanted) else {
            return view::NONE.to_owned();
        };
        match it.baseline {
            Some(baseline) if it.differs => format!("{} (not {})", number(it.value), number(Some(baseline))),
            _ => number(it.value),
        }
    };
    let baseline = ("baseline".to_owned(), names.iter().map(|it| number(of_baseline(it))).collect());
    let line = |variant: &VariantFindings| {
        (view::clean(&variant.label), names.iter().map(|it| cell(variant, it)).collect::<Vec<_>>())
    };
    (!names.is_empty()).then(|| view::LadderTable {
        title: "Work done, as the study's own programs say (medians)".to_owned(),
        columns: names.iter().map(|(service, name)| view::clean(&format!("{service} · {name}"))).collect(),
        lines: [baseline].into_iter().chain(findings.variants.iter().map(line)).collect(),
    })
}

fn name(number: &ReportedNumberFindings) -> (&str, &str) {
    (&number.service, &number.name)
}
