//! A/A for real: five identical variants, re-labelled at random and judged again, by either design. Too long for every commit: `make aa`.

use std::path::Path;

use unladen_judge::read;
use unladen_judge::relabel::{Draw, false_alarms};

use crate::harness::{Scratch, demo_study, on_all_cores, with_ballast};

/// Re-labelled studies. Given the stored runs, the labels are exchanged by lot, so each metric's false alarms are a binomial
/// share of at most 5 % (4.2 % for 12 rounds): with 2,000 draws its standard error is 0.5 points, and 2 to 8 % is left by
/// chance less than once in 10,000 times.
const STUDIES: u32 = 2_000;

#[test]
#[ignore = "takes seven minutes of a quiet machine: make aa"]
fn identical_variants_cost_nothing_one_after_the_other() {
    identical_variants_cost_nothing("separate");
}

#[test]
#[ignore = "takes five minutes of a quiet machine: make aa"]
fn identical_variants_cost_nothing_by_turns() {
    identical_variants_cost_nothing("alternating");
}

fn identical_variants_cost_nothing(design: &str) {
    let _turn = on_all_cores();
    let scratch = Scratch::with(&with_ballast(&demo_study("identical", "  a: {}\n  b: {}\n  c: {}\n")));
    let output = scratch.run(&["--rounds", "24", "--window", "1s", "--warmup", "300ms", "--design", design]);
    println!("{}", output.out);
    let folder = read(&scratch.path("out")).expect("a run folder");
    let variants = ["baseline", "placebo", "a", "b", "c"];
    let alarms =
        false_alarms(&folder, &variants, Draw { studies: STUDIES, rounds: 12, seed: 1 }).expect("runs to re-label");
    println!("{design}: {STUDIES} studies of 12 rounds, re-labelled from {} runs", folder.runs.len());
    for (metric, alarms) in &alarms {
        println!("{metric:<32} {:>5.1} % of {}", alarms.share() * 100.0, alarms.comparisons);
    }
    // Counts that are mostly equal have ties, with which the interval is conservative.
    for metric in ["cpu_per_request", "latency_p50", "latency_mean"] {
        let share = alarms[metric].share();
        assert!((0.02..=0.08).contains(&share), "{metric}: {share}");
    }
    for (metric, alarms) in &alarms {
        assert!(alarms.share() <= 0.08, "{metric}: {}", alarms.share());
    }
    if let Some(keep) = std::env::var_os("UNLADEN_KEEP") {
        for name in ["study.yaml", "host.json", "journal.jsonl"] {
            let kept = Path::new(&keep).join(format!("{design}-{name}"));
            std::fs::copy(scratch.path("out").join(name), kept).expect("a copy");
        }
    }
}
