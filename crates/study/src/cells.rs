//! The cells of a matrix, each a study of its own: what they run, and what is wrong with them.

use indexmap::IndexMap;
use unladen_journal::record::VariantKind;

use super::check::check;
use super::error::StudyError;
use super::key::KeyPath;
use super::matrix::{Cell, Matrix, cells, labelled};
use super::planned::{PlannedVariant, Process, once, variants};
use super::problem::{Problem, ProblemKind};
use super::set::{Set, apply};
use super::spec::{BASELINE, Study};
use super::write::resolved_yaml;
use super::{typed, yaml};

/// What is wrong with the cells of a study that is in order itself: each must be a study, and all must share what lives through it.
pub(super) fn problem_of_cells(study: &Study) -> Option<Problem> {
    let refused = |path: &[&str], kind| Some(Problem { path: KeyPath::of(path), place: None, kind });
    let mut first: Option<(Cell, Vec<Process>)> = None;
    for cell in cells(&study.matrix).into_iter().filter(|cell| !cell.is_empty()) {
        let shared = match study_in(study, &cell).and_then(|study| shared(&study)) {
            Ok(shared) => shared,
            Err(error) => return refused(&["matrix"], ProblemKind::BadCell { message: error.to_string() }),
        };
        let Some((of_first, known)) = &first else {
            first = Some((cell, shared));
            continue;
        };
        let other = known.iter().find(|it| !shared.contains(it)).or(shared.iter().find(|it| !known.contains(it)));
        if let Some(other) = other {
            let service = other.service.clone();
            // The last key turns fastest, so the first cell that differs does so in few of them.
            let key = cell.iter().find(|(key, value)| of_first.get(*key) != Some(value)).map(|(key, _)| key.clone());
            let key = key.unwrap_or_default();
            return refused(&["matrix", &key], ProblemKind::SharedByCells { service, key: key.clone() });
        }
    }
    None
}

/// The variants of a study: of all cells, if it has a matrix.
pub(super) fn variants_of_all_cells(study: &Study) -> Result<Vec<PlannedVariant>, StudyError> {
    if study.matrix.is_empty() {
        return variants_of(study);
    }
    let cells = cells(&study.matrix).into_iter().map(|cell| {
        let variants = variants_of(&study_in(study, &cell)?)?;
        Ok((cell, variants))
    });
    Ok(merged(cells.collect::<Result<_, StudyError>>()?))
}

/// The variants of a study without a matrix.
fn variants_of(study: &Study) -> Result<Vec<PlannedVariant>, StudyError> {
    variants(study).map_err(|problem| StudyError::of_no_file(vec![*problem]))
}

/// What lives through a study without a matrix.
fn shared(study: &Study) -> Result<Vec<Process>, StudyError> {
    Ok(once(variants_of(study)?.iter().flat_map(PlannedVariant::shared)).into_iter().cloned().collect())
}

/// The study in one cell.
fn study_in(study: &Study, cell: &Cell) -> Result<Study, StudyError> {
    let bare = Study { matrix: Matrix::new(), profiles: IndexMap::new(), ..study.clone() };
    let sets: Vec<Set> = cell.iter().map(|(key, value)| Set::new(key, value)).collect();
    let name = cell.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ");
    let name = format!("the study with {name}");
    let mut tree =
        yaml::parse(&resolved_yaml(&bare)).map_err(|problem| StudyError::refused(&name, None, vec![*problem]))?;
    let mut problems = apply(&mut tree, &sets);
    match typed::study(&tree) {
        Ok(study) if problems.is_empty() => match check(&study) {
            found if found.is_empty() => return Ok(study),
            found => problems = found,
        },
        result => problems.extend(result.err().unwrap_or_default()),
    }
    Err(StudyError::refused(&name, Some(&tree), problems))
}

/// From the variants of every cell, which are the same in the same order, those to run.
fn merged(cells: Vec<(Cell, Vec<PlannedVariant>)>) -> Vec<PlannedVariant> {
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
                against: named(BASELINE, &of_baseline),
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
