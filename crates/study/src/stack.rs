//! Services that files of another tool bring: the Compose project or the cluster's manifests of a variant, and what the study changes in the
//! pods of one of its services.

use indexmap::IndexMap;
use serde_json::{Map, Value};
use unladen_journal::admitted::each_text;

use super::spec::{ComposeProject, Kubernetes, Override, Service, Study, Variant};

/// What brings the services of a variant that are not started one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stack {
    /// A Compose project; files of the variant come last.
    Compose(ComposeProject),
    /// Manifests of a cluster; those of the variant come last.
    Kubernetes(Kubernetes),
}

/// What a service is in the manifests of a cluster, and what is changed in its pods.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pod {
    /// Kind and name: `deployment/shop`.
    pub workload: String,
    /// Which of the containers it is; `None`: there is one.
    pub container: Option<String>,
    /// The container's image; `None`: that of the manifests.
    pub image: Option<String>,
    /// Labels besides those of the manifests.
    pub labels: IndexMap<String, String>,
    /// Annotations besides those of the manifests.
    pub annotations: IndexMap<String, String>,
    /// Strategic merge patch of the pod template.
    pub patch: Option<Map<String, Value>>,
}

impl Stack {
    /// What the study brings in a variant.
    pub(super) fn of(study: &Study, variant: &Variant) -> Option<Self> {
        if let Some(kubernetes) = &study.on.kubernetes {
            let mut kubernetes = kubernetes.clone();
            kubernetes.manifests.extend(variant.manifests.iter().cloned());
            return Some(Self::Kubernetes(kubernetes));
        }
        let mut project = study.on.compose.as_ref()?.project();
        project.files.extend(variant.compose.iter().cloned());
        Some(Self::Compose(project))
    }

    /// Files, or folders of files, that it is made from.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let (files, folder) = match self {
            Self::Compose(project) => (&project.files, None),
            Self::Kubernetes(kubernetes) => (&kubernetes.manifests, kubernetes.kustomize.as_ref()),
        };
        files.iter().chain(folder).map(String::as_str)
    }

    /// The Compose project, if it is one.
    #[must_use]
    pub fn compose(&self) -> Option<&ComposeProject> {
        match self {
            Self::Compose(project) => Some(project),
            Self::Kubernetes(_) => None,
        }
    }
}

impl Pod {
    /// What the study says of a service that is a workload, each text through `text`.
    pub(super) fn of<E>(
        service: &Service,
        change: &Override,
        text: impl Fn(&str) -> Result<String, E>,
    ) -> Result<Option<Self>, E> {
        let Some(workload) = &service.workload else { return Ok(None) };
        let pod = Self {
            workload: workload.clone(),
            container: service.container.clone(),
            image: change.image.clone(),
            labels: change.labels.clone(),
            annotations: change.annotations.clone(),
            patch: change.patch.clone(),
        };
        pod.filled(|_, value| text(value)).map(Some)
    }

    /// With every text through `fill`, which is told where the text stands.
    pub(super) fn filled<E>(&self, fill: impl Fn(&str, &str) -> Result<String, E>) -> Result<Self, E> {
        let named = |what: &str, entries: &IndexMap<String, String>| {
            let entry = |(name, value): (&String, &String)| Ok((name.clone(), fill(&format!("{what}.{name}"), value)?));
            entries.iter().map(entry).collect::<Result<IndexMap<_, _>, E>>()
        };
        Ok(Self {
            workload: self.workload.clone(),
            container: self.container.clone(),
            image: self.image.as_deref().map(|image| fill("image", image)).transpose()?,
            labels: named("labels", &self.labels)?,
            annotations: named("annotations", &self.annotations)?,
            patch: self.patch.as_ref().map(|patch| filled_entries("patch", patch, &fill)).transpose()?,
        })
    }

    /// Every text that may hold `${…}`.
    pub(super) fn texts(&self) -> Vec<String> {
        let mut texts: Vec<String> =
            self.image.iter().chain(self.labels.values()).chain(self.annotations.values()).cloned().collect();
        for value in self.patch.iter().flat_map(Map::values) {
            each_text(value, &mut |text| texts.push(text.to_owned()));
        }
        texts
    }
}

fn filled<E>(at: &str, value: &Value, fill: &impl Fn(&str, &str) -> Result<String, E>) -> Result<Value, E> {
    Ok(match value {
        Value::String(text) => Value::String(fill(at, text)?),
        Value::Array(items) => {
            let item = |(number, item): (usize, &Value)| filled(&format!("{at}.{number}"), item, fill);
            Value::Array(items.iter().enumerate().map(item).collect::<Result<_, E>>()?)
        }
        Value::Object(entries) => Value::Object(filled_entries(at, entries, fill)?),
        other => other.clone(),
    })
}

fn filled_entries<E>(
    at: &str,
    entries: &Map<String, Value>,
    fill: &impl Fn(&str, &str) -> Result<String, E>,
) -> Result<Map<String, Value>, E> {
    let entry = |(name, value): (&String, &Value)| Ok((name.clone(), filled(&format!("{at}.{name}"), value, fill)?));
    entries.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_a_pod_are_filled_in_wherever_they_stand() {
        let patch =
            json!({"spec": {"containers": [{"name": "app", "args": ["--to=${sink.otlp_grpc}"], "ports": [8080]}]}});
        let pod = Pod {
            workload: "deployment/shop".to_owned(),
            annotations: IndexMap::from([("inject".to_owned(), "x".to_owned())]),
            patch: patch.as_object().cloned(),
            ..Pod::default()
        };
        let mut texts = pod.texts();
        texts.sort_unstable();
        assert_eq!(texts, ["--to=${sink.otlp_grpc}", "app", "x"]);
        let filled = pod.filled(|at, text| Ok::<_, ()>(format!("{at}={text}"))).expect("it is filled in");
        assert_eq!(filled.annotations["inject"], "annotations.inject=x");
        let args = &filled.patch.expect("a patch")["spec"]["containers"][0];
        assert_eq!(args["args"][0], "patch.spec.containers.0.args.0=--to=${sink.otlp_grpc}");
        assert_eq!(args["ports"], json!([8080]));
    }
}
