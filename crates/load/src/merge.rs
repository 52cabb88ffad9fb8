//! One outcome from those of all shards of a load: counts and histograms add up exactly. A missing shard is an error, since
//! nothing can be said of a load of which a part is unknown.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LoadError;
use crate::histogram::{self, Histograms, quantiles};
use crate::outcome::{BodyClass, Named, NamedSecond, Outcome, Second, Tested};

/// Name of the file that a shard writes beside its histograms.
pub const FILE_NAME: &str = "outcome.json";
/// Classes of bodies in an outcome.
const MAX_BODIES: usize = 16;

/// Why outcomes cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A folder's files cannot be read.
    #[error("cannot read the shard in {path}: {message}. It holds outcome.json and latency.hdr once its load has ended", path = .path.display())]
    Read {
        /// Folder.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// An outcome is of a whole load.
    #[error("{path} holds a whole load, not a shard: there is nothing to merge", path = .path.display())]
    Whole {
        /// Folder.
        path: PathBuf,
    },
    /// Parts are missing.
    #[error("shards {missing:?} of {of} are missing: nothing can be said of the load without them")]
    Missing {
        /// Their numbers.
        missing: Vec<u32>,
        /// How many there are.
        of: u32,
    },
    /// The parts are not of one load, or one of them is there twice.
    #[error("{path} does not fit the others: {what}", path = .path.display())]
    Unfit {
        /// Folder.
        path: PathBuf,
        /// What does not fit.
        what: &'static str,
    },
}

/// Writes a shard's outcome.
pub(crate) fn write(folder: &Path, outcome: &Outcome) -> Result<(), LoadError> {
    let path = folder.join(FILE_NAME);
    let text = serde_json::to_string(outcome).map_err(|error| error.to_string());
    text.and_then(|text| fs::write(&path, text + "\n").map_err(|error| error.to_string()))
        .map_err(|message| LoadError::Write { path, message })
}

/// One shard.
pub(crate) struct Part {
    /// Its folder, or what it is called.
    pub(crate) path: PathBuf,
    pub(crate) outcome: Outcome,
    pub(crate) histograms: Histograms,
}

/// Reads what a shard wrote.
fn read(path: &Path) -> Result<Part, MergeError> {
    let failed = |message: String| MergeError::Read { path: path.to_owned(), message };
    let text = fs::read_to_string(path.join(FILE_NAME)).map_err(|error| failed(error.to_string()))?;
    let outcome = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let lines = histogram::read(&path.join(histogram::FILE_NAME)).map_err(failed)?;
    let histograms =
        Histograms::from_tagged(lines).map_err(|message| MergeError::Read { path: path.to_owned(), message })?;
    Ok(Part { path: path.to_owned(), outcome, histograms })
}

/// Merges the shards in these folders: the outcome of the whole load, and its histograms. Quantiles are those of the added
/// histograms; those of [`Outcome::seconds`] and [`Named::seconds`] are the largest of any shard, since no histograms are kept of seconds. Times of
/// the window are the first shard's: other machines have other clocks.
///
/// # Errors
/// [`MergeError`] if they are not all parts of one load, each exactly once.
pub fn folders(folders: &[PathBuf]) -> Result<(Outcome, Histograms), MergeError> {
    merge(folders.iter().map(|folder| read(folder)).collect::<Result<_, _>>()?)
}

/// The same of shards that are here.
pub(crate) fn merge(mut parts: Vec<Part>) -> Result<(Outcome, Histograms), MergeError> {
    parts.sort_by_key(|part| part.outcome.shard.map(|shard| shard.number));
    let mut seen: Vec<u32> = Vec::new();
    let mut of = None;
    for part in &parts {
        let unfit = |what| MergeError::Unfit { path: part.path.clone(), what };
        let shard = part.outcome.shard.ok_or_else(|| MergeError::Whole { path: part.path.clone() })?;
        if *of.get_or_insert(shard.of) != shard.of {
            return Err(unfit("its load has another number of shards"));
        }
        if seen.contains(&shard.number) {
            return Err(unfit("another folder holds the same shard"));
        }
        seen.push(shard.number);
    }
    let of = of.unwrap_or(0);
    let missing: Vec<u32> = (1..=of.max(1)).filter(|number| !seen.contains(number)).collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing { missing, of });
    }
    let mut parts = parts.into_iter();
    let Some(Part { outcome: mut sum, mut histograms, .. }) = parts.next() else {
        return Err(MergeError::Missing { missing: vec![1], of });
    };
    let mut cpu_us = sum.cpu_us_per_request * sum.completed_in_window as f64;
    for part in parts {
        let unfit = |what| MergeError::Unfit { path: part.path.clone(), what };
        if part.outcome.target_rate != sum.target_rate {
            return Err(unfit("its load has another rate"));
        }
        if part.outcome.named.iter().map(|named| &named.name).ne(sum.named.iter().map(|named| &named.name)) {
            return Err(unfit("its load has other requests"));
        }
        let kinds = |outcome: &Outcome| -> Vec<(String, String)> {
            outcome.kinds.iter().map(|kind| (kind.request.clone(), kind.name.clone())).collect()
        };
        if kinds(&part.outcome) != kinds(&sum) {
            return Err(unfit("its load tells other kinds of answers apart"));
        }
        cpu_us += part.outcome.cpu_us_per_request * part.outcome.completed_in_window as f64;
        histograms.add(&part.histograms);
        add(&mut sum, part.outcome);
    }
    sum.shard = None;
    sum.cpu_us_per_request = if sum.completed_in_window > 0 { cpu_us / sum.completed_in_window as f64 } else { 0.0 };
    sum.latency_us = quantiles(&histograms.latency);
    sum.service_time_us = quantiles(&histograms.service_time);
    sum.send_lag_us = quantiles(&histograms.send_lag);
    sum.lateness_us = quantiles(&histograms.lateness);
    for (named, (latency, service_time)) in sum.named.iter_mut().zip(&histograms.named) {
        (named.latency_us, named.service_time_us) = (quantiles(latency), quantiles(service_time));
    }
    for (named, sampled) in sum.named.iter_mut().zip(&histograms.sampled) {
        named.sampled_us = quantiles(sampled);
    }
    for (kind, (latency, iteration)) in sum.kinds.iter_mut().zip(&histograms.kinds) {
        (kind.latency_us, kind.iteration_us) = (quantiles(latency), quantiles(iteration));
    }
    if let (Some(iterations), Some(latency)) = (&mut sum.iterations, &histograms.iterations) {
        iterations.latency_us = quantiles(latency);
    }
    Ok((sum, histograms))
}

