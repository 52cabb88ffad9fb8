//! What is changed in manifests so that they can be weighed: what the study says of its services, and what keeps the rounds equal. Pure.

use serde_json::{Value, json};

use super::error::KubernetesError;
use super::manifests::{Object, containers};
use super::resources::limit;
use super::workload::{Kind, Workload};
use super::{Changes, Stack};
use crate::subject::launch::LONGEST_PAD;

/// Which container of a pod its tools take, by a custom of Kubernetes' own.
pub(super) const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
/// Variable that shifts the stack: see [`crate::subject::Launch::pad`].
pub(super) const PAD: &str = "UNLADEN_PAD";
/// Label of a node with its name.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Label that no node has.
const NO_NODE: &str = "unladen.idle";

/// Pods that must run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    /// The service; of what the study does not name, the workload.
    pub(super) service: String,
    /// Whether the study names it.
    pub(super) is_named: bool,
    /// `Deployment`, …, `Pod`.
    pub(super) kind: String,
    pub(super) name: String,
    /// The container that is the service.
    pub(super) container: String,
    /// `None`: a pod for every node, as a DaemonSet has them.
    pub(super) replicas: Option<u32>,
    /// What the API server does to the workload before it has pods: a strategic merge patch.
    pub(super) patch: Option<Value>,
}

impl Wanted {
    /// `deployment/shop`.
    pub(super) fn workload(&self) -> String {
        format!("{}/{}", self.kind.to_lowercase(), self.name)
    }
}

/// Changes objects as the study says. `node`: where all pods are to be, if there are others.
pub(super) fn fit(objects: &mut [Object], stack: &Stack, node: Option<&str>) -> Result<Vec<Wanted>, KubernetesError> {
    let known: Vec<String> = objects.iter().filter_map(|it| Some(format!("{}/{}", it.workload()?, it.name))).collect();
    for (service, Changes { workload, .. }) in &stack.services {
        if !known.contains(&workload.to_string()) {
            let (service, workload) = (service.clone(), workload.clone());
            return Err(KubernetesError::NoWorkload { service, workload, known: list(&known) });
        }
        let scales = |it: &&Object| it.scales() == Some((workload.kind.name(), workload.name.as_str()));
        if let Some(autoscaler) = objects.iter().find(scales) {
            let (service, workload, autoscaler) = (service.clone(), workload.clone(), autoscaler.words());
            return Err(KubernetesError::Autoscaled { service, workload, autoscaler });
        }
    }
    let mut all = Vec::new();
    for object in objects.iter_mut() {
        let is_pod = object.kind == "Pod" && object.api_version == "v1";
        let pointer = if is_pod { "" } else { "/spec/template" };
        let Some(template) = object.value.pointer_mut(pointer).filter(|it| it.pointer("/spec/containers").is_some())
        else {
            continue;
        };
        keep_images(template);
        if let Some(node) = node {
            set(template, &["spec", "nodeSelector", HOSTNAME], json!(node));
        }
        match object.workload() {
            Some(kind) => all.push(workload(object, kind, stack)?),
            None if is_pod => all.push(Wanted {
                service: object.name.clone(),
                is_named: false,
                kind: object.kind.clone(),
                name: object.name.clone(),
                container: main_container(&object.value).unwrap_or_default(),
                replicas: Some(1),
                patch: None,
            }),
            None => {}
        }
    }
    rename(&mut all);
    Ok(all)
}

/// A service of the study has its name for itself; what it does not name is called after its workload.
fn rename(all: &mut [Wanted]) {
    let names: Vec<String> = all.iter().map(|wanted| wanted.service.clone()).collect();
    for wanted in all.iter_mut().filter(|wanted| !wanted.is_named) {
        if names.iter().filter(|name| **name == wanted.service).count() > 1 {
            wanted.service = wanted.workload();
        }
    }
}

fn list(known: &[String]) -> String {
    if known.is_empty() { "no workload at all".to_owned() } else { known.join(", ") }
}

