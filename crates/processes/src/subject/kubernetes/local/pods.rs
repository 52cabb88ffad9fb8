//! What the API server says of a pod, and what that means for somebody who waits for it. Pure.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Map, Value};

use super::fit::Wanted;
use crate::subject::ended::Ended;

/// Reasons to wait that do not go by themselves: the image.
pub(super) const NO_IMAGE: [&str; 4] =
    ["ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"];
/// The same: the container.
pub(super) const NO_CONTAINER: [&str; 6] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "StartError",
    "PostStartHookError",
    "PreCreateHookError",
];
/// Reasons of an end before the program ran.
const NOT_EVEN_STARTED: [&str; 2] = ["StartError", "ContainerCannotRun"];

/// A pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) address: Option<IpAddr>,
    /// Kind and name of the workload that it belongs to; of a pod without one `Pod` and its name.
    pub(super) owner: (String, String),
    /// Its deletion has begun.
    pub(super) is_going: bool,
    /// What the scheduler says, if it finds no node.
    pub(super) unscheduled: Option<String>,
    /// Why the node has ended it, if so.
    pub(super) failed: Option<String>,
    pub(super) containers: Vec<Container>,
    pub(super) value: Value,
}

/// A container of a pod that runs as long as the pod does, or that prepares it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Container {
    pub(super) name: String,
    /// As the pod names it.
    pub(super) image: String,
    pub(super) image_id: String,
    /// Hexadecimal.
    pub(super) id: String,
    pub(super) state: State,
    /// Exit code and reason of the one before it, if it was started anew.
    pub(super) before: Option<Exit>,
    pub(super) restarts: u64,
    pub(super) is_ready: bool,
    /// Its end is what the pod waits for.
    pub(super) prepares: bool,
    /// How long after its start it is first asked whether it is ready. `None`: it is not.
    pub(super) asked_after: Option<Duration>,
}

/// What a container does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Waiting { reason: String, message: String },
    Running,
    Ended(Exit),
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) reason: String,
    pub(super) message: String,
    /// Hexadecimal id of the container.
    pub(super) id: String,
}

/// Why a pod will not run, in the words of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Trouble {
    Image { image: String, said: String },
    Start { container: String, said: String },
    Ended { container: String, exit: Exit, is_previous: bool },
    Failed { said: String },
}

impl Exit {
    pub(super) fn of(value: &Value) -> Self {
        let code = value.get("exitCode").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
        Self {
            code: code.unwrap_or(-1),
            reason: text(value, "/reason"),
            message: text(value, "/message"),
            id: hexadecimal(&text(value, "/containerID")),
        }
    }

    pub(super) fn ended(&self) -> Ended {
        /// An exit code above is that of a process that a signal has ended.
        const SIGNAL: i32 = 128;
        match self.code {
            _ if self.reason == "OOMKilled" => Ended::OutOfMemory,
            code if (SIGNAL + 1..SIGNAL + 65).contains(&code) => Ended::Signal(code - SIGNAL),
            code => Ended::Exit(code),
        }
    }
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// `containerd://3f2a…` without the runtime.
fn hexadecimal(id: &str) -> String {
    id.split_once("://").map_or(id, |(_, id)| id).to_owned()
}

impl Pod {
    pub(super) fn of(value: &Value) -> Self {
        let condition = |kind: &str| list(value, "/status/conditions").find(|it| text(it, "/type") == kind);
        let unscheduled = condition("PodScheduled").filter(|it| text(it, "/reason") == "Unschedulable");
        let is_failed = text(value, "/status/phase") == "Failed";
        let failed = is_failed.then(|| [text(value, "/status/reason"), text(value, "/status/message")].join(": "));
        let prepares = |spec: &Value| text(spec, "/restartPolicy") != "Always";
        let before = list(value, "/spec/initContainers").map(|spec| (spec, "initContainerStatuses", prepares(spec)));
        let others = list(value, "/spec/containers").map(|spec| (spec, "containerStatuses", false));
        let container = |(spec, statuses, prepares): (&Value, &str, bool)| {
            let name = text(spec, "/name");
            let status = list(value, &format!("/status/{statuses}")).find(|it| text(it, "/name") == name);
            Container::of(spec, status.unwrap_or(&Value::Null), prepares)
        };
        Self {
            name: text(value, "/metadata/name"),
            uid: text(value, "/metadata/uid"),
            address: text(value, "/status/podIP").parse().ok(),
            owner: owner(value),
            is_going: value.pointer("/metadata/deletionTimestamp").is_some(),
            unscheduled: unscheduled.map(|it| text(it, "/message").trim_end_matches('.').to_owned()),
            failed,
            containers: before.chain(others).map(container).collect(),
            value: value.clone(),
        }
    }

