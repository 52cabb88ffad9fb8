//! Studies on a Kubernetes cluster of one node, which is this machine: `scripts/cluster/end_to_end.sh` starts one and runs these tests. Without
//! `UNLADEN_CLUSTER`, the path of its kubeconfig, they are skipped.

mod adopted;
mod injected;
mod load;
mod probe;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use unladen_journal::role::Role;
use unladen_judge::findings::{Findings, VariantFindings};

use crate::harness::{
    CliOutput, Scratch, UNLADEN, assert_costs_in_every_round, assert_ledger_is_whole, counted, finding, on_all_cores,
    wait_until,
};

/// What the image of these tests is called.
pub(crate) const IMAGE: &str = "unladen-demo:e2e";
/// What the names of unladen's namespaces begin with.
const OWN: &str = "unladen-";

/// A shop and, in the same pod, the stock that it asks, as somebody may have them who knows nothing of unladen.
fn manifest() -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: shop}}
spec:
  selector: {{matchLabels: {{app: shop}}}}
  template:
    metadata: {{labels: {{app: shop}}}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
        - name: shop
          image: {IMAGE}
          args: [__demo, consumer, --listen, 0.0.0.0, --port, "8080", --provider, "http://127.0.0.1:8081/provider"]
          env: [{{name: OTEL_SERVICE_NAME, value: shop}}]
        - name: stock
          image: {IMAGE}
          args: [__demo, provider, --port, "8081"]
---
apiVersion: v1
kind: Service
metadata: {{name: shop}}
spec: {{selector: {{app: shop}}, ports: [{{port: 80, targetPort: 8080}}]}}
"#
    )
}

/// Turns on the SDK: what an injector or a new manifest would do.
pub(crate) const OTEL: &str = r#"
  otel:
    label: OpenTelemetry
    spans_per_request: 4
    services:
      shop:
        env: {OTEL_EXPORTER_OTLP_ENDPOINT: "http://${sink.otlp_grpc}"}
        patch:
          spec:
            containers:
              - name: shop
                args: [__demo, consumer, --listen, 0.0.0.0, --port, "8080", --provider, "http://127.0.0.1:8081/provider", --trace, otlp]
"#;

/// A short study of the shop; `variants` is YAML, indented by two spaces.
pub(crate) fn study(name: &str, variants: &str) -> String {
    format!(
        r#"
study: {name}
on: {{kubernetes: {{manifests: [deploy/]}}}}
warmup: 500ms
window: 1s
alone: 300ms
rounds: 1
repeat: {{at_most: 0%}}
drain: {{quiet: 300ms, limit: 3s}}
services:
  shop:
    workload: deployment/shop
    container: shop
    ready: {{http: "http://shop:8080/ready", timeout: 30s}}
load: {{url: "http://shop:8080/work", connections: 4}}
variants:
  baseline: {{}}
{variants}
"#
    )
}

pub(crate) struct Cluster {
    /// Of the administrator.
    kubeconfig: PathBuf,
    /// Of the account of `deploy/kubernetes`: unladen has its rights and no others.
    account: PathBuf,
    /// Of whoever lets studies run in the cluster by themselves.
    pub(crate) user: PathBuf,
}

impl Cluster {
    /// The cluster that the environment names, with the image of this very executable. `None`: there is none. Who has one takes all cores: pods are
    /// on those that the kubelet says.
    pub(crate) fn find() -> Option<Self> {
        static ACCOUNTS: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
        let Some(kubeconfig) = std::env::var_os("UNLADEN_CLUSTER").map(PathBuf::from) else {
            println!("SKIPPED: UNLADEN_CLUSTER names no kubeconfig: `make cluster-test` starts a cluster");
            return None;
        };
        let (account, user) = ACCOUNTS.get_or_init(|| {
            let script = |arguments: &[&str]| {
                let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cluster/cluster.py");
                let output = Command::new(script).args(arguments).output().expect("the script starts");
                assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8_lossy(&output.stdout).trim().to_owned()
            };
            script(&["image", UNLADEN, IMAGE]);
            (script(&["account"]).into(), script(&["account", "unladen-user"]).into())
        });
        Some(Self { kubeconfig, account: account.clone(), user: user.clone() })
    }

    pub(crate) fn scratch(&self, study: &str) -> Scratch {
        let scratch = Scratch::with(study);
        fs::create_dir(scratch.path("deploy")).expect("a folder");
        scratch.write("deploy/shop.yaml", &manifest());
        scratch
    }

