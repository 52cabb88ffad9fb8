//! Finishes what a sink that was killed has left: torn files get their footer, the log becomes a file.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use super::encode::Encoder;
use super::file::{self, SpanFile, partial};
use super::group::Group;
use super::log::{self, Log};
use super::writer::path;
use crate::config::Attributes;
use crate::error::SinkError;

/// What was found and finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Files that had no footer and have one now.
    pub files: u64,
    /// Rows in those files.
    pub rows: u64,
    /// Rows that were in the log only and are in a file now.
    pub logged_rows: u64,
}

/// Finishes the span files of a sink that was killed, so that every span it acknowledged can be read; `out` is its folder,
/// the one with `spans` in it. Does nothing if they are whole already, and may itself be interrupted and repeated.
/// No sink must be at work there.
///
/// # Errors
/// If a file cannot be read or written, or is none of a sink's.
pub fn recover(out: &Path) -> Result<Recovered, SinkError> {
    let folder = out.join("spans");
    let mut recovered = Recovered::default();
    let (mut last_group, mut last_file) = (0, 0);
    for path in files(&folder)? {
        let failed = |source| SinkError::Store { path: path.clone(), source };
        last_file = last_file.max(number(&path));
        if !partial(&path).exists() {
            last_group = last_group.max(file::last_group(&path).map_err(failed)?);
            continue;
        }
        match SpanFile::reopen(path.clone()).map_err(failed)? {
            Some(file) => {
                file.finish().map_err(failed)?;
                recovered.files += 1;
                recovered.rows += file.rows();
                last_group = last_group.max(file.last_group());
            }
            None => fs::remove_file(partial(&path)).map_err(SinkError::folder(&path))?,
        }
    }
    let blocks = log::read(&folder).map_err(SinkError::folder(&folder))?;
    let new = path(&folder, last_file + 1);
    let failed = |source| SinkError::Store { path: new.clone(), source };
    recovered.logged_rows = write(&blocks, last_group, new.clone()).map_err(failed)?;
    Log::remove(&folder).map_err(SinkError::folder(&folder))?;
    Ok(recovered)
}

/// Writes the spans of the log that no file has; returns how many.
fn write(blocks: &[log::Block], last_group: u64, path: PathBuf) -> Result<u64, ParquetError> {
    let mut groups = vec![Group::default()];
    let mut last = last_group;
    for (group, spans) in blocks.iter().filter(|(group, _)| *group > last_group) {
        last = last.max(*group);
        let mut rest = &spans[..];
        while let Some(logged) = log::next(&mut rest) {
            if let Some(full) = groups.last().filter(|group| group.is_full()) {
                let mut next = Group::default();
                next.succeed(full);
                groups.push(next);
            }
            if let Some(group) = groups.last_mut() {
                // Only what was to be stored was logged.
                let log::Logged { span, source, request, protocol, arrival_ns } = &logged;
                let origin = group.origin(source);
                group.push(span, origin, *request, *protocol, *arrival_ns, Attributes::All);
            }
        }
    }
    let rows = groups.iter().map(|group| group.len() as u64).sum();
    // The last group has all columns.
    let Some(keys) = groups.last().map(|group| group.keys.clone()).filter(|_| rows > 0) else { return Ok(0) };
    let mut file = SpanFile::create(path, &keys)?;
    let mut encoder = Encoder::new()?;
    for group in &mut groups {
        group.keys = keys.clone();
        file.append(&mut encoder, group, last, &mut Vec::new())?;
    }
    file.finish()?;
    Ok(rows)
}

/// Paths of all span files, finished or not, as they are called when finished.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, SinkError> {
    let mut files = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        entries => entries.map_err(SinkError::folder(folder))?,
    };
    for entry in entries {
        let path = entry.map_err(SinkError::folder(folder))?.path();
        match path.extension().and_then(OsStr::to_str) {
            Some("parquet") => files.push(path),
            Some("partial") => files.push(path.with_extension("")),
            _ => {}
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn number(path: &Path) -> u32 {
    path.file_stem().and_then(OsStr::to_str).and_then(|stem| stem.parse().ok()).unwrap_or(0)
}
