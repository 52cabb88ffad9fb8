//! The tables and the worked example that the method is documented with.

use unladen_stats::{
    estimate::{Level, hodges_lehmann, paired_t},
    rank::{critical_rank, min_rounds},
    verdict::{Verdict, verdict},
};

#[test]
fn critical_ranks_are_those_of_the_method() {
    let tables: [(Level, &[(usize, usize)]); 3] = [
        (
            Level::P95,
            &[
                (6, 1),
                (7, 3),
                (8, 4),
                (9, 6),
                (10, 9),
                (11, 11),
                (12, 14),
                (13, 18),
                (14, 22),
                (15, 26),
                (16, 30),
                (18, 41),
                (20, 53),
                (24, 82),
                (30, 138),
            ],
        ),
        (Level::P97, &[(8, 3), (10, 7), (12, 12), (16, 27), (20, 48), (24, 75)]),
        (Level::P99, &[(12, 8), (24, 62)]),
    ];
    for (level, table) in tables {
        for &(n, rank) in table {
            let critical = critical_rank(n, level).expect("n is large enough");
            assert_eq!(critical.rank, rank, "n = {n} at {level:?}");
            assert!(critical.achieved >= level.get(), "n = {n} at {level:?} achieves {}", critical.achieved);
        }
    }
    assert!((critical_rank(12, Level::P95).expect("12 rounds").achieved - 0.958).abs() < 0.0005);
}

#[test]
fn too_few_rounds_have_no_interval() {
    for (level, least) in [(Level::P95, 6), (Level::P97, 7), (Level::P99, 8)] {
        assert_eq!(min_rounds(level), least);
        assert_eq!(critical_rank(least - 1, level), None);
        assert_eq!(critical_rank(least, level).map(|critical| critical.rank), Some(1));
    }
}

#[test]
fn the_worked_example_comes_out() {
    let rounds = [2.4, 3.1, 3.9, 2.8, 3.3, 4.4, 1.9, 3.6, 2.2, 3.0, 5.9, 2.7];
    let estimate = hodges_lehmann(&rounds, Level::P95).expect("finite values");
    let interval = estimate.interval.expect("12 rounds");
    assert!((estimate.value - 3.15).abs() < 1e-9, "{}", estimate.value);
    assert!((interval.low - 2.60).abs() < 1e-9 && (interval.high - 4.00).abs() < 1e-9, "{interval:?}");
    assert_eq!(verdict(&interval, 1.0), Verdict::Costs);

    let t = paired_t(&rounds, Level::P95).expect("finite values");
    let interval = t.interval.expect("12 rounds");
    assert!((t.value - 3.27).abs() < 0.005, "{}", t.value);
    assert!((interval.low - 2.57).abs() < 0.005 && (interval.high - 3.96).abs() < 0.005, "{interval:?}");
}
