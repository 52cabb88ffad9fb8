//! Which run comes when. Pure: the order comes from the seed, the journal says what is done.

use std::collections::{HashMap, HashSet};

use unladen_journal::record::RunRecord;
use unladen_stats::order;
use unladen_study::plan::Plan;

/// One run to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Round, from 1.
    pub round: u32,
    /// Position within the round, from 1.
    pub slot: u32,
    /// Which attempt at the round, from 1.
    pub attempt: u32,
    /// Index into [`Plan::variants`].
    pub variant: usize,
}

/// One round of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// Number, from 1.
    pub number: u32,
    /// The attempt under way, from 1.
    pub attempt: u32,
    /// All of its variants (indices into [`Plan::variants`]) in their order.
    pub order: Vec<usize>,
    /// What is still to do of this attempt.
    pub missing: Vec<Slot>,
}

impl Round {
    /// Whether nothing of this attempt has been done.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.missing.len() == self.order.len()
    }

    /// Whether this attempt was begun and some of its variants have not had their turn, going by all runs so far.
    #[must_use]
    pub fn is_under_way(&self, runs: &[RunRecord]) -> bool {
        let of_it = runs.iter().filter(|run| (run.round, run.attempt) == (self.number, self.attempt));
        let had_their_turn: HashSet<&str> = of_it.map(|run| run.variant.as_str()).collect();
        !had_their_turn.is_empty() && had_their_turn.len() < self.order.len()
    }

    /// The round from the start: another attempt, in the same order.
    #[must_use]
    pub fn again(&self) -> Self {
        let attempt = self.attempt + 1;
        Self { attempt, missing: slots(self.number, attempt, &self.order).collect(), ..self.clone() }
    }
}

/// All runs of an attempt at a round.
fn slots(round: u32, attempt: u32, order: &[usize]) -> impl Iterator<Item = Slot> {
    order.iter().zip(1..).map(move |(variant, slot)| Slot { round, slot, attempt, variant: *variant })
}

/// The rounds of a study of which something is missing, in order, less the runs that the journal already holds as valid; of a study
/// that something else than a number of rounds ends, all that it may have. Where variants are in `groups`, these have their rounds by turns.
///
/// The order of a round depends on the seed, the number of variants and `rounds` alone, and not even on `rounds` where something else ends
/// the study, so a resumed study goes on as it would have.
#[must_use]
pub fn rounds(plan: &Plan, groups: &[Vec<usize>], seed: u64, done: &[RunRecord]) -> Vec<Round> {
    let mut attempts: HashMap<u32, u32> = HashMap::new();
    for run in done {
        let attempt = attempts.entry(run.round).or_insert(run.attempt);
        *attempt = run.attempt.max(*attempt);
    }
    let valid = done.iter().filter(|run| run.void.is_none());
    let done: HashSet<(u32, u32, &str)> = valid.map(|run| (run.round, run.attempt, run.variant.as_str())).collect();
    orders(plan, groups, seed)
        .into_iter()
        .zip(1..)
        .map(|(order, number)| {
            let attempt = attempts.get(&number).copied().unwrap_or(1);
            let is_missing =
                |slot: &Slot| !done.contains(&(number, attempt, plan.variants[slot.variant].name.as_str()));
            Round { number, attempt, missing: slots(number, attempt, &order).filter(is_missing).collect(), order }
        })
        .filter(|round| !round.missing.is_empty())
        .collect()
}

/// Where nobody knows how many rounds there will be, they are drawn in stretches of so many, each balanced in itself.
const STRETCH: usize = 12;

/// The order of the variants in every round.
fn orders(plan: &Plan, groups: &[Vec<usize>], seed: u64) -> Vec<Vec<usize>> {
    let rounds = plan.study.rounds as usize;
    let of_group = |(group, number): (&Vec<usize>, u64)| {
        // Drawn for each group by itself.
        let (variants, seed) = (group.len(), seed.wrapping_add(number));
        let orders = if plan.study.is_open_ended() {
            (0..).flat_map(|part| order::balanced_part(variants, STRETCH, seed, part)).take(rounds).collect()
        } else {
            order::balanced(variants, rounds, seed)
        };
        orders.into_iter().map(|order| order.into_iter().map(|at| group[at]).collect()).collect::<Vec<Vec<usize>>>()
    };
    let of_groups: Vec<Vec<Vec<usize>>> = groups.iter().zip(0..).map(of_group).collect();
    (0..rounds).flat_map(|round| of_groups.iter().map(move |orders| orders[round].clone())).collect()
}

#[cfg(test)]
mod tests {
    use unladen_journal::notices::Notice;
    use unladen_journal::record::VariantKind;
    use unladen_journal::units::Time;
    use unladen_study::plan::PlannedVariant;
    use unladen_study::spec::{Load, Study};

