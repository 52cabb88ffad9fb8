//! What a JVM's counters say agrees with what the JVM says of itself: every collector of every JDK of this machine, also
//! inside other PID and mount namespaces.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use unladen_linux::process::children;
use unladen_probe::jvm::heap::Heap;
use unladen_probe::jvm::{find, mappings, read};

use crate::scratch::skipped;

/// Folder with the compiled service.
fn classes() -> &'static Path {
    static CLASSES: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = CLASSES.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/Subject.java");
        // For 17, so that every JDK of the machine can run it.
        let status = Command::new("javac").args(["--release", "17", "-d"]).arg(folder.path()).arg(source).status();
        assert!(status.expect("a JDK is installed: `make deps` installs it").success());
        folder
    });
    folder.path()
}

/// Every `java` below `/usr/lib/jvm`, each once.
fn runtimes() -> Vec<PathBuf> {
    let found = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = found.filter_map(|entry| entry.path().join("bin/java").canonicalize().ok()).collect();
    found.sort();
    found.dedup();
    found
}

/// The service, ended when it is dropped.
struct Service {
    child: Child,
    port: u16,
}

impl Service {
    /// Starts a command line that ends in `java`, with these options.
    fn start(line: &[&str], options: &[&str], arguments: &[&str]) -> Option<Self> {
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).args(options).arg("-cp").arg(classes()).arg("Subject").args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let ready = output.lines().map_while(Result::ok).find_map(|line| line.strip_prefix("ready on ")?.parse().ok());
        match ready {
            Some(port) => Some(Self { child, port }),
            None => {
                child.wait().expect("it has ended");
                None
            }
        }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it is asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// What the JVM says of itself, by name.
    fn own(&self, name: &str, answer: &str) -> u64 {
        let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).expect(name);
        line.parse().expect("a number")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let descendants = children(self.child.id()).unwrap_or_default();
        for pid in descendants.into_iter().chain([self.child.id()]) {
            if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        let _ = self.child.wait();
    }
}

fn counters(pid: u32) -> Heap {
    let file: File = find(pid).expect("it is a JVM");
    let before = Instant::now();
    let heap = read(&file, &mut Vec::new()).expect("its counters are whole");
    println!("  read in {:?}: {heap:?}", before.elapsed());
    heap
}

#[test]
fn every_collector_is_understood() {
    for java in runtimes() {
        let java = java.display().to_string();
        for collector in ["Serial", "Parallel", "G1", "Z", "Shenandoah"] {
            let options = [&format!("-XX:+Use{collector}GC"), "-Xmx192m", "-Xms192m"];
            let Some(service) = Service::start(&[&java], &options, &["--ballast-mib", "20"]) else {
                skipped(&format!("{java} has no {collector}"));
                continue;
            };
            println!("{java} {collector}");
            for _ in 0..200 {
                service.get("/work");
            }
            let own = service.get("/self");
            // Counters that the JVM brings up to date by itself are up to date within 50 ms.
            std::thread::sleep(Duration::from_millis(200));
            let heap = counters(service.child.id());
            let near = |a: u64, b: u64, slack: u64| a.abs_diff(b) <= slack;
            let mib = 1 << 20;
            assert!(heap.used > 20 * mib && heap.used < 192 * mib, "{collector}: {}", heap.used);
            if let Some(eden) = heap.eden {
                let live = service.own("heap", &own);
                assert!(near(eden.others, live, 3 * mib), "{collector}: {} and {live}", eden.others);
                assert!(heap.collections >= 2, "{collector}: {}", heap.collections);
            }
            assert_eq!(heap.eden.is_some(), !matches!(collector, "Z" | "Shenandoah"), "{collector}");
            assert!(near(heap.classes.expect("classes"), service.own("classes", &own), 30), "{collector}: {own}");
            assert!(near(heap.threads.expect("threads"), service.own("threads", &own), 1), "{collector}: {own}");
            let (used, committed) = heap.metaspace.expect("there was a collection");
            assert!(used > 500_000 && used <= committed && committed < 100 * mib, "{used} of {committed}");
            let resident = mappings::of(service.child.id(), heap.reserved).expect("the heap is found");
            println!("  {resident:?}");
            assert!(resident.heap >= 20 * mib && resident.code > 100_000, "{collector}: {resident:?}");
            assert!(resident.all > resident.heap + resident.code + used, "{collector}: {resident:?}");
        }
    }
}

#[test]
fn a_jvm_in_other_namespaces_is_found() {
    // The folder of the counters is another one inside, and so are the PIDs.
    let script =
        "folder=/tmp/hsperfdata_$(id -un); mkdir -p $folder; mount -t tmpfs -o mode=0755 none $folder; exec \"$@\"";
    let line = ["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "sh", "-c", script, "sh", "java"];
    let mut command = Command::new("unshare");
    command.args(line).args(["-Xmx64m", "-cp"]).arg(classes()).arg("Subject");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("unshare is there");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let ready = output.lines().map_while(Result::ok).find(|line| line.starts_with("ready"));
    let service = Service { child, port: 0 };
    if ready.is_none() {
        skipped("namespaces may not be made here");
        return;
    }
    let inner = children(service.child.id()).expect("this kernel lists children");
    let status = fs::read_to_string(format!("/proc/{}/status", inner[0])).expect("it is there");
    let pids = status.lines().find(|line| line.starts_with("NSpid:")).expect("a list");
    assert!(pids.split_whitespace().count() > 2, "it has another PID inside: {pids}");
    assert!(!fs::exists(format!("/tmp/hsperfdata_root/{}", inner[0])).expect("a folder"), "its file is hidden");
    assert!(counters(inner[0]).classes.expect("classes") > 300);
}

#[test]
fn a_process_that_is_no_jvm_is_none() {
    assert!(find(std::process::id()).is_none());
    assert!(find(u32::MAX).is_none());
}
