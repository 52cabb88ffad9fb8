//! Live workloads to manifests for a study: asks for them and for what their pods name. Changes nothing in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::api::{Api, Failure, base, items, name};
use super::config::Cluster;
use super::error::KubernetesError;
use super::imported::Imported;
use super::manifests::scales;
use super::strip;
use super::template::{self, Named};
use super::workload::Workload;
use super::written::{file, manifest};

/// What the controllers put into every namespace by themselves.
const OF_EVERY_NAMESPACE: [(&str, &str); 2] = [("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")];
/// Autoscalers: API, plural name, kind.
pub(super) const AUTOSCALERS: [(&str, &str, &str); 3] = [
    ("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    ("autoscaling.k8s.io/v1", "verticalpodautoscalers", "VerticalPodAutoscaler"),
    ("keda.sh/v1alpha1", "scaledobjects", "ScaledObject"),
];

/// Reads live workloads of a namespace (`None`: that of the context), and the ConfigMaps, Secrets, Services and ServiceAccounts that their pods
/// need. `with_secrets`: with the values of the Secrets.
///
/// # Errors
/// The cluster does not answer, or a workload is not there or may not be read.
pub fn import(
    context: Option<&str>,
    namespace: Option<&str>,
    workloads: &[Workload],
    with_secrets: bool,
) -> Result<Imported, KubernetesError> {
    import_from(&Api::open(Cluster::find(context)?)?, namespace, workloads, with_secrets)
}

fn import_from(
    api: &Api,
    namespace: Option<&str>,
    workloads: &[Workload],
    with_secrets: bool,
) -> Result<Imported, KubernetesError> {
    let namespace =
        namespace.map(str::to_owned).or_else(|| api.cluster().namespace()).unwrap_or_else(|| "default".to_owned());
    let mut import = Import { api, namespace, with_secrets, objects: BTreeMap::new(), notes: Vec::new() };
    let services = import.list("v1", "services", "Services that send to the pods are not taken");
    let scaling = import.autoscalers();
    let mut imported = Imported { namespace: import.namespace.clone(), ..Imported::default() };
    for workload in workloads {
        let live = import.workload(workload)?;
        let template = import.take_workload(workload, &live, &scaling);
        let of_pods: Vec<&Value> = services.iter().filter(|service| template::selects(service, &template)).collect();
        imported.live.push(template::live(workload, &template, &of_pods));
        of_pods.iter().for_each(|service| import.take_service(service));
        import.take_named(&template, &workload_words(workload));
    }
    import.look_for_production();
    imported.manifests = import.objects.iter().map(|((kind, name), object)| manifest(kind, name, object)).collect();
    imported.notes = import.notes;
    Ok(imported)
}

/// What has been read so far.
struct Import<'a> {
    api: &'a Api,
    namespace: String,
    with_secrets: bool,
    /// By kind and name.
    objects: BTreeMap<(String, String), Value>,
    notes: Vec<String>,
}

fn workload_words(workload: &Workload) -> String {
    format!("{} {}", workload.kind.name(), workload.name)
}

