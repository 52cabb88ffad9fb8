//! CPU work that computes something and always takes the same path.

use std::hint::black_box;

/// Adds up the natural logarithms of `count` very large numbers. The sum is the same at every call.
pub(super) fn logarithms(count: u32) -> f64 {
    // The optimiser must not see that the start never changes, or it would add up once and for all.
    let start = black_box(1e300);
    (0..count).map(|step| (start + f64::from(step) * 1e290).ln()).sum()
}
