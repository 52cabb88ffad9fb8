//! A cluster, and what a study finds there: asked, then judged. Nothing is changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use unladen_measure::kubernetes::{self, changes};
use unladen_processes::subject::kubernetes::{Examined, Node, Right, Stack, examine, role};
use unladen_study::plan::{Plan, PlannedVariant, Process};
use unladen_study::spec::Study;
use unladen_study::stack;

use super::super::print;
use super::checks::{Check, check};
use super::rows;
use crate::cli::Doctor;

/// Difference of clocks above which times of the cluster are not those of this machine, seconds.
const CLOCK_LIMIT_S: f64 = 1.0;
/// What the role is called without a study.
const NO_STUDY: &str = "base";

/// `unladen doctor STUDY`, `unladen doctor --context NAME`
///
/// # Errors
/// When the study cannot be read or is of no cluster, or the cluster does not answer.
pub(super) fn doctor(options: &Doctor) -> anyhow::Result<ExitCode> {
    let plan = options.study.as_deref().map(read).transpose()?;
    let (mut context, mut stacks) = (None, Vec::new());
    if let Some(plan) = &plan {
        let of_study = plan.study.on.kubernetes.as_ref();
        context = of_study.with_context(|| no_cluster(options.study.as_deref()))?.context.clone();
        stacks = plan.variants.iter().filter_map(|variant| stack_of(variant, &plan.dir)).collect();
    }
    let context = options.context.clone().or(context);
    let examined = examine(context.as_deref(), &stacks)?;
    let missing: Vec<Right> = missing(&examined).cloned().collect();
    let name = plan.as_ref().map_or(NO_STUDY, |plan| &plan.study.study);
    let role = role(name, &missing, examined.user.as_deref());
    if options.role {
        if let Err(said) = &examined.rights {
            anyhow::bail!("the API server does not tell which rights are missing: {said}");
        }
        if missing.is_empty() {
            anstream::eprintln!("no right is missing: there is nothing to apply");
            return Ok(ExitCode::SUCCESS);
        }
        return print(&role);
    }
    let checks = checks(&examined, &call(options));
    if options.json {
        return print(&serde_json::to_string_pretty(&checks)?);
    }
    let (mut text, care) = rows(&checks)?;
    text += match care {
        0 => "\nThis cluster can measure.",
        _ => "\nFirst do what the arrows say.",
    };
    text += " `unladen doctor` alone checks this machine.";
    if !missing.is_empty() {
        text += &format!("\n\nThe rights that are missing:\n\n{role}");
    }
    print(&text)
}

fn read(path: &Path) -> anyhow::Result<Plan> {
    let (plan, _) = Study::read(path, &[])?.of_those_that_take_part()?;
    Ok(plan)
}

fn no_cluster(path: Option<&Path>) -> String {
    let path = path.unwrap_or(Path::new("the study")).display();
    format!("{path} has no `on.kubernetes`, so it measures on this machine alone: `unladen doctor` checks it")
}

/// How the missing rights are printed alone.
fn call(options: &Doctor) -> String {
    let context = options.context.iter().map(|context| format!(" --context {context}"));
    let study = options.study.iter().map(|study| format!(" {}", study.display()));
    format!("unladen doctor{} --role", context.chain(study).collect::<String>())
}

/// What a variant brings to the cluster.
fn stack_of(variant: &PlannedVariant, dir: &Path) -> Option<Stack> {
    let Some(stack::Stack::Kubernetes(cluster)) = &variant.stack else { return None };
    let changed = |process: &Process| Some((process.service.clone(), changes(process)?));
    let services = variant.processes.iter().filter_map(changed).collect();
    Some(Stack { services, ..kubernetes::stack(cluster, dir, &variant.name) })
}

fn missing(examined: &Examined) -> impl Iterator<Item = &Right> {
    examined.rights.iter().flatten().filter(|(_, may)| !may).map(|(right, _)| right)
}

fn checks(it: &Examined, call: &str) -> Vec<Check> {
    let mut all = vec![cluster(it), nodes(it), machine(it), cpu_manager(it), clock(it)];
    all.extend(manifests(it));
    all.extend(load(it));
    all.extend([autoscalers(it), rights(it, call)]);
    all
}

fn cluster(it: &Examined) -> Check {
    check("cluster", format!("Kubernetes {} at {}, context {}", it.version, it.server, it.context), true, "")
}

