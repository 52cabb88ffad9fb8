//! What several tables need: names of rows and columns, and numbers on one scale.

use crate::findings::{Cell, Column, Findings, Number, Section};
use crate::units::Scale;

/// What people call a variant.
pub(super) fn label<'a>(findings: &'a Findings, variant: &'a str) -> &'a str {
    findings.variants.iter().find(|it| it.name == variant).map_or(variant, |it| &it.label)
}

/// Names of the rows where everybody has one.
pub(super) fn with_baseline(findings: &Findings) -> Vec<String> {
    ["baseline".to_owned()].into_iter().chain(findings.variants.iter().map(|it| it.label.clone())).collect()
}

/// Tables of one kind: how to read them stands at the first.
pub(super) fn noted(mut sections: Vec<Section>, note: &str) -> Vec<Section> {
    sections.iter_mut().take(1).for_each(|first| first.notes.push(note.to_owned()));
    sections
}

/// Each once, in their order.
pub(super) fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for one in all {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

/// Numbers on one scale, so that they can be compared at a glance.
pub(super) fn column(title: &str, unit: &str, values: &[Option<f64>]) -> (Column, Vec<Cell>) {
    let scale = Scale::of(unit, values.iter().flatten().fold(0.0, |most, value| f64::max(most, value.abs())), None);
    (Column::on(scale, title), values.iter().map(|it| it.map(|value| Number::of(scale, value)).into()).collect())
}
