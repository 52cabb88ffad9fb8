//! Waiting for the pods of a deployment, and what is wrong when they do not come.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use unladen_linux::Netns;
use unladen_linux::process::Identity;
use unladen_probe::remote::Remote;

use super::Stack;
use super::deploy::{Deployed, look_for_interruption};
use super::error::KubernetesError;
use super::fit::Wanted;
use super::found;
use super::pods::{Exit, Pod, Trouble};
use crate::subject::error::SubjectError;
use crate::subject::launch::log_name;
use crate::subject::launcher::Launcher;
use crate::subject::placed::Placed;

/// Between two looks at the pods.
const LOOK: Duration = Duration::from_millis(50);
/// What does not fit on the node may do so when the pods of the round before have gone.
const SCHEDULING: Duration = Duration::from_secs(10);
/// A controller that is refused pods is refused for good by then.
const MAKING: Duration = Duration::from_secs(5);
/// A process that runs is seen by then.
const SEEING: Duration = Duration::from_secs(5);
/// Warnings of the cluster that an error shows.
const WARNINGS: usize = 3;
/// Lines of a log that an error shows.
const TAIL: usize = 20;

/// First processes by UID of the pod and id of the container.
pub(super) type Processes = BTreeMap<(String, String), Identity>;

/// Who watches a container.
#[derive(Debug, Clone)]
pub(super) enum WatchedBy {
    /// This process, by its first process.
    ThisProcess(Identity),
    /// A probe in its pod.
    Probe(Remote),
}

impl WatchedBy {
    /// Its first process, if that is on this machine.
    pub(super) fn root(&self) -> Option<&Identity> {
        match self {
            Self::ThisProcess(root) => Some(root),
            Self::Probe(_) => None,
        }
    }
}

/// Who watches each container, by UID of the pod and id of the container.
pub(super) type Watchers = BTreeMap<(String, String), WatchedBy>;

/// A pod that was waited for.
pub(super) struct Expected<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) pod: Pod,
    /// 0, 1, … within the service.
    pub(super) replica: u32,
}

/// What is told of the networks of pods.
struct Networks<'a> {
    seen: &'a mut dyn FnMut(&Arc<Netns>),
    /// UIDs of pods, and names of networks. A process that is about to become a container may be in the network of the node for a moment.
    known: BTreeSet<(String, PathBuf)>,
}

impl Networks<'_> {
    /// Looks for networks of pods that are new.
    fn look(&mut self, wanted: &[Wanted], pods: &[Pod], processes: &Processes) -> Result<(), KubernetesError> {
        for ((uid, _), root) in processes {
            let Some(pod) = pods.iter().find(|pod| pod.uid == *uid) else { continue };
            let Some(one) = wanted.iter().find(|wanted| pod.belongs_to(wanted)) else { continue };
            let Some(network) = network_of(one, root.pid)? else { continue };
            if let Ok(name) = network.name()
                && self.known.insert((uid.clone(), name))
            {
                (self.seen)(&network);
            }
        }
        Ok(())
    }
}

/// `None` for a process that has ended.
pub(super) fn network_of(wanted: &Wanted, pid: u32) -> Result<Option<Arc<Netns>>, KubernetesError> {
    let (service, workload) = (wanted.service.clone(), wanted.workload());
    let network = Netns::of_process(pid);
    let network = network.map_err(|source| KubernetesError::Network { service, workload, source })?;
    Ok(network.map(Arc::new))
}

