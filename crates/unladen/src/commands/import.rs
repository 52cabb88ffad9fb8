//! `import`: results of other tools into a run folder, judged as if they were ours; Compose files and live workloads into a first study.

mod kubernetes;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use unladen_import::{Side, Source};
use unladen_journal::write::Journal;
use unladen_measure::folder::RunFolder;
use unladen_measure::{HOST_FILE, STUDY_FILE};
use unladen_processes::subject;
use unladen_study::write::{concise_yaml, resolved_yaml};

use super::{budgets, print, print_findings};
use crate::cli::{Import, ImportWhat};

/// `unladen import`
///
/// # Errors
/// When a file cannot be read, is of no known tool, or the run folder cannot be written.
pub fn import(options: &Import) -> anyhow::Result<ExitCode> {
    match &options.what {
        Some(ImportWhat::Compose { files }) => return compose(files),
        Some(ImportWhat::Kubernetes(options)) => return kubernetes::import(options),
        None => {}
    }
    let out = options.out.as_deref().context("--out names the run folder to write")?;
    let baseline = sources(&options.baseline)?;
    let mut variants: Vec<Side> = Vec::new();
    for text in &options.variants {
        let (name, files) = text
            .split_once('=')
            .with_context(|| format!("`{text}` is no variant; write NAME=FILES, such as otel=otel-*.json"))?;
        let files = sources(&[files.to_owned()])?;
        match variants.iter_mut().find(|side| side.name == name) {
            Some(side) => side.sources.extend(files),
            None => variants.push(Side { name: name.to_owned(), sources: files }),
        }
    }
    let mut foreign = unladen_import::read(&options.name, &baseline, &variants)?;
    foreign.study.budgets = budgets(&options.budgets)?;
    let folder = RunFolder::create(out)?;
    let host = serde_json::json!({"imported": true, "unladen": env!("CARGO_PKG_VERSION")});
    folder.write(HOST_FILE, &host.to_string())?;
    let mut journal = Journal::open(folder.path())?;
    foreign.runs.iter().try_for_each(|run| journal.append(run))?;
    // The study last: a folder with a study.yaml is whole.
    folder.write(STUDY_FILE, &resolved_yaml(&foreign.study))?;
    let findings = unladen_judge::judge(folder.path())?;
    unladen_report::write_all(folder.path(), &findings)?;
    print_findings(&findings, folder.path())?;
    Ok(ExitCode::SUCCESS)
}

/// `unladen import compose`: a study of what Compose finds in the files.
fn compose(files: &[String]) -> anyhow::Result<ExitCode> {
    let paths: Vec<&Path> = files.iter().map(Path::new).collect();
    let services = subject::compose::services(&paths)?;
    let ports = services.into_iter().map(|(name, declared)| (name, declared.ports)).collect();
    print(&concise_yaml(&unladen_study::compose::study(files, &ports)))
}

/// The files of one side. A name with `*` in it stands for all files of its folder that fit, in the order of their names,
/// numbers by their value: `run-9` comes before `run-10`.
fn sources(texts: &[String]) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for text in texts {
        let path = Path::new(text);
        let pattern = path.file_name().and_then(|name| name.to_str()).filter(|name| name.contains('*'));
        let Some((before, after)) = pattern.and_then(|pattern| pattern.split_once('*')) else {
            sources.push(Source::new(text));
            continue;
        };
        anyhow::ensure!(
            !after.contains('*'),
            "`{text}`: one `*` is understood, not several; give the files one by one"
        );
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = dir.read_dir().with_context(|| format!("cannot read the folder {}", dir.display()))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| {
                name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
            })
            .collect();
        anyhow::ensure!(!names.is_empty(), "no file fits `{text}`");
        names.sort_by_cached_key(|name| by_number(&name[before.len()..name.len() - after.len()]));
        sources.extend(names.iter().map(|name| Source::new(&dir.join(name).to_string_lossy())));
    }
    Ok(sources)
}

/// Numbers by value, everything else by letter.
fn by_number(text: &str) -> (Option<u64>, String) {
    (text.parse().ok(), text.to_owned())
}
