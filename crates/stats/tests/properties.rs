//! What has to hold for any rounds, not only for those of the goldens.

use proptest::prelude::*;
use unladen_stats::{
    estimate::{Estimate, Interval, Level, hodges_lehmann, paired_t},
    order::{balanced, balanced_part},
    pair::{differences, log_ratios},
    rank::{EXACT_UP_TO, SignedRank, Tail, critical_rank, min_rounds, p_value},
    slope::theil_sen,
    verdict::{Budgeted, Outcome, Verdict, budget, budgets, holm, holm_adjusted, less_than_margin, verdict},
};

/// Rounds of a study: of ordinary size, sometimes with ties and zeros.
fn rounds() -> impl Strategy<Value = Vec<f64>> {
    let continuous = prop::collection::vec(-100.0..100.0_f64, 1..30);
    let tied = prop::collection::vec((-4..5_i32).prop_map(|half| f64::from(half) / 2.0), 1..30);
    prop_oneof![continuous, tied]
}

fn level() -> impl Strategy<Value = Level> {
    prop_oneof![Just(Level::P95), Just(Level::P97), Just(Level::P99)]
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

type Estimator = fn(&[f64], Level) -> Result<Estimate, unladen_stats::estimate::EstimateError>;
const ESTIMATORS: [Estimator; 2] = [hodges_lehmann, paired_t];

/// Whether `after` is `before` with every number mapped (an order-reversing map swaps the ends of the interval).
fn mapped(before: &Estimate, after: &Estimate, map: impl Fn(f64) -> f64) -> bool {
    let interval = match (&before.interval, &after.interval) {
        (None, None) => true,
        (Some(before), Some(after)) => {
            let (a, b) = (map(before.low), map(before.high));
            near(a.min(b), after.low) && near(a.max(b), after.high) && near(before.achieved, after.achieved)
        }
        _ => false,
    };
    interval && near(map(before.value), after.value) && near(map(before.mean), after.mean) && before.n == after.n
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn estimates_move_with_the_values(values in rounds(), level in level(), shift in -1e3..1e3_f64, scale in 0.001..1e3_f64) {
        for estimate in ESTIMATORS {
            let before = estimate(&values, level).expect("finite values");
            let after = |map: &dyn Fn(f64) -> f64| {
                let moved: Vec<f64> = values.iter().copied().map(map).collect();
                estimate(&moved, level).expect("finite values")
            };
            prop_assert!(mapped(&before, &after(&|value| value + shift), |value| value + shift));
            prop_assert!(mapped(&before, &after(&|value| value * scale), |value| value * scale));
            prop_assert!(mapped(&before, &after(&|value| -value), |value| -value));
        }
    }

    #[test]
    fn the_order_of_rounds_does_not_matter(values in rounds().prop_shuffle(), level in level()) {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        for estimate in ESTIMATORS {
            let (a, b) = (estimate(&values, level).expect("finite"), estimate(&sorted, level).expect("finite"));
            prop_assert!(mapped(&a, &b, |value| value));
        }
    }

    #[test]
    fn the_interval_holds_the_estimate_and_lies_within_the_values(values in rounds(), level in level()) {
        let estimate = hodges_lehmann(&values, level).expect("finite values");
        prop_assert_eq!(estimate.interval.is_some(), values.len() >= min_rounds(level));
        if let Some(interval) = estimate.interval {
            prop_assert!(interval.contains(estimate.value));
            prop_assert!(interval.achieved >= level.get());
            prop_assert!(values.iter().any(|value| *value <= interval.low));
            prop_assert!(values.iter().any(|value| *value >= interval.high));
        }
        if let Some(interval) = paired_t(&values, level).expect("finite values").interval {
            prop_assert!(interval.contains(estimate.mean));
        }
    }

    #[test]
    fn a_surer_interval_is_wider(values in rounds()) {
        for estimate in ESTIMATORS {
            let interval = |level| estimate(&values, level).expect("finite values").interval;
            for (inner, outer) in [(Level::P95, Level::P97), (Level::P97, Level::P99)] {
                if let (Some(inner), Some(outer)) = (interval(inner), interval(outer)) {
                    prop_assert!(outer.low <= inner.low && inner.high <= outer.high && outer.achieved > inner.achieved);
                }
            }
        }
    }

    #[test]
    fn one_wild_round_of_twelve_cannot_stretch_the_interval(
        mut values in prop::collection::vec(-1.0..1.0_f64, 12), wild in 0..12_usize, blow in -1e12..1e12_f64,
    ) {
        values[wild] = blow;
        let interval = hodges_lehmann(&values, Level::P95).expect("finite values").interval.expect("12 rounds");
        prop_assert!(interval.low >= -1.0 && interval.high <= 1.0, "{:?}", interval);
    }

    #[test]
    fn test_and_interval_agree(values in rounds(), center in prop_oneof![-100.0..100.0_f64, (-4..5_i32).prop_map(|half| f64::from(half) / 2.0)], level in level()) {
        let interval = hodges_lehmann(&values, level).expect("finite values").interval;
        let outside = |p: f64| p <= level.tail();
        let below = interval.is_some_and(|interval| center < interval.low);
        let above = interval.is_some_and(|interval| center > interval.high);
        prop_assert_eq!(outside(p_value(&values, center, Tail::Above)), below);
        prop_assert_eq!(outside(p_value(&values, center, Tail::Below)), above);
        prop_assert_eq!(outside(p_value(&values, center, Tail::Both) / 2.0), below || above);
    }

    #[test]
    fn ties_and_zeros_err_on_the_safe_side(halves in prop::collection::vec(-3..4_i32, 1..9)) {
        let values: Vec<f64> = halves.iter().map(|half| f64::from(*half) / 2.0).collect();
        // Under "no effect" every value has either sign with equal chance: all of them, one by one.
        let above = |signs: usize| {
            let signed: Vec<f64> = values.iter().enumerate().map(|(i, value)| if signs >> i & 1 == 1 { -value } else { *value }).collect();
            let pairs = (0..signed.len()).flat_map(|i| (i..signed.len()).map(move |j| (i, j)));
            pairs.filter(|&(i, j)| signed[i] + signed[j] > 0.0).count()
        };
        let observed = above(0);
        let as_extreme = (0..1 << values.len()).filter(|&signs| above(signs) >= observed).count();
        let truth = f64::from(u32::try_from(as_extreme).expect("few")) / f64::from(1_u32 << values.len());
        let ours = p_value(&values, 0.0, Tail::Above);
        prop_assert!(ours >= truth - 1e-12, "{} for {}", ours, truth);
        let mut sizes: Vec<i32> = halves.iter().map(|half| half.abs()).collect();
        sizes.sort_unstable();
        if sizes[0] > 0 && sizes.windows(2).all(|pair| pair[0] < pair[1]) {
            prop_assert!(near(ours, truth), "without ties: {} for {}", ours, truth);
        }
    }

    #[test]
    fn the_two_sides_of_the_distribution_are_one(n in 1..60_usize, share in 0.0..1.0_f64) {
        let distribution = SignedRank::new(n);
        let largest = distribution.largest();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "small and positive")]
        let sum = (share * largest as f64) as usize;
        prop_assert!(near(distribution.at_most(sum) + distribution.at_least(sum + 1), 1.0));
        prop_assert!(near(distribution.at_most(sum), distribution.at_least(largest - sum)));
        prop_assert!(distribution.at_most(sum) <= distribution.at_most(sum + 1));
    }

    #[test]
    fn a_round_slowed_as_a_whole_leaves_no_trace(
        pairs in prop::collection::vec((1e-3..1e6_f64, 1e-3..1e6_f64, 0.01..100.0_f64), 1..20),
    ) {
        let plain: Vec<(f64, f64)> = pairs.iter().map(|&(baseline, variant, _)| (baseline, variant)).collect();
        let slowed: Vec<(f64, f64)> = pairs.iter().map(|&(baseline, variant, factor)| (baseline * factor, variant * factor)).collect();
        let turned: Vec<(f64, f64)> = plain.iter().map(|&(baseline, variant)| (variant, baseline)).collect();
        let ratios = |pairs: &[(f64, f64)]| log_ratios(pairs).expect("positive values");
        for ((a, b), c) in ratios(&plain).into_iter().zip(ratios(&slowed)).zip(ratios(&turned)) {
            prop_assert!(near(a, b) && near(a, -c));
        }
        let d = differences(&plain).expect("finite values");
        prop_assert!(d.iter().zip(&plain).all(|(d, (baseline, variant))| near(baseline + d, *variant)));
    }

    #[test]
    fn relative_and_back(low in -0.5..0.5_f64, width in 0.0..0.5_f64) {
        let interval = Interval { low, high: low + width, achieved: 0.95 };
        let relative = interval.relative();
        prop_assert!(near(relative.low.ln_1p(), interval.low) && near(relative.high.ln_1p(), interval.high));
    }

    #[test]
    fn verdicts_claim_no_more_than_the_interval(low in -3.0..3.0_f64, width in 0.0..3.0_f64, margin in 0.0..3.0_f64) {
        let interval = Interval { low, high: low + width, achieved: 0.95 };
        let opposite = Interval { low: -interval.high, high: -interval.low, achieved: 0.95 };
        let here = verdict(&interval, margin);
        match here {
            Verdict::Costs => prop_assert!(interval.low > 0.0),
            Verdict::Saves => prop_assert!(interval.high < 0.0),
            Verdict::NoDifference => prop_assert!(interval.contains(0.0) && interval.farther_end() <= margin),
            Verdict::CannotTell => prop_assert!(interval.contains(0.0) && interval.farther_end() > margin),
        }
        let there = verdict(&opposite, margin);
        let turned = match here { Verdict::Costs => Verdict::Saves, Verdict::Saves => Verdict::Costs, same => same };
        prop_assert_eq!(there, turned);
        prop_assert_eq!(less_than_margin(&interval, margin), less_than_margin(&opposite, margin));
        prop_assert_eq!(less_than_margin(&interval, margin), interval.farther_end() < margin);
    }

    #[test]
    fn one_budget_is_judged_by_its_interval(values in rounds(), limit in -100.0..100.0_f64, level in level()) {
        let alone = hodges_lehmann(&values, level).expect("finite values").interval.map_or(Outcome::Undecided, |interval| budget(&interval, limit));
        prop_assert_eq!(budgets(&[Budgeted { values: &values, limit }], level), vec![alone]);
    }

    #[test]
    fn more_budgets_never_make_a_failure(family in prop::collection::vec((rounds(), -100.0..100.0_f64), 1..8)) {
        let family: Vec<Budgeted<'_>> = family.iter().map(|(values, limit)| Budgeted { values, limit: *limit }).collect();
        let together = budgets(&family, Level::P95);
        for (one, together) in family.iter().zip(together) {
            let alone = budgets(std::slice::from_ref(one), Level::P95)[0];
            prop_assert!(together == alone || (alone == Outcome::Fail && together == Outcome::Undecided));
        }
    }

    #[test]
    fn holm_lies_between_nothing_and_bonferroni(p in prop::collection::vec(0.0..1.0_f64, 0..20), alpha in 0.001..0.5_f64) {
        let size = f64::from(u32::try_from(p.len()).expect("few"));
        let adjusted = holm_adjusted(&p);
        for (adjusted, p) in adjusted.iter().zip(&p) {
            prop_assert!(*adjusted >= *p && *adjusted <= (p * size).min(1.0) + 1e-12);
        }
        let least = p.iter().copied().fold(1.0, f64::min);
        prop_assert_eq!(holm(&p, alpha).contains(&true), !p.is_empty() && least * size <= alpha);
    }

    #[test]
    fn slopes_move_with_the_points(values in prop::collection::vec(-100.0..100.0_f64, 2..30), tilt in -10.0..10.0_f64, stretch in 0.01..100.0_f64) {
        let points = |map: &dyn Fn(f64, f64) -> (f64, f64)| -> Vec<(f64, f64)> {
            values.iter().zip(0..).map(|(value, time)| map(f64::from(time), *value)).collect()
        };
        let slope = |map: &dyn Fn(f64, f64) -> (f64, f64)| theil_sen(&points(map), Level::P95).expect("distinct times");
        let plain = slope(&|time, value| (time, value));
        let moved = |other: unladen_stats::slope::Slope, map: &dyn Fn(f64) -> f64| {
            let ends = match (plain.interval, other.interval) {
                (Some(a), Some(b)) => near(map(a.low), b.low) && near(map(a.high), b.high),
                (a, b) => a.is_none() && b.is_none(),
            };
            ends && near(map(plain.value), other.value)
        };
        prop_assert!(moved(slope(&|time, value| (time, value + tilt * time)), &|slope| slope + tilt));
        prop_assert!(moved(slope(&|time, value| (time * stretch - 7.0, value)), &|slope| slope / stretch));
        prop_assert!(plain.interval.is_none_or(|interval| interval.contains(plain.value)));
    }
}

