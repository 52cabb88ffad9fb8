//! Manifests: files with YAML to objects, each with the file that it is from, and what is refused of them. Applies nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use indexmap::IndexMap;
use serde_json::Value;

use super::Stack;
use super::error::KubernetesError;
use super::workload::Kind;

/// How files with manifests end.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Kinds in the order in which they are applied: what others need comes first. Kinds that are not here come before workloads.
const ORDER: [&str; 11] = [
    "ResourceQuota",
    "LimitRange",
    "NetworkPolicy",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "PersistentVolumeClaim",
    "Role",
    "RoleBinding",
    "Service",
    "PodDisruptionBudget",
];
const WORKLOADS: [&str; 6] = ["Pod", "ReplicaSet", "DaemonSet", "StatefulSet", "Deployment", "Job"];

/// An object of the manifests.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object {
    /// The file that it is from.
    pub(super) path: PathBuf,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) value: Value,
}

impl Object {
    fn of(path: &Path, value: Value) -> Result<Self, KubernetesError> {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).filter(|it| !it.is_empty());
        let missing = |what: &str| KubernetesError::Manifest {
            path: path.to_owned(),
            reason: format!(
                "a document has no `{what}`: each is one object of Kubernetes, with `apiVersion`, `kind` and `metadata.name`"
            ),
        };
        let api_version = text("/apiVersion").ok_or_else(|| missing("apiVersion"))?.to_owned();
        let kind = text("/kind").ok_or_else(|| missing("kind"))?.to_owned();
        let name = text("/metadata/name").ok_or_else(|| missing("metadata.name"))?.to_owned();
        let object = Self { path: path.to_owned(), api_version, kind, name, value };
        if let Some(namespace) = object.value.pointer("/metadata/namespace").and_then(Value::as_str) {
            return Err(object.unfit(format!(
                "is in the namespace `{namespace}`, but every variant has a namespace of its own: remove `metadata.namespace`, or `namespace:` from the kustomization"
            )));
        }
        Ok(object)
    }

    /// `Deployment shop`.
    pub(super) fn words(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    pub(super) fn unfit(&self, reason: String) -> KubernetesError {
        KubernetesError::Unfit { object: self.words(), path: self.path.clone(), reason }
    }

    /// Its kind, if it is a workload that a service may be.
    pub(super) fn workload(&self) -> Option<Kind> {
        Kind::of(&self.kind).filter(|_| self.api_version == "apps/v1")
    }

    /// Its pod template.
    pub(super) fn template(&self) -> Option<&Value> {
        self.value.pointer("/spec/template")
    }

    fn rank(&self) -> usize {
        let last = ORDER.len() + 1;
        let workload = WORKLOADS.iter().position(|kind| *kind == self.kind).map(|at| last + at);
        workload.or_else(|| ORDER.iter().position(|kind| *kind == self.kind)).unwrap_or(ORDER.len())
    }

    /// See [`scales`].
    pub(super) fn scales(&self) -> Option<(&str, &str)> {
        scales(&self.kind, &self.value)
    }
}

/// Kind and name of what an object scales, if it is an autoscaler.
pub(super) fn scales<'o>(kind: &str, object: &'o Value) -> Option<(&'o str, &'o str)> {
    let target = match kind {
        "HorizontalPodAutoscaler" | "ScaledObject" => "/spec/scaleTargetRef",
        "VerticalPodAutoscaler" => "/spec/targetRef",
        _ => return None,
    };
    let target = object.pointer(target)?;
    // KEDA's may leave the kind out.
    let kind = target.get("kind").and_then(Value::as_str).unwrap_or("Deployment");
    Some((kind, target.get("name")?.as_str()?))
}

