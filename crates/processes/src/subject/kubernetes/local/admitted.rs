//! A pod as the cluster has admitted it, comparable with another pod. Pure.

use serde_json::{Value, json};

use super::fit::PAD;
use super::pods::Pod;

/// Labels by which a controller tells its pods apart.
const OF_CONTROLLERS: [&str; 5] = [
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
];
/// A volume of every pod whose name ends at random.
const TOKENS: &str = "kube-api-access";

impl Pod {
    /// What was admitted, without what differs between any two pods of a template.
    pub(super) fn admitted(&self) -> Value {
        let mut labels = self.value.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.retain(|name, _| !OF_CONTROLLERS.contains(&name.as_str()));
        }
        let annotations = self.value.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({}));
        let mut spec = self.value.get("spec").cloned().unwrap_or_default();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("nodeName");
            // Of a StatefulSet's: the name of the pod.
            if spec.get("hostname").and_then(Value::as_str) == Some(&self.name) {
                spec.remove("hostname");
            }
        }
        forget(&mut spec);
        json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": spec})
    }
}

/// Takes the padding of the environment and the random end of a volume's name away, wherever they are.
fn forget(value: &mut Value) {
    match value {
        Value::Object(all) => {
            if let Some(Value::String(name)) = all.get_mut("name")
                && name.starts_with(&format!("{TOKENS}-"))
            {
                *name = TOKENS.to_owned();
            }
            all.values_mut().for_each(forget);
        }
        Value::Array(all) => {
            all.retain(|it| it.get("name").and_then(Value::as_str) != Some(PAD));
            all.iter_mut().for_each(forget);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use unladen_journal::admitted::differences;

    use super::*;

    #[test]
    fn pods_of_one_template_do_not_differ() {
        let pod = json!({
            "metadata": {"labels": {"app": "shop", "pod-template-hash": "abc"}, "annotations": {"a.b/c": "1"}},
            "spec": {
                "nodeName": "node-1",
                "containers": [{
                    "name": "app",
                    "image": "shop:1",
                    "env": [{"name": "PORT", "value": "8080"}, {"name": "UNLADEN_PAD", "value": "xx"}],
                    "volumeMounts": [{"name": "kube-api-access-x1", "mountPath": "/run"}, {"name": "data", "mountPath": "/data"}],
                }],
                "volumes": [{"name": "kube-api-access-x1", "projected": {}}, {"name": "data", "emptyDir": {}}],
                "tolerations": [{"key": "a", "operator": "Exists"}],
            }
        });
        let text = pod.to_string().replace("kube-api-access-x1", "kube-api-access-y2").replace("abc", "def");
        let other: Value =
            serde_json::from_str(&text.replace("\"xx\"", "\"\"").replace("node-1", "node-2")).expect("JSON");
        assert_ne!(other, pod);
        assert_eq!(differences(&Pod::of(&pod).admitted(), &Pod::of(&other).admitted()), []);
    }

    #[test]
    fn two_pods_of_a_template_are_admitted_alike() {
        let of = |name: &str, end: &str, pad: &str| {
            let container = json!({
                "name": "app", "env": [{"name": "A", "value": "1"}, {"name": "UNLADEN_PAD", "value": pad}],
                "volumeMounts": [{"name": format!("kube-api-access-{end}"), "mountPath": "/v"}],
            });
            let spec = json!({"nodeName": name, "hostname": name, "containers": [container], "volumes": [{"name": format!("kube-api-access-{end}")}]});
            let labels = json!({"app": "shop", "pod-template-hash": end});
            Pod::of(&json!({"metadata": {"name": name, "labels": labels}, "spec": spec})).admitted()
        };
        let one = of("a", "x1", "xx");
        assert_eq!(one, of("b", "x2", ""));
        assert_eq!(one["metadata"], json!({"labels": {"app": "shop"}, "annotations": {}}));
        assert_eq!(one["spec"]["containers"][0]["env"], json!([{"name": "A", "value": "1"}]));
        assert_eq!(one["spec"]["volumes"], json!([{"name": "kube-api-access"}]));
        assert!(one["spec"].get("nodeName").is_none());
    }
}
