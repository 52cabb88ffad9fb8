//! The exact distribution of the signed-rank statistic (Wilcoxon 1945), by dynamic programming.
//!
//! If there is no effect, a random order within rounds gives every difference either sign with equal chance; then the
//! ranks of the positive ones sum up as a random subset of 1..=n does, whatever the noise looks like. That is all the
//! intervals of this crate rest on ([`order`](crate::order) says what the balance of the order takes from it).
//!
//! **Ties and zeros.** The statistic is counted on Walsh averages (dᵢ+dⱼ)/2, i ≤ j, strictly beyond the hypothesised
//! value: an average on the spot counts for neither side. Breaking ties by lot could only raise the count, and the count
//! after breaking has exactly the distribution below; so p-values and intervals err on the safe side with ties and zeros
//! (Noether 1967), are exact without, and a p-value is below the tail of a level exactly if the interval of that level
//! leaves the hypothesised value out.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::{
    arithmetic::{count, middle},
    level::Level,
};

/// Largest number of rounds for which the distribution is computed exactly; beyond it the normal approximation with
/// continuity correction is used, whose ranks are smaller there by less than one in a thousand, to the safe side.
pub const EXACT_UP_TO: usize = 200;

/// Which alternative a p-value is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// The values lie above the hypothesised one.
    Above,
    /// The values lie below it.
    Below,
    /// Either.
    Both,
}

/// The rank at which an interval ends, counted from the outermost Walsh average (1 = the outermost itself).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CriticalRank {
    /// k: the interval runs from the k-th smallest to the k-th largest Walsh average.
    pub rank: usize,
    /// The level that this rank achieves, at least the one asked for.
    pub achieved: f64,
}

/// Distribution of the sum of the ranks 1..=n that are drawn when each is drawn with probability one half.
#[derive(Debug, Clone)]
pub struct SignedRank {
    n: usize,
    /// P(T ≤ t) for t from 0 to half of the largest sum; the other half is its mirror image. Empty: approximated.
    lower: Vec<f64>,
}

impl SignedRank {
    /// The distribution for `n` differences.
    #[must_use]
    pub fn new(n: usize) -> Self {
        if n > EXACT_UP_TO {
            return Self { n, lower: Vec::new() };
        }
        let half = n * (n + 1) / 4;
        let mut lower = vec![0.0; half + 1];
        lower[0] = 1.0;
        for rank in 1..=n {
            // Downwards, so that each rank is drawn at most once. Only sums of positive terms: no cancellation, and
            // 2^-200 is far from the end of the number range.
            for sum in (0..=half).rev() {
                let drawn = if sum >= rank { lower[sum - rank] } else { 0.0 };
                lower[sum] = 0.5 * (lower[sum] + drawn);
            }
        }
        let mut total = 0.0;
        for p in &mut lower {
            total += *p;
            *p = total;
        }
        Self { n, lower }
    }

    /// The largest possible sum, n(n+1)/2: also the number of Walsh averages.
    #[must_use]
    pub fn largest(&self) -> usize {
        self.n * (self.n + 1) / 2
    }

    /// P(T ≤ `sum`).
    #[must_use]
    pub fn at_most(&self, sum: usize) -> f64 {
        let largest = self.largest();
        if sum >= largest {
            1.0
        } else if self.lower.is_empty() {
            normal_at_most(self.n, sum)
        } else if let Some(&p) = self.lower.get(sum) {
            p
        } else {
            1.0 - self.lower[largest - sum - 1]
        }
    }

    /// P(T ≥ `sum`).
    #[must_use]
    pub fn at_least(&self, sum: usize) -> f64 {
        self.largest().checked_sub(sum).map_or(0.0, |rest| self.at_most(rest))
    }

