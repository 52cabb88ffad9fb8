//! Writing the journal: one line per run, on disk before the next run starts.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::record::{Calibration, CalibrationRecord, NoticeRecord, RunRecord, SCHEMA};
use crate::notices::Notice;

/// Name of the journal in a run folder.
pub const FILE: &str = "journal.jsonl";

/// The journal could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}. {}", path.display(), remedy(source))]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

/// What to do about it.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "Free some space and go on with `unladen run --resume` on this folder; the runs so far are kept"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Choose a folder that you may write to with `--out`"
        }
        _ => "The runs so far are kept; `unladen run --resume` on this folder goes on",
    }
}

/// The journal of a study under way.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens the journal in `folder` to append to it; makes it if there is none. A line that a crash has cut off is
    /// removed, so that the next line starts on a line of its own.
    ///
    /// # Errors
    /// When the file cannot be opened, read or cut.
    pub fn open(folder: &Path) -> Result<Self, WriteError> {
        let path = folder.join(FILE);
        let open = || -> io::Result<File> {
            let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            if whole < text.len() {
                file.set_len(whole as u64)?;
            }
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(Self { file, path }),
            Err(source) => Err(WriteError { path, source }),
        }
    }

    /// Appends a calibration and waits until it is on disk.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn append_calibration(&mut self, calibration: &Calibration) -> Result<(), WriteError> {
        self.line(&CalibrationRecord { schema: SCHEMA, calibration: calibration.clone() })
    }

    /// Appends a notice of the study as a whole and waits until it is on disk.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn append_notice(&mut self, notice: &Notice) -> Result<(), WriteError> {
        self.line(&NoticeRecord { schema: SCHEMA, notice: notice.clone() })
    }

    /// Appends one run and waits until it is on disk.
    ///
    /// # Errors
    /// When the disk is full or the file cannot be written. A line that got onto disk in part is cut off again.
    pub fn append(&mut self, record: &RunRecord) -> Result<(), WriteError> {
        self.line(record)
    }

    /// Appends the runs of an alternating round together, and waits until they are on disk.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn append_round(&mut self, records: &[RunRecord]) -> Result<(), WriteError> {
        self.lines(records)
    }

    fn line(&mut self, record: &impl Serialize) -> Result<(), WriteError> {
        self.lines(std::slice::from_ref(record))
    }

    fn lines(&mut self, records: &[impl Serialize]) -> Result<(), WriteError> {
        let start = self.file.stream_position().map_err(|source| self.error(source))?;
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, record).map_err(|error| self.error(error.into()))?;
            lines.push(b'\n');
        }
        self.file.write_all(&lines).and_then(|()| self.file.sync_data()).map_err(|source| {
            // Best effort: the reader ignores a torn last line anyway.
            let _ = self.file.set_len(start);
            self.error(source)
        })
    }

    fn error(&self, source: io::Error) -> WriteError {
        WriteError { path: self.path.clone(), source }
    }
}
