//! Why a study cannot be used: the file cannot be had, or what stands in it is wrong.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::problem::Problem;
use super::tree::Node;

/// Why a study cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// No such file or folder.
    #[error("there is no `{}`; give a study file, or a folder that holds `study.yaml`", path.display())]
    Missing {
        /// As given.
        path: PathBuf,
    },
    /// A folder without a study.
    #[error("the folder `{}` holds no `study.yaml`{}", path.display(), others(studies))]
    NoStudy {
        /// As given.
        path: PathBuf,
        /// Folders within it that hold one.
        studies: Vec<String>,
    },
    /// The file is there but cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Too large to be a study.
    #[error("`{}` is larger than {limit_kib} KiB, which no study needs; is it the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Largest size, KiB.
        limit_kib: u64,
    },
    /// Not text.
    #[error("`{}` is not UTF-8 text (look at byte {offset}); save it as UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// First byte that isn't, from 0.
        offset: usize,
    },
    /// The study says something wrong.
    #[error("{0}")]
    Refused(Refusal),
}

/// Everything that is wrong with a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The file as the user named it; `study` for a study that has none.
    pub file: String,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl StudyError {
    /// A refusal, in the order of the file.
    pub(super) fn refused(file: &str, tree: Option<&Node>, mut problems: Vec<Problem>) -> Self {
        if let Some(tree) = tree {
            problems.iter_mut().for_each(|problem| problem.locate(tree));
        }
        problems.sort_by_key(|problem| (problem.line().unwrap_or(u64::MAX), problem.column()));
        Self::Refused(Refusal { file: file.to_owned(), problems })
    }

    /// A refusal of a study that has no file.
    pub(super) fn of_no_file(problems: Vec<Problem>) -> Self {
        Self::refused("study", None, problems)
    }

    /// What is wrong with the study; empty if the file couldn't be had at all.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Refused(refusal) => &refusal.problems,
            _ => &[],
        }
    }
}

/// One line per problem, each as `file:line:column: path: what`.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.render(&self.file, f)?;
        }
        Ok(())
    }
}

/// The end of the sentence about a folder without a study.
fn others(studies: &[String]) -> String {
    match studies {
        [] => "; give a study file, or a folder that holds one".to_owned(),
        studies => {
            let names: Vec<String> = studies.iter().map(|name| format!("`{name}`")).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}
