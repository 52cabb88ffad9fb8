//! Pods on other nodes that send the load: an Indexed Job. They have no rights in the cluster, and dial in where this process meets them.

use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::api::{Api, name, text};
use super::deploy::{Deployed, find_node, look_for_interruption};
use super::error::KubernetesError;
use super::fit::Wanted;
use super::pods::{Pod, Trouble};
use super::wait::expected;
use super::{LOAD_VARIABLES, LoadOrder, PROGRAM, restricted};
use crate::subject::error::SubjectError;
use crate::subject::launcher::Launcher;

/// Name of the Job and of its container, and in that of the namespace.
const LOAD: &str = "load";
/// Label of its pods.
const LABEL: &str = "unladen.load";
/// All pods run within this time; their image may have to be pulled first.
const PATIENCE: Duration = Duration::from_secs(180);
/// What finds no node by then finds none.
const SCHEDULING: Duration = Duration::from_secs(10);
/// Between two looks at the pods.
const LOOK: Duration = Duration::from_millis(100);

/// Pods that send a load. Dropping it deletes their namespace.
#[derive(Debug)]
pub struct LoadPods {
    meeting: SocketAddr,
    subject: String,
    _deployed: Deployed,
}

impl LoadPods {
    /// Where they are met.
    #[must_use]
    pub fn meeting(&self) -> SocketAddr {
        self.meeting
    }

    /// Name of the node that the services are on.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }
}

impl Launcher {
    /// Starts pods that send a load, on other nodes than this machine, and waits until all run.
    ///
    /// # Errors
    /// There is no such node, no such image, or the cluster refuses. Nothing is left then.
    pub fn load_from(&self, order: &LoadOrder, interrupted: &AtomicBool) -> Result<LoadPods, SubjectError> {
        let shared = self.shared();
        let (number, api) = shared.clusters.api(order.context.as_deref(), &shared.guard)?;
        let (nodes, at) = find_node(&api)?;
        let subject = name(&nodes[at]).to_owned();
        if nodes.len() == 1 {
            let said = "the cluster has no other".to_owned();
            return Err(KubernetesError::NoLoadNode { subject, said }.into());
        }
        let address = own_address(&nodes[at], &api).ok_or_else(|| KubernetesError::NoLoad {
            said: "this machine has no address at which pods could meet".to_owned(),
        })?;
        let meeting = SocketAddr::new(address, order.port);
        let deployed = Deployed::empty(shared, (number, &api), LOAD)?;
        let made = api.post(&deployed.path("batch/v1", "jobs"), &job(order, &subject, meeting));
        made.map_err(|failure| failure.when(&api, "create the Job of the load"))?;
        deployed.wait_for_load(order.parts, &subject, interrupted)?;
        Ok(LoadPods { meeting, subject, _deployed: deployed })
    }
}

impl Launcher {
    /// The address of this machine that the pods of a cluster reach.
    ///
    /// # Errors
    /// There is none, or the cluster cannot be asked.
    pub fn address_for_pods(&self, context: Option<&str>) -> Result<IpAddr, SubjectError> {
        let shared = self.shared();
        let (_, api) = shared.clusters.api(context, &shared.guard)?;
        let (nodes, at) = find_node(&api)?;
        let address = own_address(&nodes[at], &api);
        Ok(address.ok_or_else(|| KubernetesError::NoAddress { server: api.server().to_owned() })?)
    }
}

impl Deployed {
    fn wait_for_load(&self, parts: u32, subject: &str, interrupted: &AtomicBool) -> Result<(), SubjectError> {
        let begun = Instant::now();
        let wanted = [wanted(parts)];
        loop {
            look_for_interruption(interrupted)?;
            let waiting = match self.pods() {
                Ok(pods) => {
                    if let Some(error) = wrong(&pods, subject, begun.elapsed() >= SCHEDULING) {
                        return Err(error.into());
                    }
                    match expected(&wanted, &pods, &[].into()) {
                        Ok(_) => return Ok(()),
                        Err(waiting) => waiting,
                    }
                }
                Err(failure) => failure.when(&self.api, "list the pods").to_string(),
            };
            if begun.elapsed() >= PATIENCE {
                let warnings: Vec<String> = self.warnings().into_iter().map(|event| event.message).take(1).collect();
                let said = format!("after {} s: {waiting}. {}", PATIENCE.as_secs(), warnings.join("; "));
                return Err(KubernetesError::NoLoad { said }.into());
            }
            thread::sleep(LOOK);
        }
    }
}

fn wanted(parts: u32) -> Wanted {
    Wanted {
        service: LOAD.to_owned(),
        is_named: false,
        kind: "Job".to_owned(),
        name: LOAD.to_owned(),
        container: LOAD.to_owned(),
        replicas: Some(parts),
        patch: None,
    }
}

