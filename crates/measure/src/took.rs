//! Whether the cluster made of a variant's pods what the study asks for. A label that no injector heeds costs nothing and looks like a result;
//! so pods that are the baseline's, although the variant declares more, are refused. Pure.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde_json::Value;
use unladen_journal::admitted::{Difference, differences};
use unladen_study::plan::{PlannedVariant, Process};
use unladen_study::stack::Pod;

/// Pods as they were admitted, by service.
pub(super) type Admitted = BTreeMap<String, Value>;

/// What of a variant came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inert {
    pub(super) service: String,
    /// What the variant declares, in words.
    pub(super) declared: String,
    /// Labels and annotations were taken, and nothing heeded them; else nothing was taken.
    pub(super) is_request: bool,
}

/// The first service of a variant whose pods are not what the variant declares beyond its baseline.
pub(super) fn inert(
    (bare, bare_pods): (&PlannedVariant, &Admitted),
    (variant, pods): (&PlannedVariant, &Admitted),
) -> Option<Inert> {
    let of = |variant: &'_ PlannedVariant, service: &str| {
        variant.processes.iter().find(|process| process.service == service).cloned()
    };
    pods.iter().find_map(|(service, pod)| {
        let declared = Declared::of(&of(bare, service)?, &of(variant, service)?);
        let found = differences(bare_pods.get(service)?, pod);
        let is_request = declared.is_unheeded(&found);
        let is_inert = !declared.is_empty() && (found.is_empty() || is_request);
        is_inert.then(|| Inert { service: service.clone(), declared: declared.words(), is_request: !found.is_empty() })
    })
}

/// What a variant declares of the pods of a service beyond the baseline.
#[derive(Debug, Default)]
struct Declared {
    env: BTreeSet<String>,
    is_image: bool,
    is_limits: bool,
    labels: BTreeSet<String>,
    annotations: BTreeSet<String>,
    /// Parts of the patch beyond labels and annotations: nobody here knows what they come to.
    is_patch: bool,
}

