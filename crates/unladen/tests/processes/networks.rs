//! Networks of the services' own: the same port in each, and what is still reached outside.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use unladen_ledger::summary::Event as SinkEvent;
use unladen_linux::netns::add_address;
use unladen_linux::{Netns, userns};
use unladen_load::outcome;
use unladen_load::plan::{Pacing, Plan, Replica};
use unladen_measure::ports;
use unladen_probe::network::Network;
use unladen_probe::query::Query;
use unladen_processes::relay::{self, Event};
use unladen_processes::subject::{Launch, Piped, Readiness, Running};
use unladen_sink::child::ListenIn;
use unladen_sink::config::{Config as SinkConfig, Protocol};

use crate::child;
use crate::scratch::{Groups, Scratch, eventually, skipped};

/// Where every service listens.
const FIXED: &str = "127.0.0.1:8080";

/// A network, or the reason that there is none, printed.
fn network() -> Option<Arc<Netns>> {
    if let Err(reason) = Netns::is_possible() {
        skipped(&reason);
        return None;
    }
    Some(Arc::new(Netns::new().expect("it is possible")))
}

/// One of unladen's own processes, with its configuration.
fn part(scratch: &Scratch, name: &str, config: &impl serde::Serialize, network: Option<Arc<Netns>>) -> Piped {
    let command = [env!("CARGO_BIN_EXE_unladen"), &format!("__{name}")];
    let launch = Launch { network, ..scratch.command(name, &command) };
    let mut part = scratch.launcher.launch_piped(&launch).expect("it starts");
    let config = serde_json::to_string(config).expect("JSON");
    writeln!(part.stdin, "{config}").expect("it is read");
    part
}

fn events<E: serde::de::DeserializeOwned>(output: impl Read) -> impl Iterator<Item = E> {
    BufReader::new(output).lines().map(|line| serde_json::from_str(&line.expect("text")).expect("an event"))
}

/// A server in a network, ready.
fn server(scratch: &Scratch, name: &str, network: &Arc<Netns>) -> Running {
    let env = [("SERVE_AT".to_owned(), FIXED.to_owned())].into();
    let launch = Launch { env, network: Some(Arc::clone(network)), ..scratch.child(name, "serve", &["0", "0"]) };
    let mut running = scratch.launcher.launch(&launch).expect("it starts");
    let readiness = Readiness {
        http: Some(format!("http://{FIXED}/")),
        tcp: Some(FIXED.to_owned()),
        log: None,
        healthy: false,
        timeout: Duration::from_secs(20),
        network: Some(Arc::clone(network)),
    };
    running.wait_ready(&readiness, &AtomicBool::new(false)).expect("it listens in its network");
    running
}

/// So many requests to the server of a network.
fn load(network: &Netns, requests: u64) -> Plan {
    Plan {
        pacing: Pacing::Closed,
        connections: 2,
        warmup_s: 0.0,
        window_s: 20.0,
        limit: Some(requests),
        network: Some(network.path()),
        ..Plan::new(format!("http://{FIXED}/"))
    }
}

/// Requests that a server has answered.
fn answered(running: &Running) -> usize {
    std::fs::read_to_string(running.log()).expect("its log").lines().filter(|line| line.starts_with("well=")).count()
}

#[test]
fn services_on_the_same_port_are_ready_and_loaded_each_in_its_network() {
    let (Some(one), Some(other)) = (network(), network()) else { return };
    let scratch = Scratch::new(Groups::With);
    assert!(!ports::taken(FIXED, Some(&one)), "a new network is empty");
    let (mut first, mut second) = (server(&scratch, "first", &one), server(&scratch, "second", &other));
    assert!(ports::taken(FIXED, Some(&one)) && ports::taken(FIXED, Some(&other)));
    let before = (answered(&first), answered(&second));

    // One load within this process, one by a process of its own. The server closes every connection: all are made anew.
    let outcome = unladen_load::run(&load(&one, 30), &mut |_| {}, &AtomicBool::new(false)).expect("it runs");
    assert_eq!((outcome.requests, outcome.errors), (30, 0), "{:?}", outcome.error_classes);
    let Piped { mut running, stdin, stdout } = part(&scratch, "load", &load(&other, 50), None);
    drop(stdin);
    let outcome = match events(stdout).last() {
        Some(outcome::Event::Done(outcome)) => outcome,
        unexpected => panic!("{unexpected:?}: {}", running.log_tail(5)),
    };
    assert_eq!((outcome.requests, outcome.errors), (50, 0), "{:?}", outcome.error_classes);
    assert_eq!((answered(&first) - before.0, answered(&second) - before.1), (30, 50));
    for running in [&mut running, &mut first, &mut second] {
        running.stop(Duration::from_secs(5)).expect("it stops");
    }
}

