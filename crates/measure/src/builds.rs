//! The build steps of a study: each distinct command once, before the first run.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use unladen_study::plan::Process;

use super::watch::{Step, Watcher};

/// A build step failed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The program could not be started.
    #[error("cannot start the build of {service} (`{command}` in {}): {source}", cwd.display())]
    Start {
        /// Service.
        service: String,
        /// Command, as one line.
        command: String,
        /// Where.
        cwd: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It ended badly.
    #[error("the build of {service} failed ({status}): `{command}` in {}. The end of its output, {}:\n{tail}", cwd.display(), log.display())]
    Failed {
        /// Service.
        service: String,
        /// Command, as one line.
        command: String,
        /// Where.
        cwd: PathBuf,
        /// How it ended.
        status: std::process::ExitStatus,
        /// Its output.
        log: PathBuf,
        /// Last lines of it.
        tail: String,
    },
    /// The user interrupted it.
    #[error("interrupted during the build of {service}")]
    Interrupted {
        /// Service.
        service: String,
    },
}

/// Runs the builds of `processes`, each distinct pair of command and folder once, in order.
///
/// # Errors
/// On the first build that fails.
pub(super) fn run(
    processes: &[Process],
    logs: &Path,
    interrupted: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<(), BuildError> {
    let mut done: Vec<(&[String], &Path)> = Vec::new();
    for process in processes {
        let Some(words) = process.build.as_deref() else { continue };
        if done.contains(&(words, &process.cwd)) {
            continue;
        }
        done.push((words, &process.cwd));
        let command = words.join(" ");
        watcher.see(Step::Building { service: &process.service, command: &command });
        one(process, words, &command, &logs.join(format!("build-{}.log", done.len())), interrupted)?;
    }
    Ok(())
}

fn one(
    process: &Process,
    words: &[String],
    command: &str,
    log: &Path,
    interrupted: &AtomicBool,
) -> Result<(), BuildError> {
    let start = || -> io::Result<std::process::Child> {
        let output = File::create(log)?;
        let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
        Command::new(program)
            .args(arguments)
            .envs(&process.env)
            .current_dir(&process.cwd)
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .spawn()
    };
    let mut child = start().map_err(|source| BuildError::Start {
        service: process.service.clone(),
        command: command.to_owned(),
        cwd: process.cwd.clone(),
        source,
    })?;
    let status = loop {
        if interrupted.load(Ordering::Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(BuildError::Interrupted { service: process.service.clone() });
        }
        match child.try_wait() {
            Ok(Some(status)) => break status,
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if status.success() {
        return Ok(());
    }
    Err(BuildError::Failed {
        service: process.service.clone(),
        command: command.to_owned(),
        cwd: process.cwd.clone(),
        status,
        log: log.to_owned(),
        tail: tail(log, 12),
    })
}

/// The last lines of a file.
fn tail(log: &Path, lines: usize) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
