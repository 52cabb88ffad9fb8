//! A JVM that nobody declared as one: what is put into its heap, threads and classes is found again.
//! A closed loop, because a busy machine voids an open one, and what is asked for here does not depend on the pace.

use std::path::Path;
use std::process::Command;

use crate::harness::{Scratch, finding, on_a_core};

/// A scratch folder with the compiled service and this study: `common` follows the services' command.
pub(crate) fn scratch(study: &str, options: &str, more: &str, variants: &str) -> Scratch {
    let scratch = Scratch::with(&format!(
        r#"
study: {study}
warmup: 1s
window: 2s
rounds: 6
ballast: false
placebo: false
drain: {{quiet: 100ms, limit: 1s}}
services:
  app:
    command: "java {options} -cp . Subject --port ${{port.app}}"
    ready: {{log: "ready on"}}
load:
  url: "http://127.0.0.1:${{port.app}}/work"
  connections: 4
{more}
variants:
  baseline: {{}}
{variants}
"#
    ));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/Subject.java");
    let compiled = Command::new("javac").arg("-d").arg(scratch.path("")).arg(source).status();
    assert!(compiled.expect("a JDK is installed: `make deps` installs it").success());
    scratch
}

#[test]
fn heap_threads_and_classes_that_were_put_in_are_found() {
    let _turn = on_a_core();
    // A small eden is collected many times within the window.
    let scratch = scratch(
        "jvm",
        "-XX:+UseG1GC -Xms96m -Xmx96m -Xmn16m",
        "",
        "  heavy:\n    services: {app: {args: [--ballast-mib, '20', --threads, '5', --classes, '500']}}\n",
    );
    let output = scratch.run(&[]).ends_with(0);
    println!("{}", output.out);
    let findings = scratch.findings();
    let difference = |metric: &str| {
        let found = finding(&findings, "heavy", metric);
        println!(
            "{metric}: {} → {} {}, difference {:?} [{:?}, {:?}], {}",
            found.baseline,
            found.value,
            found.unit,
            found.difference,
            found.difference_low,
            found.difference_high,
            found.words
        );
        let Some(difference) = found.difference else {
            // A disturbed machine has voided a run: the medians are there.
            return found.value - found.baseline;
        };
        difference
    };
    let heap = difference("heap_after_gc") / f64::from(1 << 20);
    assert!((19.5..21.5).contains(&heap), "{heap} MiB");
    assert_eq!(difference("java_threads"), 5.0);
    // The hidden classes, and the few that it takes to define them; the bare service may load some that this one does not need yet.
    let classes = difference("classes");
    assert!((480.0..560.0).contains(&classes), "{classes}");
    assert!(difference("metaspace") > 500.0 * 500.0);
    let allocated = finding(&findings, "heavy", "allocated_bytes_per_request");
    println!("allocated: {} B per request", allocated.value);
    // 256 KiB by the service, and what its server takes for itself.
    assert!((240e3..400e3).contains(&allocated.value), "{} B per request", allocated.value);
    let cpu = |metric: &str| finding(&findings, "heavy", metric).baseline;
    println!("CPU {} µs per request, {} beside the compiler", cpu("cpu_per_request"), cpu("cpu_without_jit"));
    assert!(cpu("jit_time") > 0.0 && cpu("cpu_without_jit") > 0.0 && cpu("cpu_without_jit") < cpu("cpu_per_request"));
    for metric in ["gc_time", "gc_count", "off_heap", "code_cache", "heap"] {
        assert!(finding(&findings, "heavy", metric).baseline > 0.0, "{metric}");
        difference(metric);
    }
    // Every process has the rest, whatever it is written in.
    let runs = scratch.runs();
    assert!(runs.iter().flat_map(|run| &run.processes).all(|it| it.extra.get("descriptors").is_some_and(|&n| n > 3.0)));
}
