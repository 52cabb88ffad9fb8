//! From a live workload to a study that runs, and what the doctor says of the way there.

use std::fs;
use std::path::Path;

use super::{Cluster, IMAGE, Made, finding};
use crate::harness::{Scratch, on_all_cores};

/// Where the live shop is. Not one of unladen's namespaces.
const PROD: &str = "e2e-prod";
/// An account that may do nothing.
const POOR: &str = "e2e-poor";

/// The live shop, with a Service, settings, a Secret, and a probe.
fn shop() -> String {
    format!(
        r#"
apiVersion: v1
kind: Namespace
metadata: {{name: {PROD}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: shop, namespace: {PROD}}}
data: {{port: "8080"}}
---
apiVersion: v1
kind: Secret
metadata: {{name: shop, namespace: {PROD}}}
stringData: {{token: hunter2}}
---
apiVersion: v1
kind: Service
metadata: {{name: shop, namespace: {PROD}}}
spec: {{selector: {{app: shop}}, ports: [{{port: 80, targetPort: http}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: shop, namespace: {PROD}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: shop}}}}
  template:
    metadata: {{labels: {{app: shop}}}}
    spec:
      terminationGracePeriodSeconds: 2
      nodeSelector: {{kubernetes.io/os: linux}}
      containers:
        - name: stock
          image: {IMAGE}
          args: [__demo, provider, --port, "8081"]
        - name: shop
          image: {IMAGE}
          args: [__demo, consumer, --listen, 0.0.0.0, --port, $(PORT), --provider, "http://127.0.0.1:8081/provider"]
          env:
            - {{name: PORT, valueFrom: {{configMapKeyRef: {{name: shop, key: port}}}}}}
            - {{name: TOKEN, valueFrom: {{secretKeyRef: {{name: shop, key: token}}}}}}
          ports: [{{name: http, containerPort: 8080}}]
          readinessProbe: {{httpGet: {{path: /ready, port: http}}, periodSeconds: 1}}
"#
    )
}

impl Cluster {
    /// What the doctor says, in one line.
    fn doctor(&self, scratch: &Scratch, kubeconfig: &Path) -> String {
        let said = self.ask(scratch, kubeconfig, &["doctor", "."]).ends_with(0).out;
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn a_live_deployment_becomes_a_study_that_runs() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let _live = Made::new(&cluster, shop());
    let scratch = Scratch::new();
    let import = ["import", "kubernetes", "deployment/shop", "--namespace", PROD];
    // Not the pods and replica sets: controllers make these in their own time.
    let objects = ["get", "deployments,services,configmaps,secrets", "--namespace", PROD, "--output=name"];
    let before = cluster.kubectl(&objects);
    let output = cluster.ask(&scratch, &cluster.kubeconfig, &import).ends_with(0);
    let output =
        output.complains(&["note: Secret shop: its values are not written", "`nodeSelector` of its pods is left out"]);
    assert!(output.out.starts_with(
        "Wrote shop/study.yaml and, in shop/deploy/: ConfigMap shop, Deployment shop, Secret shop, Service shop.\n"
    ));
    assert_eq!(cluster.kubectl(&objects), before, "it only reads");
    let file = |name: &str| fs::read_to_string(scratch.path("shop").join(name)).expect(name);
    let study = file("study.yaml");
    for line in ["  shop:", "    workload: deployment/shop", "    container: shop", "  url: http://shop:8080/ready"] {
        assert!(study.lines().any(|it| it == line), "{line}: {study}");
    }
    assert!(!file("deploy/secret-shop.yaml").contains("hunter2"));

    cluster.ask(&scratch, &cluster.kubeconfig, &import).ends_with(2).complains(&["shop is there already", "--out"]);
    let with = [&import[..], &["--with-secrets", "--out", "other"]].concat();
    cluster.ask(&scratch, &cluster.kubeconfig, &with).ends_with(0);
    let secret = fs::read_to_string(scratch.path("other/deploy/secret-shop.yaml")).expect("a Secret");
    assert!(secret.contains("aHVudGVyMg=="), "{secret}");
    // The account of unladen may read workloads, and nothing that they need.
    let elsewhere = [&import[..], &["--out", "third"]].concat();
    let told =
        ["Services that send to the pods are not taken", "Secret shop, which Deployment shop names, is not taken"];
    cluster.ask(&scratch, &cluster.account, &elsewhere).ends_with(0).complains(&told);
    assert_eq!(fs::read_dir(scratch.path("third/deploy")).expect("a folder").count(), 1);

    // As it was written, but shorter.
    let short = ["window=1s", "warmup=500ms", "alone=300ms", "rounds=1", "repeat.at_most=0%", "drain.quiet=300ms"];
    let sets: Vec<&str> = short.iter().flat_map(|set| ["--set", set]).collect();
    let run = [&["run", "shop", "--out", "out", "--plain"], &sets[..]].concat();
    cluster.ask(&scratch, &cluster.account, &run).ends_with(0);
    let findings = scratch.findings();
    assert!(finding(&findings, "placebo", "cpu_per_request").rounds.iter().all(|round| round.baseline > 0.0));
    cluster.assert_nothing_left(&scratch);
}

#[test]
fn the_doctor_names_the_rights_that_are_missing_and_prints_the_role_that_has_them() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    let scratch = cluster.scratch(&super::study("shop", ""));
    let sound = cluster.doctor(&scratch, &cluster.account);
    for words in [
        "ok this machine",
        "is the node node-1",
        "kubelet v1.",
        "ok rights",
        "system:serviceaccount:unladen:unladen",
        "Service shop, Deployment shop",
    ] {
        assert!(sound.contains(words), "{words}: {sound}");
    }
    assert!(!sound.contains("warn"), "{sound}");
    let nothing = cluster
        .ask(&scratch, &cluster.account, &["doctor", ".", "--role"])
        .ends_with(0)
        .complains(&["no right is missing"]);
    assert_eq!(nothing.out, "");

