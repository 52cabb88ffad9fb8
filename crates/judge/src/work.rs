//! Same work or no verdict: a variant that answers differently has not done what the baseline did, and what it cost
//! cannot be held against it.
//!
//! Compared are the shares of failed requests, of status codes and of response bodies, by total variation distance
//! (half the sum of the absolute differences of the shares: the share of answers that would have to change). The limit is
//! 1 %, or three times what the baseline's runs typically (median) differ by from all of them, whichever is more. Bodies are compared by length and hash
//! as long as the baseline agrees with itself about them; if not (timestamps, random content), by length; if it does not agree
//! about lengths either, by the mean size of an answer, loosely. What the study's own programs say of their work is compared
//! beside it (`reported_numbers`).

use std::collections::BTreeMap;

use unladen_journal::notices::Notice;
use unladen_journal::record::RunRecord;
use unladen_load::outcome::Outcome;
use unladen_stats::estimate::median;

use super::evidence::{Evidence, VariantRuns};
use super::reported_numbers;
use super::units;

/// Share of answers that may differ in any case.
pub(super) const TOLERANCE: f64 = 0.01;
/// How often its own scatter the baseline may be departed from.
pub(super) const SCATTER: f64 = 3.0;
/// A baseline whose runs differ among themselves by more than this share is not compared in this way.
const STABLE: f64 = 0.10;
/// How far the mean size of an answer may be off when nothing finer can be compared, and how many bytes in any case: an agent may
/// add a response header.
const SIZE_TOLERANCE: f64 = 0.20;
const SIZE_FLOOR: f64 = 256.0;

/// Why the verdicts on a variant are refused, if its work is not the baseline's.
pub(super) fn differs(evidence: &Evidence<'_>, variant: &VariantRuns<'_>) -> Option<Notice> {
    let bare: Vec<&RunRecord> =
        evidence.bare(variant).into_iter().flat_map(|bare| bare.valid.values().copied()).collect();
    let runs: Vec<&RunRecord> = variant.valid.values().copied().collect();
    if bare.is_empty() || runs.is_empty() {
        return None;
    }
    let what = reported_numbers::differs(evidence, variant)
        .or_else(|| errors_differ(&bare, &runs))
        .or_else(|| compare(&bare, &runs, statuses, "status codes"))
        .or_else(|| bodies_differ(&bare, &runs))?;
    Some(Notice::WorkDiffers { variant: variant.name.clone(), what })
}

fn errors_differ(bare: &[&RunRecord], runs: &[&RunRecord]) -> Option<String> {
    let beyond = beyond(bare, runs, errors)?;
    let failed = |runs| shares(&pool(runs, errors)).get(FAILED).copied().unwrap_or(0.0);
    let (here, there) = (units::share(failed(runs)), units::share(failed(bare)));
    Some(format!(
        "{here} of its requests failed ({there} in the baseline), in {} of its {} runs more than noise",
        beyond.runs,
        runs.len()
    ))
}

fn bodies_differ(bare: &[&RunRecord], runs: &[&RunRecord]) -> Option<String> {
    if stable(bare, bodies) {
        compare(bare, runs, bodies, "response bodies (length and hash)")
    } else if stable(bare, lengths) {
        compare(bare, runs, lengths, "lengths of the response bodies")
    } else {
        sizes_differ(bare, runs)
    }
}

/// The class of failed requests.
const FAILED: &str = "failed";

/// Counts by class of one run.
type Counts = BTreeMap<String, f64>;

fn errors(run: &RunRecord) -> Counts {
    let load = run.load.as_ref();
    let count = |number: fn(&Outcome) -> u64| load.map_or(0.0, |load| number(load) as f64);
    Counts::from([("good".to_owned(), count(|load| load.requests)), (FAILED.to_owned(), count(|load| load.errors))])
}

/// Of answers that were the end of a request: how often it is asked again that is not ready yet is the pace, not the work.
fn statuses(run: &RunRecord) -> Counts {
    let Some(load) = &run.load else { return Counts::new() };
    let again = |status| load.asked_again.get(status).copied().unwrap_or(0);
    let ends = load.statuses.iter().map(|(status, count)| (status, count.saturating_sub(again(status))));
    ends.map(|(status, count)| (status.to_string(), count as f64)).collect()
}

fn bodies(run: &RunRecord) -> Counts {
    classes(run, |length, hash| format!("{length} bytes, {hash}"))
}

fn lengths(run: &RunRecord) -> Counts {
    classes(run, |length, _| format!("{length} bytes"))
}

