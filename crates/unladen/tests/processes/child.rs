//! The children: this test binary, started again on the one ignored test below with its role in the environment.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

const ROLE: &str = "--unladen-child=";

/// Between "ready" and the work: time for a first sample.
const PAUSE: Duration = Duration::from_millis(200);

/// The command that starts this binary in a role.
pub(crate) fn command(role: &str, arguments: &[&str]) -> Vec<OsString> {
    let me = std::env::current_exe().expect("this binary has a path");
    // libtest takes what follows `--skip` as text and does nothing with it: a way to hand over words.
    let mut words: Vec<OsString> = vec![me.into()];
    words.extend(["child::child", "--exact", "--ignored", "--nocapture"].map(Into::into));
    for word in [format!("{ROLE}{role}")].iter().map(String::as_str).chain(arguments.iter().copied()) {
        words.extend(["--skip".into(), word.into()]);
    }
    words
}

#[test]
#[ignore = "not a test: the body of the children that the tests start"]
fn child() {
    let words: Vec<String> = std::env::args().collect();
    let handed: Vec<&str> = words.windows(2).filter(|pair| pair[0] == "--skip").map(|pair| pair[1].as_str()).collect();
    let Some(role) = handed.first().and_then(|word| word.strip_prefix(ROLE)) else { return };
    let arguments = &handed[1..];
    let number = |index: usize| arguments[index].parse::<u64>().expect("a number");
    match role {
        "guard" => {
            let code = unladen_processes::subject::guard::main();
            std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
        }
        "burn" => burn(Duration::from_millis(number(0))),
        "burn-and-end" => spin_for(Duration::from_millis(number(0))),
        "burn-in-children" => burn_in_children(number(0), number(1)),
        "burn-in-threads" => burn_in_threads(number(0), number(1)),
        "hold" => hold(number(0)),
        "serve" => serve(Duration::from_millis(number(0)), Duration::from_millis(number(1))),
        "talk" => talk(number(0)),
        "talk-and-close" => talk_and_close(number(0), number(1)),
        "nobody" => nobody(arguments[0]),
        "networks" => crate::networks::as_nobody(),
        "launcher" => launcher(arguments[0], arguments[1] == "groups"),
        _ => panic!("no role {role}"),
    }
}

/// CPU time of this process, ns, by its own clock.
fn own_cpu() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn say(text: &str) {
    println!("{text}");
    std::io::stdout().flush().expect("the log can be written");
}

fn wait_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn spin(until: impl Fn() -> bool) {
    while !until() {
        for number in 0..10_000_u64 {
            std::hint::black_box(number);
        }
    }
}

/// Uses this much CPU time.
fn spin_for(time: Duration) {
    let before = own_cpu();
    spin(|| own_cpu() - before >= time.as_nanos() as u64);
}

/// Leaves the probe time to take its first sample, then burns.
fn burn(time: Duration) {
    say("ready");
    std::thread::sleep(PAUSE);
    let before = own_cpu();
    spin_for(time);
    say(&format!("burned={}", own_cpu() - before));
    say(&format!("cpu={}", own_cpu()));
    wait_for_ever();
}

/// Starts `count` children one after the other, each of which burns for `ms` and ends.
fn burn_in_children(count: u64, ms: u64) {
    say("ready");
    std::thread::sleep(PAUSE);
    for _ in 0..count {
        let words = command("burn-and-end", &[&ms.to_string()]);
        let status = std::process::Command::new(&words[0]).args(&words[1..]).status().expect("this binary starts");
        assert!(status.success());
    }
    // SAFETY: a plain system call that fills the structure it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    say(&format!("children={}", (micros(usage.ru_utime) + micros(usage.ru_stime)) * 1000));
    say(&format!("cpu={}", own_cpu()));
    wait_for_ever();
}

/// Burns in threads that end one after the other.
fn burn_in_threads(count: u64, ms: u64) {
    say("ready");
    std::thread::sleep(PAUSE);
    let before = own_cpu();
    for _ in 0..count {
        std::thread::spawn(move || {
            let start = clock_gettime(ClockId::ThreadCPUTime);
            spin(|| {
                let now = clock_gettime(ClockId::ThreadCPUTime);
                let ns = (now.tv_sec - start.tv_sec) * 1_000_000_000 + (now.tv_nsec - start.tv_nsec);
                ns >= ms as i64 * 1_000_000
            });
        })
        .join()
        .expect("the thread ends well");
    }
    say(&format!("burned={}", own_cpu() - before));
    wait_for_ever();
}

/// Holds so many MiB of touched memory.
fn hold(mib: u64) {
    let mut memory = vec![0_u8; mib as usize * 1024 * 1024];
    for (index, page) in memory.chunks_mut(4096).enumerate() {
        page[0] = (index % 251) as u8 + 1;
    }
    std::hint::black_box(&memory);
    say("ready");
    wait_for_ever();
}

