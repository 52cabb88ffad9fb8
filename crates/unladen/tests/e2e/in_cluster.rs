//! Studies that run in a cluster by themselves, watched, interrupted, fetched and cleaned from elsewhere: on the cluster of `cluster.rs`, with
//! the rights of `deploy/kubernetes` and no others.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::{Cluster, IMAGE, OTEL, kill_all, study};
use crate::harness::{CliOutput, Scratch, assert_ledger_is_whole, on_all_cores, wait_until};

/// Until a pod runs and measures, or has ended.
const PATIENCE: Duration = Duration::from_secs(120);

impl Cluster {
    /// unladen, as somebody on a laptop.
    fn elsewhere(&self, scratch: &Scratch, arguments: &[&str]) -> Command {
        let mut command = scratch.command(arguments);
        command.env("KUBECONFIG", &self.user);
        command
    }

    /// Sends the study of a scratch folder and waits until its pod has said something, and it has something in the cluster.
    fn send(&self, scratch: &Scratch, words: &str) -> Child {
        let mut command = self.elsewhere(scratch, &["run", ".", "--in-cluster", "--image", IMAGE, "--out", "out"]);
        command.stdout(Stdio::null()).stderr(fs::File::create(scratch.path("err")).expect("a file"));
        let child = command.spawn().expect("unladen starts");
        let measures = || said(scratch).contains(words) && !self.namespaces().is_empty();
        wait_until(PATIENCE, measures);
        assert!(measures(), "it does not come to measure: {}", said(scratch));
        child
    }

    /// Takes all pods of studies away at once.
    fn take_pods_away(&self) {
        self.kubectl(&["delete", "pods", "--all", "--namespace=unladen", "--grace-period=0", "--force"]);
    }

    /// The only Job that there is.
    fn job_name(&self) -> String {
        self.kubectl(&["get", "jobs", "--namespace=unladen", "--output=jsonpath={.items[0].metadata.name}"])
    }

    /// What is left of runs, besides what every namespace has.
    fn left(&self) -> BTreeSet<String> {
        let names = self.kubectl(&["get", "jobs,configmaps,pods", "--namespace=unladen", "--output=name"]);
        let own = names.lines().filter(|name| *name != "configmap/kube-root-ca.crt").map(str::to_owned);
        own.chain(self.namespaces()).collect()
    }

    #[track_caller]
    fn nothing_is_left(&self, scratch: &Scratch) {
        wait_until(Duration::from_secs(40), || self.left().is_empty());
        assert_eq!(self.left(), BTreeSet::new());
        scratch.assert_nothing_left();
    }

    /// Waits until the list of runs says that the study has ended.
    fn wait_until_ended(&self, scratch: &Scratch, name: &str) {
        let list = || self.ask(scratch, &self.user, &["fetch"]).ends_with(0).out;
        wait_until(PATIENCE, || list().contains("ended with exit code 0"));
        let list = list();
        assert!(list.contains(name) && list.contains("ended with exit code 0"), "{list}");
    }
}

/// A study of two rounds, the second of which takes a while.
fn twice(name: &str) -> String {
    study(name, OTEL).replace("window: 1s", "window: 3s").replace("rounds: 1", "rounds: 2")
}

/// What is said when the first of two rounds has been measured.
const FIRST_ROUND: &str = "[  3/6]";

fn said(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.path("err")).unwrap_or_default()
}

/// So many runs of the study count, and no span of them is missing.
#[track_caller]
pub(crate) fn assert_whole(scratch: &Scratch, count: usize) {
    let runs = scratch.runs();
    let counted: Vec<_> = runs.iter().filter(|run| run.void.is_none()).collect();
    assert_eq!(counted.len(), count, "{:?}", runs.iter().map(|run| &run.void).collect::<Vec<_>>());
    for run in counted.iter().filter(|run| run.variant == "otel") {
        assert_ledger_is_whole(run, 100);
    }
    assert!(scratch.path("out/report.html").is_file() && scratch.findings().variants.len() == 2);
}

