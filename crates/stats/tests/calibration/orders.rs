//! False alarms by the order in which two variants take turns, and the exactness that a random order gives.

use statrs::distribution::{ContinuousCDF, StudentsT};
use unladen_stats::{
    estimate::{Level, standard_deviation},
    noise::{Harness, placebo},
    rank::critical_rank,
};

use crate::{
    alarm, exact_alarms, ranks,
    sheet::{Expected, Sheet},
    simulation::{MODELS, Model, Random, Turns, count, differences},
    times,
};

/// Two-sided Welch test at 5 %: what a comparison of two blocks of runs amounts to.
fn welch(rounds: &[(f64, f64)]) -> bool {
    let (a, b): (Vec<f64>, Vec<f64>) = rounds.iter().copied().unzip();
    let n = count(a.len());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
    let square = |values: &[f64]| standard_deviation(values).expect("several runs").powi(2) / n;
    let (va, vb) = (square(&a), square(&b));
    let freedom = (va + vb).powi(2) * (n - 1.0) / (va * va + vb * vb);
    let t = (mean(&a) - mean(&b)).abs() / (va + vb).sqrt();
    2.0 * StudentsT::new(0.0, 1.0, freedom).expect("positive").sf(t) < 0.05
}

fn false_alarm(turns: Turns, slots: &[f64], random: &mut Random) -> bool {
    let rounds = turns.rounds(slots, random);
    if turns == Turns::Blocked { welch(&rounds) } else { alarm(&ranks(&differences(&rounds), Level::P95)) }
}

/// Two variants, 10 rounds, no effect. Blocked: Welch; else signed ranks.
pub(crate) fn turns(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    sheet.title("False alarms by order, %, n = 10, nominal 5 (blocked: Welch's test; else signed ranks)");
    let table = [
        // How strongly the published models drift over ten runs in a row is rebuilt to within 5 points.
        (Turns::Blocked, [Expected::tenths(4.9), Expected::rebuilt(65.0, 0.5, 5.0), Expected::rebuilt(52.0, 0.5, 5.0)]),
        (Turns::BaselineFirst, [4.9, 6.4, 4.7].map(Expected::tenths)),
        (Turns::Abba, [5.3, 4.9, 4.8].map(Expected::tenths)),
        (Turns::Coin, [5.0, 5.0, 5.0].map(Expected::tenths)),
        (Turns::Balanced, [5.0, 4.6, 4.8].map(Expected::tenths)),
    ];
    for (turns, expected) in table {
        for (model, expected) in [Model::Quiet, Model::Drift, Model::Shared].into_iter().zip(expected) {
            let alarms = times(runs, || false_alarm(turns, &model.slots(20, random), random));
            sheet.rate(&format!("{turns:?}, {model:?}"), expected, alarms, runs);
        }
    }
}

/// A second slot that is slower, and interference with a period: what a fixed order falls for.
pub(crate) fn disturbed(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    type Wave = fn(usize) -> f64;
    const SLOWER: Wave = |slot| if slot % 2 == 1 { 1.0 } else { 0.0 };
    const SHORT: Wave = |slot| if slot % 2 == 1 { 2.0 } else { 0.0 };
    const LONG: Wave = |slot| if (slot + 1) % 4 < 2 { 2.0 } else { 0.0 };
    sheet.title("False alarms, %: second slot 1 % slower under drift (n = 10); square wave of 2 % (n = 12)");
    let table = [
        (Turns::Blocked, "slower slot", Model::Drift, 10, SLOWER, Expected::rebuilt(67.0, 0.5, 5.0)),
        (Turns::BaselineFirst, "slower slot", Model::Drift, 10, SLOWER, Expected::whole(39.0)),
        (Turns::Abba, "slower slot", Model::Drift, 10, SLOWER, Expected::tenths(2.5)),
        (Turns::Coin, "slower slot", Model::Drift, 10, SLOWER, Expected::tenths(5.0)),
        (Turns::Balanced, "slower slot", Model::Drift, 10, SLOWER, Expected::tenths(2.3)),
        (Turns::BaselineFirst, "period 2", Model::Quiet, 12, SHORT, Expected::whole(99.0)),
        (Turns::Abba, "period 2", Model::Quiet, 12, SHORT, Expected::whole(0.0)),
        (Turns::Coin, "period 2", Model::Quiet, 12, SHORT, Expected::tenths(4.3)),
        (Turns::Balanced, "period 2", Model::Quiet, 12, SHORT, Expected::tenths(0.1)),
        (Turns::Abba, "period 4", Model::Quiet, 12, LONG, Expected::whole(99.0)),
        (Turns::Balanced, "period 4", Model::Quiet, 12, LONG, Expected::tenths(5.2)),
        // The price of the balance: it makes an order that alternates likelier than a coin would. Should nothing but a
        // wave of that period be left, all six rounds agree with it in 2 of the 20 balanced orders.
        (Turns::Balanced, "nothing but period 4", Model::Quiet, 6, |slot| 1e6 * LONG(slot), Expected::Theory(10.0)),
        (
            Turns::Balanced,
            "nothing but period 4",
            Model::Quiet,
            12,
            |slot| 1e6 * LONG(slot),
            Expected::Between(4.2, 6.1),
        ),
        (Turns::Coin, "nothing but period 4", Model::Quiet, 6, |slot| 1e6 * LONG(slot), Expected::Theory(3.125)),
    ];
    for (turns, name, model, rounds, wave, expected) in table {
        let alarms = times(runs, || {
            let quiet = model.slots(2 * rounds, random);
            let disturbed: Vec<f64> = quiet.into_iter().enumerate().map(|(slot, value)| value + wave(slot)).collect();
            false_alarm(turns, &disturbed, random)
        });
        sheet.rate(&format!("{turns:?}, {name}, n = {rounds}"), expected, alarms, runs);
    }
}

/// A coin in every round makes the signed-rank test exact in any noise: the achieved level is the truth, not a bound.
pub(crate) fn exactness(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    sheet.title("Coverage of the interval by a coin in every round, %: exactly the achieved level, in any noise");
    for (n, level) in [(6, Level::P95), (12, Level::P95), (12, Level::P97), (12, Level::P99), (24, Level::P97)] {
        let achieved = critical_rank(n, level).expect("enough rounds").achieved;
        for model in MODELS {
            let covered = times(runs, || {
                let values = differences(&Turns::Coin.rounds(&model.slots(2 * n, random), random));
                ranks(&values, level).contains(0.0)
            });
            let what = format!("n = {n}, {:.0} %, {model:?}", 100.0 * level.get());
            sheet.rate(&what, Expected::Theory(100.0 * achieved), covered, runs);
        }
    }
    sheet.title("Placebos that condemn a sound harness, n = 12, balanced random order, %");
    for model in MODELS {
        let broken = times(runs, || {
            let values = differences(&Turns::Balanced.rounds(&model.slots(24, random), random));
            placebo(&values, Level::P95).expect("finite values").harness == Harness::Broken
        });
        sheet.rate(&format!("{model:?}"), Expected::Between(0.7, exact_alarms(12, Level::P99)), broken, runs);
    }
}
