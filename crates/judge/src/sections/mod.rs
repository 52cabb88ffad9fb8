//! Findings in, tables out: every table of a report for people but those of verdicts, which are `metrics` of the variants.
//!
//! To add one, write a function that makes a [`Section`] of findings, and name it in [`of`]. Every format prints it.

use super::findings::{Findings, Section};

mod answers;
mod budgets;
mod cells;
mod doses;
mod idle_cpu;
mod ladders;
mod load_parts;
mod machines;
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
        machines::sections,
        load_parts::sections,
        answers::sections,
        sampled::sections,
        profiles::sections,
        operations::sections,
        rounds::sections,
    ];
    let has_content = |it: &Section| it.columns.len() > 1 && !it.rows.is_empty();
    all.into_iter().flat_map(|sections| sections(findings)).filter(has_content).collect()
}