#[test]
fn a_study_runs_on_a_node_elsewhere_and_its_results_come_here() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&study("elsewhere", OTEL));
    let sent = ["run", ".", "--in-cluster", "--image", IMAGE, "--node", "node-1", "--out", "out", "--rounds", "2"];
    let output = cluster
        .ask(&scratch, &cluster.user, &sent)
        .ends_with(0)
        .complains(&["unladen fetch elsewhere-", "node: node-1"]);
    assert!(
        output.out.contains("OpenTelemetry (otel)") && output.out.contains("Report: out/report.html"),
        "{}",
        output.out
    );
    assert!(output.err.contains("[  6/6]"), "its progress is seen: {}", output.err);
    assert!(!output.err.contains("/results/"), "paths of the pod are nobody's: {}", output.err);
    assert_whole(&scratch, 6);
    cluster.nothing_is_left(&scratch);
}

#[test]
fn what_cannot_run_in_the_cluster_is_told_and_leaves_nothing() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&study("mistakes", ""));
    let sent = |more: &[&str]| {
        cluster.ask(&scratch, &cluster.user, &[&["run", ".", "--in-cluster", "--out", "out"], more].concat())
    };
    sent(&["--image", "no-such-image:1"]).ends_with(2).complains(&["no-such-image:1", "cannot be started", "--image"]);
    cluster.nothing_is_left(&scratch);
    scratch.write("study.yaml", &study("mistakes", "").replace("deployment/shop", "deployment/shob"));
    sent(&["--image", IMAGE]).ends_with(2).complains(&["deployment/shob", "deployment/shop"]);
    cluster.nothing_is_left(&scratch);
    cluster.ask(&scratch, &cluster.user, &["fetch", "nobody-1"]).ends_with(2).complains(&["no study `nobody-1`"]);
}

#[test]
fn ctrl_c_ends_the_study_there_and_fetches_what_it_has() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&twice("interrupted"));
    let mut child = cluster.send(&scratch, FIRST_ROUND);
    kill_process(Pid::from_child(&child), Signal::INT).expect("it is interrupted");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{}", said(&scratch));
    let journal = fs::read_to_string(scratch.path("out/journal.jsonl")).expect("a journal");
    assert!(!journal.is_empty() && said(&scratch).contains("stopping the study"), "{}", said(&scratch));
    cluster.nothing_is_left(&scratch);
}

#[test]
fn without_its_client_a_study_goes_on_and_waits_to_be_fetched() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&twice("alone"));
    let mut child = cluster.send(&scratch, FIRST_ROUND);
    child.kill().expect("it is killed");
    let _ = child.wait();
    let name = cluster.job_name();
    cluster
        .ask(&scratch, &cluster.user, &["fetch", &name, "--out", "so-far"])
        .ends_with(0)
        .complains(&["has not ended"]);
    assert!(scratch.path("so-far/journal.jsonl").is_file());
    // It is somebody's.
    let clean = cluster.ask(&scratch, &cluster.user, &["clean"]).ends_with(0).out;
    assert!(clean.contains(&format!("left     study {name}")) && !clean.contains("deleted"), "{clean}");
    cluster.wait_until_ended(&scratch, &name);
    cluster.ask(&scratch, &cluster.user, &["fetch", &name, "--out", "out"]).ends_with(0);
    assert_whole(&scratch, 6);
    cluster.nothing_is_left(&scratch);
}

/// A study comes to its end although something happens to its pod after the first round. What it said: `None` without a cluster.
#[track_caller]
fn said_of_a_study_that_survives(name: &str, what: impl FnOnce(&Cluster)) -> Option<String> {
    let cluster = Cluster::find()?;
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&twice(name));
    let mut child = cluster.send(&scratch, FIRST_ROUND);
    what(&cluster);
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{}", said(&scratch));
    assert_whole(&scratch, 6);
    cluster.nothing_is_left(&scratch);
    Some(said(&scratch))
}

#[test]
fn a_pod_that_is_killed_deletes_what_it_had_and_goes_on() {
    let said = said_of_a_study_that_survives("killed", |_| assert_eq!(kill_those_in_pods(), 1, "one pod measures"));
    let Some(said) = said else { return };
    assert!(said.contains("that an earlier pod of this study had"), "{said}");
}

#[test]
fn a_pod_that_is_taken_away_is_replaced_and_the_study_begins_again() {
    let Some(said) = said_of_a_study_that_survives("replaced", Cluster::take_pods_away) else { return };
    assert_eq!(said.matches(FIRST_ROUND).count(), 2, "{said}");
}