/// All objects of a stack, in the order in which they are applied.
pub(super) fn read(stack: &Stack) -> Result<Vec<Object>, KubernetesError> {
    let mut objects = Vec::new();
    for path in stack.manifests.iter().map(|path| files(path)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        let text = fs::read_to_string(&path).map_err(|error| wrong(&path, format!("it cannot be read ({error})")))?;
        objects.extend(parse(&path, &text, &stack.env)?);
    }
    if let Some(folder) = &stack.kustomize {
        objects.extend(parse(folder, &kustomize(folder)?, &stack.env)?);
    }
    // Twice the same would be one object that is neither.
    for (at, object) in objects.iter().enumerate() {
        let same = |other: &&Object| {
            (&other.api_version, &other.kind, &other.name) == (&object.api_version, &object.kind, &object.name)
        };
        if let Some(other) = objects[..at].iter().find(same) {
            let before = other.path.display();
            return Err(object.unfit(format!("is in {before} as well: remove one of them")));
        }
    }
    objects.sort_by_key(Object::rank);
    Ok(objects)
}

fn wrong(path: &Path, reason: String) -> KubernetesError {
    KubernetesError::Manifest { path: path.to_owned(), reason }
}

/// The files of a folder, or the one file.
///
/// # Errors
/// It cannot be read, or holds none.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, KubernetesError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| wrong(path, format!("the folder cannot be read ({error})")))?;
    let has_ending = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        path.is_file() && ENDINGS.contains(&ending)
    };
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(has_ending).collect();
    if let Some(kustomization) = found.iter().find(|it| it.file_stem().is_some_and(|stem| stem == "kustomization")) {
        let reason = "it is no manifest but a kustomization: name its folder with `kustomize:` in the study";
        return Err(wrong(kustomization, reason.to_owned()));
    }
    if found.is_empty() {
        return Err(wrong(path, format!("the folder has no manifests: no file ends in .{}", ENDINGS.join(", ."))));
    }
    found.sort();
    Ok(found)
}

/// What `kubectl` makes of a kustomization.
///
/// # Errors
/// In the words of `kubectl`, or it is not there.
pub fn kustomize(folder: &Path) -> Result<String, KubernetesError> {
    let failed = |said: String| KubernetesError::Kustomize { path: folder.to_owned(), said };
    let output = Command::new("kubectl").arg("kustomize").arg(folder).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            failed("`kubectl` is not in PATH. Install it, or name the files with `manifests:`".to_owned())
        }
        _ => failed(error.to_string()),
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// The objects of a file: those of all its documents, and of lists.
fn parse(path: &Path, text: &str, env: &IndexMap<String, String>) -> Result<Vec<Object>, KubernetesError> {
    let documents = parse_text(&fill_in(text, env)).map_err(|error| wrong(path, format!("it is no YAML: {error}")))?;
    let mut objects = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        match items(document) {
            Ok(items) => {
                for item in items {
                    objects.push(Object::of(path, item)?);
                }
            }
            Err(document) => objects.push(Object::of(path, document)?),
        }
    }
    Ok(objects)
}

/// The documents of a file, or what is wrong with it.
pub(super) fn parse_text(text: &str) -> Result<Vec<Value>, String> {
    let options = serde_saphyr::options! {
        // As `kubectl` reads them: 0644 is octal.
        legacy_octal_numbers: true,
        emit_comments: false,
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| error.to_string())
}

/// The members of a `List`.
fn items(document: Value) -> Result<Vec<Value>, Value> {
    let is_list = document.get("kind").and_then(Value::as_str) == Some("List");
    match document {
        Value::Object(mut list) if is_list => match list.remove("items") {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        },
        other => Err(other),
    }
}

