//! A study from its file: YAML, profiles, `--set`, types, checks, plan. The one part of the module that reads a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::checked::{Checked, problems};
use super::error::StudyError;
use super::plan::Plan;
use super::problem::Problem;
use super::set::{Set, apply, change_by_profile};
use super::spec::Study;
use super::spec::script::Script;
use super::tree::Node;
use super::{typed, yaml};

/// Name of the study file in its folder.
pub const FILE_NAME: &str = "study.yaml";

/// Largest study file, KiB.
const MAX_KIB: u64 = 256;

impl Study {
    /// Reads a study file, or `study.yaml` in a folder, with `overrides` applied, and works out what it means.
    ///
    /// # Errors
    /// When the file cannot be read, or with everything that is wrong in it.
    pub fn read(path: impl AsRef<Path>, overrides: &[Set]) -> Result<Plan, StudyError> {
        let file = find(path.as_ref())?;
        let text = read_text(&file)?;
        let name = file.display().to_string();
        let study = checked(&text, &name, overrides)?;
        let unreadable = |source| StudyError::Unreadable { path: file.clone(), source };
        let dir = std::path::absolute(&file).map_err(unreadable)?.parent().map(PathBuf::from).unwrap_or_default();
        Plan::of(study, &dir)
    }
}

impl Script {
    /// Reads a script: the keys of a study's `load.script` in a file of their own.
    ///
    /// # Errors
    /// When the file cannot be read, or with everything that is wrong in it.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        let (text, name) = (read_text(path)?, path.display().to_string());
        let tree = yaml::parse(&text).map_err(|problem| StudyError::refused(&name, None, vec![*problem]))?;
        let refused = |problems| StudyError::refused(&name, Some(&tree), problems);
        let script = typed::read(&tree, &["requests"]).map_err(refused)?;
        Checked::script(script).map(Checked::into_inner).map_err(refused)
    }
}

/// The study in a text, with `overrides` applied. `file_name` stands in front of every problem.
///
/// # Errors
/// Everything that is wrong in it.
pub fn parse(text: &str, file_name: &str, overrides: &[Set]) -> Result<Study, StudyError> {
    checked(text, file_name, overrides).map(Checked::into_inner)
}

/// A study that unladen has written itself, as it stands: it was checked before it was run.
///
/// # Errors
/// Everything that is wrong in it.
pub(super) fn read_back(text: &str, file_name: &str) -> Result<Study, StudyError> {
    let tree = yaml::parse_resolved(text).map_err(|problem| StudyError::refused(file_name, None, vec![*problem]))?;
    typed::study(&tree).map_err(|problems| StudyError::refused(file_name, Some(&tree), problems))
}

/// [`parse`], for those who go on from there.
fn checked(text: &str, file_name: &str, overrides: &[Set]) -> Result<Checked<Study>, StudyError> {
    // Editors on Windows put a byte order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut tree = yaml::parse(text).map_err(|problem| StudyError::refused(file_name, None, vec![*problem]))?;
    let refused = |tree: &Node, problems| StudyError::refused(file_name, Some(tree), problems);
    let profiles = check_profiles(&tree);
    if !profiles.is_empty() {
        return Err(refused(&tree, profiles));
    }
    let mut problems = apply(&mut tree, overrides);
    let study = match typed::study(&tree) {
        Ok(study) if problems.is_empty() => study,
        result => {
            problems.extend(result.err().unwrap_or_default());
            return Err(refused(&tree, problems));
        }
    };
    Checked::study(study).map_err(|problems| refused(&tree, problems))
}

/// What is wrong with profiles, used or not: a slip in `published` should not show in the night it is first needed.
fn check_profiles(tree: &Node) -> Vec<Problem> {
    let Ok(study) = typed::study(tree) else { return Vec::new() };
    if !problems(&study).is_empty() {
        return Vec::new();
    }
    let profiles = tree.get("profiles").map(Node::entries).unwrap_or_default();
    let mut all = Vec::new();
    for profile in profiles {
        let mut changed = tree.clone();
        all.extend(change_by_profile(&mut changed, &profile.key, &profile.node));
        let mut found = typed::study(&changed).map_or_else(|found| found, |study| problems(&study));
        found.iter_mut().for_each(|problem| problem.locate(&changed));
        all.extend(found);
    }
    all
}

/// The study file that a path stands for.
fn find(path: &Path) -> Result<PathBuf, StudyError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => StudyError::Missing { path: path.to_owned() },
        _ => StudyError::Unreadable { path: path.to_owned(), source },
    };
    if !path.metadata().map_err(unreadable)?.is_dir() {
        return Ok(path.to_owned());
    }
    let file = path.join(FILE_NAME);
    if file.is_file() {
        return Ok(file);
    }
    let entries = path.read_dir().map_err(unreadable)?.filter_map(Result::ok).map(|entry| entry.path());
    let mut studies: Vec<String> =
        entries.filter(|entry| entry.join(FILE_NAME).is_file()).map(|entry| entry.display().to_string()).collect();
    studies.sort();
    studies.truncate(12);
    Err(StudyError::NoStudy { path: path.to_owned(), studies })
}

fn read_text(path: &Path) -> Result<String, StudyError> {
    let unreadable = |source| StudyError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    // One byte beyond the limit is enough to know.
    File::open(path).map_err(unreadable)?.take(MAX_KIB * 1024 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_KIB * 1024 {
        return Err(StudyError::TooLarge { path: path.to_owned(), limit_kib: MAX_KIB });
    }
    String::from_utf8(bytes)
        .map_err(|error| StudyError::NotText { path: path.to_owned(), offset: error.utf8_error().valid_up_to() })
}
