//! A process of which unladen knows nothing but that it runs: what the kernel counts for any process becomes findings. A closed
//! loop, because a busy machine voids an open one.

use std::path::Path;

use crate::harness::{Scratch, finding, on_a_core};

#[test]
fn what_a_python_service_holds_is_found() {
    let _turn = on_a_core();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/service.py");
    let study = r#"
study: python
# A thread for each connection: what it has counted goes with it, and connections outlast the blocks by the stretch alone.
design: separate
warmup: 300ms
window: 700ms
rounds: 6
ballast: false
placebo: false
repeat: {at_most: 0%}
drain: {quiet: 100ms, limit: 1s}
services:
  app:
    command: [python3, SCRIPT, --port, "${port.app}"]
    ready: {tcp: "127.0.0.1:${port.app}"}
load:
  url: http://127.0.0.1:${port.app}/
  connections: 1
  trace: none
variants:
  baseline: {}
  heavy:
    services: {app: {args: [--threads, '7', --files, '11', --hold-mib, '20', --naps, '3']}}
"#;
    let scratch = Scratch::with(&study.replace("SCRIPT", &script.display().to_string()));
    let output = scratch.run(&[]).ends_with(0);
    println!("{}", output.out);
    let findings = scratch.findings();
    let found = |metric: &str| {
        let found = finding(&findings, "heavy", metric);
        println!("{metric}: {} → {} {}, {}", found.baseline, found.value, found.unit, found.words);
        found.difference.unwrap_or_else(|| panic!("{metric}: {:?}", found.rounds))
    };
    // One more answers each connection, and each connection is one, in both variants; whether it is there when they are counted
    // differs from run to run.
    let threads = found("threads");
    assert!((6.0..=8.0).contains(&threads), "{threads} more threads");
    let descriptors = found("descriptors");
    assert!((10.0..=12.0).contains(&descriptors), "{descriptors} more descriptors");
    let mib = found("rss") / f64::from(1 << 20);
    assert!((19.0..24.0).contains(&mib), "{mib} MiB");
    // Each nap is given up on purpose.
    let switches = found("voluntary_switches_per_request");
    assert!((2.5..5.0).contains(&switches), "{switches} more per request");
    assert!(finding(&findings, "heavy", "involuntary_switches_per_request").baseline >= 0.0);
    for metric in ["cpu_per_request", "rss_peak", "start_up", "network_bytes_per_request"] {
        assert!(finding(&findings, "heavy", metric).baseline > 0.0, "{metric}");
    }
}
