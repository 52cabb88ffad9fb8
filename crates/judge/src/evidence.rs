//! Which runs count, by variant and round: the only way from the journal into a comparison.
//!
//! A run counts if nothing voids it, neither the journal nor Little's law. Of several runs of one variant in one round the
//! *first* that counts is taken: a void run may be repeated under a new number, a valid one cannot be repeated until it
//! pleases. Within a round only runs of one attempt and of one design meet: side by side the absolute numbers may be others than one after
//! the other. Everything left out is told in a notice.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use unladen_journal::notices::{Notice, RoundsNotice};
use unladen_journal::record::{Design, RunRecord, VariantKind};
use unladen_study::matrix::{Cell, cells, labelled, variant_of};
use unladen_study::measured::Measured;

use super::little;

/// All runs of a study, sorted.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) folder: &'a Measured,
    pub(super) baseline: VariantRuns<'a>,
    /// Of a matrix that touches the baseline: its other versions.
    pub(super) other_baselines: Vec<VariantRuns<'a>>,
    pub(super) placebo: Option<VariantRuns<'a>>,
    /// In the order of the study.
    pub(super) variants: Vec<VariantRuns<'a>>,
}

/// The runs of one variant.
#[derive(Debug, Default)]
pub(super) struct VariantRuns<'a> {
    pub(super) name: String,
    pub(super) label: String,
    /// Of a matrix: the values that it was run with.
    pub(super) cell: IndexMap<String, String>,
    /// Name of the variant that it is held against.
    against: String,
    /// All runs, in the order of the journal.
    pub(super) all: Vec<&'a RunRecord>,
    /// The run that counts, by round.
    pub(super) valid: BTreeMap<u32, &'a RunRecord>,
    /// Why the others do not, in the order of the journal.
    pub(super) void: Vec<(&'a RunRecord, Notice)>,
    /// Valid runs of a round that already had one.
    pub(super) surplus: u32,
    /// Runs of attempts at a round that was done again, or of its other design.
    pub(super) set_aside: u32,
}

impl<'a> Evidence<'a> {
    pub(super) fn of(folder: &'a Measured) -> Self {
        let mut variants: Vec<(VariantKind, VariantRuns<'a>)> = Vec::new();
        let attempts = attempts(&folder.runs);
        for run in &folder.runs {
            let index = variants.iter().position(|(_, variant)| variant.name == run.variant).unwrap_or_else(|| {
                let label = label(folder, run);
                let (cell, against) = (run.cell.clone(), run.against.clone());
                variants.push((
                    run.kind,
                    VariantRuns { name: run.variant.clone(), label, cell, against, ..VariantRuns::default() },
                ));
                variants.len() - 1
            });
            if let Some((_, variant)) = variants.get_mut(index) {
                let counts = attempts.get(&run.round).is_none_or(|attempt| *attempt == RoundAttempt::of(run));
                variant.add(folder, run, counts);
            }
        }
        // The journal has them in the random order of the first round; the study has the order that people know.
        let values = cells(&folder.study.matrix);
        variants.sort_by_key(|(_, variant)| {
            let fits = |cell: &Cell| variant.cell.iter().all(|(key, value)| cell.get(key) == Some(value));
            let place = folder.study.variants.get_index_of(variant_of(&variant.name)).unwrap_or(usize::MAX);
            (place, values.iter().position(fits))
        });
        let mut evidence = Self {
            folder,
            baseline: VariantRuns::default(),
            other_baselines: Vec::new(),
            placebo: None,
            variants: Vec::new(),
        };
        for (kind, variant) in variants {
            match kind {
                VariantKind::Baseline if evidence.baseline.all.is_empty() => evidence.baseline = variant,
                VariantKind::Baseline => evidence.other_baselines.push(variant),
                VariantKind::Placebo => evidence.placebo = Some(variant),
                VariantKind::Variant => evidence.variants.push(variant),
            }
        }
        evidence
    }

    /// The baseline that a variant is held against.
    pub(super) fn baseline_of(&self, variant: &VariantRuns<'_>) -> &VariantRuns<'a> {
        self.other_baselines.iter().find(|it| it.name == variant.against).unwrap_or(&self.baseline)
    }

    /// The variants that stand for the bare service as a variant is held against it.
    pub(super) fn bare(&self, variant: &VariantRuns<'_>) -> Vec<&VariantRuns<'a>> {
        let baseline = self.baseline_of(variant);
        // The placebo is the first baseline once more.
        let placebo = self.placebo.iter().filter(|_| baseline.name == self.baseline.name);
        std::iter::once(baseline).chain(placebo).collect()
    }

    /// All variants: baseline, placebo, variants.
    pub(super) fn all_variants(&self) -> impl Iterator<Item = &VariantRuns<'a>> {
        std::iter::once(&self.baseline).chain(&self.other_baselines).chain(&self.placebo).chain(&self.variants)
    }

    /// All runs that count.
    pub(super) fn valid(&self) -> impl Iterator<Item = &'a RunRecord> {
        self.all_variants().flat_map(|variant| variant.valid.values().copied())
    }

    /// In how many groups the variants had rounds of their own: so many rounds of the journal are one of the study.
    pub(super) fn groups(&self) -> u32 {
        self.folder.runs.iter().map(|run| run.groups).max().unwrap_or(1).max(1)
    }

    /// Rounds in which every variant has a run that counts.
    pub(super) fn complete_rounds(&self) -> u32 {
        let groups = self.groups();
        // Which variants a group has is known from the runs themselves: those that had any run in a round of its number.
        let has_a_run = |variant: &VariantRuns<'_>, round: u32| {
            groups == 1 || variant.all.iter().any(|run| run.round % groups == round % groups)
        };
        let is_complete = |round: &&u32| {
            self.all_variants().all(|variant| variant.valid.contains_key(round) || !has_a_run(variant, **round))
        };
        number(self.baseline.valid.keys().filter(is_complete).count()) / groups
    }

