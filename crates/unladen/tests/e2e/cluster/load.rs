//! Load from another node than that of the services, in parts.

use std::collections::BTreeSet;

use super::{Cluster, OTEL, study};
use crate::harness::{Scratch, assert_ledger_is_whole, counted, on_all_cores};

/// A cluster with a second node, and a study whose load four of its pods send; `more` is of `on.kubernetes.load`.
fn from_the_second_node(more: &str) -> Option<(Cluster, Scratch)> {
    let cluster = Cluster::find()?;
    if cluster.kubectl(&["get", "nodes", "--output=name"]).lines().count() < 2 {
        println!("SKIPPED: the cluster has one node: `scripts/cluster/cluster.py start --nodes 2`");
        return None;
    }
    let load = format!("manifests: [deploy/], load: {{parts: 4, image: {}{more}}}", super::IMAGE);
    let text = study("far", OTEL).replace("manifests: [deploy/]", &load).replace("rounds: 1", "rounds: 2");
    let paced = text.replace("connections: 4}", "rate: 200, connections: 8}");
    let scratch = cluster.scratch(&paced);
    Some((cluster, scratch))
}

#[test]
fn four_pods_of_another_node_send_exactly_the_load() {
    let Some((cluster, scratch)) = from_the_second_node("") else { return };
    let _turn = on_all_cores();
    let run = ["run", ".", "--out", "out", "--plain"];
    let out = cluster.ask(&scratch, &cluster.account, &run).ends_with(0).out;
    assert!(out.contains("Load from other machines") && out.contains("from other machines.\n"), "{out}");
    let runs = scratch.runs();
    for run in counted(&runs) {
        let load = run.load.as_ref().expect("the load's account");
        let seen: Vec<(u32, &str)> = load.parts.iter().map(|part| (part.number, part.machine.as_str())).collect();
        assert_eq!(seen, [(1, "node-2"), (2, "node-2"), (3, "node-2"), (4, "node-2")]);
        // 0.5 s of warm-up, 1 s of blocks, 0.3 s alone, at 200/s: shared to one request.
        let sent: Vec<u64> = load.parts.iter().map(|part| part.sent).collect();
        assert_eq!(sent.iter().sum::<u64>(), load.sent_total);
        assert!(load.sent_total.abs_diff(360) <= 4 && sent.iter().all(|it| it.abs_diff(90) <= 1), "{sent:?}");
        assert!(load.parts.iter().all(|part| part.clock_bound_us < 5_000.0), "{:?}", load.parts);
        if run.variant == "otel" {
            assert_ledger_is_whole(run, 100);
        }
    }
    cluster.assert_nothing_left(&scratch);
}

#[test]
fn a_load_without_a_node_of_its_own_is_refused() {
    let Some((cluster, scratch)) = from_the_second_node(", nodes: {pool: load}") else { return };
    let _turn = on_all_cores();
    let ask = |arguments: &[&str]| cluster.ask(&scratch, &cluster.account, arguments);
    let said = ["the load (`on.kubernetes.load`) needs a node that is not node-1", "on.kubernetes.load.nodes"];
    ask(&["run", ".", "--out", "out", "--plain"]).ends_with(2).complains(&said);
    assert!(scratch.runs().is_empty(), "before anything is measured");
    let out = ask(&["doctor", "."]).out;
    assert!(out.contains("no node that is not this machine may send it"), "{out}");
    cluster.assert_nothing_left(&scratch);
}

#[test]
fn a_part_that_is_lost_voids_the_round_and_the_study_can_go_on() {
    let Some((cluster, scratch)) = from_the_second_node("") else { return };
    let _turn = on_all_cores();
    let mut child = cluster.start(&scratch);
    let load = cluster.namespaces().into_iter().find(|name| name.ends_with("-load")).expect("a namespace of the load");
    let pods = cluster.kubectl(&["get", "pods", "--namespace", &load, "--output=name"]);
    let pod = pods.lines().next().expect("a pod");
    cluster.kubectl(&["delete", pod, "--namespace", &load, "--grace-period=0", "--force"]);
    let code = child.wait().expect("it ends").code();
    let said = std::fs::read_to_string(scratch.path("err")).expect("its words");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("on node-2 was lost: it has ended") && said.contains("unladen run --resume"), "{said}");
    cluster.assert_nothing_left(&scratch);
    cluster.ask(&scratch, &cluster.account, &["run", ".", "--resume", "out", "--plain"]).ends_with(0);
    let runs = scratch.runs();
    let rounds: BTreeSet<u32> = counted(&runs).iter().map(|run| run.round).collect();
    assert_eq!(rounds, BTreeSet::from([1, 2]));
    assert!(runs.iter().any(|run| run.void.is_some()), "what was lost is in the journal");
    cluster.assert_nothing_left(&scratch);
}
