//! A live object to what its manifest has said: what the server has added is taken away, and what a study cannot have. Pure.

use serde_json::{Map, Value, json};

use super::fit::set;

/// Annotations of tools and controllers that belong to the live object; those that end in `/` with all that begins so.
const OF_CONTROLLERS: [&str; 7] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubectl.kubernetes.io/restartedAt",
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "autoscaling.alpha.kubernetes.io/",
    "endpoints.kubernetes.io/",
    "meta.helm.sh/",
];
/// Volumes that are the pod's own, or copies of objects that are imported.
const OWN_VOLUMES: [&str; 6] = ["configMap", "downwardAPI", "emptyDir", "image", "projected", "secret"];
/// What a Service has of the place where it lives.
const OF_THE_PLACE: [&str; 9] = [
    "allocateLoadBalancerNodePorts",
    "clusterIPs",
    "externalIPs",
    "externalTrafficPolicy",
    "healthCheckNodePort",
    "ipFamilies",
    "ipFamilyPolicy",
    "loadBalancerIP",
    "loadBalancerSourceRanges",
];

/// The object with `apiVersion`, `kind`, name, labels, annotations and what it is made of, and nothing else.
pub(super) fn bare(object: &Value, api_version: &str, kind: &str) -> Value {
    let mut all = object.as_object().cloned().unwrap_or_default();
    all.remove("status");
    let mut metadata = Map::new();
    for key in ["name", "labels", "annotations"] {
        if let Some(value) = object.pointer(&format!("/metadata/{key}")) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    without_annotations(&mut metadata);
    all.insert("metadata".to_owned(), Value::Object(metadata));
    // Members of a list have neither.
    all.insert("apiVersion".to_owned(), json!(api_version));
    all.insert("kind".to_owned(), json!(kind));
    let mut bare = Value::Object(all);
    subtract(&mut bare, &defaults(kind));
    bare
}

fn without_annotations(metadata: &mut Map<String, Value>) {
    let is_of = |name: &str, owner: &&str| name == *owner || (owner.ends_with('/') && name.starts_with(owner));
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|name, _| !OF_CONTROLLERS.iter().any(|owner| is_of(name, owner)));
    }
    for key in ["labels", "annotations"] {
        if metadata.get(key).and_then(Value::as_object).is_some_and(Map::is_empty) {
            metadata.remove(key);
        }
    }
}

/// What the server fills in where a manifest says nothing: the same again when it is applied. The first member of a list stands for all.
fn defaults(kind: &str) -> Value {
    match kind {
        "Deployment" => {
            let strategy =
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
            json!({"spec": {"progressDeadlineSeconds": 600, "revisionHistoryLimit": 10, "strategy": strategy, "template": pods()}})
        }
        "StatefulSet" => {
            let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
            let kept = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
            json!({"spec": {
                "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10, "updateStrategy": strategy,
                "persistentVolumeClaimRetentionPolicy": kept, "template": pods(),
            }})
        }
        "DaemonSet" => {
            let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
            json!({"spec": {"revisionHistoryLimit": 10, "updateStrategy": strategy, "template": pods()}})
        }
        "Service" => json!({"spec": {
            "internalTrafficPolicy": "Cluster", "ports": [{"protocol": "TCP"}], "sessionAffinity": "None", "type": "ClusterIP",
        }}),
        _ => json!({}),
    }
}

/// Defaults of a pod template.
fn pods() -> Value {
    let call = json!({"scheme": "HTTP"});
    let probe = json!({
        "failureThreshold": 3, "grpc": {"service": ""}, "httpGet": call, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1,
    });
    let container = json!({
        "env": [{"valueFrom": {"fieldRef": {"apiVersion": "v1"}}}],
        "lifecycle": {"postStart": {"httpGet": call}, "preStop": {"httpGet": call}},
        "livenessProbe": probe, "readinessProbe": probe, "startupProbe": probe,
        "ports": [{"protocol": "TCP"}],
        "resources": {}, "securityContext": {},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    });
    let field = json!({"fieldRef": {"apiVersion": "v1"}});
    let volume = json!({
        "configMap": {"defaultMode": 420}, "secret": {"defaultMode": 420}, "projected": {"defaultMode": 420},
        "downwardAPI": {"defaultMode": 420, "items": [field]},
    });
    json!({"metadata": {"creationTimestamp": null}, "spec": {
        "containers": [container], "initContainers": [container], "volumes": [volume],
        "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "restartPolicy": "Always", "schedulerName": "default-scheduler",
        "securityContext": {}, "terminationGracePeriodSeconds": 30,
    }})
}

