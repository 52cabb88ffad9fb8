//! What Compose makes of the files of a project (`config`), and what is changed in it so that it can be weighed. Files are merged and filled
//! in by Compose; here keys of the one document that comes out are set and removed. Pure.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};
use unladen_linux::CpuSet;
use unladen_linux::tree::MARK;

use super::super::launch::Limits;
use super::error::ComposeError;

/// A service as the files have it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declared {
    /// Its image.
    pub image: Option<String>,
    /// Whether it is in the network of the machine.
    pub host_network: bool,
    /// Ports of the container that it publishes, as written.
    pub ports: Vec<u16>,
}

/// What is changed in a service.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// Environment on top of the file's.
    pub env: IndexMap<String, String>,
    /// Limits instead of the file's.
    pub limits: Limits,
    /// Containers, if not as many as the file says.
    pub replicas: Option<u32>,
}

/// What is changed in a project.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fit {
    /// Cores of all services, unless their limits say otherwise.
    pub cpus: CpuSet,
    /// By service.
    pub services: BTreeMap<String, Changes>,
    /// Value of `UNLADEN_PAD`: see [`super::super::Launch::pad`].
    pub pad: String,
    /// Who keeps named volumes through the study. `None`: they go with the project.
    pub keep_volumes: Option<String>,
}

/// The document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Model(Map<String, Value>);

impl Model {
    /// Reads what `config` has printed: its services without profiles, with one of `profiles`, and those that are `named`.
    pub(super) fn read(text: &str, profiles: &[String], named: &[String]) -> Result<Self, ComposeError> {
        let unreadable = |reason: String| ComposeError::Unreadable { reason };
        let root: Value = serde_saphyr::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        let Value::Object(mut root) = root else { return Err(unreadable("it is no mapping".to_owned())) };
        // Named by `-p`.
        root.remove("name");
        let Some(Value::Object(services)) = root.get_mut("services") else {
            return Err(unreadable("it has no services".to_owned()));
        };
        services.retain(|name, service| {
            let own = service.as_object_mut().and_then(|service| service.remove("profiles"));
            let own: Vec<String> = texts(own.as_ref());
            own.is_empty() || named.contains(name) || own.iter().any(|profile| profiles.contains(profile))
        });
        Ok(Self(root))
    }

    /// Its services.
    pub(super) fn services(&self) -> BTreeMap<String, Declared> {
        let all = self.0.get("services").and_then(Value::as_object).into_iter().flatten();
        all.map(|(name, service)| (name.clone(), declared(service))).collect()
    }

    /// Sets and removes what is needed for a project of a study: no published ports, no fixed names, no restarts, cores, limits, environment,
    /// marks that begin with `mark`.
    pub(super) fn fit(&mut self, fit: &Fit, mark: &str, privileged: bool) -> Result<(), ComposeError> {
        let Some(Value::Object(services)) = self.0.get_mut("services") else { return Ok(()) };
        for (name, service) in services.iter_mut() {
            let Value::Object(service) = service else { continue };
            let named = || name.clone();
            if service.remove("build").is_some() && !service.contains_key("image") {
                return Err(ComposeError::Build { service: named() });
            }
            if service.get("privileged") == Some(&Value::Bool(true)) && !privileged {
                return Err(ComposeError::Privileged { service: named() });
            }
            // Load goes to the containers themselves. Images have been looked for.
            for key in ["ports", "pull_policy"] {
                service.remove(key);
            }
            // What ends has ended: else the run would go on with a service that is still warming up.
            service.insert("restart".to_owned(), json!("no"));
            if let Some(Value::Object(deploy)) = service.get_mut("deploy") {
                deploy.remove("restart_policy");
            }
            rename(service);
            let changes = fit.services.get(name).cloned().unwrap_or_default();
            limit(service, &changes, &fit.cpus);
            let own = [(MARK.to_owned(), mark_of(mark, name)), ("UNLADEN_PAD".to_owned(), fit.pad.clone())];
            let env = changes.env.into_iter().chain(own).map(|(name, value)| (name, value.replace('$', "$$")));
            merge(service, "environment", env);
            merge(service, "labels", [("unladen.run".to_owned(), mark.to_owned())]);
        }
        self.name_the_rest(fit.keep_volumes.as_deref());
        Ok(())
    }

    /// Networks and volumes get the names that the project gives them: a name in the file would be shared by all projects, and go with one.
    fn name_the_rest(&mut self, keep: Option<&str>) {
        for kind in ["networks", "volumes"] {
            let Some(Value::Object(all)) = self.0.get_mut(kind) else { continue };
            for (name, one) in all.iter_mut() {
                if one.is_null() {
                    *one = json!({});
                }
                let Value::Object(one) = one else { continue };
                if is_external(one) {
                    continue;
                }
                one.remove("name");
                if let Some(keep) = keep.filter(|_| kind == "volumes") {
                    *one = Map::from_iter([
                        ("name".to_owned(), json!(format!("{keep}_{name}"))),
                        ("external".to_owned(), json!(true)),
                    ]);
                }
            }
        }
    }

