//! What the subcommands do: thin glue between `cli` and the modules that do the work. Exit codes are decided here.

mod against;
pub mod agents;
#[cfg(feature = "kubernetes")]
pub mod cluster;
#[cfg(not(feature = "kubernetes"))]
#[path = "cluster_left_out.rs"]
pub mod cluster;
pub mod doctor;
pub mod import;
pub mod judge;
pub mod load;
pub mod measure;
pub mod merge;
mod pilot;
pub mod prune;
pub mod serve;
pub mod sink;
mod sink_view;
mod until;

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use clap::CommandFactory;
use unladen_judge::Budgets;
use unladen_judge::findings::Findings;
use unladen_measure::RunError;
use unladen_processes::subject::error::causes;
use unladen_report::Format;

/// Style of the word "error".
pub const RED: Style = AnsiColor::Red.on_default().bold();

/// Could not run.
const COULD_NOT_RUN: u8 = 2;
/// Interrupted by the user: 128 + SIGINT, as shells have it.
const INTERRUPTED: u8 = 130;

/// Exit code for an error: 130 when the user interrupted, else 2.
#[must_use]
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<RunError>() {
        Some(RunError::Interrupted) => ExitCode::from(INTERRUPTED),
        _ => ExitCode::from(COULD_NOT_RUN),
    }
}

/// An error with what it comes from, each said once: the text of many holds that of their cause.
#[must_use]
pub fn in_words(error: &anyhow::Error) -> String {
    causes(error.as_ref())
}

/// Prints to standard output. A reader that has gone (`| head`) is no error.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> anyhow::Result<ExitCode> {
    let mut out = anstream::stdout().lock();
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Prints the findings of a run folder, and where their report is.
fn print_findings(findings: &Findings, folder: &Path) -> anyhow::Result<()> {
    unladen_report::print(findings, Format::Text)?;
    Ok(writeln!(anstream::stdout(), "\nReport: {}", folder.join("report.html").display())?)
}

/// Where a study goes unless it is said: `runs/NAME-UTCTIME`.
fn new_folder(name: &str) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    PathBuf::from("runs").join(format!("{name}-{now}"))
}

/// A seed from the operating system's randomness, by way of the one that the standard library takes its hash keys from.
/// 53 bits, so that every JSON reader keeps it exactly.
fn draw_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 11
}

/// Exit code of a study that has come to its end.
fn code_of(findings: &Findings) -> ExitCode {
    if findings.void.is_some() { ExitCode::from(COULD_NOT_RUN) } else { ExitCode::SUCCESS }
}

/// Refuses a folder that holds something already. One that is not there is fine.
fn check_is_free(out: &Path) -> anyhow::Result<()> {
    let is_empty = match fs::read_dir(out) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        entries => entries.with_context(|| format!("cannot write to {}", out.display()))?.next().is_none(),
    };
    anyhow::ensure!(
        is_empty,
        "{} is there already, and nothing is overwritten: name another folder with --out",
        out.display()
    );
    Ok(())
}

/// `unladen completions`
///
/// # Errors
/// When standard output cannot be written.
pub fn completions(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::cli::Cli::command(), "unladen", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes the manual pages of the executable and of each subcommand into a folder: for packages.
///
/// # Errors
/// When the folder cannot be written.
pub fn man(folder: &Path) -> anyhow::Result<ExitCode> {
    clap_mangen::generate_to(crate::cli::Cli::command(), folder)
        .with_context(|| format!("cannot write manual pages into {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Budgets as typed, `METRIC=LIMIT`.
fn budgets(texts: &[String]) -> anyhow::Result<Budgets> {
    texts
        .iter()
        .map(|text| match text.split_once('=') {
            Some((metric, limit)) => Ok((metric.trim().to_owned(), limit.trim().to_owned())),
            None => anyhow::bail!("`{text}` is not a budget; write METRIC=LIMIT, such as cpu_per_request=10%"),
        })
        .collect()
}

/// A flag that Ctrl-C and SIGTERM set. A second Ctrl-C ends unladen at once; the guard then cleans up.
fn interrupt_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn what_an_error_comes_from_is_said_once() {
        let gone = || anyhow::anyhow!("no such image");
        assert_eq!(
            in_words(&gone().context("db as a container: no such image. Pull it")),
            "db as a container: no such image. Pull it"
        );
        let outer = Err::<(), _>(gone()).context("cannot start db").context("round 1").expect_err("an error");
        assert_eq!(in_words(&outer), "round 1: cannot start db: no such image");
    }
}