    fn command(&self, scratch: &Scratch, arguments: &[&str]) -> Command {
        let mut command = scratch.command(arguments);
        command.env("KUBECONFIG", &self.account);
        command
    }

    fn run(&self, scratch: &Scratch, more: &[&str]) -> CliOutput {
        self.ask(scratch, &self.account, &[&["run", ".", "--out", "out", "--plain"], more].concat())
    }

    /// unladen, to its end, with a kubeconfig.
    pub(crate) fn ask(&self, scratch: &Scratch, kubeconfig: &Path, arguments: &[&str]) -> CliOutput {
        let mut command = scratch.command(arguments);
        let output = CliOutput::new(&command.env("KUBECONFIG", kubeconfig).output().expect("unladen starts"));
        println!("{arguments:?}\n{}{}", output.err, output.out);
        output
    }

    /// Starts the study of a scratch folder and waits until it measures.
    fn start(&self, scratch: &Scratch) -> Child {
        let mut command = self.command(scratch, &["run", ".", "--out", "out", "--plain"]);
        command.stdout(Stdio::null()).stderr(fs::File::create(scratch.path("err")).expect("a file"));
        let child = command.spawn().expect("unladen starts");
        let measures = || {
            let text = fs::read_to_string(scratch.path("out/live.json")).unwrap_or_default();
            text.contains("\"warm_up\"") || text.contains("\"window\"")
        };
        wait_until(Duration::from_secs(90), measures);
        let said = || fs::read_to_string(scratch.path("err")).unwrap_or_default();
        assert!(measures(), "it does not come to measure: {}", said());
        assert_ne!(self.namespaces(), BTreeSet::new());
        child
    }

    /// What `kubectl` of the administrator prints. It must succeed.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.kubectl_of(arguments, "")
    }

    /// As [`Cluster::kubectl`], with a text on its standard input.
    fn kubectl_of(&self, arguments: &[&str], text: &str) -> String {
        let beside = self.kubeconfig.with_file_name("bin").join("kubectl");
        let program = if beside.exists() { beside } else { PathBuf::from("kubectl") };
        let mut command = assert_cmd::Command::new(program);
        let output = command.args(arguments).env("KUBECONFIG", &self.kubeconfig).write_stdin(text).output();
        let output = output.expect("kubectl");
        assert!(output.status.success(), "{arguments:?} {text}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// unladen's namespaces that are there.
    pub(crate) fn namespaces(&self) -> BTreeSet<String> {
        let names = self.kubectl(&["get", "namespaces", "--output=jsonpath={.items[*].metadata.name}"]);
        names.split_whitespace().filter(|name| name.starts_with(OWN)).map(str::to_owned).collect()
    }

    #[track_caller]
    fn assert_nothing_left(&self, scratch: &Scratch) {
        assert_eq!(self.namespaces(), BTreeSet::new(), "namespaces are left");
        scratch.assert_nothing_left();
    }

    #[track_caller]
    fn wait_until_nothing_left(&self, scratch: &Scratch) {
        wait_until(Duration::from_secs(30), || self.namespaces().is_empty());
        scratch.wait_until_nothing_left();
        assert_eq!(self.namespaces(), BTreeSet::new(), "namespaces are left");
    }
}

/// Processes of this machine whose command begins so.
pub(crate) fn processes(command: &[u8]) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("a system").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()));
    pids.filter(|pid| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(command))).collect()
}

/// Kills them; returns how many there were.
pub(crate) fn kill_all(command: &[u8]) -> usize {
    let pids = processes(command);
    for pid in &pids {
        kill_process(Pid::from_raw(*pid as i32).expect("a process"), Signal::KILL).expect("root");
    }
    pids.len()
}

/// Objects that the administrator has made and that go with the test.
struct Made<'c> {
    cluster: &'c Cluster,
    text: String,
}

impl<'c> Made<'c> {
    fn new(cluster: &'c Cluster, text: String) -> Self {
        cluster.kubectl_of(&["apply", "--filename=-"], &text);
        Self { cluster, text }
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        self.cluster.kubectl_of(&["delete", "--ignore-not-found", "--wait=false", "--filename=-"], &self.text);
    }
}

fn of<'a>(findings: &'a Findings, variant: &str) -> &'a VariantFindings {
    findings.variants.iter().find(|it| it.name == variant).expect("the variant")
}