    pub(super) fn belongs_to(&self, wanted: &Wanted) -> bool {
        self.owner.0 == wanted.kind && self.owner.1 == wanted.name
    }

    /// Those that run as long as the pod does.
    pub(super) fn lasting(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().filter(|container| !container.prepares)
    }

    pub(super) fn container(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|container| container.name == name)
    }

    pub(super) fn runs(&self) -> bool {
        !self.is_going && self.lasting().all(|container| container.state == State::Running)
    }

    /// Why it will not run, if that is so.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        let of_container = self.containers.iter().find_map(Container::trouble);
        of_container.or_else(|| self.failed.clone().map(|said| Trouble::Failed { said }))
    }

    /// What it waits for, in words.
    pub(super) fn waits_for(&self) -> String {
        if let Some(said) = &self.unscheduled {
            return said.clone();
        }
        let waiting = self.containers.iter().filter_map(|container| match &container.state {
            State::Waiting { reason, message } if !message.is_empty() => {
                Some((container, format!("{reason}: {message}")))
            }
            State::Waiting { reason, .. } => Some((container, reason.clone())),
            State::Running if container.prepares => {
                Some((container, "it prepares the pod and has not ended".to_owned()))
            }
            _ => None,
        });
        let all: Vec<String> = waiting.map(|(container, why)| format!("`{}`: {why}", container.name)).collect();
        if all.is_empty() { "its node has not taken it".to_owned() } else { all.join(", ") }
    }
}

/// The ReplicaSet between a Deployment and its pods is called after both: `shop-7d9c5b8f6`.
fn owner(value: &Value) -> (String, String) {
    let is_controller = |it: &&Value| it.get("controller").and_then(Value::as_bool) == Some(true);
    let Some(owner) = list(value, "/metadata/ownerReferences").find(is_controller) else {
        return ("Pod".to_owned(), text(value, "/metadata/name"));
    };
    let (kind, name) = (text(owner, "/kind"), text(owner, "/name"));
    let hash = text(value, "/metadata/labels/pod-template-hash");
    match name.strip_suffix(&format!("-{hash}")) {
        Some(deployment) if kind == "ReplicaSet" && !hash.is_empty() => {
            ("Deployment".to_owned(), deployment.to_owned())
        }
        _ => (kind, name),
    }
}

impl Container {
    fn of(spec: &Value, status: &Value, prepares: bool) -> Self {
        let state = match status.get("state").and_then(Value::as_object) {
            Some(state) if state.contains_key("running") => State::Running,
            Some(state) if state.contains_key("terminated") => State::Ended(Exit::of(&state["terminated"])),
            Some(state) => waiting(state),
            None => State::Waiting { reason: "not yet known to its node".to_owned(), message: String::new() },
        };
        let probe = spec.get("readinessProbe");
        let seconds = |key: &str, otherwise: u64| {
            let given = probe.and_then(|probe| probe.get(key)).and_then(Value::as_u64);
            Duration::from_secs(given.unwrap_or(otherwise))
        };
        Self {
            name: text(spec, "/name"),
            image: text(spec, "/image"),
            image_id: text(status, "/imageID"),
            id: hexadecimal(&text(status, "/containerID")),
            state,
            before: status.pointer("/lastState/terminated").map(Exit::of),
            restarts: status.get("restartCount").and_then(Value::as_u64).unwrap_or(0),
            is_ready: status.get("ready").and_then(Value::as_bool).unwrap_or(false),
            prepares,
            asked_after: probe.map(|_| seconds("initialDelaySeconds", 0) + seconds("periodSeconds", 10)),
        }
    }

