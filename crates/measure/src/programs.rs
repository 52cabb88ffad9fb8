//! Programs of the study that run to their end: the driver of the load, what sets a run up, what checks it.

use std::path::Path;
use std::time::{Duration, Instant};

use unladen_journal::notices::Notice;
use unladen_journal::record::RunRecord;
use unladen_journal::role::Role;
use unladen_processes::subject::Ended;
use unladen_study::plan::Process;

use super::error::RunError;
use super::reported_numbers::{self, ReportedNumbers};
use super::run::{Run, RunContext};
use super::setup::Site;

/// How often it is looked whether a program has ended: what its time is exact to.
const LOOK: Duration = Duration::from_millis(1);
/// How often everything else is looked at meanwhile.
const LOOK_AROUND: Duration = Duration::from_millis(20);
/// Lines of its output that are searched for numbers.
const TAIL: usize = 200;
/// Lines of its output that a notice quotes.
const LAST_WORDS: usize = 5;

/// How a program came to its end.
#[derive(Debug)]
pub(super) enum End {
    /// By itself.
    Itself(Ended),
    /// It was stopped: its time was up.
    TimeIsUp,
    /// It was stopped: something else has taken the run out.
    Void(Notice),
}

/// A program that has run.
#[derive(Debug)]
pub(super) struct FinishedProgram {
    /// Name of its service.
    service: String,
    pub(super) end: End,
    /// From its start to its end.
    pub(super) took: Duration,
    pub(super) last_words: String,
    reported: ReportedNumbers,
}

impl FinishedProgram {
    /// Whether it says by its exit code that all is well.
    pub(super) fn is_well(&self) -> bool {
        matches!(self.end, End::Itself(Ended::Exit(0)))
    }

    /// How it failed, in words.
    fn how(&self, at_most: Duration) -> String {
        match &self.end {
            End::Itself(ended) => ended.to_string(),
            End::TimeIsUp => format!("it was still running after {} s", at_most.as_secs_f64()),
            End::Void(notice) => notice.to_string(),
        }
    }

    /// Puts what it said of its work into the record.
    pub(super) fn report(self, record: &mut RunRecord) {
        let ReportedNumbers { numbers, unread } = self.reported;
        if let Some(line) = unread {
            record.notices.push(Notice::NumbersUnreadable { service: self.service.clone(), line: shortened(&line) });
        }
        if !numbers.is_empty() {
            record.reported_numbers.insert(self.service, numbers);
        }
    }

    /// Why a run for which a setup or a check failed does not count.
    fn failure(self, role: Role, at_most: Duration) -> Notice {
        let how = self.how(at_most);
        let (service, log_tail) = (self.service, self.last_words);
        match (self.end, role) {
            (End::Void(notice), _) => notice,
            (_, Role::Setup) => Notice::SetupFailed { service, how, log_tail },
            _ => Notice::CheckFailed { service, how, log_tail },
        }
    }
}

/// Enough of a line to know it again.
fn shortened(line: &str) -> String {
    line.chars().take(80).collect()
}

/// Starts a program and waits for its end, at most so long. `folder` is the run's, `run` its number; `meanwhile` is asked every 20 ms
/// and may end the waiting. What the program started and left running is ended with it.
///
/// # Errors
/// When it cannot be started or stopped, and what `meanwhile` says.
pub(super) fn to_its_end(
    setup: Site<'_>,
    program: &Process,
    (folder, run): (&Path, u32),
    at_most: Duration,
    mut meanwhile: impl FnMut() -> Result<Option<Notice>, RunError>,
) -> Result<FinishedProgram, RunError> {
    let (process, mut running) = setup.launch_program(program, folder, run)?;
    let deadline = Instant::now() + at_most;
    let mut wait = || -> Result<End, RunError> {
        let mut looked = Instant::now();
        loop {
            if let Some(ended) = running.alive() {
                return Ok(End::Itself(ended));
            }
            std::thread::sleep(LOOK);
            if looked.elapsed() < LOOK_AROUND {
                continue;
            }
            looked = Instant::now();
            if let Some(notice) = meanwhile()? {
                return Ok(End::Void(notice));
            }
            if looked > deadline {
                return Ok(End::TimeIsUp);
            }
        }
    };
    let end = wait();
    let took = running.started().elapsed();
    let stopped = running.stop(process.grace.0);
    let end = end?;
    stopped?;
    let reported = reported_numbers::read(&running.log_tail(TAIL));
    Ok(FinishedProgram { service: process.service, end, took, last_words: running.log_tail(LAST_WORDS), reported })
}

/// Runs what sets a run up where there is no run yet, as in a calibration: what is created must be there, what it says is not kept.
///
/// # Errors
/// When one of them fails, and what `meanwhile` says.
pub(super) fn set_up<'p>(
    setup: Site<'_>,
    programs: impl Iterator<Item = &'p Process>,
    place: (&Path, u32),
    mut meanwhile: impl FnMut() -> Result<(), RunError>,
) -> Result<(), RunError> {
    for program in programs {
        let at_most = program.at_most.0;
        let ran = to_its_end(setup, program, place, at_most, || meanwhile().map(|()| None))?;
        if !ran.is_well() {
            let notice = ran.failure(Role::Setup, at_most);
            return Err(RunError::NotSetUp { notice, folder: setup.folder.path().to_owned() });
        }
    }
    Ok(())
}

impl Run<'_> {
    /// Runs a program of the study's to its end while the services are looked after.
    pub(super) fn program(
        &mut self,
        context: &mut RunContext<'_>,
        program: &Process,
        at_most: Duration,
    ) -> Result<FinishedProgram, RunError> {
        let folder = context.folder.clone();
        let place = (folder.as_path(), self.number);
        to_its_end(self.setup, program, place, at_most, || {
            self.check_interrupted()?;
            context.sink.look(Duration::ZERO)?;
            Ok(self.died(context).or_else(|| context.expected.overdue()))
        })
    }

    /// Runs the programs of a role, one after the other, until one fails; the record then says which.
    pub(super) fn programs(&mut self, context: &mut RunContext<'_>, role: Role) -> Result<(), RunError> {
        for program in self.variant().programs(role) {
            let at_most = program.at_most.0;
            let ran = self.program(context, program, at_most)?;
            if !ran.is_well() {
                context.record.void = Some(ran.failure(role, at_most));
                break;
            }
            ran.report(&mut context.record);
        }
        Ok(())
    }
}
