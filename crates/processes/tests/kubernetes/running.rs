//! What runs: where it is, what it costs, what it says, and how it ends.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use unladen_linux::process::Identity;
use unladen_linux::{Cgroup, Version};
use unladen_processes::subject::{Ended, Limits, Placed, Readiness, Running};

use crate::site::{PATIENCE, Site, container, eventually, kubectl, shop};

const TICK: Duration = Duration::from_millis(20);

fn readiness() -> Readiness {
    Readiness { http: None, tcp: None, log: None, healthy: true, timeout: PATIENCE, network: None }
}

/// What a pod answers that is asked from within its network.
fn ask(placed: &Placed, path: &str) -> String {
    let to = SocketAddr::new(placed.address, 8080);
    let network = placed.network.as_ref().expect("it runs");
    let stream = network.enter(|| TcpStream::connect(to)).expect("entered");
    let mut stream = stream.expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// CPU time of a group, s.
fn cpu(cgroup: &Cgroup) -> f64 {
    let number = |text: &str| text.trim().parse::<f64>().expect("a number");
    match cgroup.version {
        Version::V1 => number(&fs::read_to_string(cgroup.accounting.join("cpuacct.usage")).expect("there")) / 1e9,
        Version::V2 => {
            let text = fs::read_to_string(cgroup.accounting.join("cpu.stat")).expect("there");
            number(text.lines().find_map(|line| line.strip_prefix("usage_usec ")).expect("usage")) / 1e6
        }
    }
}

#[test]
fn the_containers_of_two_pods_are_services_with_addresses_networks_cpu_and_logs() {
    let Some(site) = Site::new() else { return };
    let probe = ", readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}";
    let both = [
        container("app", "[serve, ':8080']", probe),
        container("side", "[read, /side/words]", ", volumeMounts: [{name: w, mountPath: /side}]"),
    ];
    let words = "
      volumes: [{name: w, configMap: {name: words}}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: words}, data: {words: \"sink ${UNLADEN_SINK_OTLP}\\n\"}}
";
    let mut stack = site.stack(&(shop(&both.join("\n")) + words));
    stack.env.insert("UNLADEN_SINK_OTLP".to_owned(), "127.0.0.1:4317".to_owned());
    stack.pad = 7;
    let changes = stack.services.get_mut("api").expect("it");
    changes.container = Some("app".to_owned());
    changes.replicas = Some(2);
    changes.env.insert("MODE".to_owned(), "otel".to_owned());
    changes.labels.insert("inject".to_owned(), "yes".to_owned());
    changes.patch = Some(
        json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"containers": [{"name": "side", "workingDir": "/"}]}}),
    );
    changes.limits = Limits { memory: Some(256 << 20), ..Limits::default() };

    let mut seen = BTreeSet::new();
    let mut see = |network: &Arc<unladen_linux::Netns>| {
        seen.insert(network.name().expect("a name"));
    };
    let (deployed, mut placed) =
        site.launcher.deploy(&stack, PATIENCE, &mut see, &AtomicBool::new(false)).expect("it runs");

    let mut names: Vec<(String, u32)> =
        placed.iter().map(|it| (it.running.service().to_owned(), it.running.replica())).collect();
    names.sort();
    let both = ["api", "api/side"];
    let expected: Vec<(String, u32)> =
        both.iter().flat_map(|name| [0, 1].map(|replica| ((*name).to_owned(), replica))).collect();
    assert_eq!(names, expected);
    let networks: BTreeSet<_> =
        placed.iter().map(|it| it.network.as_ref().expect("it runs").name().expect("a name")).collect();
    assert_eq!((networks.len(), &networks), (2, &seen), "each pod has a network, which was handed over");
    for one in placed.iter_mut().filter(|one| one.running.service() == "api") {
        one.running.wait_ready(&readiness(), &AtomicBool::new(false)).expect("its probe passes");
        assert!(ask(one, "/").starts_with("HTTP/1.1 200"), "it answers in its network");
        let cgroup = one.running.cgroup().expect("the kubelet has made one").clone();
        let before = cpu(&cgroup);
        assert!(ask(one, "/burn?ms=500").contains("burnt"));
        let used = cpu(&cgroup) - before;
        // The program itself takes some ms; nobody else is in the group.
        assert!((0.5..0.6).contains(&used), "500 ms were burnt, {used} s counted");
        let environment = fs::read(format!("/proc/{}/environ", one.running.pid())).expect("it is there");
        let environment = String::from_utf8_lossy(&environment).into_owned();
        assert!(environment.contains("MODE=otel\0") && environment.contains("UNLADEN_PAD=xxxxxxx\0"), "{environment}");
        assert!(one.running.image().is_some_and(|image| image.contains("sha256:")), "{:?}", one.running.image());
    }
    let said = |log: &str| fs::read_to_string(stack.log.join(log)).unwrap_or_default();
    for log in ["api.side.log", "api.side-1.log"] {
        let expected = "/side/words: sink 127.0.0.1:4317\n";
        assert!(eventually(PATIENCE, || said(log) == expected), "{log}: {:?}", said(log));
    }
    let admitted = &deployed.admitted()["api"];
    assert_eq!(admitted["metadata"], json!({"labels": {"app": "shop", "inject": "yes"}, "annotations": {"a": "b"}}));
    let spec: &Value = &admitted["spec"]["containers"];
    assert_eq!((&spec[0]["env"], &spec[1]["workingDir"]), (&json!([{"name": "MODE", "value": "otel"}]), &json!("/")));
    assert_eq!(spec[0]["resources"]["limits"]["memory"], json!("268435456"));

    for one in &mut placed {
        one.running.ask_to_stop();
    }
    for mut one in placed {
        let ended = one.running.stop(Duration::from_secs(10)).expect("it stops");
        assert_eq!(ended, Ended::Exit(0), "{}: SIGTERM comes by way of the cluster", one.running.service());
    }
    deployed.remove().expect("the namespace goes");
    site.close();
}

