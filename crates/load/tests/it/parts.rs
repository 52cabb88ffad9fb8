//! Loads in parts: together they are exactly the whole, all begin at the same instants, and none is lost unnoticed.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use unladen_load::alternate::{NoMeter, Outcomes};
use unladen_load::parts::{self, Meeting, Member};
use unladen_load::{LoadError, histogram};

use crate::alternate::{alternation, counting, trace_ids};
use crate::server::{Behaviour, GOOD, Server};

/// Parts that serve in this process, until it is dropped.
struct Members {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Members {
    /// With these numbers, on machines `node-1`, `node-2`, …
    fn start(meeting: &Meeting, numbers: impl IntoIterator<Item = u32>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let start = |number| {
            let (machine, secret) = (format!("node-{number}"), meeting.secret.clone());
            let (member, over) = (Member { meeting: meeting.listen, secret, number, machine }, Arc::clone(&over));
            thread::spawn(move || parts::serve(&member, &over, &mut |_| {}))
        };
        Self { threads: numbers.into_iter().map(start).collect(), over }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for one in self.threads.drain(..) {
            one.join().expect("a part ends");
        }
    }
}

fn meeting(parts: u32) -> Meeting {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen: SocketAddr = listener.local_addr().expect("an address");
    Meeting { listen, secret: "open sesame".to_owned(), parts, patience_s: 10.0, subject: "node-9".to_owned() }
}

fn run(meeting: &Meeting, servers: &[&Server]) -> Result<Outcomes, LoadError> {
    parts::run(meeting, &alternation(servers), &mut NoMeter, &mut |_| {}, &AtomicBool::new(false))
}

fn refusal(meeting: &Meeting, server: &Server) -> String {
    run(meeting, &[server]).expect_err("a refusal").to_string()
}

#[test]
fn four_parts_are_exactly_the_load_of_one() {
    let servers = [Server::start(Behaviour::Reply(GOOD)), Server::start(Behaviour::Reply(GOOD))];
    let (meeting, folder) = (meeting(4), tempfile::tempdir().expect("a folder"));
    let members = Members::start(&meeting, 1..=4);
    let mut alternation = alternation(&[&servers[0], &servers[1]]);
    alternation.targets[0].out = Some(folder.path().to_owned());
    let mut seconds = 0;
    let mut on = |event| seconds += u32::from(matches!(event, unladen_load::alternate::Event::Second(..)));
    let all = parts::run(&meeting, &alternation, &mut NoMeter, &mut on, &AtomicBool::new(false)).expect("a load");
    drop(members);
    for (number, (server, outcome)) in servers.iter().zip(&all.targets).enumerate() {
        // As by one process: 0.1 s of warm-up, 0.5 s of blocks, 0.2 s alone, at 400/s.
        assert_eq!((outcome.sent_total, server.requests()), (320, 320));
        assert_eq!((outcome.requests, outcome.errors, outcome.latency_us.count), (280, 0, counting(&all, number)));
        assert_eq!((all.alone_us[number].count, outcome.shard), (80, None));
        assert_eq!(server.connections(), 8);
        assert_eq!(trace_ids(server, number), 320, "a trace id for every request, none of them twice");
        let sent: Vec<(u32, &str, u64)> =
            outcome.parts.iter().map(|part| (part.number, part.machine.as_str(), part.sent)).collect();
        assert_eq!(sent, [(1, "node-1", 80), (2, "node-2", 80), (3, "node-3", 80), (4, "node-4", 80)]);
        // All clocks are one, so what they are thought to be apart is what could not be known.
        assert!(outcome.parts.iter().all(|part| part.clock_bound_us < 5_000.0), "{:?}", outcome.parts);
    }
    assert_eq!((all.turns.len(), seconds), (2 * (10 + 1), 0), "no target has had a whole second");
    assert!(all.turns.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns), "one after the other");
    let lines = histogram::read(&folder.path().join(histogram::FILE_NAME)).expect("the histograms of all");
    let counting = counting(&all, 0);
    assert!(lines.iter().any(|(tag, latency)| tag == "latency" && latency.len() == counting), "{lines:?}");
}

#[test]
fn the_same_parts_come_to_the_next_load() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let meeting = meeting(2);
    let _members = Members::start(&meeting, 1..=2);
    for round in 1..=2 {
        assert_eq!(run(&meeting, &[&server]).expect("a load").targets[0].sent_total, 320);
        assert_eq!(server.requests(), round * 320);
    }
}

#[test]
fn a_part_that_does_not_come_is_named() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let meeting = Meeting { patience_s: 0.3, ..meeting(3) };
    let _members = Members::start(&meeting, [1, 3]);
    let message = refusal(&meeting, &server);
    assert!(message.contains("parts [2] of 3 have not come"), "{message}");
    assert_eq!(server.requests(), 0);
}

