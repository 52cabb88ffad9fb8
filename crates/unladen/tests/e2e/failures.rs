//! What goes wrong for users: each with a message that says what to do, exit code 2, and nothing left behind.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use crate::harness::{Scratch, assert_nothing_left, closed_loop, counting, demo_study};

/// A study of a `sh` one-liner instead of a service.
fn shell_study(mark: &str, script: &str, ready: &str) -> String {
    format!(
        r#"
study: {mark}
warmup: 200ms
window: 1s
rounds: 2
ballast: false
services:
  app:
    command: [sh, -c, "{script} # {mark} ${{port.app}}"]
    ready: {ready}
load: {{url: "http://127.0.0.1:${{port.app}}/", rate: 50}}
variants:
  baseline: {{}}
  other: {{}}
"#
    )
}

#[test]
fn a_service_that_dies_at_start_is_named_with_its_last_words() {
    let scratch = Scratch::with(&shell_study(
        "dies-at-start",
        "echo cannot read config.toml; exit 7",
        "{tcp: '127.0.0.1:${port.app}', timeout: 5s}",
    ));
    scratch.run(&[]).ends_with(2).complains(&["app", "exit 7", "cannot read config.toml", "app.log"]);
    assert_nothing_left("# dies-at-start");
}

#[test]
fn a_service_that_never_gets_ready_is_given_up() {
    let scratch =
        Scratch::with(&shell_study("never-ready", "sleep 600", "{tcp: '127.0.0.1:${port.app}', timeout: 1s}"));
    scratch.run(&[]).ends_with(2).complains(&["app", "not ready after 1.0 s", "ready.timeout"]);
    assert_nothing_left("# never-ready");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let study = shell_study("no-program", "", "{}").replace("[sh, -c,", "[no-such-program-here,");
    let scratch = Scratch::with(&study);
    scratch.run(&[]).ends_with(2).complains(&["no-such-program-here", "PATH"]);
    assert_nothing_left("# no-program");
}

#[test]
fn a_service_that_dies_in_the_run_stops_the_study() {
    let _turn = counting();
    let scratch = Scratch::with(&demo_study(
        "dies-in-run",
        "  mortal:\n    services: {consumer: {args: [--die-after-s, '1.2']}}\n",
    ));
    scratch.run(&[]).ends_with(2).complains(&["consumer", "ended during the run", "--resume"]);
    // The void run is on record, and the folder can be judged.
    let journal = fs::read_to_string(scratch.path("out/journal.jsonl")).expect("a journal");
    assert!(journal.lines().last().expect("a line").contains("service_died"));
    scratch.unladen(&["report", "out"]).ends_with(0);
    scratch.assert_nothing_left();
}

#[test]
fn a_refused_port_is_told() {
    let _turn = counting();
    // Ready by being alive, but nothing listens.
    let scratch = Scratch::with(&shell_study("refused-port", "sleep 600", "{}"));
    scratch.run(&[]).ends_with(2).complains(&["127.0.0.1:", "refused"]);
    assert_nothing_left("# refused-port");
}

#[test]
fn an_unknown_host_is_told() {
    let study = shell_study("unknown-host", "sleep 600", "{}")
        .replace("http://127.0.0.1:${port.app}/", "http://no-such-host.invalid:8080/");
    let scratch = Scratch::with(&study);
    scratch.run(&[]).ends_with(2).complains(&["no-such-host.invalid"]);
    assert_nothing_left("# unknown-host");
}

#[test]
fn a_port_in_use_is_told_before_anything_starts() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let scratch = Scratch::with(&shell_study("port-in-use", "sleep 600", &format!("{{tcp: '{address}'}}")));
    // Where the variants take turns each has a network of its own, and nobody is in the way.
    scratch.run(&["--design", "separate"]).ends_with(2).complains(&[&address, "already in use", "app"]);
    assert_nothing_left("# port-in-use");
}