#[test]
fn a_deployment_is_weighed_and_its_spans_arrive() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let load = "{url: \"http://shop:8080/work\", rate: 300, connections: 8}";
    let text = study("shop", OTEL).replace("{url: \"http://shop:8080/work\", connections: 4}", load);
    let scratch = cluster.scratch(&text.replace("window: 1s", "window: 2s").replace("rounds: 1", "rounds: 4"));
    cluster.run(&scratch, &[]).ends_with(0);
    let runs = scratch.runs();
    for run in counted(&runs) {
        let found: BTreeSet<_> = run.processes.iter().map(|it| (it.service.as_str(), it.role)).collect();
        let wanted = ["shop", "shop/stock"].map(|name| (name, Some(Role::Subject)));
        assert_eq!(found, BTreeSet::from(wanted), "run {}", run.run);
        for process in &run.processes {
            assert!(process.cpu_ns.is_some_and(|ns| ns > 1_000_000), "{process:?}");
            assert!(process.rss.is_some_and(|bytes| bytes > 1 << 20), "{process:?}");
        }
        assert!(run.admitted["shop"]["spec"]["containers"].is_array(), "{:?}", run.admitted);
        if run.variant == "otel" {
            assert_ledger_is_whole(run, 1_000);
        }
        let log = fs::read_to_string(scratch.path("out").join(&run.dir).join("logs/shop.log")).expect("a log");
        assert!(log.contains("consumer listens on"), "{log}");
    }
    let findings = scratch.findings();
    let changed: BTreeSet<_> = of(&findings, "otel").admitted.iter().map(|it| it.path.as_str()).collect();
    let wanted = ["args.8", "args.9", "env.OTEL_EXPORTER_OTLP_ENDPOINT"].map(|it| format!("spec.containers.shop.{it}"));
    assert_eq!(changed, wanted.iter().map(String::as_str).collect());
    assert_eq!(of(&findings, "placebo").admitted, []);
    // Tracing costs something in every round.
    assert_costs_in_every_round(&findings, "otel");
    cluster.assert_nothing_left(&scratch);
}

#[test]
fn a_pod_costs_what_the_same_processes_cost() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    // Closed loops: nothing is due that a busy machine could be late for.
    let pods = study("pods", "");
    let baseline = |scratch: &Scratch| {
        let findings = scratch.findings();
        finding(&findings, "placebo", "cpu_per_request")
            .rounds
            .iter()
            .map(|round| round.baseline)
            .fold(f64::NAN, f64::min)
    };
    // One after the other, again and again: the machine's pace changes from minute to minute, and with it the CPU time of the same work.
    let mut shares: Vec<f64> = Vec::new();
    for _ in 0..4 {
        let (in_pods, local) = (cluster.scratch(&pods), Scratch::with(LOCAL));
        cluster.run(&in_pods, &["--rounds", "2"]).ends_with(0);
        local.run(&[]).ends_with(0);
        shares.push(baseline(&in_pods) / baseline(&local) - 1.0);
        cluster.assert_nothing_left(&in_pods);
    }
    shares.sort_unstable_by(f64::total_cmp);
    println!("CPU per request in pods over that of processes, less 1: {shares:.3?}");
    let (least, middle, most) = (shares[0], shares[shares.len() / 2], shares[shares.len() - 1]);
    assert!(middle.abs() < 0.1 || (least < 0.0 && most > 0.0), "{shares:?}");
}

/// The same two programs as processes of this machine.
const LOCAL: &str = r#"
study: shop-local
warmup: 500ms
window: 1s
alone: 300ms
rounds: 2
repeat: {at_most: 0%}
drain: {quiet: 300ms, limit: 3s}
services:
  stock:
    command: ["${unladen}", __demo, provider, --port, "${port.stock}"]
    ready: {tcp: "127.0.0.1:${port.stock}"}
  shop:
    needs: [stock]
    command: ["${unladen}", __demo, consumer, --port, "${port.shop}", --provider, "http://127.0.0.1:${port.stock}/provider"]
    ready: {http: "http://127.0.0.1:${port.shop}/ready"}
load: {url: "http://127.0.0.1:${port.shop}/work", connections: 4}
variants:
  baseline: {}
"#;

#[test]
fn a_label_that_no_injector_heeds_is_refused() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let refused = |variants: &str, words: &[&str]| {
        let scratch = cluster.scratch(&study("inert", variants));
        cluster.run(&scratch, &[]).ends_with(2).complains(words);
        cluster.assert_nothing_left(&scratch);
    };
    refused(
        "  agent: {services: {shop: {labels: {agent-injection: enabled}}}}",
        &["agent declares the label `agent-injection`", "no injector acted", "mutatingwebhookconfigurations"],
    );
    refused(
        "  agent: {services: {shop: {env: {OTEL_SERVICE_NAME: shop}}}}",
        &["agent declares the variable `OTEL_SERVICE_NAME`", "compared with itself"],
    );
}

