//! Probing: what the probe says about a child agrees with what the child says about itself.

use std::time::Duration;

use unladen_journal::record::{CpuSource, ProcessRecord};
use unladen_journal::role::Role;
use unladen_linux::hierarchy::Mounts;
use unladen_linux::monotonic_ns;
use unladen_probe::cpu::CpuReader;
use unladen_probe::tree::Tree;
use unladen_probe::{Observation, Sampler, Schedule, Target};
use unladen_processes::subject::{Launch, Running};

use crate::scratch::{Groups, Scratch, eventually, number_in_log, skipped, wait_for_log};

const MS: u64 = 1_000_000;

fn target(running: &Running) -> Target {
    Target {
        service: running.service().to_owned(),
        replica: running.replica(),
        role: Some(Role::Subject),
        family: running.family().clone(),
        cgroup: running.cgroup().cloned(),
        endpoint: None,
        remote: None,
    }
}

/// Observes from now until `done` holds, sampling every `interval`.
fn observe(targets: Vec<Target>, interval: Duration, window: Duration) -> Sampler {
    let now = monotonic_ns();
    let schedule =
        Schedule { window_start_ns: now, window_end_ns: now + window.as_nanos() as u64, interval, cpus: None };
    Sampler::start(targets, schedule).expect("a thread")
}

/// Starts a child, observes it over the window and returns what was seen with the child, still running.
fn watch(scratch: &Scratch, launch: &Launch, window_ms: u64) -> (Running, Observation) {
    let mut running = scratch.launcher.launch(launch).expect("it starts");
    wait_for_log(&mut running, "ready");
    let sampler = observe(vec![target(&running)], Duration::from_millis(100), Duration::from_millis(window_ms));
    let observation = sampler.finish().expect("the thread ends well");
    (running, observation)
}

/// Whether two times agree within a share and an absolute slack.
fn agree(measured_ns: u64, truth_ns: u64, share: f64, slack_ns: u64) -> bool {
    measured_ns.abs_diff(truth_ns) <= (truth_ns as f64 * share) as u64 + slack_ns
}

/// A way of reading CPU time.
struct Way {
    name: &'static str,
    mounts: Option<Mounts>,
    source: CpuSource,
}

/// Every way of reading CPU time that this machine has.
fn ways() -> Vec<Way> {
    let mounts = Mounts::of_this_process();
    let only = |kind: &str| Mounts {
        mountinfo: mounts.mountinfo.lines().filter(|line| line.contains(kind)).collect::<Vec<_>>().join("\n"),
        own: mounts.own.clone(),
    };
    let mut ways = vec![
        Way { name: "v1", mounts: Some(only(" - cgroup ")), source: CpuSource::CgroupV1 },
        Way { name: "v2", mounts: Some(only(" - cgroup2 ")), source: CpuSource::CgroupV2 },
        Way { name: "tree", mounts: None, source: CpuSource::Schedstat },
    ];
    ways.retain(|way| {
        let scratch = Scratch::on(way.mounts.clone(), false);
        let usable = way.mounts.is_none() || scratch.launcher.cgroup_version().is_some();
        if !usable {
            skipped(&format!("CPU by {}: {}", way.name, scratch.launcher.no_cgroups().unwrap_or_default()));
        }
        usable
    });
    ways
}

/// Starts a child that works and then says `word=`; reads its CPU time as a sampler would, from when it is ready until it
/// has said so. Returns what was seen, with its parts, and the number said. Waits for the word and not for a time: the
/// work can take long on a busy machine.
fn watch_work(way: &Way, launch: &Launch, scratch: &Scratch, word: &str) -> (u64, Option<(u64, u64)>, u64) {
    let mut running = scratch.launcher.launch(launch).expect("it starts");
    wait_for_log(&mut running, "ready");
    let reader = CpuReader::new(running.cgroup());
    assert_eq!(reader.source(), way.source, "{}", way.name);
    let mut tree = Tree::new(running.family().clone());
    let before = reader.read(&mut tree).expect("a CPU time");
    let mut reported = None;
    let done = eventually(Duration::from_secs(60), || {
        reported = reported.or(number_in_log(running.log(), word));
        std::thread::sleep(Duration::from_millis(40));
        reader.read(&mut tree).expect("a CPU time");
        reported.is_some()
    });
    assert!(done, "{}: the child has not said {word}: {}", way.name, running.log_tail(5));
    let after = reader.read(&mut tree).expect("a CPU time");
    let measured = after.total_ns - before.total_ns;
    (measured, after.split_since(&before, measured), reported.expect("it has said it"))
}

