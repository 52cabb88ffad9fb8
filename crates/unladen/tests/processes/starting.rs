//! Starting: what can be wrong with a command, where output goes, readiness.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use unladen_linux::CpuSet;
use unladen_linux::process::Stat;
use unladen_processes::subject::{Ended, Launch, Limits, Readiness, SubjectError};

use crate::scratch::{Groups, Scratch, eventually, number_in_log, wait_for_log};

fn readiness(timeout_ms: u64) -> Readiness {
    Readiness {
        http: None,
        tcp: None,
        log: None,
        healthy: false,
        timeout: Duration::from_millis(timeout_ms),
        network: None,
    }
}

fn calm() -> AtomicBool {
    AtomicBool::new(false)
}

#[test]
fn a_wrong_command_says_what_is_wrong_and_what_to_do() {
    let scratch = Scratch::new(Groups::Without);
    let here = scratch.folder.path();
    std::fs::write(here.join("plain.txt"), "text").expect("a file");
    std::fs::write(here.join("script"), "#!/no/such/interpreter\n").expect("a file");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(here.join("script"), std::fs::Permissions::from_mode(0o755)).expect("a mode");

    let gone = Launch { cwd: here.join("nowhere"), ..scratch.command("app", &["true"]) };
    let unwritable = Launch { log: "/proc/no/log".into(), ..scratch.command("app", &["true"]) };
    let bare = Launch { env: [("PATH".to_owned(), "/empty".to_owned())].into(), ..scratch.command("app", &["true"]) };
    for (launch, says) in [
        (scratch.command("app", &[]), "name the program"),
        (scratch.command("app", &["no-such-program-7"]), "`no-such-program-7` is in none of the directories of PATH"),
        (bare, "PATH (/empty)"),
        (scratch.command("app", &["./missing"]), "Build it first"),
        (scratch.command("app", &["./plain.txt"]), "is not executable"),
        (scratch.command("app", &["./script"]), "names no interpreter that exists"),
        (gone, "nowhere is not there"),
        (unwritable, "--out"),
    ] {
        let error = scratch.launcher.launch(&launch).expect_err(says).to_string();
        assert!(error.contains(says) && error.contains("app"), "{error:?} does not say {says:?}");
    }
}

