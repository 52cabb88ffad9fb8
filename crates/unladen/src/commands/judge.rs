//! `report` and `gate`: judge a run folder from its journal alone.

use std::process::ExitCode;

use anyhow::Context;
use unladen_judge::GateOutcome;
use unladen_judge::findings::Findings;

use super::{COULD_NOT_RUN, budgets};
use crate::cli::{Gate, Report};
use crate::push;

/// Over budget.
const FAILED: u8 = 1;
/// Undecided.
const UNDECIDED: u8 = 3;

/// `unladen report`
///
/// # Errors
/// When the folder holds no journal that can be read.
pub fn report(options: &Report) -> anyhow::Result<ExitCode> {
    let findings = unladen_judge::judge(&options.dir)?;
    unladen_report::write_all(&options.dir, &findings)?;
    unladen_report::print(&findings, options.format)?;
    if let Some(url) = &options.push {
        let sent = push::push(&findings, url, started_ns(&findings))?;
        eprintln!("sent {sent} numbers to {url}");
    }
    Ok(ExitCode::SUCCESS)
}

/// When the study started, nanoseconds since 1970: a folder that is pushed twice does not become two results. Now, if it is not known.
fn started_ns(findings: &Findings) -> u64 {
    let started = findings.host.get("started").and_then(serde_json::Value::as_str);
    let started = started.and_then(|it| it.parse::<jiff::Timestamp>().ok()).unwrap_or_else(jiff::Timestamp::now);
    u64::try_from(started.as_nanosecond()).unwrap_or(0)
}

/// `unladen gate`
///
/// # Errors
/// When the folder holds no journal that can be read, a budget cannot be read, or the JUnit file not written.
pub fn gate(options: &Gate) -> anyhow::Result<ExitCode> {
    let findings = unladen_judge::judge_with_budgets(&options.dir, &budgets(&options.budgets)?)?;
    if let Some(file) = &options.junit {
        std::fs::write(file, unladen_report::junit::render(&findings)?)
            .with_context(|| format!("cannot write the JUnit file {}", file.display()))?;
    }
    unladen_report::print(&findings, options.format)?;
    Ok(match unladen_judge::outcome(&findings) {
        GateOutcome::Pass => ExitCode::SUCCESS,
        GateOutcome::Fail => ExitCode::from(FAILED),
        GateOutcome::Undecided => ExitCode::from(UNDECIDED),
        GateOutcome::Void => ExitCode::from(COULD_NOT_RUN),
    })
}
