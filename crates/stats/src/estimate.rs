//! From paired rounds to an estimate with an interval: Hodges-Lehmann with the exact signed-rank interval (Hodges &
//! Lehmann 1963), and the paired t interval as a cross-check.
//!
//! Hodges-Lehmann is the one that decides: it keeps its level for any noise that the random order makes symmetric, and
//! a wild round moves it little. Nothing here knows whether the values are log-ratios or differences.

use statrs::{
    distribution::{Continuous, ContinuousCDF, StudentsT},
    function::beta::beta_reg,
};
use thiserror::Error;

pub use crate::level::{Level, LevelError};
use crate::{
    arithmetic::{count, mean, median_of_sorted, middle},
    rank,
};

/// Most values that an estimate takes: its work and memory grow with the square of their number.
pub const MAX_VALUES: usize = 4096;

/// A range that holds the truth with probability `achieved`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The level that the interval achieves; for signed ranks a little more than asked for (0.958 for 12 rounds at 95 %).
    pub achieved: f64,
}

impl Interval {
    /// Whether `value` lies in the closed interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half of the width.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        0.5 * self.high - 0.5 * self.low
    }

    /// The larger of the distances of the ends from 0: "no difference beyond ± this".
    #[must_use]
    pub fn farther_end(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// From the log-ratio scale to the relative one: 0.0953 becomes 0.10. Order and level stay.
    #[must_use]
    pub fn relative(&self) -> Self {
        Self { low: self.low.exp_m1(), high: self.high.exp_m1(), achieved: self.achieved }
    }
}

/// What a set of paired rounds says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its interval; `None` when there are too few values for the level.
    pub interval: Option<Interval>,
    /// Number of values.
    pub n: usize,
    /// Their mean. It parts from a Hodges-Lehmann `value` when a few rounds are far off the rest: show both.
    pub mean: f64,
}

impl Estimate {
    /// From the log-ratio scale to the relative one: 0.0953 becomes 0.10, in all fields (`mean` becomes the geometric
    /// mean ratio less 1).
    #[must_use]
    pub fn relative(&self) -> Self {
        Self {
            value: self.value.exp_m1(),
            interval: self.interval.as_ref().map(Interval::relative),
            n: self.n,
            mean: self.mean.exp_m1(),
        }
    }
}

/// Values from which nothing can be estimated. `index` counts from 0 in the slice given.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum EstimateError {
    /// No values.
    #[error("there is no round to estimate from: run at least one that is valid on both sides")]
    NoValues,
    /// A value that is not a number, or infinite.
    #[error("value {index} is {value}, which is no measurement: leave the round out and say so")]
    NotFinite {
        /// Position of the value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// More values than can be worked on.
    #[error(
        "{n} values are more than the {MAX_VALUES} that an estimate takes: estimate from rounds, not from requests"
    )]
    TooMany {
        /// Number of values.
        n: usize,
    },
}

/// Hodges-Lehmann estimate (median of all Walsh averages) with the exact signed-rank interval.
///
/// The interval runs from the k-th smallest to the k-th largest Walsh average, k from [`rank::critical_rank`]; it is
/// `None` for fewer than [`rank::min_rounds`] values. With ties it holds the truth at least as often as `achieved` says.
///
/// # Errors
/// If there is no value, one is not finite, or there are more than [`MAX_VALUES`].
pub fn hodges_lehmann(values: &[f64], level: Level) -> Result<Estimate, EstimateError> {
    check(values)?;
    let n = values.len();
    let mut averages = Vec::with_capacity(n * (n + 1) / 2);
    for (i, &a) in values.iter().enumerate() {
        averages.extend(values[i..].iter().map(|&b| middle(a, b)));
    }
    averages.sort_unstable_by(f64::total_cmp);
    let interval = rank::critical_rank(n, level).map(|critical| Interval {
        low: averages[critical.rank - 1],
        high: averages[averages.len() - critical.rank],
        achieved: critical.achieved,
    });
    Ok(Estimate { value: median_of_sorted(&averages), interval, n, mean: mean(values) })
}

/// Mean with the t interval (Student 1908): the cross-check. `None` instead of an interval for a single value.
///
/// # Errors
/// If there is no value, one is not finite, or there are more than [`MAX_VALUES`].
pub fn paired_t(values: &[f64], level: Level) -> Result<Estimate, EstimateError> {
    check(values)?;
    let n = values.len();
    let mean = mean(values);
    let interval = standard_deviation(values).and_then(|sd| {
        let reach = student_t_quantile(1.0 - level.tail(), n - 1)? * sd / count(n).sqrt();
        Some(Interval { low: mean - reach, high: mean + reach, achieved: level.get() })
    });
    Ok(Estimate { value: mean, interval, n, mean })
}

/// Standard deviation with n − 1 in the denominator; `None` for fewer than two values.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / count(values.len() - 1)).sqrt())
}

/// Median; `None` without values. Values that are not numbers are sorted to the ends by their sign.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(median_of_sorted(&sorted))
}

/// Medians of the first and of the second half of numbers in their order; with an odd number of them the middle one belongs to neither.
/// `None` where a half would have fewer than `least`, or none.
#[must_use]
pub fn halves(values: &[f64], least: usize) -> Option<[f64; 2]> {
    let half = values.len() / 2;
    (half >= least).then_some(())?;
    Some([median(&values[..half])?, median(&values[values.len() - half..])?])
}

/// Quantile of Student's t distribution, to ten digits or more; `None` without degrees of freedom or for a probability
/// outside of (0, 1).
#[must_use]
pub fn student_t_quantile(probability: f64, degrees_of_freedom: usize) -> Option<f64> {
    if !(probability > 0.0 && probability < 1.0) {
        return None;
    }
    let freedom = count(degrees_of_freedom);
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let mut t = distribution.inverse_cdf(probability).abs();
    // What statrs inverts keeps too few digits for many degrees of freedom. Newton steps restore them, on the mass
    // between −t and t, which does not cancel near the median as the distribution function does. (Far out it would.)
    let between = (2.0 * probability - 1.0).abs();
    if between < 0.999_999 {
        for _ in 0..2 {
            let mass = beta_reg(0.5, 0.5 * freedom, t * t / (freedom + t * t));
            t -= (mass - between) / (2.0 * distribution.pdf(t));
        }
    }
    Some(t.copysign(probability - 0.5))
}

fn check(values: &[f64]) -> Result<(), EstimateError> {
    if values.is_empty() {
        return Err(EstimateError::NoValues);
    }
    if values.len() > MAX_VALUES {
        return Err(EstimateError::TooMany { n: values.len() });
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(EstimateError::NotFinite { index, value: values[index] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_told_by_their_typical_second() {
        for (steps, expected) in [
            (&[0.5, 0.1, 0.2][..], None),
            (&[0.5, 0.1, 0.2, 0.4], Some([0.3, 0.3])),
            // One second of a compiler at work says nothing of the others; the middle one is left out.
            (&[0.1, 0.9, 0.1, 7.0, 0.2, 0.2, 0.3], Some([0.1, 0.2])),
        ] {
            let found = halves(steps, 2);
            let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
            let equal = found.zip(expected).is_some_and(|(found, wanted)| found.iter().zip(&wanted).all(near));
            assert!(equal || found == expected, "{steps:?}: {found:?}");
        }
    }
}
