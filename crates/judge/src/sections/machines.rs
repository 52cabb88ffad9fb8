//! A study of several machines: what each of them says, and what it is.

use indexmap::IndexSet;
use unladen_study::merge::MACHINES;

use super::cells::noted;
use crate::findings::{Cell, Column, Finding, Findings, Number, Range, Section, Topic, VariantFindings};
use crate::machines::{self, METRIC, Machines};
use crate::units::{self, Scale};

const NOTE: &str = "Every round has all variants on one machine, so machines as such cancel in the differences. An interval of one machine takes six \
                    rounds there.";

pub(super) fn sections(findings: &Findings) -> Vec<Section> {
    let machines = machines::machines(findings.runs.iter().map(|run| (run.round, run.machine.as_str())));
    if machines.is_empty() {
        return Vec::new();
    }
    let found: Vec<(&VariantFindings, &Finding)> =
        findings.variants.iter().filter_map(|variant| Some((variant, variant.finding(METRIC)?))).collect();
    let costs = found.first().map(|(_, first)| costs(&found, first, &machines));
    noted(costs.into_iter().chain([what_they_are(findings, &machines)]).collect(), NOTE)
}

fn costs(found: &[(&VariantFindings, &Finding)], first: &Finding, machines: &Machines<'_>) -> Section {
    let scale = Scale::of_values(first);
    let mut rows = Vec::new();
    for (variant, finding) in found {
        for (machine, rounds) in machines::rounds(finding, machines) {
            let typical = |of: fn(&crate::findings::RoundValue) -> f64| {
                let values: Vec<f64> = rounds.iter().map(of).collect();
                Cell::from(unladen_stats::estimate::median(&values).map(|value| Number::of(scale, value)))
            };
            let relative = machines::estimate(&rounds).map(|it| match Range::of(&it) {
                Some(range) => Number::estimate(units::percent(it.value, range.half_width()), range),
                None => Number::difference(units::percent(it.value, None), it.value),
            });
            rows.push(vec![
                variant.label.clone().into(),
                machine.to_owned().into(),
                Number::count(rounds.len() as u64).into(),
                typical(|it| it.baseline),
                typical(|it| it.value),
                relative.into(),
            ]);
        }
    }
    let columns = vec![
        Column::left("variant"),
        Column::left("machine"),
        Column::right("rounds"),
        Column::on(scale, "baseline"),
        Column::on(scale, "variant"),
        Column::right("difference, %"),
    ];
    Section::new(Topic::Variants, format!("{} by machine", first.title), columns, rows)
}

/// The machines, as `host.json` has them.
fn what_they_are(findings: &Findings, machines: &Machines<'_>) -> Section {
    let fact = |machine: &str, key: &str| {
        let value = findings.host.get(MACHINES)?.get(machine)?.get(key)?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let facts = [("cpu", "CPU"), ("cores", "cores"), ("kernel", "kernel"), ("started", "started")];
    let names: IndexSet<&str> = machines.values().copied().collect();
    let row = |machine: &&str| {
        let cells = facts.map(|(key, _)| Cell::from(fact(machine, key)));
        [Cell::from((*machine).to_owned())].into_iter().chain(cells).collect()
    };
    let columns = [Column::left("machine")].into_iter().chain(facts.map(|(_, title)| Column::left(title)));
    Section::new(Topic::Variants, "Machines".to_owned(), columns.collect(), names.iter().map(row).collect())
}
