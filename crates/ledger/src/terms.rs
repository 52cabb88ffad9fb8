//! What the account is made from, and what it says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What the load generator did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load<'a> {
    /// Every second of the load, in order, warm-up included.
    pub seconds: &'a [SecondOfRequests],
    /// Requests sent in all. What exceeds the sum over the seconds is accounted for without a second.
    pub sent: u64,
    /// Requests answered in all, with any status.
    pub answered: u64,
    /// Of those, requests that carried the sampled flag.
    pub sampled: u64,
}

/// One second of the load, by the instant requests were due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SecondOfRequests {
    /// Index of the first request due in it.
    pub first_index: u64,
    /// Requests sent.
    pub sent: u64,
    /// Requests answered, with any status.
    pub answered: u64,
    /// Of those, requests that carried the sampled flag.
    pub sampled: u64,
}

/// Who decides which requests are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// The load generator, by the sampled flag (parent-based sampling in the service).
    Flag,
    /// The service: it keeps this share of all requests at random, whatever the flag says; 1 for all.
    Own(f64),
}

/// The account of every span of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Answered requests times spans per request.
    pub expected: u64,
    /// Spans of one recorded request.
    pub spans_per_request: f64,
    /// Whether that was declared; else it was learned from the traces that arrived, unless `calibrated`.
    pub declared: bool,
    /// Whether it was learned from a slow load before.
    pub calibrated: bool,
    /// Whether spans were only counted, not tied to requests: then nothing is known of traces and seconds.
    pub by_count: bool,
    /// Who counted them, if not the sink.
    pub counted_by: Option<String>,
    /// Share of the arrived traces that have exactly that many spans, 0 to 1; 0 if none arrived.
    pub agreement: f64,
    /// Spans of requests that were not to be recorded.
    pub sampled_out: u64,
    /// Distinct spans of the load in the store.
    pub saved: u64,
    /// Spans that were due and never arrived.
    pub lost: u64,
    /// Lost spans by stage, as far as anybody says: `rejected` by the sink, `export` by its faults, and whatever agents say
    /// of themselves (`queue`, `export`, …).
    /// Never more than are lost.
    pub by_stage: BTreeMap<String, u64>,
    /// What the books do not explain: more spans than expected (negative) or fewer.
    pub unexplained: i64,
    /// Spans received more than once.
    pub duplicates: u64,
    /// Distinct spans whose trace id is not of the load.
    pub foreign: u64,
    /// Due traces with all of their spans. If spans per request is no whole number: with any.
    pub complete: u64,
    /// Due traces with some of their spans.
    pub partial: u64,
    /// Due traces with none.
    pub missing: u64,
    /// Traces that must be of answered requests that were not to be recorded: a sampler that does not do as declared.
    pub unasked: u64,
    /// Traces with a span whose parent was lost: see [`Shape`](crate::summary::Shape).
    pub orphaned: u64,
    /// Traces with a span that names no parent or itself as its ancestor.
    pub wrong_parent: u64,
    /// Spans that arrived more than ten seconds after their end.
    pub late: u64,
    /// Lost spans by second of the load; of seconds that were settled together, by what was due in each.
    pub lost_by_second: Vec<u64>,
}

impl Ledger {
    /// Spans that were due, those of requests that were to be recorded.
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.expected.saturating_sub(self.sampled_out)
    }

    /// Whether every recorded request makes as many spans as any other; else spans per request are a mean, and so is what is wanted.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        as_whole(self.spans_per_request).is_some()
    }
}

/// Why there is no account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LedgerError {
    /// Not declared, and no trace from which to learn.
    #[error("no span of the load arrived, so spans per request cannot be learned; declare it in the study")]
    NothingToLearnFrom,
    /// The sink was not told how trace ids are made.
    #[error("the sink was not told the load's tag and key, so its spans cannot be tied to requests; set `requests`")]
    NotTied,
    /// Negative, infinite or no number.
    #[error("spans per request must be 0 or more; correct it in the study")]
    SpansPerRequest,
    /// Not within 0 and 1.
    #[error("the share of requests that a service records must lie between 0 and 1; correct it in the study")]
    Share,
}

/// The same number, if it is a whole one.
pub(super) fn as_whole(spans: f64) -> Option<u32> {
    (spans.fract() == 0.0 && spans <= f64::from(u32::MAX)).then_some(spans as u32)
}
