//! Before measuring: how many rounds a wanted effect needs, what a number of rounds can show, how long a window should
//! be, and when to stop.
//!
//! All of it is for planning and for the words beside a verdict; none of it decides one. The formulas take the noise of
//! the differences as normal, and are within 4 % of simulation for the levels 95 % and 97 % (`tests/calibration`).

use statrs::distribution::{ContinuousCDF, Normal};
use thiserror::Error;

use crate::{
    arithmetic::count,
    estimate::{Interval, student_t_quantile},
    level::Level,
    rank::{EXACT_UP_TO, critical_rank, min_rounds},
};

/// Chance with which a smallest detectable effect is found.
pub const POWER: f64 = 0.8;

/// The level of the interval of a study that goes on until it is narrow.
///
/// Whoever looks after every round, from the sixth on, stops a little too often when chance has made the interval narrow: at 95 %
/// up to 7.3 % false alarms, at 96 % from 3.3 to 5.9 % (`tests/calibration`).
pub const NARROW_LEVEL: Level = Level::P96;

/// Most rounds that a plan proposes; beyond it the answer is that rounds will not help.
pub const MAX_ROUNDS: usize = EXACT_UP_TO;

/// Up to so many rounds the achieved level is looked up. Beyond it is taken as asked for, which moves no plan by more than
/// a thousandth and keeps a search over many numbers of rounds cheap.
const EXACT_PLANS_UP_TO: usize = 50;

/// √(π/3): by how much wider than Student's the signed-rank interval is on normal noise (Hodges & Lehmann 1956).
const RANK_OVER_T: f64 = 1.023_326_707_946_488_5;

/// The smallest true effect that `n` rounds find with 80 % probability, in the unit of `sd`, the standard deviation of
/// one pair's difference (or log-ratio). `None` if `n` is too small for the level or `sd` is no standard deviation.
#[must_use]
pub fn smallest_detectable(sd: f64, n: usize, level: Level) -> Option<f64> {
    let in_sd = match reach(n, level)? {
        // All n differences have to be on one side of 0.
        Reach::Range => Normal::standard().inverse_cdf(POWER.powf(count(n).recip())),
        Reach::StandardErrors(reach) => RANK_OVER_T * (reach + student_t_quantile(POWER, n - 1)?) / count(n).sqrt(),
    };
    scaled(sd, in_sd)
}

/// The half-width to expect of the interval from `n` rounds, in the unit of `sd` (see [`smallest_detectable`]).
#[must_use]
pub fn half_width(sd: f64, n: usize, level: Level) -> Option<f64> {
    let in_sd = match reach(n, level)? {
        // Half of the expected range of n normal values, by Blom's formula (1958).
        Reach::Range => Normal::standard().inverse_cdf((count(n) - 0.375) / (count(n) + 0.25)),
        // The last factor: a sample's standard deviation is on average a little less than the true one.
        Reach::StandardErrors(reach) => RANK_OVER_T * reach / count(n).sqrt() * (1.0 - 0.25 / count(n - 1)),
    };
    scaled(sd, in_sd)
}

/// The standard deviation of normal differences that would give an interval as wide as this one on average.
///
/// Better to plan with than the sample's standard deviation, because from 12 rounds on a wild round hardly moves it: it
/// stands for what the method makes of the noise. What [`smallest_detectable`] makes of it is within a seventh of the truth
/// in all noise models of `tests/calibration`; the standard deviation is a third off when runs are hit. `None` if `n` is
/// too small for the level.
#[must_use]
pub fn implied_sd(interval: &Interval, n: usize, level: Level) -> Option<f64> {
    scaled(interval.half_width(), half_width(1.0, n, level)?.recip())
}

/// Fewest rounds that find a true effect of `effect` with 80 % probability; `None` if [`MAX_ROUNDS`] do not.
#[must_use]
pub fn rounds_to_detect(sd: f64, effect: f64, level: Level) -> Option<usize> {
    min_rounds_until(level, |n| smallest_detectable(sd, n, level), effect)
}

/// Fewest rounds whose interval is expected to reach no farther than `target` to each side; `None` if [`MAX_ROUNDS`]
/// do not. "About so many rounds would settle ± 1 %."
#[must_use]
pub fn rounds_for_half_width(sd: f64, target: f64, level: Level) -> Option<usize> {
    min_rounds_until(level, |n| half_width(sd, n, level), target)
}

/// Fewest rounds with which one of `budgets` budgets judged together can fail at all: its smallest possible p-value,
/// 2⁻ⁿ, has to survive the first step of Holm. 6 for one budget at 95 %, 9 for ten, 12 for a hundred.
#[must_use]
pub fn rounds_for_budgets(budgets: usize, level: Level) -> usize {
    let mut n = min_rounds(level);
    while 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX)) * count(budgets) > level.tail() {
        n += 1;
    }
    n
}