    /// The rank at which an interval of this level ends; `None` when even the range of all values is not that sure.
    #[must_use]
    pub fn critical(&self, level: Level) -> Option<CriticalRank> {
        let tail = level.tail();
        if self.n == 0 || self.at_most(0) > tail {
            return None;
        }
        // The largest k with P(T ≤ k − 1) ≤ tail, by bisection: `within` holds for `low`, not for `high`.
        let (mut low, mut high) = (0, self.largest() / 2 + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.at_most(middle) <= tail {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(CriticalRank { rank: low + 1, achieved: 1.0 - 2.0 * self.at_most(low) })
    }
}

/// The rank at which an interval of `level` over `n` differences ends; `None` when `n` is too small for the level (below
/// 6 at 95 %, 7 at 97 %, 8 at 99 %).
#[must_use]
pub fn critical_rank(n: usize, level: Level) -> Option<CriticalRank> {
    SignedRank::new(n).critical(level)
}

/// Smallest number of differences for which an interval of `level` exists: 6 at 95 %, 7 at 97 %, 8 at 99 %.
#[must_use]
pub fn min_rounds(level: Level) -> usize {
    // P(T ≤ 0) = 2⁻ⁿ has to fit into the tail.
    let mut n = 1;
    let mut smallest = 0.5;
    while smallest > level.tail() {
        smallest *= 0.5;
        n += 1;
    }
    n
}

/// Exact p-value of the hypothesis that `values` are symmetric about `center`, against `tail`.
///
/// Ties and zeros err on the safe side (see the module). A value or a centre that is not a number never speaks against
/// the hypothesis; without values the p-value is 1.
#[must_use]
pub fn p_value(values: &[f64], center: f64, tail: Tail) -> f64 {
    if values.is_empty() {
        return 1.0;
    }
    let (mut above, mut below) = (0, 0);
    for (i, &a) in values.iter().enumerate() {
        for &b in &values[i..] {
            let average = middle(a, b);
            above += usize::from(average > center);
            below += usize::from(average < center);
        }
    }
    let distribution = SignedRank::new(values.len());
    match tail {
        Tail::Above => distribution.at_least(above),
        Tail::Below => distribution.at_least(below),
        Tail::Both => (2.0 * distribution.at_least(above.max(below))).min(1.0),
    }
}

/// Normal approximation of P(T ≤ sum) with continuity correction, for an `n` beyond the exact table.
fn normal_at_most(n: usize, sum: usize) -> f64 {
    let n = count(n);
    let mean = n * (n + 1.0) / 4.0;
    let sd = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    Normal::standard().cdf((count(sum) + 0.5 - mean) / sd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ranks_by_hand() {
        // Of the 8 subsets of {1, 2, 3} the sums 0 … 6 come from 1, 1, 1, 2, 1, 1, 1.
        let distribution = SignedRank::new(3);
        for (sum, ways) in [1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0].into_iter().enumerate() {
            assert!((distribution.at_most(sum) - ways / 8.0).abs() < 1e-15, "{sum}");
        }
        assert!((distribution.at_least(6) - 0.125).abs() < 1e-15);
        assert!(distribution.at_least(7) <= 0.0 && distribution.at_most(70) >= 1.0 && distribution.at_least(0) >= 1.0);
    }

    #[test]
    fn nothing_at_all_has_no_rank() {
        assert_eq!(critical_rank(0, Level::P95), None);
        assert!(SignedRank::new(0).at_most(0) >= 1.0);
        assert!(p_value(&[], 0.0, Tail::Both) >= 1.0);
    }

    #[test]
    fn p_values_of_all_ties() {
        assert!((p_value(&[1.0; 6], 0.0, Tail::Above) - 1.0 / 64.0).abs() < 1e-15);
        assert!((p_value(&[1.0; 6], 0.0, Tail::Both) - 1.0 / 32.0).abs() < 1e-15);
        assert!(p_value(&[1.0; 6], 0.0, Tail::Below) >= 1.0);
        assert!(p_value(&[0.0; 6], 0.0, Tail::Both) >= 1.0);
        assert!(p_value(&[f64::NAN; 6], 0.0, Tail::Both) >= 1.0);
        assert!(p_value(&[1.0; 6], f64::NAN, Tail::Both) >= 1.0);
    }

    #[test]
    fn the_approximation_takes_over_smoothly() {
        let exact = SignedRank::new(EXACT_UP_TO);
        for level in [Level::P95, Level::P97, Level::P99] {
            let rank = exact.critical(level).expect("large n").rank;
            let approximate = (1..).find(|&sum| normal_at_most(EXACT_UP_TO, sum) > level.tail()).expect("in range");
            assert!((rank - 8..=rank).contains(&approximate), "{level:?}: {rank} exactly, {approximate} approximately");
        }
    }
}
