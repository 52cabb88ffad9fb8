//! Inside a run: has it warmed up, and does it drift within its window?
//!
//! For the pilot that fixes the warm-up of a study, and for a flag on runs that had not settled. All variants get the warm-up
//! of the slowest, and a flagged run stays in: leaving out runs for what they measured would bend the result.

use crate::{
    arithmetic::{count, median_of_sorted},
    estimate::{Interval, median},
    level::Level,
    slope::theil_sen,
};

/// Stretches whose medians have to agree.
pub const STRETCHES: usize = 3;

/// By how much, relative to their middle, the medians of steady stretches may differ.
pub const TOLERANCE: f64 = 0.02;

/// Fewest samples per stretch whose median is worth comparing.
pub const MIN_PER_STRETCH: usize = 3;

/// How far the largest and the smallest median of stretches of `per_stretch` samples are apart, relative to the median of
/// the medians. `None` unless there are at least two full stretches of numbers with a positive middle; a remainder at the end is
/// left out.
#[must_use]
pub fn spread(samples: &[f64], per_stretch: usize) -> Option<f64> {
    if per_stretch == 0 || samples.iter().any(|sample| !sample.is_finite()) {
        return None;
    }
    let mut medians: Vec<f64> = samples.chunks_exact(per_stretch).filter_map(median).collect();
    if medians.len() < 2 {
        return None;
    }
    medians.sort_unstable_by(f64::total_cmp);
    let middle = median_of_sorted(&medians);
    (middle > 0.0).then(|| (medians[medians.len() - 1] - medians[0]) / middle)
}

/// After how many samples a pilot run has warmed up: the end of the first [`STRETCHES`] successive stretches of
/// `per_stretch` samples whose medians agree to within `tolerance`. `None`: it has not.
///
/// Of the samples in a run, such as CPU per request or latency second by second. With ten samples of 10 % noise each, medians
/// differ by more than 2 % of themselves, so a noisy metric wants longer stretches.
#[must_use]
pub fn warmed_up(samples: &[f64], per_stretch: usize, tolerance: f64) -> Option<usize> {
    let together = per_stretch.checked_mul(STRETCHES)?;
    let ends = (together..=samples.len()).step_by(per_stretch.max(1));
    ends.into_iter()
        .find(|&end| spread(&samples[end - together..end], per_stretch).is_some_and(|spread| spread <= tolerance))
}

/// Whether the window of a run was steady: the medians of its thirds agree to within `tolerance`. `None` when the thirds
/// have fewer than [`MIN_PER_STRETCH`] samples, or no positive middle.
#[must_use]
pub fn steady(samples: &[f64], tolerance: f64) -> Option<bool> {
    let per_stretch = samples.len() / STRETCHES;
    if per_stretch < MIN_PER_STRETCH {
        return None;
    }
    spread(&samples[..per_stretch * STRETCHES], per_stretch).map(|spread| spread <= tolerance)
}

/// A trend within a window, relative to the median of its samples: 0.05 = rises by 5 % from the first sample to the last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// The change from the first sample to the last, by the Theil-Sen line.
    pub change: f64,
    /// Its interval, if the samples were independent of one another.
    pub interval: Option<Interval>,
}

/// The drift of equally spaced samples. `None` unless they have a slope and a positive median.
#[must_use]
pub fn drift(samples: &[f64], level: Level) -> Option<Drift> {
    let points: Vec<(f64, f64)> = samples.iter().enumerate().map(|(place, &sample)| (count(place), sample)).collect();
    let slope = theil_sen(&points, level).ok()?;
    let middle = median(samples).filter(|middle| *middle > 0.0)?;
    let whole = count(samples.len() - 1) / middle;
    let interval = slope.interval.map(|Interval { low, high, achieved }| Interval {
        low: low * whole,
        high: high * whole,
        achieved,
    });
    Some(Drift { change: slope.value * whole, interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples that approach `level` from `above` times it with time constant `tau`.
    fn warming(level: f64, above: f64, tau: f64, length: u32) -> Vec<f64> {
        (0..length).map(|t| level * (1.0 + above * (-f64::from(t) / tau).exp())).collect()
    }

    #[test]
    fn a_warming_run_settles_when_little_is_left() {
        let samples = warming(100.0, 0.8, 11.0, 120);
        let end = warmed_up(&samples, 10, TOLERANCE).expect("settles within two minutes");
        // The middles of three stretches that end at t lie between t−25 and t−5: 2 % are left to go after about 6 τ.
        assert!((60..=80).contains(&end), "{end}");
        assert!(samples[end] / 100.0 - 1.0 < 0.005);
        assert_eq!(warmed_up(&samples[..end - 1], 10, TOLERANCE), None);
        assert_eq!(warmed_up(&[100.0; 29], 10, TOLERANCE), None);
        assert_eq!(warmed_up(&[100.0; 30], 10, TOLERANCE), Some(30));
        assert_eq!(warmed_up(&[100.0; 30], 0, TOLERANCE), None);
        assert_eq!(warmed_up(&[100.0; 30], usize::MAX, TOLERANCE), None);
    }

    #[test]
    fn spread_is_that_of_the_medians() {
        let samples = [1.0, 100.0, 1.0, 2.0, 2.0, -9.0, 4.0, 4.0, 4.0, 77.0];
        assert_eq!(spread(&samples, 3), Some(1.5));
        assert_eq!(spread(&samples, 10), None);
        assert_eq!(spread(&samples, 0), None);
        assert_eq!(spread(&[0.0; 9], 3), None);
        assert_eq!(spread(&[1.0, f64::NAN, 1.0, 1.0], 2), None);
    }

    #[test]
    fn thirds_of_a_window() {
        assert_eq!(steady(&[10.0; 8], TOLERANCE), None);
        assert_eq!(steady(&[10.0; 11], TOLERANCE), Some(true));
        let rising: Vec<f64> = (0..30).map(|t| 100.0 + 0.2 * f64::from(t)).collect();
        assert_eq!(steady(&rising, TOLERANCE), Some(false));
        assert_eq!(steady(&rising, 0.05), Some(true));
    }

    #[test]
    fn drift_is_relative_to_the_middle() {
        let rising: Vec<f64> = (0..=20).map(|t| 95.0 + 0.5 * f64::from(t)).collect();
        let drift = drift(&rising, Level::P95).expect("has a slope");
        assert!((drift.change - 0.1).abs() < 1e-12);
        assert!(drift.interval.is_some_and(|interval| interval.contains(0.1) || interval.half_width() < 1e-12));
        assert_eq!(super::drift(&[1.0], Level::P95), None);
        assert_eq!(super::drift(&[0.0, 0.0, 0.0], Level::P95), None);
    }
}
