//! What the turns of an alternating round cost each of its runs. Pure.
//!
//! A variant is charged for all that its processes do in the super-blocks that count, in its own blocks and in those of the others
//! (garbage is collected and spans are sent later), but not for what they would do if nothing were asked of anybody: an idle
//! process would be charged as often as there are variants. So
//!
//! ```text
//! CPU = own + max(0, foreign − idle rate × time of the others' blocks)
//! ```
//!
//! The first requests of a block find caches that the others have filled. That is no cost of the service, so blocks of an open loop are two
//! halves: the requests of both are alike, hence so would be their CPU time, and by how much the first half takes more, that is not charged:
//!
//! ```text
//! own = CPU of the own blocks − blocks × pseudo-median of (first half − second half)
//! ```
//!
//! Not their mean, and not the second half alone: a batch that is sent every twentieth block is charged in full, in whichever half it is.
//!
//! What lives through the study is charged to the variant whose block it is.

use std::collections::BTreeSet;
use std::ops::Range;

use unladen_journal::record::{Alone, BlockPoint, Blocks, ProcessRecord};
use unladen_load::alternate::{Fate, Part, Taken};
use unladen_stats::robust::pseudo_median;

use super::turns::Measured;

/// How much larger than before the load the idle CPU after it may be, as the process is then still idle: a timer's ten turns in a second
/// instead of eight.
const IDLE_GROWTH: f64 = 1.25;

/// The turns of a round with the edges that frame them.
pub(super) struct Turns<'m> {
    measured: &'m Measured,
    /// The first measured turn's start, ns.
    start_ns: u64,
}

/// CPU of one target, ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Charge {
    own: u64,
    foreign: u64,
}

/// How a target's CPU is charged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Lifespan {
    /// With the variant: fresh in every run. CPU time per second when nothing is asked of anybody, in cores.
    WithTheRun { idle: Option<f64> },
    /// Through the study.
    ThroughTheStudy,
}

impl<'m> Turns<'m> {
    pub(super) fn of(measured: &'m Measured) -> Self {
        Self { measured, start_ns: measured.edges.first().map_or(0, |edge| edge.at_ns) }
    }

