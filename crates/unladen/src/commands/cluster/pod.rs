//! What runs in the pod of a study, on the node of its subject: `unladen run` as anywhere, and around it what a pod asks for. A pod that was
//! killed is started again: it then deletes what it had in the cluster and goes on where the journal ends.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::{Pid, Signal, kill_process};
use unladen_measure::STUDY_FILE;
use unladen_processes::subject::kubernetes::in_cluster::{Jobs, NODE, RESULTS};
use unladen_processes::subject::kubernetes::{KubernetesError, job_of_this_pod};

use super::super::{COULD_NOT_RUN, INTERRUPTED, interrupt_flag};
use crate::cli::cluster::InPod;
use crate::under_way;

/// The run folder, within [`RESULTS`] and within an archive.
pub(super) const FOLDER: &str = "run";
/// The file there that holds the exit code of a study that has ended.
pub(super) const CODE: &str = "ended";
/// The file there that tells a study to end.
const STOP: &str = "stop";
/// What the last line of a study begins with; its exit code follows.
const ENDED: &str = "ended with exit code ";
/// Between two looks at the study.
const PAUSE: Duration = Duration::from_millis(500);
/// A pod that was started again waits so long for an API server that was, too.
const AWAY: Duration = Duration::from_secs(600);

/// What runs in a pod.
///
/// # Errors
/// When it is in no pod of a study, or the cluster refuses.
pub fn in_pod(what: &InPod) -> anyhow::Result<ExitCode> {
    let results = Path::new(RESULTS);
    match what {
        InPod::Run { study, keep } => return run(results, study, keep.0),
        InPod::Pack => pack(results, io::stdout().lock())?,
        InPod::Stop => fs::write(results.join(STOP), "")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The exit code of the study whose last line this is.
pub(super) fn ended(line: &str) -> Option<u8> {
    line.strip_prefix(ENDED)?.split(';').next()?.parse().ok()
}

fn run(results: &Path, study: &Path, keep: Duration) -> anyhow::Result<ExitCode> {
    let name = job_of_this_pod().context("this is for the pods of `unladen run --in-cluster`")?;
    let terminated = interrupt_flag()?;
    let stops = || terminated.load(std::sync::atomic::Ordering::Relaxed) || results.join(STOP).exists();
    let node = std::env::var(NODE).unwrap_or_default();
    println!("{name} on node {node}; from elsewhere, `unladen fetch {name}` gets its results, finished or not");
    let left = swept(&name, stops)?;
    if left > 0 {
        println!("deleted {left} namespaces that an earlier pod of this study had");
    }
    let code = match fs::read_to_string(results.join(CODE)).ok().and_then(|code| code.parse().ok()) {
        Some(code) => code,
        None => {
            let code = if stops() { INTERRUPTED } else { measure(results, study, stops)? };
            fs::write(results.join(CODE), code.to_string())?;
            code
        }
    };
    let until = (jiff::Timestamp::now() + keep).strftime("%Y-%m-%dT%H:%M:%SZ");
    println!("{ENDED}{code}; the results wait until {until} for `unladen fetch {name}`");
    let begun = Instant::now();
    while begun.elapsed() < keep {
        if terminated.load(std::sync::atomic::Ordering::Relaxed) {
            // As its Job is deleted, or its node is emptied: then it counts as lost.
            return Ok(ExitCode::from(INTERRUPTED));
        }
        thread::sleep(PAUSE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Deletes what an earlier pod of the study has left; returns how many namespaces that were.
fn swept(name: &str, stops: impl Fn() -> bool) -> anyhow::Result<usize> {
    let jobs = Jobs::open(None)?;
    let begun = Instant::now();
    loop {
        match jobs.sweep(name) {
            Err(KubernetesError::Unreachable { .. }) if begun.elapsed() < AWAY && !stops() => thread::sleep(PAUSE),
            done => return Ok(done?),
        }
    }
}

/// Runs the study, or what is missing of it; returns its exit code.
fn measure(results: &Path, study: &Path, stops: impl Fn() -> bool) -> anyhow::Result<u8> {
    let folder = results.join(FOLDER);
    let how = if folder.join(STUDY_FILE).exists() { "--resume" } else { "--out" };
    let mut command = Command::new("/proc/self/exe");
    command.arg("run").arg(study).arg(how).arg(&folder).arg("--plain");
    // What it prints at its end is in the run folder.
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(code(status));
        }
        if stops() && !is_told {
            kill_process(Pid::from_child(&child), Signal::TERM)?;
            is_told = true;
        }
        thread::sleep(PAUSE);
    }
}

/// As shells have it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(COULD_NOT_RUN)
}

/// The results so far as an archive. The study may be at them.
fn pack(results: &Path, out: impl Write) -> anyhow::Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(out, Compression::fast()));
    append(&mut archive, results, Path::new(CODE))?;
    append(&mut archive, results, Path::new(FOLDER))?;
    archive.into_inner()?.finish()?.flush()?;
    Ok(())
}

/// Appends a file, or all of a folder. What has gone meanwhile is left out.
fn append(archive: &mut tar::Builder<impl Write>, root: &Path, path: &Path) -> anyhow::Result<()> {
    let full = root.join(path);
    let Ok(metadata) = fs::symlink_metadata(&full) else { return Ok(()) };
    if metadata.is_dir() {
        let mut names: Vec<_> = fs::read_dir(&full)?.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        // Who runs it is no process of whoever fetches it.
        for name in names.into_iter().filter(|name| *name != under_way::FILE) {
            append(archive, root, &path.join(name))?;
        }
    } else if metadata.is_file() {
        let Ok(file) = File::open(&full) else { return Ok(()) };
        let length = file.metadata()?.len();
        let mut header = tar::Header::new_gnu();
        header.set_size(length);
        header.set_mode(0o644);
        header.set_mtime(
            metadata
                .modified()
                .ok()
                .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
                .map_or(0, |it| it.as_secs()),
        );
        // What is written to it from now on is left out.
        archive.append_data(&mut header, path, file.take(length))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_tells_the_exit_code() {
        assert_eq!(ended(&format!("{ENDED}130; the results wait")), Some(130));
        assert_eq!(ended("[  1/3] round  1  baseline"), None);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
        assert_eq!(code(ExitStatus::from_raw(2 << 8)), 2);
    }
}
