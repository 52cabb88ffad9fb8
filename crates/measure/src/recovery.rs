//! What a run that was killed leaves behind: span files without their footer. They are finished, so that every span that was
//! acknowledged can be read, also of runs that are in no journal.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::watch::{Step, Watcher};

/// Folder of the runs within a run folder.
const RUNS: &str = "runs";

/// Finishes the span files of every run that is not `done` (folders as in the journal). No sink must be at work.
pub(super) fn finish_torn(folder: &Path, done: &BTreeSet<String>, watcher: &mut dyn Watcher) {
    for name in names(folder) {
        let dir = format!("{RUNS}/{name}");
        if done.contains(&dir) {
            continue;
        }
        let outcome = unladen_sink::recover(&folder.join(&dir));
        if outcome.as_ref().is_ok_and(|recovered| *recovered == unladen_sink::Recovered::default()) {
            continue;
        }
        watcher.see(Step::Recovered { dir: &dir, outcome: &outcome });
    }
}

/// The highest number of a run that has a folder; its successor's folder is free.
pub(super) fn highest(folder: &Path) -> u32 {
    let number = |name: String| name.split('-').next()?.parse().ok();
    names(folder).into_iter().filter_map(number).max().unwrap_or(0)
}

/// Names of the folders of all runs, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join(RUNS)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::NoWatcher;

    #[test]
    fn the_next_run_never_takes_the_folder_of_one_that_was_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(highest(folder.path()), 0);
        for name in ["01-baseline", "12-otel", "calibration-otel", "shared"] {
            fs::create_dir_all(folder.path().join(RUNS).join(name)).expect("a folder");
        }
        assert_eq!(highest(folder.path()), 12);
        // Nothing was torn, so nobody is told.
        finish_torn(folder.path(), &BTreeSet::new(), &mut NoWatcher);
    }
}
