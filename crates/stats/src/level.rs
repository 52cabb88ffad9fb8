//! How sure an interval has to be. A type of its own so that a level of 95 (instead of 0.95) cannot reach a formula.

use thiserror::Error;

/// Confidence level of a two-sided interval, strictly between 0.5 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Level(f64);

/// A number that is no usable confidence level.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("{0} is not a confidence level: it must lie between 0.5 and 1, such as 0.95")]
pub struct LevelError(pub f64);

impl Level {
    /// 95 %, for a study that is judged once.
    pub const P95: Self = Self(0.95);
    /// 96 %, for a study that goes on until its interval is narrow (see [`narrow_enough`](crate::plan::narrow_enough)).
    pub const P96: Self = Self(0.96);
    /// 97 %, for each of two planned looks that together keep about 95 % (see [`TwoLooks`](crate::plan::TwoLooks)).
    pub const P97: Self = Self(0.97);
    /// 99 %, for the check of the harness itself (see [`noise`](crate::noise)).
    pub const P99: Self = Self(0.99);

    /// A level from a number.
    ///
    /// # Errors
    /// If `level` is not strictly between 0.5 and 1. Below one half an interval is no longer evidence of anything.
    pub fn new(level: f64) -> Result<Self, LevelError> {
        if level > 0.5 && level < 1.0 { Ok(Self(level)) } else { Err(LevelError(level)) }
    }

    /// The level, 0.95 for 95 %.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The probability left on each side of the interval, 0.025 for 95 %: also the level of the one-sided test that
    /// agrees with the interval.
    #[must_use]
    pub fn tail(self) -> f64 {
        (1.0 - self.0) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_levels_are_levels() {
        for wrong in [0.0, 0.5, 1.0, 95.0, -0.95, f64::NAN, f64::INFINITY] {
            assert!(Level::new(wrong).is_err(), "{wrong} was taken for a level");
        }
        assert_eq!(Level::new(0.95), Ok(Level::P95));
        assert!((Level::P97.tail() - 0.015).abs() < 1e-15);
    }
}