/// Changes a workload, and tells what must run of it.
fn workload(object: &mut Object, kind: Kind, stack: &Stack) -> Result<Wanted, KubernetesError> {
    let itself = Workload { kind, name: object.name.clone() };
    let named = stack.services.iter().find(|(_, changes)| changes.workload == itself);
    let template = object.template().unwrap_or(&Value::Null);
    let container = match named {
        Some((service, changes)) => container(service, changes, template)?,
        None => main_container(template).unwrap_or_default(),
    };
    let written = object.value.pointer("/spec/replicas").and_then(Value::as_u64).map_or(1, |count| count as u32);
    let replicas = named.and_then(|(_, changes)| changes.replicas).unwrap_or(written);
    if let Some((_, changes)) = named {
        if kind == Kind::DaemonSet && changes.replicas.is_some() {
            return Err(
                object.unfit("has a pod on every node, whatever `replicas` says: remove it from the study".to_owned())
            );
        }
        if let Some(template) = object.value.pointer_mut("/spec/template") {
            change(template, &container, changes, stack.pad);
        }
    }
    let has_count = kind != Kind::DaemonSet;
    let patch = named.and_then(|(_, changes)| changes.patch.as_ref()).map(|patch| wake(patch.clone(), kind, replicas));
    match (&patch, has_count) {
        // No pod before the patch is done.
        (Some(_), true) => set(&mut object.value, &["spec", "replicas"], json!(0)),
        (Some(_), false) => set(&mut object.value, &["spec", "template", "spec", "nodeSelector", NO_NODE], json!("")),
        (None, true) => set(&mut object.value, &["spec", "replicas"], json!(replicas)),
        (None, false) => {}
    }
    Ok(Wanted {
        service: named.map_or_else(|| object.name.clone(), |(service, _)| service.clone()),
        is_named: named.is_some(),
        kind: kind.name().to_owned(),
        name: object.name.clone(),
        container,
        replicas: has_count.then_some(replicas),
        patch,
    })
}

/// The patch of a template as one of its workload, which has pods then.
fn wake(mut template: Value, kind: Kind, replicas: u32) -> Value {
    if kind == Kind::DaemonSet {
        set(&mut template, &["spec", "nodeSelector", NO_NODE], Value::Null);
        return json!({"spec": {"template": template}});
    }
    json!({"spec": {"replicas": replicas, "template": template}})
}

/// The container that is the service.
fn container(service: &str, changes: &Changes, template: &Value) -> Result<String, KubernetesError> {
    let known = containers(template);
    let chosen = match &changes.container {
        Some(name) => known.contains(&name.as_str()).then(|| name.clone()),
        None if known.len() > 1 => annotated(template),
        None => known.first().map(|&name| name.to_owned()),
    };
    let known = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let (service, workload) = (service.to_owned(), changes.workload.clone());
    chosen.ok_or(KubernetesError::WhichContainer { service, workload, known })
}

fn annotated(template: &Value) -> Option<String> {
    let annotations = template.pointer("/metadata/annotations")?;
    let name = annotations.get(DEFAULT_CONTAINER)?.as_str()?;
    containers(template).contains(&name).then(|| name.to_owned())
}

fn main_container(template: &Value) -> Option<String> {
    annotated(template).or_else(|| containers(template).first().map(|&name| name.to_owned()))
}

/// The changes of a service in its template.
fn change(template: &mut Value, container: &str, changes: &Changes, pad: usize) {
    for (key, all) in [("labels", &changes.labels), ("annotations", &changes.annotations)] {
        for (name, value) in all {
            set(template, &["metadata", key, name], json!(value));
        }
    }
    let all = template.pointer_mut("/spec/containers").and_then(Value::as_array_mut).into_iter().flatten();
    for one in all.filter(|one| one.get("name").and_then(Value::as_str) == Some(container)) {
        if let Some(image) = &changes.image {
            set(one, &["image"], json!(image));
        }
        for (name, value) in &changes.env {
            set_variable(one, name, value);
        }
        set_variable(one, PAD, &"x".repeat(pad.min(LONGEST_PAD)));
        limit(one, &changes.limits);
    }
}

