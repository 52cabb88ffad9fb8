//! What a study means: variants, merged processes, their order, replicas.

use std::path::Path;

use unladen_decode::span::Protocol;
use unladen_journal::record::VariantKind;

use super::super::plan::{Plan, PlannedVariant};
use super::super::spec::{Lifetime, TraceHeader};
use super::super::stack::Stack;
use super::super::variables::{PortName, Variables};
use super::{SHOP, refusal, study};

fn plan(text: &str, sets: &[&str]) -> Plan {
    Plan::from_study(study(text, sets), Path::new("/studies/shop")).expect("a plan")
}

const LADDER: &str = "
study: ladder
services:
  app:
    command: ./app --port ${port.app} --peers ${port.app.0},${port.app.1} --db ${port.db} --admin ${port.admin}
    args: [--name, 'app ${replica}']
    env: {A: base, B: base, PORT: '${port.app}'}
    needs: [proxy, db]
    replicas: 2
    build: make app
    ready: {tcp: '127.0.0.1:${port.app}'}
  proxy: {role: dependency, command: proxy, needs: [db]}
  otelcol: {role: collector, command: 'otelcol ${sink.otlp_grpc}', only: [otel]}
  db: {role: dependency, command: 'db ${port.db}', lifetime: study}
variants:
  otel:
    label: OpenTelemetry
    services:
      app:
        args: [--traced]
        env: {B: otel, C: otel}
        cwd: elsewhere
    spans_per_request: 3
    sampled: 10%
  baseline:
    label: Bare
  other:
    trace: sw8
    services:
      app: {command: [./other, 'a b'], build: make other, ready: {log: up}}
load: {url: 'http://127.0.0.1:${port.app}/'}
";

#[test]
fn variants_are_baseline_placebo_and_the_others_in_order() {
    let plan = plan(LADDER, &[]);
    let variants: Vec<_> =
        plan.variants.iter().map(|variant| (variant.name.as_str(), variant.label.as_str(), variant.kind)).collect();
    assert_eq!(
        variants,
        [
            ("baseline", "Bare", VariantKind::Baseline),
            ("placebo", "placebo", VariantKind::Placebo),
            ("otel", "OpenTelemetry", VariantKind::Variant),
            ("other", "other", VariantKind::Variant),
        ]
    );
    let spans: Vec<_> = plan.variants.iter().map(|variant| (variant.spans_per_request, variant.sampled.0)).collect();
    assert_eq!(spans, [(Some(0.0), 1.0), (Some(0.0), 1.0), (Some(3.0), 0.1), (None, 1.0)]);
    let headers: Vec<_> = plan.variants.iter().map(|variant| variant.load.trace).collect();
    assert_eq!(headers, [TraceHeader::W3c, TraceHeader::W3c, TraceHeader::W3c, TraceHeader::Sw8]);
    assert_eq!(plan.variants[0].processes, plan.variants[1].processes, "the placebo is the baseline");
    let without = super::study(LADDER, &["placebo=false"]);
    let without = Plan::from_study(without, Path::new("/x")).expect("a plan");
    assert!(without.variants.iter().all(|variant| variant.kind != VariantKind::Placebo));
}

#[test]
fn processes_start_after_what_they_need() {
    let plan = plan(LADDER, &[]);
    let order = |variant: usize| -> Vec<String> {
        plan.variants[variant]
            .processes
            .iter()
            .map(|process| format!("{}.{}", process.service, process.replica))
            .collect()
    };
    assert_eq!(order(0), ["db.0", "proxy.0", "app.0", "app.1"]);
    assert_eq!(order(2), ["otelcol.0", "db.0", "proxy.0", "app.0", "app.1"]);
    assert_eq!(plan.shared().iter().map(|process| process.service.as_str()).collect::<Vec<_>>(), ["db"]);
    assert!(plan.variants[0].fresh().all(|process| process.lifetime == Lifetime::Run));
}

#[test]
fn a_variant_is_merged_over_the_service() {
    let plan = plan(LADDER, &[]);
    let app =
        |variant: usize| plan.variants[variant].processes.iter().find(|process| process.service == "app").expect("app");
    let env =
        |variant: usize| app(variant).env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    assert_eq!(env(0), ["A=base", "B=base", "PORT=${port.app.0}"]);
    assert_eq!(env(2), ["A=base", "B=otel", "PORT=${port.app.0}", "C=otel"]);
    assert_eq!(app(2).command.last().map(String::as_str), Some("--traced"));
    assert_eq!(app(3).command, ["./other", "a b", "--name", "app 0"]);
    assert_eq!(app(0).build.as_deref(), Some(&["make".to_owned(), "app".to_owned()][..]));
    assert_eq!(app(3).build.as_deref(), Some(&["make".to_owned(), "other".to_owned()][..]));
    assert_eq!(app(0).ready.tcp.as_deref(), Some("127.0.0.1:${port.app.0}"));
    assert_eq!((app(3).ready.tcp.as_deref(), app(3).ready.log.as_deref()), (None, Some("up")));
    assert_eq!(app(2).cwd, Path::new("elsewhere"));
}

