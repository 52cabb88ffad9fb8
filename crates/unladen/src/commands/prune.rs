//! `prune`: frees what old runs left. Raw data goes, what a verdict rests on stays, unless whole run folders are to go. Without
//! `--yes` nothing is deleted.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use unladen_journal::write::FILE as JOURNAL;
use unladen_judge::units::Scale;

use crate::cli::Prune;
use crate::serve::folders::DEPTH;
use crate::under_way;

/// What `unladen report` does not need, in the folder of each run.
const RAW: [&str; 2] = ["spans", "logs"];

/// `unladen prune`
///
/// # Errors
/// When the folder is not there, or something in it cannot be read or deleted.
pub fn prune(options: &Prune) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        options.dir.is_dir(),
        "{} is not a folder; name the one with your run folders",
        options.dir.display()
    );
    let mut folders = Vec::new();
    find(&options.dir, 0, &mut folders)?;
    let oldest = options.older_than.map_or(Duration::ZERO, |it| it.0);
    let (mut total, mut pruned) = (0, 0);
    for folder in folders {
        if under_way::read(&folder).is_some() || age(&folder)? < oldest {
            continue;
        }
        let doomed = if options.all { vec![folder.clone()] } else { raw(&folder)? };
        let bytes = doomed.iter().try_fold(0, |sum, it| Ok::<_, anyhow::Error>(sum + size(it)?))?;
        if bytes == 0 {
            continue;
        }
        if options.yes {
            for path in &doomed {
                fs::remove_dir_all(path).with_context(|| format!("cannot delete {}", path.display()))?;
            }
        }
        println!("{:>10}  {}", readable(bytes), folder.display());
        (total, pruned) = (total + bytes, pruned + 1);
    }
    let what = if options.all { "whole run folders" } else { "spans and logs; verdicts and reports stay" };
    match (pruned, options.yes) {
        (0, _) => println!("Nothing to delete in {}.", options.dir.display()),
        (_, true) => println!("Freed {} in {pruned} run folders ({what}).", readable(total)),
        (_, false) => println!("Would free {} in {pruned} run folders ({what}). Delete with --yes.", readable(total)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The run folders at and below a folder. Links are not followed: what they lead to belongs to somebody else.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if folder.join(JOURNAL).is_file() {
        found.push(folder.to_owned());
    } else if depth < DEPTH {
        for below in folders(folder)? {
            find(&below, depth + 1, found)?;
        }
    }
    Ok(())
}

/// The folders in a folder, by name.
fn folders(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}

/// The folders of raw data in a run folder.
fn raw(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let runs = folder.join("runs");
    let mut raw = Vec::new();
    for run in if runs.is_dir() { folders(&runs)? } else { Vec::new() } {
        raw.extend(
            folders(&run)?
                .into_iter()
                .filter(|it| it.file_name().is_some_and(|name| RAW.map(OsStr::new).contains(&name))),
        );
    }
    Ok(raw)
}

/// How long ago a study wrote its last line.
fn age(folder: &Path) -> anyhow::Result<Duration> {
    let written = fs::metadata(folder.join(JOURNAL)).and_then(|it| it.modified());
    let written = written.with_context(|| format!("cannot read {}", folder.join(JOURNAL).display()))?;
    Ok(SystemTime::now().duration_since(written).unwrap_or_default())
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

fn readable(bytes: u64) -> String {
    Scale::of("B", bytes as f64, None).with_unit(bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two run folders, one of them a folder deeper, and a link that leads out.
    fn runs() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        for run in ["a", "deep/b"] {
            let folder = dir.path().join(run);
            for raw in ["runs/01-otel/spans", "runs/01-otel/logs"] {
                fs::create_dir_all(folder.join(raw)).expect("a folder");
                fs::write(folder.join(raw).join("file"), [0; 1_000]).expect("a file");
            }
            for kept in [JOURNAL, "findings.json", "runs/01-otel/latency.hdr"] {
                fs::write(folder.join(kept), "{}").expect("a file");
            }
        }
        std::os::unix::fs::symlink(dir.path().join("a"), dir.path().join("deep/link")).expect("a link");
        dir
    }

    fn with(dir: &Path, all: bool, yes: bool, older_than: Option<&str>) {
        let older_than = older_than.map(|it| it.parse().expect("a time"));
        prune(&Prune { dir: dir.to_owned(), all, older_than, yes }).expect("pruned");
    }

    #[test]
    fn raw_data_goes_and_what_is_judged_stays() {
        let dir = runs();
        let spans = dir.path().join("deep/b/runs/01-otel/spans/file");
        with(dir.path(), false, false, None);
        assert!(spans.exists(), "not without --yes");
        with(dir.path(), false, true, Some("1h"));
        assert!(spans.exists(), "not before its time");
        with(dir.path(), false, true, None);
        assert!(!spans.exists() && !dir.path().join("a/runs/01-otel/logs").exists());
        for kept in [JOURNAL, "findings.json", "runs/01-otel/latency.hdr"] {
            assert!(dir.path().join("deep/b").join(kept).exists(), "{kept}");
        }
    }

    #[test]
    fn whole_run_folders_go_when_told_so_but_not_through_links() {
        let dir = runs();
        with(&dir.path().join("deep"), true, true, None);
        assert!(!dir.path().join("deep/b").exists() && dir.path().join("a/runs/01-otel/spans/file").exists());
    }

    #[test]
    fn a_running_study_is_left_alone() {
        let dir = runs();
        let me = unladen_linux::process::Identity::of(std::process::id()).expect("this process");
        let live = under_way::Live::new("shop", &indexmap::IndexMap::new());
        let file = under_way::LiveFile { pid: me.pid, start_ticks: me.start_ticks, live };
        fs::write(dir.path().join("a/live.json"), serde_json::to_vec(&file).expect("JSON")).expect("a file");
        with(dir.path(), true, true, None);
        assert!(dir.path().join("a").exists() && !dir.path().join("deep/b").exists());
    }
}
