#![doc = include_str!("../README.md")]

mod after;
mod agents;
mod blocks;
mod builds;
mod calibration;
pub mod checks;
mod compose;
mod configs;
mod design;
pub mod ends;
mod error;
mod expected;
pub mod folder;
pub mod groups;
mod heat;
pub mod host;
mod instrument;
pub mod kubernetes;
pub mod ledger;
pub mod load_plan;
mod one;
pub mod ports;
mod preheat;
pub mod profile;
mod profiler;
mod programs;
mod queries;
mod recovery;
mod repeats;
mod reported_losses;
mod reported_numbers;
mod round;
mod run;
pub mod schedule;
mod sent_from;
mod service;
mod session;
mod setup;
mod stack;
mod stop;
mod took;
pub mod turns;
pub mod watch;
mod window;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use unladen_journal::read::Lines;
use unladen_journal::record::{Design, RunRecord};
use unladen_journal::write::Journal;
use unladen_linux::Awake;
use unladen_study::mask::masked;
use unladen_study::measured::{self, Measured};
use unladen_study::plan::{Plan, PlannedVariant};
use unladen_study::spec::Study;
use unladen_study::write::resolved_yaml;

use self::ends::{Ends, Judge};
pub use self::error::RunError;
use self::folder::RunFolder;
pub use self::folder::{HOST_FILE, STUDY_FILE};
use self::host::{Host, Setting};
use self::service::stop_all;
use self::session::Session;
use self::setup::Setup;
use self::watch::Watcher;

/// Runs what the journal in `folder` does not hold yet. The folder holds a valid study at every moment. `judge` is asked between rounds
/// how far the study has come, if something else than a number of rounds ends it.
///
/// # Errors
/// When the study cannot go on. What was measured until then is in the journal.
pub fn study(
    plan: &Plan,
    folder: &RunFolder,
    seed: u64,
    interrupted: &AtomicBool,
    judge: &mut Judge<'_>,
    watcher: &mut dyn Watcher,
) -> Result<(), RunError> {
    runs(plan, folder, seed, interrupted, judge, watcher).map_err(|error| match error {
        RunError::Interrupted => error,
        error if folder.is_full() => RunError::Full { folder: folder.path().to_owned(), source: Box::new(error) },
        error => error,
    })
}

fn runs(
    plan: &Plan,
    folder: &RunFolder,
    seed: u64,
    interrupted: &AtomicBool,
    judge: &mut Judge<'_>,
    watcher: &mut dyn Watcher,
) -> Result<(), RunError> {
    let mut ends = Ends::new(plan, Instant::now(), judge);
    // Before the setup, which comes to refer to it.
    let calibrated = OnceCell::new();
    let before = reopen(plan, folder)?;
    let is_new = before.is_none();
    let Lines { runs: mut done, calibrations, .. } = before.unwrap_or_default();
    let mut choice = design::choose(plan).after(plan, &done);
    let mut setup = Setup::new(plan, folder, seed, choice.alive())?;
    if is_new {
        describe(plan, folder, seed, &setup)?;
    }
    if choice.design == Design::Alternating {
        choice = choice.unless(setup.keep_apart());
    }
    let mut journal = Journal::open(folder.path())?;
    recovery::finish_torn(folder.path(), &journaled(&done), watcher);
    build(&setup, interrupted, watcher)?;
    look_for_agents(&setup)?;

    let number = recovery::highest(folder.path()).max(done.iter().map(|run| run.run).max().unwrap_or(0));
    let mut shared = setup.start_shared(interrupted)?;
    let mut known = calibrations.clone();
    let learned = setup.start_load_pods(interrupted).and_then(|()| {
        calibration::calibrate(&setup, calibrations, interrupted, watcher, |calibration| {
            known.push(calibration.clone());
            Ok(journal.append_calibration(calibration)?)
        })
    });
    let result = learned.and_then(|learned| {
        (setup.plan, setup.calibrations) = (calibrated.get_or_init(|| learned), known);
        let study = &plan.study;
        let awake = (study.keep_awake && study.on.is_this_machine()).then(Awake::keep).flatten();
        let (setup, shared, journal) = (&setup, &mut shared[..], &mut journal);
        Session { setup, choice, shared, journal, interrupted, awake, ballast: None, number, done: &mut done }
            .rounds(seed, &mut ends, watcher)
    });
    let stopped = stop_all(&mut shared);
    drop(shared);
    let closed = setup.launcher.close().map_err(RunError::LeftOver);
    if result.is_err() {
        recovery::finish_torn(folder.path(), &journaled(&done), watcher);
    }
    // The first error is the one to tell.
    result.and(stopped.map(drop).map_err(RunError::from)).and(closed)
}

/// Reads the journal of a study that goes on, perhaps until something else ends it; `None`: it is new.
fn reopen(plan: &Plan, folder: &RunFolder) -> Result<Option<Lines>, RunError> {
    if !folder.path().join(STUDY_FILE).exists() {
        return Ok(None);
    }
    let Measured { mut study, runs, calibrations, notices, .. } = measured::read(folder.path())?;
    let ends = |study: &Study| (study.until.clone(), study.at_most);
    if ends(&study) != ends(&plan.study) {
        // The judge goes by what stands in the folder.
        (study.until, study.at_most) = ends(&plan.study);
        study.rounds = plan.study.rounds;
        folder.write(STUDY_FILE, &resolved_yaml(&study))?;
    }
    Ok(Some(Lines { runs, calibrations, notices }))
}

/// Writes `study.yaml` and `host.json` of a new study.
fn describe(plan: &Plan, folder: &RunFolder, seed: u64, setup: &Setup<'_>) -> Result<(), RunError> {
    let host = Host::describe(Setting {
        seed,
        study_dir: plan.dir.display().to_string(),
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        cores: (setup.partition.subject.to_string(), setup.partition.instrument.to_string(), setup.partition.apart),
        ports: setup.ports(),
        cgroup: setup.cgroups(),
    });
    let mut study = masked(&plan.study);
    // What was chosen of them is applied. The others may not fit what the command line has changed, and would stop `--resume`.
    study.profiles.clear();
    // The study last: a folder with a study.yaml is a folder that can be gone on with.
    folder.write(HOST_FILE, &serde_json::to_string_pretty(&host).unwrap_or_default())?;
    Ok(folder.write(STUDY_FILE, &resolved_yaml(&study))?)
}

/// Builds what the variants need.
fn build(setup: &Setup<'_>, interrupted: &AtomicBool, watcher: &mut dyn Watcher) -> Result<(), RunError> {
    let mut processes = Vec::new();
    for process in setup.plan.variants.iter().flat_map(|variant| &variant.processes) {
        if process.build.is_some() {
            // A build belongs to no run. A service that is told the folder of its run is built all the same.
            processes.push(setup.site(0).resolve(process, setup.folder.path())?);
        }
    }
    Ok(builds::run(&processes, setup.folder.path(), interrupted, watcher)?)
}

/// Looks for the agents that the variants' services run under. A build may have brought them.
fn look_for_agents(setup: &Setup<'_>) -> Result<(), RunError> {
    for process in setup.plan.variants.iter().flat_map(PlannedVariant::fresh).filter(|it| it.agent.is_some()) {
        agents::check(&setup.site(0).resolve(process, setup.folder.path())?)?;
    }
    Ok(())
}

/// Folders of the runs that are in the journal.
fn journaled(runs: &[RunRecord]) -> BTreeSet<String> {
    runs.iter().map(|run| run.dir.clone()).collect()
}
