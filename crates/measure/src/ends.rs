//! When a study ends that no number of rounds ends: narrow enough, out of time, or at the most rounds that it may have.
//!
//! Asked between whole rounds. The clock is here; how narrow the intervals are is the judge's to say, who is asked for it.

use std::time::{Duration, Instant};

use unladen_journal::notices::{Look, MIN_ROUNDS, Stopped, StoppedBy};
use unladen_journal::record::RunRecord;
use unladen_study::plan::Plan;

use super::watch::{Step, Watcher};

/// Who tells from all runs so far how far the study has come.
pub type Judge<'a> = dyn FnMut(&[RunRecord]) -> Look + 'a;

/// So many attempts at a round tell how long another one takes: what disturbed an earlier one may have gone.
const RECENT: usize = 3;

/// What ends a study.
pub(super) struct Ends<'a> {
    plan: &'a Plan,
    /// When unladen began with it.
    began: Instant,
    judge: &'a mut Judge<'a>,
    /// How long the last attempts at a round took in this session, the last one last.
    took: Vec<Duration>,
    /// So many rounds of the journal are one of the study: see `groups`.
    pub(super) parts: u32,
}

impl<'a> Ends<'a> {
    pub(super) fn new(plan: &'a Plan, began: Instant, judge: &'a mut Judge<'a>) -> Self {
        Self { plan, began, judge, took: Vec::new(), parts: 1 }
    }

    /// An attempt at a round took so long.
    pub(super) fn took(&mut self, time: Duration) {
        self.took.push(time);
        self.took.drain(..self.took.len().saturating_sub(RECENT));
    }

    /// What another attempt will take at most, if it is like the last ones; `None` before the first.
    fn attempt_s(&self) -> Option<f64> {
        self.took.iter().max().map(Duration::as_secs_f64)
    }

    /// Whether another round is likely to end in time. The first of a session is always begun: without any run there is nothing
    /// to report.
    fn has_time(&self) -> bool {
        self.has_time_for(1)
    }

    /// Whether there is time to do a round again, which must not cost the rounds without which there is no interval.
    pub(super) fn has_time_again(&self, round: u32) -> bool {
        self.has_time_for(1 + (MIN_ROUNDS * self.parts).saturating_sub(round))
    }

    fn has_time_for(&self, attempts: u32) -> bool {
        let needed = self.attempt_s().map(|attempt| attempt * f64::from(attempts));
        needed.is_none_or(|needed| self.seconds_left().is_none_or(|left| left >= needed))
    }

    fn seconds_left(&self) -> Option<f64> {
        Some(self.plan.study.at_most?.as_seconds() - self.began.elapsed().as_secs_f64())
    }

    /// Whether a round of the journal is the last one of a round of the study.
    pub(super) fn is_whole(&self, round: u32) -> bool {
        round.is_multiple_of(self.parts)
    }

    /// Why no round is to follow these runs; `None`: go on. `is_last`: the study may have no more.
    pub(super) fn reached(&mut self, done: &[RunRecord], is_last: bool, watcher: &mut dyn Watcher) -> Option<Stopped> {
        if !self.plan.study.is_open_ended() {
            return None;
        }
        let look = (self.judge)(done);
        let by = match () {
            () if look.is_enough() => StoppedBy::Width,
            () if is_last => StoppedBy::Rounds,
            () if !self.has_time() => StoppedBy::Time,
            () => {
                watcher.see(Step::Look { look: &look, runs: self.runs_left(&look) });
                return None;
            }
        };
        let stopped = Stopped { by, at_most_s: self.plan.study.at_most.map(|time| time.as_seconds()), look };
        watcher.see(Step::Stopped(&stopped));
        Some(stopped)
    }

    /// About how many runs are to come after so many, before the judge has been asked.
    pub(super) fn runs_left_after(&self, runs: usize) -> usize {
        let rounds = runs.checked_div(self.plan.variants.len()).and_then(|rounds| u32::try_from(rounds).ok());
        self.runs_left(&Look { rounds: rounds.unwrap_or(0), ..Look::default() })
    }

    /// About how many runs are still to come.
    fn runs_left(&self, look: &Look) -> usize {
        let study = &self.plan.study;
        let variants = self.plan.variants.len();
        let round_s = self.attempt_s().unwrap_or_else(|| study.seconds_of(variants));
        let in_time = self.seconds_left().map(|left| left / round_s / f64::from(self.parts));
        rounds_left(look, study.rounds, !study.until.is_empty(), in_time) * variants
    }
}