#[test]
fn what_goes_wrong_in_a_cluster_is_told() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let fails = |mark: &str, study: &str, change: (&str, &str), words: &[&str]| {
        let scratch = cluster.scratch(study);
        let text = manifest();
        assert!(text.contains(change.0), "{mark}: {}", change.0);
        scratch.write("deploy/shop.yaml", &text.replace(change.0, change.1));
        cluster.run(&scratch, &["--design", "separate"]).ends_with(2).complains(words);
        cluster.assert_nothing_left(&scratch);
    };
    let usual = study("mistakes", "");
    let of_study = |from: &str, to: &str| {
        assert!(usual.contains(from), "{from}");
        usual.replace(from, to)
    };
    fails("absent", &of_study("deployment/shop", "deployment/shob"), ("", ""), &["deployment/shob", "deployment/shop"]);
    fails("container", &of_study("container: shop", "container: shob"), ("", ""), &["shop", "stock", "container"]);
    fails("image", &usual, (IMAGE, "no-such-image:1"), &["no-such-image:1", "not on the node"]);
    fails(
        "namespace",
        &usual,
        ("metadata: {name: shop}", "metadata: {name: shop, namespace: prod}"),
        &["namespace", "shop.yaml"],
    );
    fails(
        "field",
        &usual,
        ("terminationGracePeriodSeconds: 5", "terminationGracePeriodSeconds: soon"),
        &["terminationGracePeriodSeconds"],
    );
    fails("exits", &usual, ("[__demo, consumer,", "[no-such-command,"), &["shop", "no-such-command", "shop.log"]);
    fails(
        "stranger",
        &of_study("http://shop:8080/work", "http://127.0.0.1:8080/work"),
        ("", ""),
        &["not published", "shop"],
    );
    fails(
        "dies",
        &of_study("window: 1s", "window: 5s"),
        ("[__demo, consumer,", "[__demo, consumer, --die-after-s, '3',"),
        &["shop", "ended during the run"],
    );
    let scratch = cluster.scratch(&of_study("{manifests: [deploy/]}", "{manifests: [deploy/], context: elsewhere}"));
    cluster.run(&scratch, &[]).ends_with(2).complains(&["elsewhere", "unladen"]);
    let mut without = cluster.command(&scratch, &["run", ".", "--out", "none", "--plain"]);
    without.env("KUBECONFIG", "/nowhere/kubeconfig");
    CliOutput::new(&without.output().expect("unladen starts")).ends_with(2).complains(&["/nowhere/kubeconfig"]);
    cluster.assert_nothing_left(&scratch);
}

#[test]
fn a_study_that_was_interrupted_or_killed_leaves_no_namespace_and_goes_on() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let long = study("interrupted", OTEL).replace("window: 1s", "window: 4s");
    let scratch = cluster.scratch(&long);
    let mut child = cluster.start(&scratch);
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it is interrupted");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    cluster.assert_nothing_left(&scratch);

    fs::rename(scratch.path("out"), scratch.path("interrupted")).expect("it is put aside");
    let mut child = cluster.start(&scratch);
    child.kill().expect("it is killed");
    let _ = child.wait();
    cluster.wait_until_nothing_left(&scratch);

    let output = cluster.command(&scratch, &["run", "--resume", "out", "--plain"]).output().expect("unladen starts");
    CliOutput::new(&output).ends_with(0);
    let runs = scratch.runs();
    assert_eq!(
        runs.iter().filter(|run| run.void.is_none()).count(),
        3,
        "{:?}",
        runs.iter().map(|it| &it.void).collect::<Vec<_>>()
    );
    cluster.assert_nothing_left(&scratch);
}

#[test]
fn a_pod_that_is_taken_away_ends_the_study() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&study("taken", "").replace("window: 1s", "window: 20s"));
    let mut child = cluster.start(&scratch);
    let names = cluster.namespaces();
    let namespace = names.first().expect("one");
    cluster.kubectl(&["delete", "pods", "--all", "--wait=false", "--namespace", namespace]);
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
    let said = fs::read_to_string(scratch.path("err")).expect("what it said");
    assert!(said.contains("shop") && said.contains("ended during the run"), "{said}");
    assert!(scratch.runs().iter().all(|run| run.void.is_some()), "no run counts");
    cluster.assert_nothing_left(&scratch);
}
