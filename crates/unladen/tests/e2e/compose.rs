//! Compose projects, by a private engine with bridges in a network namespace of its own.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use unladen_journal::role::Role;

use crate::engine::{Engine, IMAGE};
use crate::harness::{
    CliOutput, Scratch, assert_costs_in_every_round, assert_ledger_is_whole, counted, counting, on_a_core, wait_until,
};

/// Two services as somebody may have them who knows nothing of unladen: with a port, a fixed name, restarts, volumes.
fn compose() -> String {
    format!(
        r#"
services:
  api:
    image: {IMAGE}
    container_name: shop-api
    command: [__demo, consumer, --listen, 0.0.0.0, --port, "8080", --provider, "http://provider:8081/provider"]
    ports: ["8080:8080"]
    restart: always
    depends_on: {{provider: {{condition: service_healthy}}}}
  provider:
    image: {IMAGE}
    command: [__demo, provider, --listen, 0.0.0.0, --port, "8081"]
    healthcheck: {{test: [CMD, /unladen, --version], interval: 1s}}
    volumes: ["data:/data", /anonymous]
volumes:
  data: {{name: shop-data}}
"#
    )
}

/// Spans to the sink, and a job that ends when it is done.
fn otel() -> String {
    format!(
        r#"
services:
  api:
    command: [__demo, consumer, --listen, 0.0.0.0, --port, "8080", --provider, "http://provider:8081/provider", --trace, otlp]
    environment: {{OTEL_EXPORTER_OTLP_ENDPOINT: "http://${{UNLADEN_SINK_OTLP_GRPC}}"}}
  job: {{image: "{IMAGE}", command: [--version]}}
"#
    )
}

/// A short study of one variant and its placebo.
fn study(mark: &str) -> String {
    format!(
        r#"
study: {mark}
on: {{compose: [compose.yaml]}}
warmup: 300ms
window: 700ms
alone: 300ms
rounds: 1
ballast: false
repeat: {{at_most: 0%}}
drain: {{quiet: 300ms, limit: 2s}}
design: separate
services: {{api: {{ready: {{http: "http://api:8080/ready", timeout: 10s}}, stop: {{grace: 3s}}}}}}
variants: {{baseline: {{}}}}
load: {{url: "http://api:8080/work", connections: 4}}
"#
    )
}

fn has_compose() -> bool {
    let found = Command::new("docker-compose").arg("version").output().is_ok();
    if !found {
        println!("SKIPPED: docker-compose is not installed: `make deps` installs it");
    }
    found
}

