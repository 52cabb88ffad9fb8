use unladen_load::alternate::{Outcomes, Turn};
use unladen_probe::edges::Edge;

use super::*;

const MS: u64 = 1_000_000;

/// Turns of two variants (targets 0 and 1) and a dependency that lives through the study (target 2), 100 ms each: run, part, group,
/// fate, and what each target uses in it, ms.
fn measured(turns: &[(usize, Part, u32, Fate, [u64; 3])]) -> Measured {
    let mut edges = vec![Edge { at_ns: 5_000 * MS, cpu_ns: vec![Some(0); 3], ..Edge::default() }];
    let mut taken = Vec::new();
    for (target, part, group, fate, used) in turns {
        let last = edges.last().expect("the first edge");
        let at_ns = last.at_ns + 100 * MS;
        let cpu_ns = last.cpu_ns.iter().zip(used).map(|(before, ms)| Some(before.expect("known") + ms * MS)).collect();
        taken.push(Taken {
            turn: Turn { target: *target, length_s: 0.1, part: *part, group: *group },
            start_ns: last.at_ns,
            end_ns: at_ns,
            requests: 50,
            late: 0,
            fate: *fate,
        });
        edges.push(Edge { at_ns, cpu_ns, ..Edge::default() });
    }
    Measured { outcomes: Outcomes { turns: taken, ..Outcomes::default() }, edges }
}

/// Two super-blocks that count and one that does not, then each alone. Variant 0 works 5 ms in its blocks and idles at 1 ms a block;
/// variant 1 works 10 ms in its blocks and 3 ms in those of the other.
fn example() -> Measured {
    use Fate::{Counts, Late};
    use Part::{Alone, Block};
    measured(&[
        (0, Block, 0, Counts, [5, 3, 2]),
        (1, Block, 0, Counts, [1, 10, 4]),
        (1, Block, 1, Late, [70, 70, 70]),
        (0, Block, 1, Late, [70, 70, 70]),
        (1, Block, 2, Counts, [1, 10, 4]),
        (0, Block, 2, Counts, [7, 3, 2]),
        (1, Alone, 3, Counts, [0, 9, 0]),
        (0, Alone, 4, Counts, [4, 0, 0]),
    ])
}

fn charged(measured: &Measured, run: usize, target: usize, lifespan: Lifespan) -> ProcessRecord {
    let mut process = ProcessRecord { cpu_user_ns: Some(3), cpu_system_ns: Some(1), ..ProcessRecord::default() };
    Turns::of(measured).charge_process(&mut process, run, target, lifespan);
    process
}

#[test]
fn own_and_foreign_work_is_charged_and_idling_is_not_multiplied() {
    let measured = example();
    // 12 ms in its own blocks; of the 2 ms in the other's, 200 ms at 0.01 cores are idling.
    let first = charged(&measured, 0, 0, Lifespan::WithTheRun { idle: Some(0.01) });
    assert_eq!((first.cpu_ns, first.cpu_foreign_ns), (Some(12 * MS), Some(2 * MS)));
    assert_eq!((first.cpu_user_ns, first.cpu_system_ns), (Some(9 * MS), Some(3 * MS)));
    assert_eq!(first.cpu_halves, Some([0.05, 0.07]));
    // What it does in the other's blocks is its own deferred work.
    let second = charged(&measured, 1, 1, Lifespan::WithTheRun { idle: Some(0.0) });
    assert_eq!((second.cpu_ns, second.idle_cpu), (Some((20 + 6) * MS), Some(0.0)));
    // An idle rate that was overestimated takes nothing of the own blocks away.
    assert_eq!(charged(&measured, 1, 1, Lifespan::WithTheRun { idle: Some(9.0) }).cpu_ns, Some(20 * MS));
    assert_eq!(charged(&measured, 1, 1, Lifespan::WithTheRun { idle: None }).cpu_ns, Some(26 * MS));
}

#[test]
fn what_cold_caches_cost_is_not_charged_and_a_batch_is_wherever_it_falls() {
    use Fate::Counts;
    use Part::{Alone, Block};
    // Variant 0 takes 20 ms more in the first half of a block; it sends batches of 40 ms, three in first halves and one in a second.
    let mut turns = Vec::new();
    for group in 0..20 {
        let batch = |half| if [(3, 0), (9, 0), (12, 1), (15, 0)].contains(&(group, half)) { 40 } else { 0 };
        turns.extend([
            (0, Block, group, Counts, [30 + batch(0), 0, 1]),
            (0, Block, group, Counts, [10 + batch(1), 0, 1]),
        ]);
        turns.extend([(1, Block, group, Counts, [1, 15, 3]), (1, Block, group, Counts, [0, 15, 3])]);
    }
    turns.push((0, Alone, 20, Counts, [10, 0, 0]));
    let measured = measured(&turns);
    let first = charged(&measured, 0, 0, Lifespan::WithTheRun { idle: Some(0.0) });
    assert_eq!((first.cpu_ns, first.cpu_foreign_ns), (Some((20 * 20 + 4 * 40 + 20) * MS), Some(20 * MS)));
    assert_eq!(charged(&measured, 1, 1, Lifespan::WithTheRun { idle: None }).cpu_ns, Some(20 * 30 * MS));
    let blocks = Turns::of(&measured).blocks(0, 2, &[0]);
    assert_eq!((blocks.kept, blocks.completed, blocks.cold_ns), (20, 20 * 100, Some(20e6)));
    assert!((blocks.length_s - 0.2).abs() < 1e-9 && blocks.points.len() == 20, "{blocks:?}");
    assert_eq!(blocks.points[0].cpu_ns, 20 * MS);
    assert_eq!(blocks.points[3].cpu_ns, 60 * MS);
}

