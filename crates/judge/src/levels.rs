//! Where the noise of CPU per request comes from, by the blocks of alternating rounds: from start to start, or within a start.
//!
//! What is looked at is the variant over its baseline, stretch by stretch, because the machine's pace is the same on both sides of one stretch and
//! cancels.

use unladen_journal::record::{BlockPoint, Blocks, RunRecord};
use unladen_stats::levels::{Levels, levels};

use super::evidence::VariantRuns;
use super::findings::VarianceFindings;
use super::{so_far, units};

/// Stretches that the blocks of a run are cut into: long enough that one says little of the next, and enough to see their scatter.
const STRETCHES: usize = 8;

/// The two levels of a comparison; `None` with too few alternating rounds or blocks.
pub(super) fn of(baseline: &VariantRuns<'_>, variant: &VariantRuns<'_>) -> Option<VarianceFindings> {
    let pairs = variant.valid.iter().filter_map(|(round, run)| Some((*baseline.valid.get(round)?, *run)));
    let both = |(bare, here): (&RunRecord, &RunRecord)| {
        let ratio = so_far::cpu_us_per_request(here)? / so_far::cpu_us_per_request(bare)?;
        Some((ratio.ln(), stretches(bare.blocks.as_ref()?, here.blocks.as_ref()?)?))
    };
    let (rounds, stretches): (Vec<f64>, Vec<Vec<f64>>) = pairs.filter_map(both).unzip();
    levels(&rounds, &stretches).map(|found| VarianceFindings {
        between: found.between,
        within: found.within,
        rounds_help: found.rounds_help(),
        words: words(found),
    })
}

/// Log-ratios of the variant over the baseline in successive stretches; `None` with too few points.
fn stretches(bare: &Blocks, here: &Blocks) -> Option<Vec<f64>> {
    let points: Vec<(&BlockPoint, &BlockPoint)> =
        bare.points.iter().zip(&here.points).filter(|(bare, here)| bare.t_s == here.t_s).collect();
    let pace = |side: &mut dyn Iterator<Item = &BlockPoint>| {
        let (cpu_ns, completed) = side.fold((0, 0), |sum, it| (sum.0 + it.cpu_ns, sum.1 + it.completed));
        (cpu_ns > 0 && completed > 0).then(|| cpu_ns as f64 / completed as f64)
    };
    let stretch = |at: usize| {
        let part = &points[at * points.len() / STRETCHES..(at + 1) * points.len() / STRETCHES];
        let bare = pace(&mut part.iter().map(|(bare, _)| *bare))?;
        let here = pace(&mut part.iter().map(|(_, here)| *here))?;
        Some((here / bare).ln())
    };
    (0..STRETCHES).map(stretch).collect()
}

/// `Most noise is between starts (1.2 % between starts, 0.4 % within a start): more rounds help`.
fn words(found: Levels) -> String {
    let percent = |sd: f64| units::percent(sd, None).with_unit(sd);
    let sds = format!("{} between starts, {} within a start", percent(found.between), percent(found.within));
    if found.rounds_help() {
        format!("Most noise is between starts ({sds}): more rounds help")
    } else {
        format!("Most noise is within a start ({sds}): a longer window helps")
    }
}
