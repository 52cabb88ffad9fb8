//! Whether rounds in several strata (machines, nodes) have the same differences.
//!
//! Rounds are blocks: what all variants of a round share cancels in its differences, the machine too. What remains is that an agent may cost
//! more on one machine than on another: an interaction, which no interval over all rounds shows.

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use crate::arithmetic::{count, middle};

/// Random permutations behind a p-value: its standard error is 0.001 at 0.01.
const PERMUTATIONS: usize = 9_999;

/// p-value of the Kruskal-Wallis test (Kruskal and Wallis 1952, JASA 47) by random permutation: small if the values of some stratum are
/// higher or lower than those of the others.
///
/// By permutation, as the usual approximation by chi-squared needs more values in each stratum than a study has rounds. The same for the same
/// values, on every machine. At least 1/10,000; with two strata of three values it cannot be below 0.1, with two of five not below 0.008. `None`
/// if fewer than two strata have a value, or one is not finite.
#[must_use]
pub fn kruskal_wallis(strata: &[Vec<f64>]) -> Option<f64> {
    let sizes: Vec<usize> = strata.iter().map(Vec::len).filter(|size| *size > 0).collect();
    let values: Vec<f64> = strata.iter().flatten().copied().collect();
    if sizes.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut ranks = midranks(&values);
    let observed = statistic(&ranks, &sizes);
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let is_as_far = |ranks: &[f64]| statistic(ranks, &sizes) >= observed * (1.0 - 1e-12);
    let as_far = (0..PERMUTATIONS)
        .filter(|_| {
            ranks.shuffle(&mut random);
            is_as_far(&ranks)
        })
        .count();
    Some((count(as_far) + 1.0) / (count(PERMUTATIONS) + 1.0))
}

/// What of H depends on which rank is in which stratum: the sum of the squared rank sums, each over its number of values.
fn statistic(ranks: &[f64], sizes: &[usize]) -> f64 {
    let mut rest = ranks;
    let of_stratum = |&size: &usize| {
        let (stratum, others) = rest.split_at(size);
        rest = others;
        stratum.iter().sum::<f64>().powi(2) / count(size)
    };
    sizes.iter().map(of_stratum).sum()
}

/// Ranks from 1, of equal values their mean.
fn midranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|it| **it < value).count();
    let up_to = |value: f64| values.iter().filter(|it| **it <= value).count();
    values.iter().map(|&value| middle(count(below(value) + 1), count(up_to(value)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn strata_that_do_not_overlap_differ() {
        let p = |strata: &[&[f64]]| {
            kruskal_wallis(&strata.iter().map(|it| it.to_vec()).collect::<Vec<_>>()).expect("a p-value")
        };
        // Two of 252 permutations are as far apart.
        let five = p(&[&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]]);
        assert!((five - 2.0 / 252.0).abs() < 0.003, "{five}");
        // Two of 20.
        let three = p(&[&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]]);
        assert!((three - 0.1).abs() < 0.01, "{three}");
        let alike = p(&[&[1.0, 4.0, 5.0, 8.0], &[2.0, 3.0, 6.0, 7.0]]);
        assert!(alike > 0.8, "{alike}");
        assert_eq!(p(&[&[1.0, 1.0], &[1.0, 1.0]]), 1.0, "nothing differs");
    }

    #[test]
    fn without_two_strata_nothing_is_said() {
        assert_eq!(kruskal_wallis(&[]), None);
        assert_eq!(kruskal_wallis(&[vec![1.0, 2.0], vec![]]), None);
        assert_eq!(kruskal_wallis(&[vec![1.0], vec![f64::NAN]]), None);
    }

    /// Values of a textbook: Hollander and Wolfe, half-times of mucociliary clearance, H = 0.77, p = 0.68 by chi-squared.
    #[test]
    fn it_agrees_with_a_published_example() {
        let strata = [vec![2.9, 3.0, 2.5, 2.6, 3.2], vec![3.8, 2.7, 4.0, 2.4], vec![2.8, 3.4, 3.7, 2.2, 2.0]];
        let p = kruskal_wallis(&strata).expect("a p-value");
        assert!((p - 0.68).abs() < 0.05, "{p}");
    }

    /// Of machines that do not differ one study in a hundred is told of; of a difference of three standard deviations nearly all.
    #[test]
    fn its_p_values_are_what_they_say() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut found = |shift: f64| {
            let studies = 300;
            let told = (0..studies).filter(|_| {
                let mut stratum = |shift: f64| -> Vec<f64> {
                    (0..6).map(|_| (0..12).map(|_| random.random::<f64>()).sum::<f64>() + shift).collect()
                };
                kruskal_wallis(&[stratum(0.0), stratum(shift)]).is_some_and(|p| p < 0.01)
            });
            count(told.count()) / count(studies)
        };
        let (none, far) = (found(0.0), found(3.0));
        assert!(none < 0.03, "{none}");
        assert!(far > 0.9, "{far}");
    }
}
