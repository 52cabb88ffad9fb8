//! Rounds: how many, or until when, and how their variants share the time.

use std::time::Duration;

use unladen_journal::notices::MIN_ROUNDS;
use unladen_journal::record::Design;

use super::super::key::KeyPath;
use super::super::metrics;
use super::super::problem::ProblemKind;
use super::super::spec::OnUndecided;
use super::Check;

/// Shortest and longest block: shorter than a few requests it measures caches, longer than the machine keeps its pace it measures that.
const BLOCK: std::ops::RangeInclusive<Duration> = Duration::from_millis(5)..=Duration::from_secs(5);

impl Check<'_> {
    /// `rounds`, and what may end them earlier.
    pub(super) fn rounds(&mut self) {
        let study = self.study;
        let root = KeyPath::default();
        self.range(root.key("rounds"), (1..=10_000).contains(&study.rounds), "from 1 to 10000", study.rounds);
        if !study.until.is_empty() {
            let fits = study.rounds >= MIN_ROUNDS;
            self.range(root.key("rounds"), fits, "at least 6, so that there is an interval to look at", study.rounds);
        }
        let path = root.key("until");
        self.by_metric(&path, &study.until);
        for (name, width) in &study.until {
            let (metric, _) = metrics::of_service(name);
            if metric.starts_with("span_") {
                self.say(path.key(name), ProblemKind::NotByRun { metric: metric.to_owned() });
            } else if metrics::find(metric).and_then(|it| it.limit(width)).is_some_and(|it| it.value <= 0.0) {
                self.range(path.key(name), false, "wider than nothing", width);
            }
        }
        if let Some(time) = study.at_most {
            self.longer_than_zero(root.key("at_most"), time);
        }
        let extends = study.on_undecided == OnUndecided::Extend;
        let one = "both say how long the study goes on; remove one, or write `on_undecided: report`";
        self.apart(&root, &[("until", !study.until.is_empty()), ("on_undecided", extends)], one);
        self.apart(&root, &[("at_most", study.at_most.is_some()), ("on_undecided", extends)], one);
    }

    /// How the variants of a round share the time.
    pub(super) fn design(&mut self) {
        let study = self.study;
        let root = KeyPath::default();
        if let Some(block) = study.block {
            self.range(root.key("block"), BLOCK.contains(&block.0), "from 5ms to 5s", block);
        }
        if study.design == Some(Design::Alternating)
            && let Some(reason) = study.why_separate()
        {
            self.say(root.key("design"), ProblemKind::CannotAlternate(reason));
        }
    }
}
