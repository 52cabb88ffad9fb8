//! Whether to believe a study at all: the baseline against itself (the placebo).
//!
//! The placebo is the baseline once more, under another name, in every round. What shows between the two is the harness:
//! its interval is the noise floor, and if it is surely not 0, then the harness prefers one of them and every other
//! number is suspect. A floor made of successive runs of a single variant would take an effect of the slot for noise.
//!
//! Other variants are compared with the baseline alone. The mean of baseline and placebo would find effects that are a
//! seventh smaller, but where runs are hit from one side it makes the differences lopsided, and signed ranks then raise
//! 5.4 % false alarms with 12 rounds and 7.5 % with 24, most of them savings (`tests/calibration`).

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::{
    arithmetic::count,
    estimate::{Estimate, EstimateError, hodges_lehmann},
    level::Level,
    rank::{Tail, p_value},
    verdict::holm,
};

/// The level at which a placebo condemns the harness: stricter than that of a comparison, because all of them fall with it.
pub const LEVEL: Level = Level::P99;

/// What the baseline against itself says about the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harness {
    /// The 99 % interval holds 0.
    Sound,
    /// The 99 % interval leaves 0 out: identical variants differ. The study is void for this metric.
    Broken,
    /// Fewer than 8 rounds have no 99 % interval.
    Unknown,
}

/// The baseline against itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placebo {
    /// Estimate at the level of the study.
    pub estimate: Estimate,
    /// Noise floor: the farther end of the interval. "Baseline against itself: ± this." `None` with too few rounds.
    pub floor: Option<f64>,
    /// Two-sided exact p-value of "no difference", for [`broken`].
    pub p_value: f64,
    /// Whether the harness is to be believed, judged by this metric alone.
    pub harness: Harness,
}

/// Judge the paired values of baseline and placebo (on either scale).
///
/// # Errors
/// If there are no values, one is not finite, or there are too many.
pub fn placebo(values: &[f64], level: Level) -> Result<Placebo, EstimateError> {
    let estimate = hodges_lehmann(values, level)?;
    let harness = match hodges_lehmann(values, LEVEL)?.interval {
        Some(interval) if interval.contains(0.0) => Harness::Sound,
        Some(_) => Harness::Broken,
        None => Harness::Unknown,
    };
    let floor = estimate.interval.map(|interval| interval.farther_end());
    Ok(Placebo { estimate, floor, p_value: p_value(values, 0.0, Tail::Both), harness })
}

/// For which of several metrics the harness is broken, such that a sound harness is condemned for any of them in at most
/// 1 % of studies (Holm). Judging each of ten metrics by its own 99 % interval would condemn it in up to 10 %.
///
/// With fewer rounds than [`rounds_for_budgets`](crate::plan::rounds_for_budgets) says for so many metrics at [`LEVEL`]
/// (11 for nine) no p-value is small enough to condemn any.
#[must_use]
pub fn broken(p_values: &[f64]) -> Vec<bool> {
    holm(p_values, 1.0 - LEVEL.get())
}

/// The scatter of the differences between two identical variants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Standard deviation of one difference.
    pub sd: f64,
    /// What it is at most with 80 % confidence, were the noise normal: few differences say little about their own scatter.
    pub at_most: f64,
}

/// The scatter of the differences (or log-ratios) of two identical variants. Their true mean is known to be 0, so that all of them,
/// and not one less, are degrees of freedom. `None` without values, or if one is not finite.
#[must_use]
pub fn spread(values: &[f64]) -> Option<Spread> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let n = count(values.len());
    let squares: f64 = values.iter().map(|value| value * value).sum();
    let least = ChiSquared::new(n).ok()?.inverse_cdf(0.2);
    Some(Spread { sd: (squares / n).sqrt(), at_most: (squares / least).sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_differences_know_their_scatter_only_roughly() {
        let four = spread(&[0.01, -0.01, 0.01, -0.01]).expect("finite values");
        // The fifth part of chi-squared with 4 degrees of freedom lies below 1.6488 (any table).
        assert!((four.sd - 0.01).abs() < 1e-12 && (four.at_most - 0.02 / 1.6488_f64.sqrt()).abs() < 1e-5, "{four:?}");
        let many = spread(&[0.01, -0.01].repeat(200)).expect("finite values");
        assert!(many.at_most < 1.04 * many.sd, "{many:?}");
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[1.0, f64::NAN]), None);
    }
    use crate::plan::rounds_for_budgets;

    #[test]
    fn an_even_harness_is_sound_and_has_a_floor() {
        let values = [-0.9, 0.4, 0.1, -0.3, 0.7, -0.2, 0.5, -0.6, 0.3, 0.0, -0.1, 0.2];
        let placebo = placebo(&values, Level::P95).expect("finite values");
        assert_eq!(placebo.harness, Harness::Sound);
        let interval = placebo.estimate.interval.expect("12 rounds");
        assert_eq!(placebo.floor, Some(interval.farther_end()));
        assert!(placebo.p_value > 0.5);
    }

    #[test]
    fn a_harness_that_prefers_a_variant_is_broken() {
        let values = [0.9, 0.4, 0.1, 0.3, 0.7, 0.2, 0.5, 0.6];
        let all_above = placebo(&values, Level::P95).expect("finite values");
        assert_eq!(all_above.harness, Harness::Broken);
        assert!((all_above.p_value - 2.0 / 256.0).abs() < 1e-15);
        let seven = placebo(&values[..7], Level::P95).expect("finite values");
        assert_eq!(seven.harness, Harness::Unknown);
        assert!(seven.floor.is_some());
        assert_eq!(placebo(&values[..5], Level::P95).expect("finite values").floor, None);
    }

    #[test]
    fn many_metrics_do_not_condemn_by_chance() {
        assert_eq!(broken(&[0.009]), [true]);
        assert_eq!(broken(&[0.009, 0.5, 0.3]), [false, false, false]);
        assert_eq!(broken(&[0.009, 0.5, 0.003]), [false, false, true]);
        assert_eq!(broken(&[f64::NAN, 0.001]), [false, true]);
        // Eleven rounds that all point one way condemn among nine metrics, ten do not.
        for (rounds, condemned) in [(10, false), (11, true)] {
            let mut p_values = vec![1.0; 9];
            p_values[4] = p_value(&vec![1.0; rounds], 0.0, Tail::Both);
            assert_eq!(broken(&p_values).contains(&true), condemned, "{rounds} rounds");
            assert_eq!(rounds >= rounds_for_budgets(9, LEVEL), condemned, "{rounds} rounds");
        }
    }
}