#[test]
fn cpu_time_is_what_the_child_says_it_burned() {
    for way in ways() {
        let scratch = Scratch::on(way.mounts.clone(), false);
        for (role, arguments) in [("burn", vec!["400"]), ("burn-in-threads", vec!["4", "100"])] {
            let launch = scratch.child(role, role, &arguments);
            let (measured, parts, burned) = watch_work(&way, &launch, &scratch, "burned");
            // What the child does besides (waking up, writing two lines) is a few 100 µs; the kernel's counters lag by at
            // most a tick of 4 ms at either end, and nothing runs there.
            let name = way.name;
            assert!(agree(measured, burned, 0.02, 8 * MS), "{name}, {role}: {measured} ns seen, {burned} ns burned");
            let (user, system) = parts.expect("user and system time");
            assert_eq!(user + system, measured, "{name}: the parts add up");
            assert!(user > system, "{name}: spinning is user time");
        }
    }
}

#[test]
fn children_that_come_and_go_are_counted() {
    for way in ways() {
        let scratch = Scratch::on(way.mounts.clone(), false);
        let launch = scratch.child("parent", "burn-in-children", &["4", "100"]);
        let (measured, _, children) = watch_work(&way, &launch, &scratch, "children");
        assert!(children >= 400 * MS, "{children}");
        // In the tree, children that ended are seen through their parent in ticks of 10 ms, user and system apart; what the
        // parent itself uses for four forks is a few ms.
        assert!(agree(measured, children, 0.03, 40 * MS), "{}: {measured} ns seen, {children} ns used", way.name);
    }
}

#[test]
fn memory_is_what_the_child_holds() {
    let scratch = Scratch::new(Groups::With);
    let (mut running, observation) = watch(&scratch, &scratch.child("holder", "hold", &["64"]), 300);
    let record = &observation.processes[0];
    let mib = |bytes: Option<u64>| bytes.expect("a figure") as f64 / f64::from(1 << 20);
    // The child itself is a debug build of this test binary: some MiB of code that it has touched.
    for (name, figure) in [("rss", record.rss), ("rss_peak", record.rss_peak), ("pss", record.pss)] {
        assert!((64.0..90.0).contains(&mib(figure)), "{name}: {} MiB", mib(figure));
    }
    assert!(record.threads.expect("a figure") >= 2, "libtest runs a test on a second thread");
    assert!(record.voluntary_switches.is_some() && record.involuntary_switches.is_some());
    assert_eq!(record.ended, "running");
    assert_eq!(record.start_up_s, None);
    assert!(observation.vanished.is_empty() && running.alive().is_none());
}

#[test]
fn a_target_that_goes_is_noticed_and_keeps_what_it_used() {
    let scratch = Scratch::new(Groups::With);
    let script = "echo ready; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.3; exit 4";
    let (mut running, observation) = watch(&scratch, &scratch.shell("short", script), 1500);
    assert_eq!(observation.vanished.len(), 1, "{:?}", observation.vanished);
    let (service, replica, second) = &observation.vanished[0];
    assert_eq!((service.as_str(), *replica), ("short", 0));
    assert!(*second > 0.2 && *second < 1.5, "{second}");
    let record = &observation.processes[0];
    assert_eq!(record.ended, "ended in the window");
    assert_eq!((record.pss, record.threads), (None, None), "nothing is left to ask");
    assert_eq!(running.alive().map(|ended| ended.to_string()), Some("exit 4".to_owned()));
    if running.cgroup().is_some() {
        assert!(record.cpu_ns.expect("the group remembers") > MS);
    }
}

#[test]
fn throttling_is_seen() {
    let scratch = Scratch::on(Some(Mounts::of_this_process()), true);
    let limits = unladen_processes::subject::Limits { cpus: Some(0.05), ..Default::default() };
    let launch = Launch { limits, ..scratch.child("slow", "burn", &["10000"]) };
    let mut running = match scratch.launcher.launch(&launch) {
        Ok(running) => running,
        Err(error) => return skipped(&error.to_string()),
    };
    wait_for_log(&mut running, "ready");
    std::thread::sleep(Duration::from_millis(300));
    let sampler = observe(vec![target(&running)], Duration::from_millis(250), Duration::from_secs(1));
    let record = sampler.finish().expect("the thread ends well").processes.remove(0);
    let (used, held) = (record.cpu_ns.expect("a CPU time"), record.throttled_ns.expect("a throttled time"));
    // 5 ms in every 100 ms, which even a crowded machine gives; a period more at either end.
    assert!(used <= 100 * MS, "{used} ns used");
    assert!(held >= 300 * MS, "{held} ns throttled");
}

