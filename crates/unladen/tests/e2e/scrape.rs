//! A Go program that shows its metrics: what is asked of it becomes findings. A closed loop, because a busy machine voids an
//! open one, and what is asked for here does not depend on the pace.

use std::path::Path;
use std::process::Command;

use crate::harness::{Scratch, counting, finding};

#[test]
fn goroutines_and_heap_of_a_go_program_are_found() {
    let _turn = counting();
    let scratch = Scratch::with(
        r#"
study: go
warmup: 500ms
window: 1s
alone: 400ms
rounds: 6
ballast: false
placebo: false
drain: {quiet: 100ms, limit: 1s}
services:
  app:
    command: "./app -listen 127.0.0.1:${port.app}"
    ready: {tcp: "127.0.0.1:${port.app}"}
    scrape:
      url: http://127.0.0.1:${port.app}/metrics
      every: 250ms
      keep:
        go_goroutines: {as: goroutines}
        go_memstats_heap_inuse_bytes: {as: heap}
        go_memstats_alloc_bytes_total: {as: allocated}
        go_gc_duration_seconds_sum: {as: gc_time}
        go_gc_duration_seconds_count: {as: gc_count}
        kept_bytes: {as: ballast_bytes, labels: {of: ballast}}
        not_there: {}
load:
  url: http://127.0.0.1:${port.app}/work
  connections: 2
  trace: none
variants:
  baseline: {}
  heavy:
    services: {app: {args: [-goroutines, '7', -ballast-mib, '20']}}
"#,
    );
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/go/main.go");
    let built = Command::new("go").args(["build", "-o"]).arg(scratch.path("app")).arg(source).status();
    assert!(built.expect("Go is installed: `make deps` says how").success());
    let output = scratch.run(&[]).ends_with(0);
    println!("{}", output.out);
    assert!(output.out.contains("has no not_there"), "{}", output.out);
    let findings = scratch.findings();
    let difference = |metric: &str| {
        let found = finding(&findings, "heavy", metric);
        println!("{metric}: {} → {} {}, {}", found.baseline, found.value, found.unit, found.words);
        found.difference.unwrap_or(found.value - found.baseline)
    };
    assert_eq!(difference("goroutines"), 7.0);
    let mib = f64::from(1 << 20);
    // Go lets garbage grow to as much as is live before it collects.
    let heap = difference("heap") / mib;
    assert!((18.0..44.0).contains(&heap), "{heap} MiB");
    assert_eq!(difference("ballast_bytes"), 20.0 * mib);
    assert_eq!(finding(&findings, "heavy", "ballast_bytes").unit, "B");
    let allocated = finding(&findings, "heavy", "allocated_bytes_per_request").baseline;
    assert!((64e3..90e3).contains(&allocated), "{allocated} B per request");
    // The larger heap is collected less often.
    assert!(difference("gc_count") < 0.0);
    assert!(finding(&findings, "heavy", "gc_time").baseline > 0.0);
}