impl Import<'_> {
    fn folder(&self, api_version: &str, plural: &str) -> String {
        format!("{}/namespaces/{}/{plural}", base(api_version), self.namespace)
    }

    /// All objects of a kind; `otherwise`: what follows if they may not be listed.
    fn list(&mut self, api_version: &str, plural: &str, otherwise: &str) -> Vec<Value> {
        match self.api.get(&self.folder(api_version, plural)) {
            Ok(list) => items(&list).to_vec(),
            Err(failure) if failure.is_absence() => Vec::new(),
            Err(failure) => {
                self.notes.push(format!("{otherwise}: {}", failure.words()));
                Vec::new()
            }
        }
    }

    /// Autoscalers with their kinds.
    fn autoscalers(&mut self) -> Vec<(&'static str, Value)> {
        let mut all = Vec::new();
        for (api_version, plural, kind) in AUTOSCALERS {
            if matches!(self.api.resource(api_version, kind), Ok(None)) {
                continue;
            }
            let otherwise = format!("whether a {kind} sets the number or size of the pods is not known");
            all.extend(self.list(api_version, plural, &otherwise).into_iter().map(|object| (kind, object)));
        }
        all
    }

    /// The workload as it is in the cluster.
    fn workload(&self, workload: &Workload) -> Result<Value, KubernetesError> {
        let folder = self.folder("apps/v1", &format!("{}s", workload.kind));
        self.api.get(&format!("{folder}/{}", workload.name)).map_err(|failure| match failure {
            Failure::Refused(404, _) => {
                let list = self.api.get(&folder).unwrap_or_default();
                let known: Vec<String> =
                    items(&list).iter().map(|it| format!("{}/{}", workload.kind, name(it))).collect();
                let known = if known.is_empty() { "none of its kind".to_owned() } else { known.join(", ") };
                KubernetesError::NotLive { workload: workload.clone(), namespace: self.namespace.clone(), known }
            }
            Failure::Refused(401 | 403, said) => {
                KubernetesError::Unread { workload: workload.clone(), namespace: self.namespace.clone(), said }
            }
            other => other.when(self.api, &format!("show {workload}")),
        })
    }

    /// Takes a workload; returns its pod template.
    fn take_workload(&mut self, workload: &Workload, live: &Value, scaling: &[(&str, Value)]) -> Value {
        let (kind, words) = (workload.kind.name(), workload_words(workload));
        let mut bare = strip::bare(live, "apps/v1", kind);
        let mut said = Vec::new();
        let mut is_scaled = false;
        for (scaler, object) in scaling {
            if scales(scaler, object) == Some((kind, workload.name.as_str())) {
                is_scaled |= *scaler != "VerticalPodAutoscaler";
                said.push(scaled(scaler, object));
            }
        }
        let pods = bare.pointer("/spec/replicas").and_then(Value::as_u64);
        strip::workload(&mut bare, is_scaled, &mut said);
        if let Some(pods) = pods.filter(|pods| is_scaled && *pods != 1) {
            said.push(format!("it has {pods} pods now, and 1 in the study: set `replicas` there if you want more"));
        }
        let template = bare.pointer("/spec/template").cloned().unwrap_or_default();
        let instrumentation = template::instrumentation(&template);
        if !instrumentation.is_empty() {
            let names = instrumentation.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            said.push(format!(
                "{names} may turn on instrumentation, which the baseline would have: move it to a variant"
            ));
        }
        self.notes.extend(said.into_iter().map(|note| format!("{words}: {note}")));
        self.objects.insert((kind.to_owned(), workload.name.clone()), bare);
        template
    }

    fn take_service(&mut self, service: &Value) {
        let key = ("Service".to_owned(), name(service).to_owned());
        if self.objects.contains_key(&key) {
            return;
        }
        let (mut bare, mut said) = (strip::bare(service, "v1", "Service"), Vec::new());
        strip::service(&mut bare, &mut said);
        self.notes.extend(said.into_iter().map(|note| format!("Service {}: {note}", key.1)));
        self.objects.insert(key, bare);
    }

    /// Takes what a template names, and what that names.
    fn take_named(&mut self, of: &Value, words: &str) {
        for named in template::named(of) {
            let key = (named.kind.to_owned(), named.name.clone());
            if self.objects.contains_key(&key) || OF_EVERY_NAMESPACE[0] == (named.kind, named.name.as_str()) {
                continue;
            }
            let plural = format!("{}s", named.kind.to_lowercase());
            match self.api.get(&format!("{}/{}", self.folder("v1", &plural), named.name)) {
                Ok(object) => self.take_object(&named, object),
                Err(failure) if failure.is_absence() && (named.is_optional || named.kind == "ServiceAccount") => {}
                Err(failure) => self.notes.push(format!(
                    "{} {}, which {words} names, is not taken: {}. Write its manifest, or the pods will not start",
                    named.kind,
                    named.name,
                    failure.words()
                )),
            }
        }
    }

    fn take_object(&mut self, named: &Named, object: Value) {
        let (kind, name) = (named.kind, named.name.as_str());
        let mut bare = strip::bare(&object, "v1", kind);
        match kind {
            "ServiceAccount" => {
                if let Some(all) = bare.as_object_mut() {
                    // Tokens of this very account.
                    all.remove("secrets");
                }
                if OF_EVERY_NAMESPACE[1] == (kind, name) && bare.get("imagePullSecrets").is_none() {
                    return;
                }
                if OF_EVERY_NAMESPACE[1].1 != name {
                    let note =
                        "its rights in the cluster are not taken: what its pods ask the API server for is refused";
                    self.notes.push(format!("{kind} {name}: {note}"));
                }
                self.take_named(&bare, &format!("{kind} {name}"));
            }
            "Secret" if object["type"] == "kubernetes.io/service-account-token" => {
                return self.notes.push(format!("{kind} {name} is a token of the live namespace, and is not taken"));
            }
            "Secret" if !self.with_secrets => {
                strip::without_values(&mut bare);
                let file = file(kind, name);
                self.notes.push(format!(
                    "{kind} {name}: its values are not written. Put some for the test into deploy/{file}, or import with --with-secrets"
                ));
            }
            _ => {}
        }
        self.objects.insert((kind.to_owned(), name.to_owned()), bare);
    }

    /// Tells of what would send the load of a test to production.
    fn look_for_production(&mut self) {
        for ((kind, name), object) in &self.objects {
            let hosts: BTreeSet<String> = match kind.as_str() {
                "ConfigMap" => template::hosts_of(&self.namespace, &object["data"]),
                _ => template::hosts_of(&self.namespace, &object["spec"]),
            };
            if !hosts.is_empty() {
                let hosts = hosts.iter().map(|host| format!("`{host}`")).collect::<Vec<_>>().join(", ");
                self.notes.push(format!(
                    "{kind} {name} names {hosts}: pods of the study would ask the live one. Name it without its namespace, and import it as well"
                ));
            }
        }
    }
}

