//! What the runs that count must be read with, whatever was measured.

use unladen_journal::notices::Notice;

use super::evidence::Evidence;
use super::{little, units};

/// What the runs that count must be read with.
pub(super) fn notices(evidence: &Evidence<'_>) -> Vec<Notice> {
    let little = little::notice(&evidence.folder.study, evidence.valid());
    little.into_iter().chain(bare(evidence)).collect()
}

/// What imported numbers cannot support.
pub(super) fn imported(evidence: &Evidence<'_>) -> Vec<Notice> {
    let runs: Vec<&unladen_journal::record::Imported> =
        evidence.valid().filter_map(|run| run.imported.as_ref()).collect();
    if runs.is_empty() {
        return Vec::new();
    }
    let has = |metric: &str| runs.iter().any(|run| run.numbers.contains_key(metric));
    let mut missing = vec!["whether the variants alternated (they are paired in the order given)"];
    if !has("cpu_per_request") {
        missing.push("the CPU that a request takes");
    }
    if !has("error_rate") {
        missing.push("how many requests failed");
    }
    missing.extend(["whether the answers were the same", "how many spans arrived"]);
    if runs.iter().all(|run| run.requests.is_none()) {
        missing.push("how many requests are behind a quantile");
    }
    vec![Notice::Imported { missing: super::words::list(missing.into_iter().map(str::to_owned)) }]
}

/// A baseline that sends spans is not bare.
fn bare(evidence: &Evidence<'_>) -> Option<Notice> {
    let declared = evidence.folder.study.variants.get(&evidence.baseline.name).and_then(|it| it.spans_per_request);
    let saved: u64 = evidence.baseline.valid.values().filter_map(|run| run.ledger.as_ref()).map(|it| it.saved).sum();
    (declared.is_none_or(|spans| spans == 0.0) && saved > 0)
        .then_some(Notice::BaselineNotBare { spans: units::count(saved) })
}
