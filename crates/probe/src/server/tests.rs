use unladen_journal::role::Role;

use super::*;
use crate::edges::{Edges, Source, Sources};
use crate::remote::{Remote, RemoteError, ping};

/// A probe of this very process, for as long as the test lasts.
fn start(secret: &'static str) -> Remote {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("an address");
    let container = Container { family: family(), cgroup: None };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let container = container.clone();
            thread::spawn(move || converse(stream, secret, &container));
        }
    });
    Remote { address, secret: secret.to_owned() }
}

fn family() -> Family {
    Family { root: Identity::of(std::process::id()).expect("it is alive"), mark: "none".to_owned() }
}

fn nobody() -> Family {
    Family { root: Identity { pid: 0, start_ticks: 0 }, mark: "nobody".to_owned() }
}

fn work(ms: u64) {
    let end = monotonic_ns() + ms * 1_000_000;
    while monotonic_ns() < end {
        std::hint::spin_loop();
    }
}

#[test]
fn counters_elsewhere_are_read_beside_those_here() {
    let remote = start("s");
    let far = Source { family: nobody(), cgroup: None, remote: Some(remote) };
    let near = Source { family: family(), cgroup: None, remote: None };
    let mut edges = Edges::new(Sources { targets: vec![far, near], unladen: std::process::id(), compilers: true });
    let (before, own) = (edges.read(), own_cpu_ns());
    work(100);
    let (after, used) = (edges.read(), own_cpu_ns() - own);
    assert_eq!(edges.failure(), None);
    let since = |at: usize| after.cpu_ns[at].expect("a reading") - before.cpu_ns[at].expect("a reading");
    // This process, by itself and by its probe: other tests may be at work in it as well.
    assert!(since(0) >= 90_000_000 && since(0).abs_diff(since(1)) < 30_000_000, "{} {} {used}", since(0), since(1));
    assert!(after.machine_ns > before.machine_ns);
}

#[test]
fn a_window_is_watched_elsewhere_and_everybody_stays_in_place() {
    let remote = start("s");
    let target = |service: &str, family: Family, remote: Option<Remote>| Target {
        service: service.to_owned(),
        replica: 0,
        role: Some(Role::Subject),
        family,
        cgroup: None,
        endpoint: None,
        remote,
    };
    let targets = vec![
        target("far", nobody(), Some(remote.clone())),
        target("near", family(), None),
        target("further", nobody(), Some(remote)),
    ];
    let start_ns = monotonic_ns() + 50_000_000;
    let schedule = Schedule {
        window_start_ns: start_ns,
        window_end_ns: start_ns + 3_600_000_000_000,
        interval: Duration::from_millis(50),
        cpus: None,
    };
    let sampler = Sampler::start(targets, schedule).expect("it starts");
    work(250);
    let seen = sampler.finish_now().expect("an observation");
    let names: Vec<&str> = seen.processes.iter().map(|process| process.service.as_str()).collect();
    assert_eq!((names, seen.lost.as_deref()), (vec!["far", "near", "further"], None));
    for process in &seen.processes {
        assert!(process.cpu_ns.is_some_and(|ns| ns > 100_000_000) && process.rss.is_some(), "{process:?}");
    }
    let rows = |service: &str| seen.timeline.iter().filter(|row| row.service == service && row.metric == "rss").count();
    assert!(rows("far") >= 3 && rows("near") >= 3, "{} {}", rows("far"), rows("near"));
}

#[test]
fn a_stranger_hears_nothing_and_a_lost_probe_is_told() {
    let remote = start("s");
    assert!(ping(&remote).is_ok());
    let wrong = Remote { secret: "t".to_owned(), ..remote };
    assert!(matches!(ping(&wrong), Err(RemoteError::Connection(_))), "{:?}", ping(&wrong));
    let gone = Remote { address: "127.0.0.1:9".parse().expect("an address"), secret: String::new() };
    let source = Source { family: nobody(), cgroup: None, remote: Some(gone.clone()) };
    let mut edges = Edges::new(Sources { targets: vec![source], unladen: std::process::id(), compilers: false });
    assert_eq!(edges.read().cpu_ns, [None]);
    assert!(edges.failure().is_some());
    assert!(ping(&gone).is_err());
}

#[test]
fn lines_that_are_too_long_or_broken_are_errors() {
    let read = |text: &str| read_line::<Answer>(text.as_bytes(), 20);
    assert_eq!(read("{\"clock\":1}\n\"hello\"\n").expect("an answer"), Some(Answer::Clock(1)));
    assert_eq!(read("").expect("the end"), None);
    for broken in ["\n", "{\"clock\":-1}\n", "\"hello", "{\"failed\":\"much too long\"}\n", "\u{fffd}"] {
        read(broken).expect_err(broken);
    }
}

#[test]
fn the_group_of_a_container_is_where_it_has_mounted_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |path: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, "1\n").expect("a file");
    };
    assert_eq!(group(folder.path()), None);
    file("cpu.stat");
    assert_eq!(group(folder.path()).map(|it| it.version), Some(Version::V2));
    file("cpu,cpuacct/cpuacct.usage");
    file("memory/x");
    let v1 = group(folder.path()).expect("a group");
    let joint = folder.path().join("cpu,cpuacct");
    assert_eq!((v1.version, &v1.accounting, v1.cpu.as_ref()), (Version::V1, &joint, Some(&joint)));
    assert_eq!((v1.memory, v1.cpuset), (Some(folder.path().join("memory")), None));
}
