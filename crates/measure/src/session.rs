//! The rounds of a study, one after the other: every run into the journal, again what the machine disturbed.
//!
//! A run whose generator was late is done again by itself: it does not count, so nothing is picked. A round in which something
//! else took too much of the machine is done again whole (see `repeats`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use unladen_journal::notices::{LoadNotice, Notice, Severity};
use unladen_journal::record::{Design, RunRecord};
use unladen_journal::write::Journal;
use unladen_linux::{Awake, Ballast};
use unladen_probe::host::available_memory;

use super::design::{Choice, Turns, memory_reducer};
use super::ends::Ends;
use super::error::RunError;
use super::folder::RunFolder;
use super::repeats::Repeats;
use super::round as alternating;
use super::run::Run;
use super::schedule::{self, Round, Slot};
use super::service::RunningService;
use super::setup::Setup;
use super::watch::{Step, Watcher};

/// How often a run is done at most when its generator is late.
const ATTEMPTS: u32 = 3;

/// The runs of a study under way.
pub(super) struct Session<'s, 'p> {
    pub(super) setup: &'s Setup<'p>,
    pub(super) choice: Choice,
    pub(super) shared: &'s mut [RunningService],
    pub(super) journal: &'s mut Journal,
    pub(super) interrupted: &'s AtomicBool,
    /// Keeps CPUs awake, where that can be done.
    pub(super) awake: Option<Awake>,
    /// Held during a round, so that those that start first get no other memory than those that start last.
    pub(super) ballast: Option<Ballast>,
    /// Number of the last run.
    pub(super) number: u32,
    /// All runs, those of before too.
    pub(super) done: &'s mut Vec<RunRecord>,
}

impl Session<'_, '_> {
    /// Does what is missing of the rounds, until one of the ends is reached.
    pub(super) fn rounds(&mut self, seed: u64, ends: &mut Ends<'_>, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        let plan = self.setup.plan;
        let rounds = schedule::rounds(plan, &self.choice.groups, seed, self.done);
        let missing: usize = rounds.iter().map(|round| round.missing.len()).sum();
        let of_round: usize = self.choice.groups.iter().map(Vec::len).sum();
        let done = of_round * plan.study.rounds as usize - missing;
        let is_open_ended = plan.study.is_open_ended();
        ends.parts = self.groups();
        let runs = if is_open_ended { ends.runs_left_after(done) } else { missing };
        watcher.see(Step::Begin { runs, of: done + runs, load_s: plan.study.run_seconds(), is_open_ended });
        let mut repeats = Repeats::new(&plan.study, ends.parts, self.done);
        for mut round in rounds {
            // Of a round that was interrupted the rest comes first: looked at are whole rounds.
            if ends.is_whole(round.number - 1)
                && !round.is_under_way(self.done)
                && let Some(stopped) = ends.reached(self.done, false, watcher)
            {
                return Ok(self.journal.append_notice(&Notice::Stopped(stopped))?);
            }
            loop {
                let began = Instant::now();
                // What the round before gave back is in pieces: they are taken anew.
                self.ballast = None;
                if plan.study.ballast && plan.study.on.is_this_machine() {
                    self.ballast =
                        available_memory().and_then(|bytes| Ballast::take(&self.setup.partition.subject, bytes));
                }
                match self.choice.design {
                    Design::Separate => round.missing.iter().try_for_each(|slot| self.slot(*slot, watcher))?,
                    Design::Alternating => {
                        if !round.is_whole() {
                            // The runs of an alternating round belong together: what is left of one is done again with it.
                            round = round.again();
                        }
                        let collided = match self.together(&round, watcher) {
                            Err(RunError::Memory { fit, .. }) if self.choice.for_memory(plan, self.done, fit) => {
                                watcher.see(Step::LessAtOnce { fit, groups: self.choice.groups.len() });
                                // Nothing has been done yet: anew, with other groups.
                                return self.rounds(seed, ends, watcher);
                            }
                            Err(RunError::Subject(error)) => self.choice.collided(&plan.study, self.done, error)?,
                            other => other.map(|()| false)?,
                        };
                        let turns =
                            if collided { Turns::GivenUp } else { self.choice.look_at_turns(&plan.study, self.done) };
                        if turns != Turns::GoOn {
                            round = round.again();
                            let runs = round.missing.len();
                            watcher.see(match &turns {
                                Turns::Again(reason) => Step::Again { round: round.number, reason, runs },
                                _ => Step::TurnsGivenUp { reason: self.choice.reason(), runs },
                            });
                            continue;
                        }
                    }
                }
                ends.took(began.elapsed());
                let Some(reason) = repeats.grant(&round, self.done).filter(|_| ends.has_time_again(round.number))
                else {
                    break;
                };
                round = round.again();
                watcher.see(Step::Again { round: round.number, reason: &reason, runs: round.missing.len() });
            }
        }
        if let Some(stopped) = ends.reached(self.done, true, watcher) {
            self.journal.append_notice(&Notice::Stopped(stopped))?;
        }
        Ok(())
    }