#[test]
fn replicas_have_ports_of_their_own() {
    let plan = plan(LADDER, &[]);
    let second = plan.variants[0].processes.iter().find(|process| process.replica == 1).expect("a second replica");
    assert_eq!(
        second.command,
        [
            "./app",
            "--port",
            "${port.app.1}",
            "--peers",
            "${port.app.0},${port.app.1}",
            "--db",
            // That of the service `db`, which has one.
            "${port.db}",
            "--admin",
            "${port.admin.1}",
            "--name",
            "app 1"
        ]
    );
    let ports: Vec<String> = plan.ports().iter().map(PortName::to_string).collect();
    assert_eq!(ports, ["admin.0", "admin.1", "app.0", "app.1", "db.0"]);
    assert_eq!(plan.sinks(), ["otlp_grpc"]);
}

#[test]
fn variables_are_filled_in_without_splitting_words() {
    let plan = plan(SHOP, &["heap=1g -Xss1m"]);
    let app = plan.variants[0].processes.last().expect("app");
    assert_eq!(app.command, ["java", "-Xmx1g -Xss1m", "-jar", "app.jar"]);
}

#[test]
fn only_some_variants() {
    let narrowed = plan(LADDER, &[]).only(&["other"]).expect("a plan");
    let variants: Vec<_> = narrowed.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(variants, ["baseline", "placebo", "other"]);
    assert!(!narrowed.study.services.contains_key("otelcol"), "what only `otel` needs is gone with it");
    assert!(narrowed.study.variants.keys().eq(["baseline", "other"]));

    let all = plan(LADDER, &[]).only(&["otel", "other", "placebo", "baseline"]).expect("a plan");
    assert_eq!(all.variants.len(), 4);

    let error = plan(LADDER, &[]).only(&["otl"]).expect_err("no such variant");
    assert_eq!(error.to_string(), "--only: variants: there is no variant `otl`, did you mean `otel`?");
}

#[test]
fn a_variant_takes_part_when_it_is_told_to() {
    let text = LADDER.replace("    trace: sw8", "    trace: sw8\n    when: ${var.agent.jar}")
        + "variables: {agent.jar: '', proxied: ''}\nladder: [baseline, other]\n";
    let text =
        text.replace("role: dependency, command: proxy", "when: '${var.proxied}', role: dependency, command: proxy");
    for (set, takes_part) in [("agent.jar=", false), ("agent.jar=no", false), ("agent.jar=a.jar", true)] {
        let (plan, out) = plan(&text, &[set]).of_those_that_take_part().expect("a plan");
        assert_eq!(plan.variants.iter().any(|variant| variant.name == "other"), takes_part, "{set}");
        assert_eq!(out, if takes_part { vec![] } else { vec!["other"] });
        assert_eq!(plan.study.ladder.each().count(), usize::from(takes_part));
        assert!(!plan.study.services.contains_key("proxy") && plan.study.services.contains_key("db"));
        assert!(plan.variants.iter().any(|variant| variant.name == "otel"), "a variant without `when` always does");
    }
}

#[test]
fn a_narrowed_study_reads_back() {
    let text = LADDER.to_owned() + "profiles: {p: {variants.otel.label: x, services.otelcol.env.A: x, window: 1s}}\n";
    let narrowed = plan(&text, &[]).only(&["other"]).expect("a plan");
    let written = super::super::write::resolved_yaml(&narrowed.study);
    assert_eq!(study(&written, &[]), narrowed.study);
    assert!(narrowed.study.profiles["p"].keys().eq(["window"]));
}

