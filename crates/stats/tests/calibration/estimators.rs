//! The two estimators that are shipped: false alarms and the effects they find; what planning says of them; and rounds of
//! more than two variants.

use unladen_stats::{
    estimate::{Estimate, EstimateError, Level, hodges_lehmann, paired_t, standard_deviation},
    plan,
};

use crate::{
    alarm, exact_alarms, ranks,
    sheet::{Expected, Sheet},
    simulation::{MODELS, Model, Random, Turns, count, differences, rounds_of},
    times,
};

/// By how much the effects of [`Model::Shared`] may differ from those published, which know the model in words only: with
/// more variants between variant and baseline it counts more how often neighbours come and go.
const SHARED: f64 = 0.07;

pub(crate) fn shipped(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    type Estimator = fn(&[f64], Level) -> Result<Estimate, EstimateError>;
    let (rank, t): (Estimator, Estimator) = (hodges_lehmann, paired_t);
    // False alarms and effects at n = 7, 10, 12; no false alarms were published for drift.
    let table = [
        ("ranks", rank, Model::Quiet, Some([4.6, 4.8, 4.1]), [1.9, 1.4, 1.3]),
        ("ranks", rank, Model::Drift, None, [2.3, 1.7, 1.6]),
        ("ranks", rank, Model::Shared, Some([4.8, 4.9, 4.3]), [4.0, 3.1, 2.7]),
        ("ranks", rank, Model::Hits, Some([4.5, 4.8, 4.3]), [6.8, 6.3, 3.6]),
        ("t", t, Model::Quiet, Some([5.0, 4.9, 4.8]), [1.8, 1.4, 1.3]),
        ("t", t, Model::Drift, None, [2.2, 1.7, 1.5]),
        ("t", t, Model::Shared, Some([3.9, 4.3, 4.5]), [3.8, 3.0, 2.7]),
        ("t", t, Model::Hits, Some([1.9, 2.0, 2.3]), [7.0, 5.7, 5.2]),
    ];
    for (name, estimate, model, alarms, effects) in table {
        sheet.title(&format!("{name}, {model:?}, balanced random order: false alarms, %, and effect found in 80 %, %"));
        for (at, n) in [7, 10, 12].into_iter().enumerate() {
            let mut short_by = Vec::with_capacity(2 * runs);
            let hits = times(runs, || {
                let values = differences(&Turns::Balanced.rounds(&model.slots(2 * n, random), random));
                let interval = estimate(&values, Level::P95).expect("finite").interval.expect("enough rounds");
                short_by.extend([-interval.low, interval.high]);
                alarm(&interval)
            });
            if let Some(alarms) = alarms {
                // Tails decide how cautious t is, and those of the rebuilt model may be a point off.
                let model = if name == "t" && model == Model::Shared { 1.0 } else { 0.0 };
                sheet.rate(&format!("n = {n}, false alarms"), Expected::rebuilt(alarms[at], 0.05, model), hits, runs);
            }
            let model = if model == Model::Shared { SHARED * effects[at] } else { 0.0 };
            sheet.effect(&format!("n = {n}, effect"), Expected::rebuilt(effects[at], 0.05, model), short_by);
        }
    }
}

/// The formulas of `plan` against simulated normal differences of standard deviation 1.
pub(crate) fn planning(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    sheet.title("Planning: the formulas, and what comes out, in standard deviations of a difference");
    let sizes = [
        (6, Level::P95),
        (7, Level::P95),
        (8, Level::P95),
        (12, Level::P95),
        (24, Level::P95),
        (7, Level::P97),
        (8, Level::P97),
        (12, Level::P97),
        (24, Level::P97),
    ];
    for (n, level) in sizes {
        let (mut short_by, mut widths) = (Vec::with_capacity(2 * runs), Vec::with_capacity(runs));
        for _ in 0..runs {
            let values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let interval = ranks(&values, level);
            short_by.extend([-interval.low, interval.high]);
            widths.push(interval.half_width());
        }
        let what = format!("n = {n}, {:.0} %", 100.0 * level.get());
        let effect = plan::smallest_detectable(1.0, n, level).expect("enough rounds");
        sheet.effect(&format!("{what}, effect"), Expected::rebuilt(effect, 0.0, 0.04 * effect), short_by);
        let width = plan::half_width(1.0, n, level).expect("enough rounds");
        let mean = widths.iter().sum::<f64>() / count(runs);
        let sd = standard_deviation(&widths).expect("many");
        sheet.mean(&format!("{what}, half-width"), Expected::rebuilt(width, 0.0, 0.03 * width), (mean, sd), runs);
    }
}

