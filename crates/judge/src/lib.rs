#![doc = include_str!("../README.md")]
//! ## Inside
//!
//! `evidence` says which runs count, [`metrics`] and `values` which number a run has, `compare` what the rounds say about
//! it; `placebo` and `work` say whether to believe it, [`budget`] and `ledger` what follows, `words` how to say it, [`sections`] what stands in
//! tables.

use std::path::Path;

use unladen_journal::read::ReadError;
use unladen_study::measured::{self, Measured};

pub mod budget;
pub mod curves;
pub mod findings;
pub mod history;
pub mod metrics;
pub mod pilot;
pub mod relabel;
pub mod sections;
pub mod so_far;
pub mod units;
pub mod until;

mod admitted;
mod agreement;
mod answers;
mod apart;
mod checks;
mod compare;
mod design;
mod distortion;
mod dose;
mod evidence;
mod from_blocks;
mod groups;
mod ladder;
mod latency;
mod ledger;
mod levels;
mod little;
mod load_parts;
mod lookup;
mod machines;
mod money;
mod notices;
mod operations;
mod pacing;
mod placebo;
mod profile;
mod reported_numbers;
mod runs;
mod sampled;
mod steady;
mod study;
mod values;
mod words;
mod work;

pub use budget::{BudgetError, Budgets};
use findings::{Finding, Findings, Outcome};
pub use so_far::{cpu_us_per_request, latency_p99_us, so_far};

/// A study that cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The run folder cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A budget cannot be read.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// There are no identical runs to re-label.
    #[error("no round has valid runs of at least two of the variants {variants}: nothing can be re-labelled")]
    NothingToRelabel {
        /// Variants asked for.
        variants: String,
    },
    /// A pilot of which hardly anything counts.
    #[error("{pairs} pairs of runs count, too few to tell the noise of this machine. {reason}")]
    PilotVoid {
        /// Pairs of runs that count.
        pairs: u32,
        /// Why others do not.
        reason: String,
    },
    /// There is nothing to judge.
    #[error("the journal in {folder} has no runs. `unladen run --resume {folder}` goes on with the study")]
    NoRuns {
        /// The run folder.
        folder: String,
    },
}

/// How a study came out for a gate, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateOutcome {
    /// The study as a whole says nothing.
    Void,
    /// At least one budget is surely exceeded.
    Fail,
    /// At least one budget could not be decided.
    Undecided,
    /// All budgets are surely kept, or there are none.
    Pass,
}

/// Reads a run folder to judge it: as [`measured::read`], and every run knows what the others decide of how it is read.
///
/// # Errors
/// As [`measured::read`].
pub fn read(dir: &Path) -> Result<Measured, ReadError> {
    let mut folder = measured::read(dir)?;
    from_blocks::settle(&mut folder.runs);
    Ok(folder)
}

/// Judges the run folder `dir` with the budgets of its study.
///
/// # Errors
/// When the folder cannot be read, has no runs, or the study has a budget that is no limit.
pub fn judge(dir: &Path) -> Result<Findings, JudgeError> {
    let folder = read(dir)?;
    let mut findings = without_tables(&folder, &folder.study.budgets)?;
    findings.profiles = profile::compare(&folder);
    findings.operations = operations::read(&folder);
    findings.sampled = sampled::read(&folder);
    findings.curves = Some(curves::read(&folder));
    findings.sections = sections::of(&findings);
    Ok(findings)
}

/// Judges the run folder `dir` with these budgets on top of those of its study (the same metric is replaced).
///
/// # Errors
/// As [`judge`].
pub fn judge_with_budgets(dir: &Path, budgets: &Budgets) -> Result<Findings, JudgeError> {
    let folder = read(dir)?;
    let mut all = folder.study.budgets.clone();
    all.extend(budgets.iter().map(|(metric, limit)| (metric.clone(), limit.clone())));
    judge_folder(&folder, &all)
}

/// Judges what was [`read`] from a run folder, with exactly these budgets.
///
/// # Errors
/// When there are no runs, or a budget is no limit.
pub fn judge_folder(folder: &Measured, budgets: &Budgets) -> Result<Findings, JudgeError> {
    let mut findings = without_tables(folder, budgets)?;
    findings.sections = sections::of(&findings);
    Ok(findings)
}

fn without_tables(folder: &Measured, budgets: &Budgets) -> Result<Findings, JudgeError> {
    if folder.runs.is_empty() {
        return Err(JudgeError::NoRuns { folder: folder.dir.display().to_string() });
    }
    Ok(study::judge(folder, budgets)?)
}

/// Whether a budget is undecided that more rounds may decide: one whose metric was measured, be it in too few rounds for an interval.
#[must_use]
pub fn more_rounds_may_decide(findings: &Findings) -> bool {
    let undecided = |finding: &Finding| {
        !finding.rounds.is_empty() && finding.budget.as_ref().is_some_and(|budget| budget.outcome == Outcome::Undecided)
    };
    findings.void.is_none() && findings.variants.iter().flat_map(|variant| &variant.metrics).any(undecided)
}

/// How the study came out for a gate.
#[must_use]
pub fn outcome(findings: &Findings) -> GateOutcome {
    if findings.void.is_some() {
        return GateOutcome::Void;
    }
    let outcomes = findings.budgets.iter().map(|line| match line.outcome {
        Outcome::Pass => GateOutcome::Pass,
        Outcome::Fail => GateOutcome::Fail,
        Outcome::Undecided => GateOutcome::Undecided,
    });
    outcomes.min().unwrap_or(GateOutcome::Pass)
}