/// The window length that gives the narrowest interval for a given total time: √(overhead · `sd_within`² / `sd_between`²)
/// (Kalibera & Jones 2013).
///
/// `overhead` is the time that a run takes beside its window (start, warm-up, drain), `sd_within` the standard deviation
/// of the metric over a window of one unit of that time, `sd_between` the one between runs that no longer window removes.
/// The result is in the unit of `overhead`; `None` unless all three are positive.
#[must_use]
pub fn window_length(overhead: f64, sd_within: f64, sd_between: f64) -> Option<f64> {
    let all_positive = [overhead, sd_within, sd_between].iter().all(|value| value.is_finite() && *value > 0.0);
    let length = overhead.sqrt() * (sd_within / sd_between);
    (all_positive && length.is_finite()).then_some(length)
}

/// Whether a study may stop because its interval, one of [`NARROW_LEVEL`], reaches no farther than `target` to each side.
///
/// Looking at the width alone after every round leaves the level about what it was; stopping as soon as a difference shows does not
/// (9 to 18 % false alarms for 5 %).
#[must_use]
pub fn narrow_enough(interval: &Interval, target: f64) -> bool {
    interval.half_width() <= target
}

/// A study that may be extended once: it is looked at after `first` rounds, and after twice as many if the first look
/// left something undecided.
///
/// Both looks are at [`TwoLooks::LEVEL`], so that together they raise a false alarm about as often as one look at 95 %
/// (Pocock 1977 has 97.06 % for two looks equally far apart).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoLooks {
    first: usize,
}

/// Too few rounds for the first of two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a first look after {given} rounds is too early to decide anything at 97 %: plan at least {least} rounds")]
pub struct TooEarly {
    /// Rounds asked for.
    pub given: usize,
    /// Fewest rounds that have an interval at 97 %.
    pub least: usize,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Run so many rounds more before looking again.
    Measure(usize),
    /// The study is over.
    Stop,
}

impl TwoLooks {
    /// The level of the interval at each look.
    pub const LEVEL: Level = Level::P97;

    /// Looks after `first` rounds and after twice as many.
    ///
    /// # Errors
    /// If `first` rounds have no interval at [`TwoLooks::LEVEL`].
    pub fn new(first: usize) -> Result<Self, TooEarly> {
        let least = min_rounds(Self::LEVEL);
        if first >= least { Ok(Self { first }) } else { Err(TooEarly { given: first, least }) }
    }

    /// Rounds at the first look.
    #[must_use]
    pub const fn first(self) -> usize {
        self.first
    }

    /// Rounds at the second look, twice the first.
    #[must_use]
    pub const fn second(self) -> usize {
        self.first.saturating_mul(2)
    }

    /// What to do after `done` valid rounds, given whether a look now leaves anything undecided.
    ///
    /// Between the looks it does not matter how things stand: an extension once begun is run to its end, because
    /// stopping within it when the result pleases would be a third look.
    #[must_use]
    pub const fn next(self, done: usize, undecided: bool) -> Step {
        if done < self.first {
            Step::Measure(self.first - done)
        } else if done >= self.second() || (done == self.first && !undecided) {
            Step::Stop
        } else {
            Step::Measure(self.second() - done)
        }
    }
}

impl Default for TwoLooks {
    /// After 12 rounds and after 24.
    fn default() -> Self {
        Self { first: 12 }
    }
}

/// How far the interval reaches.
enum Reach {
    /// From the least value to the largest.
    Range,
    /// So many standard errors of a mean to each side, were it Student's interval of the achieved level.
    StandardErrors(f64),
}

fn reach(n: usize, level: Level) -> Option<Reach> {
    if n < min_rounds(level) {
        return None;
    }
    let achieved = if n <= EXACT_PLANS_UP_TO {
        let critical = critical_rank(n, level)?;
        if critical.rank == 1 {
            return Some(Reach::Range);
        }
        critical.achieved
    } else {
        level.get()
    };
    student_t_quantile(0.5 + 0.5 * achieved, n - 1).map(Reach::StandardErrors)
}

fn scaled(sd: f64, factor: f64) -> Option<f64> {
    (sd >= 0.0 && sd.is_finite()).then_some(sd * factor)
}