#[test]
fn connections_are_dealt_round_among_replicas() {
    let (Some(one), Some(other)) = (network(), network()) else { return };
    let scratch = Scratch::new(Groups::With);
    let (mut first, mut second) = (server(&scratch, "first", &one), server(&scratch, "second", &other));
    let before = (answered(&first), answered(&second));
    let address: std::net::SocketAddr = FIXED.parse().expect("an address");
    let replica = |network: &Netns| Replica { address: address.ip(), network: Some(network.path()) };
    // The URL names nobody: it is not looked up.
    let url = format!("http://nobody.invalid:{}/", address.port());
    let plan = Plan { url, network: None, replicas: vec![replica(&one), replica(&other)], ..load(&one, 40) };
    let outcome = unladen_load::run(&plan, &mut |_| {}, &AtomicBool::new(false)).expect("it runs");
    assert_eq!((outcome.requests, outcome.errors), (40, 0), "{:?}", outcome.error_classes);
    let (by_first, by_second) = (answered(&first) - before.0, answered(&second) - before.1);
    assert!(by_first + by_second == 40 && by_first.min(by_second) >= 1, "{by_first} and {by_second}");
    for running in [&mut first, &mut second] {
        running.stop(Duration::from_secs(5)).expect("it stops");
    }
}

#[test]
fn a_load_that_may_not_enter_says_so() {
    let plan = Plan { network: Some("/proc/self/ns/mnt".into()), ..Plan::new("http://127.0.0.1:1/") };
    let error = unladen_load::run(&plan, &mut |_| {}, &AtomicBool::new(false)).expect_err("no network").to_string();
    assert!(error.starts_with("cannot enter the network namespace /proc/self/ns/mnt:"), "{error}");
}

#[test]
fn questions_are_asked_in_the_network() {
    let Some(network) = network() else { return };
    let listener =
        network.enter(|| TcpListener::bind(FIXED)).expect("it can be entered").expect("nobody else is there");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 4_096]).expect("a request");
            let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 9\r\n\r\nspans 12\n";
            stream.write_all(answer.as_bytes()).expect("a reader");
        }
    });
    let selector = "spans".parse().expect("a selector");
    let query = Query::Prometheus { url: format!("http://{FIXED}/metrics"), selector };
    assert_eq!(query.ask(Some(&network)).expect("a number"), 12.0);
    let elsewhere = Netns::new().expect("as before");
    query.ask(Some(&elsewhere)).expect_err("nobody listens there");
}