    /// Every measured turn with its number.
    fn all(&self) -> impl Iterator<Item = (usize, &'m Taken)> + use<'m> {
        // Without the edge behind it nothing is known of a turn.
        self.measured.outcomes.turns.iter().enumerate().take(self.measured.edges.len().saturating_sub(1))
    }

    /// Blocks that count.
    fn counting(&self) -> impl Iterator<Item = (usize, &'m Taken)> + use<'m> {
        self.all().filter(|(_, taken)| taken.turn.part == Part::Block && taken.fate == Fate::Counts)
    }

    /// Nanoseconds from a turn's first edge to its second.
    fn time_ns(&self, turn: usize) -> u64 {
        let edges = &self.measured.edges;
        edges[turn + 1].at_ns.saturating_sub(edges[turn].at_ns)
    }

    /// CPU of a target in a turn, ns. `None`: it cannot be had.
    fn cpu_ns(&self, turn: usize, target: usize) -> Option<u64> {
        let at = |edge: usize| self.measured.edges[edge].cpu_ns.get(target).copied().flatten();
        Some(at(turn + 1)?.saturating_sub(at(turn)?))
    }

    /// CPU of several targets in a turn, ns.
    fn cpu_of(&self, turn: usize, targets: &[usize]) -> u64 {
        targets.iter().filter_map(|target| self.cpu_ns(turn, *target)).sum()
    }

    /// Seconds of the blocks that count: of this run, of the others.
    fn seconds(&self, run: usize) -> (f64, f64) {
        let sum = |own: bool| -> u64 {
            self.counting().filter(|(_, taken)| (taken.turn.target == run) == own).map(|(at, _)| self.time_ns(at)).sum()
        };
        (sum(true) as f64 / 1e9, sum(false) as f64 / 1e9)
    }

    /// CPU of a target in the blocks that count. `None` where it cannot be had for all of them.
    fn charge(&self, run: usize, target: usize) -> Option<Charge> {
        let charge = self.counting().try_fold(Charge::default(), |sum, (at, taken)| {
            let used = self.cpu_ns(at, target)?;
            Some(match taken.turn.target == run {
                true => Charge { own: sum.own + used, ..sum },
                false => Charge { foreign: sum.foreign + used, ..sum },
            })
        })?;
        let cold_ns = self.cold_ns(run, &[target]).unwrap_or(0.0) * f64::from(self.blocks_with(run, Fate::Counts));
        Some(Charge { own: without(charge.own, cold_ns), ..charge })
    }

    /// CPU of a target's JIT compilers in the super-blocks that count, ns. `None` where they are not told apart.
    fn compiling_ns(&self, target: usize) -> Option<u64> {
        let counting: Vec<(usize, &Taken)> = self.counting().collect();
        let used = |group: &[(usize, &Taken)]| {
            let edges = &self.measured.edges;
            edges[group.last()?.0 + 1].compiling_since(&edges[group.first()?.0], target)
        };
        groups(&counting).map(used).sum()
    }

    /// How much more CPU several targets take together in the first half of the run's blocks than in the second, ns a block. `None` without halves.
    fn cold_ns(&self, run: usize, targets: &[usize]) -> Option<f64> {
        let own: Vec<(usize, &Taken)> = self.counting().filter(|(_, taken)| taken.turn.target == run).collect();
        let excess = |halves: &[(usize, &Taken)]| match halves {
            [(first, one), (second, other)] if one.requests > 0 && other.requests > 0 => {
                // Of a rate that is no multiple of the halves' length, one may have a request more.
                let as_many = one.requests as f64 / other.requests as f64;
                Some(self.cpu_of(*first, targets) as f64 - as_many * self.cpu_of(*second, targets) as f64)
            }
            _ => None,
        };
        let excesses: Vec<f64> = groups(&own).filter_map(excess).collect();
        pseudo_median(&excesses)
    }

    /// How many blocks of a run have this fate.
    fn blocks_with(&self, run: usize, fate: Fate) -> u32 {
        let own = self.all().filter(|(_, it)| it.turn.part == Part::Block && it.turn.target == run && it.fate == fate);
        let groups: BTreeSet<u32> = own.map(|(_, taken)| taken.turn.group).collect();
        u32::try_from(groups.len()).unwrap_or(u32::MAX)
    }

    /// Puts into the record of a process what it is charged in this run.
    pub(super) fn charge_process(&self, process: &mut ProcessRecord, run: usize, target: usize, lifespan: Lifespan) {
        let charge = self.charge(run, target);
        let (_, foreign_s) = self.seconds(run);
        let total_ns = charge.map(|charge| match lifespan {
            Lifespan::ThroughTheStudy => charge.own,
            Lifespan::WithTheRun { idle } => {
                let idle_ns = idle.unwrap_or(0.0) * foreign_s * 1e9;
                charge.own + (charge.foreign as f64 - idle_ns).max(0.0).round() as u64
            }
        });
        // User and system mode are known over the whole time: their proportion holds.
        let split = process.cpu_user_ns.zip(process.cpu_system_ns).zip(total_ns).and_then(|((user, system), total)| {
            let user_ns = (u128::from(total) * u128::from(user)).checked_div(u128::from(user + system))? as u64;
            Some((user_ns, total - user_ns))
        });
        (process.cpu_user_ns, process.cpu_system_ns) = (split.map(|it| it.0), split.map(|it| it.1));
        process.cpu_ns = total_ns;
        process.cpu_halves = self.halves(run, target);
        if let Lifespan::WithTheRun { idle } = lifespan {
            (process.idle_cpu, process.cpu_foreign_ns) = (idle, charge.map(|charge| charge.foreign));
            process.compiling_ns = self.compiling_ns(target);
        }
    }

    /// Cores that a target used in the run's own blocks, in the first and in the second half of those that count.
    fn halves(&self, run: usize, target: usize) -> Option<[f64; 2]> {
        let own: Vec<usize> = self.counting().filter(|(_, taken)| taken.turn.target == run).map(|(at, _)| at).collect();
        let (first, second) = own.split_at(own.len() / 2);
        let cores = |turns: &[usize]| -> Option<f64> {
            let used: u64 = turns.iter().map(|at| self.cpu_ns(*at, target)).sum::<Option<u64>>()?;
            let time: u64 = turns.iter().map(|at| self.time_ns(*at)).sum();
            (time > 0).then(|| used as f64 / time as f64)
        };
        Some([cores(first)?, cores(second)?])
    }

    /// The blocks of a run; `subjects` are the targets that are the variant's subject.
    pub(super) fn blocks(&self, run: usize, runs: usize, subjects: &[usize]) -> Blocks {
        let own = || {
            let blocks = self.all().map(|(_, taken)| taken).filter(|taken| taken.turn.part == Part::Block);
            blocks.filter(|taken| taken.turn.target == run)
        };
        let [kept, late, disturbed, compiling] =
            [Fate::Counts, Fate::Late, Fate::Disturbed, Fate::Compiling].map(|fate| self.blocks_with(run, fate));
        let (own_s, foreign_s) = self.seconds(run);
        let window_s: f64 = own().map(|taken| taken.turn.length_s).sum();
        let cold_ns = self.cold_ns(run, subjects);
        Blocks {
            length_s: window_s / f64::from(kept + late + disturbed + compiling).max(1.0),
            variants: u32::try_from(runs).unwrap_or(u32::MAX),
            kept,
            late,
            disturbed,
            compiling,
            own_s,
            foreign_s,
            completed: own().filter(|taken| taken.fate == Fate::Counts).map(|taken| taken.requests).sum(),
            answered: own().map(|taken| taken.requests).sum(),
            not_from_blocks: None,
            cold_ns,
            points: self.points(run, subjects, cold_ns.unwrap_or(0.0)),
            alone: self.alone(run, subjects),
        }
    }

    /// The run over time; `cold_ns` of each block are not charged.
    fn points(&self, run: usize, subjects: &[usize], cold_ns: f64) -> Vec<BlockPoint> {
        let counting: Vec<(usize, &Taken)> = self.counting().collect();
        let groups: Vec<&[(usize, &Taken)]> = groups(&counting).collect();
        let per_point = groups.len().div_ceil(Blocks::MAX_POINTS).max(1);
        let seconds = |ns: u64| ns.saturating_sub(self.start_ns) as f64 / 1e9;
        let point = |groups: &[&[(usize, &Taken)]]| {
            let (first, last) = (groups.first()?.first()?.1, groups.last()?.last()?.1);
            let own = || groups.iter().flat_map(|group| group.iter()).filter(|(_, taken)| taken.turn.target == run);
            Some(BlockPoint {
                t_s: f64::midpoint(seconds(first.start_ns), seconds(last.end_ns)),
                completed: own().map(|(_, taken)| taken.requests).sum(),
                cpu_ns: without(own().map(|(at, _)| self.cpu_of(*at, subjects)).sum(), cold_ns * groups.len() as f64),
            })
        };
        groups.chunks(per_point).filter_map(point).collect()
    }

    /// The stretch in which the run had the load for itself.
    fn alone(&self, run: usize, subjects: &[usize]) -> Option<Alone> {
        let own = || self.all().filter(|(_, taken)| taken.turn.part == Part::Alone && taken.turn.target == run);
        own().next()?;
        Some(Alone {
            seconds: own().map(|(at, _)| self.time_ns(at)).sum::<u64>() as f64 / 1e9,
            completed: own().map(|(_, taken)| taken.requests).sum(),
            cpu_ns: own().map(|(at, _)| self.cpu_of(at, subjects)).sum(),
            latency_us: self.measured.outcomes.alone_us.get(run).copied().unwrap_or_default(),
        })
    }

    /// Wall time from the first block to the end of the last, seconds.
    pub(super) fn wall_s(&self) -> f64 {
        let last = self.all().filter(|(_, taken)| taken.turn.part == Part::Block).map(|(_, taken)| taken.end_ns).last();
        last.map_or(0.0, |end| end.saturating_sub(self.start_ns) as f64 / 1e9)
    }
}

/// Numbered turns by their group.
fn groups<'t, 'm>(turns: &'t [(usize, &'m Taken)]) -> impl Iterator<Item = &'t [(usize, &'m Taken)]> {
    turns.chunk_by(|one, next| one.1.turn.group == next.1.turn.group)
}

