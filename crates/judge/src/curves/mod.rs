//! What does not fit into one number per run: distributions of the latency and courses over time, reduced for charts.
//!
//! Read from the journal and the files beside it (`latency.hdr`, `timeline.parquet`) by whoever wants to draw them; `findings.json` does
//! not have them, and no verdict rests on them. A file that is missing leaves a gap and is counted.

use std::path::Path;

use serde::Serialize;
use unladen_journal::read::ReadError;
use unladen_study::measured::{self, Measured};

use super::evidence::Evidence;
use pace::PaceRound;
use parts::names;
pub use parts::{Band, Course, Latency, RunCourse, VariantLatency, VariantName};
use services::Resources;

mod latency;
pub mod pace;
mod parts;
pub mod services;
mod time;

/// Curves for the charts of a study.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Curves {
    /// All variants with runs, the baseline first.
    #[serde(rename = "arms")]
    pub variants: Vec<VariantName>,
    /// Distributions of the latency.
    pub latency: Option<Latency>,
    /// Courses over time.
    pub courses: Vec<Course>,
    /// CPU per request over the time of alternating rounds.
    pub pace: Vec<PaceRound>,
    /// Files that should be there and could not be read.
    pub unread: u32,
}

/// What every service of the run folder `dir` took over the time of a run.
///
/// # Errors
/// When the folder cannot be read.
pub fn resources(dir: &Path) -> Result<Resources, ReadError> {
    Ok(services::read(&measured::read(dir)?))
}

/// Reads and reduces the curves of all runs that count.
pub(super) fn read(folder: &Measured) -> Curves {
    let evidence = Evidence::of(folder);
    let mut unread = 0;
    let variants = names(&evidence);
    let latency = latency::read(&evidence, &mut unread);
    let courses = time::read(&evidence, &mut unread);
    Curves { variants, latency, courses, pace: pace::read(&evidence), unread }
}
