//! Which variants are alive at the same time: all of them, or groups that have rounds of their own. Pure.
//!
//! A difference is that of two runs of one round, so every group has what its variants are held against: the bare service, the placebo, and
//! of a matrix the other baselines. Where there are several groups, a round of the study is as many rounds of the journal, one for each group.

use unladen_journal::record::VariantKind;
use unladen_study::plan::{Plan, PlannedVariant};
use unladen_study::spec::Ladder;

/// Most variants that are alive at the same time, whatever the memory.
pub const MAX_ALIVE: usize = 8;

/// Indices of the variants of every group, in the order of the study: as few groups as can be, of at most `most` variants, about equal in size. Where
/// `most` is too small for a variant with what it is held against, a group is larger. The steps of a ladder, which are held against each other, are
/// in one group if they fit.
#[must_use]
pub fn groups(plan: &Plan, most: usize) -> Vec<Vec<usize>> {
    grouped(&plan.variants, &plan.study.ladder, most)
}

fn grouped(planned: &[PlannedVariant], ladder: &Ladder, most: usize) -> Vec<Vec<usize>> {
    if planned.len() <= most {
        return vec![(0..planned.len()).collect()];
    }
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
    let units = units(planned, ladder);
    let packed = |largest: usize| pack(&units, |group| group.len() <= largest && with(group).len() <= most);
    // As equal as can be: 7 variants in groups of at most 6 are 4 and 3.
    let min_groups = packed(planned.len()).len();
    let equal = (1..=planned.len()).map(packed).find(|groups| groups.len() == min_groups).unwrap_or_default();
    equal.iter().map(|group| with(group)).collect()
}

/// The variants, those of one ladder together.
fn units(planned: &[PlannedVariant], ladder: &Ladder) -> Vec<Vec<usize>> {
    let mut units: Vec<Vec<usize>> = Vec::new();
    for at in (0..planned.len()).filter(|at| planned[*at].kind == VariantKind::Variant) {
        let of_ladder = |steps: &[String], at: usize| steps.contains(&planned[at].name);
        let ladders = || ladder.each().map(|(_, steps)| steps);
        let unit = units.iter_mut().find(|unit| {
            ladders().any(|steps| of_ladder(steps, at) && unit.iter().any(|other| of_ladder(steps, *other)))
        });
        match unit {
            Some(unit) => unit.push(at),
            None => units.push(vec![at]),
        }
    }
    units
}

/// Puts units into groups in their order. One that fits into no group is taken apart.
fn pack(units: &[Vec<usize>], fits: impl Fn(&[usize]) -> bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let parts = units.iter().flat_map(|unit| if fits(unit) { vec![&unit[..]] } else { unit.chunks(1).collect() });
    for part in parts {
        let wider = groups.last().map(|group| [group, part].concat()).filter(|wider| fits(wider));
        match (wider, groups.last_mut()) {
            (Some(wider), Some(group)) => *group = wider,
            _ => groups.push(part.to_vec()),
        }
    }
    groups
}

/// How many are alive at least: a variant, the bare service and the placebo.
pub(super) fn smallest(planned: &[PlannedVariant]) -> usize {
    grouped(planned, &Ladder::default(), 0).iter().map(Vec::len).max().unwrap_or(0)
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

    const NONE: Ladder = Ladder::Steps(Vec::new());

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
        assert_eq!(grouped(&planned, &NONE, 9), [(0..9).collect::<Vec<_>>()]);
        assert_eq!(grouped(&planned, &NONE, 8), [vec![0, 1, 2, 3, 4, 5], vec![0, 1, 6, 7, 8]]);
        assert_eq!(grouped(&planned, &NONE, 4), [vec![0, 1, 2, 3], vec![0, 1, 4, 5], vec![0, 1, 6, 7], vec![0, 1, 8]]);
        assert_eq!(grouped(&planned, &NONE, 0).len(), 7, "one each is the least");
        assert_eq!(smallest(&planned), 3);
    }

    #[test]
    fn the_steps_of_a_ladder_are_alive_together() {
        let planned = planned(&["baseline", "placebo", "a", "b", "c", "a1", "b1", "c1"]);
        let ladder = |steps: [&[&str]; 2]| {
            let named = ["x", "y"].into_iter().zip(steps);
            let step = |step: &&str| (*step).to_owned();
            Ladder::Named(named.map(|(name, steps)| (name.to_owned(), steps.iter().map(step).collect())).collect())
        };
        let two = ladder([&["baseline", "a1", "a"], &["baseline", "b1", "b"]]);
        assert_eq!(grouped(&planned, &two, 5), [vec![0, 1, 2, 5], vec![0, 1, 3, 6], vec![0, 1, 4, 7]]);
        assert_eq!(grouped(&planned, &two, 6), [vec![0, 1, 2, 3, 5, 6], vec![0, 1, 4, 7]]);
        // No room for a ladder: its steps are taken apart.
        assert_eq!(grouped(&planned, &two, 3).len(), 6);
        // What two ladders share binds them together.
        let bound = ladder([&["a1", "a"], &["a", "b"]]);
        assert_eq!(grouped(&planned, &bound, 6), [vec![0, 1, 2, 3, 5], vec![0, 1, 4, 6, 7]]);
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
        assert_eq!(grouped(&planned, &NONE, 4), [vec![0, 1, 2], vec![0, 1, 3, 4], vec![0, 1, 3, 5]]);
        assert_eq!(grouped(&planned, &NONE, 5), [vec![0, 1, 2, 3, 4], vec![0, 1, 3, 5]]);
        assert_eq!(smallest(&planned), 4);
    }
}