/// Everything that an engine holds: containers, networks, volumes.
fn everything(engine: &Engine) -> BTreeSet<String> {
    let lists = [
        &["ps", "-a", "--format", "container {{.Names}}"][..],
        &["network", "ls", "--format", "network {{.Name}}"],
        &["volume", "ls", "--format", "volume {{.Name}}"],
    ];
    lists.iter().flat_map(|list| engine.docker(list).1.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// A container, a network and a volume of the user's own, with the names that the Compose file has.
fn bystanders(engine: &Engine) -> BTreeSet<String> {
    for command in [
        &["network", "create", "shop"][..],
        &["volume", "create", "shop-data"],
        &["run", "-d", "--name", "shop-api", "-v", "shop-data:/data", IMAGE, "__demo", "provider", "--port", "8081"],
    ] {
        let (is_made, said) = engine.docker(command);
        assert!(is_made, "{said}");
    }
    everything(engine)
}

fn command(engine: &Engine, scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = scratch.command(arguments);
    command.env("DOCKER_HOST", engine.host());
    command
}

fn start(engine: &Engine, scratch: &Scratch, out: &str) -> std::process::Child {
    let mut command = command(engine, scratch, &["run", ".", "--out", out, "--plain"]);
    command.stdout(Stdio::null()).stderr(fs::File::create(scratch.path("err")).expect("a file"));
    command.spawn().expect("unladen starts")
}

#[test]
fn a_compose_file_is_weighed_as_it_is() {
    let _turn = on_a_core();
    let Some(engine) = Engine::with_bridge().filter(|_| has_compose()) else { return };
    let before = bystanders(&engine);
    let scratch = Scratch::new();
    // Every health check starts a process by way of the engine, beside the load generator.
    scratch.write("compose.yaml", &compose().replace("interval: 1s", "interval: 4s"));
    scratch.write("otel.yaml", &otel());
    let url = ["--url", "http://api:8080/work", "--rate", "300", "--connections", "8"];
    let sides = ["--compose", "compose.yaml", "--service", "api", "--variant", "otel=otel.yaml"];
    let lengths = ["--window", "1500ms", "--warmup", "500ms", "--alone", "400ms", "--rounds", "2"];
    let arguments = [&["compare"], &url[..], &sides, &lengths, &["--out", "out", "--plain"]].concat();
    let output = CliOutput::new(&command(&engine, &scratch, &arguments).output().expect("unladen starts"));
    let output = output.ends_with(0);
    println!("{}{}", output.err, output.out);
    assert!(output.err.contains("compose:\n    - compose.yaml"), "{}", output.err);

    let runs = scratch.runs();
    for run in counted(&runs) {
        // The job may have been caught while it ended.
        let lasting: Vec<_> = run.processes.iter().filter(|it| it.service != "job").collect();
        let names: Vec<_> = lasting.iter().map(|it| (it.service.as_str(), it.role)).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.contains(&("api", Some(Role::Subject))) && names.contains(&("provider", Some(Role::Dependency))));
        for process in lasting {
            assert!(process.image.as_ref().is_some_and(|id| id.starts_with("sha256:")), "{process:?}");
            assert!(process.cpu_ns.is_some_and(|ns| ns > 0), "{process:?}");
        }
        if run.variant == "otel" {
            assert_ledger_is_whole(run, 500);
        }
        let log = fs::read_to_string(scratch.path("out").join(&run.dir).join("logs/api.log")).expect("a log");
        assert!(log.contains("consumer listens on"), "{log}");
    }
    // Tracing costs something in every round.
    let findings = scratch.findings();
    assert_costs_in_every_round(&findings, "otel");
    assert_eq!(everything(&engine), before, "nothing is left, and nobody else was touched");
    scratch.assert_nothing_left();
}

/// Podman has systemd make health checks, which need not be there: the project has none.
#[test]
fn a_project_of_podman_is_weighed_and_leaves_nothing() {
    let _turn = counting();
    let Some(engine) = Engine::podman_with_bridge().filter(|_| has_compose()) else { return };
    let before = everything(&engine);
    let file = compose().replace("service_healthy", "service_started");
    let file: String =
        file.lines().filter(|line| !line.contains("healthcheck")).map(|line| format!("{line}\n")).collect();
    let variants = "{baseline: {}, otel: {compose: [otel.yaml], spans_per_request: 4}}";
    let scratch = Scratch::with(&study("podman").replace("{baseline: {}}", variants));
    scratch.write("compose.yaml", &file);
    scratch.write("otel.yaml", &otel());
    let run = command(&engine, &scratch, &["run", ".", "--out", "out", "--plain"]).output().expect("unladen starts");
    CliOutput::new(&run).ends_with(0);
    for run in &scratch.runs() {
        for process in run.processes.iter().filter(|it| it.service != "job") {
            assert!(process.image.as_ref().is_some_and(|id| id.starts_with("sha256:")), "{process:?}");
            assert!(process.cpu_ns.is_some_and(|ns| ns > 0), "{process:?}");
        }
        if run.variant == "otel" {
            let ledger = run.ledger.as_ref().expect("a ledger");
            assert_eq!((ledger.lost, ledger.duplicates, ledger.unexplained), (0, 0, 0), "{ledger:?}");
            assert!(ledger.saved > 500, "{ledger:?}");
        }
    }
    assert_eq!(everything(&engine), before);

    let mut child = start(&engine, &scratch, "killed");
    engine.await_container("_api_");
    child.kill().expect("it is killed");
    let _ = child.wait();
    wait_until(Duration::from_secs(20), || everything(&engine) == before);
    assert_eq!(everything(&engine), before);
    scratch.wait_until_nothing_left();
}

#[test]
fn replicas_share_the_load_and_kept_volumes_live_as_long_as_the_study() {
    let _turn = on_a_core();
    let Some(engine) = Engine::with_bridge().filter(|_| has_compose()) else { return };
    let before = everything(&engine);
    let keep = "{compose: {files: [compose.yaml, more.yaml], volumes: keep, profiles: [more]}}";
    // Two replicas would answer as fast as a closed loop asks, and one whose load sets the pace is refused.
    let study = study("replicas").replace("connections: 4", "connections: 4, rate: 300");
    let scratch = Scratch::with(&study.replace("{compose: [compose.yaml]}", keep));
    scratch.write("compose.yaml", &compose().replace("    container_name: shop-api\n", ""));
    let second = format!(
        "services: {{api: {{deploy: {{replicas: 2}}}}, more: {{image: '{IMAGE}', profiles: [more], command: [__demo, provider, --port, '1']}}}}"
    );
    scratch.write("more.yaml", &second);
    let mut child = start(&engine, &scratch, "out");
    let mut kept = BTreeSet::new();
    while child.try_wait().expect("it can be waited for").is_none() {
        let (_, volumes) = engine.docker(&["volume", "ls", "-q"]);
        kept.extend(volumes.lines().filter(|name| name.ends_with("_data")).map(str::to_owned));
        std::thread::sleep(Duration::from_millis(300));
    }
    let err = fs::read_to_string(scratch.path("err")).expect("what it said");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{err}");
    assert_eq!(kept.len(), 2, "one for the baseline, one for the placebo: {kept:?}");
    for run in &scratch.runs() {
        let cpu = |service: &str| {
            run.processes.iter().filter(|it| it.service == service).map(|it| it.cpu_ns.unwrap_or(0)).collect::<Vec<_>>()
        };
        let (api, more) = (cpu("api"), cpu("more"));
        assert_eq!((api.len(), more.len()), (2, 1), "{:?}", run.processes);
        let (least, most) = (api[0].min(api[1]), api[0].max(api[1]));
        assert!(least * 3 > most, "connections are dealt round: {api:?}");
    }
    assert_eq!(everything(&engine), before);
    scratch.assert_nothing_left();
}

#[test]
fn what_goes_wrong_with_a_project_is_told() {
    let _turn = counting();
    let Some(engine) = Engine::with_bridge().filter(|_| has_compose()) else { return };
    let before = everything(&engine);
    let fails = |mark: &str, compose: &str, study: &str, words: &[&str]| {
        let scratch = Scratch::with(study);
        scratch.write("compose.yaml", compose);
        let output = command(&engine, &scratch, &["run", ".", "--out", "out", "--plain"]).output();
        CliOutput::new(&output.expect("unladen starts")).ends_with(2).complains(words);
        assert_eq!(everything(&engine), before, "{mark}");
        scratch.assert_nothing_left();
    };
    let of_file = |mark: &str, from: &str, to: &str, words: &[&str]| {
        let text = compose();
        assert!(text.contains(from), "{from}");
        fails(mark, &text.replace(from, to), &study(mark), words);
    };
    let of_study = |mark: &str, from: &str, to: &str, words: &[&str]| {
        let text = study(mark);
        assert!(text.contains(from), "{from}");
        fails(mark, &compose(), &text.replace(from, to), words);
    };
    let image = format!("image: {IMAGE}\n    container_name");
    of_file("syntax", "services:", "services: [", &["Compose could not read the files", "compose.yaml"]);
    of_file(
        "unknown-key",
        "    restart: always",
        "    restrat: always",
        &["Compose could not read the files", "restrat"],
    );
    of_file("image", &image, "image: no-such-image:1\n    container_name", &["no-such-image:1", "docker pull"]);
    of_file("build", &image, "build: .\n    container_name", &["`api` has a `build:`", "image: api:1"]);
    of_file("privileged", "    restart: always", "    privileged: true", &["`api` wants to be privileged"]);
    of_file(
        "exits",
        "[__demo, consumer,",
        "[no-such-command,",
        &["api ended before it was ready", "exit 2", "no-such-command", "api.log"],
    );
    of_file(
        "unhealthy",
        "[CMD, /unladen, --version]",
        "[CMD, /unladen, no-such-check], retries: 1",
        &["Compose could not start the project", "unhealthy"],
    );
    let absent = study("absent").replace("api", "apo");
    fails("absent", &compose(), &absent, &["there is no service `apo` in", "compose.yaml", "api, provider"]);
    of_study("published", "http://api:8080/work", "http://127.0.0.1:8080/work", &["not published", "api"]);
    of_study(
        "never-ready",
        "/ready\", timeout: 10s",
        "/ready\", timeout: 10s, log: nothing-of-it",
        &["api was not ready after 10.0 s", "nothing-of-it"],
    );
    of_study(
        "no-check",
        "{http: \"http://api:8080/ready\", timeout: 10s}",
        "{healthy: true}",
        &["api", "health check"],
    );
    let limit = "limits: {memory: 64MiB}, stop: {grace: 3s}";
    let leaks = compose().replace("[__demo, consumer,", "[__demo, consumer, --leak-mib-per-minute, '60000',");
    fails("memory", &leaks, &study("memory").replace("stop: {grace: 3s}", limit), &["api", "memory limit"]);
    let dies = compose().replace("[__demo, consumer,", "[__demo, consumer, --die-after-s, '2',");
    let long = study("dies").replace("window: 700ms", "window: 5s");
    fails("dies", &dies, &long, &["api", "ended during the run"]);
}

#[test]
fn without_compose_without_an_engine_and_without_permission_the_remedy_is_told() {
    let _turn = counting();
    if !has_compose() {
        return;
    }
    let scratch = Scratch::with(&study("absent"));
    scratch.write("compose.yaml", &compose());
    let run = |out: &str| scratch.command(&["run", ".", "--out", out, "--plain"]);
    let told = |command: &mut Command| CliOutput::new(&command.output().expect("unladen starts")).ends_with(2);
    told(run("tool").env("PATH", "/nowhere").env("HOME", "/nowhere").env_remove("DOCKER_CONFIG"))
        .complains(&["Compose is not installed", "docker-compose-plugin"]);
    told(run("engine").env("DOCKER_HOST", "unix:///nowhere/docker.sock"))
        .complains(&["/nowhere/docker.sock", "docker info"]);
    let Some(engine) = Engine::start() else { return };
    let open = |path: &std::path::Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("permissions");
    };
    open(&scratch.path(""));
    // Nobody. What it executes need not be its to read where the sources are, but its own executable is there already.
    let mut nobody = run("nobody");
    nobody.env("DOCKER_HOST", engine.host()).uid(65_534).gid(65_534);
    match nobody.output() {
        Ok(output) => {
            CliOutput::new(&output).ends_with(2).complains(&["may not use the engine's socket", "docker"]);
        }
        Err(error) => println!("SKIPPED: nobody may not execute unladen here: {error}"),
    }
    scratch.assert_nothing_left();
}

