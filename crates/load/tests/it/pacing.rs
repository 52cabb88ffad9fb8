//! Every pacing against a real server: what is sent, and when it ends. Counts are exact.

use std::time::{Duration, Instant};

use unladen_load::pace::{Arrivals, Profile, Schedule, Stage};
use unladen_load::plan::{NamedTest, Pacing, Plan, Shard, Test, Trace, TraceHeader};

use crate::engine::{closed, open, run};
use crate::server::{Behaviour, GOOD, Server};

#[test]
fn a_ramp_sends_as_many_requests_as_the_area_under_it() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let stages = vec![Stage { seconds: 0.3, to: 1000.0 }, Stage { seconds: 0.0, to: 100.0 }];
    let plan = Plan { pacing: Pacing::Stages { from: 0.0, stages, arrivals: Arrivals::Even }, ..open(&server, 1.0, 8) };
    let outcome = run(&plan);
    // 150 on the ramp, 0.2 s at 100.
    assert_eq!((outcome.requests, server.requests()), (170, 170));
    assert!((outcome.target_rate.expect("an open loop") - 340.0).abs() < 1e-6);
}

#[test]
fn random_arrivals_are_those_of_the_seed_however_many_threads_send_them() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let expected = {
        let schedule = Schedule::of_rate(Profile::constant(400.0), Arrivals::Poisson { seed: 5 }, 500_000_000);
        (0..).take_while(|&index| schedule.due_ns(index).is_some()).count() as u64
    };
    for cores in [vec![], vec![0, 0, 0]] {
        let before = server.requests();
        let pacing = Pacing::Poisson { rate: 400.0, seed: 5 };
        assert_eq!(run(&Plan { pacing, cores, ..open(&server, 1.0, 6) }).requests, expected);
        assert_eq!(server.requests() - before, expected);
    }
}

#[test]
fn slots_of_any_length_and_spinning_send_the_same_requests() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let mut sent = 0;
    for (slot_us, spin) in [(None, false), (Some(0.0), false), (Some(5_000.0), false), (Some(0.0), true)] {
        let outcome = run(&Plan { slot_us, spin, ..open(&server, 6_000.0, 8) });
        assert_eq!((outcome.requests, outcome.errors), (3_000, 0), "{slot_us:?} {spin}");
        sent += 3_000;
        assert_eq!(server.requests(), sent);
    }
}

#[test]
fn a_recording_is_replayed() {
    let server = Server::start(Behaviour::Reply(GOOD));
    // Three requests every 50 ms.
    let pacing = Pacing::Replay { gaps_us: vec![1_000.0, 9_000.0, 40_000.0] };
    let outcome = run(&Plan { pacing, ..open(&server, 1.0, 4) });
    assert_eq!((outcome.requests, outcome.target_rate), (30, Some(60.0)));
}

#[test]
fn a_burst_is_over_with_its_last_answer() {
    let server = Server::start(Behaviour::Slow(Duration::from_millis(20)));
    let plan = Plan { pacing: Pacing::Burst { count: 40 }, window_s: 60.0, ..open(&server, 1.0, 8) };
    let begun = Instant::now();
    let outcome = run(&plan);
    assert_eq!((outcome.requests, outcome.errors, server.requests(), server.connections()), (40, 0, 40, 8));
    // 40 requests of 20 ms, 8 at a time, take 100 ms at least; the bound above is that the window of a minute is not sat out.
    assert!(outcome.duration_s >= 0.1 && begun.elapsed() < Duration::from_secs(30), "{}", outcome.duration_s);
    assert!(!outcome.interrupted);
    assert_eq!(outcome.queued, 32, "eight go at once, the others wait for a connection");
    assert!(outcome.latency_us.max >= 100e3, "the last one waited for four others");
}