#[test]
fn the_samplers_view_timeline_and_cost() {
    let scratch = Scratch::new(Groups::With);
    let mut running = scratch.launcher.launch(&scratch.child("app", "burn", &["100000"])).expect("it starts");
    wait_for_log(&mut running, "ready");
    let now = monotonic_ns();
    let schedule = Schedule {
        window_start_ns: now + 450 * MS,
        window_end_ns: now + 1_450 * MS,
        interval: Duration::from_millis(200),
        cpus: None,
    };
    let sampler = Sampler::start(vec![target(&running)], schedule).expect("a thread");
    let viewer = sampler.viewer();
    let watched = eventually(Duration::from_secs(5), || {
        viewer.latest().is_some_and(|live| live.processes[0].cpu.is_some_and(|cores| cores > 0.1))
    });
    assert!(watched, "the newest sample shows a spinning child: {:?}", viewer.latest());
    let observation = sampler.finish().expect("the thread ends well");
    let record: &ProcessRecord = &observation.processes[0];

    // 2 before the window, its start, 4 within, its end.
    assert_eq!(observation.cost.samples, 8);
    let of = |service: &str, metric: &str| -> Vec<(f64, f64)> {
        let rows = observation.timeline.iter().filter(|row| row.service == service && row.metric == metric);
        rows.map(|row| (row.t_s, row.value)).collect()
    };
    let cpu = of("app", "cpu_ns");
    assert_eq!(cpu.len(), 8);
    assert!(cpu.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1), "{cpu:?}");
    assert!(cpu[0].0 < 0.0 && cpu[2].0 >= 0.0, "{cpu:?}");
    let over_window = cpu[7].1 - cpu[2].1;
    let figure = record.cpu_ns.expect("a CPU time") as f64;
    assert!((over_window - figure).abs() <= 0.5 * figure, "{over_window} in the timeline, {figure} in the record");
    assert_eq!((of("app", "rss").len(), of("app", "threads").len(), of("host", "busy_cores").len()), (8, 8, 7));

    // A spinning child keeps a core busy, as far as the machine lets it, and the machine is at least as busy.
    assert!(observation.host.busy_s > 0.0 && observation.host.cores >= 1);
    assert!(observation.host.memory_available > 0);
    eprintln!(
        "a sample costs {:.0} µs, the dearest {:.0} µs; late by {:?}",
        observation.cost.cpu_us_per_sample, observation.cost.cpu_us_dearest, observation.lateness
    );
    // On a debug build and a busy machine; the point is that it is not a hundredth of a core.
    assert!(observation.cost.cpu_us_per_sample < 10_000.0, "{:?}", observation.cost);
}

#[test]
fn a_sampler_that_is_dropped_stops_at_once() {
    let sampler = observe(Vec::new(), Duration::from_secs(1), Duration::from_secs(3600));
    let before = std::time::Instant::now();
    assert!(!sampler.is_finished());
    drop(sampler);
    assert!(before.elapsed() < Duration::from_secs(2));
}

#[test]
fn network_bytes_are_what_the_child_sent() {
    let scratch = Scratch::new(Groups::With);
    let sent = 3_000_000_u64;
    // Over one connection that stays, and over many that are gone before the next sample.
    for (role, connections) in [("talk", "1"), ("talk-and-close", "50")] {
        let launch = scratch.child(role, role, &[&sent.to_string(), connections]);
        let mut running = scratch.launcher.launch(&launch).expect("it starts");
        wait_for_log(&mut running, "ready");
        let sampler = observe(vec![target(&running)], Duration::from_millis(500), Duration::from_millis(1500));
        let record = sampler.finish().expect("the thread ends well").processes.remove(0);
        assert!(running.log_tail(3).contains("sent"), "the window was not enough: {}", running.log_tail(3));
        let received = record.network_received;
        // Both ends are the child's. The other tests of this machine open connections too, which may put the figure in doubt
        // where the client of a short one cannot be told; wrong it must never be.
        let expected = received.is_none_or(|bytes| agree(bytes, sent, 0.01, 200));
        assert!(expected, "{role}: {received:?} bytes received of {sent}");
        if role == "talk" {
            let both = received.zip(record.network_sent);
            assert!(both.is_none_or(|(received, went)| agree(went, received, 0.01, 200)), "{both:?}");
        }
        eprintln!("{role}: {received:?} of {sent}");
    }
}
