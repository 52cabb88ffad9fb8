//! The study `easeagent` in miniature: the shop's gateway and vets start, and an agent makes the spans that are declared.

use unladen_study::spec::Study;

use crate::harness::{Scratch, build, on_all_cores, study};

/// The gateway and the vets, bare and under SkyWalking's agent with the plugins of `subjects/shop`: one server span, one client
/// span, one server span, seven statements. `make shop` builds them.
#[test]
fn the_shop_makes_ten_spans_a_request() {
    build("shop");
    // Six starts of Spring: on one core they take four times as long.
    let _turn = on_all_cores();
    let scratch = Scratch::new();
    let path = study("easeagent").display().to_string();
    let output = scratch
        .unladen(&["run", &path, "--set", "profile=ci", "--only", "skywalking", "--out", "out", "--plain"])
        .ends_with(0);
    println!("{}", output.out);
    let runs = scratch.runs();
    for run in &runs {
        let load = run.load.as_ref().expect("a load");
        assert_eq!(load.errors, 0, "{}", run.variant);
        let mut names: Vec<&str> = run.processes.iter().map(|it| it.service.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["gateway", "vets"], "config server and discovery are left out");
        assert!(run.processes.iter().all(|it| it.extra.get("classes").is_some_and(|&n| n > 5_000.0)), "JVMs");
    }
    let traced: Vec<_> = runs.iter().filter(|run| run.variant == "skywalking").collect();
    assert!(!traced.is_empty(), "{}", output.err);
    for run in traced {
        let answered = run.load.as_ref().expect("a load").answered_total;
        let ledger = run.ledger.as_ref().expect("a ledger");
        assert!(answered > 0);
        assert_eq!((ledger.lost, ledger.unexplained, ledger.duplicates), (0, 0, 0), "{ledger:?}");
        assert_eq!(ledger.saved, 10 * answered, "{ledger:?}");
    }
    scratch.assert_nothing_left();
}

/// Variants that need something from elsewhere are left out, and said to be.
#[test]
fn agents_that_must_be_brought_are_left_out_loudly() {
    let study = Study::read(study("easeagent"), &[]).expect("a study that reads");
    let (_, out) = study.of_those_that_take_part().expect("a study");
    assert!(out.contains(&"easeagent".to_owned()) && out.contains(&"leak".to_owned()), "{out:?}");
    assert!(!out.contains(&"otel".to_owned()));
}