/// Kills what runs studies in pods; returns how many there were.
fn kill_those_in_pods() -> usize {
    kill_all(b"/unladen\0__in-cluster\0run\0")
}

#[test]
fn what_a_run_has_left_is_cleaned_and_nothing_else() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&twice("doomed"));
    let mut child = cluster.send(&scratch, FIRST_ROUND);
    // Whoever deletes a Job so takes the time from its pod to clean up.
    let name = cluster.job_name();
    cluster.kubectl(&["delete", "job", &name, "--namespace=unladen", "--cascade=orphan"]);
    cluster.take_pods_away();
    assert_eq!(child.wait().expect("it ends").code(), Some(2), "{}", said(&scratch));
    assert!(said(&scratch).contains("somebody has deleted the Job"), "{}", said(&scratch));
    let foreign = "unladen-of-nobody-known";
    cluster.kubectl(&["create", "namespace", foreign]);
    cluster.kubectl(&["label", "namespace", foreign, "app.kubernetes.io/managed-by=unladen"]);
    assert!(cluster.namespaces().len() > 1, "namespaces are left");
    let clean = cluster.ask(&scratch, &cluster.user, &["clean"]).ends_with(0).out;
    assert!(
        clean.contains("deleted  namespace unladen-") && clean.contains(&format!("left     namespace {foreign}")),
        "{clean}"
    );
    assert_eq!(cluster.namespaces(), BTreeSet::from([foreign.to_owned()]));
    cluster.kubectl(&["delete", "namespace", foreign]);
    cluster.nothing_is_left(&scratch);
    let clean = cluster.ask(&scratch, &cluster.user, &["clean"]).ends_with(0).out;
    assert!(clean.contains("Nothing of unladen is in the cluster"), "{clean}");
}

#[test]
fn what_is_printed_can_be_applied() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&study("printed", OTEL));
    let printed = ["run", ".", "--in-cluster", "--image", IMAGE, "--print", "--keep", "10m"];
    // Without a cluster.
    let mut command = cluster.elsewhere(&scratch, &printed);
    command.env("KUBECONFIG", "/nowhere/kubeconfig");
    let output = CliOutput::new(&command.output().expect("unladen starts")).ends_with(0);
    scratch.write("objects.yaml", &output.out);
    cluster.kubectl(&["apply", "--filename", scratch.path("objects.yaml").to_str().expect("text")]);
    let name = cluster.job_name();
    assert!(output.out.starts_with(&format!("# unladen fetch {name} gets the results")), "{}", output.out);
    cluster.wait_until_ended(&scratch, &name);
    cluster.ask(&scratch, &cluster.user, &["fetch", &name, "--out", "out"]).ends_with(0);
    assert_whole(&scratch, 3);
    cluster.nothing_is_left(&scratch);
}

/// Each node has half of the rounds, at the same time, and they become one study.
#[test]
fn two_nodes_share_the_rounds_of_a_study() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&twice("shared"));
    let nodes = ["--node", "node-1", "--node", "node-2"];
    let sent = ["run", ".", "--in-cluster", "--image", IMAGE, "--out", "out"];
    let output = cluster.ask(&scratch, &cluster.user, &[sent.as_slice(), &nodes].concat()).ends_with(0).complains(&[
        "1 round each",
        "node-1  [  3/3]",
        "node-2  [  3/3]",
    ]);
    assert_whole(&scratch, 6);
    let placed: BTreeSet<(u32, String)> = scratch.runs().into_iter().map(|run| (run.round, run.machine)).collect();
    assert_eq!(placed, BTreeSet::from([(1, "node-1".to_owned()), (2, "node-2".to_owned())]));
    assert!(output.out.contains("by machine") && output.out.contains("Report: out/report.html"), "{}", output.out);
    assert!(!scratch.path("out-node-1").exists(), "the parts are in the whole");
    cluster.nothing_is_left(&scratch);
    let again = ["run", ".", "--in-cluster", "--out", "again"];
    cluster
        .ask(&scratch, &cluster.user, &[again.as_slice(), &nodes[..2], &nodes[..2]].concat())
        .ends_with(2)
        .complains(&["--node names a node twice"]);
}