/// As many as there are of each kind.
fn nodes(it: &Examined) -> Check {
    let nodes = match &it.nodes {
        Ok(nodes) => nodes,
        Err(said) => {
            return check("nodes", format!("may not be listed: {said}"), false, "Get the right to list nodes (below).");
        }
    };
    let mut kinds: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for Node { name, instance, kubelet, .. } in nodes {
        kinds.entry((instance.as_deref().unwrap_or("no instance type"), kubelet)).or_default().push(name);
    }
    let words = kinds.iter().map(|((instance, kubelet), names)| match names.as_slice() {
        [name] => format!("{name} ({instance}, kubelet {kubelet})"),
        names => format!("{} of {instance}, kubelet {kubelet}", names.len()),
    });
    let found = words.collect::<Vec<_>>().join("; ");
    check("nodes", if found.is_empty() { "none".to_owned() } else { found }, true, "")
}

fn machine(it: &Examined) -> Check {
    let nodes = it.nodes.as_deref().unwrap_or_default();
    let remedy = "The CPU time of pods is read on their node, and the load enters their networks there. Let the study run there by itself (`unladen run STUDY --in-cluster`), or run unladen on a node, as root.";
    match nodes.iter().find(|node| node.is_here) {
        Some(node) => {
            check("this machine", format!("is the node {}: all pods of a study go there", node.name), true, "")
        }
        None if it.nodes.is_err() => {
            check("this machine", "is a node or not: the nodes may not be listed", false, remedy)
        }
        None => {
            check("this machine", "is no node of this cluster: its pods cannot be measured from here", false, remedy)
        }
    }
}

fn cpu_manager(it: &Examined) -> Check {
    let found = match it.cpu_manager.as_deref() {
        Some("static") => {
            "static: a Guaranteed pod with whole CPUs gets cores of its own, whatever the study says".to_owned()
        }
        Some(policy) => format!("{policy}: pods are on the cores that the study gives them"),
        None => {
            "unknown: to read it takes the right `get nodes/proxy`, or the kubelet's file on this machine".to_owned()
        }
    };
    check("CPU manager", found, true, "")
}

fn clock(it: &Examined) -> Check {
    let Some((ahead, within)) = it.clock_s else {
        return check("clock", "the API server does not tell its time", true, "");
    };
    let side = if ahead < 0.0 { "behind" } else { "ahead of" };
    let found = match ahead.abs() <= within {
        true => format!("that of the API server is this machine's, within {:.0} ms", within * 1e3),
        false => format!(
            "that of the API server is {:.2} s {side} this machine's, within {:.0} ms",
            ahead.abs(),
            within * 1e3
        ),
    };
    let remedy = "Events and logs of the cluster have other times than the study, and tokens may count as expired. Let NTP set both clocks (`chronyc tracking`).";
    check("clock", found, ahead.abs() <= CLOCK_LIMIT_S, remedy)
}

fn manifests(it: &Examined) -> Option<Check> {
    let remedy = "Correct the study or its manifests: `unladen run` would stop there.";
    Some(match it.manifests.as_ref()? {
        Ok(objects) => check("manifests", objects.join(", "), true, ""),
        Err(error) => check("manifests", error.clone(), false, remedy),
    })
}

/// Who sends the load, if it is not this machine.
fn load(it: &Examined) -> Option<Check> {
    let nodes = it.load.as_ref()?;
    let remedy = "Correct `on.kubernetes.load.nodes`, add a node, or remove `on.kubernetes.load`: this machine sends the load then.";
    Some(match nodes.is_empty() {
        true => check("load", "no node that is not this machine may send it", false, remedy),
        false => check("load", format!("sent from {}", nodes.join(", ")), true, ""),
    })
}

fn autoscalers(it: &Examined) -> Check {
    let scalers = &it.autoscalers;
    let live = match &scalers.live {
        _ if it.manifests.is_none() => String::new(),
        None => "; those of live workloads may not be listed".to_owned(),
        Some(live) if live.is_empty() => "; none on live workloads of these names".to_owned(),
        Some(live) => format!("; in the cluster {}: the study has as many pods as its manifests say", live.join(", ")),
    };
    let remedy = "They would change pods while these are measured. Take them out of the manifests, and set `replicas` or `limits` in the study.";
    match scalers.of_manifests.as_slice() {
        [] => check("autoscalers", format!("none in the manifests{live}"), true, ""),
        some => check("autoscalers", format!("{} in the manifests{live}", some.join(", ")), false, remedy),
    }
}

fn rights(it: &Examined, call: &str) -> Check {
    let all = match &it.rights {
        Ok(all) => all,
        Err(said) => {
            let remedy = "Ask an administrator whether this account has those of deploy/kubernetes/role.yaml.";
            return check("rights", format!("the API server does not tell them: {said}"), false, remedy);
        }
    };
    let who = it.user.as_deref().unwrap_or("the user of the kubeconfig");
    let mut verbs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for right in missing(it) {
        verbs.entry(right.kind()).or_default().push(&right.verb);
    }
    if verbs.is_empty() {
        return check("rights", format!("{who} has all {} that are needed", all.len()), true, "");
    }
    let words: Vec<String> = verbs.iter().map(|(kind, verbs)| format!("{} {kind}", verbs.join("/"))).collect();
    let remedy = format!("Have an administrator apply the ClusterRole below: `{call} | kubectl apply -f -`.");
    let found = format!("{who} lacks {} of {}: {}", missing(it).count(), all.len(), words.join(", "));
    check("rights", found, false, &remedy)
}

