//! Decisions made of intervals: when to stop, budgets, many comparisons at once, leaks.

use unladen_stats::{
    estimate::{Interval, Level, paired_t},
    order,
    plan::{self, TwoLooks},
    rank::{Tail, min_rounds, p_value},
    slope::{Slope, minima, theil_sen},
    verdict::{Budgeted, Outcome, budget, budgets, holm},
};

use crate::{
    alarm, exact_alarms, ranks,
    sheet::{Expected, Sheet},
    simulation::{Model, Random, count, rounds_of},
    times,
};

/// The differences of a study of two parts of as many rounds each, no effect.
fn two_parts(model: Model, part: usize, random: &mut Random) -> Vec<f64> {
    let (slots, seed) = (model.slots(4 * part, random), random.seed());
    let orders = [order::balanced(2, part, seed), order::balanced_part(2, part, seed, 1)].concat();
    let difference =
        |(order, slots): (&Vec<usize>, &[f64])| if order[0] == 0 { slots[1] - slots[0] } else { slots[0] - slots[1] };
    orders.iter().zip(slots.chunks_exact(2)).map(difference).collect()
}

/// Looking more than once: at two planned looks, and (to see why not) at every round.
pub(crate) fn stopping(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    sheet.title("False alarms when a study may go on, %");
    let looks = TwoLooks::default();
    let sizes = [looks.first(), looks.second()];
    for model in [Model::Quiet, Model::Shared, Model::Hits] {
        let alarms = times(runs, || {
            let values = two_parts(model, looks.first(), random);
            sizes.iter().any(|&n| alarm(&ranks(&values[..n], TwoLooks::LEVEL)))
        });
        sheet.rate(&format!("two looks, 12 and 24, at 97 %, {model:?}"), Expected::Between(4.8, 5.0), alarms, runs);
    }
    // One side of the above: a budget that is spent to the last bit.
    let failed = times(runs, || {
        let values: Vec<f64> = (0..looks.second()).map(|_| 3.0 + random.normal()).collect();
        sizes.iter().any(|&n| budget(&ranks(&values[..n], TwoLooks::LEVEL), 3.0) == Outcome::Fail)
    });
    sheet.rate("two looks: a budget spent exactly fails", Expected::Between(2.4, 2.5), failed, runs);
    for model in [Model::Quiet, Model::Shared, Model::Hits] {
        let alarms = times(runs, || {
            let values = two_parts(model, 10, random);
            let look = |n: usize| paired_t(&values[..n], Level::P95).expect("finite").interval.expect("several");
            (6..=20).any(|n| alarm(&look(n)))
        });
        sheet.rate(
            &format!("NOT done: t at every round, 6 to 20, {model:?}"),
            Expected::Between(9.0, 18.0),
            alarms,
            runs,
        );
    }
}

/// The most rounds of a simulated study that goes on until it is narrow.
const MAX_ROUNDS: usize = 60;

/// The rounds of a study that goes on until its intervals are narrow, in unladen's order: stretches of 12 that are each balanced.
fn open_ended(variants: usize, model: Model, random: &mut Random) -> Vec<Vec<f64>> {
    let (slots, seed) = (model.slots(variants * MAX_ROUNDS, random), random.seed());
    let orders = (0..).flat_map(|part| order::balanced_part(variants, 12, seed, part));
    let in_order = |(order, slots): (Vec<usize>, &[f64])| {
        let mut values = vec![0.0; variants];
        order.into_iter().zip(slots).for_each(|(variant, value)| values[variant] = *value);
        values
    };
    orders.zip(slots.chunks_exact(variants)).map(in_order).collect()
}

