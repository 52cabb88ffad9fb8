//! Loads that take turns: nothing is lost or late at a switch, and no target feels what another does.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use unladen_load::alternate::{self, Alternation, Event, Fate, Lengths, Meter, NoMeter, Outcomes, Part};
use unladen_load::plan::{Pacing, Plan, Trace, TraceHeader};

use crate::server::{Behaviour, GOOD, Server};

fn lengths() -> Lengths {
    Lengths { warmup_s: 0.1, window_s: 0.5, block_s: 0.05, in_halves: false, alone_s: 0.2 }
}

/// A load of 400 requests/s on each server, in turns.
pub(crate) fn alternation(servers: &[&Server]) -> Alternation {
    let plan = |(number, server): (usize, &&Server)| Plan {
        pacing: Pacing::Constant { rate: 400.0 },
        connections: 8,
        timeout_s: 1.0,
        trace: Some(Trace { header: TraceHeader::W3c, tag: number as u64 + 1, key: 7, sampled: 1.0 }),
        ..Plan::new(server.url())
    };
    Alternation {
        targets: servers.iter().enumerate().map(plan).collect(),
        turns: alternate::schedule(servers.len(), &lengths(), 3),
        start_at_ns: None,
        pause_s: 0.02,
        core: None,
    }
}

/// Requests of a target's blocks that count: a busy machine may have disturbed others.
pub(crate) fn counting(all: &Outcomes, target: usize) -> u64 {
    let own = all.turns.iter().filter(|taken| taken.turn.target == target && taken.fate == Fate::Counts);
    own.filter(|taken| taken.turn.part == Part::Block).map(|taken| taken.requests).sum()
}

/// How many different trace ids the server of a target has seen.
pub(crate) fn trace_ids(server: &Server, target: usize) -> usize {
    let tag = format!("00-{:016x}", target + 1);
    let ids: BTreeSet<String> =
        server.heads().iter().filter_map(|head| Some(head.split(&tag).nth(1)?[..16].to_owned())).collect();
    ids.len()
}

fn run(alternation: &Alternation) -> Outcomes {
    alternate::run(alternation, &mut NoMeter, &mut |_| {}, &AtomicBool::new(false)).expect("a load")
}

