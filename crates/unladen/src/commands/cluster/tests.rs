//! What is sent to a cluster, and what is refused.

use std::fs;
use std::path::Path;

use clap::Parser;
use unladen_processes::subject::kubernetes::in_cluster::MAX_BYTES;
use unladen_study::plan::Plan;
use unladen_study::spec::Study;

use super::order::{name, order, yaml};
use super::{bundle, nodes};
use crate::cli::cluster::InCluster;
use crate::cli::{Cli, Command};

const STUDY: &str = "
study: Shop
on: {kubernetes: {manifests: [../deploy/], context: far}}
services:
  shop: {workload: deployment/shop, ready: {http: 'http://shop:8080/ready'}}
variants:
  baseline: {}
  otel: {manifests: [agent.yaml], services: {shop: {env: {TRACES: 'yes'}}}}
load: {url: 'http://shop:8080/work', replay: gaps.txt}
";

/// A project with a study and manifests beside it.
fn project(study: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in [
        ("perf/study.yaml", study),
        ("perf/agent.yaml", "kind: Agent\n"),
        ("perf/gaps.txt", "100\n"),
        ("deploy/shop.yaml", "kind: Deployment\n"),
        ("deploy/note.txt", "no manifest"),
        ("other/secret.yaml", "not named"),
    ] {
        fs::create_dir_all(folder.path().join(path).parent().expect("a folder")).expect("made");
        fs::write(folder.path().join(path), text).expect("written");
    }
    folder
}

fn plan(folder: &Path) -> Plan {
    Study::read(folder.join("perf"), &[]).expect("a study")
}

#[test]
fn a_study_and_its_files_become_a_job() {
    let folder = project(STUDY);
    let options = InCluster { image: Some("unladen:1".to_owned()), ..InCluster::default() };
    let mut order = order(&plan(folder.path()), &options, Some("node-7")).expect("it can be sent");
    order.name = "shop-1a2b3c4d".to_owned();
    // The study is in it with all its defaults, which are none of this test's business.
    for file in order.files.iter_mut().filter(|file| file.path == "perf/study.yaml") {
        assert!(!file.text.contains("far"), "the context is for whoever is elsewhere: {}", file.text);
        file.text = "study: Shop\n".to_owned();
    }
    insta::assert_snapshot!(yaml(&order).expect("YAML"));
}

#[test]
fn what_is_sent_is_the_same_study() {
    let folder = project(STUDY);
    let sent = bundle::pack(&plan(folder.path())).expect("it can be sent");
    let there = tempfile::tempdir().expect("a folder");
    for file in &sent.files {
        let path = there.path().join(&file.path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, &file.text).expect("written");
    }
    let mut read = Study::read(there.path().join(&sent.study), &[]).expect("the same study").study;
    assert_eq!(read.on.kubernetes.as_ref().and_then(|it| it.context.clone()), None);
    if let Some(cluster) = &mut read.on.kubernetes {
        cluster.context = Some("far".to_owned());
    }
    assert_eq!(read, plan(folder.path()).study);
}

#[test]
fn what_would_be_missing_in_the_pod_is_refused() {
    let refused = |from: &str, to: &str| {
        assert!(STUDY.contains(from), "{from}");
        let folder = project(&STUDY.replace(from, to));
        format!("{:#}", bundle::pack(&plan(folder.path())).expect_err("it cannot be sent"))
    };
    let error = refused("gaps.txt", "/tmp/gaps.txt");
    assert!(error.contains("/tmp/gaps.txt") && error.contains("relative"), "{error}");
    let error = refused("gaps.txt", "absent.txt");
    assert!(error.contains("absent.txt cannot be taken along"), "{error}");
    let error = refused("'yes'", "'${env.HOME}'");
    assert!(error.contains("--set NAME=VALUE"), "{error}");
    let error = refused("variants:\n", "  db: {command: [postgres]}\nvariants:\n");
    assert!(error.contains("db is started by unladen itself"), "{error}");
    let local = "{study: a, services: {app: {command: [app]}}, variants: {baseline: {}, b: {}}, load: {url: 'http://127.0.0.1:1/'}}";
    let error = bundle::pack(&plan(project(local).path())).expect_err("it has no cluster").to_string();
    assert!(error.contains("no `on: {kubernetes"), "{error}");
}

#[test]
fn what_several_nodes_cannot_share_is_refused() {
    let arguments = ["unladen", "run", "perf", "--in-cluster", "--node", "a", "--node", "b"];
    let Command::Run(options) = Cli::parse_from(arguments).command else { panic!("it is `run`") };
    let orders = |study: &str| nodes::orders(&plan(project(study).path()), &options);
    assert_eq!(orders(STUDY).expect("one for each").len(), 2);
    let error = orders(&STUDY.replace("study: Shop", "study: Shop\nuntil: {cpu_per_request: 1%}"))
        .expect_err("no number of rounds");
    assert!(error.to_string().contains("leave open"), "{error}");
    let far = |load: &str| STUDY.replace("context: far}", &format!("context: far, load: {{parts: 2{load}}}}}"));
    let error = orders(&far("")).expect_err("from a node that is measured");
    assert!(error.to_string().contains("`on.kubernetes.load.nodes`"), "{error}");
    assert_eq!(orders(&far(", nodes: {pool: load}")).expect("from others").len(), 2);
}

#[test]
fn what_is_too_large_is_named() {
    let folder = project(STUDY);
    fs::write(folder.path().join("deploy/large.yaml"), "#".repeat(MAX_BYTES)).expect("written");
    let error = bundle::pack(&plan(folder.path())).expect_err("too large").to_string();
    assert!(error.contains("deploy/large.yaml (1024 KiB)") && error.contains("holds 1024 KiB"), "{error}");
}

#[test]
fn runs_have_names_that_pods_can_have() {
    assert_eq!(name("Shop, by night", 0xabc), "shop--by-night-00000abc");
    assert_eq!(name("…", u64::MAX), "study-ffffffff");
    assert_eq!(name(&"x".repeat(99), 0).len(), 49);
}