/// CPU time without a part of it, ns.
fn without(cpu_ns: u64, part_ns: f64) -> u64 {
    (cpu_ns as f64 - part_ns).max(0.0).round() as u64
}

/// CPU per second of every target between two readings, in cores.
pub(super) fn rates(before: &unladen_probe::edges::Edge, after: &unladen_probe::edges::Edge) -> Vec<Option<f64>> {
    let elapsed = after.at_ns.saturating_sub(before.at_ns) as f64;
    let rate = |(now, before): (&Option<u64>, &Option<u64>)| Some((*now)?.saturating_sub((*before)?) as f64 / elapsed);
    after.cpu_ns.iter().zip(&before.cpu_ns).map(rate).map(|rate| rate.filter(|it| it.is_finite())).collect()
}

/// The idle rate of targets of which one was measured before the load and one after it: that after the load, as timers of a process that
/// has just started wait first. Not the smaller of the two, which is too small by chance, an error that counts once for each other
/// variant. But if the later one is more than [`IDLE_GROWTH`] times as large, the load was still going on: then the earlier one.
pub(super) fn idle_rates(before: &[Option<f64>], after: &[Option<f64>], targets: Range<usize>) -> Vec<Option<f64>> {
    targets
        .map(|at| {
            let of = |rates: &[Option<f64>]| rates.get(at).copied().flatten();
            let Some((before, after)) = of(before).zip(of(after)) else { return of(before).or(of(after)) };
            Some(if after > IDLE_GROWTH * before { before } else { after })
        })
        .collect()
}

#[cfg(test)]
mod tests;
