//! The highest rate that a service bears: bisection on top of [`crate::run`], with confirmation. [`search`] is pure: trials are
//! a function; [`measure`] makes them loads.
//!
//! One trial can mislead either way, so the answer is a rate that held twice below a rate that failed. A rate that failed
//! once is tried again before it counts as failed.

use std::sync::atomic::AtomicBool;

use crate::error::LoadError;
use crate::outcome::Outcome;
use crate::plan::{Pacing, Plan};
use crate::threshold::Threshold;

/// Share of the wanted rate that must come back: below it the service, or the generator, did not keep up.
const MIN_ACHIEVED: f64 = 0.99;

/// Answers that may be missing in any case: where a trial has few requests, one that falls beyond its end is more than that share.
const SLACK: f64 = 1.5;

/// What is searched for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Rate to begin with, requests per second; the first trial.
    pub from: f64,
    /// Rate that is never exceeded.
    pub most: f64,
    /// When to stop: the rates that hold and that fail are no farther apart than this share of the one that holds.
    pub precision: f64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// Highest rate that held, in two trials; `None`: not even the lowest one did.
    pub holds: Option<f64>,
    /// Lowest rate that failed, in two trials; `None`: not even the highest one did.
    pub fails: Option<f64>,
    /// All trials in their order: rate, and whether it held.
    pub trials: Vec<(f64, bool)>,
}

/// Rates below this share of the first one are not tried.
const MIN_RATE_SHARE: f64 = 1.0 / 1024.0;
/// Trials at most: doubling and halving by 2^20, and both once more.
const MAX_TRIALS: usize = 80;

/// Searches: doubles the rate while it holds, halves it while it does not, then takes the (geometric) middle. `trial` makes a
/// load at a rate and says whether the service bore it; with `None` the search ends with what is known by then.
///
/// # Errors
/// What `trial` returns.
pub fn search<E>(plan: &Search, mut trial: impl FnMut(f64) -> Result<Option<bool>, E>) -> Result<Capacity, E> {
    let mut found = Capacity { holds: None, fails: None, trials: Vec::new() };
    let mut rate = plan.from.min(plan.most);
    while found.trials.len() < MAX_TRIALS {
        match twice(rate, &mut trial, &mut found.trials)? {
            Some(true) => found.holds = Some(rate),
            Some(false) => found.fails = Some(rate),
            None => break,
        }
        rate = match (found.holds, found.fails) {
            (Some(holds), None) if holds >= plan.most => break,
            (Some(holds), None) => (holds * 2.0).min(plan.most),
            (None, Some(fails)) if fails <= plan.from * MIN_RATE_SHARE => break,
            (None, Some(fails)) => fails / 2.0,
            (Some(holds), Some(fails)) if fails <= holds * (1.0 + plan.precision) => break,
            (Some(holds), Some(fails)) => (holds * fails).sqrt(),
            (None, None) => break,
        };
    }
    Ok(found)
}

/// Tries a rate until one of the answers has come twice.
fn twice<E>(
    rate: f64,
    trial: &mut impl FnMut(f64) -> Result<Option<bool>, E>,
    trials: &mut Vec<(f64, bool)>,
) -> Result<Option<bool>, E> {
    let mut count = [0; 2];
    loop {
        let Some(held) = trial(rate)? else { return Ok(None) };
        trials.push((rate, held));
        count[usize::from(held)] += 1;
        if count[usize::from(held)] == 2 {
            return Ok(Some(held));
        }
    }
}

/// Searches with loads like the plan's at constant rates. A rate holds if no threshold is broken and 99 % of it come back.
/// `after` is called after each trial with its rate, its outcome and whether it held. Setting `stop` ends the search.
///
/// # Errors
/// [`LoadError`] if a load cannot run at all.
pub fn measure(
    plan: &Plan,
    search_for: &Search,
    thresholds: &[Threshold],
    mut after: impl FnMut(f64, &Outcome, bool),
    stop: &AtomicBool,
) -> Result<Capacity, LoadError> {
    search(search_for, |rate| {
        let plan = Plan { pacing: Pacing::Constant { rate }, start_at_ns: None, ..plan.clone() };
        let outcome = crate::run(&plan, &mut |_| {}, stop)?;
        if outcome.interrupted {
            return Ok(None);
        }
        let kept_up = kept_up(rate, &outcome);
        let held = kept_up && thresholds.iter().all(|threshold| threshold.broken_by(&outcome).is_none());
        after(rate, &outcome, held);
        Ok(Some(held))
    })
}

/// Whether the service answered as many as it was asked.
fn kept_up(rate: f64, outcome: &Outcome) -> bool {
    outcome.rate * outcome.duration_s + SLACK >= MIN_ACHIEVED * rate * outcome.duration_s
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    const PLAN: Search = Search { from: 100.0, most: 1e6, precision: 0.02 };

    fn of(capacity: f64, plan: &Search) -> Capacity {
        let Ok(found) = search(plan, |rate| Ok::<_, Infallible>(Some(rate <= capacity)));
        found
    }

    #[test]
    fn one_lucky_and_one_unlucky_trial_change_nothing() {
        let mut number = 0;
        let Ok(found) = search(&PLAN, |rate| {
            number += 1;
            // Every third trial says the contrary.
            Ok::<_, Infallible>(Some((rate <= 777.0) != (number % 3 == 0)))
        });
        let (holds, fails) = (found.holds.expect("some rate holds"), found.fails.expect("some rate fails"));
        assert!(holds <= 777.0 && fails > 777.0 && fails / holds <= 1.02, "{found:?}");
    }

    #[test]
    fn one_answer_beyond_the_end_of_a_short_trial_is_no_failure() {
        let outcome =
            |answers: f64, duration_s: f64| Outcome { rate: answers / duration_s, duration_s, ..Outcome::default() };
        assert!(kept_up(95.0, &outcome(28.0, 0.3)) && kept_up(95.0, &outcome(27.0, 0.3)));
        assert!(!kept_up(95.0, &outcome(26.0, 0.3)));
        assert!(kept_up(1000.0, &outcome(989.0, 1.0)) && !kept_up(1000.0, &outcome(988.0, 1.0)));
    }

    #[test]
    fn ends_are_ends() {
        assert_eq!(of(1e9, &PLAN).holds, Some(1e6));
        assert_eq!(of(1e9, &PLAN).fails, None);
        let found = of(0.0, &PLAN);
        assert_eq!(found.holds, None);
        assert!(found.fails.expect("all fail") < 0.1 && found.trials.len() < 30);
        assert_eq!(search(&PLAN, |_| Err("no server")), Err("no server"));
        let mut left = 5;
        let Ok(found) = search(&PLAN, |_| {
            left -= 1;
            Ok::<_, Infallible>((left >= 0).then_some(true))
        });
        assert_eq!((found.holds, found.fails, found.trials.len()), (Some(200.0), None, 5), "stopped in the third rate");
    }

    proptest! {
        #[test]
        fn every_capacity_is_found_to_the_precision(capacity in 1.0f64..900_000.0) {
            let found = of(capacity, &PLAN);
            let (holds, fails) = (found.holds.expect("some rate holds"), found.fails.expect("some rate fails"));
            prop_assert!(holds <= capacity && capacity < fails && fails <= holds * 1.0201);
            prop_assert!(found.trials.len() <= 50, "{}", found.trials.len());
        }
    }
}
