//! Services as containers, by private engines that the tests start and stop, Docker's and Podman's: without a bridge, in the network of
//! the machine.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use crate::engine::{Engine, IMAGE};
use crate::harness::{
    CliOutput, Scratch, closed_loop, counting, demo_study, finding, on_a_core, on_all_cores, wait_until, with_ballast,
};

/// The consumer as a container in a variant, and with more keys of the service there.
fn as_image(more: &str) -> String {
    let command =
        "[__demo, consumer, --port, \"${port.consumer}\", --provider, \"http://127.0.0.1:${port.provider}/provider\"]";
    format!("  image:\n    services: {{consumer: {{image: '{IMAGE}', command: {command}{more}}}}}\n")
}

/// Weighs the consumer as a container, without tracing and with it, and looks at every run.
fn weighed(engine: &Engine, rounds: &str) -> Scratch {
    let traced = ", env: {OTEL_EXPORTER_OTLP_ENDPOINT: \"http://${sink.otlp_grpc}\"}, args: [--trace, otlp]";
    let variants = as_image("") + &as_image(traced).replace("  image:\n", "  traced:\n    spans_per_request: 4\n");
    let scratch = Scratch::with(
        &with_ballast(&demo_study("image", &variants)).replace("design: separate", "design: alternating"),
    );
    let output = engine.run(&scratch, &["--window", "1s", "--rounds", rounds]).ends_with(0);
    println!("{}", output.out);
    let runs = scratch.runs();
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
    assert!(runs.iter().any(|run| run.void.is_none() && run.variant == "traced"), "no run counts");
    assert_eq!(engine.containers(), Vec::<String>::new());
    scratch.assert_nothing_left();
    scratch
}

#[test]
fn a_service_costs_the_same_as_an_image_and_as_a_process() {
    let _turn = on_a_core();
    let Some(engine) = Engine::start() else { return };
    let scratch = weighed(&engine, "4");
    let findings = scratch.findings();
    // Of the rounds, not of the interval: a machine that others take away voids some, and of fewer than six there is none.
    let rounds = &finding(&findings, "image", "cpu_per_request").rounds;
    let mut shares: Vec<f64> = rounds.iter().map(|round| round.difference / round.baseline).collect();
    assert!(shares.len() >= 3, "{} rounds", shares.len());
    shares.sort_unstable_by(f64::total_cmp);
    // A container does the same work; what the engine itself does is not in its control group.
    let (least, middle, most) = (shares[0], shares[shares.len() / 2], shares[shares.len() - 1]);
    assert!(middle.abs() < 0.1 || (least < 0.0 && most > 0.0), "{shares:?}");
}

#[test]
fn a_container_of_podman_is_weighed() {
    let _turn = on_a_core();
    let Some(engine) = Engine::podman() else { return };
    weighed(&engine, "2");
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

    for engine in [Engine::start(), Engine::podman()].into_iter().flatten() {
        mistakes_are_told(&engine);
    }
}

fn mistakes_are_told(engine: &Engine) {
    let short = ["--rounds", "1", "--window", "1s", "--design", "separate"];
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
fn a_container_is_heated_up_on_all_cores() {
    let _turn = on_all_cores();
    for engine in [Engine::start(), Engine::podman()].into_iter().flatten() {
        is_heated_up_on_all_cores(&engine);
    }
}

/// On its own cores, while it is heated up on all, and then on its own again.
fn is_heated_up_on_all_cores(engine: &Engine) {
    let marked = as_image(", env: {UNLADEN_TEST: heated-image}");
    let study = closed_loop("heated", &marked) + "preheat: 1500ms\npreheat_cpuset: all\n";
    let scratch = Scratch::with(&study);
    let arguments =
        ["run", ".", "--out", "out", "--plain", "--rounds", "1", "--window", "1s", "--set", "placebo=false"];
    let mut command = scratch.command(&arguments);
    command.env("DOCKER_HOST", engine.host()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("unladen starts");
    let mut places = Vec::new();
    while child.try_wait().expect("it can be waited for").is_none() {
        places.extend(cores_with("UNLADEN_TEST=heated-image"));
        places.dedup();
        std::thread::sleep(Duration::from_millis(2));
    }
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        assert!(places.len() == 3 && places[0] == places[2] && places[0] != places[1], "{places:?}");
    }
    scratch.assert_nothing_left();
}

/// Cores on which the process may run that has this in its environment. To ask the engine for the process would take too long.
fn cores_with(mark: &str) -> Option<String> {
    let processes = fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
    let is_marked = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let status = fs::read_to_string(processes.into_iter().find(is_marked)?.join("status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix("Cpus_allowed_list:")?.trim().to_owned()))
}

#[test]
fn kill_minus_nine_leaves_no_container() {
    let _turn = counting();
    for engine in [Engine::start(), Engine::podman()].into_iter().flatten() {
        killed_it_leaves_no_container(&engine);
    }
}

fn killed_it_leaves_no_container(engine: &Engine) {
    let scratch = Scratch::with(&demo_study("killed", &as_image("")));
    let start = |out: &str| {
        let arguments = ["run", ".", "--out", out, "--plain", "--design", "separate", "--set", "placebo=false"];
        let mut command = scratch.command(&arguments);
        command.env("DOCKER_HOST", engine.host()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("unladen starts")
    };
    let gone = || {
        wait_until(Duration::from_secs(10), || engine.containers().is_empty());
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
