//! What a slow calibration teaches: how many spans one request makes, in all and by service and operation, so that a
//! loss under load can be told by operation.

use serde::{Deserialize, Serialize};

use super::parts::{mean, most_frequent};
use super::terms::{Ledger, LedgerError};
use crate::summary::Summary;

/// Spans of one recorded request, learned from a load so slow that nothing is lost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Learned {
    /// Spans of the most frequent trace; with several kinds of requests, see `mean`.
    pub spans_per_request: f64,
    /// Share of the traces that have exactly that many, 0 to 1.
    pub agreement: f64,
    /// Mean over all traces.
    pub mean: f64,
    /// By service and operation, in the order of the summary.
    pub operations: Vec<LearnedOperation>,
}

/// Spans of one service and operation in one request, on average.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedOperation {
    /// Service name.
    pub service: String,
    /// Span name.
    pub operation: String,
    /// Spans per recorded request.
    pub spans_per_request: f64,
}

/// Spans that one operation has too few.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shortfall {
    /// Service name.
    pub service: String,
    /// Span name.
    pub operation: String,
    /// Due by what was learned.
    pub due: f64,
    /// In the store.
    pub saved: u64,
}

/// Learns from the summary of a calibration.
///
/// # Errors
/// [`LedgerError::NothingToLearnFrom`] if no span of its requests arrived.
pub fn learn(calibration: &Summary) -> Result<Learned, LedgerError> {
    let mut traces = std::collections::BTreeMap::new();
    for (spans, requests) in calibration.spans_by_request.iter().filter(|(spans, _)| *spans > 0) {
        *traces.entry(*spans).or_insert(0) += requests;
    }
    let most = most_frequent(&traces).ok_or(LedgerError::NothingToLearnFrom)?;
    let all: u64 = traces.values().sum();
    let operations = calibration.operations.iter().filter(|operation| operation.of_load > 0);
    Ok(Learned {
        spans_per_request: f64::from(most),
        agreement: traces[&most] as f64 / all as f64,
        mean: mean(&traces),
        operations: operations
            .map(|operation| LearnedOperation {
                service: operation.service.clone(),
                operation: operation.operation.clone(),
                spans_per_request: operation.of_load as f64 / all as f64,
            })
            .collect(),
    })
}

impl Learned {
    /// Operations of which fewer spans are in the store than `ledger` says are due, largest lack first.
    pub fn shortfalls(&self, ledger: &Ledger, summary: &Summary) -> Vec<Shortfall> {
        let traces = (ledger.complete + ledger.partial + ledger.missing) as f64;
        let saved = |learned: &LearnedOperation| {
            let found = summary
                .operations
                .iter()
                .find(|known| known.service == learned.service && known.operation == learned.operation);
            found.map_or(0, |operation| operation.of_load)
        };
        let mut shortfalls: Vec<Shortfall> = self
            .operations
            .iter()
            .map(|learned| Shortfall {
                service: learned.service.clone(),
                operation: learned.operation.clone(),
                due: learned.spans_per_request * traces,
                saved: saved(learned),
            })
            .filter(|shortfall| shortfall.due - shortfall.saved as f64 >= 0.5)
            .collect();
        let lack = |shortfall: &Shortfall| shortfall.due - shortfall.saved as f64;
        shortfalls.sort_by(|a, b| lack(b).total_cmp(&lack(a)));
        shortfalls
    }
}