#[test]
fn sinks_listen_at_the_same_address_each_in_its_network() {
    let (Some(one), Some(other)) = (network(), network()) else { return };
    let scratch = Scratch::new(Groups::With);
    let sinks = [(one, 1), (other, 3)].map(|(network, spans)| {
        let out = scratch.folder.path().join(spans.to_string());
        let address = FIXED.parse().expect("an address");
        let config =
            SinkConfig { listen: [(Protocol::OtlpHttp, address)].into(), out, store: false, ..SinkConfig::default() };
        let Piped { running, stdin, stdout } = part(&scratch, "sink", &config, Some(Arc::clone(&network)));
        let mut events = events(stdout);
        assert!(matches!(events.next(), Some(SinkEvent::Ready { .. })));
        (network, spans, running, stdin, events)
    });
    for (network, spans, mut running, stdin, events) in sinks {
        for number in 0..spans {
            let answer = network.enter(|| send_span(number)).expect("it can be entered");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        drop(stdin);
        let summary = events.filter_map(|event| if let SinkEvent::Done(it) = event { Some(it) } else { None }).last();
        assert_eq!(summary.expect("a summary").received, spans);
        running.stop(Duration::from_secs(5)).expect("it stops");
    }
}

#[test]
fn a_sink_listens_in_more_networks_when_it_is_asked_to() {
    let (Some(own), Some(more), Some(taken)) = (network(), network(), network()) else { return };
    let scratch = Scratch::new(Groups::With);
    let _stranger = taken.enter(|| TcpListener::bind(FIXED)).expect("it can be entered").expect("nobody else is there");
    let out = scratch.folder.path().join("sink");
    let address = FIXED.parse().expect("an address");
    let config =
        SinkConfig { listen: [(Protocol::OtlpHttp, address)].into(), out, store: false, ..SinkConfig::default() };
    let Piped { mut running, mut stdin, stdout } = part(&scratch, "sink", &config, Some(Arc::clone(&own)));
    let mut events = events(stdout).filter(|event| !matches!(event, SinkEvent::Tick { .. }));
    assert!(matches!(events.next(), Some(SinkEvent::Ready { .. })));
    for (network, is_free) in [(&more, true), (&taken, false)] {
        let asked = serde_json::to_string(&ListenIn { network: network.path() }).expect("JSON");
        writeln!(stdin, "{asked}").expect("it is read");
        match events.next() {
            Some(SinkEvent::Listening { error }) => assert_eq!(error.is_none(), is_free, "{error:?}"),
            unexpected => panic!("{unexpected:?}"),
        }
    }
    for (number, network) in [&own, &more].into_iter().enumerate() {
        let answer = network.enter(|| send_span(number as u64)).expect("it can be entered");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    drop(stdin);
    match events.next() {
        Some(SinkEvent::Done(summary)) => assert_eq!(summary.received, 2),
        unexpected => panic!("{unexpected:?}"),
    }
    running.stop(Duration::from_secs(5)).expect("it stops");
}

/// Sends one span to the sink in this thread's network.
fn send_span(number: u64) -> String {
    let span = format!(
        r#"{{"traceId":"{:032x}","spanId":"{:016x}","name":"n","kind":2,"startTimeUnixNano":"1","endTimeUnixNano":"2"}}"#,
        number + 1,
        number + 1
    );
    let body = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}"#);
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(FIXED).expect("it listens");
    stream.write_all((head + &body).as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// A relay for these addresses, once it listens.
fn relay(scratch: &Scratch, network: &Netns, addresses: &[&str]) -> Piped {
    let addresses = addresses.iter().map(|&address| address.to_owned()).collect();
    let mut part = part(scratch, "relay", &relay::Config { network: network.path(), addresses }, None);
    let mut line = String::new();
    // A byte at a time, so that nothing is read ahead of it.
    BufReader::with_capacity(1, &mut part.stdout).read_line(&mut line).expect("it speaks");
    match serde_json::from_str(&line) {
        Ok(Event::Ready) => part,
        Err(_) => panic!("{line}{}", part.running.log_tail(5)),
    }
}

/// Reads to the end of every connection and then answers with what it has read, backwards. Returns its address.
fn backwards() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            std::thread::spawn(move || {
                let mut text = Vec::new();
                stream.read_to_end(&mut text).expect("half of it is closed");
                text.reverse();
                stream.write_all(&text).expect("the other half is open");
            });
        }
    });
    address
}

