//! How the rounds shared their time between the variants: said in one sentence, with what was thrown away.

use std::collections::BTreeMap;

use unladen_journal::notices::{Notice, RoundsNotice};
use unladen_journal::record::{Blocks, Design, RunRecord};
use unladen_stats::estimate::median;

use super::agreement;
use super::evidence::{Evidence, number};
use super::findings::{DesignFindings, RoundsDesign};
use super::units;
use super::words;

/// Share of the super-blocks that may be thrown away before it is worth a warning.
const NOTEWORTHY: f64 = 0.05;

/// How it was measured; `None` of imported results, of which nobody knows.
pub(super) fn findings(evidence: &Evidence<'_>) -> Option<DesignFindings> {
    let rounds = rounds(evidence);
    if rounds.is_empty() {
        return None;
    }
    let blocks: Vec<&Blocks> = rounds.values().filter_map(|run| run.blocks.as_ref()).collect();
    let alternating = number(rounds.values().filter(|run| run.design == Design::Alternating).count());
    let separate = number(rounds.len()) - alternating;
    let typical = |of: fn(&Blocks) -> f64| median(&blocks.iter().map(|it| of(it)).collect::<Vec<_>>());
    let discarded = DiscardedBlocks::of(&blocks);
    let mut found = DesignFindings {
        design: match (alternating, separate) {
            (_, 0) => RoundsDesign::Alternating,
            (0, _) => RoundsDesign::Separate,
            _ => RoundsDesign::Mixed,
        },
        words: String::new(),
        alternating_rounds: alternating,
        separate_rounds: separate,
        variants: typical(|it| f64::from(it.variants)).map(|it| it as u32),
        groups: Some(evidence.groups()).filter(|groups| *groups > 1),
        awake: rounds.values().all(|run| run.awake),
        ballast: median(&rounds.values().filter_map(|run| Some(run.ballast? as f64)).collect::<Vec<_>>()),
        block_s: typical(|it| it.length_s),
        super_blocks: typical(|it| f64::from(it.super_blocks())).map(|it| it as u32),
        late: discarded.late,
        disturbed: discarded.disturbed,
        compiling: discarded.compiling,
        thrown_away: (discarded.of > 0).then(|| discarded.share()),
        cold_s: cold(evidence),
        alone_s: typical(|it| it.alone.as_ref().map_or(0.0, |it| it.seconds)).filter(|it| *it > 0.0),
        baseline_against_alone: agreement::of(&evidence.baseline),
    };
    found.words = sentence(&found);
    Some(found)
}

/// One run of each round that counts: what is said of blocks is the same for all runs of a round.
fn rounds<'a>(evidence: &Evidence<'a>) -> BTreeMap<u32, &'a RunRecord> {
    evidence.valid().filter(|run| run.imported.is_none()).map(|run| (run.round, run)).collect()
}

/// The median over the baseline's runs.
fn cold(evidence: &Evidence<'_>) -> Option<f64> {
    let runs = evidence.baseline.valid.values();
    let cold: Vec<f64> = runs.filter_map(|run| Some(run.blocks.as_ref()?.cold_ns? / 1e9)).collect();
    median(&cold)
}

fn sentence(found: &DesignFindings) -> String {
    let separate = "each variant had the machine for itself";
    let alternating = || {
        let discarded = match found.thrown_away.unwrap_or(0.0) {
            0.0 => "none discarded".to_owned(),
            share => format!("{} discarded", units::share(share)),
        };
        let alone = found.alone_s.map(|it| format!(", then ran on each alone for {}", time(it))).unwrap_or_default();
        let cold = found.cold_s.filter(|it| *it > 0.0).map(|it| {
            let more = units::chosen("ms", (it * 1e6).round() / 1e3);
            format!("; cold caches added {more} of CPU time to the first half of each baseline block (not charged)")
        });
        let live = match (found.variants.unwrap_or(0), found.groups) {
            (variants, None) => format!("{variants} live variants"),
            (variants, Some(groups)) => {
                format!(
                    "the live variants of each of {groups} groups ({variants} at once, each group with the baseline)"
                )
            }
        };
        format!(
            "the load alternated between {live} in blocks of {} ({} super-blocks a round, {discarded}){alone}{}",
            time(found.block_s.unwrap_or(0.0)),
            found.super_blocks.unwrap_or(0),
            cold.unwrap_or_default(),
        )
    };
    let ballast = found.ballast.map(|bytes| {
        format!(
            " Ballast: {} of fragmented memory was held, so that all processes got contiguous memory.",
            units::chosen("B", bytes)
        )
    });
    let words = match found.design {
        RoundsDesign::Separate => format!("Measured one after the other: in every round {separate}."),
        RoundsDesign::Alternating => format!("Measured alternating: in every round {}.", alternating()),
        RoundsDesign::Mixed => format!(
            "Measured by two designs, never mixed in a round. Alternating in {} rounds: {}. One after the other in {}: {separate}.",
            found.alternating_rounds,
            alternating(),
            found.separate_rounds
        ),
    };
    let awake = if found.awake { " Idle CPUs were kept awake." } else { "" };
    words + awake + &ballast.unwrap_or_default()
}

/// `100 ms`, `2 s`: a stretch ends with its last answer, which nobody wants to know to the microsecond.
fn time(seconds: f64) -> String {
    let ms = seconds * 1e3;
    let step = 10_f64.powi(ms.max(1.0).log10().floor() as i32 - 2);
    units::chosen("ms", (ms / step).round() * step)
}

/// Super-blocks that do not count.
struct DiscardedBlocks {
    late: u32,
    disturbed: u32,
    compiling: u32,
    of: u32,
}

impl DiscardedBlocks {
    fn of(rounds: &[&Blocks]) -> Self {
        let sum = |of: fn(&Blocks) -> u32| rounds.iter().map(|it| of(it)).sum::<u32>();
        Self {
            late: sum(|it| it.late),
            disturbed: sum(|it| it.disturbed),
            compiling: sum(|it| it.compiling),
            of: sum(|it| it.super_blocks()),
        }
    }

    fn share(&self) -> f64 {
        f64::from(self.late + self.disturbed + self.compiling) / f64::from(self.of.max(1))
    }
}

/// Whether much was thrown away, and why.
pub(super) fn notices(evidence: &Evidence<'_>) -> Vec<Notice> {
    let rounds = rounds(evidence);
    let discarded = DiscardedBlocks::of(&rounds.values().filter_map(|run| run.blocks.as_ref()).collect::<Vec<_>>());
    if discarded.share() <= NOTEWORTHY {
        return Vec::new();
    }
    let reasons = [
        (discarded.late, "because the load generator was late (lower the rate, or give it a core of its own)"),
        (discarded.disturbed, "because the hypervisor or other processes took the machine (stop them, or wait)"),
        (discarded.compiling, "because a JIT compiler was at work (heat up for longer: `preheat`)"),
    ];
    let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
    let why = words::list(reasons.map(|(count, why)| format!("{} {why}", units::count(count.into()))));
    vec![RoundsNotice::BlocksThrownAway { percent: discarded.share() * 100.0, why }.into()]
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_have_three_digits_at_most() {
        let written = [0.1, 1.0 / 12.0, 2.0019, 1.7016, 0.0501].map(super::time);
        assert_eq!(written, ["100 ms", "83.3 ms", "2 s", "1.7 s", "50.1 ms"]);
    }
}
