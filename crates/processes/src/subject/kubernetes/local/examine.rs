//! What a cluster is good for: its nodes, its clock, what a study's manifests find there, and whether the user may do what the study needs.
//! Asks, and changes nothing.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use indexmap::IndexMap;
use jiff::fmt::rfc2822;
use serde_json::{Value, json};

use super::Stack;
use super::api::{Api, Failure, items, name, nodes, text};
use super::config::Cluster;
use super::deploy::{choose, is_of_boot, places};
use super::error::KubernetesError;
use super::examined::{Autoscalers, Examined, Node};
use super::fit::fit;
use super::import::AUTOSCALERS;
use super::manifests::{self, Object, scales};
use super::owner::boot_id;
use super::rights::{Right, needed};

/// A namespace that a study could make.
const OWN_NAMESPACE: &str = "unladen-doctor";
/// Where the kubelet keeps what its CPU manager does.
const CPU_MANAGER: &str = "/var/lib/kubelet/cpu_manager_state";
/// The second of a clock ends within this time.
const SECOND: Duration = Duration::from_millis(1500);
/// Between two questions for the time.
const PAUSE: Duration = Duration::from_millis(20);

/// Examines the cluster of a context (`None`: the current one), and what a study's variants would find there.
///
/// # Errors
/// There is no such context, or its API server does not answer.
pub fn examine(context: Option<&str>, stacks: &[Stack]) -> Result<Examined, KubernetesError> {
    let api = Api::open(Cluster::find(context)?)?;
    let version = api.get("/version").map_err(|failure| failure.when(&api, "tell its version"))?;
    let boot = boot_id();
    let nodes = nodes(&api);
    let load = stacks.iter().find_map(|stack| stack.load.as_ref());
    let load = load.map(|labels| senders(nodes.as_deref().unwrap_or_default(), labels, &boot));
    let nodes = nodes.map(|all| all.iter().map(|node| node_of(node, &boot)).collect::<Vec<_>>());
    let nodes = nodes.map_err(|failure| failure.words().to_owned());
    let (objects, manifests) = read(&api, stacks);
    let named: Vec<(&str, &str)> = stacks
        .iter()
        .flat_map(|stack| stack.services.values())
        .map(|changes| (changes.workload.kind.name(), changes.workload.name.as_str()))
        .collect();
    Ok(Examined {
        context: api.cluster().context().to_owned(),
        server: api.server().to_owned(),
        version: text(&version, "/gitVersion").unwrap_or("unknown").to_owned(),
        cpu_manager: nodes.as_ref().ok().and_then(|nodes| cpu_manager(&api, nodes)),
        nodes,
        clock_s: clock(&api),
        manifests: (!stacks.is_empty()).then_some(manifests),
        autoscalers: Autoscalers {
            of_manifests: objects
                .iter()
                .filter(|object| object.scales().is_some_and(|it| named.contains(&it)))
                .map(Object::words)
                .collect(),
            live: live_autoscalers(&api, &named),
        },
        rights: rights(&api, &objects, (load.is_some(), stacks.iter().any(|stack| stack.probe.is_some())))
            .map_err(|failure| failure.words().to_owned()),
        load,
        user: user(&api),
    })
}

fn node_of(node: &Value, boot: &str) -> Node {
    Node {
        name: name(node).to_owned(),
        instance: text(node, "/metadata/labels/node.kubernetes.io~1instance-type").map(str::to_owned),
        kubelet: text(node, "/status/nodeInfo/kubeletVersion").unwrap_or_default().to_owned(),
        is_here: is_of_boot(node, boot),
    }
}

/// Nodes that have these labels, take pods and are other machines.
fn senders(nodes: &[Value], labels: &IndexMap<String, String>, boot: &str) -> Vec<String> {
    let has = |node: &Value, (label, value): (&String, &String)| {
        let found = node.pointer("/metadata/labels").and_then(|all| all.get(label)).and_then(Value::as_str);
        found == Some(value)
    };
    let takes = |node: &Value| node.pointer("/spec/unschedulable") != Some(&Value::Bool(true));
    // Of nodes that are containers of one machine, the services are on the first.
    let here = choose(nodes, None, boot).ok();
    let others = nodes.iter().enumerate().filter(|(at, _)| Some(*at) != here).map(|(_, node)| node);
    others
        .filter(|node| takes(node) && labels.iter().all(|it| has(node, it)))
        .map(|node| name(node).to_owned())
        .collect()
}

