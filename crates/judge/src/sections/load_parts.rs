//! The processes that sent a load together.

use super::cells::column;
use crate::findings::{Cell, Column, Findings, LoadPartFindings, Number, Section, Topic};

const NOTE: &str = "Each part sent its own requests of the load; together they are exactly the load of one process. Their clocks were read \
                    before every super-block, and all began a block at the same instant; a super-block in which one of them began more than \
                    1 ms late is discarded.";

pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    let parts = &findings.instrument.load_parts;
    let of = |title, value: fn(&LoadPartFindings) -> f64| {
        column(title, "us", &parts.iter().map(|part| Some(value(part))).collect::<Vec<_>>())
    };
    let (bound, bounds) = of("clock known to ±", |part| part.clock_bound_us);
    let (late, lates) = of("began late by at most", |part| part.late_us);
    let row = |((part, bound), late): ((&LoadPartFindings, Cell), Cell)| {
        vec![
            part.part.to_string().into(),
            part.machine.clone().into(),
            Number::count(part.requests).into(),
            bound,
            late,
        ]
    };
    let rows = parts.iter().zip(bounds).zip(lates).map(row).collect();
    let columns = vec![Column::right("part"), Column::left("machine"), Column::right("requests"), bound, late];
    let section = Section::new(Topic::Variants, "Load from other machines".to_owned(), columns, rows);
    vec![Section { notes: vec![NOTE.to_owned()], ..section }]
}
