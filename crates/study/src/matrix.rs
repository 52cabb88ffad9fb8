//! A matrix: the same study at several values of some of its keys, so that the cost can be drawn over a dose.
//!
//! Every combination of values (a *cell*) is the study with these keys set, as `--set` would. Variants that come out the same in
//! several cells are run once: a baseline that no value touches serves them all, and one that a value touches (the rate, a client
//! library) has a version for each. A variant is held against the baseline of its own cell.

use indexmap::IndexMap;

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
