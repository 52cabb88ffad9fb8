//! The slope of a series within one run: does its memory grow? Theil-Sen on the minima of stretches of samples.
//!
//! Minima, because garbage collection makes a saw of every heap and only its floor tells a leak. The interval of a
//! single run takes the points as independent, which samples of a running process are not: a leak is claimed from the
//! slopes of many rounds (as differences into [`hodges_lehmann`](crate::estimate::hodges_lehmann)), never from one run.

use statrs::distribution::{ContinuousCDF, Normal};
use thiserror::Error;

use crate::{
    arithmetic::{count, median_of_sorted, middle},
    estimate::{Interval, MAX_VALUES},
    level::Level,
};

/// Largest number of points for which the interval is exact; beyond it the normal approximation takes over.
const EXACT_UP_TO: usize = 100;

/// A slope, in units of the series per unit of its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// Median of the slopes between all pairs of points.
    pub value: f64,
    /// Its interval, if the points were independent; `None` with too few points (below 5 at 95 %).
    pub interval: Option<Interval>,
    /// Number of points.
    pub n: usize,
}

/// Points that have no slope.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum SlopeError {
    /// Fewer than two points, or more than can be worked on.
    #[error(
        "a slope needs 2 to {MAX_VALUES} points, there are {n}: measure for longer, or take minima of longer stretches"
    )]
    Points {
        /// Number of points.
        n: usize,
    },
    /// A time or value that is not a number, or infinite.
    #[error("point {index} is ({time}, {value}), which is no measurement: leave it out and say so")]
    NotFinite {
        /// Position of the point, from 0.
        index: usize,
        /// Its time.
        time: f64,
        /// Its value.
        value: f64,
    },
    /// Two points at one time.
    #[error("two points are at time {time}: take one of them, such as the minimum")]
    SameTime {
        /// The time.
        time: f64,
    },
    /// A slope beyond the number range.
    #[error("two points are so near in time or so far in value that their slope is not finite: check the units")]
    TooSteep,
}

/// The minimum of each stretch of `per_stretch` successive `(time, value)` samples, at the middle of its times. A
/// remainder at the end is left out: fewer samples have a higher minimum.
#[must_use]
pub fn minima(samples: &[(f64, f64)], per_stretch: usize) -> Vec<(f64, f64)> {
    if per_stretch == 0 {
        return Vec::new();
    }
    let minimum = |stretch: &[(f64, f64)]| {
        let time = middle(stretch[0].0, stretch[stretch.len() - 1].0);
        let values = stretch.iter().map(|&(_, value)| value);
        // A sample that is no number must not vanish behind the others.
        let least = values.reduce(|least, value| if value.is_nan() || value < least { value } else { least });
        (time, least.unwrap_or(f64::NAN))
    };
    samples.chunks_exact(per_stretch).map(minimum).collect()
}

