//! Probes in the pods of the services: ephemeral containers, each in the process namespace of one container, with its user and no more rights. They
//! cannot be taken out again, and go with their pods.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use unladen_probe::remote::{Remote, ping};

use super::api::{Content, text};
use super::deploy::{Deployed, look_for_interruption};
use super::error::KubernetesError;
use super::pods::{Container, Exit, NO_CONTAINER, NO_IMAGE, Pod};
use super::restricted::NOBODY;
use super::wait::{Expected, WatchedBy, Watchers};
use super::{PROGRAM, ProbeOrder, SECRET};
use crate::subject::error::SubjectError;

/// All probes answer within this time; their image may have to be pulled first.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Settings of a container that decide what it may read of another one.
const RIGHTS: [&str; 6] =
    ["allowPrivilegeEscalation", "capabilities", "privileged", "runAsGroup", "runAsNonRoot", "runAsUser"];

/// A probe that was put beside a container.
struct Placed<'e> {
    expected: &'e Expected<'e>,
    container: &'e Container,
    name: String,
    remote: Remote,
}

impl Deployed {
    /// Puts a probe beside every container, and waits until all answer.
    pub(super) fn put_probes(
        &self,
        order: &ProbeOrder,
        all: &[Expected<'_>],
        interrupted: &AtomicBool,
    ) -> Result<Watchers, SubjectError> {
        let mut waiting: Vec<Placed<'_>> = Vec::new();
        for expected in all {
            let pod = &expected.pod;
            let address = pod.address.unwrap_or_else(|| Ipv4Addr::LOCALHOST.into());
            if pod.value.pointer("/spec/shareProcessNamespace") == Some(&Value::Bool(true)) {
                let said = "the containers of the pod share one process namespace (`shareProcessNamespace`), so none can be told from the others: remove it, or use `probe: node`";
                return Err(no_probe(expected, said.to_owned()).into());
            }
            let mut containers = Vec::new();
            for (container, port) in pod.lasting().zip(order.port..) {
                let name = format!("unladen-probe-{port}");
                containers.push(ephemeral(order, pod, container, &name, port));
                let remote = Remote { address: SocketAddr::new(address, port), secret: order.secret.clone() };
                waiting.push(Placed { expected, container, name, remote });
            }
            let path = format!("{}/{}/ephemeralcontainers", self.path("v1", "pods"), pod.name);
            let patch = json!({"spec": {"ephemeralContainers": containers}});
            let what = format!("put a probe into the pods of {}", expected.wanted.workload());
            self.api.patch(&path, Content::StrategicMerge, &patch).map_err(|failure| failure.when(&self.api, &what))?;
        }
        let begun = Instant::now();
        let mut probes = Watchers::new();
        while let Some(next) = waiting.pop() {
            look_for_interruption(interrupted)?;
            match ping(&next.remote) {
                Ok(()) => {
                    let key = (next.expected.pod.uid.clone(), next.container.id.clone());
                    probes.insert(key, WatchedBy::Probe(next.remote));
                    continue;
                }
                Err(error) => {
                    let why = self.why_silent(&next);
                    if why.is_some() || begun.elapsed() >= PATIENCE {
                        let said = why.unwrap_or_else(|| {
                            format!("no answer at {} within {} s: {error}", next.remote.address, PATIENCE.as_secs())
                        });
                        return Err(no_probe(next.expected, said).into());
                    }
                }
            }
            waiting.push(next);
            thread::sleep(LOOK);
        }
        Ok(probes)
    }

    /// Why a probe will not answer, if that is known.
    fn why_silent(&self, placed: &Placed<'_>) -> Option<String> {
        let path = format!("{}/{}", self.path("v1", "pods"), placed.expected.pod.name);
        let pod = self.api.get(&path).ok()?;
        let all = pod.pointer("/status/ephemeralContainerStatuses").and_then(Value::as_array)?;
        let state = all.iter().find(|it| text(it, "/name") == Some(&placed.name))?.get("state")?;
        if let Some(waiting) = state.get("waiting") {
            let reason = text(waiting, "/reason").unwrap_or_default();
            let said = format!("{reason}: {}", text(waiting, "/message").unwrap_or_default());
            let no_image = NO_IMAGE.contains(&reason).then(|| {
                format!("its image is not on the node and was not pulled ({said}). Correct `on.kubernetes.probe_image`, or load it into the node first")
            });
            return no_image.or_else(|| NO_CONTAINER.contains(&reason).then_some(said));
        }
        let exit = Exit::of(state.get("terminated")?);
        let log = self.api.text(&format!("{path}/log?container={}", placed.name)).unwrap_or_default();
        let last = log.lines().last().unwrap_or("it wrote nothing");
        Some(format!(
            "it has ended ({}): {last}. Is `on.kubernetes.probe_image` this version of unladen?",
            exit.ended()
        ))
    }
}

fn no_probe(expected: &Expected<'_>, said: String) -> KubernetesError {
    let wanted = expected.wanted;
    KubernetesError::NoProbe { service: wanted.service.clone(), workload: wanted.workload(), said }
}

/// A container that watches another one: as its user, with its capabilities, else it may not see its control group and memory.
fn ephemeral(order: &ProbeOrder, pod: &Pod, container: &Container, name: &str, port: u16) -> Value {
    let specs = pod.value.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
    let beside = pod.value.pointer("/spec/initContainers").and_then(Value::as_array).into_iter().flatten();
    let spec = specs.chain(beside).find(|it| text(it, "/name") == Some(&container.name));
    let of_target = spec.and_then(|spec| spec.get("securityContext")).and_then(Value::as_object);
    let given = of_target.into_iter().flatten().filter(|(key, _)| RIGHTS.contains(&key.as_str()));
    let mut rights: Map<String, Value> = given.map(|(key, value)| (key.clone(), value.clone())).collect();
    let of_pod = |key: &str| pod.value.pointer(&format!("/spec/securityContext/{key}"));
    let is_given = |key: &str| rights.get(key).or_else(|| of_pod(key)).cloned();
    if is_given("runAsUser").is_none() {
        // Else the image of the target says who it is, and the cluster may tell. The image of the probe says root, which may be forbidden.
        let nobody = (is_given("runAsNonRoot") == Some(json!(true))).then(|| json!(NOBODY));
        rights.extend(user_of(pod, container).or(nobody).map(|user| ("runAsUser".to_owned(), user)));
    }
    rights.insert("readOnlyRootFilesystem".to_owned(), json!(true));
    let args: Vec<String> = order.args.iter().cloned().chain([port.to_string()]).collect();
    json!({
        "name": name,
        "image": order.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [PROGRAM],
        "args": args,
        "env": [{"name": SECRET, "value": order.secret}],
        "targetContainerName": container.name,
        "securityContext": rights,
    })
}

/// The user that a container runs as, where its node tells (Kubernetes 1.33 with containerd 2).
fn user_of(pod: &Pod, container: &Container) -> Option<Value> {
    let all = pod.value.pointer("/status/containerStatuses")?.as_array()?;
    let status = all.iter().find(|it| text(it, "/name") == Some(&container.name))?;
    status.pointer("/user/linux/uid").cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_has_the_user_and_the_rights_of_what_it_watches_and_no_more() {
        let order = ProbeOrder {
            image: "unladen:1".to_owned(),
            args: vec!["__probe".to_owned()],
            port: 7000,
            secret: "s".to_owned(),
        };
        let pod = |container: Value, status: Value| {
            Pod::of(&json!({
                "metadata": {"name": "shop-1"},
                "spec": {"containers": [{"name": "app"}, container]},
                "status": {"containerStatuses": [status]},
            }))
        };
        let of = |pod: &Pod, name: &str| ephemeral(&order, pod, pod.container(name).expect("it"), "p", 7001);
        let strict = json!({"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}, "procMount": "Default"});
        let both = pod(
            json!({"name": "web", "securityContext": strict}),
            json!({"name": "app", "user": {"linux": {"uid": 65532}}}),
        );
        let web = of(&both, "web");
        let expected = json!({"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true});
        assert_eq!((&web["securityContext"], &web["targetContainerName"]), (&expected, &json!("web")));
        assert_eq!(web["args"], json!(["__probe", "7001"]));
        assert_eq!(of(&both, "app")["securityContext"], json!({"runAsUser": 65532, "readOnlyRootFilesystem": true}));
        let nobody = pod(json!({"name": "web", "securityContext": {"runAsNonRoot": true}}), json!({"name": "app"}));
        let user = |name: &str| of(&nobody, name)["securityContext"].get("runAsUser").cloned();
        assert_eq!((user("web"), user("app")), (Some(json!(NOBODY)), None));
    }
}
