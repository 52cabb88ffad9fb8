//! Extra runs in which the subject is sampled, one per variant, after those that are measured: under the same load, for the
//! same window. Sampling costs something, so nothing of these runs goes into the journal.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use unladen_journal::profile::Profiles;
use unladen_journal::record::VariantKind;
use unladen_study::plan::Plan;

use super::error::RunError;
use super::folder::RunFolder;
use super::profiler::Profiler;
use super::run::Run;
use super::schedule::Slot;
use super::service::stop_all;
use super::setup::Setup;
use super::watch::Watcher;

/// Numbers of these runs, which no measured one ever has: the ids of their traces depend on them.
const NUMBERS_FROM: u32 = 1_000_000;

/// Samples the subject in every variant and leaves the stacks in the run folder. Services that cannot be sampled are told
/// and left out.
///
/// # Errors
/// When a variant cannot be run.
pub fn profiles(
    plan: &Plan,
    folder: &RunFolder,
    seed: u64,
    async_profiler: Option<PathBuf>,
    interrupted: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<Vec<Profiles>, RunError> {
    let setup = Setup::new(plan, folder, seed, 1)?;
    let mut shared = setup.start_shared(interrupted)?;
    let mut all = Vec::new();
    let result = (0..).zip(&plan.variants).filter(|(_, variant)| variant.kind != VariantKind::Placebo).try_for_each(
        |(number, variant)| {
            let mut profiler = Profiler::new(async_profiler.clone());
            let slot = Slot { round: 0, slot: 0, attempt: 1, variant: number as usize };
            let number = NUMBERS_FROM + number;
            let record = Run {
                setup: setup.site(0),
                shared: &mut shared,
                slot,
                number,
                interrupted,
                profiler: Some(&mut profiler),
            }
            .perform(watcher)?;
            let requests = record.load.map_or(0, |load| load.completed_in_window);
            let profiles = profiler.finish(&variant.name, requests, folder.path())?;
            all.push(profiles);
            Ok(())
        },
    );
    let stopped = stop_all(&mut shared);
    drop(shared);
    let closed = setup.launcher.close().map_err(RunError::LeftOver);
    result.and(stopped.map(drop).map_err(RunError::from)).and(closed).map(|()| all)
}
