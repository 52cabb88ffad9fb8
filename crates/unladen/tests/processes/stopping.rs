//! Stopping: nothing is left, whatever a service does to stay.

use std::time::{Duration, Instant};

use unladen_processes::subject::{Ended, Launch, Limits};

use crate::scratch::{Groups, Scratch, eventually, is_gone, number_in_log, skipped, wait_for_log};

const GRACE: Duration = Duration::from_secs(10);

#[test]
fn a_service_that_minds_sigterm_ends_by_itself() {
    for groups in [Groups::With, Groups::Without] {
        let scratch = Scratch::new(groups);
        let mut plain = scratch.launcher.launch(&scratch.shell("plain", "exec sleep 100")).expect("it starts");
        let mut tidy = scratch
            .launcher
            .launch(&scratch.shell("tidy", "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done"))
            .expect("it starts");
        wait_for_log(&mut tidy, "ready");
        assert_eq!(plain.stop(GRACE).expect("it stops"), Ended::Signal(15), "{groups:?}");
        assert_eq!(tidy.stop(GRACE).expect("it stops"), Ended::Exit(7), "{groups:?}");
        assert_eq!(tidy.stop(GRACE).expect("stopping twice is fine"), Ended::Exit(7), "{groups:?}");
        assert!(tidy.log_tail(1).contains("bye"));
        assert!(is_gone(plain.pid()) && is_gone(tidy.pid()));
    }
}

#[test]
fn a_service_that_ignores_sigterm_is_killed_after_the_grace() {
    for groups in [Groups::With, Groups::Without] {
        let scratch = Scratch::new(groups);
        let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
        let mut running = scratch.launcher.launch(&scratch.shell("stubborn", script)).expect("it starts");
        wait_for_log(&mut running, "ready");
        let before = Instant::now();
        let ended = running.stop(Duration::from_millis(400)).expect("it stops");
        assert_eq!(ended, Ended::Killed(Duration::from_millis(400)), "{groups:?}");
        assert!(before.elapsed() >= Duration::from_millis(400) && before.elapsed() < Duration::from_secs(5));
        assert!(is_gone(running.pid()) && running.members().is_empty());
    }
}

#[test]
fn what_a_service_leaves_running_is_stopped_too() {
    // A child in the same session, one in a session of its own, and one that forked away twice.
    let script = "sleep 301 & echo same=$!; setsid sh -c 'echo own=$$; exec sleep 302' & \
                  setsid sh -c 'setsid sh -c \"echo twice=\\$\\$; exec sleep 303\" & exit 0'; echo ready; exec sleep 304";
    for groups in [Groups::With, Groups::Without] {
        let scratch = Scratch::new(groups);
        let mut running = scratch.launcher.launch(&scratch.shell("parent", script)).expect("it starts");
        for text in ["same=", "own=", "twice=", "ready"] {
            wait_for_log(&mut running, text);
        }
        let pids: Vec<u32> =
            ["same", "own", "twice"].map(|name| number_in_log(running.log(), name).expect("a pid") as u32).to_vec();
        assert!(eventually(GRACE, || running.members().len() == 4), "{groups:?}: {:?} of {pids:?}", running.members());
        assert_eq!(running.stop(GRACE).expect("it stops"), Ended::Signal(15), "{groups:?}");
        for pid in &pids {
            assert!(is_gone(*pid), "{groups:?}: {pid} of {pids:?} is left");
        }
        // The orphans were handed to this process, which has reaped them: no zombie is left either.
        for pid in &pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{groups:?}: {pid} is a zombie");
        }
    }
}

