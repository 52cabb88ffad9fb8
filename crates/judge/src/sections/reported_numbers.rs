//! What the study's own programs said of their work: whether everybody did the same.

use super::cells::{distinct, with_baseline};
use crate::findings::{
    Cell, Column, Findings, MISSING, Number, ReportedNumberFindings, Section, Topic, VariantFindings,
};
use crate::units;

pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    let all = || findings.variants.iter().flat_map(|variant| &variant.reported_numbers);
    let number = |number: f64| Number::of(units::as_chosen("", number), number);
    let column = |wanted: (&str, &str)| {
        let baseline = all().find(|it| name(it) == wanted).and_then(|it| it.baseline);
        let cell = |variant: &VariantFindings| {
            let Some(it) = variant.reported_numbers.iter().find(|it| name(it) == wanted) else { return Cell::Missing };
            // Of a matrix the baselines may differ; then the cells say so.
            match (it.value, it.baseline.filter(|_| it.differs)) {
                (value, None) => value.map(number).into(),
                (Some(value), Some(bare)) => Number { note: format!("(not {})", number(bare)), ..number(value) }.into(),
                (None, Some(bare)) => format!("{MISSING} (not {})", number(bare)).into(),
            }
        };
        let cells = [Cell::from(baseline.map(number))].into_iter().chain(findings.variants.iter().map(cell));
        (Column::right(format!("{} · {}", wanted.0, wanted.1)), cells.collect())
    };
    let columns = distinct(all().map(name)).into_iter().map(column).collect();
    let title = "Work done, as reported by the study's programs (medians)".to_owned();
    vec![Section::of_columns(Topic::Variants, title, "variant", with_baseline(findings), columns)]
}

fn name(number: &ReportedNumberFindings) -> (&str, &str) {
    (&number.service, &number.name)
}