/// Why the pods will not run, if that is so.
fn wrong(pods: &[Pod], subject: &str, is_scheduled: bool) -> Option<KubernetesError> {
    if let Some(said) = pods.iter().find_map(|pod| pod.unscheduled.clone()).filter(|_| is_scheduled) {
        return Some(KubernetesError::NoLoadNode { subject: subject.to_owned(), said });
    }
    let said = match pods.iter().find_map(Pod::trouble)? {
        Trouble::Image { image, said } => format!(
            "the image `{image}` is not on their node and was not pulled: {said}. Correct `on.kubernetes.load.image`, or load it into the node first"
        ),
        Trouble::Start { said, .. } => format!("{said}. Is `on.kubernetes.load.image` one of unladen?"),
        Trouble::Failed { said } => format!("their node has ended one: {said}"),
        Trouble::Ended { exit, .. } => {
            format!("one has ended ({}). Is `on.kubernetes.load.image` this version of unladen?", exit.ended())
        }
    };
    Some(KubernetesError::NoLoad { said })
}

/// The address of this machine that pods reach: the node's; if that is not this process's to listen at, because it is in a pod or beside
/// the node, the one by which it reaches the API server.
fn own_address(node: &Value, api: &Api) -> Option<IpAddr> {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array).into_iter().flatten();
    let of_node = addresses
        .filter(|address| text(address, "/type") == Some("InternalIP"))
        .filter_map(|address| text(address, "/address")?.parse::<IpAddr>().ok())
        .find(|address| TcpListener::bind((*address, 0)).is_ok());
    of_node.or_else(|| {
        let server: http::Uri = api.server().parse().ok()?;
        let host = server.host()?.trim_matches(['[', ']']);
        let server = (host, server.port_u16().unwrap_or(443)).to_socket_addrs().ok()?.next()?;
        let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        // Nothing is sent: only the route is looked up.
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(server).ok()?;
        Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback())
    })
}

fn job(order: &LoadOrder, subject: &str, meeting: SocketAddr) -> Value {
    let [meets, secret, node] = LOAD_VARIABLES;
    let elsewhere = json!([{"key": "metadata.name", "operator": "NotIn", "values": [subject]}]);
    let apart = json!({
        "weight": 100,
        "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {LABEL: LOAD}}},
    });
    let pod = json!({
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": order.nodes,
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": elsewhere}]},
            },
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]},
        },
        "securityContext": restricted::pod(),
        "containers": [{
            "name": LOAD,
            "image": order.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [PROGRAM],
            "args": order.args,
            "env": [
                {"name": meets, "value": meeting.to_string()},
                {"name": secret, "value": order.secret},
                {"name": node, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            ],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            "securityContext": restricted::container(),
        }],
    });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": LOAD},
        "spec": {
            "completions": order.parts,
            "parallelism": order.parts,
            "completionMode": "Indexed",
            "template": {"metadata": {"labels": {LABEL: LOAD}}, "spec": pod},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_the_load_keep_off_the_node_of_the_services_and_have_no_rights() {
        let order = LoadOrder {
            context: None,
            parts: 4,
            image: "unladen:1".to_owned(),
            nodes: [("pool".to_owned(), "load".to_owned())].into(),
            args: vec!["__load-part".to_owned()],
            port: 7000,
            secret: "s".to_owned(),
        };
        let job = job(&order, "node-1", "198.18.0.1:7000".parse().expect("an address"));
        let at = |pointer: &str| job.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!((at("/spec/completions"), at("/spec/completionMode")), (json!(4), json!("Indexed")));
        let pod = "/spec/template/spec";
        let terms = "requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0";
        let expected = json!({"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]});
        assert_eq!(at(&format!("{pod}/affinity/nodeAffinity/{terms}")), expected);
        assert_eq!(at(&format!("{pod}/automountServiceAccountToken")), json!(false));
        assert_eq!(at(&format!("{pod}/nodeSelector")), json!({"pool": "load"}));
        assert_eq!(at(&format!("{pod}/containers/0/env/0/value")), json!("198.18.0.1:7000"));
    }

    #[test]
    fn what_keeps_the_load_from_running_is_told() {
        let pod = |status: Value| {
            Pod::of(&json!({"metadata": {"name": "load-0"}, "spec": {"containers": [{"name": LOAD, "image": "u:1"}]},
                            "status": status}))
        };
        let said = |status: Value, is_scheduled| wrong(&[pod(status)], "a", is_scheduled).map(|it| it.to_string());
        let unscheduled = json!({"conditions": [
            {"type": "PodScheduled", "reason": "Unschedulable", "message": "0/2 nodes are available."}]});
        assert_eq!(said(unscheduled.clone(), false), None, "not yet");
        let message = said(unscheduled, true).expect("an error");
        assert!(message.contains("not a, where the services are: 0/2 nodes are available"), "{message}");
        let waiting =
            |reason: &str| json!({"containerStatuses": [{"name": LOAD, "state": {"waiting": {"reason": reason}}}]});
        assert_eq!(said(waiting("ContainerCreating"), true), None);
        let message = said(waiting("ImagePullBackOff"), true).expect("an error");
        assert!(message.contains("the image `u:1` is not on their node"), "{message}");
        let ended = json!({"containerStatuses": [{"name": LOAD, "state": {"terminated": {"exitCode": 2}}}]});
        let message = said(ended, true).expect("an error");
        assert!(message.contains("this version of unladen"), "{message}");
    }
}