#[test]
fn a_daemon_without_any_trace_is_found_when_the_study_closes() {
    let script =
        "setsid sh -c 'setsid env -i sh -c \"echo bare=\\$\\$; exec sleep 306\" & exit 0'; echo ready; exec sleep 307";
    for groups in [Groups::With, Groups::Without] {
        let scratch = Scratch::alone(groups);
        let mut running = scratch.launcher.launch(&scratch.shell("parent", script)).expect("it starts");
        wait_for_log(&mut running, "bare=");
        let bare = number_in_log(running.log(), "bare").expect("a pid") as u32;
        running.stop(GRACE).expect("it stops");
        if running.cgroup().is_some() {
            assert!(is_gone(bare), "a control group holds everything");
        }
        scratch.launcher.close().expect("it closes");
        assert!(eventually(GRACE, || is_gone(bare)), "{groups:?}: {bare} is left");
    }
}

#[test]
fn dropping_kills_and_the_groups_are_removed() {
    let scratch = Scratch::new(Groups::With);
    let Some(_) = scratch.launcher.cgroup_version() else {
        skipped(&format!("no control groups: {}", scratch.launcher.no_cgroups().unwrap_or_default()));
        return;
    };
    let script = "trap '' TERM; sleep 305 & echo ready; while :; do sleep 0.05; done";
    let mut running = scratch.launcher.launch(&scratch.shell("app", script)).expect("it starts");
    wait_for_log(&mut running, "ready");
    let group = running.cgroup().expect("a group").accounting.clone();
    let (root, pids) =
        (group.parent().expect("the study's group").to_owned(), running.cgroup().expect("a group").processes());
    assert!(pids.contains(&running.pid()) && pids.len() >= 2, "{pids:?}");
    assert!(root.file_name().is_some_and(|name| name.to_string_lossy().starts_with("unladen-")));
    drop(running);
    assert!(pids.iter().all(|&pid| is_gone(pid)) && !group.exists() && root.exists());

    // Closing takes what nobody stopped.
    let mut forgotten = scratch.launcher.launch(&scratch.shell("app", script)).expect("it starts");
    wait_for_log(&mut forgotten, "ready");
    let guard = scratch.launcher.guard_pid();
    scratch.launcher.close().expect("it closes");
    assert!(is_gone(forgotten.pid()) && !root.exists() && is_gone(guard));
    assert_eq!(forgotten.alive(), Some(Ended::Signal(9)));
}

#[test]
fn limits_hold_and_are_refused_where_they_cannot() {
    let scratch = Scratch::new(Groups::Without);
    for limits in
        [Limits { cpus: Some(0.5), ..Limits::default() }, Limits { memory: Some(1 << 24), ..Limits::default() }]
    {
        let error = scratch.launcher.launch(&Launch { limits, ..scratch.shell("app", "true") }).expect_err("no groups");
        assert!(error.to_string().contains("Run as root") && error.to_string().contains("app"), "{error}");
    }

    let scratch = Scratch::on(Some(unladen_linux::hierarchy::Mounts::of_this_process()), true);
    if scratch.launcher.cgroup_version().is_none() {
        skipped(&format!("no control groups: {}", scratch.launcher.no_cgroups().unwrap_or_default()));
        return;
    }
    let limits = Limits { memory: Some(40 << 20), ..Limits::default() };
    let mut hungry = match scratch.launcher.launch(&Launch { limits, ..scratch.child("hungry", "hold", &["200"]) }) {
        Ok(running) => running,
        Err(error) => {
            skipped(&error.to_string());
            return;
        }
    };
    assert!(eventually(GRACE, || hungry.alive().is_some()), "200 MiB fit into 40 MiB");
    assert_eq!(hungry.alive(), Some(Ended::OutOfMemory));

    // A tenth of a core, 10 ms in every 100 ms, for 150 ms of work.
    let limits = Limits { cpus: Some(0.1), ..Limits::default() };
    let mut slow =
        scratch.launcher.launch(&Launch { limits, ..scratch.child("slow", "burn", &["150"]) }).expect("it starts");
    wait_for_log(&mut slow, "burned=");
    assert!(slow.started().elapsed() > Duration::from_secs(1), "{:?}", slow.started().elapsed());
}
