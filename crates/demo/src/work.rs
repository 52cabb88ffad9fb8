//! CPU work that computes something and always takes the same path.

use std::hint::black_box;

/// Adds up the natural logarithms of `count` very large numbers. The sum is the same at every call.
pub(super) fn logarithms(count: u32) -> f64 {
    // The optimiser must not see that the start never changes, or it would add up once and for all.
    let start = black_box(1e300);
    let mut sum = 0.0;
    // A plain loop: in a debug build, iterators would cost several times what the logarithms do.
    let mut step = 0;
    while step < count {
        sum += (start + f64::from(step) * 1e290).ln();
        step += 1;
    }
    sum
}