#[test]
fn every_target_gets_exactly_its_requests_and_none_in_the_turn_of_another() {
    let servers = [Server::start(Behaviour::Reply(GOOD)), Server::start(Behaviour::Reply(GOOD))];
    let mut events = Vec::new();
    let alternation = alternation(&[&servers[0], &servers[1]]);
    let all = alternate::run(&alternation, &mut NoMeter, &mut |event| events.push(event), &AtomicBool::new(false))
        .expect("a load");
    for (number, (server, outcome)) in servers.iter().zip(&all.targets).enumerate() {
        // 0.1 s of warm-up, 0.5 s of blocks, 0.2 s alone, at 400/s.
        assert_eq!((outcome.sent_total, server.requests()), (320, 320));
        assert_eq!((outcome.requests, outcome.completed_in_window, outcome.errors), (280, 280, 0));
        let latencies = (outcome.latency_us.count, all.alone_us[number].count);
        assert_eq!(latencies, (counting(&all, number), 80), "blocks and alone apart");
        assert_eq!((server.connections(), outcome.reconnects), (8, 0), "the same connections in all turns");
        assert!((outcome.duration_s - 0.7).abs() < 1e-6 && (outcome.rate - 400.0).abs() < 0.1, "{outcome:?}");
        assert_eq!(trace_ids(server, number), 320, "a trace id for every request");
        let seconds: u64 = outcome.seconds.iter().map(|second| second.answered).sum();
        assert_eq!(seconds, 320);
    }
    assert_eq!(all.turns.len(), 2 * (10 + 1));
    assert!(all.turns.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
    for taken in &all.turns {
        let expected = if taken.turn.part == Part::Alone { 80 } else { 20 };
        assert_eq!(taken.requests, expected);
        let length_ns = (taken.turn.length_s * 1e9) as u64;
        // A turn ends with its last answer, not before its time.
        assert!(taken.end_ns - taken.start_ns >= length_ns, "{taken:?}");
    }
    let measuring = events.iter().find_map(|event| match event {
        Event::Measuring(at) => Some(*at),
        _ => None,
    });
    assert!(measuring.is_some_and(|at| at <= all.turns[0].start_ns), "{measuring:?}");
    assert_eq!(events.first(), Some(&Event::Ready));
}

#[test]
fn a_slow_target_does_not_make_another_one_late() {
    let slow = Server::start(Behaviour::Slow(Duration::from_millis(30)));
    let quick = Server::start(Behaviour::Reply(GOOD));
    let mut alternation = alternation(&[&slow, &quick]);
    alternation.targets[0].connections = 40;
    let all = run(&alternation);
    let (slow, quick) = (&all.targets[0], &all.targets[1]);
    assert_eq!((slow.requests, quick.requests), (280, 280));
    assert!(slow.latency_us.p50 >= 30_000.0, "{:?}", slow.latency_us);
    // On a busy machine an answer may take some milliseconds; 30 would be the other's.
    assert!(quick.latency_us.p50 < 15_000.0, "{:?}", quick.latency_us);
    // The last request of each of its blocks is due at its end, so each lasts 30 ms longer.
    let tail = |target: usize| {
        let own = all.turns.iter().filter(|taken| taken.turn.target == target && taken.turn.part == Part::Block);
        own.map(|taken| (taken.end_ns - taken.start_ns) as f64 / 1e6 - 50.0).fold(f64::INFINITY, f64::min)
    };
    assert!(tail(0) >= 25.0, "{} ms", tail(0));
}

#[test]
fn what_is_under_way_after_a_turn_keeps_littles_law() {
    // An answer takes longer than a block, so most of the time under way lies behind the ends of blocks.
    let slow = Server::start(Behaviour::Slow(Duration::from_millis(80)));
    let quick = Server::start(Behaviour::Reply(GOOD));
    let mut alternation = alternation(&[&slow, &quick]);
    alternation.targets[0].connections = 80;
    let all = run(&alternation);
    let little = &all.targets[0].little;
    assert!((little.in_flight / little.expected - 1.0).abs() < 0.2, "{little:?}");
}

#[test]
fn a_server_that_closes_between_turns_costs_no_request() {
    let closes = Server::start(Behaviour::CloseAfter(3));
    let stays = Server::start(Behaviour::Reply(GOOD));
    let all = run(&alternation(&[&closes, &stays]));
    assert_eq!(all.targets.iter().map(|it| (it.requests, it.errors)).collect::<Vec<_>>(), [(280, 0), (280, 0)]);
}

#[test]
fn a_silent_target_fails_by_itself() {
    let silent = Server::start(Behaviour::Silent);
    let good = Server::start(Behaviour::Reply(GOOD));
    let mut alternation = alternation(&[&silent, &good]);
    alternation.targets.iter_mut().for_each(|plan| plan.timeout_s = 0.05);
    alternation.targets[0].connections = 100;
    let all = run(&alternation);
    assert_eq!((all.targets[0].requests, all.targets[0].errors), (0, 280));
    assert_eq!((all.targets[1].requests, all.targets[1].errors), (280, 0));
}

#[test]
fn closed_loops_take_turns_too() {
    let servers = [Server::start(Behaviour::Slow(Duration::from_millis(2))), Server::start(Behaviour::Reply(GOOD))];
    let mut alternation = alternation(&[&servers[0], &servers[1]]);
    alternation.targets.iter_mut().for_each(|plan| (plan.pacing, plan.connections) = (Pacing::Closed, 2));
    let all = run(&alternation);
    for (outcome, server) in all.targets.iter().zip(&servers) {
        assert_eq!((outcome.errors, outcome.sent_total), (0, server.requests()));
        assert!(outcome.requests > 100, "{}", outcome.requests);
    }
    let of_turns: u64 = all.turns.iter().filter(|taken| taken.turn.target == 0).map(|taken| taken.requests).sum();
    assert_eq!(of_turns, all.targets[0].requests);
}

/// Says no to every second group.
#[derive(Default)]
struct Moody {
    edges: u32,
    groups: u32,
}

impl Meter for Moody {
    fn edge(&mut self) {
        self.edges += 1;
    }

    fn fate(&mut self) -> Fate {
        self.groups += 1;
        if self.groups.is_multiple_of(2) { Fate::Counts } else { Fate::Disturbed }
    }
}

#[test]
fn what_does_not_count_is_in_no_latency_and_hits_whole_groups() {
    let servers = [Server::start(Behaviour::Reply(GOOD)), Server::start(Behaviour::Reply(GOOD))];
    let mut meter = Moody::default();
    let all =
        alternate::run(&alternation(&[&servers[0], &servers[1]]), &mut meter, &mut |_| {}, &AtomicBool::new(false))
            .expect("a load");
    // One before the first turn, one after each.
    assert_eq!((meter.edges, meter.groups), (1 + 22, 12));
    let mut counting = 0;
    for (number, group) in all.turns.chunk_by(|one, next| one.turn.group == next.turn.group).enumerate() {
        assert!(group.iter().all(|taken| taken.fate == group[0].fate));
        // Stretches alone count whatever happens: nothing could take their place.
        let may_count = number % 2 == 1 || group[0].turn.part == Part::Alone;
        let counts = group[0].fate == Fate::Counts;
        // On a busy machine the generator may be late, too.
        assert!(may_count || !counts, "group {number}: {group:?}");
        counting += u64::from(counts && group[0].turn.part == Part::Block);
    }
    assert!(counting > 0);
    for outcome in &all.targets {
        assert_eq!((outcome.requests, outcome.latency_us.count), (280, 20 * counting));
    }
}

#[test]
fn turns_that_make_no_sense_are_refused() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let good = alternation(&[&server]);
    let refused = |change: &dyn Fn(&mut Alternation)| {
        let mut bad = good.clone();
        change(&mut bad);
        alternate::run(&bad, &mut NoMeter, &mut |_| {}, &AtomicBool::new(false)).expect_err("refused").to_string()
    };
    assert!(refused(&|it| it.turns[0].target = 1).contains("turns.target is 1"));
    assert!(refused(&|it| it.turns[0].length_s = 0.0).contains("turns.length_s"));
    assert!(refused(&|it| it.turns.reverse()).contains("turns.part"));
    assert!(refused(&|it| it.targets[0].limit = Some(5)).contains("no limit of requests"));
    assert!(refused(&|it| it.pause_s = -1.0).contains("pause_s"));
}
