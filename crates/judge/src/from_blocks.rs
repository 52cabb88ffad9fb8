//! Which numbers of an alternating round come from a variant's blocks, and which from its stretch alone: decided once for a study, so that a
//! number comes from the same part of all runs. By the variant that is worst off in each round, and the median of the rounds.

use std::collections::{BTreeMap, BTreeSet};

use unladen_journal::record::{Blocks, RunRecord};
use unladen_journal::role::Role;
use unladen_stats::estimate::median;

use super::{latency, values};

/// The metric that says how many requests a closed loop gets through.
const THROUGHPUT: &str = "throughput";
/// A block ends with its last answer, while fewer and fewer requests are under way: the median answer may take this share of a block.
const TAIL: f64 = 0.05;
/// Share of its CPU time that a variant may use in the blocks of others, where it takes nothing from its own throughput: a share of so much
/// is what the throughput is too high by at most.
const DEFERRED: f64 = 0.005;

/// Decides it for all runs.
pub(super) fn settle(runs: &mut [RunRecord]) {
    let mut not_from_blocks: BTreeSet<&'static str> = latency::lengths()
        .filter(|(_, length)| typical_largest(runs, length).is_some_and(|length| length > 1.0))
        .map(|(metric, _)| metric)
        .collect();
    let is_beyond = |number: fn(&RunRecord) -> Option<f64>, limit| {
        // What is not known is no reason to trust it.
        typical_largest(runs, number).is_none_or(|number| number > limit)
    };
    if is_beyond(tail, TAIL) || is_beyond(deferred, DEFERRED) {
        not_from_blocks.insert(THROUGHPUT);
    }
    for blocks in runs.iter_mut().filter_map(|run| run.blocks.as_mut()) {
        blocks.not_from_blocks = Some(not_from_blocks.clone());
    }
}

/// The largest number of each round among the runs that count, of these the median.
fn typical_largest(runs: &[RunRecord], number: impl Fn(&RunRecord) -> Option<f64>) -> Option<f64> {
    let mut rounds: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.void.is_none()) {
        if let Some(number) = number(run) {
            let largest = rounds.entry((run.round, run.attempt)).or_default();
            *largest = largest.max(number);
        }
    }
    median(&rounds.into_values().collect::<Vec<_>>())
}

/// How long the median answer took, as a share of a block.
fn tail(run: &RunRecord) -> Option<f64> {
    let blocks = run.blocks.as_ref().filter(|blocks| blocks.length_s > 0.0)?;
    Some(run.load.as_ref()?.latency_us.p50 / 1e6 / blocks.length_s)
}

/// Share of the subject's CPU time that it used in the blocks of others, beyond what it uses when nothing is asked of anybody, and what its JIT
/// compilers use: they are at work wherever the load is, and take as much of its throughput when that is measured alone.
fn deferred(run: &RunRecord) -> Option<f64> {
    let Blocks { own_s, foreign_s, .. } = run.blocks.as_ref()?;
    let (mut used, mut later) = (0.0, 0.0);
    for process in values::of_role(run, Role::Subject, None) {
        used += process.cpu_ns? as f64;
        let compiling_ns = process.compiling_ns.unwrap_or(0) as f64 * foreign_s / (own_s + foreign_s);
        later += (process.cpu_foreign_ns? as f64 - process.idle_cpu? * foreign_s * 1e9 - compiling_ns).max(0.0);
    }
    (used > 0.0).then_some(later / used)
}

#[cfg(test)]
mod tests {
    use unladen_journal::record::{Alone, ProcessRecord};
    use unladen_load::outcome::{Outcome, Quantiles};

    use super::super::metrics::METRICS;
    use super::*;

    /// 900 requests in 10 s of blocks, 80 in a second alone; 8 s of CPU time, of which so much in 20 s of others' blocks.
    fn run(round: u32, p50_ms: f64, foreign_s: f64) -> RunRecord {
        let latency_us = Quantiles { count: 900, p50: p50_ms * 1e3, ..Quantiles::default() };
        let process = ProcessRecord {
            role: Some(Role::Subject),
            cpu_ns: Some(8_000_000_000),
            cpu_foreign_ns: Some((foreign_s * 1e9) as u64),
            idle_cpu: Some(0.01),
            ..ProcessRecord::default()
        };
        let alone = Alone { seconds: 1.0, completed: 80, ..Alone::default() };
        let blocks = Blocks {
            length_s: 1.0,
            own_s: 10.0,
            foreign_s: 20.0,
            completed: 900,
            alone: Some(alone),
            ..Blocks::default()
        };
        RunRecord {
            round,
            load: Some(Outcome { latency_us, ..Outcome::default() }),
            blocks: Some(blocks),
            processes: vec![process],
            ..RunRecord::empty()
        }
    }

    fn throughputs(mut runs: Vec<RunRecord>) -> Vec<Option<f64>> {
        settle(&mut runs);
        let metric = METRICS.iter().find(|metric| metric.name == THROUGHPUT).expect("a metric");
        runs.iter().map(|run| values::throughput(metric, run, None)).collect()
    }

    #[test]
    fn throughput_comes_from_blocks_unless_they_end_slowly_or_work_is_left_for_those_of_others() {
        // 20 s of 0.01 cores are idle CPU: 0.2 s.
        let (from_blocks, alone) = (vec![Some(90.0); 3], vec![Some(80.0); 3]);
        let of = |worst: [(f64, f64); 3]| {
            throughputs((1..).zip(worst).map(|(round, (p50_ms, foreign_s))| run(round, p50_ms, foreign_s)).collect())
        };
        assert_eq!(of([(40.0, 0.2), (40.0, 0.23), (40.0, 0.1)]), from_blocks);
        assert_eq!(of([(40.0, 0.2), (60.0, 0.2), (60.0, 0.2)]), alone, "the last answers of a block are 6 % of it");
        assert_eq!(of([(40.0, 0.2), (40.0, 0.25), (40.0, 0.25)]), alone, "0.05 of 8 s are for later");
        assert_eq!(of([(40.0, 0.2), (40.0, 0.2), (900.0, 3.0)]), from_blocks, "one round changes nothing");
        // In each round, whoever is worst off decides for all.
        let two = |round| [run(round, 40.0, 0.2), run(round, 40.0, 0.25)];
        assert_eq!(throughputs([two(1), two(2)].concat()), [Some(80.0); 4]);
        // Of 0.09 s that compilers took, 0.06 s were in the blocks of others, which last twice as long.
        let mut compiling = run(1, 40.0, 0.25);
        compiling.processes[0].compiling_ns = Some(90_000_000);
        assert_eq!(throughputs(vec![compiling]), [Some(90.0)]);
        let unknown = RunRecord { processes: Vec::new(), ..run(1, 40.0, 0.2) };
        assert_eq!(throughputs(vec![unknown]), [Some(80.0)]);
    }
}