impl Deployed {
    /// Waits until all pods run, and makes services of their containers.
    pub(super) fn wait(
        &mut self,
        launcher: &Launcher,
        stack: &Stack,
        wanted: &[Wanted],
        patience: Duration,
        seen: &mut dyn FnMut(&Arc<Netns>),
        interrupted: &AtomicBool,
    ) -> Result<Vec<Placed>, SubjectError> {
        let begun = Instant::now();
        let mut networks = Networks { seen, known: BTreeSet::new() };
        // Since when all pods run.
        let mut running: Option<Instant> = None;
        let mut last = "the API server has not answered".to_owned();
        loop {
            look_for_interruption(interrupted)?;
            // An API server that is away for a while may come back.
            match self.pods() {
                Ok(pods) => {
                    let is_unseen = pods.is_empty() || stack.probe.is_some();
                    let processes = if is_unseen { Processes::new() } else { found::first_processes() };
                    networks.look(wanted, &pods, &processes)?;
                    self.look_for_trouble(stack, wanted, &pods, begun)?;
                    let counts = self.counts(wanted);
                    match expected(wanted, &pods, &counts) {
                        Ok(all) => {
                            if let Some(order) = &stack.probe {
                                let watchers = self.put_probes(order, &all, interrupted)?;
                                return self.adopt(launcher, stack, &all, &watchers);
                            }
                            let since = *running.get_or_insert_with(Instant::now);
                            if all.iter().all(|one| has_processes(one, &processes)) {
                                let watchers =
                                    processes.into_iter().map(|(key, root)| (key, WatchedBy::ThisProcess(root)));
                                return self.adopt(launcher, stack, &all, &watchers.collect());
                            }
                            if since.elapsed() >= SEEING {
                                return Err(unseen(&all, &processes).into());
                            }
                        }
                        Err(waiting) => {
                            running = None;
                            last = waiting;
                        }
                    }
                }
                Err(failure) if failure.is_absence() => {
                    last = format!("somebody has deleted the namespace {}", self.namespace);
                }
                Err(failure) => last = failure.when(&self.api, "list the pods").to_string(),
            }
            if begun.elapsed() >= patience {
                return Err(self.late(patience, last).into());
            }
            thread::sleep(LOOK);
        }
    }

    /// How many pods a DaemonSet is to have, once its controller knows.
    fn counts(&self, wanted: &[Wanted]) -> BTreeMap<String, u32> {
        let of_sets = wanted.iter().filter(|wanted| wanted.replicas.is_none());
        let count = |wanted: &Wanted| {
            let set = self.api.get(&self.workload(wanted)).ok()?;
            let number = |pointer: &str| set.pointer(pointer).and_then(Value::as_u64);
            let is_seen = number("/status/observedGeneration") >= number("/metadata/generation");
            let count = number("/status/desiredNumberScheduled").filter(|_| is_seen)?;
            // One that is for other nodes is nobody's concern, unless the study names it.
            let count = Some(count).filter(|count| *count > 0 || !wanted.is_named)?;
            Some((wanted.service.clone(), u32::try_from(count).ok()?))
        };
        of_sets.filter_map(count).collect()
    }

    fn look_for_trouble(
        &self,
        stack: &Stack,
        wanted: &[Wanted],
        pods: &[Pod],
        begun: Instant,
    ) -> Result<(), SubjectError> {
        for one in wanted {
            let (service, workload) = (one.service.clone(), one.workload());
            let of_it: Vec<&Pod> = pods.iter().filter(|pod| pod.belongs_to(one) && !pod.is_going).collect();
            for (replica, pod) in (0..).zip(&of_it) {
                if let Some(said) = pod.unscheduled.clone().filter(|_| begun.elapsed() >= SCHEDULING) {
                    return Err(KubernetesError::Unschedulable { service, workload, said }.into());
                }
                if let Some(trouble) = pod.trouble() {
                    return Err(self.error_of(trouble, one, (pod, replica), stack).into());
                }
            }
            if of_it.is_empty()
                && one.replicas != Some(0)
                && begun.elapsed() >= MAKING
                && let Some(said) = self.refusal_of(one)
            {
                return Err(KubernetesError::NoPods { service, workload, said }.into());
            }
        }
        Ok(())
    }

    /// Why the controller of a workload may make no pods. That of a Deployment has a longer name.
    fn refusal_of(&self, wanted: &Wanted) -> Option<String> {
        let mut latest = self.warnings().into_iter();
        let found = latest.find(|event| event.reason == "FailedCreate" && event.about.starts_with(&wanted.name));
        found.map(|event| event.message)
    }