/// Takes away what is as by default, and what is empty then.
fn subtract(value: &mut Value, defaults: &Value) {
    match (value, defaults) {
        (Value::Object(all), Value::Object(defaults)) => {
            for (key, default) in defaults {
                let Some(one) = all.get_mut(key) else { continue };
                let is_same = one == default;
                if !is_same {
                    subtract(one, default);
                }
                if is_same || one.as_object().is_some_and(Map::is_empty) {
                    all.remove(key);
                }
            }
        }
        (Value::Array(all), Value::Array(defaults)) => {
            for one in all {
                defaults.first().into_iter().for_each(|default| subtract(one, default));
            }
        }
        _ => {}
    }
}

/// A workload for pods on one node that is this machine, with nothing of production's; what was taken away is told as `notes`. `is_scaled`:
/// its number of pods is an autoscaler's.
pub(super) fn workload(bare: &mut Value, is_scaled: bool, notes: &mut Vec<String>) {
    if is_scaled && let Some(spec) = bare.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("replicas");
    }
    let Some(template) = bare.pointer_mut("/spec/template") else { return };
    if let Some(Value::Object(metadata)) = template.get_mut("metadata") {
        without_annotations(metadata);
    }
    let Some(Value::Object(spec)) = template.get_mut("spec") else { return };
    // The old name of `serviceAccountName`.
    spec.remove("serviceAccount");
    for key in ["nodeName", "nodeSelector", "affinity"] {
        if spec.remove(key).is_some() {
            notes.push(format!(
                "`{key}` of its pods is left out: all pods of a study are on the node that is this machine"
            ));
        }
    }
    for key in ["hostNetwork", "hostPID", "hostIPC"] {
        if spec.remove(key).is_some_and(|value| value == true) {
            notes.push(format!(
                "`{key}` of its pods is left out: variants that are alive at once would be in each other's way"
            ));
        }
    }
    for key in ["containers", "initContainers"] {
        for container in members(spec, key) {
            // A study has the same image in all rounds.
            if container.get("imagePullPolicy").is_some_and(|policy| policy != "Never") {
                container.remove("imagePullPolicy");
            }
            for port in members(container, "ports") {
                port.remove("hostPort");
            }
        }
    }
    for volume in members(spec, "volumes") {
        let Some(kind) = volume.keys().find(|key| *key != "name" && !OWN_VOLUMES.contains(&key.as_str())).cloned()
        else {
            continue;
        };
        let what = match volume.remove(&kind) {
            Some(Value::Object(it)) if kind == "hostPath" => format!("the folder {} of its node", text(&it, "path")),
            Some(Value::Object(it)) if kind == "persistentVolumeClaim" => {
                format!("the PersistentVolumeClaim {}", text(&it, "claimName"))
            }
            _ => format!("a volume of the kind `{kind}`"),
        };
        volume.insert("emptyDir".to_owned(), json!({}));
        notes.push(emptied(&text(volume, "name"), &what));
    }
    claims(bare, notes);
}

/// Volumes that every pod of a StatefulSet has of its own.
fn claims(bare: &mut Value, notes: &mut Vec<String>) {
    let Some(spec) = bare.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let Some(Value::Array(claims)) = spec.remove("volumeClaimTemplates") else { return };
    let names = claims.iter().filter_map(|claim| claim.pointer("/metadata/name")?.as_str());
    let mut volumes: Vec<Value> = Vec::new();
    for name in names {
        notes.push(emptied(name, "a PersistentVolumeClaim of each pod"));
        volumes.push(json!({"name": name, "emptyDir": {}}));
    }
    let before = bare.pointer("/spec/template/spec/volumes").and_then(Value::as_array).cloned().unwrap_or_default();
    set(bare, &["spec", "template", "spec", "volumes"], [before, volumes].concat().into());
}

fn emptied(volume: &str, what: &str) -> String {
    format!("the volume `{volume}` is {what}: an empty folder takes its place, and nothing is copied into it")
}

/// A Service without the addresses that it has; what it was to the world outside is told.
pub(super) fn service(bare: &mut Value, notes: &mut Vec<String>) {
    let Some(Value::Object(spec)) = bare.get_mut("spec") else { return };
    spec.retain(|key, _| !OF_THE_PLACE.contains(&key.as_str()));
    if spec.get("clusterIP").is_some_and(|address| address != "None") {
        spec.remove("clusterIP");
    }
    for port in members(spec, "ports") {
        port.remove("nodePort");
    }
    if let Some(kind) = spec.remove("type") {
        for key in ["loadBalancerClass", "loadBalancerSourceRanges"] {
            spec.remove(key);
        }
        notes.push(format!(
            "it is of the type {} in the cluster: in the study only pods reach it",
            kind.as_str().unwrap_or_default()
        ));
    }
}

/// A Secret with its keys and, in the place of its values, what is to be replaced.
pub(super) fn without_values(bare: &mut Value) {
    let Some(all) = bare.as_object_mut() else { return };
    let keys: Vec<String> =
        all.get("data").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect();
    all.remove("data");
    let value = |key: &str| match key {
        // The server wants JSON there.
        ".dockerconfigjson" | ".dockercfg" => json!("{}"),
        _ => json!(REPLACE),
    };
    let values = keys.iter().map(|key| (key.clone(), value(key)));
    all.insert("stringData".to_owned(), Value::Object(values.collect()));
}