#[test]
fn a_relay_reaches_what_listens_outside() {
    let Some(network) = network() else { return };
    let scratch = Scratch::new(Groups::With);
    let address = backwards();
    let connect = || network.enter(|| TcpStream::connect(&address)).expect("it can be entered");
    connect().expect_err("nothing is reached without");
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").to_string();
    let Piped { mut running, stdin, .. } = relay(&scratch, &network, &[&address, &nobody]);

    // All are open before the first is answered, and each is closed half by half.
    let mut streams: Vec<TcpStream> = (0..300).map(|_| connect().expect("it listens")).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        // More than any buffer on the way holds at once.
        let text = format!("{number}.").repeat(if number == 0 { 500_000 } else { 3 });
        stream.write_all(text.as_bytes()).expect("it is carried");
        stream.shutdown(std::net::Shutdown::Write).expect("it is open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is carried back");
        assert!(answer.chars().rev().eq(text.chars()), "{number}: {} of {} bytes", answer.len(), text.len());
    }

    let mut refused = network.enter(|| TcpStream::connect(&nobody)).expect("entered").expect("the relay listens");
    let error = refused.read(&mut [0]).expect_err("it is reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let line = format!("{nobody} was asked for, and nothing answers there outside");
    assert!(eventually(Duration::from_secs(5), || running.log_tail(5).contains(&line)), "{}", running.log_tail(5));

    // It ends with unladen.
    drop(stdin);
    assert!(eventually(Duration::from_secs(5), || running.alive().is_some()), "it lives on");
    assert_eq!(running.stop(Duration::ZERO).expect("it is gone").to_string(), "exit 0");
}

#[test]
fn a_relay_that_is_told_to_ends_and_one_that_cannot_listen_says_why() {
    let Some(network) = network() else { return };
    let scratch = Scratch::new(Groups::With);
    let Piped { mut running, .. } = relay(&scratch, &network, &["127.0.0.1:5432", "localhost:5432"]);
    assert_eq!(running.stop(Duration::from_secs(5)).expect("it stops").to_string(), "exit 0");

    let _own = network.enter(|| TcpListener::bind("127.0.0.1:5432")).expect("entered").expect("the relay is gone");
    let config = relay::Config { network: network.path(), addresses: vec!["127.0.0.1:5432".to_owned()] };
    let mut late = part(&scratch, "relay", &config, None);
    assert!(eventually(Duration::from_secs(5), || late.running.alive().is_some()), "it lives on");
    let text = late.running.log_tail(5);
    assert!(text.contains("cannot listen at 127.0.0.1:5432") && text.contains("`reach`"), "{text}");
}

#[test]
fn another_machine_is_reached_at_its_own_address() {
    const FAR: &str = "10.1.2.3:5432";
    let (Some(outside), Some(inside)) = (network(), network()) else { return };
    let far = outside.enter(|| {
        add_address(0, [10, 1, 2, 3].into()).expect("it can be added");
        TcpListener::bind(FAR).expect("it is there")
    });
    let far = far.expect("it can be entered");
    let (input, mut control) = std::io::pipe().expect("a pipe");
    let (output, writer) = std::io::pipe().expect("a pipe");
    // The relay runs in this process, on a thread that takes `outside` for the outside.
    let relaying = std::thread::spawn(move || {
        outside.move_thread().expect("it can be entered");
        relay::main(input, writer)
    });
    let config = relay::Config { network: inside.path(), addresses: vec![FAR.to_owned()] };
    writeln!(control, "{}", serde_json::to_string(&config).expect("JSON")).expect("it is read");
    assert_eq!(events(output).next(), Some(Event::Ready));
    let mut near = inside.enter(|| TcpStream::connect(FAR)).expect("entered").expect("the relay listens");
    near.write_all(b"ping").expect("it is carried");
    let mut text = [0; 4];
    far.accept().expect("the relay connects").0.read_exact(&mut text).expect("it is carried");
    assert_eq!(&text, b"ping");
    drop(control);
    assert_eq!(relaying.join().expect("it ends well"), std::process::ExitCode::SUCCESS);
}

#[test]
fn bytes_are_counted_in_the_network() {
    let Some(network) = network() else { return };
    let scratch = Scratch::new(Groups::With);
    let launch = Launch { network: Some(Arc::clone(&network)), ..scratch.child("talker", "talk", &["1000000"]) };
    let mut running = scratch.launcher.launch(&launch).expect("it starts");
    crate::scratch::wait_for_log(&mut running, "ready");
    let pids = [vec![running.family().root.pid]];
    let mut inside = Network::new(vec![false], Some(&network));
    let mut here = Network::new(vec![false], None);
    inside.sample(&pids, true);
    here.sample(&pids, true);
    crate::scratch::wait_for_log(&mut running, "sent");
    inside.sample(&pids, false);
    here.sample(&pids, false);
    let all = inside.traffic()[0].expect("its sockets are seen").all;
    // It talks to itself: every byte is sent, and received.
    assert_eq!((all.received, all.sent), (1_000_000, 1_000_000));
    assert_eq!(here.traffic(), [None], "from outside they are not");
}

