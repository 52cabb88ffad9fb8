//! Run folders of studies that run in a cluster, brought here, and the list of these studies.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use flate2::read::GzDecoder;
use unladen_processes::subject::kubernetes::in_cluster::{JobStatus, Jobs};

use super::super::{check_is_free, print, print_findings};
use super::follow::Follower;
use super::pod::{self, CODE, FOLDER};
use crate::cli::cluster::Fetch;

/// A connection that breaks off is tried so often.
const ATTEMPTS: u32 = 3;
/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(2);

/// `unladen fetch`
///
/// # Errors
/// When there is no such study, or the cluster does not hand out what it has.
pub fn fetch(options: &Fetch) -> anyhow::Result<ExitCode> {
    let jobs = Jobs::open(options.context.as_deref())?;
    let Some(name) = &options.name else { return list(&jobs) };
    let out = options.out.clone().unwrap_or_else(|| Path::new("runs").join(name));
    check_is_free(&out)?;
    let status = jobs
        .status(name)?
        .with_context(|| format!("the cluster has no study `{name}`. `unladen fetch` lists those that there are"))?;
    let Some(pod) = status.pod.clone().filter(|_| status.runs) else {
        bail!("the pod of {name} does not run{}: its results are not there to be fetched", state(&jobs, &status));
    };
    let code = bring(&jobs, &pod, &out)?;
    show(&out, code)?;
    match code {
        Some(_) => jobs.delete(name)?,
        None => eprintln!("{name} has not ended: these are its results so far. It goes on"),
    }
    Ok(code.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// How to get the results of a study from elsewhere.
pub(super) fn command(name: &str, context: Option<&str>) -> String {
    let more = context.map(|context| format!(" --context {context}")).unwrap_or_default();
    format!("unladen fetch {name}{more}")
}

/// Stays with a study until it has ended, brings its run folder here and deletes its Job; returns its exit code. `None`: it was interrupted before
/// it had begun.
pub(super) fn at_the_end(follower: &Follower<'_>, context: Option<&str>, out: &Path) -> anyhow::Result<Option<u8>> {
    let Some((pod, code)) = follower.wait_for_end()? else { return Ok(None) };
    let kept = || format!("they are still in the cluster: `{}`", command(follower.name, context));
    bring(follower.jobs, &pod, out).with_context(kept)?;
    follower.jobs.delete(follower.name)?;
    Ok(Some(code))
}

/// Brings the run folder of a pod here; returns the exit code of a study that has ended.
fn bring(jobs: &Jobs, pod: &str, out: &Path) -> anyhow::Result<Option<u8>> {
    let part = beside(out)?;
    let fetched = (1..=ATTEMPTS).find_map(|attempt| match unpack(jobs, pod, &part) {
        Err(_) if attempt < ATTEMPTS => {
            thread::sleep(PAUSE);
            None
        }
        done => Some(done),
    });
    let placed = fetched.unwrap_or(Ok(())).and_then(|()| {
        let code = fs::read_to_string(part.join(CODE)).ok().and_then(|code| code.trim().parse().ok());
        // A study that was refused at its start has none.
        if part.join(FOLDER).exists() {
            fs::rename(part.join(FOLDER), out)
                .with_context(|| format!("cannot make the run folder {}", out.display()))?;
        }
        Ok(code)
    });
    // Only what did not arrive whole is in it.
    let _ = fs::remove_dir_all(&part);
    placed.context("the results were not fetched")
}

/// A folder beside the run folder, on the same file system.
fn beside(out: &Path) -> anyhow::Result<PathBuf> {
    let out = std::path::absolute(out)?;
    let name = out.file_name().context("a run folder has a name")?.to_string_lossy().into_owned();
    Ok(out.with_file_name(format!(".{name}.part")))
}

fn unpack(jobs: &Jobs, pod: &str, part: &Path) -> anyhow::Result<()> {
    let _ = fs::remove_dir_all(part);
    fs::create_dir_all(part).with_context(|| format!("cannot make {}", part.display()))?;
    let archive = part.join("archive.tar.gz");
    jobs.exec(pod, &["__in-cluster", "pack"], File::create(&archive)?)?;
    // Neither leaves the folder, nor is cut off unseen: the archive is checked.
    tar::Archive::new(GzDecoder::new(File::open(&archive)?)).unpack(part)?;
    Ok(())
}

/// Judges what was fetched, and prints it. Of a study that went wrong there may be nothing to judge: it has said why.
pub(super) fn show(out: &Path, code: Option<u8>) -> anyhow::Result<()> {
    if !out.exists() {
        return Ok(());
    }
    let judged = unladen_judge::judge(out).map_err(anyhow::Error::from).and_then(|findings| {
        // The node has written them at the end.
        if code != Some(0) {
            unladen_report::write_all(out, &findings)?;
        }
        Ok(findings)
    });
    match (judged, code) {
        (Ok(findings), Some(0)) => {
            print_findings(&findings, out)?;
        }
        (Ok(_), _) => eprintln!("Report so far: {}", out.join("report.html").display()),
        (Err(error), Some(0)) => return Err(error),
        (Err(_), _) => eprintln!("Run folder: {}", out.display()),
    }
    Ok(())
}

fn list(jobs: &Jobs) -> anyhow::Result<ExitCode> {
    let all = jobs.list()?;
    if all.is_empty() {
        return print(&format!("No study runs by itself in the cluster at {}.", jobs.server()));
    }
    let line = |status: &JobStatus| {
        let node = status.node.as_deref().map(|node| format!(" on {node}")).unwrap_or_default();
        format!("{}  {}, since {}{node}{}", status.name, status.study, status.created, state(jobs, status))
    };
    print(&all.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// How far a study is, behind a colon.
fn state(jobs: &Jobs, status: &JobStatus) -> String {
    let said = match (&status.pod, &status.waits) {
        _ if status.is_over => "it is over, and its results have gone".to_owned(),
        (_, Some(waits)) => waits.said.clone(),
        (Some(pod), None) if status.runs => match jobs.last_line(pod) {
            Ok(line) if pod::ended(&line).is_some() => line,
            Ok(line) => format!("it runs: {line}"),
            Err(error) => error.to_string(),
        },
        _ => "it has not begun".to_owned(),
    };
    format!(": {said}")
}