    fn error_of(&self, trouble: Trouble, wanted: &Wanted, pod: (&Pod, u32), stack: &Stack) -> KubernetesError {
        let (service, workload) = (wanted.service.clone(), wanted.workload());
        match trouble {
            Trouble::Image { image, said } => KubernetesError::NoImage { service, workload, image, said },
            Trouble::Start { container, said } => KubernetesError::NotStarted { service, workload, container, said },
            Trouble::Failed { said } => KubernetesError::Failed { service, workload, said },
            Trouble::Ended { container, exit, is_previous } => {
                let (log, log_tail) = self.last_words((wanted, pod, &container), &exit, is_previous, stack);
                KubernetesError::Ended { service, workload, container, ended: exit.ended(), log, log_tail }
            }
        }
    }

    /// Writes the log of a container that has ended, and returns its last lines.
    fn last_words(
        &self,
        (wanted, (pod, replica), container): (&Wanted, (&Pod, u32), &str),
        exit: &Exit,
        is_previous: bool,
        stack: &Stack,
    ) -> (PathBuf, String) {
        let path = stack.log.join(log_name(&service_of(wanted, container), replica));
        let place = format!("{}/{}/log?container={container}", self.path("v1", "pods"), pod.name);
        let ask = |previous: bool| self.api.text(&format!("{place}&previous={previous}"));
        // It may have been started anew since it was asked after.
        let text = ask(is_previous).or_else(|_| ask(!is_previous)).unwrap_or_default();
        let text = if text.is_empty() { exit.message.clone() } else { text };
        let _ = fs::create_dir_all(&stack.log).and_then(|()| fs::write(&path, &text));
        let lines: Vec<&str> = text.trim_end().lines().collect();
        match lines.is_empty() {
            true => (path, "(it wrote nothing)".to_owned()),
            false => (path, lines[lines.len().saturating_sub(TAIL)..].join("\n")),
        }
    }

    fn late(&self, patience: Duration, mut waiting: String) -> KubernetesError {
        let mut known = BTreeSet::new();
        let all = self.warnings().into_iter().map(|event| event.message);
        let words: Vec<String> = all.filter(|words| known.insert(words.clone())).take(WARNINGS).collect();
        if !words.is_empty() {
            waiting = format!("{waiting} (the cluster warns: {})", words.join("; "));
        }
        KubernetesError::Late { seconds: patience.as_secs(), waiting }
    }
}

/// What the container of a pod is called as a service.
pub(super) fn service_of(wanted: &Wanted, container: &str) -> String {
    match container == wanted.container {
        true => wanted.service.clone(),
        false => format!("{}/{container}", wanted.service),
    }
}

/// All pods, if as many as are wanted run; else what is missing.
pub(super) fn expected<'a>(
    wanted: &'a [Wanted],
    pods: &[Pod],
    counts: &BTreeMap<String, u32>,
) -> Result<Vec<Expected<'a>>, String> {
    let mut all = Vec::new();
    let mut missing = Vec::new();
    for one in wanted {
        let of_it: Vec<&Pod> = pods.iter().filter(|pod| pod.belongs_to(one) && !pod.is_going).collect();
        let Some(count) = one.replicas.or_else(|| counts.get(&one.service).copied()) else {
            missing.push(format!("{} (service {}) has no node that it is for", one.workload(), one.service));
            continue;
        };
        let running: Vec<&&Pod> = of_it.iter().filter(|pod| pod.runs()).collect();
        if running.len() as u32 == count && of_it.len() == running.len() {
            let number = |(replica, pod): (usize, &&&Pod)| Expected {
                wanted: one,
                pod: (**pod).clone(),
                replica: replica as u32,
            };
            all.extend(running.iter().enumerate().map(number));
            continue;
        }
        let why: BTreeSet<String> = of_it.iter().filter(|pod| !pod.runs()).map(|pod| pod.waits_for()).collect();
        let why = if why.is_empty() {
            "no other pod has been made".to_owned()
        } else {
            why.into_iter().collect::<Vec<_>>().join("; ")
        };
        let (workload, service) = (one.workload(), &one.service);
        missing.push(format!("{} of {count} pods of {workload} (service {service}) run: {why}", running.len()));
    }
    if missing.is_empty() { Ok(all) } else { Err(missing.join(". ")) }
}

fn has_processes(one: &Expected<'_>, processes: &Processes) -> bool {
    one.pod.lasting().all(|container| processes.contains_key(&(one.pod.uid.clone(), container.id.clone())))
}