#[test]
fn nothing_is_left_of_a_network() {
    let Some(network) = network() else { return };
    let scratch = Scratch::new(Groups::With);
    let name = network.name().expect("a name");
    let mut running = server(&scratch, "server", &network);
    let held = |what: &str| holders(&name).contains(&what.to_owned());
    let (me, it) = (std::process::id().to_string(), running.family().root.pid.to_string());
    assert!(held(&me) && held(&it), "{:?}", holders(&name));
    drop(network);
    assert!(held(&it), "it lives in its network");
    running.stop(Duration::from_secs(5)).expect("it stops");
    drop(running);
    assert_eq!(holders(&name), Vec::<String>::new());
}

/// Processes that are in a network namespace or hold it open.
fn holders(name: &std::path::Path) -> Vec<String> {
    let is_it = |link: std::path::PathBuf| std::fs::read_link(link).is_ok_and(|link| link == name);
    let holds = |process: &std::path::Path| {
        let threads = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
        let opened = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        threads.map(|thread| thread.path().join("ns/net")).chain(opened.map(|file| file.path())).any(is_it)
    };
    let processes = std::fs::read_dir("/proc").expect("it is there").flatten().map(|entry| entry.path());
    let holders = processes.filter(|process| holds(process));
    holders.filter_map(|process| Some(process.file_name()?.to_str()?.to_owned())).collect()
}

#[test]
fn a_user_who_is_not_root_has_networks_as_well() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can become nobody");
    }
    let words = child::command("networks", &[]);
    let output = match Command::new(&words[0]).args(&words[1..]).uid(65_534).gid(65_534).current_dir("/").output() {
        Ok(output) => output,
        Err(error) => return skipped(&format!("nobody may not run this binary where it lies: {error}")),
    };
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if text.contains("SKIPPED") {
        return skipped(&text);
    }
    assert!(output.status.success() && text.contains("nobody is done"), "{text}");
}

/// The same as the tests above, without the rights of root.
pub(crate) fn as_nobody() {
    // libtest has threads, and only a process without may move into a user namespace.
    // SAFETY: the other thread waits for this one and holds no lock.
    match unsafe { libc::fork() } {
        0 => {
            let done = std::panic::catch_unwind(nobody_has_networks);
            std::process::exit(i32::from(done.is_err()));
        }
        child => {
            let child = rustix::process::Pid::from_raw(child).expect("a child");
            let status = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
            let (_, status) = status.expect("it was started here").expect("it has ended");
            assert_eq!(status.exit_status(), Some(0));
        }
    }
}

fn nobody_has_networks() {
    assert!(Netns::new().is_err(), "this is a test of one who has no right to it");
    if let Err(reason) = userns::become_able() {
        return skipped(&reason);
    }
    assert_eq!((rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()), (65_534, 65_534));
    userns::become_able().expect("it is able already");
    let scratch = Scratch::new(Groups::With);
    let network = Arc::new(Netns::new().expect("able"));
    let mut running = server(&scratch, "server", &network);
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.family().root.pid)).expect("it lives");
    let rights = status.lines().find(|line| line.starts_with("CapEff:")).expect("a line of it");
    assert_eq!(rights.split_whitespace().nth(1), Some("0000000000000000"), "services get no rights");
    running.stop(Duration::from_secs(5)).expect("it stops");

    services_on_the_same_port_are_ready_and_loaded_each_in_its_network();
    questions_are_asked_in_the_network();
    sinks_listen_at_the_same_address_each_in_its_network();
    a_relay_reaches_what_listens_outside();
    a_relay_that_is_told_to_ends_and_one_that_cannot_listen_says_why();
    bytes_are_counted_in_the_network();
    nothing_is_left_of_a_network();
    println!("nobody is done");
}
