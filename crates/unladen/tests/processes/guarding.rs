//! The guard: unladen is killed with SIGKILL, and nothing stays.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use unladen_linux::process::Identity;

use crate::child;
use crate::scratch::{eventually, is_gone, number_in_log, skipped};

#[test]
fn when_unladen_is_killed_nothing_stays() {
    for groups in ["groups", "none"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let here = folder.path().to_str().expect("plain text");
        let words = child::command("launcher", &[here, groups]);
        let mut unladen = Command::new(&words[0]).args(&words[1..]).spawn().expect("it starts");
        let started = eventually(Duration::from_secs(20), || folder.path().join("roots").exists());
        if !started {
            let _ = unladen.kill();
        }
        assert!(started, "the services did not start");

        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("it is there");
        let guard: u32 = read("guard").parse().expect("a pid");
        let roots: Vec<String> = read("roots").lines().map(str::to_owned).collect();
        let pids: Vec<u32> = ["plain", "stubborn", "daemon"]
            .map(|name| number_in_log(&folder.path().join(format!("{name}.log")), "pid").expect("a pid") as u32)
            .to_vec();
        assert!(pids.iter().chain([&guard]).all(|&pid| !is_gone(pid)), "all run before the kill");

        let before = cpu_ticks(guard);
        let open = std::fs::read_dir(format!("/proc/{guard}/fd")).expect("one's own process").count();
        assert_eq!(open, 3, "the guard holds descriptors that are not its own");
        unladen.kill().expect("it can be killed");
        unladen.wait().expect("it was started here");
        let clean = eventually(Duration::from_secs(10), || {
            pids.iter().chain([&guard]).all(|&pid| is_gone(pid))
                && roots.iter().all(|root| !std::path::Path::new(root).exists())
        });
        for pid in &pids {
            if let Some(left) = Identity::of(*pid).filter(|_| !clean) {
                left.signal(Signal::KILL).expect("a child of this test");
            }
        }
        assert!(clean, "{groups}: something stayed of {pids:?}, guard {guard}, {roots:?}");
        assert!(before <= 2, "the guard burns CPU while it waits: {before} ticks");
    }
}

#[test]
fn without_the_right_to_make_groups_services_run_in_a_process_tree() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can become nobody");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open).expect("one's own folder");
    let words = child::command("nobody", &[folder.path().to_str().expect("plain text")]);
    let output = match Command::new(&words[0]).args(&words[1..]).uid(65_534).gid(65_534).current_dir("/").output() {
        Ok(output) => output,
        Err(error) => return skipped(&format!("nobody may not run this binary where it lies: {error}")),
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("none: /sys/fs/cgroup") && stdout.contains("may not be written"), "{stdout}");
    assert!(stdout.contains("limit: cannot limit memory of app") && stdout.contains("Run as root"), "{stdout}");
    assert!(stdout.contains("ended: signal 15 (terminated)"), "{stdout}");
}

fn cpu_ticks(pid: u32) -> u64 {
    unladen_linux::process::Stat::read(pid).map_or(0, |stat| stat.user_ticks + stat.system_ticks)
}
