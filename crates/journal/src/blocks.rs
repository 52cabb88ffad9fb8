//! What an alternating round leaves in the records of its runs: how the time was shared, and the CPU over it.
//!
//! In an alternating round the processes of all variants are alive and the load turns between them: in each *super-block*
//! every variant has one *block*. CPU in a variant's own blocks is `own`, in those of the others `foreign`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use unladen_load::outcome::Quantiles;

/// How the variants of a round share the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// All alive, the load turns between them in short blocks.
    Alternating,
    /// One after the other, each with the machine for itself. Journals that do not say are of this kind.
    #[default]
    Separate,
}

impl Design {
    /// For serde: what is the default need not be written.
    #[must_use]
    pub fn is_separate(&self) -> bool {
        *self == Self::Separate
    }
}

/// The blocks of one run of an alternating round.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Blocks {
    /// Planned length of a block on average, seconds.
    pub length_s: f64,
    /// Variants that took turns.
    pub variants: u32,
    /// Super-blocks that count.
    pub kept: u32,
    /// Super-blocks that were thrown away because the generator was late in one of their blocks.
    pub late: u32,
    /// Super-blocks that were thrown away because steal or other processes took the machine.
    pub disturbed: u32,
    /// Super-blocks that were thrown away because the JIT compiler of a variant was unusually busy.
    #[serde(default)]
    pub compiling: u32,
    /// Seconds of the run's own blocks that count.
    pub own_s: f64,
    /// Seconds of the blocks of the other variants that count.
    pub foreign_s: f64,
    /// Requests due in the run's own blocks that count, and answered well: the divisor of CPU per request.
    pub completed: u64,
    /// Requests due in the run's own blocks, those that do not count too, and answered well: the divisor of counters, which are read at the
    /// start of the first block and at the end of the last.
    #[serde(default)]
    pub answered: u64,
    /// Not in the journal, filled in by the judge once for a study: which metrics do not come from blocks although others of their kind do.
    #[serde(skip)]
    pub not_from_blocks: Option<BTreeSet<&'static str>>,
    /// How much more CPU time the subject took in the first half of a block than in the second, ns: what it costs that others have used its
    /// caches, which is not charged. Absent: blocks had no halves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_ns: Option<f64>,
    /// The run over time: stretches of successive super-blocks that count, at most [`Blocks::MAX_POINTS`].
    pub points: Vec<BlockPoint>,
    /// The stretch in which the variant had the load for itself, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
}

impl Blocks {
    /// Most points that are kept of one run.
    pub const MAX_POINTS: usize = 120;

    /// All super-blocks, those that were thrown away included.
    #[must_use]
    pub fn super_blocks(&self) -> u32 {
        self.kept + self.late + self.disturbed + self.compiling
    }

    /// CPU per request in the run's own blocks over that of the stretch alone. Of the blocks the last ones, with about as many requests as the
    /// stretch has: a process that is still warming up takes less and less, and the stretch follows. `None` where one of the two is not known.
    #[must_use]
    pub fn against_alone(&self) -> Option<f64> {
        let alone = self.alone.as_ref()?;
        let ratio = self.stretches().first()? / (alone.cpu_ns as f64 / alone.completed as f64);
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }

    /// By how much CPU per request changed from one stretch of the run's own blocks to the next (log-ratios, the last change first), each with
    /// about as many requests as the stretch alone has: what the machine's pace does in that time.
    #[must_use]
    pub fn swings(&self) -> Vec<f64> {
        let stretches = self.stretches();
        let changes = stretches.iter().zip(stretches.iter().skip(1)).map(|(later, earlier)| (later / earlier).ln());
        changes.filter(|change| change.is_finite()).collect()
    }

    /// CPU per request in stretches of successive points, ns, the last first. If all points have fewer requests than the stretch alone, they
    /// are one.
    fn stretches(&self) -> Vec<f64> {
        let wanted = self.alone.as_ref().map_or(0, |alone| alone.completed);
        let (mut found, mut requests, mut cpu_ns) = (Vec::new(), 0, 0);
        for point in self.points.iter().rev() {
            (requests, cpu_ns) = (requests + point.completed, cpu_ns + point.cpu_ns);
            if requests >= wanted {
                found.push(cpu_ns as f64 / requests as f64);
                (requests, cpu_ns) = (0, 0);
            }
        }
        if found.is_empty() {
            found.push(cpu_ns as f64 / requests as f64);
        }
        found
    }
}

/// A stretch of successive super-blocks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct BlockPoint {
    /// Its middle, seconds since the start of the first measured block of the round. The same for all runs of the round.
    pub t_s: f64,
    /// Requests answered well in the run's own blocks.
    pub completed: u64,
    /// CPU time that the subject is charged for the run's own blocks, ns.
    pub cpu_ns: u64,
}

/// The stretch of an alternating round in which a variant has the load for itself; the others are alive and idle.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Alone {
    /// Its length, seconds.
    pub seconds: f64,
    /// Requests answered well.
    pub completed: u64,
    /// CPU time of the subject, ns.
    pub cpu_ns: u64,
    /// Latency of the well answered requests from the due instant, µs.
    pub latency_us: Quantiles,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_blocks_is_held_against_the_last_of_them() {
        let point = |cpu_us: u64| BlockPoint { t_s: 0.0, completed: 10, cpu_ns: 10 * cpu_us * 1_000 };
        let alone = |completed| Some(Alone { completed, cpu_ns: completed * 200_000, ..Alone::default() });
        let blocks = Blocks { points: [500, 400, 240, 200].map(point).into(), ..Blocks::default() };
        assert_eq!(blocks.against_alone(), None);
        let ratio = |completed| Blocks { alone: alone(completed), ..blocks.clone() }.against_alone();
        let near = |ratio: Option<f64>, wanted: f64| ratio.is_some_and(|it| (it - wanted).abs() < 1e-9);
        assert!(near(ratio(20), 1.1) && near(ratio(15), 1.1) && near(ratio(10), 1.0), "{:?}", ratio(15));
        assert!(near(ratio(1_000), 335.0 / 200.0), "there are no more");
        assert_eq!(ratio(0), None);
        let swings = |completed| Blocks { alone: alone(completed), ..blocks.clone() }.swings();
        assert_eq!(swings(20).len(), 1, "200 and 240 after 400 and 500");
        assert!(near(swings(20).first().copied(), (220.0_f64 / 450.0).ln()), "{:?}", swings(20));
        assert!(near(swings(10).get(1).copied(), 0.6_f64.ln()), "{:?}", swings(10));
        assert!(swings(30).is_empty() && swings(1_000).is_empty());
    }
}
