//! Workloads to running services: a namespace is made, manifests are applied, pods are waited for, their processes found.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use unladen_linux::Netns;

use super::api::{Api, Content, Event, Failure, base, events, items, name, nodes, text};
use super::clusters;
use super::error::KubernetesError;
use super::fit::{Wanted, fit};
use super::manifests::{self, Object};
use super::owner::boot_id;
use super::pods::Pod;
use super::{NODE, Stack, job_of_this_pod, plain_name};
use crate::subject::error::SubjectError;
use crate::subject::launcher::Launcher;
use crate::subject::placed::Placed;
use crate::subject::shared::Shared;

/// The account of a namespace that has just been made is there after this time.
const ACCOUNT: Duration = Duration::from_secs(20);
/// Pods of a namespace whose deletion has begun have gone after this time.
const EMPTY: Duration = Duration::from_secs(60);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(100);
/// A field that no such object has is refused, as by `kubectl`.
const STRICT: &str = "fieldValidation=Strict";
/// Longest name of a namespace.
const LONGEST_NAME: usize = 63;

/// What was deployed. Dropping it deletes its namespace.
#[derive(Debug)]
pub struct Deployed {
    pub(super) api: Arc<Api>,
    pub(super) namespace: String,
    pub(super) admitted: BTreeMap<String, Value>,
    shared: Arc<Shared>,
    is_going: bool,
}

impl Launcher {
    /// Starts workloads in a namespace of their own, within `patience`, and returns their containers in the order in which they were
    /// started: the container that is a service under its name, others of its pod as `service/container`, those of other workloads under
    /// the name of the workload. Every network namespace that one of them is in is handed to `seen` as soon as it is there, mostly before
    /// the containers run.
    ///
    /// # Errors
    /// A manifest, a change or an image is wrong, the node is another machine, or the cluster refuses. Nothing is left then.
    pub fn deploy(
        &self,
        stack: &Stack,
        patience: Duration,
        seen: &mut dyn FnMut(&Arc<Netns>),
        interrupted: &AtomicBool,
    ) -> Result<(Deployed, Vec<Placed>), SubjectError> {
        let mut objects = manifests::read(stack)?;
        let shared = self.shared();
        let (number, api) = shared.clusters.api(stack.context.as_deref(), &shared.guard)?;
        let node = this_node(&api)?;
        let wanted = fit(&mut objects, stack, node.as_deref())?;
        let places = places(&api, &objects)?;
        look_for_interruption(interrupted)?;
        let mut deployed = Deployed::empty(shared, (number, &api), &stack.variant)?;
        deployed.apply(&objects, &places, interrupted)?;
        deployed.wake(&wanted)?;
        let placed = deployed.wait(self, stack, &wanted, patience, seen, interrupted)?;
        Ok((deployed, placed))
    }
}

/// `unladen-4711-1a2b3c4d-3-otel`.
fn namespace_name(mark: &str, variant: &str) -> String {
    plain_name(&format!("unladen-{mark}-{variant}"), LONGEST_NAME)
}

/// Label of the node that is this machine; `None`: there is no other.
fn this_node(api: &Api) -> Result<Option<String>, KubernetesError> {
    let (nodes, at) = find_node(api)?;
    Ok((nodes.len() > 1)
        .then(|| text(&nodes[at], "/metadata/labels/kubernetes.io~1hostname").unwrap_or_default().to_owned()))
}

/// All nodes, and which of them is this machine.
pub(super) fn find_node(api: &Api) -> Result<(Vec<Value>, usize), KubernetesError> {
    let nodes = nodes(api).map_err(|failure| failure.when(api, "list the nodes"))?;
    let of_pod = job_of_this_pod().and_then(|_| std::env::var(NODE).ok());
    match choose(&nodes, of_pod.as_deref(), &boot_id()) {
        Ok(at) => Ok((nodes, at)),
        Err(known) => Err(KubernetesError::Elsewhere { server: api.server().to_owned(), known }),
    }
}

/// The node that a pod is on, or that was started as this machine was; else the names of all. Nodes that are containers of one machine all say
/// that they are: a pod knows better.
pub(super) fn choose(nodes: &[Value], of_pod: Option<&str>, boot: &str) -> Result<usize, String> {
    let is_here = |node: &&Value| match of_pod {
        Some(of_pod) => name(node) == of_pod,
        None => is_of_boot(node, boot),
    };
    nodes.iter().position(|node| is_here(&node)).ok_or_else(|| nodes.iter().map(name).collect::<Vec<_>>().join(", "))
}

