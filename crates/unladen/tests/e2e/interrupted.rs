//! Ctrl-C and kill -9: a valid run folder, no stray process, no left-over cgroup; `--resume` goes on.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{CliOutput, Scratch, counting, demo_study};

/// Three variants, a second each: long enough to be met at work.
fn short(mark: &str) -> String {
    demo_study(mark, "  same: {}\n").replace("window: 2s", "window: 1s")
}

/// Starts the study and waits until its first run is in the journal and the next one is under way.
fn started(scratch: &Scratch) -> Child {
    let mut child = scratch
        .command(&["run", ".", "--out", "out", "--plain"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("unladen starts");
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        let journal = fs::read_to_string(scratch.path("out/journal.jsonl")).unwrap_or_default();
        if runs_in(&journal) >= 1 && has_consumer(scratch) {
            return child;
        }
        if child.try_wait().expect("a child").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let said = child.wait_with_output().expect("it can be waited for");
    panic!("no run was finished, with the next one under way, in 30 s:\n{}", String::from_utf8_lossy(&said.stderr));
}

/// Whether the second run has got as far as its consumer.
fn has_consumer(scratch: &Scratch) -> bool {
    let runs = fs::read_dir(scratch.path("out/runs")).map_or(0, Iterator::count);
    runs >= 2 && scratch.running().iter().any(|process| process.contains("__demo consumer"))
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).expect("a signal to a child");
}

fn whole_lines(scratch: &Scratch) -> usize {
    let journal = fs::read_to_string(scratch.path("out/journal.jsonl")).expect("a journal");
    for line in journal.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("whole lines only");
    }
    runs_in(&journal)
}

/// Lines that are runs; a calibration has a line of its own.
fn runs_in(journal: &str) -> usize {
    journal.lines().filter(|line| line.contains("\"round\":")).count()
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_resume_goes_on() {
    let _turn = counting();
    let scratch = Scratch::with(&short("ctrl-c"));
    let child = started(&scratch);
    signal(&child, rustix::process::Signal::INT);
    let output = CliOutput::new(&child.wait_with_output().expect("it ends")).ends_with(130);
    output.complains(&["interrupted", "--resume"]);
    scratch.wait_until_nothing_left();
    let before = whole_lines(&scratch);
    assert!(before >= 1);
    scratch.unladen(&["report", "out"]).ends_with(0);

    // Two rounds of three variants; the run that was interrupted is done again, as are void ones, and the finished ones are not.
    let finished = scratch.runs().iter().filter(|run| run.void.is_none()).count();
    let output = scratch.unladen(&["run", "--resume", "out", "--plain", "--rounds", "2"]);
    assert!(output.err.contains(&format!("{} runs, at least", 6 - finished)), "{}", output.err);
    // More than one line a run if the machine disturbed one and it was done again.
    assert!(whole_lines(&scratch) >= 6);
    assert_eq!(scratch.findings().rounds_begun, 2);
}

#[test]
fn kill_minus_nine_leaves_nothing_running_and_a_folder_that_goes_on() {
    let _turn = counting();
    let scratch = Scratch::with(&short("kill-9"));
    let mut child = started(&scratch);
    signal(&child, rustix::process::Signal::KILL);
    child.wait().expect("it ends");
    scratch.wait_until_nothing_left();
    let before = whole_lines(&scratch);
    scratch.unladen(&["report", "out"]).ends_with(0);
    scratch.unladen(&["run", "--resume", "out", "--plain", "--rounds", "1"]);
    assert!(whole_lines(&scratch) >= before.max(3));
}