#[test]
fn a_number_of_requests_is_that_number() {
    for cores in [vec![], vec![0, 0]] {
        let server = Server::start(Behaviour::Reply(GOOD));
        let plan = Plan { limit: Some(1000), window_s: 60.0, cores, ..closed(&server, 4) };
        let outcome = run(&plan);
        assert_eq!((outcome.requests, outcome.sent_total, server.requests()), (1000, 1000, 1000));
        assert!(outcome.duration_s < 30.0 && !outcome.interrupted, "{}", outcome.duration_s);
        assert!((outcome.rate * outcome.duration_s - 1000.0).abs() <= 1.0, "the last answer ends the window");
    }
    let server = Server::start(Behaviour::Reply(GOOD));
    assert_eq!(run(&Plan { limit: Some(7), window_s: 60.0, ..open(&server, 500.0, 2) }).requests, 7);
}

#[test]
fn users_think_come_and_go() {
    let server = Server::start(Behaviour::Reply(GOOD));
    // Four users from the start, two more at 250 ms; each sends, then pauses 50 ms.
    let stages = vec![Stage { seconds: 0.25, to: 4.0 }, Stage { seconds: 0.0, to: 6.0 }];
    let plan = Plan { pacing: Pacing::Users { from: 4.0, stages, think_s: 0.05, rate: None }, ..open(&server, 1.0, 6) };
    let outcome = run(&plan);
    // At most 10 iterations for each of the four and 5 for each of the two; a busy machine makes it fewer.
    assert!((25..=50).contains(&outcome.requests), "{}", outcome.requests);
    assert_eq!((outcome.errors, server.requests(), outcome.queued), (0, outcome.requests, 0));
    // Due when the pause is over: a pause is no latency.
    assert!(outcome.latency_us.p50 < 45e3, "{}", outcome.latency_us.p50);
}

#[test]
fn users_wait_for_their_turn_if_the_rate_is_limited() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let pacing = Pacing::Users { from: 10.0, stages: Vec::new(), think_s: 0.0, rate: Some(100.0) };
    let outcome = run(&Plan { pacing, ..open(&server, 1.0, 10) });
    // Every user has a turn in hand while it waits: turns at 0, 10, 20 … ms within the half second.
    assert!((40..=50).contains(&outcome.requests), "{}", outcome.requests);
    assert_eq!(outcome.target_rate, Some(100.0));
}

#[test]
fn turns_that_nobody_took_are_not_made_up_for() {
    // The first answer on every connection takes half of the window.
    let slow_at_first = |_: &str, number: u64| {
        if number == 1 {
            std::thread::sleep(Duration::from_millis(500));
        }
        GOOD.to_owned()
    };
    for cores in [vec![], vec![0, 0]] {
        let server = Server::start(Behaviour::By(slow_at_first));
        let pacing = Pacing::Users { from: 2.0, stages: Vec::new(), think_s: 0.0, rate: Some(100.0) };
        let outcome = run(&Plan { pacing, window_s: 1.0, cores, ..open(&server, 1.0, 2) });
        // Two before, 50 turns after; a hundred if all were made up for.
        assert!((5..=55).contains(&outcome.requests), "{}", outcome.requests);
    }
}

#[test]
fn users_survive_servers_that_close() {
    for behaviour in [Behaviour::CloseAfter(1), Behaviour::ReplyThenClose("")] {
        let server = Server::start(behaviour);
        let pacing = Pacing::Users { from: 3.0, stages: Vec::new(), think_s: 0.02, rate: None };
        let outcome = run(&Plan { pacing, ..open(&server, 1.0, 3) });
        assert!(outcome.requests + outcome.errors > 10, "{behaviour:?}: {outcome:?}");
        assert_eq!(outcome.sent_total, server.requests(), "{behaviour:?}");
    }
}