/// Whether a node was started as the machine of a boot id was.
pub(super) fn is_of_boot(node: &Value, boot: &str) -> bool {
    !boot.is_empty() && text(node, "/status/nodeInfo/bootID") == Some(boot)
}

/// What the server calls the kind of each object.
pub(super) fn places(api: &Api, objects: &[Object]) -> Result<Vec<String>, KubernetesError> {
    let place = |object: &Object| {
        let known = api.resource(&object.api_version, &object.kind);
        match known.map_err(|failure| failure.when(api, "tell the kinds of objects that it knows"))? {
            Some(resource) if resource.is_namespaced => Ok(resource.plural),
            Some(_) if object.kind == "Namespace" => {
                Err(object.unfit("is not needed: every variant has a namespace of its own. Take it out of the manifests".to_owned()))
            }
            Some(_) => Err(object.unfit(
                "belongs to the whole cluster, and would stay: apply it by yourself before the study, and take it out of the manifests"
                    .to_owned(),
            )),
            None => Err(object.unfit(format!(
                "is of a kind that the cluster does not know: has `{}` been misspelt, or is its definition (CRD) not installed?",
                object.api_version
            ))),
        }
    };
    objects.iter().map(place).collect()
}

impl Deployed {
    /// A namespace of its own with nothing in it. `what` is to be there: it is in the name.
    pub(super) fn empty(
        shared: &Arc<Shared>,
        (number, api): (usize, &Arc<Api>),
        what: &str,
    ) -> Result<Self, KubernetesError> {
        let namespace = namespace_name(&shared.next_mark(), what);
        // Named before it is made: there is no instant at which it is there and the guard does not know it.
        shared.clusters.announce(&shared.guard, (number, api), &namespace);
        let (api, shared) = (Arc::clone(api), Arc::clone(shared));
        let deployed = Self { api, namespace, admitted: BTreeMap::new(), shared, is_going: false };
        let made = clusters::create(&deployed.api, &deployed.namespace, &deployed.shared.id, what);
        made.map_err(|failure| failure.when(&deployed.api, "create a namespace"))?;
        Ok(deployed)
    }

    /// Where objects of a kind are.
    pub(super) fn path(&self, api_version: &str, plural: &str) -> String {
        format!("{}/namespaces/{}/{plural}", base(api_version), self.namespace)
    }

    /// Where the workload is that pods belong to.
    pub(super) fn workload(&self, wanted: &Wanted) -> String {
        let folder = match wanted.kind.as_str() {
            "Pod" => self.path("v1", "pods"),
            kind => self.path("apps/v1", &format!("{}s", kind.to_lowercase())),
        };
        format!("{folder}/{}", wanted.name)
    }

    fn apply(&self, objects: &[Object], places: &[String], interrupted: &AtomicBool) -> Result<(), SubjectError> {
        for (object, plural) in objects.iter().zip(places) {
            look_for_interruption(interrupted)?;
            let folder = self.path(&object.api_version, plural);
            let what = format!("apply {} of {}", object.words(), object.path.display());
            let create = format!("{folder}?{STRICT}");
            let deadline = Instant::now() + ACCOUNT;
            let done = loop {
                match self.api.post(&create, &object.value) {
                    // A pod cannot be made before its namespace has an account.
                    Err(Failure::Refused(403, said))
                        if said.contains("serviceaccount") && object.kind == "Pod" && Instant::now() < deadline =>
                    {
                        look_for_interruption(interrupted)?;
                        thread::sleep(PAUSE);
                    }
                    // A namespace begins with some objects, such as the account `default`.
                    Err(Failure::Refused(409, _)) => {
                        let place = format!("{folder}/{}?{STRICT}", object.name);
                        break self.api.patch(&place, Content::Merge, &object.value);
                    }
                    other => break other,
                }
            };
            done.map_err(|failure| failure.when(&self.api, &what))?;
        }
        Ok(())
    }

