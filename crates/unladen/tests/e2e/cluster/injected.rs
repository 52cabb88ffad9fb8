//! A variant that an injector makes: the OpenTelemetry Operator, as its project publishes it. `scripts/cluster/cluster.py operator` starts it.

use std::collections::BTreeSet;

use super::{Cluster, Made, manifest, of, study};
use crate::harness::{assert_ledger_is_whole, counted, on_all_cores};

/// Asks for an SDK in the pods: the variables that it is told by.
const INSTRUMENTATION: &str = include_str!("../../../../../studies/otel-operator/instrumentation.yaml");

/// A variant that has nothing of its own but an annotation, and the object that tells the operator what to do.
fn variant(annotation: &str) -> String {
    format!(
        r#"
  otel:
    label: OpenTelemetry
    spans_per_request: 4
    services: {{shop: {{annotations: {{instrumentation.opentelemetry.io/inject-sdk: {annotation}, instrumentation.opentelemetry.io/container-names: shop}}}}}}
    manifests: [instrumentation.yaml]
"#
    )
}

#[test]
fn the_opentelemetry_operator_instruments_a_variant() {
    let Some(cluster) = Cluster::find() else { return };
    let _turn = on_all_cores();
    if !cluster.kubectl(&["get", "mutatingwebhookconfigurations", "--output=name"]).contains("opentelemetry-operator") {
        return println!("SKIPPED: the cluster has no OpenTelemetry Operator: `scripts/cluster/cluster.py operator`");
    }
    let scratch = cluster.scratch(&study("injected", &variant("\"true\"")).replace("rounds: 1", "rounds: 2"));
    let traces = ["http://127.0.0.1:8081/provider\"", "http://127.0.0.1:8081/provider\", --trace, env"];
    scratch.write("deploy/shop.yaml", &manifest().replace(traces[0], traces[1]));
    scratch.write("instrumentation.yaml", INSTRUMENTATION);
    // Whoever has the rights of deploy/kubernetes may not make objects of a kind that is not everybody's: an administrator adds that.
    let run = |out: &str| cluster.ask(&scratch, &cluster.account, &["run", ".", "--out", out, "--plain"]);
    run("refused").ends_with(2).complains(&["forbidden", "instrumentations"]);
    let role = cluster.ask(&scratch, &cluster.account, &["doctor", ".", "--role"]).ends_with(0).out;
    assert!(role.contains("opentelemetry.io"), "{role}");
    let _role = Made::new(&cluster, role);
    run("out").ends_with(0);
    let runs = scratch.runs();
    for run in counted(&runs).iter().filter(|run| run.variant == "otel") {
        assert_ledger_is_whole(run, 100);
    }
    let findings = scratch.findings();
    let changed: BTreeSet<_> = of(&findings, "otel").admitted.iter().map(|it| it.path.as_str()).collect();
    for variable in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_RESOURCE_ATTRIBUTES"] {
        assert!(
            changed.iter().any(|it| it.starts_with(&format!("spec.containers.shop.env.{variable}"))),
            "{changed:?}"
        );
    }
    assert!(!changed.iter().any(|it| it.contains("containers.stock")), "one container of the pod: {changed:?}");

    // The operator knows no such object, says so in its log, and lets the pod pass as it is.
    scratch.write("study.yaml", &study("injected", &variant("no-such-instrumentation")));
    run("inert").ends_with(2).complains(&["no injector acted", "inject-sdk"]);
    cluster.assert_nothing_left(&scratch);
}
