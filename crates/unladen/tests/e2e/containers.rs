//! Services as containers, by a private engine that the tests start and stop: without a bridge, in the network of the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{CliOutput, Scratch, UNLADEN, counting, demo_study, finding, measuring};

/// What the images of these tests are called.
const IMAGE: &str = "unladen-demo:e2e";

/// Docker's daemon, with everything that it keeps in a scratch folder.
struct Engine {
    folder: tempfile::TempDir,
    daemon: Child,
}

impl Engine {
    /// `None` where Docker is not installed.
    fn start() -> Option<Self> {
        if Command::new("dockerd").arg("--version").output().is_err() {
            println!("SKIPPED: dockerd is not installed: `make deps` installs it");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = fs::File::create(folder.path().join("log")).expect("a file");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let daemon = Command::new("dockerd")
            .args(["--data-root", &path("data"), "--exec-root", &path("exec"), "--pidfile", &path("pid")])
            .args(["-H", &format!("unix://{}", path("socket"))])
            .args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("dockerd starts");
        let engine = Self { folder, daemon };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !engine.docker(&["version"]).0 {
            let log = || fs::read_to_string(engine.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "dockerd does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        engine.import();
        Some(engine)
    }

    fn host(&self) -> String {
        format!("unix://{}", self.folder.path().join("socket").display())
    }

    /// Docker's own command: whether it went well, and what it printed.
    fn docker(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new("docker").args(arguments).env("DOCKER_HOST", self.host()).output().expect("docker");
        let printed = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
        (output.status.success(), printed)
    }

    /// An image of this very executable and what it is linked with.
    fn import(&self) {
        let root = self.folder.path().join("root");
        let copy = |from: &Path, to: PathBuf| {
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            fs::copy(from, to).expect("a copy");
        };
        copy(Path::new(UNLADEN), root.join("unladen"));
        let linked = Command::new("ldd").arg(UNLADEN).output().expect("ldd");
        for word in String::from_utf8_lossy(&linked.stdout).split_whitespace().filter(|word| word.starts_with('/')) {
            copy(Path::new(word), root.join(word.trim_start_matches('/')));
        }
        let tar = self.folder.path().join("image.tar").display().to_string();
        let made = Command::new("tar").args(["-C", &root.display().to_string(), "-cf", &tar, "."]).status();
        assert!(made.expect("tar").success());
        let (is_imported, said) = self.docker(&["import", "--change", "ENTRYPOINT [\"/unladen\"]", &tar, IMAGE]);
        assert!(is_imported, "{said}");
    }

    fn run(&self, scratch: &Scratch, more: &[&str]) -> CliOutput {
        let arguments = [&["run", ".", "--out", "out", "--plain"], more].concat();
        let output = scratch.command(&arguments).env("DOCKER_HOST", self.host()).output().expect("unladen starts");
        CliOutput::new(&output)
    }

    /// Names of the containers that are there, running or not.
    fn containers(&self) -> Vec<String> {
        let (_, names) = self.docker(&["ps", "-a", "--format", "{{.Names}}"]);
        names.lines().map(str::to_owned).collect()
    }

    /// Waits until there is one of this service.
    fn await_container(&self, service: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(name) = self.containers().into_iter().find(|name| name.contains(service)) {
                return name;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no container of {service} in 30 s");
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.daemon);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.daemon.wait();
    }
}

/// The consumer as a container in a variant, and with more keys of the service there.
fn as_image(more: &str) -> String {
    let command =
        "[__demo, consumer, --port, \"${port.consumer}\", --provider, \"http://127.0.0.1:${port.provider}/provider\"]";
    format!("  image:\n    services: {{consumer: {{image: '{IMAGE}', command: {command}{more}}}}}\n")
}

#[test]
fn a_service_costs_the_same_as_an_image_and_as_a_process() {
    let _turn = measuring();
    let Some(engine) = Engine::start() else { return };
    let traced = ", env: {OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${sink.otlp_grpc}\"}, args: [--trace, otlp]";
    let variants = as_image("") + &as_image(traced).replace("  image:\n", "  traced:\n    spans_per_request: 4\n");
    let scratch = Scratch::with(&demo_study("image", &variants).replace("design: separate", "design: alternating"));
    let output = engine.run(&scratch, &["--window", "2s", "--rounds", "6"]).ends_with(0);
    println!("{}", output.out);
    let findings = scratch.findings();
    // Of the rounds, not of the interval: a machine that others take away voids some, and of fewer than six there is none.
    let rounds = &finding(&findings, "image", "cpu_per_request").rounds;
    let mut shares: Vec<f64> = rounds.iter().map(|round| round.difference / round.baseline).collect();
    assert!(shares.len() >= 3, "{} rounds", shares.len());
    shares.sort_unstable_by(f64::total_cmp);
    // A container does the same work; what the engine itself does is not in its control group.
    let (least, middle, most) = (shares[0], shares[shares.len() / 2], shares[shares.len() - 1]);
    assert!(middle.abs() < 0.1 || (least < 0.0 && most > 0.0), "{shares:?}");
    let runs = unladen_study::measured::read(&scratch.path("out")).expect("a run folder").runs;
    for run in runs.iter().filter(|run| run.void.is_none()) {
        let consumer = run.processes.iter().find(|it| it.service == "consumer").expect("the consumer");
        assert_eq!(consumer.image.is_some(), ["image", "traced"].contains(&run.variant.as_str()), "{consumer:?}");
        assert!(consumer.rss.is_some_and(|bytes| bytes > 1 << 20), "{consumer:?}");
        let ledger = run.ledger.as_ref().filter(|_| run.variant == "traced");
        if let Some(ledger) = ledger {
            assert_eq!((ledger.lost, ledger.duplicates, ledger.unexplained), (0, 0, 0), "{ledger:?}");
            assert!(ledger.saved > 1_000, "{ledger:?}");
        }
    }
    assert_eq!(engine.containers(), Vec::<String>::new());
    scratch.assert_nothing_left();
}

#[test]
fn what_goes_wrong_with_containers_is_told() {
    let _turn = counting();
    let short = ["--rounds", "1", "--window", "1s", "--design", "separate"];
    let with = |host: &str| {
        let scratch = Scratch::with(&demo_study("no-engine", &as_image("")));
        let arguments = [&["run", ".", "--out", "out", "--plain"][..], &short].concat();
        CliOutput::new(&scratch.command(&arguments).env("DOCKER_HOST", host).output().expect("unladen starts"))
    };
    with("unix:///nowhere/docker.sock").ends_with(2).complains(&["consumer", "/nowhere/docker.sock", "docker info"]);
    with("tcp://10.0.0.1:2375").ends_with(2).complains(&["not one of this machine", "DOCKER_HOST"]);

    let Some(engine) = Engine::start() else { return };
    let fails = |mark: &str, variants: &str, words: &[&str]| {
        let scratch = Scratch::with(&demo_study(mark, variants));
        engine.run(&scratch, &short).ends_with(2).complains(words);
        assert_eq!(engine.containers(), Vec::<String>::new(), "{mark}");
        scratch.assert_nothing_left();
    };
    let missing = as_image("").replace(IMAGE, "no-such-image:1");
    fails("no-image", &missing, &["consumer", "no-such-image:1", "docker pull"]);
    let exits = as_image("").replace("[__demo, consumer,", "[no-such-command,");
    fails("exits", &exits, &["consumer", "exit 2", "no-such-command", "consumer.log"]);
    let never = as_image(", ready: {tcp: '127.0.0.1:1', timeout: 1s}");
    fails("never-ready", &never, &["consumer", "not ready after 1.0 s"]);
    let dies = as_image(", args: [--die-after-s, '1.2']");
    fails("dies", &dies, &["consumer", "ended during the run"]);
    let memory = as_image(", args: [--leak-mib-per-minute, '60000'], limits: {memory: 64MiB}");
    fails("memory", &memory, &["consumer", "memory limit"]);
}

#[test]
fn kill_minus_nine_leaves_no_container() {
    let _turn = counting();
    let Some(engine) = Engine::start() else { return };
    let scratch = Scratch::with(&demo_study("killed", &as_image("")));
    let start = |out: &str| {
        let arguments = ["run", ".", "--out", out, "--plain", "--design", "separate", "--set", "placebo=false"];
        let mut command = scratch.command(&arguments);
        command.env("DOCKER_HOST", engine.host()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("unladen starts")
    };
    let gone = || {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline && !engine.containers().is_empty() {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(engine.containers(), Vec::<String>::new());
        scratch.wait_until_nothing_left();
    };
    let mut child = start("killed");
    engine.await_container("consumer");
    child.kill().expect("it is killed");
    let _ = child.wait();
    gone();

    let mut child = start("interrupted");
    engine.await_container("consumer");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    gone();
}