/// The intervals of all variants of such a study, the first variant being the baseline, when the last of them is narrow.
fn when_narrow(rounds: &[Vec<f64>], level: Level, narrow: impl Fn(&Interval) -> bool) -> Vec<Interval> {
    let variants = 1..rounds[0].len();
    let look = |n: usize| -> Vec<Interval> {
        let of = |variant: usize| rounds[..n].iter().map(|round| round[variant] - round[0]).collect::<Vec<f64>>();
        variants.clone().map(|variant| ranks(&of(variant), level)).collect()
    };
    let found = (min_rounds(level)..MAX_ROUNDS).map(look).find(|intervals| intervals.iter().all(&narrow));
    found.unwrap_or_else(|| look(MAX_ROUNDS))
}

/// Looking at the width after every round from the sixth on. `sd` is what pairs scatter by: about so many rounds are needed.
pub(crate) fn narrow(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    sheet.title(
        "False alarms when a study goes on until it is narrow, looked at after every round from the 6th, at 96 %, %",
    );
    let models = [(Model::Quiet, 1.41), (Model::Drift, 1.7), (Model::Shared, 2.4), (Model::Hits, 2.8)];
    let level = plan::NARROW_LEVEL;
    for (model, sd) in models {
        for wanted in [6, 8, 12, 20, 30] {
            let target = plan::half_width(sd, wanted, Level::P95).expect("enough rounds");
            let alarms = times(runs, || {
                let rounds = open_ended(2, model, random);
                when_narrow(&rounds, level, |it| plan::narrow_enough(it, target)).iter().any(alarm)
            });
            sheet.rate(&format!("{model:?}, narrow after about {wanted}"), Expected::Between(3.2, 6.1), alarms, runs);
        }
    }
    let target = plan::half_width(1.41, 20, Level::P95).expect("enough rounds");
    let alarms = times(runs, || {
        let rounds = open_ended(2, Model::Quiet, random);
        when_narrow(&rounds, Level::P95, |it| plan::narrow_enough(it, target)).iter().any(alarm)
    });
    sheet.rate("NOT done: at 95 %, Quiet, about 20", Expected::Between(6.6, 7.4), alarms, runs);
    // Three variants: the study goes on until the last of them is narrow.
    let alarms: usize = (0..runs / 3)
        .map(|_| {
            let rounds = open_ended(4, Model::Quiet, random);
            let intervals = when_narrow(&rounds, level, |it| plan::narrow_enough(it, target));
            intervals.iter().filter(|it| alarm(it)).count()
        })
        .sum();
    sheet.rate("three variants, each, Quiet, about 20", Expected::Between(3.2, 6.1), alarms, runs / 3 * 3);
    // Relative differences are as narrow as they are printed. A variant that costs half as much again needs more rounds for it, and
    // whether its interval is narrow depends a little on where it lies.
    let (truth, target) = (150_f64.ln() - 100_f64.ln(), target / 100.0 * 1.5);
    let missed = times(runs, || {
        let rounds = open_ended(2, Model::Quiet, random);
        let printed = |it: &Interval| {
            let shifted = |end: f64| end / 100.0 + truth;
            Interval { low: shifted(it.low), high: shifted(it.high), ..*it }.relative()
        };
        let interval = when_narrow(&rounds, level, |it| plan::narrow_enough(&printed(it), target)).remove(0);
        !printed(&interval).contains(0.5)
    });
    sheet.rate("a true +50 % that is missed, Quiet, about 20", Expected::Between(3.2, 6.1), missed, runs);
}

/// A budget of 3 %, differences of sd 1.5 %, 12 rounds.
pub(crate) fn gate(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    sheet.title("A budget of 3 %, sd 1.5 %, n = 12: outcomes, %");
    let table = [
        (0.0, Outcome::Pass, 100.0),
        (1.0, Outcome::Pass, 98.0),
        (2.0, Outcome::Pass, 50.0),
        (2.0, Outcome::Undecided, 50.0),
        (3.0, Outcome::Pass, 2.0),
        (3.0, Outcome::Fail, 2.0),
        (3.0, Outcome::Undecided, 96.0),
        (4.0, Outcome::Fail, 52.0),
        (5.0, Outcome::Fail, 98.0),
    ];
    for (truth, outcome, expected) in table {
        let share = times(runs, || {
            let values: Vec<f64> = (0..12).map(|_| truth + 1.5 * random.normal()).collect();
            budget(&ranks(&values, Level::P95), 3.0) == outcome
        });
        sheet.rate(&format!("true {truth} %: {outcome:?}"), Expected::whole(expected), share, runs);
    }
}