    /// Names of the volumes that are kept under this name.
    pub(super) fn kept_volumes(&self, keep: &str) -> Vec<String> {
        let all = self.0.get("volumes").and_then(Value::as_object).into_iter().flatten();
        let names = all.filter_map(|(_, volume)| volume.get("name").and_then(Value::as_str));
        names.filter(|name| name.starts_with(&format!("{keep}_"))).map(str::to_owned).collect()
    }

    /// As text for Compose: JSON is YAML.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

fn is_external(one: &Map<String, Value>) -> bool {
    one.get("external").is_some_and(|external| *external != Value::Bool(false))
}

fn declared(service: &Value) -> Declared {
    let text = |key: &str| service.get(key).and_then(Value::as_str);
    let ports = service.get("ports").and_then(Value::as_array).into_iter().flatten();
    Declared {
        image: text("image").map(str::to_owned),
        host_network: text("network_mode") == Some("host"),
        ports: ports.filter_map(container_port).collect(),
    }
}

/// Value of [`MARK`] in the containers of a service. No one begins with another.
pub(super) fn mark_of(project: &str, service: &str) -> String {
    format!("{project}-{service}.")
}

/// `{target: 8080, …}`, `8080`, `80:8080/tcp`.
fn container_port(port: &Value) -> Option<u16> {
    let text = match port.get("target").unwrap_or(port) {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    text.split('/').next()?.rsplit(':').next()?.parse().ok()
}

/// Takes a fixed name from a service; the others still find it by that name.
fn rename(service: &mut Map<String, Value>) {
    let Some(Value::String(alias)) = service.remove("container_name") else { return };
    if service.contains_key("network_mode") {
        return;
    }
    let mut networks = Map::new();
    match service.remove("networks") {
        Some(Value::Object(all)) => networks = all,
        Some(Value::Array(all)) => {
            networks = all.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), Value::Null)).collect();
        }
        _ => drop(networks.insert("default".to_owned(), Value::Null)),
    }
    for network in networks.values_mut() {
        if network.is_null() {
            *network = json!({});
        }
        let mut aliases = texts(network.get("aliases"));
        aliases.push(alias.clone());
        network["aliases"] = json!(aliases);
    }
    service.insert("networks".to_owned(), Value::Object(networks));
}

/// Cores, and the limits that the study has.
fn limit(service: &mut Map<String, Value>, changes: &Changes, cpus: &CpuSet) {
    let cpuset = changes.limits.cpuset.as_ref().unwrap_or(cpus);
    service.insert("cpuset".to_owned(), json!(cpuset.to_string()));
    let mut forget = |keys: &[&str], of_deploy: &str| {
        for key in keys {
            service.remove(*key);
        }
        if let Some(Value::Object(limits)) =
            service.get_mut("deploy").and_then(|it| it.pointer_mut("/resources/limits"))
        {
            limits.remove(of_deploy);
        }
    };
    if changes.limits.cpus.is_some() {
        forget(&["cpus", "cpu_quota", "cpu_period"], "cpus");
    }
    if changes.limits.memory.is_some() {
        forget(&["mem_limit", "memswap_limit"], "memory");
    }
    if let Some(cores) = changes.limits.cpus {
        service.insert("cpus".to_owned(), json!(cores));
    }
    if let Some(bytes) = changes.limits.memory {
        // Swap included, as for processes.
        service.insert("mem_limit".to_owned(), json!(bytes));
        service.insert("memswap_limit".to_owned(), json!(bytes));
    }
    if let Some(replicas) = changes.replicas {
        service.remove("scale");
        let deploy = service.entry("deploy").or_insert_with(|| json!({}));
        deploy["replicas"] = json!(replicas);
    }
}

