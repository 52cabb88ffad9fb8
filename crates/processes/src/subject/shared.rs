//! What a launcher and its running processes share: the study's groups, its guard, and the end of both.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::cgroups::Cgroups;
use super::container::engine::{Engine, socket};
use super::container::error::ContainerError;
use super::guard::Guard;
#[cfg(feature = "kubernetes")]
use super::kubernetes::Clusters;
use super::reaper;
use unladen_linux::process;
use unladen_linux::tree::MARK;

/// What a launcher and its running processes share.
#[derive(Debug)]
pub(super) struct Shared {
    /// `<pid>-<random>`: names the study's groups, starts its marks.
    pub(super) id: String,
    pub(super) cgroups: Option<Cgroups>,
    pub(super) guard: Guard,
    /// The container engine, once a service has asked for it.
    engine: Mutex<Option<Arc<Engine>>>,
    /// Label of what lives as long as the study, once there is something.
    kept: Mutex<Option<String>>,
    /// What is in clusters.
    #[cfg(feature = "kubernetes")]
    pub(super) clusters: Clusters,
    started: AtomicU32,
    closed: AtomicBool,
}

impl Shared {
    /// Of a study with this id, whose groups and guard are there.
    pub(super) fn new(id: String, cgroups: Option<Cgroups>, guard: Guard) -> Self {
        let (engine, kept) = (Mutex::new(None), Mutex::new(None));
        Self {
            id,
            cgroups,
            guard,
            engine,
            kept,
            #[cfg(feature = "kubernetes")]
            clusters: Clusters::default(),
            started: AtomicU32::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// What marks begin with, different for everything that is started.
    pub(super) fn next_mark(&self) -> String {
        format!("{}/{}", self.id, self.started.fetch_add(1, Ordering::Relaxed))
    }

    /// The container engine of this machine, asked for when a service first needs it.
    pub(super) fn engine(&self) -> Result<Arc<Engine>, ContainerError> {
        let mut known = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = &*known {
            return Ok(Arc::clone(engine));
        }
        let engine = Arc::new(Engine::connect(&socket()?)?);
        Ok(Arc::clone(known.insert(engine)))
    }

    /// Sees to it that what has this label goes with the study; returns its value.
    pub(super) fn keep(&self, engine: &Engine, label: &str) -> String {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = format!("{label}={}", self.id);
        if kept.as_ref() != Some(&wanted) {
            self.guard.labelled(engine.socket(), &wanted);
            *kept = Some(wanted);
        }
        self.id.clone()
    }

    fn remove_kept(&self) -> io::Result<()> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*kept, &*engine) {
            (Some(label), Some(engine)) => engine.remove_labelled(label).map_err(io::Error::other),
            _ => Ok(()),
        }
    }

    /// Kills what is left of the study anywhere, and reaps it.
    pub(super) fn close(&self) -> io::Result<()> {
        if self.closed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let outcome = self.cgroups.as_ref().map_or(Ok(()), Cgroups::remove);
        let prefix = format!("{}/", self.id);
        for stat in process::all() {
            if stat.is_alive() && process::environment_starts(stat.pid, MARK, &prefix) {
                let _ = stat.identity().signal(rustix::process::Signal::KILL);
            }
        }
        if self.cgroups.is_none() {
            reaper::kill_unmarked_orphans();
        }
        reaper::reap_orphans();
        outcome.and(self.remove_kept())?;
        #[cfg(feature = "kubernetes")]
        self.clusters.close(&self.guard).map_err(io::Error::other)?;
        self.guard.goodbye();
        Ok(())
    }
}
