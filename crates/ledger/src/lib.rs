#![doc = include_str!("../README.md")]
//! ## Rules
//!
//! The sink knows how many distinct spans each request has; the load generator, second by second, how many requests it
//! sent, were answered, and of those carried the sampled flag; not which ones. Hence the rules:
//!
//! - **Expected** are `spans_per_request` for every *answered* request; of those, **sampled out** are the requests that
//!   were not to be recorded. The rest are *due*. **Saved** is every distinct span of the load in the store.
//! - In each second, the traces that arrived are taken for the due ones, fullest first. What these lack up to
//!   `spans_per_request`, and whole traces that are missing, is **lost**. So loss is never overstated; it is understated by
//!   no more than the traces of unanswered requests in the same second. Seconds whose requests' numbers mix, as those of
//!   sequences do in a burst, are settled together.
//! - Everything else that arrived was not expected: spans beyond `spans_per_request`, traces of unanswered requests, traces
//!   of requests that were not to be recorded ([`Ledger::unasked`] counts those that can be nothing else). It makes
//!   **unexplained** negative and is never set off against a loss.
//! - If `spans_per_request` is no whole number, a request may rightly have more or fewer, so a trace that arrived is not
//!   judged: only missing traces are lost, at the average each, and the difference is unexplained, of either sign.
//! - If it is not declared, it is learned: the number of spans that more than half of the traces that arrived have.
//!   [`Ledger::agreement`] says how many have it. If there is none, requests differ or much is lost, and nobody knows which:
//!   then it is the mean of the traces that arrived, and as above only missing traces are lost.
//! - A service that samples by itself ([`Sampling::Own`]) keeps a random number of traces. As long as that number is within
//!   four standard deviations (binomial) of the declared share, no whole trace is called lost.

pub mod faults;
mod learned;
mod parts;
mod sampling;
pub mod summary;
mod terms;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::parts::{Part, mean, most_frequent};
use self::terms::as_whole;
use crate::summary::Summary;
pub use learned::{Learned, LearnedOperation, Shortfall, learn};
pub use terms::{Ledger, LedgerError, Load, Sampling, SecondOfRequests};

/// Closes the account of a load. `spans_per_request` is what the study declares; `None` to learn it.
///
/// # Errors
/// [`LedgerError`] if the number is none that a request can make, if no span could be tied to a request, or if there is nothing to learn it from.
pub fn close(
    summary: &Summary,
    load: &Load<'_>,
    spans_per_request: Option<f64>,
    sampling: Sampling,
) -> Result<Ledger, LedgerError> {
    if spans_per_request.is_some_and(|spans| !(spans.is_finite() && spans >= 0.0)) {
        return Err(LedgerError::SpansPerRequest);
    }
    if summary.spans_by_request.is_empty() && summary.saved > summary.foreign {
        return Err(LedgerError::NotTied);
    }
    let mut parts = parts::parts(load);
    let (arrived, traces) = parts::distribute(&summary.spans_by_request, &mut parts);
    let (per_request, whole) = match spans_per_request {
        Some(declared) => (declared, as_whole(declared)),
        None => majority_or_mean(&traces).ok_or(LedgerError::NothingToLearnFrom)?,
    };
    sampling::decide(&mut parts, sampling, per_request)?;

    let mut account = Account { per_request, whole, complete: 0, partial: 0, missing: 0, unasked: 0 };
    let losses: Vec<f64> = parts.iter().flat_map(|part| part.spread(account.settle(part))).collect();
    let (lost, mut lost_by_second) = rounded(&losses);
    lost_by_second.truncate(load.seconds.len());

    let answered: u64 = parts.iter().map(|part| part.answered).sum();
    let due: u64 = parts.iter().map(|part| part.due).sum();
    let expected = spans(answered, per_request);
    // From the difference of two rounded numbers, so that the rounding cannot unbalance the books.
    let sampled_out = expected - spans(due.min(answered), per_request).min(expected);
    let saved = arrived;
    let unexplained = i128::from(expected) - i128::from(sampled_out) - i128::from(saved) - i128::from(lost);
    let exact = account.whole.and_then(|whole| traces.get(&whole)).copied().unwrap_or(0);
    Ok(Ledger {
        expected,
        spans_per_request: per_request,
        declared: spans_per_request.is_some(),
        agreement: exact as f64 / traces.values().sum::<u64>().max(1) as f64,
        sampled_out,
        saved,
        lost,
        by_stage: by_stage(summary, lost),
        unexplained: unexplained.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
        duplicates: summary.duplicates,
        foreign: summary.foreign,
        complete: account.complete,
        partial: account.partial,
        missing: account.missing,
        unasked: account.unasked,
        orphaned: summary.shape.map_or(0, |shape| shape.orphaned),
        wrong_parent: summary.shape.map_or(0, |shape| shape.wrong_parent),
        late: summary.late,
        lost_by_second,
        ..Ledger::default()
    })
}

