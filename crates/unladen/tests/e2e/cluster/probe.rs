//! Probes in the pods instead of unladen on their node.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use unladen_linux::hierarchy::Mounts;
use unladen_linux::process::Identity;
use unladen_linux::tree::Family;
use unladen_probe::edges::{Edges, Source, Sources};
use unladen_probe::remote::Remote;

use super::{Cluster, IMAGE, OTEL, kill_all, processes, study};
use crate::harness::{Scratch, on_all_cores};
use crate::in_cluster::assert_whole;

/// A study whose pods have probes.
fn probed(name: &str) -> String {
    let cluster = format!("manifests: [deploy/], probe: pod, probe_image: {IMAGE}");
    study(name, OTEL).replace("manifests: [deploy/]", &cluster)
}

/// The shop of a pod, seen by the probe beside it and from the node.
fn sources(cluster: &Cluster) -> [Source; 2] {
    let namespace = cluster.namespaces().into_iter().find(|name| name.ends_with("-baseline")).expect("its namespace");
    let pods = cluster.kubectl(&["get", "pods", "--namespace", &namespace, "--output=json"]);
    let pods: Value = serde_json::from_str(&pods).expect("JSON");
    let pod = &pods["items"][0];
    let probes = pod["spec"]["ephemeralContainers"].as_array().expect("probes");
    let probe = probes.iter().find(|it| it["targetContainerName"] == "shop").expect("that of the shop");
    let (text, uid) = (|value: &Value| value.as_str().expect("a text").to_owned(), &pod["metadata"]["uid"]);
    let port = text(probe["args"].as_array().and_then(|all| all.last()).expect("a port"));
    let address = format!("{}:{port}", text(&pod["status"]["podIP"])).parse().expect("an address");
    let remote = Some(Remote { address, secret: text(&probe["env"][0]["value"]) });
    let of_pod = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|it| it.contains(&text(uid)));
    let pid = processes(b"/unladen\0__demo\0consumer").into_iter().find(of_pod).expect("the shop");
    let family = |root: Identity| Family { root, mark: "none".to_owned() };
    let there = Source { family: family(Identity { pid: 0, start_ticks: 0 }), cgroup: None, remote };
    let root = Identity::of(pid).expect("it runs");
    let here = Source { family: family(root), cgroup: Mounts::of_process(pid).group(), remote: None };
    assert!(here.cgroup.is_some(), "the node has a group for it");
    [there, here]
}

#[test]
fn a_probe_in_the_pod_counts_what_the_node_counts() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&probed("probed").replace("window: 1s", "window: 4s"));
    let mut child = cluster.start(&scratch);
    thread::sleep(Duration::from_secs(2));
    let sources = sources(&cluster);
    let mut edges = Edges::new(Sources { targets: sources.into(), unladen: std::process::id(), compilers: false });
    let before = edges.read();
    thread::sleep(Duration::from_secs(4));
    let after = edges.read();
    assert_eq!(edges.failure(), None);
    let used = |at: usize| after.cpu_ns[at].expect("a reading") - before.cpu_ns[at].expect("a reading");
    let (there, here) = (used(0), used(1));
    println!("by the probe in the pod {there} ns, from the node {here} ns");
    assert!(here > 50_000_000 && there.abs_diff(here) * 100 <= here, "{there} ns and {here} ns");
    let code = child.wait().expect("it ends").code();
    assert_eq!(code, Some(0), "{}", fs::read_to_string(scratch.path("err")).unwrap_or_default());
    assert_read(&scratch, 3);
    cluster.wait_until_nothing_left(&scratch);
}

/// So many runs count, with all that is asked of a study, and each process was read by its control group.
#[track_caller]
fn assert_read(scratch: &Scratch, count: usize) {
    assert_whole(scratch, count);
    for run in scratch.runs().iter().filter(|run| run.void.is_none()) {
        let names: Vec<&str> = run.processes.iter().map(|it| it.service.as_str()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        for process in &run.processes {
            let source = format!("{:?}", process.cpu_source);
            assert!(source.starts_with("Cgroup") && process.cpu_ns.is_some_and(|ns| ns > 1_000_000), "{process:?}");
            assert!(process.rss.is_some_and(|bytes| bytes > 1 << 20) && process.pss.is_some(), "{process:?}");
        }
    }
}

#[test]
fn a_study_in_the_cluster_needs_no_right_on_its_node() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&probed("modest"));
    // Nobody enforces it here; the cluster must take it.
    scratch.write("deploy/network.yaml", include_str!("../../../../../deploy/kubernetes/network-of-study.yaml"));
    let sent = ["run", ".", "--in-cluster", "--image", IMAGE, "--node", "node-1", "--out", "out", "--rounds", "2"];
    let printed = cluster.ask(&scratch, &cluster.user, &[&sent[..], &["--print"]].concat()).ends_with(0).out;
    assert!(printed.contains("runAsNonRoot: true") && !printed.contains("privileged"), "{printed}");
    assert!(!printed.contains("hostPID") && !printed.contains("hostPath"), "{printed}");
    let output = cluster.ask(&scratch, &cluster.user, &sent).ends_with(0);
    assert!(output.out.contains("OpenTelemetry (otel)"), "{}", output.out);
    assert_read(&scratch, 6);
    cluster.wait_until_nothing_left(&scratch);
}

#[test]
fn a_probe_that_is_killed_voids_the_round_and_the_study_can_go_on() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&probed("killed-probe").replace("window: 1s", "window: 4s"));
    let mut child = cluster.start(&scratch);
    assert!(kill_all(b"/unladen\0__probe\0") > 0, "probes run");
    let code = child.wait().expect("it ends").code();
    let said = fs::read_to_string(scratch.path("err")).expect("its words");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("probe") && said.contains("unladen run --resume"), "{said}");
    cluster.wait_until_nothing_left(&scratch);
    cluster.ask(&scratch, &cluster.account, &["run", ".", "--resume", "out", "--plain"]).ends_with(0);
    assert_read(&scratch, 3);
    cluster.wait_until_nothing_left(&scratch);
}

#[test]
fn a_probe_whose_image_is_missing_is_told() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let text = probed("no-image").replace(&format!("probe_image: {IMAGE}"), "probe_image: no-such-image:1");
    let scratch = cluster.scratch(&text);
    let said = ["deployment/shop (service shop", "on.kubernetes.probe_image", "no-such-image:1"];
    cluster.run(&scratch, &[]).ends_with(2).complains(&said);
    cluster.assert_nothing_left(&scratch);
}
