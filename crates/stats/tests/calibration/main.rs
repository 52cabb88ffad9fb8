//! Do the intervals keep their promise? Simulated studies without an effect must raise a false alarm as often as the level
//! says, in the four noise models and under the orders that the method was chosen on; studies with one must find it.
//!
//! `the_promise_is_kept` takes about two minutes and is left to `make calibrate`; `a_first_look` checks the core of it in a few
//! seconds, with fewer runs and allowances to match.

mod decisions;
mod estimators;
mod orders;
mod sheet;
mod simulation;

use sheet::Sheet;
use simulation::{Random, count};
use unladen_stats::{
    estimate::{Interval, Level, hodges_lehmann, median, standard_deviation},
    rank::critical_rank,
    verdict::{Verdict, verdict},
};

#[test]
#[ignore = "takes two minutes in a release build: make calibrate"]
fn the_promise_is_kept() {
    let (mut sheet, mut random) = (Sheet::default(), Random::new(20_240_612));
    orders::turns(&mut sheet, &mut random, 50_000);
    orders::disturbed(&mut sheet, &mut random, 50_000);
    orders::exactness(&mut sheet, &mut random, 50_000);
    estimators::shipped(&mut sheet, &mut random, 50_000);
    estimators::planning(&mut sheet, &mut random, 50_000);
    estimators::hindsight(&mut sheet, &mut random, 20_000);
    estimators::several_variants(&mut sheet, &mut random, 20_000);
    decisions::stopping(&mut sheet, &mut random, 50_000);
    decisions::narrow(&mut sheet, &mut random, 20_000);
    decisions::gate(&mut sheet, &mut random, 50_000);
    decisions::families(&mut sheet, &mut random, 20_000);
    decisions::leaks(&mut sheet, &mut random, 4_000);
    sheet.finish();
}

#[test]
fn a_first_look() {
    let (mut sheet, mut random) = (Sheet::default(), Random::new(20_240_613));
    orders::turns(&mut sheet, &mut random, 400);
    orders::disturbed(&mut sheet, &mut random, 400);
    orders::exactness(&mut sheet, &mut random, 400);
    decisions::stopping(&mut sheet, &mut random, 400);
    decisions::narrow(&mut sheet, &mut random, 100);
    decisions::gate(&mut sheet, &mut random, 400);
    sheet.finish();
}

/// How often something happens in so many simulated studies.
fn times(runs: usize, mut happens: impl FnMut() -> bool) -> usize {
    (0..runs).filter(|_| happens()).count()
}

fn ranks(values: &[f64], level: Level) -> Interval {
    hodges_lehmann(values, level).expect("finite values").interval.expect("enough rounds")
}

fn alarm(interval: &Interval) -> bool {
    // A margin of 0 takes the verdict at its word: costs or saves.
    matches!(verdict(interval, 0.0), Verdict::Costs | Verdict::Saves)
}

/// False alarms of an exact interval, in per cent.
fn exact_alarms(n: usize, level: Level) -> f64 {
    100.0 * (1.0 - critical_rank(n, level).expect("enough rounds").achieved)
}

#[test]
fn the_simulation_is_what_it_says() {
    // 20,000 values: means err by 0.007, standard deviations by about 0.005, medians by 0.009; five of each are allowed,
    // which chance exceeds less than once in a million.
    let mut random = Random::new(1);
    let mut shape = |draw: fn(&mut Random) -> f64| -> (f64, f64, f64) {
        let values: Vec<f64> = (0..20_000).map(|_| draw(&mut random)).collect();
        let mean = values.iter().sum::<f64>() / count(values.len());
        (mean, standard_deviation(&values).expect("many"), median(&values).expect("many"))
    };
    let (mean, sd, middle) = shape(Random::normal);
    assert!(mean.abs() < 0.035 && (sd - 1.0).abs() < 0.025 && middle.abs() < 0.045, "{mean} {sd} {middle}");
    let (mean, sd, middle) = shape(Random::exponential);
    assert!((mean - 1.0).abs() < 0.035 && (sd - 1.0).abs() < 0.05, "{mean} {sd}");
    assert!((middle - std::f64::consts::LN_2).abs() < 0.035, "{middle}");
    // The variance of t with 3 degrees of freedom exists but hardly settles; its quartile is 0.7649/√3.
    let (_, _, middle) = shape(|random| random.heavy().abs());
    assert!((middle - 0.4416).abs() < 0.03, "{middle}");
}
