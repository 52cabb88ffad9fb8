//! A matrix: the same study at several values of some of its keys, so that the cost can be drawn over a dose.
//!
//! Every combination of values (a *cell*) is the study with these keys set, as `--set` would. Arms that come out the same in
//! several cells are run once: a baseline that no value touches serves them all, and one that a value touches (the rate, a client
//! library) has a version for each. A variant is held against the baseline of its own cell.

use indexmap::IndexMap;
use unladen_journal::record::ArmKind;

use super::error::StudyError;
use super::plan::Arm;
use super::read::parse;
use super::set::Set;
use super::spec::Study;
use super::write::resolved_yaml;

/// Values by key, as `--set` takes them: a variable of the study, or the path of a key.
pub type Matrix = IndexMap<String, Vec<String>>;

/// Some keys with one value each.
pub type Cell = IndexMap<String, String>;

/// Most arms that a matrix may make: a round of more would take hours.
pub const MOST_ARMS: usize = 64;

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

/// From the arms of every cell, which all have the same variants in the same order, the arms to run.
pub(super) fn merged(cells: Vec<(Cell, Vec<Arm>)>) -> Vec<Arm> {
    let variants = cells.first().map_or(0, |(_, arms)| arms.len());
    let baseline_keys = cells.first().map_or_else(Vec::new, |_| keys(&cells, 0));
    let mut merged: Vec<Arm> = Vec::new();
    for index in 0..variants {
        let mut own = keys(&cells, index);
        // Where the baseline has a version for each value, so has what is held against it.
        own.extend(baseline_keys.iter().filter(|key| !own.contains(key)).cloned().collect::<Vec<_>>());
        for (cell, arms) in &cells {
            let Some(arm) = arms.get(index) else { continue };
            let values: Cell =
                cell.iter().filter(|(key, _)| own.contains(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
            // One placebo is enough to know the noise.
            let is_there = |it: &Arm| {
                it.key == arm.key && it.kind == arm.kind && (it.cell == values || it.kind == ArmKind::Placebo)
            };
            if merged.iter().any(is_there) {
                continue;
            }
            let of_baseline: Cell = values
                .iter()
                .filter(|(key, _)| baseline_keys.contains(key))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            merged.push(Arm {
                name: if arm.kind == ArmKind::Placebo { arm.name.clone() } else { named(&arm.key, &values) },
                label: labelled(&arm.label, &values),
                against: named(super::BASELINE, &of_baseline),
                cell: values,
                ..arm.clone()
            });
        }
    }
    merged
}

/// The keys that change the arm at this position.
fn keys(cells: &[(Cell, Vec<Arm>)], index: usize) -> Vec<String> {
    let all: Vec<String> = cells.first().map_or_else(Vec::new, |(cell, _)| cell.keys().cloned().collect());
    let same = |a: &Arm, b: &Arm| {
        let bare = |arm: &Arm| Arm { cell: Cell::new(), against: String::new(), ..arm.clone() };
        bare(a) == bare(b)
    };
    let matters = |key: &String| {
        let others = |cell: &Cell| cell.iter().filter(|(k, _)| *k != key).map(|(_, v)| v.clone()).collect::<Vec<_>>();
        cells.iter().enumerate().any(|(at, (cell, arms))| {
            cells[at + 1..].iter().any(|(other, their)| {
                others(cell) == others(other)
                    && matches!((arms.get(index), their.get(index)), (Some(a), Some(b)) if !same(a, b))
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

/// The key of the variant that an arm is of: `full` of `full@spans=5`.
#[must_use]
pub fn variant_of(arm: &str) -> &str {
    arm.split_once('@').map_or(arm, |(key, _)| key)
}

/// `OpenTelemetry, spans 5`.
#[must_use]
pub fn labelled(label: &str, cell: &Cell) -> String {
    cell.iter().fold(label.to_owned(), |label, (key, value)| {
        let key = key.rsplit('.').next().unwrap_or(key);
        format!("{label}, {key} {value}")
    })
}
