//! Studies that something else than a number of rounds ends: the width of an interval, the time, the most rounds.

use unladen_journal::notices::{Notice, Stopped, StoppedBy};
use unladen_study::measured::{Measured, read};

use crate::harness::{Scratch, counting, demo_study};

/// The study in `out`, with what it says of its end.
#[track_caller]
fn measured(scratch: &Scratch) -> (Measured, Stopped) {
    let measured = read(&scratch.path("out")).expect("a run folder");
    let stopped: Vec<Stopped> = measured
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Stopped(stopped) => Some(stopped.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(stopped.len(), 1, "{:?}", measured.notices);
    let last = stopped.into_iter().next().expect("one");
    (measured, last)
}

/// What was wanted is so wide that chance cannot miss it; rounds that the machine spoils are made up for.
#[test]
fn it_goes_on_until_it_is_narrow_and_then_for_a_time() {
    let _turn = counting();
    let study = demo_study("open-ended", "  same: {}\n")
        .replace("window: 2s", "window: 300ms")
        .replace("rate: 300", "rate: 100")
        .replace("warmup: 500ms", "warmup: 100ms\nplacebo: false")
        // Too few rounds for `--until`: nobody asks for this profile.
        + "profiles: {quick: {rounds: 1}}\n";
    let scratch = Scratch::with(&study);
    let output = scratch.run(&["--until", "cpu_per_request=1000%"]).ends_with(0);
    let (first, stopped) = measured(&scratch);
    assert_eq!(stopped.by, StoppedBy::Width, "{stopped}");
    assert!(stopped.look.begun >= 6 && first.study.rounds == 200, "{stopped}");
    let words = "every interval of CPU per request is within ±";
    assert!(output.err.contains(words), "{}", output.err);
    assert!(scratch.findings().notices.iter().any(|it| it.code == "stopped" && it.text.contains(words)));
    let levels = scratch.findings().variants.into_iter().flat_map(|it| it.metrics).filter_map(|it| it.level);
    assert!(levels.fold(1.0, f64::min) >= 0.96, "whoever looks after every round is held to more");

    // It has come as far as it was to.
    scratch.unladen(&["run", "--resume", "out", "--plain"]).ends_with(0);
    assert_eq!(measured(&scratch).0.runs.len(), first.runs.len());

    // No round fits into the time, so it is the one that every session does.
    scratch
        .unladen(&["run", "--resume", "out", "--plain", "--until", "cpu_per_request=0.001%", "--at-most", "100ms"])
        .ends_with(0)
        .complains(&["About 0 rounds fit"]);
    let (second, stopped) = measured(&scratch);
    assert_eq!((stopped.by, stopped.at_most_s), (StoppedBy::Time, Some(0.1)), "{stopped}");
    // Each of its two runs up to three times, should the machine disturb them.
    assert!((1..=6).contains(&(second.runs.len() - first.runs.len())), "{} runs", second.runs.len());
    assert!(!stopped.look.is_enough(), "{stopped}");
}
