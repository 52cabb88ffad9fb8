//! From an interval to words, and against a budget.
//!
//! "Not significant" is never read as "no difference": that takes the whole interval inside of the margin that
//! matters. Whatever is not a number ends in [`Verdict::CannotTell`] or [`Outcome::Undecided`], never in a claim.

use serde::{Deserialize, Serialize};

use crate::{
    arithmetic::count,
    estimate::{Estimate, Interval, Level, hodges_lehmann},
    rank::{self, Tail},
};

/// What an interval says about a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is above 0.
    Costs,
    /// The whole interval is below 0: unexpected for instrumentation, so check it.
    Saves,
    /// The interval holds 0 and lies within the margin that matters on both sides.
    NoDifference,
    /// None of these: more rounds are needed.
    CannotTell,
}

impl Verdict {
    /// As it stands in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Costs => "costs",
            Self::Saves => "saves",
            Self::NoDifference => "no_difference",
            Self::CannotTell => "cannot_tell",
        }
    }

    /// For people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Costs => "costs",
            Self::Saves => "saves",
            Self::NoDifference => "no difference",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// The verdict on `interval`, given the smallest difference that matters, on the same scale as the interval and not
/// negative.
#[must_use]
pub fn verdict(interval: &Interval, margin: f64) -> Verdict {
    if interval.low > 0.0 && interval.high >= interval.low {
        Verdict::Costs
    } else if interval.high < 0.0 && interval.low <= interval.high {
        Verdict::Saves
    } else if interval.farther_end() <= margin && interval.contains(0.0) {
        Verdict::NoDifference
    } else {
        Verdict::CannotTell
    }
}

/// Whether the whole interval is nearer to 0 than `margin`: a cost that is real, yet less than what matters.
#[must_use]
pub fn less_than_margin(interval: &Interval, margin: f64) -> bool {
    interval.low > -margin && interval.high < margin
}

/// Whether the deciding estimate and its cross-check come to the same verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossCheck {
    /// Both say the same.
    Agree,
    /// They differ: the noise is not what one of them needs. Look at the rounds one by one.
    Disagree {
        /// By signed ranks.
        rank: Verdict,
        /// By the t interval.
        t: Verdict,
    },
    /// One of them has no interval.
    TooFew,
}

impl CrossCheck {
    /// Whether they disagree on there being a difference at all: one claims a cost or a saving and the other does not.
    ///
    /// The rest is one of them finding the margin a little nearer than the other, which on quiet noise and 12 rounds
    /// happens in up to one of ten comparisons.
    #[must_use]
    pub fn on_the_effect(self) -> bool {
        let claims = |verdict| matches!(verdict, Verdict::Costs | Verdict::Saves);
        matches!(self, Self::Disagree { rank, t } if claims(rank) || claims(t))
    }
}

/// Compare the verdict of [`hodges_lehmann`] with that of
/// [`paired_t`](crate::estimate::paired_t), both on the scale of `margin`.
#[must_use]
pub fn cross_check(rank: &Estimate, t: &Estimate, margin: f64) -> CrossCheck {
    let (Some(rank), Some(t)) = (&rank.interval, &t.interval) else { return CrossCheck::TooFew };
    match (verdict(rank, margin), verdict(t, margin)) {
        (rank, t) if rank == t => CrossCheck::Agree,
        (rank, t) => CrossCheck::Disagree { rank, t },
    }
}

/// How a budget came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole interval is within the budget.
    Pass,
    /// The whole interval is beyond it.
    Fail,
    /// The interval holds the budget: more rounds would decide.
    Undecided,
}

impl Outcome {
    /// As it stands in files, and for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Undecided => "undecided",
        }
    }
}

/// The outcome of a single budget: pass if `high ≤ limit`, fail if `low > limit`. For several at once see [`budgets`].
#[must_use]
pub fn budget(interval: &Interval, limit: f64) -> Outcome {
    if interval.high <= limit && interval.low <= interval.high {
        Outcome::Pass
    } else if interval.low > limit && interval.high >= interval.low {
        Outcome::Fail
    } else {
        Outcome::Undecided
    }
}