#[test]
fn shards_make_up_the_whole() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let whole = Plan { shard: None, ..open(&server, 300.0, 5) };
    let parts: Vec<_> =
        (1..=3).map(|number| run_shard(&Plan { shard: Some(Shard { number, of: 3 }), ..whole.clone() })).collect();
    assert_eq!(parts.iter().map(|part| part.requests).collect::<Vec<_>>(), [50, 50, 50]);
    assert_eq!(server.requests(), 150);
    assert_eq!(server.connections(), 5, "connections are shared too");
    let closed = Plan { pacing: Pacing::Closed, limit: Some(10), window_s: 60.0, ..whole };
    let parts: Vec<_> =
        (1..=3).map(|number| run_shard(&Plan { shard: Some(Shard { number, of: 3 }), ..closed.clone() })).collect();
    assert_eq!(parts.iter().map(|part| part.requests).collect::<Vec<_>>(), [4, 3, 3]);
}

/// A shard's indices are not dense, which [`run`] checks.
fn run_shard(plan: &Plan) -> unladen_load::outcome::Outcome {
    unladen_load::run(plan, &mut |_| {}, &std::sync::atomic::AtomicBool::new(false)).expect("the server listens")
}

#[test]
fn in_a_closed_loop_littles_law_holds() {
    let server = Server::start(Behaviour::Slow(Duration::from_millis(5)));
    let outcome = run(&Plan { window_s: 1.0, ..closed(&server, 8) });
    // All eight are on their way all the time; between an answer and the next request is next to nothing.
    let little = outcome.little;
    assert!(little.samples > 20 && (little.in_flight - 8.0).abs() < 0.5, "{little:?}");
    assert!((little.expected - 8.0).abs() < 1.0, "{little:?}");
}

#[test]
fn pacing_that_makes_no_sense_is_refused() {
    let stage = |seconds, to| Stage { seconds, to };
    let users = |from, stages, think_s, rate| Pacing::Users { from, stages, think_s, rate };
    for pacing in [
        Pacing::Poisson { rate: -1.0, seed: 0 },
        Pacing::Stages { from: 0.0, stages: vec![], arrivals: Arrivals::Even },
        Pacing::Stages { from: 1.0, stages: vec![stage(-1.0, 1.0)], arrivals: Arrivals::Even },
        Pacing::Stages { from: 1.0, stages: vec![stage(1.0, f64::NAN)], arrivals: Arrivals::Even },
        Pacing::Replay { gaps_us: vec![] },
        Pacing::Replay { gaps_us: vec![0.0, 0.0] },
        Pacing::Replay { gaps_us: vec![-1.0, 5.0] },
        Pacing::Burst { count: 0 },
        users(0.0, vec![], 0.0, None),
        users(1.0, vec![], -1.0, None),
        users(1.0, vec![], 0.0, Some(0.0)),
        users(1.0, vec![stage(1.0, 17.0)], 0.0, None),
    ] {
        let plan = Plan { pacing, ..Plan::new("http://127.0.0.1:9/") };
        let error =
            unladen_load::run(&plan, &mut |_| {}, &std::sync::atomic::AtomicBool::new(false)).expect_err("refused");
        assert!(matches!(error, unladen_load::LoadError::Plan { .. }), "{:?}: {error}", plan.pacing);
    }
    for shard in [Shard { number: 0, of: 2 }, Shard { number: 3, of: 2 }, Shard { number: 1, of: 17 }] {
        let plan = Plan { shard: Some(shard), ..Plan::new("http://127.0.0.1:9/") };
        unladen_load::run(&plan, &mut |_| {}, &std::sync::atomic::AtomicBool::new(false)).expect_err("refused");
    }
}