#[test]
fn what_compilers_used_is_known_of_the_super_blocks_that_count() {
    let mut measured = example();
    measured
        .outcomes
        .turns
        .iter_mut()
        .filter(|taken| taken.fate == Fate::Late)
        .for_each(|taken| taken.fate = Fate::Compiling);
    // Read between groups: 2 ms of variant 0 and 1 ms of variant 1 in the first, 60 ms in the one that does not count, 4 ms in the last.
    for (edge, used) in [(0, [0, 0, 0]), (2, [2, 1, 0]), (4, [62, 1, 0]), (6, [62, 5, 0])] {
        measured.edges[edge].compiling_ns = used.map(|ms| ms * MS).into();
    }
    let compiling = |run| charged(&measured, run, run, Lifespan::WithTheRun { idle: None }).compiling_ns;
    assert_eq!([compiling(0), compiling(1)], [Some(2 * MS), Some(5 * MS)]);
    let blocks = Turns::of(&measured).blocks(0, 2, &[0]);
    assert_eq!((blocks.kept, blocks.late, blocks.compiling, blocks.super_blocks()), (2, 0, 1, 3));
    assert_eq!(charged(&example(), 0, 0, Lifespan::WithTheRun { idle: None }).compiling_ns, None);
}

#[test]
fn what_lives_through_the_study_is_charged_to_the_block_in_which_it_works() {
    let measured = example();
    for (run, expected) in [(0, 4), (1, 8)] {
        let shared = charged(&measured, run, 2, Lifespan::ThroughTheStudy);
        assert_eq!((shared.cpu_ns, shared.cpu_foreign_ns), (Some(expected * MS), None));
    }
}

#[test]
fn a_target_that_cannot_be_read_has_no_cpu() {
    let mut measured = example();
    measured.edges[1].cpu_ns[0] = None;
    assert_eq!(charged(&measured, 0, 0, Lifespan::WithTheRun { idle: None }).cpu_ns, None);
    assert_eq!(charged(&measured, 0, 1, Lifespan::WithTheRun { idle: None }).cpu_ns, Some(26 * MS));
}

#[test]
fn blocks_tell_what_counts_and_how_it_went_over_time() {
    let measured = example();
    let turns = Turns::of(&measured);
    let blocks = turns.blocks(0, 2, &[0]);
    assert_eq!((blocks.kept, blocks.late, blocks.disturbed, blocks.variants), (2, 1, 0, 2));
    assert_eq!((blocks.own_s, blocks.foreign_s, blocks.cold_ns), (0.2, 0.2, None));
    assert!((blocks.length_s - 0.1).abs() < 1e-9, "{}", blocks.length_s);
    assert_eq!((blocks.completed, blocks.answered), (100, 150));
    let point = |t_s, cpu_ms: u64| BlockPoint { t_s, completed: 50, cpu_ns: cpu_ms * MS };
    assert_eq!(blocks.points, [point(0.1, 5), point(0.5, 7)]);
    let alone = blocks.alone.expect("a stretch alone");
    assert_eq!((alone.seconds, alone.completed, alone.cpu_ns), (0.1, 50, 4 * MS));
    assert_eq!(turns.wall_s(), 0.6);
    assert_eq!(turns.blocks(1, 2, &[1]).points[0].t_s, 0.1, "the same instants for all runs of the round");
}

#[test]
fn long_windows_have_few_points_and_lose_nothing() {
    let turns: Vec<_> = (0..1_000)
        .flat_map(|group| {
            [(0, Part::Block, group, Fate::Counts, [1, 0, 0]), (1, Part::Block, group, Fate::Counts, [0, 2, 0])]
        })
        .collect();
    let measured = measured(&turns);
    let blocks = Turns::of(&measured).blocks(1, 2, &[1]);
    assert!(blocks.points.len() <= Blocks::MAX_POINTS && blocks.points.len() > 60, "{}", blocks.points.len());
    assert_eq!(blocks.points.iter().map(|point| point.cpu_ns).sum::<u64>(), 2_000 * MS);
    assert_eq!(blocks.points.iter().map(|point| point.completed).sum::<u64>(), blocks.completed);
}

#[test]
fn the_later_idle_rate_counts_unless_the_load_goes_on() {
    let edge = |at_ms: u64, ms: [u64; 3]| Edge {
        at_ns: at_ms * MS,
        cpu_ns: ms.map(|ms| Some(ms * MS)).into(),
        ..Edge::default()
    };
    let before = rates(&edge(0, [0, 0, 0]), &edge(1_000, [100, 10, 18]));
    let after = rates(&edge(5_000, [900, 20, 90]), &edge(6_000, [910, 40, 110]));
    assert_eq!(before, [Some(0.1), Some(0.01), Some(0.018)]);
    assert_eq!(after, [Some(0.01), Some(0.02), Some(0.02)]);
    assert_eq!(idle_rates(&before, &after, 0..3), [Some(0.01), Some(0.01), Some(0.02)]);
    assert_eq!(idle_rates(&before, &[None, None, None], 1..4), [Some(0.01), Some(0.018), None]);
}
