#![doc = include_str!("../README.md")]
//! ## The way through it, from top to bottom
//!
//! 1. [`order`] decides which variant runs when.
//! 2. [`pair`] turns the runs of each round into one log-ratio or difference.
//! 3. [`estimate`] turns those into an estimate with an exact interval (on the distribution in [`rank`]).
//! 4. [`verdict`] puts the interval into words and holds it against budgets; [`noise`] says whether to believe it at all.
//! 5. [`plan`] says beforehand how many rounds a wanted effect needs.
//!
//! [`slope`] and [`quantile`] look inside a single run: does it leak, did it have enough requests for a quantile.
//! [`apart`](mod@apart) finds the rounds in which a variant did something else altogether, [`groups`](mod@groups) the variants whose starts are
//! of two kinds, [`strata`] whether machines agree, and [`levels`](mod@levels) says whether more rounds or longer windows are the better buy.

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
pub mod robust;
pub mod slope;
pub mod strata;
pub mod verdict;

mod arithmetic;
mod level;