#[test]
fn both_outputs_are_appended_to_the_log_in_their_order_and_the_mark_is_set() {
    let scratch = Scratch::new(Groups::Without);
    let launch = Launch {
        env: [("GREETING".to_owned(), "hello".to_owned())].into(),
        pad: 100,
        replica: 3,
        ..scratch.shell(
            "app",
            "for i in 1 2 3; do echo out $i; echo err $i >&2; done; echo $GREETING ${#UNLADEN_PAD} $UNLADEN_RUN; pwd",
        )
    };
    std::fs::create_dir_all(launch.log.parent().expect("a folder")).expect("a folder");
    std::fs::write(&launch.log, "earlier\n").expect("a file");
    let mut running = scratch.launcher.launch(&launch).expect("it starts");
    let ended = loop {
        if let Some(ended) = running.alive() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(ended, Ended::Exit(0));
    let text = std::fs::read_to_string(&launch.log).expect("a log");
    let start = "earlier\nout 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\nhello 100 ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("-app-3\n"), "the mark names service and replica: {text}");
    assert!(text.trim_end().ends_with(&scratch.folder.path().canonicalize().expect("a path").display().to_string()));
    assert!(!running.log_tail(50).contains("earlier"), "the tail is this process's own");
}

#[test]
fn every_process_leads_a_session_and_runs_on_its_cpus() {
    let scratch = Scratch::new(Groups::Without);
    let one: CpuSet = CpuSet::allowed().expect("affinity").iter().take(1).collect();
    let launch = Launch {
        cpus: Some(one.clone()),
        ..scratch.shell("app", "grep Cpus_allowed_list /proc/self/status; sleep 100")
    };
    let mut running = scratch.launcher.launch(&launch).expect("it starts");
    wait_for_log(&mut running, &format!("Cpus_allowed_list:\t{one}"));
    let stat = Stat::read(running.pid()).expect("it runs");
    assert_eq!((stat.session, stat.group), (running.pid(), running.pid()));

    let nowhere = Limits { cpuset: Some([1000].into_iter().collect()), ..Limits::default() };
    let launch = Launch { limits: nowhere, ..scratch.shell("app", "sleep 100") };
    let error = scratch.launcher.launch(&launch).expect_err("there is no CPU 1000");
    assert!(matches!(error, SubjectError::Cpus { .. }), "{error}");
}

/// Of two cores one, then both, then one again; what a child has chosen for itself stays.
#[test]
fn a_process_and_its_children_move_to_other_cores_and_back() {
    let allowed: Vec<usize> = CpuSet::allowed().expect("affinity").iter().take(2).collect();
    let &[first, second] = allowed.as_slice() else { return println!("not tested: there is one core only") };
    let set = |cpus: &[usize]| cpus.iter().copied().collect::<CpuSet>();
    let (one, both) = (set(&[first]), set(&[first, second]));
    let scratch = Scratch::new(Groups::With);
    let children = format!(
        "taskset -c {second} sleep 100 & (while :; do grep Cpus_allowed_list /proc/self/status; sleep 0.01; done) & sleep 100"
    );
    let launch = Launch { cpus: Some(one.clone()), ..scratch.shell("app", &children) };
    let running = scratch.launcher.launch(&launch).expect("it starts");
    let newest_is = |cpus: &CpuSet| {
        let wanted = format!("Cpus_allowed_list:\t{cpus}");
        let newest = || std::fs::read_to_string(&launch.log).ok()?.lines().last().map(str::to_owned);
        eventually(Duration::from_secs(20), || newest().as_ref() == Some(&wanted))
    };
    let elsewhere = || {
        let members = running.members();
        members.iter().filter(|it| CpuSet::of_thread(it.pid).is_ok_and(|cpus| cpus == set(&[second]))).count()
    };
    assert!(newest_is(&one) && eventually(Duration::from_secs(20), || elsewhere() == 1));
    for (from, to) in [(&one, &both), (&both, &one)] {
        running.move_threads(from, to).expect("both cores may be used");
        assert!(newest_is(to), "from {from} to {to}");
        assert_eq!(CpuSet::of_thread(running.pid()).expect("it runs"), *to);
        assert_eq!(elsewhere(), 1, "what has bound itself stays");
    }
}

#[test]
fn a_process_that_dies_at_start_is_told_at_once_with_its_last_words() {
    let scratch = Scratch::new(Groups::With);
    let mut running =
        scratch.launcher.launch(&scratch.shell("app", "echo cannot bind port 80 >&2; exit 3")).expect("it starts");
    let before = Instant::now();
    let patient = Readiness { tcp: Some("127.0.0.1:1".to_owned()), ..readiness(60_000) };
    let error = running.wait_ready(&patient, &calm()).expect_err("it is dead");
    assert!(before.elapsed() < Duration::from_secs(5), "it was waited for");
    assert!(matches!(error, SubjectError::DiedAtStart { ended: Ended::Exit(3), .. }), "{error}");
    assert!(error.to_string().contains("exit 3") && error.to_string().contains("cannot bind port 80"), "{error}");
}

#[test]
fn a_process_that_never_gets_ready_says_what_is_missing() {
    let scratch = Scratch::new(Groups::Without);
    let mut running = scratch.launcher.launch(&scratch.shell("app", "echo waiting; sleep 100")).expect("it starts");
    let all = Readiness {
        http: Some("http://127.0.0.1:1/health".to_owned()),
        tcp: Some("127.0.0.1:1".to_owned()),
        log: Some("listening".to_owned()),
        ..readiness(300)
    };
    let error = running.wait_ready(&all, &calm()).expect_err("nothing holds").to_string();
    for part in [
        "0.3 s",
        "`listening`",
        "127.0.0.1:1 has not accepted",
        "GET http://127.0.0.1:1/health",
        "waiting",
        "ready.timeout",
    ] {
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
    for (condition, says) in [
        (Readiness { http: Some("https://127.0.0.1/".to_owned()), ..readiness(300) }, "only `http://`"),
        (Readiness { http: Some("/health".to_owned()), ..readiness(300) }, "names no host"),
        (Readiness { tcp: Some("127.0.0.1".to_owned()), ..readiness(300) }, "host and port"),
        (Readiness { log: Some(String::new()), ..readiness(300) }, "every line"),
    ] {
        let error = running.wait_ready(&condition, &calm()).expect_err(says).to_string();
        assert!(error.contains(says), "{error:?} does not say {says:?}");
    }
    let stopped = AtomicBool::new(true);
    let error = running.wait_ready(&all, &stopped).expect_err("interrupted");
    assert!(matches!(error, SubjectError::Interrupted { .. }), "{error}");
    assert!(stopped.load(Ordering::Relaxed));
}

#[test]
fn readiness_comes_when_the_server_answers_well_and_not_before() {
    let scratch = Scratch::new(Groups::Without);
    // The port is free again when the listener is dropped; nothing connected to it, so it can be bound at once.
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("an address").to_string()
    };
    let launch = Launch {
        env: [("SERVE_AT".to_owned(), address.clone())].into(),
        ..scratch.child("app", "serve", &["100", "200"])
    };
    let mut running = scratch.launcher.launch(&launch).expect("it starts");
    let tcp = Readiness { tcp: Some(address.clone()), ..readiness(20_000) };
    let open = running.wait_ready(&tcp, &calm()).expect("the port opens");
    let http = Readiness { http: Some(format!("http://{address}/health?x=1")), ..readiness(20_000) };
    let well = running.wait_ready(&http, &calm()).expect("it answers");
    assert!(open >= Duration::from_millis(100) && well >= Duration::from_millis(300), "{open:?}, {well:?}");
    // The server's own clock starts after exec and its own start-up, so unladen's figure is the later one; that it is not
    // much later is a matter of a quiet machine, so the bound is wide.
    let own = number_in_log(running.log(), "well").expect("the server says when");
    let lag = well.saturating_sub(Duration::from_micros(own));
    assert!(lag < Duration::from_millis(500), "noticed {lag:?} late");
}

#[test]
fn without_conditions_it_is_ready_when_it_has_lived_for_100_ms() {
    let scratch = Scratch::new(Groups::Without);
    let mut running = scratch.launcher.launch(&scratch.shell("app", "sleep 100")).expect("it starts");
    let ready = running.wait_ready(&readiness(5_000), &calm()).expect("it lives");
    assert!(ready >= Duration::from_millis(100) && ready < Duration::from_secs(2), "{ready:?}");
    let mut short = scratch.launcher.launch(&scratch.shell("short", "exit 0")).expect("it starts");
    short.wait_ready(&readiness(5_000), &calm()).expect_err("it ended before");
}

#[test]
fn pipes_reach_a_part_of_the_instrument() {
    use std::io::{BufRead, BufReader, Write};
    let scratch = Scratch::new(Groups::With);
    let mut piped = scratch
        .launcher
        .launch_piped(&scratch.shell("load", "read line; echo got $line; echo noise >&2; exec sleep 100"))
        .expect("it starts");
    writeln!(piped.stdin, "plan").expect("it reads");
    let mut line = String::new();
    BufReader::new(&mut piped.stdout).read_line(&mut line).expect("it writes");
    assert_eq!(line, "got plan\n");
    wait_for_log(&mut piped.running, "noise");
    assert_eq!(piped.running.stop(Duration::from_secs(5)).expect("it stops"), Ended::Signal(15));
}