#[test]
fn a_container_takes_what_its_image_says_unless_the_study_does() {
    let text = "
study: images
services:
  app: {command: ./app --port 1, env: {A: a}}
  db: {role: dependency, image: 'db:${var.tag}', command: [serve, '${port.db}'], user: '70', volumes: ['./data:/data:ro', /own]}
variables: {tag: '17'}
variants:
  baseline: {}
  image: {services: {app: {image: 'app:1'}, db: {image: 'db:18', volumes: ['/more:/more']}}}
  told: {services: {app: {image: 'app:1', command: [run]}}}
load: {url: 'http://127.0.0.1:${port.db}/'}
";
    let plan = plan(text, &["placebo=false"]);
    let process = |variant: usize, service: &str| {
        let process = plan.variants[variant].processes.iter().find(|it| it.service == service).expect("a process");
        let sinks = Default::default();
        let variables = Variables {
            ports: [(PortName { name: "db".to_owned(), replica: 0 }, 5432)].into(),
            sinks,
            ..plan.variables()
        };
        process.resolve(&variables).expect("it can be resolved")
    };
    let bare = process(0, "app");
    assert_eq!((bare.image, bare.command.len()), (None, 3));
    let image = process(1, "app");
    assert_eq!(
        (image.image.map(|it| it.name).as_deref(), image.command),
        (Some("app:1"), vec![]),
        "a program's words are not a container's"
    );
    assert_eq!(image.env["A"], "a");
    assert_eq!(process(2, "app").command, ["run"]);
    let db = process(0, "db");
    assert_eq!(db.command, ["serve", "5432"]);
    let container = db.image.expect("a container");
    assert_eq!((container.name.as_str(), container.user.as_deref()), ("db:17", Some("70")));
    assert_eq!(container.volumes, ["/studies/shop/data:/data:ro", "/own"]);
    let changed = process(1, "db").image.expect("a container");
    assert_eq!((changed.name.as_str(), changed.volumes.len()), ("db:18", 3));
}

#[test]
fn workloads_of_a_cluster_are_changed_by_variants() {
    let text = "
study: s
on: {kubernetes: {context: kind, manifests: [deploy/]}}
variables: {team: blue}
services:
  app: {workload: deployment/shop, container: app, env: {A: a}, ready: {http: 'http://app:8080/'}}
  tool: {role: setup, command: ./tool}
variants:
  baseline:
  otel:
    manifests: [collector.yaml]
    services:
      app:
        env: {B: 'http://${sink.otlp_grpc}'}
        image: 'shop:otel'
        labels: {team: '${var.team}'}
        annotations: {inject: 'true'}
        patch: {spec: {containers: [{name: app, args: ['--to=${sink.zipkin}', 7]}]}}
load: {url: 'http://app:8080/'}
";
    let plan = plan(text, &[]);
    assert_eq!(plan.study.stacked().collect::<Vec<_>>(), ["app"]);
    assert_eq!(plan.sinks(), ["otlp_grpc", "zipkin"]);
    let offered = plan.offered_sinks();
    assert!(offered.contains(&Protocol::Datadog) && !offered.contains(&Protocol::Newrelic), "{offered:?}");
    let watched = self::plan(&text.replace("sink.zipkin", "sink.newrelic.port"), &[]);
    assert_eq!(watched.offered_sinks(), Protocol::ALL);
    let files = |variant: &PlannedVariant| variant.stack.iter().flat_map(Stack::files).collect::<Vec<_>>().join(" ");
    assert_eq!(plan.variants.iter().map(files).collect::<Vec<_>>(), ["deploy/", "deploy/", "deploy/ collector.yaml"]);
    let app = |variant: usize| plan.variants[variant].fresh().find(|it| it.service == "app").expect("it runs");
    let bare = app(0).pod.as_ref().expect("a workload");
    assert_eq!((bare.workload.as_str(), bare.container.as_deref()), ("deployment/shop", Some("app")));
    assert!(bare.image.is_none() && bare.patch.is_none() && bare.labels.is_empty());
    let otel = app(2);
    assert!(otel.is_stacked() && otel.image.is_none() && otel.knows_the_sink());
    let sinks = [("otlp_grpc", "1.1.1.1:1"), ("zipkin", "1.1.1.1:2")];
    let sinks = sinks.map(|(name, address)| (name.to_owned(), address.to_owned())).into();
    let otel = otel.resolve(&Variables { sinks, ..plan.variables() }).expect("it is filled in");
    assert_eq!(otel.env.values().collect::<Vec<_>>(), ["a", "http://1.1.1.1:1"]);
    let pod = otel.pod.expect("a workload");
    assert_eq!((pod.image.as_deref(), pod.labels["team"].as_str()), (Some("shop:otel"), "blue"));
    assert_eq!(pod.patch.expect("a patch")["spec"]["containers"][0]["args"], serde_json::json!(["--to=1.1.1.1:2", 7]));
}

#[test]
fn services_of_compose_files_are_counted_at_their_names() {
    let text = "
study: counted
on: {compose: [compose.yaml]}
services:
  app: {}
  jaeger: {role: storage, count: {prometheus: 'http://jaeger:8888/metrics', metric: spans_total}}
variants: {baseline: {}}
load: {url: 'http://app:8080/'}
";
    assert_eq!(plan(text, &[]).study.stacked().collect::<Vec<_>>(), ["app", "jaeger"]);
    let elsewhere = refusal(&text.replace("jaeger:8888", "elsewhere:8888"), &[]);
    assert!(elsewhere.contains("services.jaeger.count.prometheus") && elsewhere.contains("elsewhere"), "{elsewhere}");
}