#[test]
fn a_port_that_is_taken_is_told_before_a_stranger_is_measured() {
    let _turn = counting();
    let Some(engine) = Engine::start().filter(|_| has_compose()) else { return };
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = stranger.local_addr().expect("an address").port().to_string();
    let text = study("taken").replace("8080", &port);
    let file = format!(
        "services: {{api: {{image: '{IMAGE}', network_mode: host, command: [__demo, provider, --port, '{port}']}}}}"
    );
    let scratch = Scratch::with(&text);
    scratch.write("compose.yaml", &file);
    let run = |out: &str| {
        let output = command(&engine, &scratch, &["run", ".", "--out", out, "--plain"]).output();
        CliOutput::new(&output.expect("unladen starts"))
    };
    run("taken").ends_with(2).complains(&[&format!("127.0.0.1:{port} is already in use"), "api"]);
    drop(stranger);
    // With nobody there the network of the machine does as well.
    scratch.write("study.yaml", &text.replace("/work", "/provider").replace("/ready", "/provider"));
    run("free").ends_with(0);
    assert_eq!(engine.containers(), Vec::<String>::new());
    scratch.assert_nothing_left();
}

#[test]
fn kill_minus_nine_and_ctrl_c_leave_nothing_of_a_project() {
    let _turn = counting();
    let Some(engine) = Engine::with_bridge().filter(|_| has_compose()) else { return };
    let before = bystanders(&engine);
    let scratch = Scratch::with(&study("killed").replace("window: 700ms", "window: 30s"));
    scratch.write("compose.yaml", &compose());
    let gone = || {
        wait_until(Duration::from_secs(20), || everything(&engine) == before);
        assert_eq!(everything(&engine), before);
        scratch.wait_until_nothing_left();
    };
    // While Compose works, and in the window. Nobody has an exit code who is killed.
    for (signal, code) in [(Signal::KILL, None), (Signal::INT, Some(130))] {
        for (phase, service, wait) in [("starting", "provider", 0), ("measuring", "unladen-", 4)] {
            let mut child = start(&engine, &scratch, &format!("{phase}-{signal:?}"));
            engine.await_container(service);
            std::thread::sleep(Duration::from_secs(wait));
            kill_process(Pid::from_child(&child), signal).expect("a signal");
            assert_eq!(child.wait().expect("it ends").code(), code);
            gone();
        }
    }
    // A container that somebody kills in the window voids the run.
    let child = start(&engine, &scratch, "container");
    let name = engine.await_container("_api_");
    std::thread::sleep(Duration::from_secs(5));
    engine.docker(&["kill", &name]);
    let output = child.wait_with_output().expect("it ends");
    let err = fs::read_to_string(scratch.path("err")).expect("what it said");
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("api") && err.contains("signal 9"), "{err}");
    gone();
}

#[test]
fn a_study_is_made_of_a_compose_file() {
    if !has_compose() {
        return;
    }
    let scratch = Scratch::new();
    scratch.write("compose.yaml", &compose());
    let made = scratch.unladen(&["import", "compose", "compose.yaml"]).ends_with(0);
    let plan = unladen_study::read::parse(&made.out, "study.yaml", &[]).expect("a study");
    assert_eq!(plan.stacked().collect::<Vec<_>>(), ["api"]);
    assert_eq!(plan.load.url, "http://api:8080/");
    scratch
        .unladen(&["import", "compose", "none.yaml"])
        .ends_with(2)
        .complains(&["Compose could not read", "none.yaml"]);
}
