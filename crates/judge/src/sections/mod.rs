//! Findings in, tables out: every table of a report for people but those of verdicts, which are `metrics` of the variants.
//!
//! To add one, write a function that makes a [`Section`] of findings, and name it in [`of`]. Every format prints it.

use super::findings::{Cell, Column, Findings, Number, Section};
use super::units::Scale;

mod answers;
mod budgets;
mod doses;
mod idle_cpu;
mod ladders;
mod names;
mod operations;
mod pods;
mod profiles;
mod reported_numbers;
mod rounds;
mod sampled;

/// All tables of these findings, in the order of the report.
#[must_use]
pub fn of(findings: &Findings) -> Vec<Section> {
    let all = [
        budgets::sections,
        names::sections,
        pods::sections,
        ladders::sections,
        doses::sections,
        reported_numbers::sections,
        idle_cpu::sections,
        answers::sections,
        sampled::sections,
        profiles::sections,
        operations::sections,
        rounds::sections,
    ];
    let has_content = |it: &Section| it.columns.len() > 1 && !it.rows.is_empty();
    all.into_iter().flat_map(|sections| sections(findings)).filter(has_content).collect()
}

/// What people call a variant.
fn label<'a>(findings: &'a Findings, variant: &'a str) -> &'a str {
    findings.variants.iter().find(|it| it.name == variant).map_or(variant, |it| &it.label)
}

/// Names of the rows where everybody has one.
fn with_baseline(findings: &Findings) -> Vec<String> {
    ["baseline".to_owned()].into_iter().chain(findings.variants.iter().map(|it| it.label.clone())).collect()
}

/// Tables of one kind: how to read them stands at the first.
fn noted(mut sections: Vec<Section>, note: &str) -> Vec<Section> {
    sections.iter_mut().take(1).for_each(|first| first.notes.push(note.to_owned()));
    sections
}

/// Each once, in their order.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for one in all {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

/// Numbers on one scale, so that they can be compared at a glance.
fn column(title: &str, unit: &str, values: &[Option<f64>]) -> (Column, Vec<Cell>) {
    let scale = Scale::of(unit, values.iter().flatten().fold(0.0, |most, value| f64::max(most, value.abs())), None);
    (Column::on(scale, title), values.iter().map(|it| it.map(|value| Number::of(scale, value)).into()).collect())
}