    /// Rounds that were begun.
    pub(super) fn rounds_begun(&self) -> u32 {
        let rounds: BTreeSet<u32> = self.folder.runs.iter().map(|run| run.round).collect();
        number(rounds.len()).div_ceil(self.groups())
    }

    /// Rounds that were done again because something else disturbed the machine.
    pub(super) fn repeated_rounds(&self) -> u32 {
        let again = self.folder.runs.iter().filter(|run| run.attempt > 1).map(|run| run.round);
        number(again.collect::<BTreeSet<u32>>().len())
    }

    fn rounds_repeated(&self) -> Option<Notice> {
        let share =
            |run: &RunRecord| run.host.share(run.host.others_s + run.host.steal_s, run.phases.window_s).unwrap_or(0.0);
        let attempts = attempts(&self.folder.runs);
        let is_other = |run: &&RunRecord| attempts.get(&run.round).is_some_and(|it| it.attempt != run.attempt);
        let set_aside = self.folder.runs.iter().filter(is_other);
        let percent = set_aside.clone().map(share).reduce(f64::max)? * 100.0;
        let runs = number(set_aside.count());
        Some(RoundsNotice::RoundsRepeated { rounds: self.repeated_rounds(), runs, percent }.into())
    }

    /// Runs that met others of another design in their round.
    fn designs_mixed(&self) -> Option<Notice> {
        let attempts = attempts(&self.folder.runs);
        let is_other = |run: &&RunRecord| {
            attempts.get(&run.round).is_some_and(|it| it.attempt == run.attempt && *it != RoundAttempt::of(run))
        };
        let set_aside: Vec<u32> = self.folder.runs.iter().filter(is_other).map(|run| run.round).collect();
        let rounds = number(set_aside.iter().collect::<BTreeSet<_>>().len());
        (rounds > 0).then(|| RoundsNotice::DesignsMixed { rounds, runs: number(set_aside.len()) }.into())
    }

    /// Rounds in which both a variant and the bare service have a run that counts.
    pub(super) fn paired_rounds(&self, variant: &VariantRuns<'_>) -> u32 {
        let bare = &self.baseline_of(variant).valid;
        number(variant.valid.keys().filter(|round| bare.contains_key(round)).count())
    }

    /// Names of the subject's services, if there are several; a metric is then also kept for each.
    pub(super) fn subjects(&self) -> Vec<String> {
        let processes = self.valid().flat_map(|run| &run.processes);
        let names: BTreeSet<&str> = processes
            .filter(|process| process.role == Some(unladen_journal::role::Role::Subject))
            .map(|process| process.service.as_str())
            .collect();
        if names.len() < 2 {
            return Vec::new();
        }
        // In the order of the study, as far as it names them.
        let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        names.sort_by_key(|name| self.folder.study.services.get_index_of(name).unwrap_or(usize::MAX));
        names
    }

    /// Alternating rounds, with their attempts, in which no variant has a run that counts: one event has hit all.
    fn rounds_lost(&self) -> BTreeSet<(u32, RoundAttempt)> {
        let mut void_and_all: BTreeMap<(u32, RoundAttempt), (usize, usize)> = BTreeMap::new();
        for run in self.folder.runs.iter().filter(|run| RoundAttempt::of(run).alternating) {
            void_and_all.entry(attempt_of(run)).or_default().1 += 1;
        }
        for (run, _) in self.all_variants().flat_map(|variant| &variant.void) {
            void_and_all.entry(attempt_of(run)).or_default().0 += 1;
        }
        let is_lost = |(void, all): (usize, usize)| void > 1 && void == all;
        void_and_all.into_iter().filter(|(_, counts)| is_lost(*counts)).map(|(attempt, _)| attempt).collect()
    }

    /// One notice for all of them, instead of one for each variant.
    fn lost_notice(&self, lost: &BTreeSet<(u32, RoundAttempt)>) -> Option<Notice> {
        let is_lost = |(run, _): &&(&RunRecord, Notice)| lost.contains(&attempt_of(run));
        let runs: Vec<_> = self.all_variants().flat_map(|variant| variant.void.iter().filter(is_lost)).collect();
        let (first, reason) = runs.iter().min_by_key(|(run, _)| run.run)?;
        let (round, reason) = (first.round, reason.to_string());
        Some(RoundsNotice::RoundsLost { rounds: number(lost.len()), runs: number(runs.len()), round, reason }.into())
    }

