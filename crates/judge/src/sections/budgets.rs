//! The user's limits, and how they came out.

use crate::findings::{Align, BudgetLine, Cell, Column, Findings, Place, Section, Topic};

/// A terminal has them as sentences.
pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    let columns = vec![
        Column::left("outcome"),
        Column::left("variant"),
        Column::left("metric"),
        Column::right("limit"),
        Column { align: Align::Wrapped, ..Column::left("") },
    ];
    let row = |line: &BudgetLine| {
        let words = [&line.variant, &line.metric, &line.limit, &line.words].map(|it| it.clone().into());
        [Cell::Outcome(line.outcome)].into_iter().chain(words).collect()
    };
    let rows = findings.budgets.iter().map(row).collect();
    vec![Section { place: Place::Detail, ..Section::new(Topic::Budgets, "Budgets".to_owned(), columns, rows) }]
}
