//! A/A studies from stored runs: identical variants, re-labelled at random within their rounds and judged again.
//!
//! If nothing differs, 5 % of the comparisons at the most may come out as "costs" or "saves"; more, and the noise of the host
//! breaks what the intervals rest on. Works on the journal alone, from a seed.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use unladen_journal::record::{RunRecord, VariantKind};
use unladen_stats::verdict::Verdict;
use unladen_study::measured::Measured;

use super::JudgeError;
use super::compare::Comparison;
use super::evidence::Evidence;
use super::study;

/// What to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Studies to make.
    pub studies: u32,
    /// Rounds per study, drawn from those stored; all of them if fewer are stored.
    pub rounds: usize,
    /// Seed of the draw.
    pub seed: u64,
}

/// Name of the variant in a re-labelled study.
pub const RELABELLED: &str = "relabelled";

/// How often a metric raised a false alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alarms {
    /// Comparisons with an interval.
    pub comparisons: u32,
    /// Of those, verdicts `costs` or `saves`.
    pub alarms: u32,
}

impl Alarms {
    /// Share of false alarms, 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.alarms) / f64::from(self.comparisons.max(1))
    }
}

/// Draws studies from the runs of `variants` (names of variants that are identical; at least two) and counts the false alarms per metric.
///
/// # Errors
/// When no round has a valid run of at least two of the variants.
pub fn false_alarms(folder: &Measured, variants: &[&str], draw: Draw) -> Result<BTreeMap<String, Alarms>, JudgeError> {
    let mut found: BTreeMap<String, Alarms> = BTreeMap::new();
    for study in studies(folder, variants, draw)? {
        let evidence = Evidence::of(&study);
        let metrics = study::metrics(&evidence, &mut Vec::new());
        for variant in &evidence.variants {
            for comparison in study::comparisons(&evidence, &metrics, &evidence.baseline, variant) {
                let Comparison { finding, .. } = &comparison;
                if finding.is_of_whole() && finding.difference.is_some() {
                    let alarms = found.entry(finding.metric.clone()).or_default();
                    alarms.comparisons += 1;
                    alarms.alarms += u32::from(matches!(comparison.verdict(), Verdict::Costs | Verdict::Saves));
                }
            }
        }
    }
    Ok(found)
}

/// Studies drawn from the runs of `variants` (names of variants that are identical; at least two).
///
/// In every round the runs swap their labels by lot: one becomes the baseline, one the variant [`RELABELLED`], a third, if
/// there is one, the placebo. Rounds are drawn without replacement.
///
/// # Errors
/// When no round has a valid run of at least two of the variants.
pub fn studies(folder: &Measured, variants: &[&str], draw: Draw) -> Result<impl Iterator<Item = Measured>, JudgeError> {
    let mut rounds: BTreeMap<u32, Vec<&RunRecord>> = BTreeMap::new();
    for run in folder.runs.iter().filter(|run| run.void.is_none() && variants.contains(&run.variant.as_str())) {
        rounds.entry(run.round).or_default().push(run);
    }
    rounds.retain(|_, runs| runs.len() >= 2);
    if rounds.is_empty() {
        return Err(JudgeError::NothingToRelabel { variants: variants.join(", ") });
    }
    let mut random = ChaCha8Rng::seed_from_u64(draw.seed);
    let studies = (0..draw.studies).map(move |_| {
        let mut stored: Vec<&Vec<&RunRecord>> = rounds.values().collect();
        let (drawn, _) = stored.partial_shuffle(&mut random, draw.rounds);
        let runs = drawn.iter().zip(1..).flat_map(|(runs, round)| relabel(runs, round, &mut random)).collect();
        Measured { runs, notices: Vec::new(), ..folder.clone() }
    });
    Ok(studies)
}

fn relabel(runs: &[&RunRecord], round: u32, random: &mut ChaCha8Rng) -> Vec<RunRecord> {
    let mut runs: Vec<RunRecord> = runs.iter().copied().cloned().collect();
    runs.shuffle(random);
    let labels =
        [("baseline", VariantKind::Baseline), (RELABELLED, VariantKind::Variant), ("placebo", VariantKind::Placebo)];
    runs.truncate(labels.len());
    for (run, (name, kind)) in runs.iter_mut().zip(labels) {
        name.clone_into(&mut run.variant);
        run.kind = kind;
        run.round = round;
    }
    runs
}
