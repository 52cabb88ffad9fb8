//! The run folder of a study: made, or opened again to go on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The resolved study in a run folder.
pub const STUDY_FILE: &str = "study.yaml";
/// The machine in a run folder.
pub const HOST_FILE: &str = "host.json";

/// The run folder could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Making it failed.
    #[error("cannot make the run folder {}: {source}. Choose another with `--out`", path.display())]
    Make {
        /// Folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file in it could not be written.
    #[error("cannot write {}: {source}. Free some space, or choose another folder with `--out`", path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// `--out` names a folder that holds something else.
    #[error("{} already holds a study. Go on with `--resume {}`, or choose another folder", path.display(), path.display())]
    Taken {
        /// Folder.
        path: PathBuf,
    },
    /// `--resume` names a folder without a study.
    #[error("{} holds no study to go on with: there is no {missing} in it", path.display())]
    NotAStudy {
        /// Folder.
        path: PathBuf,
        /// The file that is missing.
        missing: &'static str,
    },
}

/// Below this many free bytes not even the next line of the journal is sure to fit.
const FULL: u64 = 64 * 1024;

/// A run folder that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes the folder at `path`; it must not hold a study already.
    ///
    /// # Errors
    /// When it is taken or cannot be made.
    pub fn create(path: &Path) -> Result<Self, FolderError> {
        if path.join(STUDY_FILE).exists() {
            return Err(FolderError::Taken { path: path.to_owned() });
        }
        make(path)?;
        let path = path.canonicalize().map_err(|source| FolderError::Make { path: path.to_owned(), source })?;
        Ok(Self { path })
    }

    /// Opens a folder that holds a study.
    ///
    /// # Errors
    /// When it does not.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        for missing in [STUDY_FILE, HOST_FILE] {
            if !path.join(missing).is_file() {
                return Err(FolderError::NotAStudy { path: path.to_owned(), missing });
            }
        }
        let path = path.canonicalize().map_err(|source| FolderError::Make { path: path.to_owned(), source })?;
        Ok(Self { path })
    }

    /// Where it is, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file system that holds it is full: then whatever failed, failed because of that.
    #[must_use]
    pub fn is_full(&self) -> bool {
        rustix::fs::statvfs(&self.path).is_ok_and(|system| system.f_bavail * system.f_frsize < FULL)
    }

    /// Writes a file of the folder, whole or not at all.
    ///
    /// # Errors
    /// When the disk is full or the folder is not writable.
    pub fn write(&self, name: &str, text: &str) -> Result<(), FolderError> {
        let path = self.path.join(name);
        let part = self.path.join(format!(".{name}.part"));
        fs::write(&part, text).and_then(|()| fs::rename(&part, &path)).map_err(|source| {
            let _ = fs::remove_file(&part);
            FolderError::Write { path, source }
        })
    }

    /// Makes the folder of one run, emptied of what an interrupted attempt left.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn run(&self, dir: &str) -> Result<PathBuf, FolderError> {
        let path = self.path.join(dir);
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|source| FolderError::Make { path: path.clone(), source })?;
        }
        make(&path.join("logs"))?;
        Ok(path)
    }
}

fn make(path: &Path) -> Result<(), FolderError> {
    fs::create_dir_all(path).map_err(|source| FolderError::Make { path: path.to_owned(), source })
}
