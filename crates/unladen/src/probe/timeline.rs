//! The timeline of a run: every sample of every probe, written to `timeline.parquet`.
//!
//! Long format, one row per sample, process and metric, so that a new metric needs no new column and DuckDB or pandas
//! can pivot it as they like.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use crate::study::spec::Role;

/// One value of the timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Seconds since the window's start; negative before it.
    pub t_s: f64,
    /// Name of the service, of the instrument's part, or `host`.
    pub service: String,
    /// 0, 1, … within the service.
    pub replica: u32,
    /// What the service is in the study; `None` for the instrument and the host.
    pub role: Option<Role>,
    /// What is measured; its unit is in its name or in the module's table.
    pub metric: Cow<'static, str>,
    /// The value.
    pub value: f64,
}

/// Writes the rows to a Parquet file.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, rows: &[Row]) -> io::Result<()> {
    let _ = (path, rows);
    Err(io::Error::other("the timeline is not written yet"))
}