/// Puts the values of `env` in the place of `${NAME}`.
fn fill_in(text: &str, env: &IndexMap<String, String>) -> String {
    env.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

/// Names of the containers of a pod template that run as long as the pod does.
pub(super) fn containers(template: &Value) -> Vec<&str> {
    let all = template.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|container| container.get("name")?.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Object>, String> {
        let env = IndexMap::from([("UNLADEN_SINK_OTLP_GRPC".to_owned(), "127.0.0.1:4317".to_owned())]);
        parse(Path::new("a.yaml"), text, &env).map_err(|error| error.to_string())
    }

    #[test]
    fn every_document_and_every_member_of_a_list_is_an_object() {
        let text = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec: {to: '${UNLADEN_SINK_OTLP_GRPC} $(POD_IP) ${OTHER}', defaultMode: 0644, on: yes}
---
# nothing
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
";
        let objects = parsed(text).expect("three objects");
        let words: Vec<String> = objects.iter().map(Object::words).collect();
        assert_eq!(words, ["Deployment shop", "ConfigMap a", "Secret b"]);
        let spec = &objects[0].value["spec"];
        assert_eq!(spec["to"], "127.0.0.1:4317 $(POD_IP) ${OTHER}");
        assert_eq!((&spec["defaultMode"], &spec["on"]), (&Value::from(420), &Value::from(true)));
        assert_eq!(objects[0].workload(), Some(Kind::Deployment));
        assert_eq!(objects[1].workload(), None);
    }

    #[test]
    fn what_is_no_object_or_elsewhere_is_refused() {
        for (text, said) in [
            ("kind: Pod\nmetadata: {name: a}", "has no `apiVersion`"),
            ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}", "has no `metadata.name`"),
            ("- a", "has no `apiVersion`"),
            ("a: [", "it is no YAML"),
            (
                "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}",
                "Pod a in a.yaml is in the namespace `shop`",
            ),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.contains(said) && error.contains("a.yaml"), "{error}");
        }
    }

    #[test]
    fn what_others_need_is_applied_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        write("a.yaml", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop}}");
        write("b.yml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
        write("c.json", r#"{"apiVersion": "x/v1", "kind": "Own", "metadata": {"name": "o"}}"#);
        write("note.txt", "no manifest");
        let stack = Stack { manifests: vec![folder.path().to_owned()], ..Stack::default() };
        let words: Vec<String> = read(&stack).expect("objects").iter().map(Object::words).collect();
        assert_eq!(words, ["ConfigMap a", "Own o", "Deployment shop"]);

        write("d.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
        let error = read(&stack).expect_err("twice the same").to_string();
        assert!(error.contains("ConfigMap a in ") && error.contains("b.yml as well"), "{error}");
        write("kustomization.yaml", "resources: [a.yaml]");
        let error = read(&stack).expect_err("a kustomization").to_string();
        assert!(error.contains("kustomize:"), "{error}");
        let nothing = Stack { manifests: vec![folder.path().join("absent.yaml")], ..Stack::default() };
        assert!(read(&nothing).expect_err("no file").to_string().contains("absent.yaml: it cannot be read"));
        let empty = tempfile::tempdir().expect("a folder");
        let nothing = Stack { manifests: vec![empty.path().to_owned()], ..Stack::default() };
        assert!(read(&nothing).expect_err("no manifests").to_string().contains(".yaml, .yml, .json"));
    }

    #[test]
    fn a_kustomization_is_what_kubectl_makes_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.yaml"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
            .expect("written");
        fs::write(folder.path().join("kustomization.yaml"), "{resources: [a.yaml], namePrefix: test-}")
            .expect("written");
        let stack = |path: &Path| Stack { kustomize: Some(path.to_owned()), ..Stack::default() };
        match read(&stack(folder.path())) {
            Err(error) if error.to_string().contains("`kubectl` is not in PATH") => {
                return eprintln!("\nSKIPPED: there is no kubectl here\n");
            }
            read => {
                let words: Vec<String> = read.expect("an object").iter().map(Object::words).collect();
                assert_eq!(words, ["ConfigMap test-a"]);
            }
        }
        let absent = folder.path().join("absent");
        let error = read(&stack(&absent)).expect_err("no such folder").to_string();
        assert!(error.contains(&format!("`kubectl kustomize {}` failed", absent.display())), "{error}");
    }

    #[test]
    fn an_autoscaler_is_known_by_what_it_scales() {
        let of = |text: &str| parsed(text).expect("an object").remove(0);
        let hpa = of(
            "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {scaleTargetRef: {kind: Deployment, name: shop}}}",
        );
        assert_eq!(hpa.scales(), Some(("Deployment", "shop")));
        let vpa = of(
            "{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: v}, spec: {targetRef: {kind: StatefulSet, name: db}}}",
        );
        assert_eq!(vpa.scales(), Some(("StatefulSet", "db")));
        assert_eq!(of("{apiVersion: v1, kind: Pod, metadata: {name: a}}").scales(), None);
    }
}