impl Declared {
    fn of(bare: &Process, other: &Process) -> Self {
        let none = Pod::default();
        let pods = [bare, other].map(|process| process.pod.as_ref().unwrap_or(&none));
        let metadata = |key: &str| {
            let [bare, other] = pods.map(|pod| of_patch(pod, key));
            other.difference(&bare).map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let new = |bare: &IndexMap<String, String>, other: &IndexMap<String, String>| {
            let is_new = |(name, value): &(&String, &String)| bare.get(*name) != Some(value);
            other.iter().filter(is_new).map(|(name, _)| name.clone()).collect::<BTreeSet<_>>()
        };
        let rest = pods.map(|pod| {
            let mut patch = pod.patch.clone().unwrap_or_default();
            if let Some(Value::Object(metadata)) = patch.get_mut("metadata") {
                metadata.remove("labels");
                metadata.remove("annotations");
            }
            patch.retain(|_, value| value.as_object().is_none_or(|entries| !entries.is_empty()));
            patch
        });
        let mut declared = Self {
            env: new(&bare.env, &other.env),
            is_image: pods[0].image != pods[1].image,
            is_limits: bare.limits != other.limits,
            labels: new(&pods[0].labels, &pods[1].labels),
            annotations: new(&pods[0].annotations, &pods[1].annotations),
            is_patch: rest[0] != rest[1],
        };
        declared.labels.extend(metadata("labels"));
        declared.annotations.extend(metadata("annotations"));
        declared
    }

    fn is_empty(&self) -> bool {
        let texts = [&self.env, &self.labels, &self.annotations];
        texts.iter().all(|names| names.is_empty()) && !self.is_image && !self.is_limits && !self.is_patch
    }

    /// Whether labels or annotations ask for something, and nothing is there but what was declared.
    fn is_unheeded(&self, found: &[Difference]) -> bool {
        let asks = !self.labels.is_empty() || !self.annotations.is_empty();
        asks && !self.is_patch && found.iter().all(|it| self.is_declared(&it.path))
    }

    fn is_declared(&self, path: &str) -> bool {
        if let Some(name) = path.strip_prefix("metadata.labels.") {
            return self.labels.contains(name);
        }
        if let Some(name) = path.strip_prefix("metadata.annotations.") {
            return self.annotations.contains(name);
        }
        let Some((_, within)) = path.strip_prefix("spec.containers.").and_then(|rest| rest.split_once('.')) else {
            return false;
        };
        let of_env = within.strip_prefix("env.").is_some_and(|name| self.env.contains(name));
        of_env || (self.is_image && within == "image") || (self.is_limits && within.starts_with("resources."))
    }

    fn words(&self) -> String {
        let named = |what: &str, names: &BTreeSet<String>| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
        };
        let plain = |what: &str, is_there: bool| is_there.then(|| what.to_owned());
        let all = [
            named("the label", &self.labels),
            named("the annotation", &self.annotations),
            named("the variable", &self.env),
            plain("another image", self.is_image),
            plain("other limits", self.is_limits),
            plain("a patch", self.is_patch),
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Labels or annotations within the patch of a pod.
fn of_patch(pod: &Pod, key: &str) -> BTreeSet<(String, String)> {
    let entries = pod.patch.as_ref().and_then(|patch| patch.get("metadata")?.get(key)?.as_object());
    entries.into_iter().flatten().map(|(name, value)| (name.clone(), value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use unladen_study::plan::Plan;

    use super::*;

    const STUDY: &str = "
study: s
on: {kubernetes: {manifests: [deploy/]}}
services: {api: {workload: deployment/api, env: {A: '1'}}}
variants: {baseline: {}, other: {services: {api: {CHANGE}}}}
load: {url: 'http://api:1/'}
";

    fn judged(change: &str, differ: impl FnOnce(&mut Value)) -> Option<Inert> {
        let text = STUDY.replace("CHANGE", change);
        let study = unladen_study::read::parse(&text, "study.yaml", &[]).expect("a study");
        let plan = Plan::from_study(study, std::path::Path::new("/x")).expect("a plan");
        let variant = |name: &str| plan.variants.iter().find(|it| it.name == name).expect("it is planned");
        let pod = json!({"metadata": {"labels": {"app": "api"}}, "spec": {"containers": [{"name": "app", "env": [{"name": "A", "value": "1"}]}]}});
        let mut other = pod.clone();
        differ(&mut other);
        let of = |pod| Admitted::from([("api".to_owned(), pod)]);
        inert((variant("baseline"), &of(pod)), (variant("other"), &of(other)))
    }

    fn label(pod: &mut Value) {
        pod["metadata"]["labels"]["inject"] = json!("true");
    }

    #[test]
    fn a_label_that_nobody_heeds_is_no_variant() {
        for change in [
            "labels: {inject: 'true'}",
            "patch: {metadata: {labels: {inject: 'true'}}}",
            "labels: {inject: 'true'}, annotations: {x: y}, ready: {timeout: 5s}",
        ] {
            let found = judged(change, label).expect("nobody heeded it");
            assert!(found.is_request && found.declared.contains("the label `inject`"), "{change}: {found:?}");
        }
        // What is declared besides is no sign of an injector.
        let with_env = |pod: &mut Value| {
            label(pod);
            pod["spec"]["containers"][0]["env"][0]["value"] = json!("2");
            pod["spec"]["containers"][0]["image"] = json!("x");
        };
        let change = "labels: {inject: 'true'}, env: {A: '2'}, image: x";
        assert!(judged(change, with_env).is_some_and(|it| it.is_request));
        assert_eq!(judged("labels: {inject: 'true'}, env: {A: '2'}", with_env), None, "somebody set the image");
    }

    #[test]
    fn whatever_an_injector_does_is_a_variant() {
        let injected = |pod: &mut Value| {
            label(pod);
            pod["spec"]["initContainers"] = json!([{"name": "agent"}]);
        };
        assert_eq!(judged("labels: {inject: 'true'}", injected), None);
        let marked = |pod: &mut Value| {
            label(pod);
            pod["metadata"]["annotations"] = json!({"injected": "yes"});
        };
        assert_eq!(judged("labels: {inject: 'true'}", marked), None);
        // What a patch comes to, nobody knows beforehand.
        assert_eq!(judged("labels: {inject: 'true'}, patch: {spec: {hostPID: true}}", label), None);
    }

    #[test]
    fn changes_that_are_there_already_are_no_variant() {
        let same = |change: &str| judged(change, |_| {});
        let found = same("env: {A: '2'}").expect("nothing was taken");
        assert_eq!((found.declared.as_str(), found.is_request), ("the variable `A`", false));
        assert!(same("image: x").is_some() && same("patch: {spec: {}}").is_none());
        assert_eq!(same("patch: {spec: {hostPID: true}}").map(|it| it.declared), Some("a patch".to_owned()));
        assert_eq!(same("expect_log: x"), None, "nothing of the pods is declared");
        assert_eq!(same("env: {A: '1'}"), None, "the service has it already");
    }
}