    /// Patches the workloads that have no pods yet, and lets them have pods.
    fn wake(&self, wanted: &[Wanted]) -> Result<(), KubernetesError> {
        for one in wanted {
            let Some(patch) = &one.patch else { continue };
            let path = format!("{}?{STRICT}", self.workload(one));
            let what = format!("apply the `patch` of the service {} to {}", one.service, one.workload());
            self.api.patch(&path, Content::StrategicMerge, patch).map_err(|failure| failure.when(&self.api, &what))?;
        }
        Ok(())
    }

    pub(super) fn pods(&self) -> Result<Vec<Pod>, Failure> {
        let answer = self.api.get(&self.path("v1", "pods"))?;
        let mut pods: Vec<Pod> = items(&answer).iter().map(Pod::of).collect();
        // `db-10` comes after `db-9`.
        pods.sort_by(|one, other| (one.name.len(), &one.name).cmp(&(other.name.len(), &other.name)));
        Ok(pods)
    }

    /// What the cluster warns of, the latest first.
    pub(super) fn warnings(&self) -> Vec<Event> {
        let mut all = events(&self.api, &format!("{}?fieldSelector=type%3DWarning", self.path("v1", "events")));
        all.reverse();
        all
    }

    /// The pod of each service as the cluster has admitted it: `metadata` with labels and annotations, `spec`. What differs between any two
    /// pods of a template is left out: names, the node, tokens, `UNLADEN_PAD`.
    #[must_use]
    pub fn admitted(&self) -> &BTreeMap<String, Value> {
        &self.admitted
    }

    /// Deletes its namespace and waits until its pods have gone. The rest of the namespace goes afterwards; [`Launcher::close`] waits for it.
    ///
    /// # Errors
    /// What the API server says.
    pub fn remove(mut self) -> Result<(), SubjectError> {
        let failed = |failure: Failure, api: &Api| failure.when(api, "delete a namespace");
        self.take_away().map_err(|failure| failed(failure, &self.api))?;
        let deadline = Instant::now() + EMPTY;
        loop {
            match clusters::is_empty(&self.api, &self.namespace) {
                Ok(true) => return Ok(()),
                Err(failure) if failure.is_absence() => return Ok(()),
                // `close` waits for longer.
                _ if Instant::now() >= deadline => return Ok(()),
                _ => thread::sleep(PAUSE),
            }
        }
    }

    fn take_away(&mut self) -> Result<(), Failure> {
        if self.is_going {
            return Ok(());
        }
        match clusters::delete(&self.api, &self.namespace) {
            Ok(()) => {}
            Err(failure) if failure.is_absence() => {}
            Err(failure) => return Err(failure),
        }
        self.is_going = true;
        Ok(())
    }
}

impl Drop for Deployed {
    fn drop(&mut self) {
        // What the server refuses now is asked for again when the launcher is closed, and by the guard.
        let _ = self.take_away();
    }
}

pub(super) fn look_for_interruption(interrupted: &AtomicBool) -> Result<(), SubjectError> {
    match interrupted.load(Ordering::Relaxed) {
        true => Err(SubjectError::Interrupted { service: "the cluster".to_owned() }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_tells_whose_it_is() {
        assert_eq!(namespace_name("4711-1a2b3c4d/3", "otel"), "unladen-4711-1a2b3c4d-3-otel");
        assert_eq!(namespace_name("4711-1a2b3c4d/3", "OTel 50 %"), "unladen-4711-1a2b3c4d-3-otel-50");
        assert!(namespace_name("4711-1a2b3c4d/3", &"x".repeat(99)).len() == LONGEST_NAME);
    }

    #[test]
    fn this_machine_is_the_node_that_was_started_with_it() {
        let node =
            |name: &str, boot: &str| json!({"metadata": {"name": name}, "status": {"nodeInfo": {"bootID": boot}}});
        let (here, there) = (node("a", "1"), node("b", "2"));
        let twins = [node("a", "1"), node("c", "1")];
        assert_eq!(choose(&twins, Some("c"), "1"), Ok(1));
        assert_eq!(choose(&twins, Some("d"), "1"), Err("a, c".to_owned()));
        assert_eq!(choose(std::slice::from_ref(&here), None, "1"), Ok(0));
        assert_eq!(choose(&[there.clone(), here], None, "1"), Ok(1));
        assert_eq!(choose(std::slice::from_ref(&there), None, "1"), Err("b".to_owned()));
        assert_eq!(choose(&[there, node("c", "")], None, ""), Err("b, c".to_owned()));
    }
}