#[test]
fn merged_shards_are_the_whole_load_and_a_missing_one_is_noticed() {
    use unladen_load::merge::{MergeError, folders};
    let server = Server::start(Behaviour::Reply(GOOD));
    let folder = tempfile::tempdir().expect("a folder");
    let mut requests = ["a", "b"].map(unladen_load::plan::Request::new).to_vec();
    requests[0].kinds = vec![NamedTest { name: "good".to_owned(), test: Test::Status(200) }];
    let trace = Trace { header: TraceHeader::W3c, tag: 1, key: 2, sampled: 0.5 };
    let paths: Vec<_> = (1..=3).map(|number| folder.path().join(number.to_string())).collect();
    let parts: Vec<_> = (1..=3)
        .zip(&paths)
        .map(|(number, path)| {
            let (shard, out) = (Some(Shard { number, of: 3 }), Some(path.clone()));
            let (requests, trace) = (requests.clone(), Some(trace.clone()));
            run_shard(&Plan { shard, out, requests, trace, ..open(&server, 400.0, 6) })
        })
        .collect();
    let (whole, histograms) = folders(&paths).expect("all three are there");
    assert_eq!((whole.requests, whole.sent_total, server.requests()), (200, 200, 200));
    assert_eq!(whole.shard, None);
    assert_eq!(whole.statuses.into_iter().collect::<Vec<_>>(), [(200, 200)]);
    assert_eq!(whole.seconds.iter().map(|second| second.sent).sum::<u64>(), 200);
    assert_eq!((whole.latency_us.count, histograms.latency.len()), (200, 200));
    let largest = parts.iter().map(|part| part.latency_us.max).fold(0.0, f64::max);
    assert_eq!(whole.latency_us.max, largest);
    for (named, at) in whole.named.iter().zip(0..) {
        assert_eq!(named.requests, parts.iter().map(|part| part.named[at].requests).sum::<u64>());
        assert_eq!(named.latency_us.count, named.requests);
    }
    let kinds: Vec<_> = whole.kinds.iter().map(|kind| (kind.name.as_str(), kind.latency_us.count)).collect();
    assert_eq!(kinds, [("good", whole.named[0].requests), ("other", 0)]);
    let sampled: u64 = whole.named.iter().map(|named| named.sampled_us.count).sum();
    assert!(sampled == whole.sampled_total && (50..150).contains(&sampled), "a half of 200: {sampled}");
    let unlike = folder.path().join("unlike");
    let (shard, out) = (Some(Shard { number: 3, of: 3 }), Some(unlike.clone()));
    requests[0].kinds.clear();
    run_shard(&Plan { shard, out, requests, ..open(&server, 400.0, 6) });
    let error = folders(&[&paths[..2], &[unlike]].concat()).expect_err("another load").to_string();
    assert!(error.contains("other kinds of answers"), "{error}");
    assert!(matches!(folders(&paths[..2]), Err(MergeError::Missing { missing, of: 3 }) if missing == [3]));
    let twice = [&paths[..], &paths[..1]].concat();
    assert!(matches!(folders(&twice), Err(MergeError::Unfit { .. })));
    assert!(matches!(folders(&[folder.path().join("none")]), Err(MergeError::Read { .. })));
    assert!(matches!(folders(&[]), Err(MergeError::Missing { .. })));
}

#[test]
fn the_capacity_of_a_service_is_found() {
    use unladen_load::capacity::{Search, measure};
    // 4 connections, 10 ms each: 400 a second at most.
    let server = Server::start(Behaviour::Slow(Duration::from_millis(10)));
    let plan = Plan { window_s: 0.5, ..open(&server, 1.0, 4) };
    let thresholds = ["p99>250ms".parse().expect("a condition"), "errors>0".parse().expect("a condition")];
    let search = Search { from: 50.0, most: 10_000.0, precision: 0.5 };
    let mut trials = 0;
    let found = measure(&plan, &search, &thresholds, |_, _, _| trials += 1, &std::sync::atomic::AtomicBool::new(false))
        .expect("the server listens");
    assert_eq!(trials, found.trials.len());
    let (holds, fails) = (found.holds.expect("50 a second hold"), found.fails.expect("10,000 do not"));
    // It cannot be above 400; how far below depends on how busy the machine is.
    assert!(holds <= 420.0 && fails <= holds * 1.5 + 1e-9, "{found:?}");
}