/// Adds counts to those of the same name.
pub(crate) fn add_counts<K: Ord>(sum: &mut BTreeMap<K, u64>, part: BTreeMap<K, u64>) {
    for (name, count) in part {
        *sum.entry(name).or_default() += count;
    }
}

/// Adds another shard's counts.
fn add(sum: &mut Outcome, part: Outcome) {
    for (sum, part) in [
        (&mut sum.requests, part.requests),
        (&mut sum.errors, part.errors),
        (&mut sum.completed_in_window, part.completed_in_window),
        (&mut sum.sent_total, part.sent_total),
        (&mut sum.answered_total, part.answered_total),
        (&mut sum.sampled_total, part.sampled_total),
        (&mut sum.bytes_sent, part.bytes_sent),
        (&mut sum.bytes_received, part.bytes_received),
        (&mut sum.other_bodies, part.other_bodies),
        (&mut sum.reconnects, part.reconnects),
        (&mut sum.resent, part.resent),
        (&mut sum.redirected, part.redirected),
        (&mut sum.unanswered, part.unanswered),
        (&mut sum.queued, part.queued),
    ] {
        *sum += part;
    }
    sum.rate += part.rate;
    sum.duration_s = sum.duration_s.max(part.duration_s);
    sum.interrupted |= part.interrupted;
    add_counts(&mut sum.error_classes, part.error_classes);
    add_counts(&mut sum.statuses, part.statuses);
    add_counts(&mut sum.asked_again, part.asked_again);
    add_counts(&mut sum.grpc_statuses, part.grpc_statuses);
    let mut bodies: BTreeMap<(u64, String), u64> = BTreeMap::new();
    for class in std::mem::take(&mut sum.bodies).into_iter().chain(part.bodies) {
        *bodies.entry((class.length, class.hash)).or_default() += class.count;
    }
    sum.bodies = bodies.into_iter().map(|((length, hash), count)| BodyClass { length, hash, count }).collect();
    sum.bodies.sort_by_key(|class| std::cmp::Reverse(class.count));
    let rest = sum.bodies.split_off(sum.bodies.len().min(MAX_BODIES));
    sum.other_bodies += rest.iter().map(|class| class.count).sum::<u64>();
    merge_seconds(&mut sum.seconds, part.seconds);
    for (Named { requests, errors, seconds, .. }, part) in sum.named.iter_mut().zip(part.named) {
        *requests += part.requests;
        *errors += part.errors;
        merge_named(seconds, part.seconds);
    }
    for (sum, part) in sum.kinds.iter_mut().zip(part.kinds) {
        sum.requests += part.requests;
    }
    if let (Some(sum), Some(part)) = (&mut sum.iterations, part.iterations) {
        sum.completed += part.completed;
        sum.failed += part.failed;
        sum.unfinished += part.unfinished;
    }
    for (Tested { passed, failed, .. }, part) in sum.tests.iter_mut().zip(part.tests) {
        *passed += part.passed;
        *failed += part.failed;
    }
    sum.little.in_flight += part.little.in_flight;
    sum.little.expected += part.little.expected;
    sum.little.samples = sum.little.samples.max(part.little.samples);
    sum.little.tolerance += part.little.tolerance;
    // One that does not hold spoils the whole; one that says nothing leaves nothing to say.
    sum.little.holds = match (sum.little.holds, part.little.holds) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        (None, _) | (_, None) => None,
    };
    sum.busiest_thread = sum.busiest_thread.max(part.busiest_thread);
    sum.warnings.extend(part.warnings);
}

/// Adds another shard's rows of a name. Rows of loads of the same length cover the same seconds.
fn merge_named(sum: &mut Vec<NamedSecond>, part: Vec<NamedSecond>) {
    for second in part {
        match sum.iter_mut().find(|row| row.second == second.second) {
            None => sum.push(second),
            Some(row) => {
                row.requests += second.requests;
                row.errors += second.errors;
                row.p50_us = row.p50_us.max(second.p50_us);
                row.p99_us = row.p99_us.max(second.p99_us);
                row.max_us = row.max_us.max(second.max_us);
            }
        }
    }
    sum.sort_by_key(|row| row.second);
}

/// Adds another shard's seconds.
pub(crate) fn merge_seconds(sum: &mut Vec<Second>, part: Vec<Second>) {
    for second in part {
        match sum.iter_mut().find(|row| row.second == second.second) {
            None => sum.push(second),
            Some(row) => {
                row.first_index = row.first_index.min(second.first_index);
                row.sent += second.sent;
                row.answered += second.answered;
                row.sampled += second.sampled;
                row.errors += second.errors;
                row.p50_us = row.p50_us.max(second.p50_us);
                row.p99_us = row.p99_us.max(second.p99_us);
            }
        }
    }
    sum.sort_by_key(|row| row.second);
}
