//! The arithmetic behind unladen's verdicts: in which order to measure, what a set of paired rounds says about a
//! cost, and how sure that is.
//!
//! Pure functions only: no clock, no files, no units, no randomness but the recorded seed. Lengths of time, bytes and
//! names belong to the caller. The way through it, from top to bottom:
//!
//! 1. [`order`] decides which variant runs when.
//! 2. [`pair`] turns the runs of each round into one log-ratio or difference.
//! 3. [`estimate`] turns those into an estimate with an exact interval (on the distribution in [`rank`]).
//! 4. [`verdict`] puts the interval into words and holds it against budgets; [`noise`] says whether to believe it at all.
//! 5. [`plan`] says beforehand how many rounds a wanted effect needs.
//!
//! [`steady`], [`slope`] and [`quantile`] look inside a single run: has it warmed up, does it leak, did it have enough
//! requests for a quantile. [`apart`](mod@apart) finds the rounds in which a variant did something else altogether, [`groups`](mod@groups) the variants whose
//! starts are of two kinds, and [`levels`](mod@levels) says whether more rounds or longer windows are the better buy.
//!
//! ```
//! use unladen_stats::{estimate::{hodges_lehmann, Level}, pair, verdict::{verdict, Verdict}};
//!
//! // CPU per request of seven rounds: (baseline, variant).
//! let rounds = [(10.0, 10.9), (10.2, 11.1), (9.9, 11.0), (10.1, 11.2), (10.0, 10.8), (10.3, 11.4), (9.8, 10.7)];
//! let cost = hodges_lehmann(&pair::log_ratios(&rounds)?, Level::P95)?.relative();
//! let interval = cost.interval.expect("seven rounds are enough at 95 %");
//! assert_eq!(verdict(&interval, 0.01), Verdict::Costs);
//! assert!((cost.value - 0.09).abs() < 0.01);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod apart;
pub mod estimate;
pub mod groups;
pub mod levels;
pub mod noise;
pub mod order;
pub mod pair;
pub mod plan;
pub mod quantile;
pub mod rank;
pub mod slope;
pub mod steady;
pub mod verdict;

mod arithmetic;
mod level;
