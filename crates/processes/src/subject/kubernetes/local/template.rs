//! What a pod template tells of its service: the objects that it names, the container that serves, its port, how it says that it is ready; and
//! what it has of instrumentation and of production. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value};
use unladen_journal::admitted::each_text;

use super::imported::{Live, ReadyBy};
use super::manifests::containers;
use super::workload::Workload;

/// What names of variables, labels and annotations begin with that turn on instrumentation.
const INSTRUMENTATION: [&str; 12] = [
    "OTEL_",
    "DD_",
    "ELASTIC_APM_",
    "NEW_RELIC_",
    "SENTRY_",
    "SW_",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "instrumentation.opentelemetry.io/",
    "sidecar.opentelemetry.io/",
    "admission.datadoghq.com/",
    "sermant-injection",
];

/// An object that pods name, and whether they run without it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) is_optional: bool,
}

/// The ConfigMaps, Secrets and the ServiceAccount that a pod template, or an account, names.
pub(super) fn named(value: &Value) -> BTreeSet<Named> {
    let mut all = BTreeSet::new();
    look(value, &mut all);
    all
}

fn look(value: &Value, all: &mut BTreeSet<Named>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let mut add = |kind: &'static str, of: &Value, field: &str| {
                    let Some(name) = of.get(field).and_then(Value::as_str) else { return };
                    let is_optional = of.get("optional") == Some(&Value::Bool(true));
                    all.insert(Named { kind, name: name.to_owned(), is_optional });
                };
                match key.as_str() {
                    "configMap" | "configMapRef" | "configMapKeyRef" => add("ConfigMap", value, "name"),
                    "secretRef" | "secretKeyRef" => add("Secret", value, "name"),
                    // A volume of its own, or a part of a projected one.
                    "secret" => ["secretName", "name"].iter().for_each(|field| add("Secret", value, field)),
                    "imagePullSecrets" => {
                        value.as_array().into_iter().flatten().for_each(|secret| add("Secret", secret, "name"));
                    }
                    "serviceAccountName" => add("ServiceAccount", &Value::Object(entries.clone()), key),
                    _ => {}
                }
                look(value, all);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| look(item, all)),
        _ => {}
    }
}

/// Whether a Service sends to the pods of a template.
pub(super) fn selects(service: &Value, template: &Value) -> bool {
    let selector = service.pointer("/spec/selector").and_then(Value::as_object).filter(|selector| !selector.is_empty());
    let label = |name: &str| template.pointer("/metadata/labels").and_then(|labels| labels.get(name));
    selector.is_some_and(|selector| selector.iter().all(|(name, value)| label(name) == Some(value)))
}

/// What a study says of a workload, by its manifest and the Services that send to its pods.
pub(super) fn live(workload: &Workload, template: &Value, services: &[&Value]) -> Live {
    let targets: Vec<&Value> =
        services.iter().flat_map(|service| list(service, "/spec/ports")).map(|port| &port["targetPort"]).collect();
    let all: Vec<&Value> = list(template, "/spec/containers").collect();
    let target_of = |container: &Value| targets.iter().find_map(|target| port(container, target));
    let is_default = |container: &&&Value| {
        let default = template.pointer("/metadata/annotations").and_then(|it| it.get(super::fit::DEFAULT_CONTAINER));
        default.is_some_and(|name| container.get("name") == Some(name))
    };
    let has_ports = |container: &&&Value| list(container, "/ports").next().is_some();
    let declares_target = |container: &&&Value| {
        target_of(container).is_some_and(|port| list(container, "/ports").any(|it| it["containerPort"] == port))
    };
    let chosen = all.iter().find(is_default).or_else(|| all.iter().find(declares_target));
    let chosen = chosen.or_else(|| all.iter().find(has_ports)).or(all.first()).copied().unwrap_or(&Value::Null);
    let ready = ready(chosen);
    let of_probe = match &ready {
        ReadyBy::Http { port, .. } | ReadyBy::Tcp { port } => Some(*port),
        ReadyBy::Kubelet | ReadyBy::Nothing => None,
    };
    let declared = list(chosen, "/ports").filter(|it| it.get("protocol").is_none_or(|protocol| protocol == "TCP"));
    let is_web = |it: &&Value| {
        it.get("name").and_then(Value::as_str).is_some_and(|name| name.starts_with("http") || name == "web")
    };
    let mut declared: Vec<&Value> = declared.collect();
    declared.sort_by_key(|it| !is_web(it));
    let declared = declared.first().and_then(|it| number(&it["containerPort"]));
    let name = chosen.get("name").and_then(Value::as_str).map(str::to_owned);
    Live {
        workload: workload.clone(),
        container: name.filter(|_| containers(template).len() > 1),
        port: target_of(chosen).or(declared).or(of_probe),
        ready,
        patience: ["startupProbe", "readinessProbe"].iter().filter_map(|key| patience(chosen.get(*key)?)).sum(),
    }
}

fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| u16::try_from(number).ok())
}

/// A port by number, or by the name that the container gives it.
fn port(container: &Value, target: &Value) -> Option<u16> {
    number(target).or_else(|| {
        let named = |it: &&Value| target.is_string() && it.get("name") == Some(target);
        list(container, "/ports").find(named).and_then(|it| number(&it["containerPort"]))
    })
}

fn ready(container: &Value) -> ReadyBy {
    let Some(probe) = container.get("readinessProbe") else { return ReadyBy::Nothing };
    let plain = |call: &&Value| call.get("host").is_none() && call.get("scheme").is_none_or(|scheme| scheme == "HTTP");
    if let Some(call) = probe.get("httpGet").filter(plain)
        && let Some(port) = port(container, &call["port"])
    {
        let path = call.get("path").and_then(Value::as_str).filter(|path| !path.is_empty()).unwrap_or("/");
        // Headers are for the kubelet to send.
        return if call.get("httpHeaders").is_some() {
            ReadyBy::Kubelet
        } else {
            ReadyBy::Http { port, path: path.to_owned() }
        };
    }
    match probe.get("tcpSocket").filter(plain).and_then(|call| port(container, &call["port"])) {
        Some(port) => ReadyBy::Tcp { port },
        None => ReadyBy::Kubelet,
    }
}

/// How long a probe waits before it gives up.
fn patience(probe: &Value) -> Option<Duration> {
    let seconds = |key: &str, default: u64| probe.get(key).and_then(Value::as_u64).unwrap_or(default);
    Some(Duration::from_secs(
        seconds("initialDelaySeconds", 0) + seconds("periodSeconds", 10) * seconds("failureThreshold", 3),
    ))
}

/// Names of variables, labels and annotations of a template that are instrumentation.
pub(super) fn instrumentation(template: &Value) -> BTreeSet<String> {
    let of_pods = ["/metadata/labels", "/metadata/annotations"].iter();
    let of_pods = of_pods.filter_map(|at| template.pointer(at)?.as_object()).flat_map(Map::keys).map(String::as_str);
    let of_containers = ["/spec/containers", "/spec/initContainers"].iter().flat_map(|at| list(template, at));
    let variables =
        of_containers.flat_map(|container| list(container, "/env")).filter_map(|it| it.get("name")?.as_str());
    let known = |name: &&str| INSTRUMENTATION.iter().any(|start| name.starts_with(start));
    of_pods.chain(variables).filter(known).map(str::to_owned).collect()
}

