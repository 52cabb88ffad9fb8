//! Which level the noise comes from: does a start differ from the next, or does the number move within a start? (Kalibera & Jones 2013,
//! "Rigorous benchmarking in reasonable time".)
//!
//! A round's log-ratio varies for two reasons. What belongs to the start (the layout of memory, the seed of a hash, the plan of a compiler)
//! is the same all through a window, however long it is: only more rounds average it out. What moves within a start is also averaged out by
//! a longer window, and that is cheaper, because a start takes time too.

use crate::{
    arithmetic::{count, mean},
    estimate::standard_deviation,
};

/// Fewest starts of which the two are told apart.
pub const MIN_ROUNDS: usize = 4;

/// Standard deviations of a round's value, by where they come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// From start to start, what no longer window removes.
    pub between: f64,
    /// What varies within a start and is left in the mean of its window; a window n times as long has the √n-th part of it.
    pub within: f64,
}

impl Levels {
    /// Whether more rounds are the better buy than longer windows: the start carries the larger part.
    #[must_use]
    pub fn rounds_help(self) -> bool {
        self.between > self.within
    }
}

/// Tells the two apart. `rounds` are the values that are judged (log-ratios), one per start; `stretches` has for each start the same value over
/// successive equal parts of its window, equally many for all. Parts, not single points: what varies slowly would be taken for independent.
///
/// What the starts have in common over their windows (all get cheaper as they warm up) is no noise of a round and is taken out first: `within`
/// comes from the residuals of a two-way layout, `between` from what of the variance of `rounds` is left without it, and is 0 where nothing is.
/// `None` with fewer than [`MIN_ROUNDS`] of either, fewer than two stretches, unequally many of them, or a value that is not finite.
#[must_use]
pub fn levels(rounds: &[f64], stretches: &[Vec<f64>]) -> Option<Levels> {
    let width = stretches.first()?.len();
    let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
    let regular = stretches.iter().all(|start| start.len() == width && finite(start));
    if rounds.len() < MIN_ROUNDS || stretches.len() < MIN_ROUNDS || width < 2 || !regular || !finite(rounds) {
        return None;
    }
    let of_starts: Vec<f64> = stretches.iter().map(|start| mean(start)).collect();
    let of_stretches: Vec<f64> =
        (0..width).map(|at| mean(&stretches.iter().map(|start| start[at]).collect::<Vec<_>>())).collect();
    let all = mean(&of_starts);
    let residuals = stretches.iter().zip(&of_starts).flat_map(|(start, of_start)| {
        start.iter().zip(&of_stretches).map(move |(value, of_stretch)| value - of_start - of_stretch + all)
    });
    let squares: f64 = residuals.map(|residual| residual.powi(2)).sum();
    let within = squares / count((stretches.len() - 1) * (width - 1)) / count(width);
    let between = standard_deviation(rounds)?.powi(2) - within;
    Some(Levels { between: between.max(0.0).sqrt(), within: within.sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::median;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn normal(random: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
    }

    /// Starts with a standard deviation of `between`, stretches of `within` about them, and a course that all have in common.
    fn study(random: &mut ChaCha8Rng, starts: usize, (between, within): (f64, f64)) -> (Vec<f64>, Vec<Vec<f64>>) {
        let stretches: Vec<Vec<f64>> = (0..starts)
            .map(|_| {
                let start = 0.2 + between * normal(random);
                (0..8).map(|at| start + within * normal(random) + 0.3 * (-count(at)).exp()).collect()
            })
            .collect();
        (stretches.iter().map(|start| mean(start)).collect(), stretches)
    }

    #[test]
    fn the_truth_is_found_on_both_levels() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for (between, within) in [(0.03, 0.01), (0.01, 0.06), (0.0, 0.02), (0.02, 0.02)] {
            let found: Vec<Levels> = (0..400)
                .filter_map(|_| {
                    let (rounds, stretches) = study(&mut random, 12, (between, within));
                    levels(&rounds, &stretches)
                })
                .collect();
            let typical = |of: fn(&Levels) -> f64| median(&found.iter().map(of).collect::<Vec<_>>()).expect("studies");
            let left = within / 8.0_f64.sqrt();
            assert!((typical(|it| it.within) / left - 1.0).abs() < 0.05, "{between} {within}");
            // Of nothing between the starts about half of the studies see nothing.
            let near = (typical(|it| it.between) - between).abs();
            assert!(near < 0.15 * between + 0.3 * left, "{between} {within}: {near}");
        }
    }

    #[test]
    fn what_helps_is_told_where_it_is_clear() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        for (sds, rounds_help) in [((0.03, 0.01), true), ((0.001, 0.03), false)] {
            for (starts, least) in [(4, 330), (12, 360)] {
                let right = (0..400).filter(|_| {
                    let (rounds, stretches) = study(&mut random, starts, sds);
                    levels(&rounds, &stretches).expect("enough").rounds_help() == rounds_help
                });
                let right = right.count();
                assert!(right >= least, "{sds:?}, {starts} starts: {right} of 400");
            }
        }
    }

    #[test]
    fn too_little_says_nothing() {
        let starts = vec![vec![1.0, 2.0]; 4];
        assert_eq!(levels(&[1.0, 2.0, 3.0], &starts), None);
        assert_eq!(levels(&[1.0; 4], &starts[..3]), None);
        assert_eq!(levels(&[1.0; 4], &[]), None);
        assert_eq!(levels(&[1.0; 4], &vec![vec![1.0]; 4]), None);
        assert_eq!(levels(&[1.0, 2.0, 3.0, f64::NAN], &starts), None);
        let uneven = vec![vec![1.0, 2.0], vec![1.0, 2.0], vec![1.0, 2.0], vec![1.0]];
        assert_eq!(levels(&[1.0; 4], &uneven), None);
    }
}