fn unseen(all: &[Expected<'_>], processes: &Processes) -> KubernetesError {
    let one = all.iter().find(|one| !has_processes(one, processes));
    let (service, workload) = one.map(|one| (one.wanted.service.clone(), one.wanted.workload())).unwrap_or_default();
    KubernetesError::Unseen { service, workload }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted(name: &str, replicas: Option<u32>) -> Wanted {
        Wanted {
            service: format!("service-{name}"),
            is_named: true,
            kind: "StatefulSet".to_owned(),
            name: name.to_owned(),
            container: "app".to_owned(),
            replicas,
            patch: None,
        }
    }

    fn pod(set: &str, number: u32, state: &Value) -> Pod {
        Pod::of(&json!({
            "metadata": {"name": format!("{set}-{number}"), "uid": format!("{set}{number}"),
                         "ownerReferences": [{"kind": "StatefulSet", "name": set, "controller": true}]},
            "spec": {"containers": [{"name": "app"}]},
            "status": {"containerStatuses": [{"name": "app", "state": state, "containerID": "containerd://c"}]},
        }))
    }

    /// A process is in the network of the node for a moment before it is a container.
    #[test]
    fn the_network_of_a_pod_is_told_of_whatever_was_seen_before() {
        let mut sleeping = std::process::Command::new("unshare");
        let mut child = sleeping.args(["--user", "--net", "sleep", "20"]).spawn().expect("unshare starts");
        let name = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/net")).expect("it runs");
        let (own, deadline) = (std::process::id(), Instant::now() + Duration::from_secs(5));
        while name(child.id()) == name(own) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        let networks = [name(own), name(child.id())];
        let mut told = Vec::new();
        let mut seen = |network: &Arc<Netns>| told.push(network.name().expect("a name"));
        let mut looking = Networks { seen: &mut seen, known: BTreeSet::new() };
        for pid in [own, own, child.id(), child.id()] {
            let root = Identity::of(pid).expect("it runs");
            let processes = Processes::from([(("db0".to_owned(), "c".to_owned()), root)]);
            looking
                .look(&[wanted("db", Some(1))], &[pod("db", 0, &json!({"running": {}}))], &processes)
                .expect("networks");
        }
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert_ne!(networks[0], networks[1], "it has a network of its own");
        assert_eq!(told, networks);
    }

    #[test]
    fn all_pods_run_or_what_is_missing_is_said() {
        let (runs, waits) = (json!({"running": {}}), json!({"waiting": {"reason": "ContainerCreating"}}));
        let all = [wanted("db", Some(2)), wanted("none", Some(0)), wanted("agent", None)];
        let said = |pods: &[Pod], count: Option<u32>| {
            let counts = count.map(|count| ("service-agent".to_owned(), count)).into_iter().collect();
            expected(&all, pods, &counts)
                .map(|all| all.iter().map(|one| (one.pod.name.clone(), one.replica)).collect::<Vec<_>>())
        };
        let pods = [pod("db", 0, &runs), pod("db", 1, &runs), pod("agent", 7, &runs), pod("other", 0, &waits)];
        let named = [("db-0".to_owned(), 0), ("db-1".to_owned(), 1), ("agent-7".to_owned(), 0)];
        assert_eq!(said(&pods, Some(1)), Ok(named.to_vec()));
        assert_eq!(
            said(&pods, None),
            Err("statefulset/agent (service service-agent) has no node that it is for".to_owned())
        );
        let pods = [pod("db", 0, &runs), pod("db", 1, &waits), pod("agent", 7, &runs)];
        let waiting = "1 of 2 pods of statefulset/db (service service-db) run: `app`: ContainerCreating";
        assert_eq!(said(&pods, Some(1)), Err(waiting.to_owned()));
        let waiting = "1 of 2 pods of statefulset/db (service service-db) run: no other pod has been made";
        assert_eq!(said(&[pods[0].clone(), pods[2].clone()], Some(1)), Err(waiting.to_owned()));
    }

    #[test]
    fn the_container_that_is_the_service_has_its_name() {
        let wanted = wanted("db", Some(1));
        assert_eq!(service_of(&wanted, "app"), "service-db");
        assert_eq!(service_of(&wanted, "proxy"), "service-db/proxy");
    }
}
