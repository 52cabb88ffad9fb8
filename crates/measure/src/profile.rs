//! Extra runs in which the subject is sampled, one per variant, after those that are measured: under the same load, for the
//! same window. Sampling costs something, so nothing of these runs goes into the journal.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use unladen_journal::profile::{self, Profiles, ServiceProfile};
use unladen_journal::record::VariantKind;
use unladen_journal::role::Role;
use unladen_processes::profile::{ProfileError, Sampling, Stacks, Subject};
use unladen_study::plan::Plan;

use super::folder::RunFolder;
use super::one::{Run, RunningService, stop_all};
use super::schedule::Slot;
use super::setup::Setup;
use super::watch::Watcher;
use super::{RunError, start_shared};

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
    let mut shared = start_shared(&setup, interrupted)?;
    let mut all = Vec::new();
    let result = (0..).zip(&plan.variants).filter(|(_, variant)| variant.kind != VariantKind::Placebo).try_for_each(
        |(number, variant)| {
            let mut profiler = Profiler { async_profiler: async_profiler.clone(), ..Profiler::default() };
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

/// Samples the subjects of one run.
#[derive(Debug, Default)]
pub(super) struct Profiler {
    async_profiler: Option<PathBuf>,
    under_way: Vec<(String, Sampling)>,
    stacks: Vec<(String, Stacks)>,
    failures: Vec<String>,
}

impl Profiler {
    /// Starts, at the beginning of the window.
    pub(super) fn begin(&mut self, services: &[RunningService], window: Duration, folder: &Path) {
        for service in services.iter().filter(|service| service.process.role == Role::Subject) {
            let name = service.process.service.clone();
            let pids = service.running.family().members().iter().map(|stat| stat.pid).collect();
            let subject = Subject {
                service: name.clone(),
                pids,
                pprof: service.process.pprof.clone(),
                network: service.network.clone(),
            };
            match Sampling::begin(&subject, self.async_profiler.as_deref(), window, folder) {
                Ok(sampling) => self.under_way.push((name, sampling)),
                Err(error) => self.failed(&error),
            }
        }
    }

    /// Ends, when the load has ended and the services still run.
    pub(super) fn end(&mut self) {
        for (service, sampling) in std::mem::take(&mut self.under_way) {
            match sampling.end() {
                Ok(stacks) => self.stacks.push((service, stacks)),
                Err(error) => self.failed(&error),
            }
        }
    }

    fn failed(&mut self, error: &ProfileError) {
        let text = error.to_string();
        // Replicas fail for the same reason.
        if !self.failures.contains(&text) {
            self.failures.push(text);
        }
    }

    /// Writes the stacks of every service into the run folder at `dir`.
    fn finish(self, variant: &str, requests: u64, dir: &Path) -> Result<Profiles, RunError> {
        let mut services: BTreeMap<String, Stacks> = BTreeMap::new();
        for (service, stacks) in self.stacks {
            match services.get_mut(&service) {
                Some(known) => {
                    let _ = write!(known.folded, "{}", stacks.folded);
                }
                None => {
                    services.insert(service, stacks);
                }
            }
        }
        let folder = profile::folder(variant);
        let unwritten = |path: PathBuf| move |source| super::folder::FolderError::Write { path, source };
        std::fs::create_dir_all(dir.join(&folder)).map_err(unwritten(dir.join(&folder)))?;
        let mut profiles =
            Profiles { variant: variant.to_owned(), requests, services: Vec::new(), failures: self.failures };
        for (service, stacks) in services {
            let file = format!("{folder}/{service}.folded");
            std::fs::write(dir.join(&file), &stacks.folded).map_err(unwritten(dir.join(&file)))?;
            let (profiler, period_us) = (stacks.profiler.to_owned(), stacks.period_us);
            profiles.services.push(ServiceProfile { service, profiler, period_us, file });
        }
        profile::write(dir, &profiles).map_err(unwritten(dir.join(folder)))?;
        Ok(profiles)
    }
}