/// The objects of all variants, each once, and what they are or what is wrong with them.
fn read(api: &Api, stacks: &[Stack]) -> (Vec<Object>, Result<Vec<String>, String>) {
    let (mut all, mut wrong): (Vec<Object>, Option<String>) = (Vec::new(), None);
    for stack in stacks {
        let mut objects = match manifests::read(stack) {
            Ok(objects) => objects,
            Err(error) => {
                wrong.get_or_insert(error.to_string());
                continue;
            }
        };
        let placed = places(api, &objects).map(drop);
        let is_same = |one: &Object, other: &Object| {
            (&one.api_version, &one.kind, &one.name) == (&other.api_version, &other.kind, &other.name)
        };
        let new: Vec<Object> =
            objects.iter().filter(|object| !all.iter().any(|it| is_same(it, object))).cloned().collect();
        all.extend(new);
        let fitted = match fit(&mut objects, stack, None) {
            // Told of by itself.
            Ok(_) | Err(KubernetesError::Autoscaled { .. }) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = placed.and(fitted) {
            wrong.get_or_insert(error.to_string());
        }
    }
    let words = all.iter().map(Object::words).collect();
    (all, wrong.map_or(Ok(words), Err))
}

/// By the kubelet's own answer, for which few accounts have the right; else by its file on this machine.
fn cpu_manager(api: &Api, nodes: &[Node]) -> Option<String> {
    let node = nodes.iter().find(|node| node.is_here).or(nodes.first())?;
    let policy = |value: &Value, at: &str| text(value, at).map(str::to_owned);
    let asked = api.get(&format!("/api/v1/nodes/{}/proxy/configz", node.name)).ok();
    let asked = asked.and_then(|answer| policy(&answer, "/kubeletconfig/cpuManagerPolicy"));
    asked.or_else(|| {
        let state = std::fs::read_to_string(CPU_MANAGER).ok().filter(|_| node.is_here)?;
        policy(&serde_json::from_str(&state).ok()?, "/policyName")
    })
}

/// The server's clock less this one, and how well that is known, seconds. Answers have whole seconds: it is asked until the next one begins.
fn clock(api: &Api) -> Option<(f64, f64)> {
    let begun = Instant::now();
    let (mut last, mut asked) = (api.date().ok()??, SystemTime::now());
    while begun.elapsed() < SECOND {
        thread::sleep(PAUSE);
        let date = api.date().ok()??;
        let now = SystemTime::now();
        if date != last {
            let second = rfc2822::DateTimeParser::new().parse_timestamp(&date).ok()?.as_second() as f64;
            // It began between the two answers.
            let since =
                |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
            let (early, late) = (since(asked), since(now));
            return Some((second - f64::midpoint(early, late), (late - early) / 2.0));
        }
        (last, asked) = (date, now);
    }
    None
}

/// What scales live workloads of these kinds and names; `None`: it may not be listed.
fn live_autoscalers(api: &Api, named: &[(&str, &str)]) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for (api_version, plural, kind) in AUTOSCALERS {
        if matches!(api.resource(api_version, kind), Ok(None)) {
            continue;
        }
        let list = api.get(&format!("/apis/{api_version}/{plural}")).ok()?;
        for object in items(&list) {
            let Some((target, workload)) = scales(kind, object).filter(|it| named.contains(it)) else { continue };
            let namespace = text(object, "/metadata/namespace").unwrap_or_default();
            all.push(format!("{kind} {} scales {target} {workload} in `{namespace}`", name(object)));
        }
    }
    Some(all)
}

/// What the study needs, and whether the user may do it in a namespace that unladen makes.
fn rights(api: &Api, objects: &[Object], (has_load, has_probes): (bool, bool)) -> Result<Vec<(Right, bool)>, Failure> {
    let mut kinds = BTreeSet::new();
    if has_load {
        kinds.insert(("batch".to_owned(), "jobs".to_owned()));
    }
    if has_probes {
        kinds.insert((String::new(), "pods/ephemeralcontainers".to_owned()));
    }
    for object in objects {
        let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
        // What the cluster does not know has been told of.
        if let Some(resource) =
            api.resource(&object.api_version, &object.kind)?.filter(|resource| resource.is_namespaced)
        {
            kinds.insert((group.to_owned(), resource.plural));
        }
    }
    let needed = needed(kinds.iter().map(|(group, plural)| (group.as_str(), plural.as_str())));
    needed.into_iter().map(|right| may(api, &right).map(|may| (right, may))).collect()
}

fn may(api: &Api, right: &Right) -> Result<bool, Failure> {
    let (resource, part) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
    let namespace = if ["nodes", "namespaces"].contains(&resource) { "" } else { OWN_NAMESPACE };
    let asked = json!({"group": right.group, "resource": resource, "subresource": part, "verb": right.verb, "namespace": namespace});
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked},
    });
    let answer = api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review)?;
    Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
}

/// Who asks, to the server; it tells since Kubernetes 1.28.
fn user(api: &Api) -> Option<String> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).ok()?;
    text(&answer, "/status/userInfo/username").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_comes_from_other_nodes_that_take_pods_and_have_the_labels() {
        let node = |name: &str, boot: &str, pool: &str, is_cordoned: bool| {
            json!({"metadata": {"name": name, "labels": {"pool": pool}}, "spec": {"unschedulable": is_cordoned},
                   "status": {"nodeInfo": {"bootID": boot}}})
        };
        let nodes = [
            node("a", "1", "load", false),
            node("b", "2", "load", false),
            node("c", "3", "x", false),
            node("d", "4", "load", true),
        ];
        assert_eq!(senders(&nodes, &IndexMap::new(), "1"), ["b", "c"]);
        assert_eq!(senders(&nodes, &[("pool".to_owned(), "load".to_owned())].into(), "1"), ["b"]);
        assert_eq!(senders(&nodes[..1], &IndexMap::new(), "1"), Vec::<String>::new());
        let twins = [node("a", "1", "x", false), node("b", "1", "x", false)];
        assert_eq!(senders(&twins, &IndexMap::new(), "1"), ["b"]);
    }
}
