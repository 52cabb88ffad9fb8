//! What belongs to a run: what it needs, what it holds while it is measured, and what was measured in its window. What is done with it
//! is in `one`, `window`, `programs` and `preheat`; `round` does it for several at the same time.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use unladen_journal::record::RunRecord;
use unladen_load::outcome::Outcome;
use unladen_probe::Observation;
use unladen_study::plan::PlannedVariant;

use super::error::RunError;
use super::expected::Expected;
use super::instrument::{RelayPart, SinkPart};
use super::profiler::Profiler;
use super::queries::{self, NumberQuery};
use super::schedule::Slot;
use super::service::RunningService;
use super::setup::{Site, TraceIds};
use super::stack::{Hosts, Started};
use super::watch::{Step, Watcher};

/// What a run needs besides the study's setup.
pub(super) struct Run<'a> {
    pub(super) setup: Site<'a>,
    pub(super) shared: &'a mut [RunningService],
    pub(super) slot: Slot,
    pub(super) number: u32,
    pub(super) interrupted: &'a AtomicBool,
    /// Samples the subjects over the window.
    pub(super) profiler: Option<&'a mut Profiler>,
}

/// What belongs to one run while it is measured.
pub(super) struct RunContext<'w> {
    /// Folder of the run.
    pub(super) folder: PathBuf,
    /// Its logs.
    pub(super) logs: PathBuf,
    /// Ids of the traces of the window.
    pub(super) ids: TraceIds,
    pub(super) sink: SinkPart,
    /// Takes services in a network of their own to what is outside.
    pub(super) relay: Option<RelayPart>,
    /// Services of the run.
    pub(super) services: Vec<RunningService>,
    /// The stack that some of them are in.
    pub(super) stack: Option<Started>,
    /// Where services are that have addresses of their own.
    pub(super) hosts: Hosts,
    pub(super) record: RunRecord,
    /// What services have yet to say.
    pub(super) expected: Expected,
    /// Numbers that the study asks for.
    pub(super) queries: Numbers,
    /// Requests with other trace ids, whose spans are no part of the ledger.
    pub(super) others: u64,
    pub(super) watcher: &'w Watched<'w>,
}

/// Who watches, for several runs at the same time.
pub(super) type Watched<'w> = RefCell<&'w mut dyn Watcher>;

impl RunContext<'_> {
    /// Asks agents once more what they lost.
    pub(super) fn ask_again(&mut self) {
        self.queries.losses.iter_mut().for_each(NumberQuery::ask_again);
    }

    /// Tells whoever watches.
    pub(super) fn see(&self, step: Step<'_>) {
        self.watcher.borrow_mut().see(step);
    }
}

impl<'a> Run<'a> {
    /// What is run.
    pub(super) fn variant(&self) -> &'a PlannedVariant {
        &self.setup.plan().variants[self.slot.variant]
    }

    /// An error if the user has interrupted the study.
    pub(super) fn check_interrupted(&self) -> Result<(), RunError> {
        if self.interrupted.load(Ordering::Relaxed) { Err(RunError::Interrupted) } else { Ok(()) }
    }
}

/// Numbers that the study asks for.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) backends: Vec<NumberQuery>,
    pub(super) losses: Vec<NumberQuery>,
}

impl Numbers {
    /// As they stand before the load.
    pub(super) fn before(setup: Site<'_>, variant: &PlannedVariant, hosts: &Hosts) -> Result<Self, RunError> {
        Ok(Self {
            backends: queries::backends(setup, variant, hosts)?,
            losses: queries::losses(setup, variant, hosts)?,
        })
    }
}

/// What was measured in the window.
#[derive(Debug, Default)]
pub(super) struct WindowResult {
    /// The generator's account. `None`: a driver did the work, or something ended; the record then says what.
    pub(super) outcome: Option<Outcome>,
    /// The probe's. `None`: there was no window.
    pub(super) observation: Option<Observation>,
}
