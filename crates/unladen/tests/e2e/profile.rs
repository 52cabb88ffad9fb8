//! Profiles: the frame that burns CPU in a variant is named, by perf in the embedded service and by async-profiler in a JVM.

use unladen_judge::findings::ProfileFindings;

use crate::harness::{Scratch, demo_study, on_a_core};
use crate::jvm;

/// The one profile of the study, drawn and linked.
fn profile(scratch: &Scratch, variant: &str, profiler: &str) -> ProfileFindings {
    let findings = scratch.findings();
    let found = findings.profiles.into_iter().find(|it| it.variant == variant).expect("a profile");
    assert_eq!(found.profiler, profiler);
    // An idle baseline may not be caught at work at all.
    assert!(found.samples > 50, "{found:?}");
    let drawing = std::fs::read_to_string(scratch.path("out").join(&found.flame_graph)).expect("a drawing");
    assert!(drawing.contains("<svg"));
    let page = std::fs::read_to_string(scratch.path("out/report.html")).expect("a page");
    assert!(page.contains(&found.flame_graph.replace('/', "&#x2f;")), "it is linked");
    for frame in &found.frames {
        println!("{:+9.2} {} ({:.2} → {:.2})", frame.difference, frame.frame, frame.baseline, frame.value);
    }
    found
}

fn is_there(program: &str) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn perf_names_what_burns() {
    if !is_there("perf") {
        println!("SKIPPED: perf is not installed: `make deps` installs it");
        return;
    }
    let _turn = on_a_core();
    let study = demo_study("profiled", "  burn:\n    services: {consumer: {args: [--burn-us, '1000']}}\n")
        .replace("  rate: 300\n", "")
        .replace("connections: 8", "connections: 1");
    let scratch = Scratch::with(&study);
    let output = scratch.run(&["--rounds", "1", "--set", "placebo=false", "--profile"]).ends_with(0);
    println!("{}\n{}", output.out, output.err);
    let found = profile(&scratch, "burn", "perf");
    // It takes logarithms. Where the symbols of the C library are not installed, perf names the library.
    let works = |frame: &str| ["logarithms", "::ln", "log", "[libm"].iter().any(|word| frame.contains(word));
    let burning: f64 = found.frames.iter().filter(|it| works(&it.frame)).map(|it| it.difference).sum();
    assert!(burning > 100.0, "{found:#?}");
    assert!(output.out.contains("Where the CPU of consumer goes under burn"), "{}", output.out);
}

#[test]
fn async_profiler_names_what_burns_in_a_jvm() {
    if !is_there("mvn") {
        println!("SKIPPED: Maven, which gets async-profiler, is not installed");
        return;
    }
    let _turn = on_a_core();
    let scratch =
        jvm::scratch("jvm-profiled", "-Xmx96m", "", "  spin:\n    services: {app: {args: [--spin, '1000000']}}\n");
    let output = scratch.run(&["--rounds", "1", "--window", "3s", "--profile"]).ends_with(0);
    println!("{}\n{}", output.out, output.err);
    let found = profile(&scratch, "spin", "async-profiler");
    let burning =
        found.frames.iter().find(|it| it.frame.contains("Subject.burn")).expect("the loop is among the first");
    // A million dependent multiplications take a third of a millisecond and more.
    assert!(burning.difference > 100.0, "{found:#?}");
    assert!(found.frames.iter().take(3).any(|it| it.frame == burning.frame), "{found:#?}");

    // What is missing is told with the way to get it.
    let output = scratch.unladen(&[
        "run",
        ".",
        "--out",
        "other",
        "--plain",
        "--rounds",
        "1",
        "--window",
        "500ms",
        "--profile",
        "--async-profiler",
        "nowhere.so",
    ]);
    let output = output.ends_with(0);
    assert!(output.err.contains("nowhere.so") && output.err.contains("mvn dependency:unpack"), "{}", output.err);
}