    fn trouble(&self) -> Option<Trouble> {
        match &self.state {
            State::Waiting { reason, message } if NO_IMAGE.contains(&reason.as_str()) => {
                Some(Trouble::Image { image: self.image.clone(), said: said(reason, message) })
            }
            State::Waiting { reason, message } if NO_CONTAINER.contains(&reason.as_str()) => {
                Some(Trouble::Start { container: self.name.clone(), said: said(reason, message) })
            }
            State::Ended(exit) if !(self.prepares && exit.code == 0) => Some(self.ended(exit, false)),
            _ if self.restarts > 0 => self.before.as_ref().map(|exit| self.ended(exit, true)),
            _ => None,
        }
    }

    fn ended(&self, exit: &Exit, is_previous: bool) -> Trouble {
        let container = self.name.clone();
        if NOT_EVEN_STARTED.contains(&exit.reason.as_str()) {
            return Trouble::Start { container, said: said(&exit.reason, &exit.message) };
        }
        Trouble::Ended { container, exit: exit.clone(), is_previous }
    }

    /// How the container with this id has ended, if it has.
    pub(super) fn end_of(&self, id: &str) -> Option<Ended> {
        let now = match &self.state {
            State::Ended(exit) => Some(exit),
            _ => None,
        };
        now.into_iter().chain(&self.before).find(|exit| exit.id == id).map(Exit::ended)
    }
}

fn said(reason: &str, message: &str) -> String {
    if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") }
}