fn classes(run: &RunRecord, class: fn(u64, &str) -> String) -> Counts {
    let mut counts = Counts::new();
    let Some(load) = &run.load else { return counts };
    for body in &load.bodies {
        *counts.entry(class(body.length, &body.hash)).or_default() += body.count as f64;
    }
    if load.other_bodies > 0 {
        counts.insert(OTHERS.to_owned(), load.other_bodies as f64);
    }
    counts
}

/// Bodies beyond the classes that the generator keeps apart: they may be anything, so they are never stable.
const OTHERS: &str = "others";

/// Whether the baseline's runs agree among themselves.
fn stable(bare: &[&RunRecord], count: fn(&RunRecord) -> Counts) -> bool {
    let pooled = shares(&pool(bare, count));
    pooled.get(OTHERS).is_none_or(|others| *others <= TOLERANCE) && scatter(bare, &pooled, count) <= STABLE
}

/// Runs that are farther from the baseline than the baseline's own.
struct OutlyingRuns {
    runs: usize,
    /// Distance of the farthest.
    worst: f64,
}

fn beyond(bare: &[&RunRecord], runs: &[&RunRecord], count: fn(&RunRecord) -> Counts) -> Option<OutlyingRuns> {
    let pooled = shares(&pool(bare, count));
    let limit = f64::max(TOLERANCE, SCATTER * scatter(bare, &pooled, count));
    let distances = runs.iter().map(|run| distance(&pooled, &shares(&count(run))));
    let beyond: Vec<f64> = distances.filter(|distance| *distance > limit).collect();
    Some(OutlyingRuns { runs: beyond.len(), worst: beyond.into_iter().reduce(f64::max)? })
}

fn compare(bare: &[&RunRecord], runs: &[&RunRecord], count: fn(&RunRecord) -> Counts, what: &str) -> Option<String> {
    let beyond = beyond(bare, runs, count)?;
    let most = |runs| most_frequent(&shares(&pool(runs, count)));
    Some(format!(
        "other {what} in {} of its {} runs, for up to {} of the requests: mostly {}, in the baseline mostly {}",
        beyond.runs,
        runs.len(),
        units::share(beyond.worst),
        most(runs),
        most(bare),
    ))
}

fn sizes_differ(bare: &[&RunRecord], runs: &[&RunRecord]) -> Option<String> {
    let size = |runs: &[&RunRecord]| {
        let loads = || runs.iter().filter_map(|run| run.load.as_ref());
        let answers: u64 = loads().flat_map(|load| load.statuses.values()).sum();
        let bytes: u64 = loads().map(|load| load.bytes_received).sum();
        (answers > 0).then(|| bytes as f64 / answers as f64)
    };
    let (bare, here) = (size(bare)?, size(runs)?);
    ((here - bare).abs() > f64::max(SIZE_FLOOR, SIZE_TOLERANCE * bare))
        .then(|| format!("an answer has {here:.0} bytes on average, {bare:.0} in the baseline"))
}

fn pool(runs: &[&RunRecord], count: fn(&RunRecord) -> Counts) -> Counts {
    let mut pooled = Counts::new();
    for (class, count) in runs.iter().flat_map(|run| count(run)) {
        *pooled.entry(class).or_default() += count;
    }
    pooled
}

fn shares(counts: &Counts) -> Counts {
    let total: f64 = counts.values().sum();
    counts.iter().filter(|_| total > 0.0).map(|(class, count)| (class.clone(), count / total)).collect()
}

/// How far a run typically is from all of them together. The median, so that one wild run does not excuse everything.
fn scatter(runs: &[&RunRecord], pooled: &Counts, count: fn(&RunRecord) -> Counts) -> f64 {
    let distances: Vec<f64> = runs.iter().map(|run| distance(pooled, &shares(&count(run)))).collect();
    median(&distances).unwrap_or(0.0)
}

/// Total variation distance; 0 if one side has nothing to compare.
fn distance(a: &Counts, b: &Counts) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let share = |shares: &Counts, class: &String| shares.get(class).copied().unwrap_or(0.0);
    let only_b = b.iter().filter(|(class, _)| !a.contains_key(*class)).map(|(_, share)| *share);
    (a.iter().map(|(class, mine)| (mine - share(b, class)).abs()).chain(only_b).sum::<f64>()) / 2.0
}

fn most_frequent(shares: &Counts) -> String {
    let most = shares.iter().max_by(|a, b| a.1.total_cmp(b.1));
    most.map_or_else(|| "none".to_owned(), |(class, share)| format!("{class} ({})", units::share(*share)))
}
