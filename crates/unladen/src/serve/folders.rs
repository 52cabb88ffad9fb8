//! The run folders below a folder: found, read, kept as long as their files do not change.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use unladen_judge::findings::{Findings, VariantKind};
use unladen_judge::{GateOutcome, outcome};

use super::files;
use crate::under_way::{self, Live};

/// How deep run folders may lie.
pub(crate) const DEPTH: usize = 6;
/// What the judge has written.
const FINDINGS: &str = "findings.json";

/// A run folder.
#[derive(Debug, Clone)]
pub struct Folder {
    /// Its path below the folder that is served, with `/`; of that folder itself its name.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
    /// What was found, if it was judged.
    pub findings: Option<Arc<Findings>>,
    /// What is known, if its study is under way.
    pub live: Option<Live>,
    /// Why what was found cannot be read.
    pub trouble: Option<String>,
    /// What it says of itself, if it was not judged.
    begun: StudyStart,
}

/// What stands in a run folder from its first second on.
#[derive(Debug, Clone, Default)]
struct StudyStart {
    study: Option<String>,
    started: Option<String>,
}

impl StudyStart {
    fn of(folder: &Path) -> Self {
        #[derive(Deserialize)]
        struct Study {
            study: String,
        }
        #[derive(Deserialize)]
        struct Host {
            started: String,
        }
        let text = |name: &str| {
            let mut text = String::new();
            files::open_below(folder, Path::new(name)).ok()?.read_to_string(&mut text).ok().map(|_| text)
        };
        let study = text("study.yaml").and_then(|it| serde_saphyr::from_str::<Study>(&it).ok());
        let host = text("host.json").and_then(|it| serde_json::from_str::<Host>(&it).ok());
        Self { study: study.map(|it| it.study), started: host.map(|it| it.started) }
    }
}

/// One line about a run folder, for pages and programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// See [`Folder::id`].
    pub id: String,
    /// Name of the study.
    pub study: String,
    /// When it started, UTC, RFC 3339; empty if that is not known.
    pub started: String,
    /// `under way`, `judged`, `void`, `stopped` (not judged yet) or `unreadable`.
    pub state: &'static str,
    /// Rounds that count.
    pub rounds: u32,
    /// The answer, one sentence a variant; of a void study the reason.
    pub words: Vec<String>,
    /// `pass`, `fail` or `undecided`; `null` without budgets.
    pub budgets: Option<&'static str>,
}

impl Folder {
    /// Name of the study.
    #[must_use]
    pub fn study(&self) -> String {
        let known = self.findings.as_ref().map(|it| it.study.clone());
        let known = known.or_else(|| self.live.as_ref().map(|it| it.study.clone()));
        known.or_else(|| self.begun.study.clone()).unwrap_or_else(|| name_of(&self.path))
    }

    /// When it started; empty if that is not known.
    #[must_use]
    pub fn started(&self) -> String {
        let Some(findings) = &self.findings else { return self.begun.started.clone().unwrap_or_default() };
        let host = findings.host.get("started").and_then(serde_json::Value::as_str);
        let runs = findings.runs.iter().map(|it| it.started.as_str()).min();
        host.or(runs).unwrap_or_default().to_owned()
    }

    /// The folder in one line.
    #[must_use]
    pub fn line(&self) -> Line {
        let findings = self.findings.as_deref();
        let state = match findings {
            _ if self.live.is_some() => "under way",
            _ if self.trouble.is_some() => "unreadable",
            Some(findings) if findings.void.is_some() => "void",
            Some(_) => "judged",
            None => "stopped",
        };
        let words = match findings {
            _ if self.trouble.is_some() => self.trouble.iter().cloned().collect(),
            Some(Findings { void: Some(reason), .. }) => vec![reason.clone()],
            Some(findings) => {
                let placebo =
                    |name: &str| findings.variants.iter().any(|it| it.name == name && it.kind == VariantKind::Placebo);
                findings.conclusions.iter().filter(|it| !placebo(&it.variant)).map(|it| it.words.clone()).collect()
            }
            None => Vec::new(),
        };
        let budgets = findings.filter(|it| !it.budgets.is_empty()).map(|it| match outcome(it) {
            GateOutcome::Pass => "pass",
            GateOutcome::Fail => "fail",
            GateOutcome::Undecided | GateOutcome::Void => "undecided",
        });
        Line {
            id: self.id.clone(),
            study: self.study(),
            started: self.started(),
            state,
            rounds: findings.map_or(0, |it| it.rounds),
            words,
            budgets,
        }
    }
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What tells whether a file has changed.
type Stamp = (SystemTime, u64);
type FindingsCache = BTreeMap<PathBuf, (Stamp, Result<Arc<Findings>, String>)>;

/// The run folders below a folder.
#[derive(Debug)]
pub struct Folders {
    root: PathBuf,
    cache: Mutex<FindingsCache>,
}

impl Folders {
    /// Below `root`.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root, cache: Mutex::default() }
    }

    /// All of them, the latest first; those under way come before all others.
    #[must_use]
    pub fn all(&self) -> Vec<Folder> {
        let mut found = Vec::new();
        self.search(&self.root, String::new(), DEPTH, &mut found);
        let mut folders: Vec<Folder> = found.into_iter().map(|(id, path)| self.read(id, path)).collect();
        folders.sort_by_cached_key(|it| std::cmp::Reverse((it.live.is_some(), it.started(), it.id.clone())));
        folders
    }

    /// The one of this name.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Folder> {
        self.all().into_iter().find(|it| it.id == id)
    }

    /// Looks for run folders; links are not followed, so that there is neither a way out nor a circle.
    fn search(&self, folder: &Path, id: String, depth: usize, found: &mut Vec<(String, PathBuf)>) {
        let is_file = |name: &str| folder.join(name).is_file();
        if [unladen_journal::write::FILE, FINDINGS, under_way::FILE].into_iter().any(is_file) {
            found.push((if id.is_empty() { name_of(folder) } else { id }, folder.to_owned()));
            return;
        }
        let entries = if depth == 0 { None } else { fs::read_dir(folder).ok() };
        for entry in entries.into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if entry.file_type().is_ok_and(|it| it.is_dir()) && !name.starts_with('.') {
                let id = if id.is_empty() { name } else { format!("{id}/{name}") };
                self.search(&entry.path(), id, depth - 1, found);
            }
        }
    }

    fn read(&self, id: String, path: PathBuf) -> Folder {
        let live = under_way::read(&path);
        let (findings, trouble) = match self.findings(&path) {
            None => (None, None),
            Some(Ok(findings)) => (Some(findings), None),
            Some(Err(trouble)) => (None, Some(trouble)),
        };
        let begun = if findings.is_some() { StudyStart::default() } else { StudyStart::of(&path) };
        Folder { id, path, findings, live, trouble, begun }
    }

    /// What was found; read again only when the file has changed.
    fn findings(&self, folder: &Path) -> Option<Result<Arc<Findings>, String>> {
        let path = folder.join(FINDINGS);
        let metadata = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let stamp = (metadata.modified().ok()?, metadata.len());
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, findings)) = cache.get(&path)
            && *known == stamp
        {
            return Some(findings.clone());
        }
        let read = fs::read(&path).map_err(|error| error.to_string());
        let read = read.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
        let findings = read.map(Arc::new).map_err(|error| {
            format!("{FINDINGS} cannot be read: {error}. `unladen report` on the folder writes it again")
        });
        cache.insert(path, (stamp, findings.clone()));
        Some(findings)
    }
}
