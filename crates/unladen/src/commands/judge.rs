//! `report` and `gate`: judge a run folder from its journal alone.

use std::process::ExitCode;

use super::{COULD_NOT_RUN, print};
use crate::cli::{Format, Gate, Report};
use crate::judge::{self, GateOutcome};
use crate::report;

/// Over budget.
const FAILED: u8 = 1;
/// Undecided.
const UNDECIDED: u8 = 3;

/// `unladen report`
///
/// # Errors
/// When the folder holds no journal that can be read.
pub fn report(options: &Report) -> anyhow::Result<ExitCode> {
    let findings = judge::judge(&options.dir)?;
    report::write_all(&options.dir, &findings)?;
    let format = match options.format {
        Format::Text => report::Format::Text,
        Format::Markdown => report::Format::Markdown,
        Format::Json => report::Format::Json,
        Format::Csv => report::Format::Csv,
        Format::Html => report::Format::Html,
    };
    print(&report::render(&findings, format))
}

/// `unladen gate`
///
/// # Errors
/// When the folder holds no journal that can be read, or a budget cannot be read.
pub fn gate(options: &Gate) -> anyhow::Result<ExitCode> {
    let findings = judge::judge_with(&options.dir, &options.budgets)?;
    print(&report::gate(&findings))?;
    Ok(match judge::outcome(&findings) {
        GateOutcome::Pass => ExitCode::SUCCESS,
        GateOutcome::Fail => ExitCode::from(FAILED),
        GateOutcome::Undecided => ExitCode::from(UNDECIDED),
        GateOutcome::Void => ExitCode::from(COULD_NOT_RUN),
    })
}