/// What a study of 12 rounds says afterwards that it could have found, from the width of its interval.
pub(crate) fn hindsight(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    sheet
        .title("Effect that a study of 12 rounds says it would have found in 80 %, on average; expected: simulated, %");
    let found = |sd: f64| plan::smallest_detectable(sd, 12, Level::P95).expect("enough rounds");
    for model in MODELS {
        let (mut short_by, mut by_width, mut by_sd) = (Vec::with_capacity(2 * runs), Vec::with_capacity(runs), 0.0);
        for _ in 0..runs {
            let values = differences(&Turns::Balanced.rounds(&model.slots(24, random), random));
            let interval = ranks(&values, Level::P95);
            short_by.extend([-interval.low, interval.high]);
            by_width.push(found(plan::implied_sd(&interval, 12, Level::P95).expect("enough rounds")));
            by_sd += found(standard_deviation(&values).expect("12 values")) / count(runs);
        }
        short_by.sort_by(f64::total_cmp);
        let truth = short_by[short_by.len() * 4 / 5];
        let mean = by_width.iter().sum::<f64>() / count(runs);
        let sd = standard_deviation(&by_width).expect("many");
        sheet.mean(&format!("{model:?}"), Expected::rebuilt(truth, 0.0, truth / 7.0), (mean, sd), runs);
        println!("{:<58} {:>11} {by_sd:>8.2}", format!("NOT done: {model:?}, from the standard deviation"), "");
    }
}

/// More than two variants in a round, and the mean of two baseline variants as the baseline.
pub(crate) fn several_variants(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    sheet.title("The last of several arms, n = 12, against one baseline or the mean of two: effect found in 80 %, %");
    let study = |variants: usize, n: usize, pooled: bool, model: Model, random: &mut Random| -> Vec<f64> {
        let against = |round: &Vec<f64>| if pooled { 0.5 * (round[0] + round[1]) } else { round[0] };
        rounds_of(variants, n, model, random).iter().map(|round| round[variants - 1] - against(round)).collect()
    };
    let table = [
        (2, false, [1.60, 2.72]),
        (5, false, [1.76, 3.11]),
        (6, true, [1.56, 2.85]),
        (7, false, [1.84, 3.34]),
        (8, true, [1.65, 2.93]),
    ];
    for (variants, pooled, effects) in table {
        for (model, effect) in [Model::Drift, Model::Shared].into_iter().zip(effects) {
            let mut short_by = Vec::with_capacity(2 * runs);
            let alarms = times(runs, || {
                let interval = ranks(&study(variants, 12, pooled, model, random), Level::P95);
                short_by.extend([-interval.low, interval.high]);
                alarm(&interval)
            });
            let what = format!("{variants} arms{}, {model:?}", if pooled { ", two baselines" } else { "" });
            let rebuilt = if model == Model::Shared { SHARED * effect } else { 0.0 };
            sheet.effect(&format!("{what}: effect"), Expected::rebuilt(effect, 0.005, rebuilt), short_by);
            sheet.rate(&format!("{what}: false alarms"), Expected::Between(3.5, 5.3), alarms, runs);
        }
    }
    sheet.title("Why not the mean of two baselines: one-sided noise makes the differences lopsided. False alarms, %");
    for n in [12, 24] {
        for pooled in [false, true] {
            let alarms = times(runs, || alarm(&ranks(&study(3, n, pooled, Model::Hits, random), Level::P95)));
            if pooled {
                sheet.show(&format!("NOT done: 3 arms, two baselines, Hits, n = {n}"), alarms, runs);
            } else {
                let expected = Expected::Theory(exact_alarms(n, Level::P95));
                sheet.rate(&format!("3 arms, Hits, n = {n}"), expected, alarms, runs);
            }
        }
    }
}