/// What stands for a value of a Secret.
const REPLACE: &str = "replace-me";

fn members<'v>(
    of: &'v mut Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'v mut Map<String, Value>> + use<'v> {
    of.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn text(of: &Map<String, Value>, key: &str) -> String {
    of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::kubernetes::local::manifests::parse_text;

    const LIVE: &str = include_str!("fixtures/live.json");

    /// What a cluster of version 1.34 has made of an object of `fixtures`.
    fn live(kind: &str, name: &str) -> Value {
        let list: Value = serde_json::from_str(LIVE).expect("JSON");
        let is_it = |it: &&Value| it["kind"] == kind && it["metadata"]["name"] == name;
        list["items"].as_array().expect("items").iter().find(is_it).expect(name).clone()
    }

    /// As it is imported, and what is said of it.
    fn imported(kind: &str, name: &str, is_scaled: bool) -> (Value, Vec<String>) {
        let live = live(kind, name);
        let mut bare = bare(&live, live["apiVersion"].as_str().expect("a version"), kind);
        let mut notes = Vec::new();
        match kind {
            "Service" => service(&mut bare, &mut notes),
            "Deployment" | "StatefulSet" | "DaemonSet" => workload(&mut bare, is_scaled, &mut notes),
            _ => {}
        }
        (bare, notes)
    }

    #[test]
    fn what_was_written_comes_back_from_the_cluster() {
        let written = parse_text(include_str!("fixtures/written.yaml")).expect("YAML");
        assert_eq!(written.len(), 9);
        for written in written {
            let (kind, name) =
                (written["kind"].as_str().expect("a kind"), written["metadata"]["name"].as_str().expect("a name"));
            // Else nothing would have to be taken away.
            assert_ne!(live(kind, name), written, "{kind} {name}");
            assert_eq!(imported(kind, name, false), (written.clone(), Vec::new()), "{kind} {name}");
        }
    }

    #[test]
    fn what_belongs_to_the_place_is_left_out_and_told() {
        let (deployment, notes) = imported("Deployment", "bound", true);
        assert!(deployment["spec"].get("replicas").is_none(), "{deployment}");
        let spec = &deployment["spec"]["template"]["spec"];
        for key in ["hostNetwork", "nodeSelector", "affinity"] {
            assert!(spec.get(key).is_none(), "{spec}");
        }
        assert_eq!(spec["containers"][0]["ports"], json!([{"containerPort": 8080}]));
        assert_eq!(spec["volumes"], json!([{"name": "logs", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]));
        let told = [
            "`nodeSelector`",
            "`affinity`",
            "`hostNetwork`",
            "the folder /var/log/shop of its node",
            "PersistentVolumeClaim shop-data",
        ];
        assert_eq!(notes.len(), told.len(), "{notes:#?}");
        for (note, word) in notes.iter().zip(told) {
            assert!(note.contains(word), "{note}");
        }
        let (set, notes) = imported("StatefulSet", "bound", false);
        assert!(
            set["spec"].get("volumeClaimTemplates").is_none()
                && notes[0].contains("`store` is a PersistentVolumeClaim"),
            "{notes:?}"
        );
        assert_eq!(set["spec"]["template"]["spec"]["volumes"], json!([{"name": "store", "emptyDir": {}}]));
        assert_eq!(set["spec"]["replicas"], 0);
        let (service, notes) = imported("Service", "bound", false);
        assert_eq!(service["spec"], json!({"selector": {"app": "bound"}, "ports": [{"port": 80, "targetPort": 8080}]}));
        assert!(notes.len() == 1 && notes[0].contains("NodePort"), "{notes:?}");
    }

    #[test]
    fn a_secret_keeps_its_keys_only() {
        let (mut secret, _) = imported("Secret", "db", false);
        without_values(&mut secret);
        assert_eq!(secret["stringData"], json!({"password": REPLACE, "user": REPLACE}));
        assert!(secret.get("data").is_none() && !secret.to_string().contains("aHVudGVyMg"), "{secret}");
        let (mut registry, _) = imported("Secret", "registry", false);
        without_values(&mut registry);
        assert_eq!(registry["stringData"], json!({".dockerconfigjson": "{}"}));
    }

    #[test]
    fn defaults_are_taken_away_and_nothing_else() {
        let mut value =
            json!({"a": 1, "b": {"c": 2, "d": 3}, "e": {}, "f": [{"g": 1}, {"g": 2, "h": 1}], "i": {"c": 2}});
        subtract(
            &mut value,
            &json!({"a": 1, "b": {"c": 2}, "f": [{"g": 1, "h": 2}], "i": {"c": 2, "x": 1}, "absent": 1}),
        );
        assert_eq!(value, json!({"b": {"d": 3}, "e": {}, "f": [{}, {"g": 2, "h": 1}]}));
    }
}
