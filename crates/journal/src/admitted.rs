//! In what two pods differ, as a cluster admitted them. What differs between any two pods of one template the journal does not have. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

/// One place in which two pods differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where: `spec.containers.app.env.OTEL_TRACES_EXPORTER`.
    pub path: String,
    /// What the first has there; `None`: nothing.
    pub one: Option<String>,
    /// What the other has.
    pub other: Option<String>,
}

/// In what two pods (`metadata` and `spec`) differ, in the order of the paths.
#[must_use]
pub fn differences(one: &Value, other: &Value) -> Vec<Difference> {
    let (one, mut other) = (leaves(one), leaves(other));
    let mut found: Vec<Difference> = Vec::new();
    for (path, value) in one {
        let there = other.remove(&path);
        if there.as_ref() != Some(&value) {
            found.push(Difference { path, one: Some(value), other: there });
        }
    }
    found.extend(other.into_iter().map(|(path, value)| Difference { path, one: None, other: Some(value) }));
    found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Every value of a pod that says something, by its path.
fn leaves(pod: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect("", pod, &mut found);
    found
}

fn collect(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                collect(&at(key), value, found);
            }
        }
        Value::Array(items) => {
            let names = names(items);
            for (number, item) in items.iter().enumerate() {
                match names.as_ref().and_then(|names| names.get(number)) {
                    Some(name) => named(&at(name), item, found),
                    None => collect(&at(&number.to_string()), item, found),
                }
            }
        }
        Value::Null => {}
        Value::String(text) => drop(found.insert(path.to_owned(), text.clone())),
        other => drop(found.insert(path.to_owned(), other.to_string())),
    }
}

/// An item of a list whose name is in its path: `env.PORT` is `8080`, not `env.PORT.value`.
fn named(path: &str, item: &Value, found: &mut BTreeMap<String, String>) {
    let Value::Object(entries) = item else { return collect(path, item, found) };
    let rest: Vec<_> = entries.iter().filter(|(key, _)| key.as_str() != "name").collect();
    match rest[..] {
        [] => drop(found.insert(path.to_owned(), String::new())),
        [(key, value)] if key == "value" => collect(path, value, found),
        // The other key of a `fieldRef` is its version, which the API server adds.
        [(key, value)] if key == "valueFrom" && value.pointer("/fieldRef/fieldPath").is_some() => {
            let field = value.pointer("/fieldRef/fieldPath").and_then(Value::as_str).unwrap_or_default();
            found.insert(path.to_owned(), format!("the pod's {field}"));
        }
        _ => rest.iter().for_each(|(key, value)| collect(&format!("{path}.{key}"), value, found)),
    }
}

/// The names of a list's items, if each has one and no two the same.
fn names(items: &[Value]) -> Option<Vec<&str>> {
    let names: Vec<&str> = items.iter().map(|item| item.get("name")?.as_str()).collect::<Option<_>>()?;
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    (sorted.len() == names.len()).then_some(names)
}

/// The texts among the values of a pod or of a patch of one, keys left out.
pub fn each_text<'v>(value: &'v Value, see: &mut impl FnMut(&'v str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, see)),
        Value::Object(entries) => entries.values().for_each(|value| each_text(value, see)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({
            "metadata": {"labels": {"app": "shop"}, "annotations": {"a.b/c": "1"}},
            "spec": {
                "containers": [{
                    "name": "app",
                    "image": "shop:1",
                    "env": [{"name": "PORT", "value": "8080"}],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }],
                "volumes": [{"name": "data", "emptyDir": {}}],
                "tolerations": [{"key": "a", "operator": "Exists"}],
            }
        })
    }

    #[test]
    fn what_differs_is_named_by_where_it_stands() {
        let mut other = pod();
        other["metadata"]["labels"]["inject"] = json!("true");
        let container = &mut other["spec"]["containers"][0];
        container["image"] = json!("shop:2");
        container["env"] = json!([{"name": "PORT", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "x"}}}, {"name": "NEW", "value": ""}]);
        other["spec"]["initContainers"] = json!([{"name": "agent", "image": "agent:1"}]);
        other["spec"]["tolerations"] = json!([]);
        let found: Vec<String> = differences(&pod(), &other)
            .into_iter()
            .map(|it| format!("{} {:?} {:?}", it.path, it.one.unwrap_or_default(), it.other.unwrap_or_default()))
            .collect();
        assert_eq!(
            found,
            [
                r#"metadata.labels.inject "" "true""#,
                r#"spec.containers.app.env.NEW "" """#,
                r#"spec.containers.app.env.PORT "8080" "the pod's x""#,
                r#"spec.containers.app.image "shop:1" "shop:2""#,
                r#"spec.initContainers.agent.image "" "agent:1""#,
                r#"spec.tolerations.0.key "a" """#,
                r#"spec.tolerations.0.operator "Exists" """#,
            ]
        );
    }

    #[test]
    fn a_volume_that_is_mounted_twice_is_told_by_its_place() {
        let mounts = |paths: [&str; 2]| {
            let items: Vec<_> = paths.iter().map(|path| json!({"name": "data", "mountPath": path})).collect();
            json!({"spec": {"volumeMounts": items}})
        };
        let found = differences(&mounts(["/a", "/b"]), &mounts(["/a", "/c"]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "spec.volumeMounts.1.mountPath");
    }
}
