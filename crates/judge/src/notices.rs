//! From notices to the lines that are printed: the judge's own as they are, those of the runs gathered by kind, so that
//! 36 runs with the same trouble make one line.

use std::collections::{BTreeMap, BTreeSet};

use unladen_journal::notices::{Notice, Severity};
use unladen_journal::record::RunRecord;

use super::evidence::Evidence;
use super::findings::NoticeLine;

impl From<&Notice> for NoticeLine {
    fn from(notice: &Notice) -> Self {
        Self { code: notice.code(), severity: notice.severity(), text: notice.to_string() }
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
    let mut kinds: BTreeMap<(String, Option<&str>), Kind<'_>> = BTreeMap::new();
    for run in evidence.valid() {
        for notice in &run.notices {
            kinds.entry((notice.code(), service(notice))).or_default().add(run, notice);
        }
    }
    let runs = evidence.valid().count();
    kinds.into_values().filter_map(|kind| kind.line(runs)).collect()
}

/// One kind of notice.
#[derive(Default)]
struct Kind<'a> {
    runs: BTreeSet<u32>,
    worst: Option<(&'a RunRecord, &'a Notice)>,
}

impl<'a> Kind<'a> {
    fn add(&mut self, run: &'a RunRecord, notice: &'a Notice) {
        self.runs.insert(run.run);
        if self.worst.is_none_or(|(_, worst)| weight(notice) > weight(worst)) {
            self.worst = Some((run, notice));
        }
    }

    fn line(&self, runs: usize) -> Option<(Severity, NoticeLine)> {
        let (run, worst) = self.worst?;
        let mut line = NoticeLine::from(worst);
        let many = match self.runs.len() {
            1 if runs > 1 => format!("in run {} ({}, round {})", run.run, run.variant, run.round),
            all if all == runs => "in every run".to_owned(),
            some => format!("in {some} of {runs} runs"),
        };
        let worst_of = if self.runs.len() > 1 && weight(worst) > 0.0 {
            format!(", at worst in run {}", run.run)
        } else {
            String::new()
        };
        line.text = format!("{many}{worst_of}: {}", line.text);
        Some((worst.severity(), line))
    }
}

/// How bad a notice is among its kind.
fn weight(notice: &Notice) -> f64 {
    match notice {
        Notice::Throttled { percent, .. } | Notice::Steal { percent } | Notice::OthersBusy { percent } => *percent,
        Notice::ScrapeFailed { failed, .. } => f64::from(*failed),
        _ => 0.0,
    }
}

fn service(notice: &Notice) -> Option<&str> {
    match notice {
        Notice::Throttled { service, .. }
        | Notice::Killed { service, .. }
        | Notice::ScrapeFailed { service, .. }
        | Notice::ScrapeMissing { service, .. } => Some(service),
        _ => None,
    }
}
