//! Alternating rounds, made of those of a sketch: what the blocks were like is known.

use std::f64::consts::TAU;

use unladen_journal::record::{Alone, BlockPoint, Blocks, Design, RunRecord};
use unladen_load::outcome::Quantiles;

/// Super-blocks of a round: one for each tenth of a second of the window of 5 s.
const SUPER_BLOCKS: u32 = 50;
/// Those of them in which the generator was late.
const LATE: u32 = 1;

/// What alternating runs are like beside what the sketch says.
#[derive(Clone, Copy)]
pub(crate) struct Like {
    /// Relative scatter from stretch to stretch.
    pub(crate) within: f64,
    /// CPU per request in blocks over that alone.
    pub(crate) colder: f64,
    /// Whether each variant has the load for itself afterwards.
    pub(crate) alone: bool,
}

pub(crate) const SOUND: Like = Like { within: 0.01, colder: 1.0, alone: true };

/// Makes a run one of an alternating round.
pub(crate) fn alternate(run: &mut RunRecord) {
    alternate_like(run, SOUND);
}

pub(crate) fn alternate_like(run: &mut RunRecord, like: Like) {
    let load = run.load.as_mut().expect("a load");
    let kept = SUPER_BLOCKS - LATE;
    let per_block = load.requests / u64::from(SUPER_BLOCKS);
    let completed = per_block * u64::from(kept);
    let cpu_ns = run.processes.iter().filter_map(|it| it.cpu_ns).sum::<u64>() as f64 / load.requests as f64;
    let point = |at: u32| {
        let t_s = f64::from(at) * 0.4 + 0.2;
        let took = cpu_ns * pace(run.round, t_s) * (1.0 + like.within * noise(run.run, at)) * per_block as f64;
        BlockPoint { t_s, completed: per_block, cpu_ns: took as u64 }
    };
    let points: Vec<BlockPoint> = (0..SUPER_BLOCKS).filter(|at| *at != 17).map(point).collect();
    let own_ns = points.iter().map(|it| it.cpu_ns).sum::<u64>() as f64;
    // Each service keeps its share.
    let share = own_ns / (cpu_ns * load.requests as f64);
    for process in &mut run.processes {
        process.cpu_ns = process.cpu_ns.map(|ns| (ns as f64 * share) as u64);
        process.cpu_foreign_ns = Some(0);
        process.idle_cpu =
            Some(if run.kind == unladen_journal::record::VariantKind::Variant { 0.0062 } else { 0.0021 });
    }
    // The machine has the pace that it had at the end of the blocks.
    let last = &points[points.len() - 20..];
    let (in_alone, last_ns) = (per_block * 20, last.iter().map(|it| it.cpu_ns).sum::<u64>() as f64);
    let alone = Alone {
        seconds: 2.0,
        completed: in_alone,
        cpu_ns: (last_ns / like.colder * (1.0 + 0.01 * noise(run.run, 99))) as u64,
        latency_us: Quantiles { count: in_alone, ..load.latency_us },
    };
    // What the others do in the background.
    let Quantiles { mean, p95, p99, p999, max, .. } = load.latency_us;
    load.latency_us = Quantiles {
        count: completed,
        mean: 1.5 * mean,
        p95: 3.0 * p95,
        p99: 5.0 * p99,
        p999: 7.0 * p999,
        max: 9.0 * max,
        ..load.latency_us
    };
    load.requests += in_alone;
    run.design = Design::Alternating;
    run.blocks = Some(Blocks {
        length_s: 0.1,
        variants: 4,
        kept,
        late: LATE,
        disturbed: 0,
        compiling: 0,
        own_s: f64::from(kept) * 0.1,
        foreign_s: f64::from(kept) * 0.3,
        completed,
        answered: load.requests - in_alone,
        not_from_blocks: None,
        cold_ns: Some(60e3),
        points,
        alone: like.alone.then_some(alone),
    });
}

/// How much slower the machine is: the same for all runs of a round.
fn pace(round: u32, t_s: f64) -> f64 {
    let round = f64::from(round);
    let slow = 0.12 * (TAU * (t_s / 9.0 + 0.37 * round)).sin() + 0.05 * (TAU * (t_s / 2.3 + 0.71 * round)).sin();
    // A neighbour comes and goes.
    let neighbour = if (t_s / 4.0 + round * 1.7) % 5.0 < 1.2 { 0.18 } else { 0.0 };
    1.0 + slow + neighbour
}

/// A number between −1.7 and 1.7 with a standard deviation of 1, the same for the same run and block.
fn noise(run: u32, block: u32) -> f64 {
    let mut bits = (u64::from(run) << 32 | u64::from(block)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits >> 11) as f64 / (1_u64 << 53) as f64 - 0.5) * 12.0_f64.sqrt()
}
