//! The few sums that several modules share, so that they agree to the last bit.

/// A number of values as a real number.
#[expect(clippy::cast_precision_loss, reason = "numbers of values, rounds and pairs are far below 2^52")]
pub(crate) fn count(n: usize) -> f64 {
    n as f64
}

/// The mean of two values without overflow: the Walsh average, of which tests and intervals are made.
pub(crate) fn middle(a: f64, b: f64) -> f64 {
    0.5 * a + 0.5 * b
}

/// The mean of values of which there is at least one.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

/// The median of values that are sorted and of which there is at least one.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    middle(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}