fn min_rounds_until(level: Level, reached: impl Fn(usize) -> Option<f64>, target: f64) -> Option<usize> {
    (min_rounds(level)..=MAX_ROUNDS).find(|&n| reached(n).is_some_and(|reached| reached <= target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounds_can_show_follows_the_simulation() {
        // Smallest detectable effect and half-width in sd, from 40,000 simulated normal samples each.
        let simulated = [
            (6, Level::P95, 1.79, 1.267),
            (7, Level::P95, 1.330, 0.931),
            (8, Level::P95, 1.250, 0.883),
            (10, Level::P95, 1.021, 0.712),
            (12, Level::P95, 0.938, 0.662),
            (15, Level::P95, 0.800, 0.560),
            (20, Level::P95, 0.679, 0.475),
            (30, Level::P95, 0.544, 0.379),
            (7, Level::P97, 1.860, 1.349),
            (12, Level::P97, 1.016, 0.736),
            (24, Level::P97, 0.663, 0.479),
            (60, Level::P97, 0.405, 0.293),
        ];
        for (n, level, effect, width) in simulated {
            let ours = smallest_detectable(1.0, n, level).expect("large enough");
            assert!((ours / effect - 1.0).abs() < 0.03, "n = {n}: {ours} for {effect}");
            let ours = half_width(1.0, n, level).expect("large enough");
            assert!((ours / width - 1.0).abs() < 0.02, "n = {n}: {ours} for {width}");
        }
        assert_eq!(smallest_detectable(1.0, 5, Level::P95), None);
        assert_eq!(half_width(f64::NAN, 12, Level::P95), None);
        assert_eq!(smallest_detectable(-1.0, 12, Level::P95), None);
    }

    #[test]
    fn rounds_needed_undo_what_rounds_show() {
        for n in [7, 12, 24, 60, 150] {
            let effect = smallest_detectable(1.5, n, Level::P95).expect("large enough");
            assert_eq!(rounds_to_detect(1.5, effect, Level::P95), Some(n));
            let width = half_width(1.5, n, Level::P95).expect("large enough");
            assert_eq!(rounds_for_half_width(1.5, width, Level::P95), Some(n));
        }
        // The rule of thumb 7.85 (sd/effect)² + 2 is for Student's t; signed ranks need about a twentieth more.
        let rounds = rounds_to_detect(1.0, 0.5, Level::P95).expect("in reach");
        assert!((33..=37).contains(&rounds), "{rounds}");
        assert_eq!(rounds_to_detect(1.0, 0.01, Level::P95), None);
        assert_eq!(rounds_to_detect(1.0, 0.0, Level::P95), None);
        assert_eq!(rounds_to_detect(0.0, 0.0, Level::P95), Some(6));
        assert_eq!(rounds_for_half_width(1.0, f64::NAN, Level::P95), None);
    }

    #[test]
    fn the_implied_sd_undoes_the_half_width() {
        let half = half_width(0.8, 12, Level::P95).expect("large enough");
        let interval = Interval { low: 3.0 - half, high: 3.0 + half, achieved: 0.958 };
        let sd = implied_sd(&interval, 12, Level::P95).expect("large enough");
        assert!((sd - 0.8).abs() < 1e-12);
        assert_eq!(implied_sd(&interval, 4, Level::P95), None);
    }

    #[test]
    fn budgets_need_rounds_to_be_able_to_fail() {
        for (budgets, rounds) in [(0, 6), (1, 6), (2, 7), (10, 9), (100, 12), (103, 13)] {
            assert_eq!(rounds_for_budgets(budgets, Level::P95), rounds, "{budgets} budgets");
        }
    }

    #[test]
    fn window_length_by_kalibera_and_jones() {
        let length = window_length(45.0, 5.0, 1.0).expect("all positive");
        assert!((length - 33.54).abs() < 0.01);
        for (overhead, within, between) in [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, 0.0), (f64::NAN, 1.0, 1.0)] {
            assert_eq!(window_length(overhead, within, between), None);
        }
    }

    #[test]
    fn narrow_enough_is_as_narrow_as_asked_for_wherever_it_lies() {
        let interval = Interval { low: 6.5, high: 7.5, achieved: 0.969 };
        assert!(narrow_enough(&interval, 0.5));
        assert!(!narrow_enough(&interval, 0.49));
        assert!(!narrow_enough(&interval, f64::NAN));
        assert_eq!(min_rounds(NARROW_LEVEL), 6, "the first look is after six rounds");
    }

    #[test]
    fn two_looks_and_no_third() {
        let looks = TwoLooks::default();
        assert_eq!((looks.first(), looks.second()), (12, 24));
        for undecided in [false, true] {
            assert_eq!(looks.next(0, undecided), Step::Measure(12));
            assert_eq!(looks.next(11, undecided), Step::Measure(1));
            assert_eq!(looks.next(15, undecided), Step::Measure(9));
            assert_eq!(looks.next(24, undecided), Step::Stop);
            assert_eq!(looks.next(30, undecided), Step::Stop);
        }
        assert_eq!(looks.next(12, true), Step::Measure(12));
        assert_eq!(looks.next(12, false), Step::Stop);
        assert_eq!(TwoLooks::new(6), Err(TooEarly { given: 6, least: 7 }));
        assert_eq!(TwoLooks::new(7).map(TwoLooks::second), Ok(14));
    }
}