    // A kind that the account's role does not have.
    let lease = "\n---\n{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l}}\n";
    scratch.write("deploy/shop.yaml", &(super::manifest() + lease));
    let lacking = cluster.doctor(&scratch, &cluster.account);
    assert!(lacking.contains("create/patch leases.coordination.k8s.io"), "{lacking}");
    let rule = "- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, patch]}";
    let role = cluster.ask(&scratch, &cluster.account, &["doctor", ".", "--role"]).ends_with(0).out;
    assert_eq!(role.lines().filter(|line| line.starts_with("- {apiGroups")).collect::<Vec<_>>(), [rule]);
    assert!(lacking.contains(rule), "{lacking}");

    // An account that may do nothing gets a role with all of it, and that suffices.
    let account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: e2e-poor, namespace: default}}".to_owned();
    let _account = Made::new(&cluster, account);
    let token = cluster.kubectl(&["create", "token", POOR, "--namespace=default"]);
    let of_account = fs::read_to_string(&cluster.account).expect("a kubeconfig");
    let mut config: serde_json::Value = serde_json::from_str(&of_account).expect("JSON");
    config["users"][0]["user"]["token"] = token.trim().into();
    let poor = scratch.path("poor");
    fs::write(&poor, config.to_string()).expect("a kubeconfig");
    let said = cluster.doctor(&scratch, &poor);
    for words in ["warn nodes", "may not be listed", "create/delete/list namespaces", "get pods/log"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let json = cluster.ask(&scratch, &poor, &["doctor", ".", "--json"]).ends_with(0).out;
    let checks: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(
        checks.as_array().expect("checks").iter().any(|check| check["what"] == "rights" && check["remedy"].is_string()),
        "{json}"
    );
    let role = cluster.ask(&scratch, &poor, &["doctor", ".", "--role"]).ends_with(0).out;
    let _role = Made::new(&cluster, role);
    let said = cluster.doctor(&scratch, &poor);
    assert!(said.contains("ok rights") && said.contains("This cluster can measure"), "{said}");

    scratch.write(
        "deploy/shop.yaml",
        &(super::manifest() + "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: other}}\n"),
    );
    let wrong = cluster.doctor(&scratch, &cluster.account);
    assert!(wrong.contains("warn manifests") && wrong.contains("Namespace other in"), "{wrong}");
    let hpa = "\n---\n{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {scaleTargetRef: {kind: Deployment, name: shop}}}\n";
    scratch.write("deploy/shop.yaml", &(super::manifest() + hpa));
    let scaled = cluster.doctor(&scratch, &cluster.account);
    assert!(
        scaled.contains("warn autoscalers") && scaled.contains("HorizontalPodAutoscaler h in the manifests"),
        "{scaled}"
    );
    assert!(scaled.contains("ok manifests"), "{scaled}");
    cluster
        .ask(&scratch, &cluster.account, &["doctor", "--context", "nowhere", "."])
        .ends_with(2)
        .complains(&["nowhere", "unladen"]);
    scratch.write("local.yaml", super::LOCAL);
    cluster
        .ask(&scratch, &cluster.account, &["doctor", "local.yaml"])
        .ends_with(2)
        .complains(&["local.yaml", "on.kubernetes"]);
    cluster.assert_nothing_left(&scratch);
}