/// What an autoscaler does, and what follows.
fn scaled(kind: &str, object: &Value) -> String {
    let count = |key: &str| object.pointer(&format!("/spec/{key}")).and_then(Value::as_u64);
    let most = count("maxReplicas").or(count("maxReplicaCount"));
    let least = count("minReplicas").or(count("minReplicaCount")).unwrap_or(1);
    let keeps = most.map(|most| format!(" keeps it at {least} to {most} pods and")).unwrap_or_default();
    format!("{kind} {}{keeps} is left out: nothing may scale pods while they are measured", name(object))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    use serde_json::json;

    use super::super::manifests::parse_text;
    use super::*;

    /// An API server that has the objects of `fixtures`, and refuses what is at some paths.
    fn server(refused: &'static [&'static str]) -> Api {
        let list: Value = serde_json::from_str(include_str!("fixtures/live.json")).expect("JSON");
        let objects = items(&list).to_vec();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let mut lines = BufReader::new(&connection).lines().map_while(Result::ok);
                let first = lines.next().unwrap_or_default();
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let path = first.split(' ').nth(1).unwrap_or_default();
                let (code, body) = match refused.contains(&path) {
                    true => (403, json!({"message": format!("User \"x\" cannot get {path}")})),
                    false => found(&objects, path),
                };
                let body = body.to_string();
                let head = format!("HTTP/1.1 {code} x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = (&connection).write_all((head + &body).as_bytes());
            }
        });
        let config = json!({"clusters": [{"name": "a", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "namespace": "prod"}}], "current-context": "a"});
        Api::open(Cluster::from_line(&config.to_string()).expect("a kubeconfig")).expect("nothing is asked")
    }

    fn found(objects: &[Value], path: &str) -> (u16, Value) {
        if path == "/apis/autoscaling/v2" {
            let kind =
                json!({"name": "horizontalpodautoscalers", "namespaced": true, "kind": "HorizontalPodAutoscaler"});
            return (200, json!({"resources": [kind]}));
        }
        let (_, rest) = path.split_once("/namespaces/prod/").unwrap_or_default();
        let (plural, wanted) = rest.split_once('/').unwrap_or((rest, ""));
        let is_kind = |it: &&Value| format!("{}s", it["kind"].as_str().unwrap_or_default().to_lowercase()) == plural;
        let mut of_kind = objects.iter().filter(is_kind).cloned();
        match wanted {
            "" => (200, json!({"items": of_kind.collect::<Vec<_>>()})),
            wanted => {
                of_kind.find(|it| name(it) == wanted).map_or((404, json!({"message": "not found"})), |it| (200, it))
            }
        }
    }

    fn imported(
        refused: &'static [&'static str],
        workloads: &[&str],
        with_secrets: bool,
    ) -> Result<Imported, KubernetesError> {
        let workloads: Vec<Workload> = workloads.iter().map(|it| it.parse().expect("a workload")).collect();
        import_from(&server(refused), None, &workloads, with_secrets)
    }

    #[test]
    fn a_workload_comes_with_what_its_pods_need() {
        let it = imported(&[], &["deployment/shop", "statefulset/db"], false).expect("it is taken");
        let objects: Vec<&str> = it.manifests.iter().map(|manifest| manifest.object.as_str()).collect();
        let wanted = [
            "ConfigMap shop",
            "Deployment shop",
            "Secret db",
            "Secret registry",
            "Service db",
            "Service shop",
            "ServiceAccount shop",
            "StatefulSet db",
        ];
        assert_eq!(objects, wanted);
        assert_eq!(it.namespace, "prod");
        assert_eq!(it.live.iter().map(|live| live.port).collect::<Vec<_>>(), [Some(8080), Some(5432)]);
        let all: String = it.manifests.iter().map(|manifest| manifest.text.as_str()).collect();
        for absent in ["aHVudGVyMg", "uid", "managedFields", "last-applied", "status"] {
            assert!(!all.contains(absent), "{absent}: {all}");
        }
        let told =
            ["Secret db: its values are not written", "Secret registry: its values", "ServiceAccount shop: its rights"];
        assert!(
            it.notes.len() == told.len() && told.iter().all(|told| it.notes.iter().any(|note| note.starts_with(told))),
            "{:#?}",
            it.notes
        );
        let secret = it.manifests.iter().find(|manifest| manifest.object == "Secret db").expect("it");
        assert!(
            secret.is_secret
                && secret.file == "secret-db.yaml"
                && it.notes.iter().any(|note| note.contains("deploy/secret-db.yaml"))
        );
        let map = it.manifests.iter().find(|manifest| manifest.object == "ConfigMap shop").expect("it");
        let written = parse_text(include_str!("fixtures/written.yaml")).expect("YAML");
        assert_eq!(parse_text(&map.text).expect("YAML"), [written[1].clone()], "{}", map.text);

        let with = imported(&[], &["statefulset/db"], true).expect("it is taken");
        assert!(with.notes.is_empty() && with.manifests.iter().any(|it| it.text.contains("aHVudGVyMg")), "{with:#?}");
    }

    #[test]
    fn what_is_not_as_in_the_cluster_is_told() {
        let it = imported(&[], &["deployment/bound"], false).expect("it is taken");
        let said = it.notes.join("\n");
        for words in [
            "Deployment bound: HorizontalPodAutoscaler bound keeps it at 2 to 9 pods and is left out",
            "Deployment bound: it has 3 pods now, and 1 in the study",
            "Deployment bound: `OTEL_SERVICE_NAME`, `instrumentation.opentelemetry.io/inject-java` may turn on instrumentation",
            "Service bound: it is of the type NodePort",
            "ConfigMap bound names `cache.prod`, `db.prod`",
            "Secret lost, which Deployment bound names, is not taken: not found. Write its manifest",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(it.notes.iter().all(|note| !note.contains('\n')), "{said}");
    }

    #[test]
    fn what_may_not_be_read_is_told_and_what_is_not_there_is_named() {
        let error = imported(&[], &["deployment/shob"], false).expect_err("no such workload").to_string();
        assert!(
            error.contains("no deployment/shob in the namespace `prod`") && error.contains("deployment/shop"),
            "{error}"
        );
        let error = imported(&["/apis/apps/v1/namespaces/prod/deployments/shop"], &["deployment/shop"], false);
        let error = error.expect_err("it may not be read").to_string();
        assert!(
            error.contains("deployment/shop in the namespace `prod` may not be read: User \"x\" cannot get"),
            "{error}"
        );
        let refused = &["/api/v1/namespaces/prod/secrets/db", "/api/v1/namespaces/prod/services"];
        let it = imported(refused, &["statefulset/db"], false).expect("it is taken");
        let said = it.notes.join("\n");
        assert!(
            said.contains("Secret db, which StatefulSet db names, is not taken") && said.contains("Services that send"),
            "{said}"
        );
    }
}
