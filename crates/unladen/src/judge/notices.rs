//! From notices to the lines that are printed: the judge's own as they are, those of the runs gathered by kind, so that
//! 36 runs with the same trouble make one line.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use super::findings::NoticeLine;
use crate::journal::record::RunRecord;
use crate::notices::{Notice, Severity};

impl From<&Notice> for NoticeLine {
    fn from(notice: &Notice) -> Self {
        Self { code: notice.code(), severity: severity(notice.severity()).to_owned(), text: notice.to_string() }
    }
}

/// All lines, the gravest first.
pub(super) fn lines(evidence: &Evidence<'_>, own: &[Notice]) -> Vec<NoticeLine> {
    let mut lines: Vec<(Severity, NoticeLine)> = own.iter().map(|it| (it.severity(), NoticeLine::from(it))).collect();
    lines.extend(gathered(evidence));
    lines.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The notices of the runs that count, one line per kind (and service): how many runs, and the worst of them.
fn gathered(evidence: &Evidence<'_>) -> Vec<(Severity, NoticeLine)> {
    let mut kinds: BTreeMap<(String, Option<&str>), Vec<(&RunRecord, &Notice)>> = BTreeMap::new();
    let mut runs = 0;
    for run in evidence.valid() {
        runs += 1;
        for notice in &run.notices {
            kinds.entry((notice.code(), service(notice))).or_default().push((run, notice));
        }
    }
    let line = |((code, _), given): ((String, Option<&str>), Vec<(&RunRecord, &Notice)>)| {
        let affected =
            given.iter().map(|(run, _)| (&run.variant, run.round)).collect::<std::collections::BTreeSet<_>>().len();
        let (run, worst) = given.into_iter().max_by(|a, b| weight(a.1).total_cmp(&weight(b.1)))?;
        let text = match (affected, weight(worst)) {
            (all, 0.0) if all == runs => format!("in every run: {worst}"),
            (all, _) if all == runs => format!("in every run, at worst in run {}: {worst}", run.run),
            (1, _) => format!("in run {} ({}, round {}): {worst}", run.run, run.variant, run.round),
            (some, 0.0) => format!("in {some} of {runs} runs: {worst}"),
            (some, _) => format!("in {some} of {runs} runs, at worst in run {}: {worst}", run.run),
        };
        Some((worst.severity(), NoticeLine { code, severity: severity(worst.severity()).to_owned(), text }))
    };
    kinds.into_iter().filter_map(line).collect()
}

/// How bad a notice is among its kind.
fn weight(notice: &Notice) -> f64 {
    match notice {
        Notice::Throttled { percent, .. } | Notice::Steal { percent } | Notice::OthersBusy { percent } => *percent,
        _ => 0.0,
    }
}

fn service(notice: &Notice) -> Option<&str> {
    match notice {
        Notice::Throttled { service, .. } | Notice::Killed { service, .. } => Some(service),
        _ => None,
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Refusal => "refusal",
    }
}