/// About how many rounds are still to come, at least one. `in_time`: so many fit into the time that is left.
fn rounds_left(look: &Look, most: u32, is_until: bool, in_time: Option<f64>) -> usize {
    let total = match look.rounds_needed {
        Some(needed) => needed.min(most),
        None if is_until && look.rounds < MIN_ROUNDS => MIN_ROUNDS.min(most),
        None => most,
    };
    let left = total.saturating_sub(look.rounds);
    let in_time = in_time.map_or(u32::MAX, |rounds| rounds.max(0.0) as u32);
    left.min(in_time).max(1) as usize
}

#[cfg(test)]
mod tests {
    use unladen_journal::notices::Precision;
    use unladen_journal::units::Time;
    use unladen_study::plan::PlannedVariant;
    use unladen_study::spec::{Load, Study};

    use super::*;
    use crate::watch::NoWatcher;

    fn plan(until: bool, at_most: Option<f64>) -> Plan {
        let mut study = Study::new("x", Load::new("http://localhost/"));
        study.rounds = 200;
        study.at_most = at_most.map(Time::seconds);
        if until {
            study.until.insert("cpu_per_request".into(), "1%".into());
        }
        Plan {
            study,
            dir: std::path::PathBuf::new(),
            variants: ["baseline", "placebo", "otel"].map(PlannedVariant::empty).into(),
        }
    }

    fn look(rounds: u32, is_enough: bool) -> Look {
        let precisions = vec![Precision { is_enough, ..Precision::default() }];
        Look { rounds, precisions, rounds_needed: Some(30), ..Look::default() }
    }

    #[test]
    fn what_comes_first_ends_it() {
        let open = plan(true, Some(60.0));
        let long_ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).expect("it is up for longer");
        let ended = |seconds, is_enough, is_last| {
            let mut judge = |_: &[RunRecord]| look(7, is_enough);
            let mut ends = Ends::new(&open, long_ago(seconds), &mut judge);
            [30, 8, 10, 8].into_iter().for_each(|seconds| ends.took(Duration::from_secs(seconds)));
            ends.reached(&[], is_last, &mut NoWatcher).map(|it| it.by)
        };
        assert_eq!(ended(45, false, false), None);
        assert_eq!(ended(51, false, false), Some(StoppedBy::Time), "the longest of the last rounds does not fit");
        assert_eq!(ended(51, true, true), Some(StoppedBy::Width));
        assert_eq!(ended(51, false, true), Some(StoppedBy::Rounds));
    }

    #[test]
    fn no_round_is_done_again_at_the_price_of_an_interval() {
        let open = plan(false, Some(60.0));
        let mut judge = |_: &[RunRecord]| look(1, false);
        let mut ends = Ends::new(&open, Instant::now(), &mut judge);
        ends.took(Duration::from_secs(9));
        // Six attempts fit into the minute, not seven.
        assert_eq!([0, 1, 2, 6, 9].map(|round| ends.has_time_again(round)), [false, true, true, true, true]);
        let mut judge = |_: &[RunRecord]| look(1, false);
        assert!(Ends::new(&plan(true, None), Instant::now(), &mut judge).has_time_again(1), "there is no limit");
    }

    #[test]
    fn a_session_begins_one_round_at_least_and_a_fixed_study_is_not_looked_at() {
        let open = plan(false, Some(0.001));
        let mut judge = |_: &[RunRecord]| look(0, false);
        let mut ends = Ends::new(&open, Instant::now(), &mut judge);
        assert!(ends.has_time());
        ends.took(Duration::from_secs(1));
        assert!(!ends.has_time());
        let fixed = plan(false, None);
        let mut judge = |_: &[RunRecord]| unreachable!("nobody asked for it");
        assert_eq!(Ends::new(&fixed, Instant::now(), &mut judge).reached(&[], true, &mut NoWatcher), None);
    }

    #[test]
    fn what_is_left_is_what_the_width_needs_within_time_and_rounds() {
        let unknown = |rounds| Look { rounds, ..Look::default() };
        assert_eq!(rounds_left(&look(7, false), 200, true, None), 23);
        assert_eq!(rounds_left(&look(7, false), 20, true, None), 13);
        assert_eq!(rounds_left(&look(7, false), 200, true, Some(4.7)), 4);
        assert_eq!(rounds_left(&unknown(2), 200, true, None), 4, "six are sure");
        assert_eq!(rounds_left(&unknown(8), 200, true, None), 192);
        assert_eq!(rounds_left(&unknown(2), 200, false, Some(9.5)), 9);
        assert_eq!(rounds_left(&unknown(2), 200, false, Some(-1.0)), 1);
    }
}