/// Many comparisons at once.
pub(crate) fn families(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    sheet.title("Many comparisons in one study, n = 12, nothing real: any alarm, %");
    // Four variants share the baseline runs of each of nine metrics.
    let (mut any, mut any_by_holm) = (0, 0);
    for _ in 0..runs {
        let mut p_values = Vec::with_capacity(36);
        for _ in 0..9 {
            let rounds = rounds_of(5, 12, Model::Quiet, random);
            for variant in 1..5 {
                let values: Vec<f64> = rounds.iter().map(|round| round[variant] - round[0]).collect();
                p_values.push(p_value(&values, 0.0, Tail::Both));
            }
        }
        any += usize::from(p_values.iter().any(|p| *p <= 0.05));
        any_by_holm += usize::from(holm(&p_values, 0.05).contains(&true));
    }
    // Published without saying how far the metrics hang together; here they do not, the worst case.
    sheet.rate("36 comparisons", Expected::rebuilt(67.0, 0.5, 8.0), any, runs);
    sheet.rate("36 comparisons, by Holm", Expected::Between(2.5, 5.0), any_by_holm, runs);

    for size in [1, 2, 6] {
        // Any of them fails if the least p-value stays within a share of the tail, which has an exact rank of its own.
        let share = Level::new(1.0 - 0.05 / count(size)).expect("a level");
        let alone = exact_alarms(12, share) / 200.0;
        let expected = 100.0 * (1.0 - (0..size).map(|_| 1.0 - alone).product::<f64>());
        let failed = times(runs, || {
            let family: Vec<Vec<f64>> = (0..size).map(|_| (0..12).map(|_| 3.0 + random.normal()).collect()).collect();
            let family: Vec<Budgeted<'_>> = family.iter().map(|values| Budgeted { values, limit: 3.0 }).collect();
            budgets(&family, Level::P95).contains(&Outcome::Fail)
        });
        sheet.rate(&format!("{size} budgets spent exactly: any fails"), Expected::Theory(expected), failed, runs);
    }
}

/// Leaks: slopes of minima in single runs, compared over 12 rounds; 180 samples a run, a process with ρ = 0.9 or 0.98.
pub(crate) fn leaks(sheet: &mut Sheet, random: &mut Random, runs: usize) {
    sheet.title("Leaks: Theil-Sen on minima of 15 samples, then signed ranks over 12 rounds, %");
    for rho in [0.9, 0.98] {
        let mut single = 0;
        let alarms = times(runs, || {
            let difference = |_| {
                let (baseline, variant) = (leakless(rho, random), leakless(rho, random));
                single += usize::from(variant.interval.is_some_and(|interval| alarm(&interval)));
                variant.value - baseline.value
            };
            let values: Vec<f64> = (0..12).map(difference).collect();
            alarm(&ranks(&values, Level::P95))
        });
        let expected = Expected::Theory(exact_alarms(12, Level::P95));
        sheet.rate(&format!("over 12 rounds, ρ = {rho}"), expected, alarms, runs);
        sheet.show(&format!("NOT done: from a single run, ρ = {rho}"), single, 12 * runs);
    }
}

/// The slope of a run that does not leak.
fn leakless(rho: f64, random: &mut Random) -> Slope {
    let mut level = random.normal();
    let mut samples = Vec::with_capacity(180);
    for second in 0..180 {
        samples.push((count(second), level));
        level = rho * level + (1.0 - rho * rho).sqrt() * random.normal();
    }
    theil_sen(&minima(&samples, 15), Level::P95).expect("distinct times")
}
