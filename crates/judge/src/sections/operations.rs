//! How long operations take, from their spans.

use super::cells::label;
use crate::findings::{Align, Column, Findings, Number, OperationFindings, Place, Range, Section, Topic};
use crate::units::Scale;

pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    let duration = |range: Range| {
        let scale = Scale::of("us", range.value, None);
        Number { signed: false, ..Number::estimate_with_unit(scale, range) }
    };
    let row = |it: &OperationFindings| {
        vec![
            label(findings, &it.variant).to_owned().into(),
            format!("{} · {}", it.service, it.operation).into(),
            Number::count(it.spans).into(),
            duration(it.p50_us).into(),
            duration(it.p90_us).into(),
            it.p99_us.map(duration).into(),
        ]
    };
    let mut columns = Vec::from(["variant", "operation", "spans", "p50", "p90", "p99"].map(Column::left));
    columns[2].align = Align::Right;
    let rows = findings.operations.iter().map(row).collect();
    let title = "Durations of operations, from their spans".to_owned();
    let note = "In brackets: the lowest and the highest run. The baseline sends no spans, so it is not here.";
    let (place, fold, notes) = (Place::Detail, Some(title.clone()), vec![note.to_owned()]);
    vec![Section { place, fold, notes, ..Section::new(Topic::Operations, title, columns, rows) }]
}
