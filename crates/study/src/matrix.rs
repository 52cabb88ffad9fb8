//! A matrix: the same study at several values of some of its keys, so that the cost can be drawn over a dose.
//!
//! Every combination of values (a *cell*) is the study with these keys set, as `--set` would. Variants that come out the same in
//! several cells are run once: a baseline that no value touches serves them all, and one that a value touches (the rate, a client
//! library) has a version for each. A variant is held against the baseline of its own cell.

use indexmap::IndexMap;
use unladen_journal::record::VariantKind;

use super::error::StudyError;
use super::plan::PlannedVariant;
use super::read::parse;
use super::set::Set;
use super::spec::Study;
use super::write::resolved_yaml;

/// Values by key, as `--set` takes them: a variable of the study, or the path of a key.
pub type Matrix = IndexMap<String, Vec<String>>;

/// Some keys with one value each.
pub type Cell = IndexMap<String, String>;

/// Most variants that a matrix may make: a round of more would take hours.
pub const MAX_VARIANTS: usize = 64;

/// Every combination of the values, the last key turning fastest.
#[must_use]
pub fn cells(matrix: &Matrix) -> Vec<Cell> {
    let mut cells = vec![Cell::new()];
    for (key, values) in matrix {
        let with = |cell: &Cell, value: &String| {
            let mut cell = cell.clone();
            cell.insert(key.clone(), value.clone());
            cell
        };
        cells = cells.iter().flat_map(|cell| values.iter().map(move |value| with(cell, value))).collect();
    }
    cells
}

/// The study in one cell.
pub(super) fn study_in(study: &Study, cell: &Cell) -> Result<Study, StudyError> {
    let bare = Study { matrix: Matrix::new(), profiles: IndexMap::new(), ..study.clone() };
    let sets: Vec<Set> = cell.iter().map(|(key, value)| Set::new(key, value)).collect();
    let name = cell.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ");
    parse(&resolved_yaml(&bare), &format!("the study with {name}"), &sets)
}

/// From the variants of every cell, which are the same in the same order, those to run.
pub(super) fn merged(cells: Vec<(Cell, Vec<PlannedVariant>)>) -> Vec<PlannedVariant> {
    let count = cells.first().map_or(0, |(_, variants)| variants.len());
    let baseline_keys = cells.first().map_or_else(Vec::new, |_| keys(&cells, 0));
    let mut merged: Vec<PlannedVariant> = Vec::new();
    for index in 0..count {
        let mut own = keys(&cells, index);
        // Where the baseline has a version for each value, so has what is held against it.
        own.extend(baseline_keys.iter().filter(|key| !own.contains(key)).cloned().collect::<Vec<_>>());
        for (cell, variants) in &cells {
            let Some(variant) = variants.get(index) else { continue };
            let values: Cell =
                cell.iter().filter(|(key, _)| own.contains(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
            // One placebo is enough to know the noise.
            let is_there = |it: &PlannedVariant| {
                it.key == variant.key
                    && it.kind == variant.kind
                    && (it.cell == values || it.kind == VariantKind::Placebo)
            };
            if merged.iter().any(is_there) {
                continue;
            }
            let of_baseline: Cell = values
                .iter()
                .filter(|(key, _)| baseline_keys.contains(key))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            merged.push(PlannedVariant {
                name: if variant.kind == VariantKind::Placebo {
                    variant.name.clone()
                } else {
                    named(&variant.key, &values)
                },
                label: labelled(&variant.label, &values),
                against: named(super::BASELINE, &of_baseline),
                cell: values,
                ..variant.clone()
            });
        }
    }
    merged
}

/// The keys that change the variant at this position.
fn keys(cells: &[(Cell, Vec<PlannedVariant>)], index: usize) -> Vec<String> {
    let all: Vec<String> = cells.first().map_or_else(Vec::new, |(cell, _)| cell.keys().cloned().collect());
    let same = |a: &PlannedVariant, b: &PlannedVariant| {
        let bare =
            |variant: &PlannedVariant| PlannedVariant { cell: Cell::new(), against: String::new(), ..variant.clone() };
        bare(a) == bare(b)
    };
    let matters = |key: &String| {
        let others = |cell: &Cell| cell.iter().filter(|(k, _)| *k != key).map(|(_, v)| v.clone()).collect::<Vec<_>>();
        cells.iter().enumerate().any(|(at, (cell, variants))| {
            cells[at + 1..].iter().any(|(other, their)| {
                others(cell) == others(other)
                    && matches!((variants.get(index), their.get(index)), (Some(a), Some(b)) if !same(a, b))
            })
        })
    };
    all.into_iter().filter(|key| matters(key)).collect()
}

/// `full@spans=5,rate=100`: also the end of the name of a run's folder, so without characters that paths don't like.
fn named(key: &str, cell: &Cell) -> String {
    if cell.is_empty() {
        return key.to_owned();
    }
    let clean = |text: &str| -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-%+".contains(c);
        text.chars().map(|c| if fits(c) { c } else { '_' }).take(40).collect()
    };
    let values: Vec<String> = cell.iter().map(|(key, value)| format!("{}={}", clean(key), clean(value))).collect();
    format!("{key}@{}", values.join(","))
}

/// Key in the study of the variant with this name: `full` of `full@spans=5`.
#[must_use]
pub fn variant_of(name: &str) -> &str {
    name.split_once('@').map_or(name, |(key, _)| key)
}

/// `OpenTelemetry, spans 5`.
#[must_use]
pub fn labelled(label: &str, cell: &Cell) -> String {
    cell.iter().fold(label.to_owned(), |label, (key, value)| {
        let key = key.rsplit('.').next().unwrap_or(key);
        format!("{label}, {key} {value}")
    })
}
