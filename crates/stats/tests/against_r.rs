//! Golden values from R's `wilcox.test`, `t.test`, `psignrank`, `qt` and `p.adjust`. `goldens/make.R` makes them.

use unladen_stats::{
    estimate::{Level, hodges_lehmann, paired_t, standard_deviation, student_t_quantile},
    pair::log_ratios,
    rank::{SignedRank, Tail, critical_rank, p_value},
    slope::theil_sen,
    verdict::holm_adjusted,
};

const ESTIMATES: &str = include_str!("goldens/estimates.txt");
const DISTRIBUTIONS: &str = include_str!("goldens/distributions.txt");

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|word| word.parse().expect("a number in the golden file")).collect()
}

/// Non-negative whole number, such as a count of rounds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the goldens hold small whole numbers")]
fn whole(number: f64) -> usize {
    number as usize
}

#[track_caller]
fn assert_near(ours: f64, theirs: f64, what: &str) {
    let allowed = 1e-9 * theirs.abs().max(1e-6);
    assert!((ours - theirs).abs() <= allowed, "{what}: {ours} here, {theirs} in R");
}

fn level(number: f64) -> Level {
    Level::new(number).expect("a level in the golden file")
}

#[test]
fn estimates_and_intervals() {
    let (mut name, mut values, mut baseline, mut center) = ("", Vec::new(), Vec::new(), 0.0);
    let (mut cases, mut intervals) = (0, 0);
    for line in ESTIMATES.lines().filter(|line| !line.starts_with('#')) {
        let (key, rest) = line.split_once(' ').expect("a key and numbers");
        match key {
            "case" => (name, cases) = (rest, cases + 1),
            "values" => values = numbers(rest),
            "baseline" => baseline = numbers(rest),
            "variant" => {
                let pairs: Vec<(f64, f64)> = baseline.iter().copied().zip(numbers(rest)).collect();
                values = log_ratios(&pairs).expect("positive values");
            }
            "center" => center = numbers(rest)[0],
            "p" => {
                for (tail, theirs) in [Tail::Above, Tail::Below, Tail::Both].into_iter().zip(numbers(rest)) {
                    assert_near(p_value(&values, center, tail), theirs, &format!("{name}, p-value {tail:?}"));
                }
            }
            "mean" => {
                let ours = paired_t(&values, Level::P95).expect("finite values");
                assert_near(ours.value, numbers(rest)[0], &format!("{name}, mean"));
            }
            "sd" => {
                let ours = standard_deviation(&values).expect("several values");
                assert_near(ours, numbers(rest)[0], &format!("{name}, standard deviation"));
            }
            "t" => {
                let theirs = numbers(rest);
                let ours = paired_t(&values, level(theirs[0])).expect("finite values");
                let interval = ours.interval.expect("several values");
                assert_near(interval.low, theirs[1], &format!("{name}, low end of t"));
                assert_near(interval.high, theirs[2], &format!("{name}, high end of t"));
            }
            "ranks" => {
                let theirs = numbers(rest);
                let level = level(theirs[0]);
                assert_eq!(critical_rank(values.len(), level).map_or(0, |critical| critical.rank), whole(theirs[1]));
                let ours = hodges_lehmann(&values, level).expect("finite values");
                let Some(interval) = ours.interval else {
                    assert_eq!(theirs.len(), 2, "{name}: R has an interval");
                    continue;
                };
                for (what, ours, theirs) in [
                    ("estimate", ours.value, theirs[2]),
                    ("low end", interval.low, theirs[3]),
                    ("high end", interval.high, theirs[4]),
                    ("achieved level", interval.achieved, theirs[5]),
                ] {
                    assert_near(ours, theirs, &format!("{name}, {what} at {level:?}"));
                }
                intervals += 1;
            }
            _ => panic!("unknown line in the golden file: {line}"),
        }
    }
    assert_eq!((cases, intervals), (72, 202), "the golden file is not whole");
}

#[test]
fn distributions() {
    let mut lines = 0;
    for line in DISTRIBUTIONS.lines().filter(|line| !line.starts_with('#')) {
        let (key, rest) = line.split_once(' ').expect("a key and numbers");
        let (given, expected) = rest.split_once('|').unwrap_or((rest, ""));
        let (given, expected) = (numbers(given), numbers(expected));
        match key {
            "signed_rank" => {
                let distribution = SignedRank::new(whole(given[0]));
                assert_near(distribution.at_most(whole(given[1])), given[2], line);
                assert_near(distribution.at_least(whole(given[1])), given[3], line);
            }
            "critical" => {
                let ours = critical_rank(whole(given[0]), level(given[1])).map_or(0, |critical| critical.rank);
                assert_eq!(ours, whole(given[2]), "{line}");
            }
            "student" => {
                assert_near(student_t_quantile(given[1], whole(given[0])).expect("a quantile"), given[2], line);
            }
            "holm" => {
                for (ours, theirs) in holm_adjusted(&given).into_iter().zip(expected) {
                    assert_near(ours, theirs, line);
                }
            }
            "slope" => {
                let points: Vec<(f64, f64)> = given.chunks_exact(2).map(|point| (point[0], point[1])).collect();
                let slope = theil_sen(&points, Level::P95).expect("distinct times");
                let interval = slope.interval.expect("enough points");
                for (ours, theirs) in [slope.value, interval.low, interval.high].into_iter().zip(expected) {
                    assert_near(ours, theirs, line);
                }
            }
            _ => panic!("unknown line in the golden file: {line}"),
        }
        lines += 1;
    }
    assert_eq!(lines, 359, "the golden file is not whole");
}
