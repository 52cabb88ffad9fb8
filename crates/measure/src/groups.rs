//! Which variants are alive at the same time: all of them, or groups that have rounds of their own. Pure.
//!
//! A difference is that of two runs of one round, so every group has what its variants are held against: the bare service, the placebo, and
//! of a matrix the other baselines. Where there are several groups, a round of the study is as many rounds of the journal, one for each group.

use unladen_journal::record::VariantKind;
use unladen_study::plan::PlannedVariant;

/// Most variants that are alive at the same time, whatever the memory.
pub const MAX_ALIVE: usize = 8;

/// Indices of the variants of every group, in the order of the study: as few groups as can be, of at most `most` variants, about equal in size. Where
/// `most` is too small for a variant with what it is held against, a group is larger.
#[must_use]
pub fn groups(planned: &[PlannedVariant], most: usize) -> Vec<Vec<usize>> {
    if planned.len() <= most {
        return vec![(0..planned.len()).collect()];
    }
    let of = |at: &usize, kind: VariantKind| planned[*at].kind == kind;
    let variants: Vec<usize> = (0..planned.len()).filter(|at| of(at, VariantKind::Variant)).collect();
    let with = |variants: &[usize]| -> Vec<usize> {
        let is_needed = |at: &usize| match planned[*at].kind {
            VariantKind::Variant => variants.contains(at),
            VariantKind::Placebo => true,
            // The first is the one of the placebo.
            VariantKind::Baseline => {
                *at == first_baseline(planned) || variants.iter().any(|it| planned[*it].against == planned[*at].name)
            }
        };
        (0..planned.len()).filter(is_needed).collect()
    };
    let fits = |size: usize| variants.chunks(size).all(|variants| with(variants).len() <= most);
    let largest = (1..=variants.len()).rev().find(|size| fits(*size)).unwrap_or(1);
    // As equal as can be: 7 variants in groups of at most 6 are 4 and 3.
    let size = variants.len().div_ceil(variants.len().div_ceil(largest));
    variants.chunks(size).map(with).collect()
}

/// How many are alive at least: a variant, the bare service and the placebo.
pub(super) fn smallest(planned: &[PlannedVariant]) -> usize {
    groups(planned, 0).iter().map(Vec::len).max().unwrap_or(0)
}

/// By how much services grow under load beyond what they take at their start: heaps fill.
const GROWTH: f64 = 1.5;

/// How many variants the memory suffices for, if it is not enough for all that are wanted: going by `started` of them, which took the
/// available bytes down from `before` to `now`.
pub(super) fn fit(before: u64, now: u64, started: usize, wanted: usize) -> Option<usize> {
    let fit = fitting(before, before.saturating_sub(now) as f64 / started as f64);
    (fit < wanted).then_some(fit)
}

/// How many variants fit into the available bytes if each takes so many at its start.
#[must_use]
pub fn fitting(available: u64, each: f64) -> usize {
    if each > 0.0 { (available as f64 / (each * GROWTH)) as usize } else { usize::MAX }
}

/// Bytes that the services of each of so many variants may take at their start.
#[must_use]
pub fn room(available: u64, variants: usize) -> f64 {
    available as f64 / variants as f64 / GROWTH
}

fn first_baseline(planned: &[PlannedVariant]) -> usize {
    planned.iter().position(|variant| variant.kind == VariantKind::Baseline).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(names: &[&str]) -> Vec<PlannedVariant> {
        let variant = |name: &&str| {
            let (name, against) = name.split_once('/').unwrap_or((name, ""));
            let mut variant = PlannedVariant::empty(name);
            variant.kind = match name.split('@').next() {
                Some("baseline") => VariantKind::Baseline,
                Some("placebo") => VariantKind::Placebo,
                _ => VariantKind::Variant,
            };
            against.clone_into(&mut variant.against);
            variant
        };
        names.iter().map(variant).collect()
    }

    #[test]
    fn every_group_has_the_bare_service_and_the_placebo() {
        let planned = planned(&["baseline", "placebo", "a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(groups(&planned, 9), [(0..9).collect::<Vec<_>>()]);
        assert_eq!(groups(&planned, 8), [vec![0, 1, 2, 3, 4, 5], vec![0, 1, 6, 7, 8]]);
        assert_eq!(groups(&planned, 4), [vec![0, 1, 2, 3], vec![0, 1, 4, 5], vec![0, 1, 6, 7], vec![0, 1, 8]]);
        assert_eq!(groups(&planned, 0).len(), 7, "one each is the least");
        assert_eq!(smallest(&planned), 3);
    }

    #[test]
    fn memory_that_does_not_suffice_for_all_suffices_for_fewer() {
        let gib = |gib: u64| gib << 30;
        assert_eq!(fit(gib(20), gib(18), 1, 6), None, "3 GiB each of 20");
        assert_eq!(fit(gib(20), gib(18), 1, 7), Some(6));
        assert_eq!(fit(gib(20), gib(14), 3, 7), Some(6), "the same by three of them");
        assert_eq!(fit(gib(20), gib(21), 1, 8), None, "somebody else has given some back");
        assert_eq!(fit(gib(20), 0, 1, 3), Some(0));
    }

    #[test]
    fn of_a_matrix_a_variant_goes_with_its_own_baseline() {
        let planned =
            planned(&["baseline@1", "placebo", "a@1/baseline@1", "baseline@2", "a@2/baseline@2", "b@2/baseline@2"]);
        assert_eq!(groups(&planned, 4), [vec![0, 1, 2], vec![0, 1, 3, 4], vec![0, 1, 3, 5]]);
        assert_eq!(groups(&planned, 5), [vec![0, 1, 2, 3, 4], vec![0, 1, 3, 5]]);
        assert_eq!(smallest(&planned), 4);
    }
}
