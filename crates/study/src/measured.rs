//! Reads a run folder back: the resolved `study.yaml`, `host.json` and `journal.jsonl`. It judges nothing.

use std::fs;
use std::path::{Path, PathBuf};

use unladen_journal::notices::Notice;
use unladen_journal::read::{Lines, ReadError, lines};
use unladen_journal::record::{Calibration, RunRecord};

use super::read::{FILE_NAME, read_back};
use super::spec::Study;

/// What a run folder holds: everything that the judge needs to know of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Where it is.
    pub dir: PathBuf,
    /// The study as resolved.
    pub study: Study,
    /// Content of `host.json`; `null` if it is missing.
    pub host: serde_json::Value,
    /// The runs in the order of the journal.
    pub runs: Vec<RunRecord>,
    /// The calibrations; of a variant the last one.
    pub calibrations: Vec<Calibration>,
    /// What was told of the study as a whole, and what was wrong with the files and could be lived with.
    pub notices: Vec<Notice>,
}

/// Reads the run folder `dir`.
///
/// # Errors
/// When `study.yaml` or `journal.jsonl` cannot be read, or the journal's format is newer than this program.
pub fn read(dir: &Path) -> Result<Measured, ReadError> {
    let study_path = dir.join(FILE_NAME);
    // By the tree: a second way from YAML to a study would double the time that this crate takes to compile.
    let study = read_back(&text_of(&study_path)?, FILE_NAME)
        .map_err(|error| ReadError::Study { path: study_path, message: error.to_string() })?;
    let Lines { runs, calibrations, mut notices } = lines(&bytes_of(&dir.join("journal.jsonl"))?)?;
    let host = match host(&dir.join("host.json")) {
        Ok(host) => host,
        Err(message) => {
            notices.push(Notice::HostUnknown { message });
            serde_json::Value::Null
        }
    };
    Ok(Measured { dir: dir.to_owned(), study, host, runs, calibrations, notices })
}

fn host(path: &Path) -> Result<serde_json::Value, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

fn text_of(path: &Path) -> Result<String, ReadError> {
    fs::read_to_string(path).map_err(|source| ReadError::File { path: path.to_owned(), source })
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, ReadError> {
    fs::read(path).map_err(|source| ReadError::File { path: path.to_owned(), source })
}