#[test]
fn what_is_killed_has_ended_though_the_kubelet_starts_it_anew() {
    let Some(site) = Site::new() else { return };
    let stack = site.stack(&shop(&container("app", "[serve, ':8080']", "")));
    let (deployed, mut placed) = site.deploy(&stack).expect("it runs");
    let one = &mut placed[0].running;
    assert_eq!(one.alive(), None);
    let root = Identity::of(one.pid()).expect("it is there");
    root.signal(Signal::KILL).expect("one's own pod");
    assert!(eventually_ends(one));
    assert_eq!(one.alive(), Some(Ended::Signal(9)));
    assert!(eventually(PATIENCE, || {
        let names = kubectl(&[
            "get",
            "pods",
            "--all-namespaces",
            "--output=jsonpath={range .items[*]}{.metadata.namespace} {.status.containerStatuses[0].restartCount}\n{end}",
        ]);
        names.lines().any(|line| line.contains(&site.id) && line.ends_with(" 1"))
    }));
    assert_eq!(one.stop(Duration::from_secs(5)).expect("nothing is left"), Ended::Signal(9));
    drop((deployed, placed));
    site.close();
}

#[test]
fn what_runs_out_of_memory_later_is_told() {
    let Some(site) = Site::new() else { return };
    let limits = ", resources: {limits: {memory: 32Mi}}";
    let stack = site.stack(&site.told_by_a_pipe("/dev/zero", limits));
    let (deployed, mut placed) = site.deploy(&stack).expect("it runs");
    let one = &mut placed[0].running;
    assert_eq!(one.alive(), None);
    site.tell("go on\n");
    assert!(eventually_ends(one));
    assert_eq!(one.alive(), Some(Ended::OutOfMemory));
    assert!(one.log_tail(1).ends_with("pipe: go on"), "{}", one.log_tail(9));
    drop((deployed, placed));
    site.close();
}

fn eventually_ends(running: &mut Running) -> bool {
    (0..1000).any(|_| {
        std::thread::sleep(TICK);
        running.alive().is_some()
    })
}

#[test]
fn a_set_and_a_pod_on_every_node_run_as_well() {
    let Some(site) = Site::new() else { return };
    let deployment = shop(&container("app", "[serve, ':8080']", ""));
    let set = deployment.replace("kind: Deployment", "kind: StatefulSet").replace("name: shop}\n", "name: db}\n");
    let agents = deployment.replace("kind: Deployment", "kind: DaemonSet").replace("name: shop}\n", "name: agent}\n");
    let agents = agents.replace("app: shop", "app: agent");
    let set = set
        .replace("app: shop", "app: db")
        .replace("spec:\n  selector", "spec:\n  replicas: 2\n  serviceName: db\n  selector");
    let mut stack = site.stack(&[deployment, set, agents].join("---"));
    let patch = json!({"metadata": {"labels": {"woken": "yes"}}});
    for (service, workload) in [("db", "statefulset/db"), ("agent", "daemonset/agent")] {
        let mut changes = unladen_processes::subject::kubernetes::Changes::of(workload.parse().expect("a workload"));
        changes.patch = Some(patch.clone());
        stack.services.insert(service.to_owned(), changes);
    }
    stack.services.remove("api");
    let (deployed, mut placed) = site.deploy(&stack).expect("all run");
    let mut names: Vec<String> =
        placed.iter().map(|it| format!("{}-{}", it.running.service(), it.running.replica())).collect();
    names.sort();
    assert_eq!(names, ["agent-0", "db-0", "db-1", "shop-0"]);
    for service in ["db", "agent"] {
        assert_eq!(deployed.admitted()[service]["metadata"]["labels"]["woken"], "yes", "{service}");
    }
    for one in &mut placed {
        assert_eq!(
            one.running.stop(Duration::from_secs(10)).expect("it stops"),
            Ended::Exit(0),
            "{}",
            one.running.service()
        );
    }
    drop(placed);
    deployed.remove().expect("the namespace goes");
    site.close();
}