proptest! {
    // Fewer cases: drawing many rounds of twelve variants takes a while without optimisation.
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn orders_are_balanced_and_repeatable(variants in 0..15_usize, rounds in 0..30_usize, seed in any::<u64>()) {
        let orders = balanced(variants, rounds, seed);
        prop_assert_eq!(&orders, &balanced(variants, rounds, seed));
        prop_assert_eq!(orders.len(), rounds);
        let mut runs = vec![vec![0; variants]; variants];
        for order in &orders {
            let mut present = order.clone();
            present.sort_unstable();
            prop_assert!(present.into_iter().eq(0..variants));
            for (slot, &variant) in order.iter().enumerate() {
                runs[variant][slot] += 1;
            }
        }
        for count in runs.iter().flatten() {
            prop_assert!((rounds / variants..=rounds.div_ceil(variants)).contains(count), "{:?}", runs);
        }
        if variants > 2 && rounds > 9 {
            prop_assert_ne!(&orders, &balanced(variants, rounds, seed.wrapping_add(1)));
            prop_assert_ne!(&orders, &balanced_part(variants, rounds, seed, 1));
        }
    }
}

#[test]
fn beyond_the_exact_table_the_ranks_go_on() {
    for level in [Level::P95, Level::P97, Level::P99] {
        let mut before = 0;
        for n in EXACT_UP_TO - 3..EXACT_UP_TO + 4 {
            let critical = critical_rank(n, level).expect("large n");
            assert!(critical.rank > before && critical.achieved >= level.get(), "n = {n}: {critical:?}");
            let pace = critical.rank - before;
            assert!(before == 0 || (70..120).contains(&pace), "n = {n}: {pace} more than for n − 1");
            before = critical.rank;
        }
    }
}
