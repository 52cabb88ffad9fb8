//! Rounds that are done again. Pure: what the machine did in, yes or no out.
//!
//! The grounds are the machine's alone (steal, other processes), never a variant's numbers, and the *whole* round is done
//! again: what a variant makes the kernel do on its behalf may count as somebody else's, so that single runs, picked by it, would
//! be picked by variant. How often is limited, because on a machine that is always busy it does not help.

use std::collections::BTreeSet;

use unladen_journal::notices::{LoadNotice, MIN_ROUNDS, Notice, RoundsNotice};
use unladen_journal::record::{Design, RunRecord};
use unladen_study::spec::Study;

use super::checks;
use super::schedule::Round;

/// How often a round is attempted at most.
const ATTEMPTS: u32 = 3;

/// What has been used of the allowance.
#[derive(Debug)]
pub(super) struct Repeats<'a> {
    study: &'a Study,
    used: u32,
    /// So many rounds of the journal are one of the study: see `groups`.
    parts: u32,
}

impl<'a> Repeats<'a> {
    /// Of a study of which so much has been done; so many rounds of the journal are one of its.
    pub(super) fn new(study: &'a Study, parts: u32, done: &[RunRecord]) -> Self {
        let used: BTreeSet<(u32, u32)> =
            done.iter().filter(|run| run.attempt > 1).map(|run| (run.round, run.attempt)).collect();
        Self { study, used: u32::try_from(used.len()).unwrap_or(u32::MAX), parts }
    }

    /// How often rounds may be done again, as seen from one of them: where nobody knows how many there will be, of those so far.
    fn allowed(&self, round: &Round) -> u32 {
        let open = self.study.is_open_ended();
        let all = self.study.rounds * self.parts;
        let rounds = if open { round.number.max(MIN_ROUNDS).min(all) } else { all };
        self.study.repeat.allowance(rounds)
    }

    /// Why the round is to be done again, judged by its runs so far, whichever variant they are of; takes it from the allowance.
    pub(super) fn grant(&mut self, round: &Round, runs: &[RunRecord]) -> Option<Notice> {
        if self.used >= self.allowed(round) || round.attempt >= ATTEMPTS {
            return None;
        }
        let of_round = runs.iter().filter(|run| run.round == round.number && run.attempt == round.attempt);
        let mut reasons = of_round.filter_map(|run| match &run.void {
            None => checks::disturbed(run, &self.study.repeat),
            // A run of an alternating round cannot be done again by itself.
            Some(void) => (run.design == Design::Alternating && is_the_machines(void)).then(|| void.clone()),
        });
        let reason = reasons.next()?;
        self.used += 1;
        Some(reason)
    }
}

/// Whether a run is void because the machine kept the generator from its schedule.
fn is_the_machines(void: &Notice) -> bool {
    matches!(void, Notice::Load(LoadNotice::GeneratorLate { .. }) | Notice::Rounds(RoundsNotice::BlocksLost { .. }))
}

#[cfg(test)]
mod tests {
    use unladen_journal::record::{HostWindow, Phases};
    use unladen_study::spec::Load;

    use super::*;

    /// A run of 2 s on two cores, of which others took so many seconds.
    fn run(round: u32, attempt: u32, others_s: f64, steal_s: f64) -> RunRecord {
        RunRecord {
            round,
            attempt,
            phases: Phases { window_s: 2.0, ..Phases::default() },
            host: HostWindow { cores: 2, others_s, steal_s, ..HostWindow::default() },
            ..RunRecord::empty()
        }
    }

    fn round(number: u32, attempt: u32) -> Round {
        Round { number, attempt, order: Vec::new(), missing: Vec::new() }
    }

    #[test]
    fn disturbed_rounds_are_done_again_as_long_as_the_allowance_lasts() {
        let study = Study { rounds: 6, ..Study::new("x", Load::new("http://localhost/")) };
        let quiet = [run(1, 1, 0.39, 0.07), run(1, 1, 0.0, 0.0)];
        let others = [run(1, 1, 0.0, 0.0), run(1, 1, 0.41, 0.0), run(2, 1, 0.0, 0.0)];
        let mut repeats = Repeats::new(&study, 1, &[]);
        assert_eq!(repeats.grant(&round(1, 1), &quiet), None);
        assert!(matches!(repeats.grant(&round(1, 1), &others), Some(Notice::OthersBusy { percent }) if percent > 10.0));
        assert_eq!(repeats.grant(&round(2, 1), &others), None, "another round's run");
        assert_eq!(repeats.grant(&round(1, 2), &others), None, "another attempt's run");
        assert!(matches!(repeats.grant(&round(2, 1), &[run(2, 1, 0.0, 0.1)]), Some(Notice::Steal { .. })));
        assert_eq!(repeats.grant(&round(3, 1), &[run(3, 1, 2.0, 0.0)]), None, "two of six, not more");
    }

    #[test]
    fn what_was_repeated_before_counts_and_no_round_is_attempted_for_ever() {
        let study = Study { rounds: 12, ..Study::new("x", Load::new("http://localhost/")) };
        let done = [run(1, 1, 1.0, 0.0), run(1, 2, 1.0, 0.0), run(1, 2, 1.0, 0.0), run(1, 3, 1.0, 0.0)];
        let mut repeats = Repeats::new(&study, 1, &done);
        assert_eq!(repeats.used, 2);
        assert_eq!(repeats.grant(&round(1, 3), &done), None, "three attempts are enough");
        assert_eq!(repeats.used, 2);
    }

    #[test]
    fn where_nobody_knows_how_many_rounds_there_will_be_the_allowance_grows_with_them() {
        let at_most = Some(unladen_journal::units::Time::seconds(600.0));
        let study = Study { rounds: 200, at_most, ..Study::new("x", Load::new("http://localhost/")) };
        let mut repeats = Repeats::new(&study, 1, &[]);
        let mut granted = |number| repeats.grant(&round(number, 1), &[run(number, 1, 1.0, 0.0)]).is_some();
        assert_eq!([1, 2, 3, 8, 9, 10].map(&mut granted), [true, true, false, false, true, false]);
    }
}