    /// What a reader has to know about the runs as such.
    pub(super) fn notices(&self) -> Vec<Notice> {
        let mut notices = self.folder.notices.clone();
        notices.extend(self.folder.calibrations.iter().filter_map(|calibration| calibration.notice.clone()));
        let mut numbers = BTreeSet::new();
        let twice = self.folder.runs.iter().filter(|run| !numbers.insert(run.run));
        notices.extend(twice.map(|run| Notice::RunNumberTwice { run: run.run }));
        let lost = self.rounds_lost();
        notices.extend(self.lost_notice(&lost));
        for variant in self.all_variants() {
            let others: Vec<_> = variant.void.iter().filter(|(run, _)| !lost.contains(&attempt_of(run))).collect();
            if let Some((first, reason)) = others.first() {
                notices.push(Notice::RunsVoid {
                    variant: variant.name.clone(),
                    void: number(others.len()),
                    runs: number(variant.all.len()),
                    first: first.run,
                    reason: reason.to_string(),
                });
            }
            if variant.surplus > 0 {
                notices.push(Notice::RunsSurplus { variant: variant.name.clone(), runs: variant.surplus });
            }
        }
        notices.extend(self.rounds_repeated());
        notices.extend(self.designs_mixed());
        let again: u32 = self.all_variants().map(VariantRuns::repeated).sum();
        if again > 0 {
            notices.push(Notice::RunsRepeated { runs: again });
        }
        let has_runs = |name: &&String| self.all_variants().any(|variant| variant.key() == name.as_str());
        let without = self.folder.study.variants.keys().filter(|name| !has_runs(name));
        notices.extend(without.map(|name| Notice::NoRuns { variant: name.clone() }));
        notices
    }
}

impl<'a> VariantRuns<'a> {
    fn add(&mut self, folder: &Measured, run: &'a RunRecord, counts: bool) {
        self.all.push(run);
        if !counts {
            self.set_aside += 1;
        } else if let Some(reason) = run.void.clone().or_else(|| little::refusal(&folder.study, run)) {
            self.void.push((run, reason));
        } else {
            match self.valid.entry(run.round) {
                Entry::Vacant(place) => drop(place.insert(run)),
                Entry::Occupied(_) => self.surplus += 1,
            }
        }
    }

    /// Void runs that were repeated with success.
    fn repeated(&self) -> u32 {
        number(self.void.iter().filter(|(run, _)| self.valid.contains_key(&run.round)).count())
    }

    /// Key of its variant: `full` of `full@spans=5`.
    pub(super) fn key(&self) -> &str {
        variant_of(&self.name)
    }

    /// Name of the variant that it is held against; empty: the baseline.
    pub(super) fn against(&self) -> &str {
        &self.against
    }

    /// Number of valid runs.
    pub(super) fn valid_runs(&self) -> u32 {
        number(self.valid.len())
    }
}

/// Runs of one round that may meet: of one attempt, and measured in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RoundAttempt {
    attempt: u32,
    alternating: bool,
}

impl RoundAttempt {
    fn of(run: &RunRecord) -> Self {
        Self { attempt: run.attempt, alternating: run.design == Design::Alternating }
    }
}

fn attempt_of(run: &RunRecord) -> (u32, RoundAttempt) {
    (run.round, RoundAttempt::of(run))
}

/// The attempt that counts, by round: that with the most variants (of an interrupted study the last attempt may not be whole), of several the
/// last attempt, and then the alternating one. What the runs found is not looked at.
fn attempts(runs: &[RunRecord]) -> BTreeMap<u32, RoundAttempt> {
    let mut variants: BTreeMap<(u32, RoundAttempt), BTreeSet<&str>> = BTreeMap::new();
    for run in runs {
        variants.entry((run.round, RoundAttempt::of(run))).or_default().insert(&run.variant);
    }
    let mut best: BTreeMap<u32, (usize, RoundAttempt)> = BTreeMap::new();
    for ((round, attempt), variants) in variants {
        let now = (variants.len(), attempt);
        best.entry(round).and_modify(|it| *it = now.max(*it)).or_insert(now);
    }
    best.into_iter().map(|(round, (_, attempt))| (round, attempt)).collect()
}

fn label(folder: &Measured, run: &RunRecord) -> String {
    let declared = folder.study.variants.get(variant_of(&run.variant)).and_then(|variant| variant.label.clone());
    match (declared, run.kind) {
        (Some(label), _) => labelled(&label, &run.cell),
        (None, VariantKind::Placebo) => "A/A control (baseline vs. itself)".to_owned(),
        (None, _) => labelled(variant_of(&run.variant), &run.cell),
    }
}

/// A count that is printed; no study comes near the limit.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
