//! What a study under way tells whoever watches it. Measuring does not depend on anybody watching.

use serde::{Deserialize, Serialize};
use unladen_journal::notices::{Look, Notice, Stopped};
use unladen_journal::record::{Calibration, RunRecord};
use unladen_load::outcome::Second;
use unladen_sink::{Recovered, SinkError};
use unladen_study::plan::PlannedVariant;

use super::schedule::Slot;

/// Something has happened.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// A build command starts.
    Building {
        /// Service.
        service: &'a str,
        /// Command, as one line.
        command: &'a str,
    },
    /// A variant's spans per request are about to be learned.
    Calibrating {
        /// Of which variant.
        variant: &'a PlannedVariant,
    },
    /// They are known.
    Calibrated {
        /// Of which variant.
        variant: &'a PlannedVariant,
        /// What was found.
        calibration: &'a Calibration,
    },
    /// Span files that a killed run had left torn are finished, or could not be.
    Recovered {
        /// Folder of the run, relative to the run folder.
        dir: &'a str,
        /// What was found.
        outcome: &'a Result<Recovered, SinkError>,
    },
    /// The runs begin: this many are to do, each about this long.
    Begin {
        /// Runs to do.
        runs: usize,
        /// Of so many in the whole study.
        of: usize,
        /// Seconds of load in each.
        load_s: f64,
        /// Whether something else than a number of rounds ends the study: then `runs` and `of` are what is expected so far.
        is_open_ended: bool,
    },
    /// Of a study that something else than a number of rounds ends: how far it has come, between two rounds.
    Look {
        /// How far.
        look: &'a Look,
        /// About so many runs are still to do.
        runs: usize,
    },
    /// Such a study has come to its end.
    Stopped(&'a Stopped),
    /// A run begins.
    Run {
        /// Which.
        slot: Slot,
        /// Of which variant.
        variant: &'a PlannedVariant,
    },
    /// All runs of a round go on together from now on: the load turns between them.
    Together {
        /// Number of the round.
        round: u32,
        /// Its runs.
        runs: usize,
    },
    /// A run, or a round, enters a phase.
    Phase(Phase),
    /// A second of the load has passed.
    Second(&'a Second),
    /// What the probe saw last: told once a second, after [`Step::Second`].
    Sample(&'a unladen_probe::Live),
    /// A round is done again, because the machine was disturbed in it.
    Again {
        /// Number of the round.
        round: u32,
        /// What disturbed it.
        reason: &'a Notice,
        /// Runs to do again.
        runs: usize,
    },
    /// The variants of the study do not take turns any more: a round was done again, with one after the other.
    TurnsGivenUp {
        /// Why.
        reason: &'a str,
        /// Runs to do again.
        runs: usize,
    },
    /// The memory does not suffice for all variants at the same time: the study begins anew, in groups or one after the other.
    LessAtOnce {
        /// For how many it suffices.
        fit: usize,
        /// Groups from now on, each with rounds of its own.
        groups: usize,
    },
    /// A run is in the journal.
    Done {
        /// What was measured.
        record: &'a RunRecord,
        /// Whether it is done again, because the machine disturbed it.
        again: bool,
    },
}

/// Phases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Processes start and get ready.
    Start,
    /// The study's own programs create what the load asks for.
    Setup,
    /// Load that is not measured.
    WarmUp,
    /// Load that is measured.
    Window,
    /// Load that is measured, on each variant of an alternating round alone.
    Alone,
    /// Waiting for late spans.
    Drain,
    /// The study's own programs look whether the run did what it should.
    Check,
    /// A closed loop, as fast as it goes.
    Saturation,
    /// Trials at constant rates.
    Capacity,
    /// Processes end.
    Stop,
}

impl Phase {
    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Start => "starting",
            Self::Setup => "setting up",
            Self::WarmUp => "warming up",
            Self::Window => "measuring",
            Self::Alone => "measuring each alone",
            Self::Drain => "waiting for spans",
            Self::Check => "checking",
            Self::Saturation => "saturating",
            Self::Capacity => "searching the capacity",
            Self::Stop => "stopping",
        }
    }
}

/// Somebody who watches.
pub trait Watcher {
    /// Sees a step.
    fn see(&mut self, step: Step<'_>);
}

/// Nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWatcher;

impl Watcher for NoWatcher {
    fn see(&mut self, _: Step<'_>) {}
}
