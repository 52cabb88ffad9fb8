//! unladen is killed, or the API server is away: the namespace goes all the same.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use unladen_linux::process::{self, Identity};

use crate::site::{PATIENCE, Site, cluster, command, eventually, kubectl_output, namespaces_of};

/// A child that is killed, and reaped, when it is no longer held.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may be over already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A stand-in for unladen with something deployed. The kubeconfig that its environment names is there no longer: the guard has been told.
fn deployed(folder: &Path) -> Killed {
    let words = command("unladen", &[folder.to_str().expect("plain text")]);
    let own = folder.join("kubeconfig");
    fs::copy(std::env::var("KUBECONFIG").expect("that of the account"), &own).expect("copied");
    let unladen = Command::new(&words[0]).args(&words[1..]).env("KUBECONFIG", &own).spawn().expect("it starts");
    let unladen = Killed(unladen);
    assert!(eventually(PATIENCE, || folder.join("pids").exists()), "nothing was deployed");
    fs::remove_file(&own).expect("removed");
    unladen
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect("it is there")
}

fn is_gone(id: &str) -> bool {
    let selector = format!("unladen.study={id}");
    let output =
        kubectl_output(&["get", "namespaces", "--selector", &selector, "--output=name", "--request-timeout=5s"]);
    output.status.success() && output.stdout.is_empty()
}

fn all_gone(folder: &Path) -> bool {
    let pids = read(folder, "pids");
    pids.lines().all(|pid| Identity::of(pid.parse().expect("a pid")).is_none_or(|root| !root.is_alive()))
}

#[test]
fn when_unladen_is_killed_its_namespace_goes() {
    if cluster().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let unladen = deployed(folder.path());
    let id = read(folder.path(), "id");
    assert!(!namespaces_of(&id).is_empty() && !all_gone(folder.path()), "it runs");
    drop(unladen);
    assert!(eventually(PATIENCE, || is_gone(&id) && all_gone(folder.path())), "{}", namespaces_of(&id));
}

#[test]
#[ignore = "takes the API server away from the other tests: `make cluster-test` runs it alone"]
fn when_the_api_server_is_away_as_well_the_namespace_goes_when_it_is_back() {
    const AWAY: Duration = Duration::from_secs(30);
    if cluster().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut unladen = Some(deployed(folder.path()));
    let id = read(folder.path(), "id");
    let begun = Instant::now();
    let mut killed = 0;
    while begun.elapsed() < AWAY {
        killed += kill_api_servers();
        // The guard finds nobody there.
        drop(unladen.take());
        std::thread::sleep(Duration::from_millis(100));
    }
    // The node starts it again after some seconds.
    assert!(killed > 3, "it was killed {killed} times");
    assert!(eventually(PATIENCE * 2, || is_gone(&id) && all_gone(folder.path())), "{}", namespaces_of(&id));
}

#[test]
#[ignore = "takes the API server away from the other tests: `make cluster-test` runs it alone"]
fn what_is_said_while_the_api_server_is_away_is_not_lost_and_comes_once() {
    let Some(site) = Site::new() else { return };
    let stack = site.stack(&site.told_by_a_pipe("/here/shop.yaml", ""));
    let (deployed, mut placed) = site.deploy(&stack).expect("it runs");
    let manifest = read(site.folder.path(), "shop.yaml");
    let first = format!("/here/shop.yaml: {manifest}");
    let said = || fs::read_to_string(stack.log.join("api.log")).unwrap_or_default();
    assert!(eventually(PATIENCE, || said() == first), "{}", said());
    assert_eq!(kill_api_servers(), 1);
    site.tell("meanwhile\n");
    let all = format!("{first}/here/pipe: meanwhile\n{first}");
    assert!(eventually(PATIENCE, || said() == all), "{}", said());
    assert_eq!(placed[0].running.alive(), None, "it runs all the time");
    let ended = placed[0].running.stop(Duration::from_secs(10)).expect("it stops");
    assert_eq!(ended, unladen_processes::subject::Ended::Exit(0));
    drop(placed);
    deployed.remove().expect("the namespace goes");
    site.close();
}

/// Kills those of the cluster of the tests; returns how many there were.
fn kill_api_servers() -> usize {
    let is_one = |pid: u32| {
        let text = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text("comm").trim() == "kube-apiserver" && text("cgroup").contains("unladen-cluster")
    };
    let servers: Vec<Identity> =
        process::all().iter().filter(|it| is_one(it.pid)).map(process::Stat::identity).collect();
    for server in &servers {
        server.signal(Signal::KILL).expect("root");
    }
    servers.len()
}
