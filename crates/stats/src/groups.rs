//! Starts that differ in kind: the rounds of a variant fall into two groups with nothing in between.
//!
//! A compiler that takes one of two plans, a hash seed that is good or bad: then the variant has two costs, the interval over its rounds is
//! wide for a reason that longer windows do not mend, and the middle of it describes no start at all. [`apart`](mod@crate::apart) finds a few
//! rounds that are far away from all others; here both groups are large, and may be near each other.

use crate::{
    arithmetic::{count, mean},
    estimate::median,
};

/// Fewest values that can be called two groups.
pub const MIN_ROUNDS: usize = 6;

/// How wide the gap must be, times the number of values, in standard deviations within the groups.
///
/// Found by simulation (100,000 studies for each of 6 to 24 values), so that less than 2 % of studies without groups are called two
/// groups, whatever the noise: normal, uniform, Laplace, Student's t with 3 degrees of freedom, log-normal, exponential, and normal with one
/// value of ten hit by up to 5 standard deviations. Of normal noise it is less than 1 %. A gap among few values is wide by chance, so
/// it is 8.7 standard deviations for 6 values, 4.3 for 12 and 2.2 for 24.
pub const GAP: f64 = 52.0;

/// The gap is this wide at least, in standard deviations within the groups, however many values there are.
pub const MIN_GAP: f64 = 2.0;

/// Values in two groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// Positions of the lower ones, ascending.
    pub lower: Vec<usize>,
    /// Positions of the upper ones, ascending.
    pub upper: Vec<usize>,
    /// Median of the upper ones less that of the lower ones.
    pub distance: f64,
}

/// Whether `values` (one per round; log-ratios, or logarithms) fall into two groups.
///
/// The values are parted where the gap between two neighbours is widest against the standard deviation within the two groups that it
/// makes (pooled); each group must have two values and a quarter of them at least. `None` for fewer than [`MIN_ROUNDS`] values, if one is not
/// finite, if the gap is not as wide as [`GAP`] and [`MIN_GAP`] want it, or if the groups are no farther apart than `matters`. Values
/// without any scatter in their groups part however near the groups are, if that matters.
#[must_use]
pub fn groups(values: &[f64], matters: f64) -> Option<Groups> {
    if values.len() < MIN_ROUNDS || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let sorted: Vec<f64> = order.iter().map(|&at| values[at]).collect();
    let least = values.len().div_ceil(4).max(2);
    let gap = |at: &usize| gap_in_sd(&sorted, *at);
    let at = (least..=values.len() - least).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let wanted = (GAP / count(values.len())).max(MIN_GAP);
    let distance = median(&sorted[at..])? - median(&sorted[..at])?;
    if gap(&at) < wanted || distance <= matters {
        return None;
    }
    let (mut lower, mut upper) = (order[..at].to_vec(), order[at..].to_vec());
    lower.sort_unstable();
    upper.sort_unstable();
    Some(Groups { lower, upper, distance })
}

/// The gap below position `at`, in standard deviations within the two sides.
fn gap_in_sd(sorted: &[f64], at: usize) -> f64 {
    let (lower, upper) = sorted.split_at(at);
    let squares = |side: &[f64]| {
        let mean = mean(side);
        side.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let gap = upper[0] - lower[at - 1];
    let sd = ((squares(lower) + squares(upper)) / count(sorted.len() - 2)).sqrt();
    if gap > 0.0 { gap / sd } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Normal enough: the sum of twelve uniform numbers.
    fn normal(random: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
    }

    #[test]
    fn two_plans_of_a_compiler_are_two_groups() {
        // µs of CPU per request in twelve rounds.
        let took: [f64; 12] = [41.2, 58.1, 40.7, 57.5, 59.0, 41.9, 58.4, 57.9, 40.9, 41.4, 58.8, 58.2];
        let logarithms: Vec<f64> = took.iter().map(|it| it.ln()).collect();
        let found = groups(&logarithms, 0.03).expect("two groups");
        assert_eq!(found.lower, [0, 2, 5, 8, 9]);
        assert_eq!(found.upper, [1, 3, 4, 6, 7, 10, 11]);
        assert!((found.distance - (58.2_f64 / 41.2).ln()).abs() < 1e-9, "{}", found.distance);
        assert_eq!(groups(&logarithms, 0.4), None, "what does not matter is not told");
    }

    #[test]
    fn one_or_two_wild_rounds_are_no_group() {
        let mut took = vec![1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99, 1.005, 0.995, 1.0, 9.0];
        assert_eq!(groups(&took, 0.0), None);
        took[0] = 9.1;
        assert_eq!(groups(&took, 0.0), None, "two of twelve are less than a quarter");
        took[1] = 9.05;
        assert_eq!(groups(&took, 0.0).expect("three are a group").upper, [0, 1, 11]);
    }

    #[test]
    fn too_few_or_no_measurements_are_no_groups() {
        assert_eq!(groups(&[1.0, 1.0, 1.0, 5.0, 5.0], 0.0), None);
        assert_eq!(groups(&[1.0, 1.0, 1.0, 5.0, 5.0, f64::NAN], 0.0), None);
        assert_eq!(groups(&[7.0; 12], 0.0), None, "all the same");
        assert_eq!(groups(&[1.0, 1.0, 1.0, 5.0, 5.0, 5.0], 0.0).expect("no scatter at all").lower, [0, 1, 2]);
    }

    /// What [`GAP`] promises: less than 2 % of studies without groups, and next to all studies with clear ones.
    #[test]
    fn noise_is_hardly_ever_called_two_groups() {
        type Noise = fn(&mut ChaCha8Rng) -> f64;
        let noises: [(&str, Noise); 5] = [
            ("normal", normal),
            ("uniform", |random| random.random()),
            ("log-normal", |random| (0.5 * normal(random)).exp()),
            ("exponential", |random| -(1.0 - random.random::<f64>()).ln()),
            ("one of ten hit", |random| {
                let hit = if random.random::<f64>() < 0.1 { 5.0 * random.random::<f64>() } else { 0.0 };
                normal(random) + hit
            }),
        ];
        let mut random = ChaCha8Rng::seed_from_u64(20_261_124);
        let studies = 5_000;
        for (name, noise) in noises {
            for rounds in [6, 8, 12, 24] {
                let study = |random: &mut ChaCha8Rng| -> Vec<f64> { (0..rounds).map(|_| noise(random)).collect() };
                let found = (0..studies).filter(|_| groups(&study(&mut random), 0.0).is_some()).count();
                // 2 %, and three standard errors of the simulation.
                assert!(count(found) / count(studies) < 0.026, "{name}, {rounds} rounds: {found} of {studies}");
            }
        }
    }

    #[test]
    fn clear_groups_are_found() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        for (rounds, apart) in [(12, 10.0), (24, 8.0)] {
            let study = |random: &mut ChaCha8Rng| -> Vec<f64> {
                (0..rounds).map(|at| normal(random) + if at % 2 == 0 { apart } else { 0.0 }).collect()
            };
            let found = (0..1_000).filter(|_| groups(&study(&mut random), 0.0).is_some()).count();
            assert!(found > 900, "{rounds} rounds, {apart} apart: {found} of 1000");
        }
    }
}