#[test]
fn strangers_are_no_parts() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let meeting = meeting(1);
    let strangers = Meeting { secret: "?".to_owned(), ..meeting.clone() };
    let _strangers = Members::start(&strangers, [1]);
    let nonsense = thread::spawn({
        let listen = meeting.listen;
        move || {
            for text in ["", "GET / HTTP/1.1\r\n\r\n", "{}\n", "{\"secret\":", "\0\u{1}\n"] {
                while TcpStream::connect(listen).and_then(|mut it| it.write_all(text.as_bytes())).is_err() {}
            }
        }
    });
    thread::scope(|scope| {
        let load = scope.spawn(|| run(&meeting, &[&server]));
        nonsense.join().expect("it said all");
        let _members = Members::start(&meeting, [1]);
        let all = load.join().expect("no panic").expect("a load");
        assert_eq!(all.targets[0].sent_total, 320);
    });
}

#[test]
fn a_part_on_the_machine_of_the_service_is_refused() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let meeting = Meeting { subject: "node-2".to_owned(), ..meeting(2) };
    let _members = Members::start(&meeting, 1..=2);
    let message = refusal(&meeting, &server);
    assert!(message.contains("part 2 on node-2 is on the node of the service"), "{message}");
}

#[test]
fn a_service_that_a_part_cannot_reach_is_told_by_it() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let meeting = meeting(1);
    let _members = Members::start(&meeting, [1]);
    let mut alternation = alternation(&[&server]);
    alternation.targets[0].url = "http://127.0.0.1:9/".to_owned();
    let error = parts::run(&meeting, &alternation, &mut NoMeter, &mut |_| {}, &AtomicBool::new(false));
    let message = error.expect_err("nobody is there").to_string();
    assert!(message.contains("part 1 on node-1 cannot go on: cannot connect to 127.0.0.1:9"), "{message}");
}

/// A part that says what it should up to a point.
fn broken(meeting: &Meeting, answers: &'static [&'static str]) -> JoinHandle<()> {
    let (listen, secret) = (meeting.listen, meeting.secret.clone());
    thread::spawn(move || {
        let mut stream = loop {
            if let Ok(stream) = TcpStream::connect(listen) {
                break stream;
            }
        };
        let version = env!("CARGO_PKG_VERSION");
        let hello = format!(r#"{{"secret":"{secret}","version":"{version}","number":1,"machine":"node-1"}}"#);
        writeln!(stream, "{hello}").expect("it listens");
        let mut asked = BufReader::new(stream.try_clone().expect("a socket")).lines();
        for _ in 0..8 {
            let _ = asked.next();
            writeln!(stream, r#"{{"clock":{{"at_ns":1}}}}"#).expect("it listens");
        }
        for answer in answers {
            let _ = asked.next();
            writeln!(stream, "{answer}").expect("it listens");
        }
        let _ = asked.next();
    })
}

#[test]
fn a_part_that_is_lost_or_talks_nonsense_ends_the_load() {
    let server = Server::start(Behaviour::Reply(GOOD));
    for (answers, expected) in [
        (&[][..], "part 1 on node-1 was lost: it has ended"),
        (&[r#""ready""#][..], "part 1 on node-1 was lost: "),
        (&[r#"{"done":[]}"#][..], "part 1 on node-1 was lost: it answers something else"),
        (&["?"][..], "part 1 on node-1 was lost: expected value"),
    ] {
        let meeting = meeting(1);
        let part = broken(&meeting, answers);
        let message = refusal(&meeting, &server);
        assert!(message.contains(expected), "{message}");
        part.join().expect("it has ended");
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_part_of_another_version_is_refused() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let meeting = meeting(1);
    let listen = meeting.listen;
    let old = thread::spawn(move || {
        let hello = r#"{"secret":"open sesame","version":"0.0.1","number":1,"machine":"m"}"#;
        while TcpStream::connect(listen).and_then(|mut stream| writeln!(stream, "{hello}")).is_err() {}
    });
    let message = refusal(&meeting, &server);
    assert!(message.contains("part 1 on m is unladen 0.0.1") && message.contains("use the same image"), "{message}");
    old.join().expect("it has said it");
}

#[test]
fn a_load_that_is_stopped_returns_what_there_is() {
    let server = Server::start(Behaviour::Reply(GOOD));
    let meeting = meeting(2);
    let _members = Members::start(&meeting, 1..=2);
    let mut alternation = alternation(&[&server]);
    alternation.turns.iter_mut().for_each(|turn| turn.length_s *= 50.0);
    let stop = AtomicBool::new(false);
    let all = thread::scope(|scope| {
        let load = scope.spawn(|| parts::run(&meeting, &alternation, &mut NoMeter, &mut |_| {}, &stop));
        while server.requests() < 100 {
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        load.join().expect("no panic").expect("what there is")
    });
    let outcome = &all.targets[0];
    assert!(outcome.interrupted && outcome.sent_total < 16_000, "{outcome:?}");
    assert_eq!(outcome.sent_total, server.requests());
}