/// An HTTP server that opens its port after `closed`, then answers 503 for `unwell`, then 200.
fn serve(closed: Duration, unwell: Duration) {
    let start = Instant::now();
    std::thread::sleep(closed);
    let address = std::env::var("SERVE_AT").expect("an address");
    let listener = TcpListener::bind(address).expect("the port is free");
    for stream in listener.incoming() {
        let mut stream = stream.expect("a connection");
        let mut buffer = [0_u8; 1024];
        let read = stream.read(&mut buffer).unwrap_or(0);
        let status = if start.elapsed() < closed + unwell { "503 Not Yet" } else { "200 OK" };
        if read > 0 {
            if status.starts_with("200") {
                say(&format!("well={}", start.elapsed().as_micros()));
            }
            let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    }
}

/// Sends so many bytes to itself over a loopback connection that stays open, and waits.
fn talk(bytes: u64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut left = bytes;
        let mut buffer = [0_u8; 65536];
        while left > 0 {
            left -= stream.read(&mut buffer).expect("bytes come") as u64;
        }
        stream
    });
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    say("ready");
    std::thread::sleep(PAUSE);
    let block = vec![7_u8; 65536];
    let mut left = bytes as usize;
    while left > 0 {
        let now = left.min(block.len());
        stream.write_all(&block[..now]).expect("bytes go");
        left -= now;
    }
    let _peer = reader.join().expect("the reader ends well");
    say("sent");
    wait_for_ever();
}

/// Sends so many bytes to itself over so many connections, each closed before the next is opened.
fn talk_and_close(bytes: u64, connections: u64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::io::copy(&mut stream.expect("a connection"), &mut std::io::sink()).expect("bytes come");
        }
    });
    say("ready");
    std::thread::sleep(PAUSE);
    let block = vec![7_u8; (bytes / connections) as usize];
    for _ in 0..connections {
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        stream.write_all(&block).expect("bytes go");
    }
    say("sent");
    wait_for_ever();
}

/// Starts and stops a service without the right to make control groups.
fn nobody(folder: &str) {
    use unladen_linux::hierarchy::Mounts;
    use unladen_processes::subject::{Launch, Launcher, LauncherOptions, Limits};
    let options = LauncherOptions {
        random: crate::scratch::random(),
        limits: true,
        guard: command("guard", &[]),
        mounts: Some(Mounts::of_this_process()),
    };
    let launcher = Launcher::new(&options).expect("the guard starts");
    say(&format!("none: {}", launcher.no_cgroups().unwrap_or("there are groups")));
    let launch = Launch {
        service: "app".to_owned(),
        command: ["sleep", "100"].map(str::to_owned).to_vec(),
        cwd: folder.into(),
        log: format!("{folder}/app.log").into(),
        ..Launch::default()
    };
    let limits = Limits { memory: Some(1 << 30), ..Limits::default() };
    let refused = launcher.launch(&Launch { limits, ..launch.clone() }).expect_err("no control groups");
    say(&format!("limit: {refused}"));
    let mut running = launcher.launch(&launch).expect("it starts");
    say(&format!("ended: {}", running.stop(Duration::from_secs(10)).expect("it stops")));
    launcher.close().expect("nothing is left");
}

/// A stand-in for unladen that starts services of every kind and then waits to be killed.
fn launcher(folder: &str, groups: bool) {
    use unladen_linux::hierarchy::Mounts;
    use unladen_processes::subject::{Launch, Launcher, LauncherOptions};
    let options = LauncherOptions {
        random: crate::scratch::random(),
        limits: false,
        guard: command("guard", &[]),
        mounts: groups.then(Mounts::of_this_process),
    };
    let launcher = Launcher::new(&options).expect("the guard starts");
    let scripts = [
        ("plain", "echo pid=$$; exec sleep 300"),
        ("stubborn", "trap '' TERM INT HUP; echo pid=$$; while :; do sleep 1; done"),
        ("daemon", "setsid sh -c 'echo pid=$$; sleep 300' & sleep 300"),
    ];
    let mut running = Vec::new();
    for (service, script) in scripts {
        let launch = Launch {
            service: service.to_owned(),
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            cwd: folder.into(),
            log: format!("{folder}/{service}.log").into(),
            ..Launch::default()
        };
        let mut service = launcher.launch(&launch).expect("it starts");
        crate::scratch::wait_for_log(&mut service, "pid=");
        running.push(service);
    }
    let roots: Vec<String> = running
        .iter()
        .filter_map(|service| service.cgroup())
        .filter_map(|cgroup| Some(cgroup.accounting.parent()?.display().to_string()))
        .collect();
    std::fs::write(format!("{folder}/guard"), launcher.guard_pid().to_string()).expect("the folder is writable");
    std::fs::write(format!("{folder}/roots.tmp"), roots.join("\n")).expect("the folder is writable");
    std::fs::rename(format!("{folder}/roots.tmp"), format!("{folder}/roots")).expect("the folder is writable");
    wait_for_ever();
}