/// One comparison that has a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budgeted<'a> {
    /// The paired values, one per round.
    pub values: &'a [f64],
    /// The limit, on the scale of the values: for a budget of +10 % on log-ratios ln 1.10.
    pub limit: f64,
}

/// The outcomes of a family of budgets, in their order.
///
/// *Pass* needs no correction, because the study passes only if all budgets do (intersection-union, Berger 1982).
/// *Fail* would be cried too often over many budgets, so it takes a one-sided signed-rank p-value of (value − limit)
/// that survives Holm's step-down at the tail of `level`. With one budget this is [`budget`] exactly.
#[must_use]
pub fn budgets(family: &[Budgeted<'_>], level: Level) -> Vec<Outcome> {
    let p_values: Vec<f64> = family.iter().map(|one| rank::p_value(one.values, one.limit, Tail::Above)).collect();
    let failed = holm(&p_values, level.tail());
    let outcome = |(one, failed): (&Budgeted<'_>, bool)| {
        let interval = hodges_lehmann(one.values, level).ok().and_then(|estimate| estimate.interval);
        match interval.map(|interval| budget(&interval, one.limit)) {
            Some(Outcome::Pass) => Outcome::Pass,
            Some(Outcome::Fail) if failed => Outcome::Fail,
            _ => Outcome::Undecided,
        }
    };
    family.iter().zip(failed).map(outcome).collect()
}

/// Holm's step-down (1979): which of the hypotheses are rejected so that the chance of any false rejection is at most
/// `alpha`, however the p-values hang together. A p-value that is not a number is not rejected.
#[must_use]
pub fn holm(p_values: &[f64], alpha: f64) -> Vec<bool> {
    holm_adjusted(p_values).into_iter().map(|p| p <= alpha).collect()
}

/// P-values adjusted by Holm's step-down, in the order given: the smallest family-wise level at which each would be
/// rejected.
#[must_use]
pub fn holm_adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    let p = |index: usize| if p_values[index].is_nan() { 1.0 } else { p_values[index] };
    order.sort_by(|&a, &b| p(a).total_cmp(&p(b)));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (step, index) in order.into_iter().enumerate() {
        largest = largest.max(p(index) * count(p_values.len() - step));
        adjusted[index] = largest.min(1.0);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::paired_t;

    fn interval(low: f64, high: f64) -> Interval {
        Interval { low, high, achieved: 0.958 }
    }

    #[test]
    fn the_words_of_the_method() {
        let table = [
            (2.4, 3.9, Verdict::Costs, false),
            (0.2, 0.7, Verdict::Costs, true),
            (-2.0, -0.4, Verdict::Saves, false),
            (-0.6, -0.4, Verdict::Saves, true),
            (-0.8, 0.5, Verdict::NoDifference, true),
            (-1.0, 1.0, Verdict::NoDifference, false),
            (0.0, 0.0, Verdict::NoDifference, true),
            (0.0, 0.5, Verdict::NoDifference, true),
            (-0.7, 2.9, Verdict::CannotTell, false),
            (0.0, 1.1, Verdict::CannotTell, false),
        ];
        for (low, high, expected, less) in table {
            assert_eq!(verdict(&interval(low, high), 1.0), expected, "[{low}, {high}]");
            assert_eq!(less_than_margin(&interval(low, high), 1.0), less, "[{low}, {high}]");
        }
        // Threads that are as many in every round differ by nothing, whatever matters.
        assert_eq!(verdict(&interval(0.0, 0.0), 0.0), Verdict::NoDifference);
    }

    #[test]
    fn what_is_no_number_claims_nothing() {
        let nan = f64::NAN;
        for (low, high) in [(nan, nan), (nan, -1.0), (1.0, nan), (nan, 1.0), (-1.0, nan), (2.0, 1.0), (-1.0, -2.0)] {
            assert_eq!(verdict(&interval(low, high), 10.0), Verdict::CannotTell, "[{low}, {high}]");
            assert_eq!(budget(&interval(low, high), 1.5), Outcome::Undecided, "[{low}, {high}]");
        }
        assert_eq!(verdict(&interval(-1.0, 1.0), nan), Verdict::CannotTell);
        assert_eq!(budget(&interval(-1.0, 1.0), nan), Outcome::Undecided);
        let values = [1.0, 2.0, nan, 3.0, 4.0, 5.0, 6.0, 7.0];
        assert_eq!(budgets(&[Budgeted { values: &values, limit: 0.0 }], Level::P95), [Outcome::Undecided]);
        assert_eq!(budgets(&[Budgeted { values: &[], limit: 0.0 }], Level::P95), [Outcome::Undecided]);
        assert_eq!(budgets(&[Budgeted { values: &[1.0; 5], limit: 9.0 }], Level::P95), [Outcome::Undecided]);
    }

    #[test]
    fn a_budget_passes_fails_or_waits() {
        assert_eq!(budget(&interval(1.0, 3.0), 3.0), Outcome::Pass);
        assert_eq!(budget(&interval(1.0, 3.1), 3.0), Outcome::Undecided);
        assert_eq!(budget(&interval(3.0, 4.0), 3.0), Outcome::Undecided);
        assert_eq!(budget(&interval(3.1, 4.0), 3.0), Outcome::Fail);
    }

    #[test]
    fn a_family_of_budgets_cries_wolf_no_more_than_one() {
        // All eight rounds above the limit: p = 2⁻⁸ = 0.0039, which survives among six at 2.5 % and not among seven.
        let over: Vec<f64> = (1..=8).map(f64::from).collect();
        let within: Vec<f64> = over.iter().map(|value| -value).collect();
        let family = |others: usize| {
            let mut family = vec![Budgeted { values: &over, limit: 0.0 }];
            family.resize(others + 1, Budgeted { values: &within, limit: 0.0 });
            budgets(&family, Level::P95)
        };
        assert_eq!(family(0), [Outcome::Fail]);
        assert_eq!(family(5)[..2], [Outcome::Fail, Outcome::Pass]);
        assert_eq!(family(6)[..2], [Outcome::Undecided, Outcome::Pass]);
    }

    #[test]
    fn a_wild_round_parts_ranks_and_t() {
        let mut rounds = [0.9, 1.1, 1.0, 1.2, 0.8, 1.05, 0.95, 1.15, 0.85, 1.02, 0.98, 1.0];
        let check = |rounds: &[f64]| {
            let rank = hodges_lehmann(rounds, Level::P95).expect("finite values");
            cross_check(&rank, &paired_t(rounds, Level::P95).expect("finite values"), 0.5)
        };
        assert_eq!(check(&rounds), CrossCheck::Agree);
        rounds[3] = 40.0;
        assert_eq!(check(&rounds), CrossCheck::Disagree { rank: Verdict::Costs, t: Verdict::CannotTell });
        assert!(check(&rounds).on_the_effect());
        assert_eq!(check(&rounds[..5]), CrossCheck::TooFew);
        let on_the_margin = CrossCheck::Disagree { rank: Verdict::NoDifference, t: Verdict::CannotTell };
        assert!(!on_the_margin.on_the_effect() && !CrossCheck::Agree.on_the_effect());
    }

    #[test]
    fn holm_steps_down() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005], 0.05), [true, false, false, true]);
        assert_eq!(holm(&[0.01, 0.02, 0.03, 0.005], 0.05), [true, true, true, true]);
        assert_eq!(holm(&[f64::NAN, 0.02], 0.05), [false, true]);
        assert_eq!(holm(&[], 0.05), [] as [bool; 0]);
    }
}