    use super::*;
    use crate::groups::groups;

    fn plan(rounds: u32) -> Plan {
        let study = Study { rounds, ..Study::new("x", Load::new("http://localhost/")) };
        let variants = ["baseline", "placebo", "otel"].map(PlannedVariant::empty).into();
        Plan { study, dir: std::path::PathBuf::new(), variants }
    }

    /// All variants in one group.
    fn rounds(plan: &Plan, seed: u64, done: &[RunRecord]) -> Vec<Round> {
        super::rounds(plan, &groups(plan, plan.variants.len()), seed, done)
    }

    #[test]
    fn groups_have_their_rounds_by_turns() {
        let mut plan = plan(3);
        plan.variants.push(PlannedVariant::empty("other"));
        (plan.variants[0].kind, plan.variants[1].kind) = (VariantKind::Baseline, VariantKind::Placebo);
        let all = super::rounds(&plan, &groups(&plan, 3), 7, &[]);
        assert_eq!(all.iter().map(|round| round.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        for (round, last) in all.iter().zip([2, 3, 2, 3, 2, 3]) {
            let mut order = round.order.clone();
            order.sort_unstable();
            assert_eq!(order, [0, 1, last], "round {}", round.number);
        }
    }

    fn run(round: u32, attempt: u32, variant: &str) -> RunRecord {
        RunRecord { round, attempt, variant: variant.to_owned(), ..RunRecord::empty() }
    }

    #[test]
    fn what_is_done_is_not_done_again_and_what_is_void_is() {
        let plan = plan(3);
        let all = rounds(&plan, 7, &[]);
        assert_eq!(all.iter().map(|round| round.missing.len()).collect::<Vec<_>>(), [3, 3, 3]);
        let void = RunRecord { void: Some(Notice::NoBaseline), ..run(2, 1, "placebo") };
        let done = [run(1, 1, "baseline"), run(1, 1, "placebo"), run(1, 1, "otel"), run(2, 1, "otel"), void];
        let left = rounds(&plan, 7, &done);
        assert_eq!(left.iter().map(|round| round.number).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(left.iter().map(|round| round.is_under_way(&done)).collect::<Vec<_>>(), [true, false]);
        let tried = [&done[..], &[run(2, 1, "baseline")]].concat();
        let tried_all = rounds(&plan, 7, &tried).remove(0);
        assert!(tried_all.missing.len() == 1 && !tried_all.is_under_way(&tried), "all of them have had their turn");
        let names: Vec<&str> = left[0].missing.iter().map(|slot| plan.variants[slot.variant].name.as_str()).collect();
        assert!(names.len() == 2 && names.contains(&"baseline") && names.contains(&"placebo"), "{names:?}");
        assert_eq!(left[0].order, all[1].order, "as it would have been");
    }

    #[test]
    fn without_a_number_of_rounds_the_order_does_not_depend_on_it() {
        let open = |rounds| {
            let mut plan = plan(rounds);
            plan.study.at_most = Some(Time::seconds(600.0));
            rounds_of(&plan)
        };
        fn rounds_of(plan: &Plan) -> Vec<Vec<usize>> {
            rounds(plan, 7, &[]).into_iter().map(|round| round.order).collect()
        }
        let all = open(200);
        assert_eq!((all.len(), &all[..30], &all[..7]), (200, &open(30)[..], &open(7)[..]));
        assert_eq!(all[..12], rounds_of(&plan(12))[..], "a study of 12 rounds can be gone on with until it is narrow");
        for stretch in all.chunks_exact(12) {
            let first = |variant| stretch.iter().filter(|order| order[0] == variant).count();
            assert_eq!([first(0), first(1), first(2)], [4, 4, 4]);
        }
    }

    #[test]
    fn another_attempt_is_the_whole_round_in_the_same_order() {
        let plan = plan(1);
        let first = rounds(&plan, 7, &[]).remove(0);
        let second = first.again();
        assert_eq!((second.attempt, &second.order), (2, &first.order));
        assert_eq!(second.missing.iter().map(|slot| slot.variant).collect::<Vec<_>>(), first.order);
        // A study that was interrupted in it goes on with it, though the first attempt is whole.
        let mut done: Vec<RunRecord> = ["baseline", "placebo", "otel"].map(|name| run(1, 1, name)).into();
        done.push(run(1, 2, "otel"));
        let left = rounds(&plan, 7, &done).remove(0);
        assert_eq!((left.attempt, left.missing.len()), (2, 2));
        assert!(left.missing.iter().all(|slot| slot.attempt == 2));
    }
}
