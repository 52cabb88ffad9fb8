//! `merge`: run folders of one study, measured on several machines, into one.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use unladen_journal::write::Journal;
use unladen_judge::findings::Findings;
use unladen_measure::folder::RunFolder;
use unladen_measure::{HOST_FILE, STUDY_FILE};
use unladen_study::measured;
use unladen_study::merge::{NamedFolder, Part, merge as merge_parts};
use unladen_study::write::resolved_yaml;

use super::{check_is_free, print_findings};
use crate::cli::Merge;

/// `unladen merge`
///
/// # Errors
/// When the folders are not of one study, or the new one cannot be written.
pub fn merge(options: &Merge) -> anyhow::Result<ExitCode> {
    check_is_free(&options.out)?;
    let findings = into(&options.folders, &options.out)?;
    print_findings(&findings, &options.out)?;
    Ok(super::code_of(&findings))
}

/// Merges run folders into a new one, and judges that. The parts stay as they are.
pub(super) fn into(folders: &[NamedFolder], out: &Path) -> anyhow::Result<Findings> {
    let parts = folders.iter().map(part).collect::<anyhow::Result<Vec<Part>>>()?;
    let merged = merge_parts(&parts)?;
    let folder = RunFolder::create(out)?;
    for (part, from, to) in &merged.folders {
        let from = parts[*part].measured.dir.join(from);
        // Old runs may have been pruned.
        if from.is_dir() {
            copy(&from, &folder.path().join(to))?;
        }
    }
    folder.write(HOST_FILE, &serde_json::to_string_pretty(&merged.host)?)?;
    let mut journal = Journal::open(folder.path())?;
    merged.calibrations.iter().try_for_each(|calibration| journal.append_calibration(calibration))?;
    merged.runs.iter().try_for_each(|run| journal.append(run))?;
    // After the runs: of a study that goes on they do not say that it was stopped.
    merged.notices.iter().try_for_each(|notice| journal.append_notice(notice))?;
    // The study last: a folder with a study.yaml is whole.
    folder.write(STUDY_FILE, &resolved_yaml(&merged.study))?;
    let findings = unladen_judge::judge(folder.path())?;
    unladen_report::write_all(folder.path(), &findings)?;
    Ok(findings)
}

fn part(folder: &NamedFolder) -> anyhow::Result<Part> {
    let measured = measured::read(&folder.dir)?;
    let known = measured.host.get("hostname").and_then(|name| name.as_str()).map(str::to_owned);
    let machine = folder.machine.clone().or(known);
    let machine = machine.with_context(|| {
        format!("{0} does not say which machine it is of: name it, as in `NAME={0}`", folder.dir.display())
    })?;
    Ok(Part { machine, measured })
}

/// Copies a folder and all that is in it, but for links: what they lead to belongs to somebody else.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot copy {} to {}", from.display(), to.display());
    fs::create_dir_all(to).with_context(failed)?;
    for entry in fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().with_context(failed)?;
        if kind.is_dir() {
            copy(&from, &to)?;
        } else if kind.is_file() {
            fs::copy(&from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        }
    }
    Ok(())
}