/// Theil-Sen slope of `(time, value)` points (Theil 1950), with the interval of Sen (1968) from the exact distribution of
/// Kendall's statistic. Ties among the values widen the interval, never shorten it.
///
/// # Errors
/// If there are fewer than two points or more than [`MAX_VALUES`], one is not finite, two are at the same time, or a
/// slope is not finite.
pub fn theil_sen(points: &[(f64, f64)], level: Level) -> Result<Slope, SlopeError> {
    let n = points.len();
    if !(2..=MAX_VALUES).contains(&n) {
        return Err(SlopeError::Points { n });
    }
    if let Some(index) = points.iter().position(|(time, value)| !(time.is_finite() && value.is_finite())) {
        let (time, value) = points[index];
        return Err(SlopeError::NotFinite { index, time, value });
    }
    let mut sorted = points.to_vec();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for (i, &(time, value)) in sorted.iter().enumerate() {
        for &(later, then) in &sorted[i + 1..] {
            if later <= time {
                return Err(SlopeError::SameTime { time });
            }
            slopes.push((then - value) / (later - time));
        }
    }
    if slopes.iter().any(|slope| !slope.is_finite()) {
        return Err(SlopeError::TooSteep);
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let interval = critical(n, level).map(|(rank, achieved)| Interval {
        low: slopes[rank - 1],
        high: slopes[slopes.len() - rank],
        achieved,
    });
    Ok(Slope { value: median_of_sorted(&slopes), interval, n })
}

/// Largest k with P(at most k − 1 of the pairs of n points are in disorder) within the tail, and the level achieved.
fn critical(n: usize, level: Level) -> Option<(usize, f64)> {
    let tail = level.tail();
    let at_most = disorder(n);
    let rank = at_most.iter().take_while(|p| **p <= tail).count();
    (rank > 0).then(|| (rank, 1.0 - 2.0 * at_most[rank - 1]))
}

/// P(at most d pairs in disorder) for d from 0 to half of all pairs, in a random permutation of n (Kendall 1938).
fn disorder(n: usize) -> Vec<f64> {
    let half = n * (n - 1) / 4;
    if n > EXACT_UP_TO {
        let mean = count(n * (n - 1)) / 4.0;
        let sd = (count(n * (n - 1)) * count(2 * n + 5) / 72.0).sqrt();
        let normal = Normal::standard();
        return (0..=half).map(|d| normal.cdf((count(d) + 0.5 - mean) / sd)).collect();
    }
    let mut p = vec![0.0; half + 1];
    p[0] = 1.0;
    for size in 2..=n {
        // The size-th element goes before 0 … size−1 of the others: a sliding sum over the last `size` terms.
        let before = p.clone();
        let mut sum = 0.0;
        for d in 0..=half {
            sum += before[d];
            if d >= size {
                sum -= before[d - size];
            }
            p[d] = sum / count(size);
        }
    }
    p.iter()
        .scan(0.0, |total, term| {
            *total += term;
            Some(*total)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minima_drop_the_remainder() {
        let samples: Vec<(f64, f64)> =
            [5.0, 3.0, 4.0, 6.0, 4.0, 5.0, 1.0].into_iter().zip(0..).map(|(v, t)| (f64::from(t), v)).collect();
        assert_eq!(minima(&samples, 3), [(1.0, 3.0), (4.0, 4.0)]);
        assert_eq!(minima(&samples, 8), []);
        assert_eq!(minima(&samples, 0), []);
        for place in 0..3 {
            let mut spoiled = samples.clone();
            spoiled[place].1 = f64::NAN;
            assert!(minima(&spoiled, 3)[0].1.is_nan(), "sample {place}");
        }
    }

    #[test]
    fn disorder_is_kendalls() {
        // 4! = 24 permutations have 0 … 6 inversions 1, 3, 5, 6, 5, 3, 1 times.
        let at_most = disorder(4);
        for (ours, ways) in at_most.iter().zip([1.0, 4.0, 9.0, 15.0]) {
            assert!((ours - ways / 24.0).abs() < 1e-15);
        }
        assert_eq!(at_most.len(), 4);
        // P(S = 1) = 1/5! on each side, the first that fits into 2.5 %.
        assert_eq!(critical(4, Level::P95), None);
        assert_eq!(critical(5, Level::P95).map(|(rank, _)| rank), Some(1));
    }

    #[test]
    fn disorder_is_that_of_r() {
        let golden = include_str!("../tests/goldens/kendall.txt");
        let mut compared = 0;
        for line in golden.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            let mut whole = || words.next().and_then(|word| word.parse::<usize>().ok()).expect("a whole number");
            let (n, d) = (whole(), whole());
            let theirs: f64 = words.next().and_then(|word| word.parse().ok()).expect("a number");
            if let Some(ours) = disorder(n).get(d) {
                assert!((ours / theirs - 1.0).abs() < 1e-9, "{line}: {ours}");
                compared += 1;
            }
        }
        assert!(compared >= 35, "{compared} values compared");
    }

    #[test]
    fn a_line_with_one_wild_point_keeps_its_slope() {
        let mut points: Vec<(f64, f64)> = (0..12).map(|t| (f64::from(t), 10.0 + 0.5 * f64::from(t))).collect();
        points[7].1 = 100.0;
        points.reverse();
        let slope = theil_sen(&points, Level::P95).expect("distinct times");
        assert!((slope.value - 0.5).abs() < 1e-12);
        let interval = slope.interval.expect("12 points");
        assert!(interval.contains(0.5) && interval.half_width() < 0.1, "{interval:?}");
    }

    #[test]
    fn flat_points_have_no_slope_and_say_so_surely() {
        let points: Vec<(f64, f64)> = (0..8).map(|t| (f64::from(t), 3.0)).collect();
        let slope = theil_sen(&points, Level::P95).expect("distinct times");
        assert_eq!((slope.value, slope.n), (0.0, 8));
        assert!(slope.interval.is_some_and(|interval| interval.half_width() <= 0.0 && interval.contains(0.0)));
    }

    #[test]
    fn what_has_no_slope_is_named() {
        assert_eq!(theil_sen(&[(0.0, 1.0)], Level::P95), Err(SlopeError::Points { n: 1 }));
        assert_eq!(theil_sen(&[(1.0, 1.0), (1.0, 2.0)], Level::P95), Err(SlopeError::SameTime { time: 1.0 }));
        assert_eq!(theil_sen(&[(0.0, f64::MAX), (1e-9, 0.0)], Level::P95), Err(SlopeError::TooSteep));
        let error = theil_sen(&[(0.0, 1.0), (1.0, f64::NAN)], Level::P95).expect_err("not a number");
        assert!(matches!(error, SlopeError::NotFinite { index: 1, .. }));
        let two = theil_sen(&[(0.0, 1.0), (2.0, 2.0)], Level::P95).expect("two points");
        assert_eq!((two.value, two.interval), (0.5, None));
    }

    #[test]
    fn beyond_the_exact_table_the_approximation_goes_on() {
        let ranks = |n| critical(n, Level::P95).map_or(0, |(rank, _)| rank);
        let pairs = |n: usize| n * (n - 1) / 2;
        let (exact, approximate) = (ranks(EXACT_UP_TO), ranks(EXACT_UP_TO + 1));
        assert!(approximate > exact);
        let share = |n: usize| count(ranks(n)) / count(pairs(n));
        assert!((share(EXACT_UP_TO) - share(EXACT_UP_TO + 1)).abs() < 0.002);
    }
}