fn set_variable(container: &mut Value, name: &str, value: &str) {
    // `$(NAME)` stands for another variable there; the study's values stand for themselves.
    let variable = json!({"name": name, "value": value.replace("$(", "$$(")});
    let mut all = match container.get_mut("env").map(Value::take) {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    match all.iter_mut().find(|it| it.get("name").and_then(Value::as_str) == Some(name)) {
        Some(known) => *known = variable,
        None => all.push(variable),
    }
    set(container, &["env"], Value::Array(all));
}

/// An image that is on the node is the one that is run: fetched anew it might be another in every round.
fn keep_images(template: &mut Value) {
    for key in ["containers", "initContainers"] {
        let all = template.pointer_mut(&format!("/spec/{key}")).and_then(Value::as_array_mut).into_iter().flatten();
        for container in all.filter(|it| it.get("imagePullPolicy").and_then(Value::as_str) != Some("Never")) {
            set(container, &["imagePullPolicy"], json!("IfNotPresent"));
        }
    }
}

/// Sets what is at a place, which is made if need be.
pub(super) fn set(value: &mut Value, keys: &[&str], new: Value) {
    match keys.split_first() {
        None => *value = new,
        Some((first, rest)) => {
            if !value.is_object() {
                *value = json!({});
            }
            set(&mut value[*first], rest, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use indexmap::IndexMap;

    use super::*;
    use crate::subject::Limits;

    fn object(kind: &str, name: &str, value: Value) -> Object {
        let api_version = if kind == "Pod" { "v1" } else { "apps/v1" }.to_owned();
        let (kind, name) = (kind.to_owned(), name.to_owned());
        Object { path: PathBuf::from("a.yaml"), api_version, kind, name, value }
    }

    fn shop() -> Object {
        let template = json!({"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [
            {"name": "app", "image": "shop:1", "env": [{"name": "A", "valueFrom": {}}, {"name": "B", "value": "1"}],
             "resources": {"requests": {"cpu": "2", "memory": "64Mi"}, "limits": {"cpu": "4"}}, "imagePullPolicy": "Always"},
            {"name": "proxy", "image": "proxy:1", "imagePullPolicy": "Never"},
        ]}});
        object("Deployment", "shop", json!({"spec": {"replicas": 2, "template": template}}))
    }

    fn stack(service: &str, changes: Changes) -> Stack {
        Stack { services: BTreeMap::from([(service.to_owned(), changes)]), pad: 3, ..Stack::default() }
    }

    fn changes(workload: &str) -> Changes {
        Changes { container: Some("app".to_owned()), ..Changes::of(workload.parse().expect("a workload")) }
    }

    #[test]
    fn the_study_changes_its_service_and_nothing_else() {
        let texts = |all: &[(&str, &str)]| {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<IndexMap<_, _>>()
        };
        let changes = Changes {
            env: texts(&[("A", "$(B)"), ("C", "3")]),
            image: Some("shop:otel".to_owned()),
            labels: texts(&[("inject", "yes")]),
            annotations: texts(&[("a/b", "c")]),
            limits: Limits { cpus: Some(1.5), memory: Some(1 << 30), cpuset: None },
            ..changes("deployment/shop")
        };
        let mut objects = [shop()];
        let wanted = fit(&mut objects, &stack("api", changes), Some("node-1")).expect("it fits");
        let template = objects[0].template().expect("a template");
        let (app, proxy) = (&template["spec"]["containers"][0], &template["spec"]["containers"][1]);
        assert_eq!(
            template["metadata"],
            json!({"labels": {"app": "shop", "inject": "yes"}, "annotations": {"a/b": "c"}})
        );
        assert_eq!(template["spec"]["nodeSelector"], json!({"kubernetes.io/hostname": "node-1"}));
        assert_eq!((&app["image"], &app["imagePullPolicy"]), (&json!("shop:otel"), &json!("IfNotPresent")));
        let env = json!([
            {"name": "A", "value": "$$(B)"}, {"name": "B", "value": "1"}, {"name": "C", "value": "3"},
            {"name": "UNLADEN_PAD", "value": "xxx"},
        ]);
        assert_eq!(app["env"], env);
        let resources =
            json!({"requests": {"cpu": "1500m", "memory": "64Mi"}, "limits": {"cpu": "1500m", "memory": "1073741824"}});
        assert_eq!(app["resources"], resources);
        assert_eq!(*proxy, json!({"name": "proxy", "image": "proxy:1", "imagePullPolicy": "Never"}));
        assert_eq!((wanted[0].service.as_str(), wanted[0].workload().as_str()), ("api", "deployment/shop"));
        assert_eq!((wanted[0].container.as_str(), wanted[0].replicas), ("app", Some(2)));
        assert_eq!(objects[0].value["spec"]["replicas"], 2);
    }

    #[test]
    fn a_patch_is_done_before_there_are_pods() {
        let patch = json!({"metadata": {"labels": {"a": "b"}}});
        let with = |workload: &str| Changes { patch: Some(patch.clone()), ..changes(workload) };
        let mut objects = [shop()];
        let of_three = Changes { replicas: Some(3), ..with("deployment/shop") };
        let wanted = fit(&mut objects, &stack("api", of_three), None).expect("it fits");
        assert_eq!(objects[0].value["spec"]["replicas"], 0);
        assert_eq!(wanted[0].patch, Some(json!({"spec": {"replicas": 3, "template": patch}})));

        let mut objects = [Object { kind: "DaemonSet".to_owned(), ..shop() }];
        let wanted = fit(&mut objects, &stack("api", with("daemonset/shop")), None).expect("it fits");
        assert_eq!(
            objects[0].template().and_then(|it| it.pointer("/spec/nodeSelector")),
            Some(&json!({"unladen.idle": ""}))
        );
        let woken = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"unladen.idle": null}}});
        assert_eq!(wanted[0].patch, Some(json!({"spec": {"template": woken}})));
        assert_eq!(wanted[0].replicas, None);
        let counted = Changes { replicas: Some(2), ..changes("daemonset/shop") };
        let mut objects = [Object { kind: "DaemonSet".to_owned(), ..shop() }];
        let error = fit(&mut objects, &stack("api", counted), None).expect_err("no count").to_string();
        assert!(error.contains("a pod on every node"), "{error}");
    }

    #[test]
    fn what_the_study_does_not_name_is_called_after_its_workload() {
        let pod = json!({"spec": {"containers": [{"name": "main"}]}});
        let other = json!({"spec": {"template": {"spec": {"containers": [{"name": "x"}, {"name": "y"}]}}}});
        let mut objects = [
            shop(),
            object("StatefulSet", "api", other.clone()),
            object("DaemonSet", "agent", other),
            object("Pod", "shop", pod),
            object("ConfigMap", "c", json!({})),
        ];
        let all = fit(&mut objects, &stack("api", changes("deployment/shop")), None).expect("it fits");
        let names: Vec<&str> = all.iter().map(|wanted| wanted.service.as_str()).collect();
        assert_eq!(names, ["api", "statefulset/api", "agent", "shop"]);
        let main: Vec<&str> = all.iter().map(|wanted| wanted.container.as_str()).collect();
        assert_eq!(main, ["app", "x", "x", "main"]);
        assert_eq!(all.iter().filter(|wanted| wanted.is_named).count(), 1);
    }

    #[test]
    fn what_cannot_be_weighed_is_refused() {
        let refused = |changes: Changes, more: Option<Object>| {
            let mut objects: Vec<Object> = [shop()].into_iter().chain(more).collect();
            fit(&mut objects, &stack("api", changes), None).expect_err("refused").to_string()
        };
        let error = refused(changes("statefulset/shop"), None);
        assert!(error.contains("`statefulset/shop`") && error.contains("they have: deployment/shop"), "{error}");
        let error = refused(Changes { container: None, ..changes("deployment/shop") }, None);
        assert!(error.contains("`app`, `proxy`") && error.contains("services.api.container"), "{error}");
        let error = refused(Changes { container: Some("x".to_owned()), ..changes("deployment/shop") }, None);
        assert!(error.contains("`app`, `proxy`"), "{error}");
        let target = json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "shop"}}});
        let error = refused(changes("deployment/shop"), Some(object("HorizontalPodAutoscaler", "h", target)));
        assert!(error.contains("HorizontalPodAutoscaler h scales deployment/shop"), "{error}");
    }

    #[test]
    fn the_custom_of_a_default_container_is_followed() {
        let mut shop = shop();
        let template = shop.value.pointer_mut("/spec/template").expect("a template");
        set(template, &["metadata", "annotations", DEFAULT_CONTAINER], json!("proxy"));
        let changes = Changes { container: None, ..changes("deployment/shop") };
        let all = fit(&mut [shop], &stack("api", changes), None).expect("it fits");
        assert_eq!(all[0].container, "proxy");
    }
}