/// Lost spans by who says so, the sink first; nobody is believed beyond what is lost.
#[must_use]
pub fn by_stage(summary: &Summary, lost: u64) -> BTreeMap<String, u64> {
    let reported = summary.reported_losses.iter().map(|loss| (loss.stage.as_str(), loss.spans));
    let mut stages: BTreeMap<String, u64> = BTreeMap::new();
    let mut left = lost;
    // What the sink threw away on purpose left the agent and never arrived: that is lost in the export.
    let known = [("rejected", summary.rejected), ("export", summary.dropped)];
    for (stage, spans) in known.into_iter().chain(reported) {
        let believed = spans.min(left);
        if believed > 0 {
            left -= believed;
            *stages.entry(stage.to_string()).or_insert(0) += believed;
        }
    }
    stages
}

/// What more than half of the traces have, also as a whole number; else their mean. `None` without any.
fn majority_or_mean(traces: &BTreeMap<u32, u64>) -> Option<(f64, Option<u32>)> {
    let most = most_frequent(traces)?;
    let is_majority = traces[&most] * 2 > traces.values().sum();
    Some(if is_majority { (f64::from(most), Some(most)) } else { (mean(traces), None) })
}

fn spans(requests: u64, per_request: f64) -> u64 {
    if per_request.fract() == 0.0 {
        requests.saturating_mul(per_request as u64)
    } else {
        (requests as f64 * per_request).round() as u64
    }
}

/// Sum of the losses, and each of them, in whole spans that add up to the sum.
fn rounded(losses: &[f64]) -> (u64, Vec<u64>) {
    let (mut sum, mut given) = (0.0, 0);
    let each = losses
        .iter()
        .map(|loss| {
            sum += loss;
            let share = (sum.round() as u64).saturating_sub(given);
            given += share;
            share
        })
        .collect();
    (given, each)
}

/// Settles part by part.
#[derive(Debug)]
struct Account {
    per_request: f64,
    /// The same, if every request makes that many.
    whole: Option<u32>,
    complete: u64,
    partial: u64,
    missing: u64,
    unasked: u64,
}

impl Account {
    /// Spans lost in a part.
    fn settle(&mut self, part: &Part) -> f64 {
        let mut open = part.due;
        let mut lost = 0.0;
        for (spans, traces) in part.traces.iter().rev() {
            let taken = open.min(*traces);
            open -= taken;
            match self.whole.map(|whole| whole.saturating_sub(*spans)) {
                Some(lacking) if lacking > 0 => {
                    self.partial += taken;
                    lost += f64::from(lacking) * taken as f64;
                }
                _ => self.complete += taken,
            }
        }
        self.missing += open;
        let unanswered = part.sent.saturating_sub(part.answered);
        self.unasked += part.arrived().saturating_sub(part.due).saturating_sub(unanswered);
        lost + open as f64 * self.per_request
    }
}
