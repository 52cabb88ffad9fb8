//! Identical variants, re-labelled at random, differ no more often than the level allows.

use unladen_judge::relabel::{Draw, RELABELLED, false_alarms, studies};
use unladen_judge::{Budgets, GateOutcome, JudgeError, judge_folder, outcome, read};
use unladen_study::measured::Measured;

use crate::sketch::{Sketch, write};

fn stored(sketch: &Sketch) -> Measured {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), &sketch.study(), &sketch.runs());
    read(dir.path()).expect("a whole run folder")
}

/// 200 studies of 12 out of 60 stored rounds. The seed is fixed, so that this cannot fail by chance.
#[test]
fn identical_variants_raise_few_false_alarms() {
    let folder = stored(&Sketch { rounds: 60, seed: 11, ..Sketch::new("a-a", "") });
    let alarms = false_alarms(&folder, &["baseline", "placebo"], Draw { studies: 200, rounds: 12, seed: 5 })
        .expect("rounds are stored");
    for metric in ["cpu_per_request", "rss", "latency_p50", "latency_p99", "start_up"] {
        let alarms = alarms[metric];
        assert_eq!(alarms.comparisons, 200);
        assert!((0.02..=0.08).contains(&alarms.share()), "{metric}: {}", alarms.share());
    }
}

/// The labels are drawn by lot, so even a difference of 50 % between the variants falls on both sides alike: the test is exact for
/// any noise, and only its own level is left.
#[test]
fn labels_drawn_by_lot_hide_even_a_real_difference() {
    let mut sketch = Sketch { rounds: 24, seed: 2, ..Sketch::new("a-b", "") };
    sketch.variants[1].cpu = 1.5;
    let alarms = false_alarms(&stored(&sketch), &["baseline", "placebo"], Draw { studies: 200, rounds: 12, seed: 5 })
        .expect("rounds are stored");
    assert!(alarms["cpu_per_request"].share() <= 0.08, "{}", alarms["cpu_per_request"].share());
}

#[test]
fn a_single_variant_cannot_be_re_labelled() {
    let folder = stored(&Sketch::new("a-a", ""));
    let error = false_alarms(&folder, &["baseline"], Draw { studies: 1, rounds: 12, seed: 1 }).expect_err("needs two");
    assert!(matches!(error, JudgeError::NothingToRelabel { .. }), "{error}");
}

/// Real runs: 24 rounds of five identical variants on a shared two-core machine on which others were compiling. Given the
/// runs, exchanging the labels by lot makes the test exact, whatever their noise. The draw is seeded, so this cannot fail by
/// chance; `make aa` measures anew.
#[test]
fn stored_runs_of_identical_variants_raise_few_false_alarms() {
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stored/identical");
    let folder = read(std::path::Path::new(stored)).expect("a stored run folder");
    let variants = ["baseline", "placebo", "a", "b", "c"];
    let alarms =
        false_alarms(&folder, &variants, Draw { studies: 200, rounds: 12, seed: 3 }).expect("rounds are stored");
    for (metric, alarms) in &alarms {
        println!("{metric:<32} {:>5.1} % of {}", alarms.share() * 100.0, alarms.comparisons);
    }
    for metric in ["cpu_per_request", "rss", "rss_peak", "latency_p50", "latency_p75", "latency_mean", "start_up"] {
        let share = alarms[metric].share();
        assert!((0.02..=0.08).contains(&share), "{metric}: {share}");
    }
    // Counts and shares that are mostly equal have ties, with which the interval is conservative.
    for (metric, alarms) in &alarms {
        assert!(alarms.share() <= 0.08, "{metric}: {}", alarms.share());
    }
}

/// The gate on 40 studies of identical variants with a budget of 5 % on CPU, by outcome; `factor` on the CPU of the variant.
fn gate(factor: f64) -> Vec<GateOutcome> {
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stored/identical");
    let folder = read(std::path::Path::new(stored)).expect("a stored run folder");
    let variants = ["baseline", "placebo", "a", "b", "c"];
    let budgets: Budgets = [("cpu_per_request".to_owned(), "5%".to_owned())].into();
    let drawn = studies(&folder, &variants, Draw { studies: 40, rounds: 12, seed: 8 }).expect("rounds are stored");
    let outcomes = drawn.map(|mut study| {
        for process in study.runs.iter_mut().filter(|run| run.variant == RELABELLED).flat_map(|run| &mut run.processes)
        {
            process.cpu_ns = process.cpu_ns.map(|ns| (ns as f64 * factor).round() as u64);
        }
        outcome(&judge_folder(&study, &budgets).expect("a study that can be judged"))
    });
    outcomes.collect()
}

fn share(outcomes: &[GateOutcome], of: GateOutcome) -> usize {
    outcomes.iter().filter(|outcome| **outcome == of).count()
}

/// A gate that cries wolf is switched off within a week: none of 40 studies in which nothing differs fails.
#[test]
fn the_gate_never_fails_what_costs_nothing() {
    let outcomes = gate(1.0);
    println!(
        "identical: {} of 40 pass, {} undecided",
        share(&outcomes, GateOutcome::Pass),
        share(&outcomes, GateOutcome::Undecided)
    );
    assert_eq!(share(&outcomes, GateOutcome::Fail), 0, "{outcomes:?}");
    assert!(share(&outcomes, GateOutcome::Pass) > 0, "a gate that lets nothing pass would hold too: {outcomes:?}");
}

/// And none of 40 in which the variant takes a tenth more passes.
#[test]
fn the_gate_never_passes_twice_the_budget() {
    let outcomes = gate(1.1);
    println!(
        "+10 %: {} of 40 fail, {} undecided",
        share(&outcomes, GateOutcome::Fail),
        share(&outcomes, GateOutcome::Undecided)
    );
    assert_eq!(share(&outcomes, GateOutcome::Pass), 0, "{outcomes:?}");
    assert!(share(&outcomes, GateOutcome::Fail) > 0, "a gate that lets everything hang would hold too: {outcomes:?}");
}
