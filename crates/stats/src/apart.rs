//! Rounds that are unlike all others of their variant: so far away that no noise of theirs explains it.
//!
//! Nothing is left out for it. Ranks keep such rounds from bending an estimate; but whoever reads it must know that the variant
//! has two ways of behaving, because a median describes one of them only.

use crate::estimate::median;

/// Robust standard deviations from the median beyond which a value is not of its own kind.
///
/// Iglewicz and Hoaglin (1993) look at values beyond 3.5, which among twelve of a heavy tail is an everyday thing; nobody wants to
/// be told of it in every study.
pub const LIMIT: f64 = 10.0;

/// By how much, as a factor, a value must differ from the median besides: a quiet metric is not to be called wild for 2 %, nor a run
/// that something else slowed down.
pub const FACTOR: f64 = 2.0;

/// Fewest values of which some can be called unlike the others.
pub const MIN_ROUNDS: usize = 6;

/// The median absolute deviation of normal noise is its standard deviation over this.
const MAD_TO_SD: f64 = 1.4826;

/// Which of `values` (positive, one per round) are unlike the others: their indices, ascending.
///
/// Those that are more than [`LIMIT`] robust standard deviations (median absolute deviations about the median, scaled) and
/// more than [`FACTOR`] away from the median. As it takes a majority to be the usual, at most half are found; if most values are the very same,
/// none.
#[must_use]
pub fn apart(values: &[f64]) -> Vec<usize> {
    if values.len() < MIN_ROUNDS || values.iter().any(|value| !value.is_finite() || *value <= 0.0) {
        return Vec::new();
    }
    let Some(middle) = median(values) else { return Vec::new() };
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let Some(sd) = median(&deviations).map(|mad| MAD_TO_SD * mad).filter(|sd| *sd > 0.0) else { return Vec::new() };
    let is_apart = |value: f64| {
        let factor = (value / middle).max(middle / value);
        (value - middle).abs() > LIMIT * sd && factor > FACTOR
    };
    (0..values.len()).filter(|&index| is_apart(values[index])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::count;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn two_ways_of_behaving_are_told_apart() {
        // ms of CPU per request of a gateway in twelve rounds; in three of them a thread span.
        let gateway = [1.17, 1.26, 1.00, 0.93, 10.42, 0.99, 1.00, 10.13, 0.84, 9.80, 0.89, 1.25];
        assert_eq!(apart(&gateway), [4, 7, 9]);
        let bare = [1.19, 1.79, 1.68, 1.28, 1.03, 1.25, 1.71, 1.69, 1.70, 1.17, 1.57, 1.06];
        assert_eq!(apart(&bare), [] as [usize; 0], "a machine with two speeds is noise");
    }

    #[test]
    fn less_than_usual_is_unlike_too() {
        assert_eq!(apart(&[5.0, 5.1, 4.9, 0.3, 5.05, 4.95, 5.02]), [3]);
    }

    #[test]
    fn a_quiet_metric_is_not_wild() {
        assert_eq!(apart(&[100.0, 100.001, 99.999, 100.002, 99.998, 102.0]), [] as [usize; 0]);
        assert_eq!(apart(&[7.0, 7.0, 7.0, 7.0, 7.0, 70.0]), [] as [usize; 0], "without scatter nothing can be said");
        assert_eq!(apart(&[1.0, 1.1, 0.9, 50.0, 1.05]), [] as [usize; 0], "five are too few");
        assert_eq!(apart(&[1.0, 1.1, 0.9, f64::NAN, 1.05, 1.0]), [] as [usize; 0]);
    }

    /// Of runs that scatter by a tenth hardly any study is told of; if something else makes one run of ten up to twice as long, one in twenty.
    #[test]
    fn ordinary_noise_is_hardly_ever_called_unlike() {
        let mut random = ChaCha8Rng::seed_from_u64(20_261_123);
        for (hit, most) in [(0.0, 0.002), (0.1, 0.05)] {
            for rounds in [6, 12] {
                let studies = 4_000;
                let mut found = 0;
                for _ in 0..studies {
                    let mut noise = || {
                        let normal: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                        let longer = if random.random::<f64>() < hit { 1.0 + random.random::<f64>() } else { 1.0 };
                        (0.1 * normal).exp() * longer
                    };
                    let values: Vec<f64> = (0..rounds).map(|_| noise()).collect();
                    found += usize::from(!apart(&values).is_empty());
                }
                let share = count(found) / count(studies);
                assert!(share <= most, "{rounds} rounds, {hit} of them hit: {share}");
            }
        }
    }
}
