//! From the runs of a round to one number: the only way into an estimate.
//!
//! The round is the unit of evidence. Within it the variant is held against the baseline that ran minutes, not hours,
//! away, so slow drift of the host cancels. Nothing is dropped or clipped here: a value that cannot be compared is an
//! error that names it.

use std::fmt;

use thiserror::Error;

/// Which value of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first of the pair.
    Baseline,
    /// The second of the pair.
    Variant,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Baseline => "baseline",
            Self::Variant => "variant",
        })
    }
}

/// A pair that cannot be compared. `index` counts from 0 in the slice given.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum PairError {
    /// Not a number, or infinite.
    #[error("the {side} value of pair {index} is {value}, which is no measurement: leave the round out and say so")]
    NotFinite {
        /// Position of the pair.
        index: usize,
        /// Which of its values.
        side: Side,
        /// The value.
        value: f64,
    },
    /// Zero or negative, so that it has no logarithm.
    #[error("the {side} value of pair {index} is {value}, and only positive values have a ratio: compare differences")]
    NotPositive {
        /// Position of the pair.
        index: usize,
        /// Which of its values.
        side: Side,
        /// The value.
        value: f64,
    },
    /// Both values are finite, their difference is not.
    #[error("pair {index} is too far apart for a difference: {baseline} and {variant}")]
    TooFarApart {
        /// Position of the pair.
        index: usize,
        /// First value.
        baseline: f64,
        /// Second value.
        variant: f64,
    },
}

/// Natural logarithm of variant over baseline for each `(baseline, variant)`: 0 = alike, 0.01 ≈ 1 % more.
///
/// On this scale a saving undoes a cost of the same size and every variant of a round that was slowed by the same factor
/// leaves no trace. [`Estimate::relative`](crate::estimate::Estimate::relative) leads back.
///
/// # Errors
/// If a value is not finite or not positive; the first such value is named.
pub fn log_ratios(pairs: &[(f64, f64)]) -> Result<Vec<f64>, PairError> {
    finite(pairs, |index, baseline, variant| {
        for (side, value) in [(Side::Baseline, baseline), (Side::Variant, variant)] {
            if value <= 0.0 {
                return Err(PairError::NotPositive { index, side, value });
            }
        }
        let ratio = variant / baseline;
        // The quotient keeps the digits of a small effect; only at the ends of the number range it is not there to have.
        Ok(if ratio.is_normal() { ratio.ln() } else { variant.ln() - baseline.ln() })
    })
}

/// Variant minus baseline for each `(baseline, variant)`, in the unit of the values.
///
/// # Errors
/// If a value or a difference is not finite; the first such pair is named.
pub fn differences(pairs: &[(f64, f64)]) -> Result<Vec<f64>, PairError> {
    finite(pairs, |index, baseline, variant| {
        let difference = variant - baseline;
        if difference.is_finite() { Ok(difference) } else { Err(PairError::TooFarApart { index, baseline, variant }) }
    })
}

fn finite(
    pairs: &[(f64, f64)],
    compare: impl Fn(usize, f64, f64) -> Result<f64, PairError>,
) -> Result<Vec<f64>, PairError> {
    let compared = pairs.iter().enumerate().map(|(index, &(baseline, variant))| {
        for (side, value) in [(Side::Baseline, baseline), (Side::Variant, variant)] {
            if !value.is_finite() {
                return Err(PairError::NotFinite { index, side, value });
            }
        }
        compare(index, baseline, variant)
    });
    compared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_differences() {
        let pairs = [(100.0, 110.0), (50.0, 50.0), (8.0, 4.0)];
        let ratios = log_ratios(&pairs).expect("all positive");
        assert!((ratios[0] - 1.1_f64.ln()).abs() < 1e-15);
        assert!(ratios[1].abs() < 1e-300);
        assert!((ratios[2] + std::f64::consts::LN_2).abs() < 1e-15);
        assert_eq!(differences(&pairs), Ok(vec![10.0, 0.0, -4.0]));
        assert_eq!(differences(&[(-1.0, 0.0)]), Ok(vec![1.0]));
    }

    #[test]
    fn the_ends_of_the_number_range_have_ratios_too() {
        let (small, large) = (f64::MIN_POSITIVE, f64::MAX);
        let ratios = log_ratios(&[(small, large), (large, small), (1e-310, 2e-310)]).expect("all positive");
        assert!((ratios[0] - (large.ln() - small.ln())).abs() < 1e-9);
        assert!((ratios[1] + ratios[0]).abs() < 1e-9);
        assert!((ratios[2] - std::f64::consts::LN_2).abs() < 1e-9);
    }

    #[test]
    fn the_wrong_value_is_named() {
        let error = log_ratios(&[(1.0, 1.0), (0.0, 1.0)]).expect_err("zero has no ratio");
        assert_eq!(error, PairError::NotPositive { index: 1, side: Side::Baseline, value: 0.0 });
        let error = log_ratios(&[(1.0, -2.0)]).expect_err("negative has no ratio");
        assert_eq!(error, PairError::NotPositive { index: 0, side: Side::Variant, value: -2.0 });
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for compare in [log_ratios, differences] {
                let error = compare(&[(1.0, 1.0), (1.0, 1.0), (2.0, wrong)]).expect_err("not finite");
                assert!(matches!(error, PairError::NotFinite { index: 2, side: Side::Variant, .. }), "{error}");
            }
        }
        let error = differences(&[(-f64::MAX, f64::MAX)]).expect_err("overflows");
        assert!(matches!(error, PairError::TooFarApart { index: 0, .. }));
        assert!(log_ratios(&[(1.0, 0.0)]).expect_err("zero").to_string().contains("variant value of pair 0"));
    }
}
