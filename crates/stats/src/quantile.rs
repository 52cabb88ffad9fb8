//! How many requests a quantile needs before it is worth printing.
//!
//! A quantile is taken per run and compared over rounds; pooled requests hide how runs differ. With 100/(1 − q) requests
//! a hundred lie beyond the quantile, which pins its logarithm to about 3 % if they are independent. When pauses hit
//! many requests in a row, the number of pauses is what counts and the interval over rounds shows it.

/// The quantiles of the metrics, in ascending order.
pub const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// Requests that have to lie beyond a quantile.
const BEYOND: f64 = 100.0;

/// Requests per run that a quantile needs, 100/(1 − q): 10,000 for 0.99. `None` if `quantile` is not between 0 and 1.
///
/// For quantiles below one half the nearer end counts: 0.01 needs as many as 0.99.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturating is right here")]
pub fn requests_needed(quantile: f64) -> Option<u64> {
    if !(quantile > 0.0 && quantile < 1.0) {
        return None;
    }
    let exact = BEYOND / (1.0 - quantile).min(quantile);
    // 1 − 0.99 is not 0.01 to the last bit: without the allowance 0.99 would need 10,001.
    Some((exact * (1.0 - 1e-9)).ceil() as u64)
}

/// The quantile of ascending values by nearest rank: the least value that at least a share `quantile` of them does not exceed.
/// `None` without values, or if `quantile` is not between 0 and 1.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturating is right here")]
pub fn nearest_rank(sorted: &[f64], quantile: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&quantile) {
        return None;
    }
    // The allowance as above: 0.99 of 100 values is the 99th.
    let rank = (crate::arithmetic::count(sorted.len()) * quantile * (1.0 - 1e-12)).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Whether so many requests of one run pin the quantile down.
#[must_use]
pub fn supports(requests: u64, quantile: f64) -> bool {
    requests_needed(quantile).is_some_and(|needed| requests >= needed)
}

/// Those of [`QUANTILES`] that so many requests of one run support.
#[must_use]
pub fn supported(requests: u64) -> Vec<f64> {
    QUANTILES.into_iter().filter(|&quantile| supports(requests, quantile)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_ranks_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        for (quantile, expected) in [(0.0, 1.0), (0.01, 1.0), (0.5, 50.0), (0.99, 99.0), (0.999, 100.0), (1.0, 100.0)] {
            assert_eq!(nearest_rank(&values, quantile), Some(expected), "{quantile}");
        }
        assert_eq!(nearest_rank(&[7.0], 0.5), Some(7.0));
        assert_eq!(nearest_rank(&[], 0.5), None);
        assert_eq!(nearest_rank(&values, f64::NAN), None);
    }

    #[test]
    fn a_hundred_requests_beyond_the_quantile() {
        let needed =
            [(0.5, 200), (0.75, 400), (0.9, 1_000), (0.95, 2_000), (0.99, 10_000), (0.999, 100_000), (0.01, 10_000)];
        for (quantile, requests) in needed {
            assert_eq!(requests_needed(quantile), Some(requests), "{quantile}");
            assert!(supports(requests, quantile) && !supports(requests - 1, quantile), "{quantile}");
        }
        for wrong in [0.0, 1.0, -0.5, 99.0, f64::NAN] {
            assert_eq!(requests_needed(wrong), None);
            assert!(!supports(u64::MAX, wrong));
        }
    }

    #[test]
    fn more_requests_support_more_quantiles() {
        assert_eq!(supported(199), []);
        assert_eq!(supported(9_999), [0.5, 0.75, 0.9, 0.95]);
        assert_eq!(supported(1_000_000), QUANTILES);
    }
}
