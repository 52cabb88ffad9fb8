//! Samples the subjects of one run over its window.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unladen_journal::profile::{self, Profiles, ServiceProfile};
use unladen_journal::role::Role;
use unladen_probe::profile::{ProfileError, Sampling, Stacks, Subject};
use unladen_processes::subject::launch::file_name;

use super::error::RunError;
use super::folder::FolderError;
use super::service::RunningService;

/// Samples the subjects of one run.
#[derive(Debug, Default)]
pub(super) struct Profiler {
    async_profiler: Option<PathBuf>,
    under_way: Vec<(String, Sampling)>,
    stacks: Vec<(String, Stacks)>,
    failures: Vec<String>,
}

impl Profiler {
    /// With async-profiler's library as the user has named it.
    pub(super) fn new(async_profiler: Option<PathBuf>) -> Self {
        Self { async_profiler, ..Self::default() }
    }

    /// Starts, at the beginning of the window.
    pub(super) fn begin(&mut self, services: &[RunningService], window: Duration, folder: &Path) {
        for service in services.iter().filter(|service| service.process.role == Role::Subject) {
            let name = file_name(&service.process.service);
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
    pub(super) fn finish(self, variant: &str, requests: u64, dir: &Path) -> Result<Profiles, RunError> {
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
        let unwritten = |path: PathBuf| move |source| FolderError::Write { path, source };
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
