//! Which run comes when. Pure: the order comes from the seed, the journal says what is done.

use std::collections::HashSet;

use crate::journal::record::RunRecord;
use crate::study::plan::Plan;

/// One run to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Round, from 1.
    pub round: u32,
    /// Position within the round, from 1.
    pub slot: u32,
    /// Index into [`Plan::arms`].
    pub arm: usize,
}

/// All runs of a study in order, less those that the journal already holds as valid.
///
/// The order of a round depends on the seed and the number of arms alone, so a resumed study goes on as it would have.
#[must_use]
pub fn slots(plan: &Plan, seed: u64, done: &[RunRecord]) -> Vec<Slot> {
    let done: HashSet<(u32, &str)> =
        done.iter().filter(|run| run.void.is_none()).map(|run| (run.round, run.variant.as_str())).collect();
    unladen_stats::order::balanced(plan.arms.len(), plan.study.rounds as usize, seed)
        .into_iter()
        .zip(1..)
        .flat_map(|(order, round)| order.into_iter().zip(1..).map(move |(arm, slot)| Slot { round, slot, arm }))
        .filter(|slot| !done.contains(&(slot.round, plan.arms[slot.arm].name.as_str())))
        .collect()
}
