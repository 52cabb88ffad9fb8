//! What `unladen run --profile` leaves in a run folder: `runs/profile-VARIANT/profile/`, with one file of folded stacks per
//! service and `profile.json`. It is no line of the journal, since nothing in it is measured.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Name of the file that describes the others.
const FILE: &str = "profile.json";

/// The profiles of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profiles {
    /// Key of the variant.
    pub variant: String,
    /// Requests answered well while it was sampled.
    pub requests: u64,
    /// One per service.
    pub services: Vec<ServiceProfile>,
    /// Why a service has none.
    pub failures: Vec<String>,
}

/// The profile of one service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceProfile {
    /// Name of the service; replicas are added up.
    pub service: String,
    /// What sampled: `async-profiler`, `pprof` or `perf`.
    pub profiler: String,
    /// CPU time that a sample stands for, µs.
    pub period_us: f64,
    /// File of folded stacks, relative to the run folder.
    pub file: String,
}

/// Folder of a variant's profiles, relative to the run folder.
#[must_use]
pub fn folder(variant: &str) -> String {
    format!("runs/profile-{variant}/profile")
}

/// Writes the profiles of a variant; the folded stacks are written before.
///
/// # Errors
/// When the disk is full or the folder is not writable.
pub fn write(dir: &Path, profiles: &Profiles) -> io::Result<()> {
    fs::write(dir.join(folder(&profiles.variant)).join(FILE), serde_json::to_vec_pretty(profiles)?)
}

/// Reads the profiles of a variant; `None` if there are none that can be read.
#[must_use]
pub fn read(dir: &Path, variant: &str) -> Option<Profiles> {
    serde_json::from_slice(&fs::read(dir.join(folder(variant)).join(FILE)).ok()?).ok()
}