#[test]
fn a_study_that_cannot_be_read_names_file_line_and_remedy() {
    let scratch = Scratch::with(
        "study: x\nservices:\n  app: {command: [sleep, '1'], redy: {}}\nvariants: {baseline: {}}\nload: {url: 'http://127.0.0.1:1/'}\n",
    );
    scratch.run(&[]).ends_with(2).complains(&["study.yaml:3", "redy", "ready"]);
    scratch.write("study.yaml", "study: [x\n");
    scratch.run(&[]).ends_with(2).complains(&["study.yaml:"]);
    scratch.unladen(&["run", "nowhere"]).ends_with(2).complains(&["nowhere"]);
}

#[test]
fn a_folder_that_holds_a_study_is_not_overwritten() {
    let scratch = Scratch::with(&shell_study("taken", "exit 1", "{}"));
    fs::create_dir(scratch.path("out")).expect("a folder");
    scratch.write("out/study.yaml", "study: earlier\n");
    scratch.run(&[]).ends_with(2).complains(&["already holds a study", "--resume"]);
    assert_eq!(fs::read_to_string(scratch.path("out/study.yaml")).expect("the file"), "study: earlier\n");
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let scratch = Scratch::with(&shell_study("no-folder", "exit 1", "{}"));
    scratch.write("out", "a file where the folder should be");
    scratch.run(&[]).ends_with(2).complains(&["run folder", "--out"]);
}

/// A full disk, for real: a file system of one page in memory. Needs root; said so where it is not.
#[test]
fn a_full_disk_stops_the_study_and_keeps_what_there_is() {
    let _turn = counting();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a file system can be mounted by root only");
        return;
    }
    let scratch = Scratch::with(&demo_study("full-disk", "  same: {}\n"));
    fs::create_dir(scratch.path("small")).expect("a folder");
    let mount = |arguments: &[&str]| {
        std::process::Command::new(arguments[0])
            .args(&arguments[1..])
            .current_dir(scratch.path(""))
            .status()
            .is_ok_and(|status| status.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", "small"]) {
        println!("skipped: this sandbox may not mount");
        return;
    }
    let arguments = ["run", ".", "--plain", "--out", "small/out", "--warmup", "200ms", "--window", "500ms"];
    let output = scratch.unladen(&arguments);
    let left = fs::read_to_string(scratch.path("small/out/journal.jsonl")).unwrap_or_default();
    let unmounted = mount(&["umount", "small"]);
    assert!(unmounted, "the file system could not be unmounted");
    output.ends_with(2).complains(&["space"]);
    for line in left.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("whole lines only");
    }
    scratch.assert_nothing_left();
}

/// Without permission for cgroups unladen measures by the process tree and says so; limits are refused.
#[test]
fn without_cgroups_the_process_tree_is_read_and_limits_are_refused() {
    let _turn = counting();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root to become somebody else");
        return;
    }
    let scratch = Scratch::with(&closed_loop("no-cgroup", "  same: {}\n"));
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(scratch.path(""), open).expect("permissions");
    // `nobody` must be able to reach and run the executable: the build folder may be private to root.
    fs::copy(crate::harness::UNLADEN, scratch.path("unladen")).expect("a copy");
    let as_nobody = |arguments: &[&str]| {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "./unladen"]);
        command.args(arguments).current_dir(scratch.path("")).env("NO_COLOR", "1");
        crate::harness::CliOutput::new(&command.output().expect("setpriv starts"))
    };
    let output = as_nobody(&["run", ".", "--plain", "--out", "out", "--rounds", "1", "--window", "1s"]).ends_with(0);
    assert!(output.out.contains("process tree"), "{}", output.out);
    let findings = scratch.findings();
    let cpu = &crate::harness::finding(&findings, "same", "cpu_per_request").rounds[0];
    assert!(cpu.value > 10.0 && cpu.baseline > 10.0, "{cpu:?}");

    as_nobody(&["run", ".", "--plain", "--out", "limited", "--set", "services.consumer.limits.cpus=0.5"])
        .ends_with(2)
        .complains(&["cannot limit cpus of consumer", "Run as root"]);
    scratch.assert_nothing_left();
}