/// Adds entries to a mapping that may be written as a list of `NAME=VALUE`.
fn merge(service: &mut Map<String, Value>, key: &str, more: impl IntoIterator<Item = (String, String)>) {
    let mut all = match service.remove(key) {
        Some(Value::Object(all)) => all,
        Some(list @ Value::Array(_)) => {
            let split = |text: String| match text.split_once('=') {
                Some((name, value)) => (name.to_owned(), json!(value)),
                None => (text, Value::Null),
            };
            texts(Some(&list)).into_iter().map(split).collect()
        }
        _ => Map::new(),
    };
    all.extend(more.into_iter().map(|(name, value)| (name, json!(value))));
    service.insert(key.to_owned(), Value::Object(all));
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let all = value.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "
services:
  api:
    build: {context: /x}
    container_name: shop-api
    deploy: {replicas: 1, resources: {limits: {cpus: 0.5, memory: 64M}}, restart_policy: {condition: any}}
    environment: {PRICE: 5$$, NONE: null}
    image: shop:1
    networks: [front, back]
    ports: [{published: 8080, target: 80}, 9090:90/tcp]
    restart: always
  db: {image: 'db:1', network_mode: host, labels: [a=b], cpuset: '7', volumes: ['data:/d']}
  debug: {image: 'debug:1', profiles: [debug]}
networks: {front: null, back: {name: back}, old: {external: true, name: old}}
volumes: {data: {name: fixed}, mine: {external: true}}
version: '3.9'
";

    fn fitted(fit: &Fit) -> Value {
        let mut model = Model::read(PRINTED, &[], &[]).expect("a model");
        model.fit(fit, "7-ab/3", false).expect("it fits");
        serde_json::from_str(&model.text()).expect("JSON")
    }

    #[test]
    fn services_are_those_of_the_profiles_and_those_that_are_named() {
        let names = |profiles: &[&str], named: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
            let model = Model::read(PRINTED, &owned(profiles), &owned(named)).expect("a model");
            model.services().into_keys().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&[], &[]), "api db");
        assert_eq!(names(&["debug"], &[]), "api db debug");
        assert_eq!(names(&[], &["debug"]), "api db debug");
        let services = Model::read(PRINTED, &[], &[]).expect("a model").services();
        assert_eq!(services["api"].ports, [80, 90]);
        assert!(services["db"].host_network && !services["api"].host_network);
        for text in ["- a", "volumes: {}", "services: [", "services: {}"] {
            let read = Model::read(text, &[], &[]);
            assert_eq!(read.is_ok(), text == "services: {}", "{text}");
        }
    }

    #[test]
    fn nothing_is_shared_between_projects_and_nothing_is_published() {
        let cpus: CpuSet = [1].into_iter().collect();
        let all = fitted(&Fit { cpus, pad: "x$".to_owned(), ..Fit::default() });
        let (api, db) = (&all["services"]["api"], &all["services"]["db"]);
        for key in ["build", "container_name", "ports", "deploy/restart_policy"] {
            assert_eq!(api.pointer(&format!("/{key}")), None, "{key}");
        }
        assert_eq!((&api["restart"], &api["cpuset"], &db["cpuset"]), (&json!("no"), &json!("1"), &json!("1")));
        assert_eq!(api["networks"]["front"], json!({"aliases": ["shop-api"]}));
        assert_eq!(api["networks"]["back"], json!({"aliases": ["shop-api"]}));
        let env = json!({"PRICE": "5$$", "NONE": null, "UNLADEN_RUN": "7-ab/3-api.", "UNLADEN_PAD": "x$$"});
        assert_eq!(api["environment"], env);
        assert_eq!(db["labels"], json!({"a": "b", "unladen.run": "7-ab/3"}));
        assert_eq!(all["networks"], json!({"front": {}, "back": {}, "old": {"external": true, "name": "old"}}));
        assert_eq!(all["volumes"], json!({"data": {}, "mine": {"external": true}}));
        assert_eq!(api["deploy"]["resources"]["limits"], json!({"cpus": 0.5, "memory": "64M"}));
    }

    #[test]
    fn the_study_has_the_last_word_on_limits_and_replicas() {
        let limits = Limits { cpus: Some(1.5), memory: Some(1 << 20), cpuset: Some([0, 1].into_iter().collect()) };
        let env = IndexMap::from([("PRICE".to_owned(), "$7".to_owned())]);
        let changes = Changes { env, limits, replicas: Some(3) };
        let fit = Fit {
            services: BTreeMap::from([("api".to_owned(), changes)]),
            keep_volumes: Some("unladen-1-base".to_owned()),
            ..Fit::default()
        };
        let all = fitted(&fit);
        let api = &all["services"]["api"];
        assert_eq!((&api["cpuset"], &api["cpus"]), (&json!("0-1"), &json!(1.5)));
        assert_eq!((&api["mem_limit"], &api["memswap_limit"]), (&json!(1 << 20), &json!(1 << 20)));
        assert_eq!(api["deploy"], json!({"replicas": 3, "resources": {"limits": {}}}));
        assert_eq!(api["environment"]["PRICE"], "$$7");
        assert_eq!(all["volumes"]["data"], json!({"name": "unladen-1-base_data", "external": true}));
        let mut model = Model::read(PRINTED, &[], &[]).expect("a model");
        model.fit(&fit, "m", false).expect("it fits");
        assert_eq!(model.kept_volumes("unladen-1-base"), ["unladen-1-base_data"]);
    }

    #[test]
    fn what_would_be_built_or_be_root_is_refused() {
        let refused = |service: &str| {
            let mut model = Model::read(&format!("services: {{api: {service}}}"), &[], &[]).expect("a model");
            let allowed = model.clone().fit(&Fit::default(), "m", true).is_ok();
            (model.fit(&Fit::default(), "m", false).expect_err("refused").to_string(), allowed)
        };
        let (build, allowed) = refused("{build: .}");
        assert!(build.contains("image: api:1") && !allowed, "{build}");
        let (privileged, allowed) = refused("{image: x, privileged: true}");
        assert!(privileged.contains("privileged: true") && allowed, "{privileged}");
    }
}