/// Texts in an object that name a host of a namespace in full, which is the live one from everywhere.
pub(super) fn hosts_of(namespace: &str, value: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    each_text(value, &mut |text| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        for word in text.split(|c: char| !is_part(c)) {
            let mut parts = word.trim_matches('.').splitn(3, '.');
            let (Some(host), Some(second), rest) = (parts.next(), parts.next(), parts.next()) else { continue };
            // `x.default` is a word of many files.
            let is_service = rest.map_or(namespace != "default", |rest| rest == "svc" || rest.starts_with("svc."));
            if !host.is_empty() && second == namespace && is_service {
                all.insert(format!("{host}.{second}"));
            }
        }
    });
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::subject::kubernetes::local::manifests::parse_text;

    fn written(kind: &str, name: &str) -> Value {
        let all = [include_str!("fixtures/written.yaml"), include_str!("fixtures/bound.yaml")];
        let mut all = all.into_iter().flat_map(|text| parse_text(text).expect("YAML"));
        all.find(|it| it["kind"] == kind && it["metadata"]["name"] == name).expect(name)
    }

    fn template(kind: &str, name: &str) -> Value {
        written(kind, name)["spec"]["template"].clone()
    }

    fn live_of(workload: &str, template: &Value, services: &[&str]) -> Live {
        let services: Vec<Value> = services.iter().map(|name| written("Service", name)).collect();
        live(&workload.parse().expect("a workload"), template, &services.iter().collect::<Vec<_>>())
    }

    #[test]
    fn pods_name_what_they_need() {
        let names = |of: &Value| -> Vec<String> {
            named(of)
                .into_iter()
                .map(|it| format!("{} {}{}", it.kind, it.name, if it.is_optional { "?" } else { "" }))
                .collect()
        };
        let of_shop = ["ConfigMap absent?", "ConfigMap shop", "Secret db", "ServiceAccount shop"];
        assert_eq!(names(&template("Deployment", "shop")), of_shop);
        assert_eq!(names(&written("ServiceAccount", "shop")), ["Secret registry"]);
        assert_eq!(names(&template("StatefulSet", "db")), ["Secret db"]);
        assert_eq!(names(&template("DaemonSet", "agent")), Vec::<String>::new());
    }

    #[test]
    fn a_service_sends_to_pods_that_have_all_of_its_labels() {
        let template = template("Deployment", "shop");
        assert!(selects(&written("Service", "shop"), &template) && !selects(&written("Service", "db"), &template));
        for selector in [json!({"app": "shop", "tier": "db"}), json!({}), json!(null)] {
            assert!(!selects(&json!({"spec": {"selector": selector}}), &template));
        }
    }

    #[test]
    fn the_container_that_serves_is_found_by_its_service_its_ports_and_its_probe() {
        let mut shop = template("Deployment", "shop");
        let workload: Workload = "deployment/shop".parse().expect("a workload");
        let wanted = Live {
            workload,
            container: Some("app".to_owned()),
            port: Some(8080),
            ready: ReadyBy::Http { port: 8080, path: "/ready".to_owned() },
            patience: Duration::from_secs(60 + 5),
        };
        assert_eq!(live_of("deployment/shop", &shop, &["shop"]), wanted);
        // Without a Service the first that has ports.
        let first = live_of("deployment/shop", &shop, &[]);
        assert_eq!(
            (first.container.as_deref(), first.port, first.ready),
            (Some("proxy"), Some(9090), ReadyBy::Nothing)
        );
        // Its owner says which; what is called after the web comes before other ports.
        shop["metadata"]["annotations"][super::super::fit::DEFAULT_CONTAINER] = json!("app");
        let chosen = live_of("deployment/shop", &shop, &[]);
        assert_eq!((chosen.container.as_deref(), chosen.port), (Some("app"), Some(8080)));
        shop["spec"]["containers"][1]["ports"][1]["name"] = json!("x");
        assert_eq!(live_of("deployment/shop", &shop, &[]).port, Some(8081));

        let db = live_of("statefulset/db", &template("StatefulSet", "db"), &["db"]);
        assert_eq!((db.container, db.port, db.ready), (None, Some(5432), ReadyBy::Kubelet));
        let bound = live_of("deployment/bound", &template("Deployment", "bound"), &["bound"]);
        assert_eq!((bound.port, bound.ready), (Some(8080), ReadyBy::Kubelet));
        let agent = live_of("daemonset/agent", &template("DaemonSet", "agent"), &[]);
        assert_eq!((agent.port, agent.ready, agent.patience), (None, ReadyBy::Nothing, Duration::ZERO));
        let tcp = json!({"spec": {"containers": [{"name": "a", "readinessProbe": {"tcpSocket": {"port": 5432}}}]}});
        let tcp = live_of("deployment/a", &tcp, &[]);
        assert_eq!((tcp.port, tcp.ready), (Some(5432), ReadyBy::Tcp { port: 5432 }));
    }

    #[test]
    fn instrumentation_and_hosts_of_production_are_noticed() {
        let of_bound = instrumentation(&template("Deployment", "bound"));
        assert_eq!(
            of_bound.into_iter().collect::<Vec<_>>(),
            ["OTEL_SERVICE_NAME", "instrumentation.opentelemetry.io/inject-java"]
        );
        assert_eq!(instrumentation(&template("Deployment", "shop")), BTreeSet::new());
        let hosts = |namespace: &str, value: &Value| hosts_of(namespace, value).into_iter().collect::<Vec<_>>();
        assert_eq!(hosts("prod", &written("ConfigMap", "bound")["data"]), ["cache.prod", "db.prod"]);
        assert_eq!(hosts("prod", &written("ConfigMap", "shop")["data"]), Vec::<String>::new());
        let texts = json!(["spring.default", "http://db.default.svc:1/", {"a": "x.default.svc.cluster.local"}]);
        assert_eq!(hosts("default", &texts), ["db.default", "x.default"]);
    }
}