    /// All runs of a round, alive at the same time.
    fn together(&mut self, round: &Round, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let (setup, interrupted, number) = (self.setup, self.interrupted, self.number + 1);
        let slots = &round.missing;
        self.number += u32::try_from(slots.len()).unwrap_or(u32::MAX);
        let block_s = self.choice.block_s(&setup.plan.study);
        let round = alternating::Round { setup, shared: &mut *self.shared, slots, number, block_s, interrupted };
        let mut records = round.perform(watcher)?;
        records.iter_mut().for_each(|record| self.sign(record));
        self.journal.append_round(&records)?;
        if self.done.is_empty()
            && let Some(notice) = memory_reducer(self.setup.plan)
        {
            self.journal.append_notice(&notice)?;
        }
        for record in records {
            watcher.see(Step::Done { record: &record, again: false });
            let stop = stop_on_death(&record, setup.folder);
            self.done.push(record);
            stop?;
        }
        Ok(())
    }

    /// Writes into a record what holds for all of its round.
    fn sign(&self, record: &mut RunRecord) {
        record.groups = self.groups();
        record.awake = self.awake.is_some();
        record.ballast = self.ballast.as_ref().map(Ballast::bytes);
    }

    fn groups(&self) -> u32 {
        u32::try_from(self.choice.groups.len()).unwrap_or(u32::MAX)
    }

    /// One run, until it counts or has been tried often enough.
    fn slot(&mut self, slot: Slot, watcher: &mut dyn Watcher) -> Result<(), RunError> {
        if self.setup.load_pods.is_some() {
            return Err(RunError::PartsAlternate { reason: self.choice.reason().to_owned() });
        }
        for attempt in 1..=ATTEMPTS {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            self.number += 1;
            let (setup, number, interrupted) = (self.setup, self.number, self.interrupted);
            let run =
                Run { setup: setup.site(0), shared: &mut *self.shared, slot, number, interrupted, profiler: None };
            let mut record = run.perform(watcher)?;
            record.notices.extend(self.choice.notice());
            self.sign(&mut record);
            self.journal.append(&record)?;
            let again = late(&record) && attempt < ATTEMPTS;
            watcher.see(Step::Done { record: &record, again });
            let stop = stop_on_death(&record, setup.folder);
            self.done.push(record);
            stop?;
            if !again {
                break;
            }
        }
        Ok(())
    }
}

/// Whether the run is void because the machine kept the generator from its schedule. That says nothing of the variant, so
/// the run is done again; all attempts are in the journal, and the first that counts is judged.
fn late(record: &RunRecord) -> bool {
    matches!(record.void, Some(Notice::Load(LoadNotice::GeneratorLate { .. })))
}

/// A service that ends while it is needed, or a program that cannot do its part, will do so again: the study stops, the user looks,
/// `--resume` goes on.
fn stop_on_death(record: &RunRecord, folder: &RunFolder) -> Result<(), RunError> {
    match &record.void {
        Some(
            notice @ (Notice::ServiceDied { .. }
            | Notice::Load(LoadNotice::LoadFailed { .. })
            | Notice::DriverFailed { .. }
            | Notice::SetupFailed { .. }),
        ) => {
            debug_assert_eq!(notice.severity(), Severity::Refusal);
            Err(RunError::Died { notice: notice.clone(), folder: folder.path().to_owned() })
        }
        _ => Ok(()),
    }
}