fn waiting(state: &Map<String, Value>) -> State {
    let waiting = state.get("waiting").unwrap_or(&Value::Null);
    State::Waiting { reason: text(waiting, "/reason"), message: text(waiting, "/message") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: Value, status: Value) -> Pod {
        Pod::of(&json!({
            "metadata": {
                "name": "shop-7d9c5b8f6-x2x4z", "uid": "u", "labels": {"app": "shop", "pod-template-hash": "7d9c5b8f6"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": "shop-7d9c5b8f6", "controller": true}],
            },
            "spec": spec,
            "status": status,
        }))
    }

    fn of_state(state: Value) -> Pod {
        let spec = json!({"containers": [{"name": "app", "image": "shop:1"}]});
        let status = json!({"name": "app", "state": state, "restartCount": 0, "containerID": "containerd://ab", "imageID": "sha256:1"});
        pod(spec, json!({"podIP": "198.18.1.5", "containerStatuses": [status]}))
    }

    #[test]
    fn a_pod_that_runs_belongs_to_its_deployment() {
        let pod = of_state(json!({"running": {}}));
        assert_eq!(pod.owner, ("Deployment".to_owned(), "shop".to_owned()));
        assert_eq!(pod.address, Some(IpAddr::from([198, 18, 1, 5])));
        assert!(pod.runs() && pod.trouble().is_none());
        let app = pod.container("app").expect("it");
        assert_eq!((app.id.as_str(), app.image_id.as_str(), app.asked_after), ("ab", "sha256:1", None));
        let alone = Pod::of(&json!({"metadata": {"name": "a"}}));
        assert_eq!(alone.owner, ("Pod".to_owned(), "a".to_owned()));
        let of_a_set = json!({"metadata": {"name": "db-0", "ownerReferences": [{"kind": "StatefulSet", "name": "db", "controller": true}]}});
        assert_eq!(Pod::of(&of_a_set).owner, ("StatefulSet".to_owned(), "db".to_owned()));
    }

    #[test]
    fn what_does_not_go_by_itself_is_trouble() {
        let trouble = |reason: &str| of_state(json!({"waiting": {"reason": reason, "message": "why"}})).trouble();
        let said = |reason: &str| format!("{reason}: why");
        for reason in NO_IMAGE {
            assert_eq!(trouble(reason), Some(Trouble::Image { image: "shop:1".to_owned(), said: said(reason) }));
        }
        for reason in NO_CONTAINER {
            assert_eq!(trouble(reason), Some(Trouble::Start { container: "app".to_owned(), said: said(reason) }));
        }
        for reason in ["ContainerCreating", "PodInitializing", "ErrImagePull"] {
            assert_eq!(trouble(reason), None, "{reason}");
        }
        assert_eq!(
            of_state(json!({"waiting": {"reason": "ContainerCreating"}})).waits_for(),
            "`app`: ContainerCreating"
        );
        assert_eq!(
            of_state(json!({"waiting": {"reason": "ErrImagePull", "message": "why"}})).waits_for(),
            "`app`: ErrImagePull: why"
        );
        let failed = pod(json!({"containers": []}), json!({"phase": "Failed", "reason": "Evicted", "message": "disk"}));
        assert_eq!(failed.trouble(), Some(Trouble::Failed { said: "Evicted: disk".to_owned() }));
        let condition =
            json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"});
        let nowhere = pod(json!({"containers": []}), json!({"conditions": [condition]}));
        assert_eq!((nowhere.unscheduled.as_deref(), nowhere.waits_for().as_str()), (Some("0/1 nodes"), "0/1 nodes"));
    }

    #[test]
    fn what_has_ended_says_how() {
        let ended = |exit: Value| match of_state(json!({"terminated": exit})).trouble() {
            Some(Trouble::Ended { exit, is_previous: false, .. }) => exit.ended(),
            other => panic!("{other:?}"),
        };
        assert_eq!(ended(json!({"exitCode": 3, "reason": "Error"})), Ended::Exit(3));
        assert_eq!(ended(json!({"exitCode": 0, "reason": "Completed"})), Ended::Exit(0));
        assert_eq!(ended(json!({"exitCode": 137, "reason": "Error"})), Ended::Signal(9));
        assert_eq!(ended(json!({"exitCode": 137, "reason": "OOMKilled"})), Ended::OutOfMemory);
        let absent = json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such file"}});
        let said = "StartError: no such file".to_owned();
        assert_eq!(of_state(absent).trouble(), Some(Trouble::Start { container: "app".to_owned(), said }));

        let spec = json!({"containers": [{"name": "app", "image": "shop:1"}]});
        let before = json!({"terminated": {"exitCode": 1, "containerID": "containerd://old"}});
        let status = json!({"name": "app", "state": {"running": {}}, "lastState": before, "restartCount": 1, "containerID": "containerd://new"});
        let again = pod(spec, json!({"containerStatuses": [status]}));
        assert!(matches!(again.trouble(), Some(Trouble::Ended { is_previous: true, .. })));
        let app = again.container("app").expect("it");
        assert_eq!((app.end_of("old"), app.end_of("new")), (Some(Ended::Exit(1)), None));
    }

    #[test]
    fn containers_that_prepare_a_pod_end_and_sidecars_do_not() {
        let spec = json!({
            "initContainers": [{"name": "migrate"}, {"name": "proxy", "restartPolicy": "Always"}],
            "containers": [{"name": "app", "readinessProbe": {"initialDelaySeconds": 2}}],
        });
        let status = |exit: i32| {
            json!({
                "initContainerStatuses": [
                    {"name": "migrate", "state": {"terminated": {"exitCode": exit}}}, {"name": "proxy", "state": {"running": {}}},
                ],
                "containerStatuses": [{"name": "app", "state": {"running": {}}, "ready": true}],
            })
        };
        let well = pod(spec.clone(), status(0));
        assert!(well.runs() && well.trouble().is_none());
        assert_eq!(well.lasting().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["proxy", "app"]);
        assert_eq!(well.container("app").and_then(|it| it.asked_after), Some(Duration::from_secs(12)));
        assert!(
            matches!(pod(spec, status(1)).trouble(), Some(Trouble::Ended { container, .. }) if container == "migrate")
        );
    }
}