#[cfg(test)]
mod tests {
    use unladen_processes::subject::kubernetes::Autoscalers;

    use super::*;

    fn right(resource: &str, verb: &str) -> Right {
        Right { group: "apps".to_owned(), resource: resource.to_owned(), verb: verb.to_owned() }
    }

    fn node(name: &str, is_here: bool) -> Node {
        Node { name: name.to_owned(), instance: Some("m5.large".to_owned()), kubelet: "v1.34.4".to_owned(), is_here }
    }

    /// A cluster without a fault.
    fn sound() -> Examined {
        Examined {
            context: "perf".to_owned(),
            server: "https://a/".to_owned(),
            version: "v1.34.4".to_owned(),
            nodes: Ok(vec![node("a", true), node("b", false), node("c", false)]),
            cpu_manager: None,
            clock_s: Some((0.004, 0.012)),
            manifests: Some(Ok(vec!["Deployment shop".to_owned()])),
            autoscalers: Autoscalers { of_manifests: Vec::new(), live: Some(Vec::new()) },
            load: Some(vec!["b".to_owned()]),
            rights: Ok(vec![(right("deployments", "create"), true), (right("deployments", "get"), true)]),
            user: Some("jo".to_owned()),
        }
    }

    fn care(it: &Examined) -> Vec<&'static str> {
        checks(it, "x").iter().filter(|check| check.remedy.is_some()).map(|check| check.what).collect()
    }

    fn found(it: &Examined, what: &str) -> Check {
        checks(it, "unladen doctor shop --role").into_iter().find(|check| check.what == what).expect(what)
    }

    #[test]
    fn a_sound_cluster_needs_no_remedy_and_every_fault_has_its_own() {
        assert_eq!(care(&sound()), Vec::<&str>::new());
        assert_eq!(care(&Examined { manifests: None, clock_s: None, ..sound() }), Vec::<&str>::new());
        let scaled = Autoscalers { of_manifests: vec!["HorizontalPodAutoscaler h".to_owned()], live: None };
        for (what, it) in [
            (vec!["this machine"], Examined { nodes: Ok(vec![node("b", false)]), ..sound() }),
            (vec!["nodes", "this machine"], Examined { nodes: Err("no".to_owned()), ..sound() }),
            (vec!["clock"], Examined { clock_s: Some((-1.2, 0.01)), ..sound() }),
            (vec!["manifests"], Examined { manifests: Some(Err("no".to_owned())), ..sound() }),
            (vec!["autoscalers"], Examined { autoscalers: scaled, ..sound() }),
            (vec!["load"], Examined { load: Some(Vec::new()), ..sound() }),
            (vec!["rights"], Examined { rights: Err("no".to_owned()), ..sound() }),
            (vec!["rights"], Examined { rights: Ok(vec![(right("deployments", "get"), false)]), ..sound() }),
        ] {
            assert_eq!(care(&it), what, "{it:?}");
        }
    }

    #[test]
    fn what_was_found_is_told_in_words() {
        assert_eq!(found(&sound(), "nodes").found, "3 of m5.large, kubelet v1.34.4");
        let one = Node { instance: None, ..node("a", true) };
        let it = Examined { nodes: Ok(vec![one, node("b", false)]), ..sound() };
        assert_eq!(found(&it, "load").found, "sent from b");
        assert_eq!(found(&it, "nodes").found, "b (m5.large, kubelet v1.34.4); a (no instance type, kubelet v1.34.4)");
        assert_eq!(found(&it, "clock").found, "that of the API server is this machine's, within 12 ms");
        let it = Examined { clock_s: Some((-1.25, 0.01)), ..sound() };
        assert_eq!(found(&it, "clock").found, "that of the API server is 1.25 s behind this machine's, within 10 ms");
        let rights = [("deployments", "create"), ("deployments", "get"), ("statefulsets", "get")];
        let it = Examined {
            rights: Ok(rights.map(|(kind, verb)| (right(kind, verb), verb == "create")).to_vec()),
            ..sound()
        };
        let check = found(&it, "rights");
        assert_eq!(check.found, "jo lacks 2 of 3: get deployments.apps, get statefulsets.apps");
        assert!(
            check.remedy.is_some_and(|remedy| remedy.contains("`unladen doctor shop --role | kubectl apply -f -`"))
        );
    }
}
