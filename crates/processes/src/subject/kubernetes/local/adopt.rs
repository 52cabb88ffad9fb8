//! Containers of pods that run as services like any other: on their cores, with their networks and logs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use unladen_linux::CpuSet;
use unladen_linux::clock::TICKS_PER_SECOND;
use unladen_linux::hierarchy::Mounts;
use unladen_linux::process::Identity;
use unladen_linux::tree::Family;

use super::Stack;
use super::deploy::Deployed;
use super::error::KubernetesError;
use super::fit::Wanted;
use super::member::{How, Member, Place, Retirement};
use super::pods::Container;
use super::wait::{Expected, WatchedBy, Watchers, network_of, service_of};
use crate::subject::error::SubjectError;
use crate::subject::launch::{Launch, log_name};
use crate::subject::launcher::{Launcher, open_log};
use crate::subject::placed::Placed;
use crate::subject::running::Running;

impl Deployed {
    /// The containers of all pods as services that run, in the order in which they were started.
    pub(super) fn adopt(
        &mut self,
        launcher: &Launcher,
        stack: &Stack,
        all: &[Expected<'_>],
        watchers: &Watchers,
    ) -> Result<Vec<Placed>, SubjectError> {
        let mut placed = Vec::new();
        let mut before: Option<(&Wanted, Arc<Retirement>)> = None;
        for one in all {
            let retirement = match before {
                Some((wanted, of_it)) if std::ptr::eq(wanted, one.wanted) => of_it,
                _ => Arc::new(Retirement::new(&self.api, self.workload(one.wanted), how(one.wanted))),
            };
            for container in one.pod.lasting() {
                let Some(watched_by) = watchers.get(&(one.pod.uid.clone(), container.id.clone())) else { continue };
                placed.push(self.adopt_one(launcher, stack, (one, container, watched_by), &retirement)?);
            }
            if one.wanted.is_named && one.replica == 0 {
                self.admitted.insert(one.wanted.service.clone(), one.pod.admitted());
            }
            before = Some((one.wanted, retirement));
        }
        placed.sort_by_key(|placed| placed.running.started());
        Ok(placed)
    }

    fn adopt_one(
        &self,
        launcher: &Launcher,
        stack: &Stack,
        (one, container, watched_by): (&Expected<'_>, &Container, &WatchedBy),
        retirement: &Arc<Retirement>,
    ) -> Result<Placed, SubjectError> {
        let service = service_of(one.wanted, &container.name);
        let launch = Launch {
            log: stack.log.join(log_name(&service, one.replica)),
            service,
            replica: one.replica,
            ..Launch::default()
        };
        let log = open_log(&launch)?;
        let log_start = log.metadata().map_or(0, |log| log.len());
        let (root, network, cgroup, started_at) = match watched_by {
            WatchedBy::ThisProcess(root) => {
                (*root, network_of(one.wanted, root.pid)?, Mounts::of_process(root.pid).group(), started(root))
            }
            WatchedBy::Probe(_) => (NOBODY, None, None, Instant::now()),
        };
        let pod = format!("{}/{}", self.path("v1", "pods"), one.pod.name);
        let events = format!("{}?fieldSelector=involvedObject.uid%3D{}", self.path("v1", "events"), one.pod.uid);
        let place = Place { pod, events, container: container.name.clone(), id: container.id.clone() };
        let found = (watched_by.clone(), cgroup.clone());
        let member = Member::watch(&self.api, place, container.image_id.clone(), found, Arc::clone(retirement), log);
        let family = Family { root, mark: format!("{}-{}.", self.namespace, launch.service) };
        let shared = Arc::clone(launcher.shared());
        let running = Running::new(&launch, Box::new(member), family, cgroup, started_at, log_start, shared);
        let limits = stack.services.get(&one.wanted.service).map(|changes| &changes.limits);
        let cores = limits.and_then(|limits| limits.cpuset.as_ref()).unwrap_or(&stack.cpus);
        if matches!(watched_by, WatchedBy::ThisProcess(_)) {
            keep_to(&running, one.wanted, cores)?;
        }
        let address = one.pod.address.unwrap_or_else(|| std::net::Ipv4Addr::LOCALHOST.into());
        Ok(Placed { running, address, network })
    }
}

/// No process of this machine.
const NOBODY: Identity = Identity { pid: 0, start_ticks: 0 };

/// How the pods of a workload are ended.
fn how(wanted: &Wanted) -> How {
    match wanted.kind.as_str() {
        "Deployment" => How::Scale,
        "StatefulSet" => How::ScaleAndDelete,
        _ => How::Delete,
    }
}

/// When a process was started, to a tick of the kernel.
fn started(root: &Identity) -> Instant {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let since_boot = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
    let start = Duration::from_millis(root.start_ticks * 1000 / TICKS_PER_SECOND);
    let ago = since_boot.saturating_sub(start);
    Instant::now().checked_sub(ago).unwrap_or_else(Instant::now)
}

/// Binds a container to the cores of the study, as far as the kubelet lets it have them.
fn keep_to(running: &Running, of: &Wanted, wanted: &CpuSet) -> Result<(), KubernetesError> {
    let Ok(allowed) = CpuSet::of_thread(running.pid()) else { return Ok(()) };
    if wanted.is_empty() || allowed.difference(wanted).is_empty() {
        return Ok(());
    }
    let failed = |said: String| KubernetesError::Cores {
        service: of.service.clone(),
        workload: of.workload(),
        wanted: wanted.to_string(),
        allowed: allowed.to_string(),
        said,
    };
    let common = allowed.intersection(wanted);
    if common.is_empty() {
        return Err(failed("they have none in common".to_owned()));
    }
    running.move_threads(&allowed, &common).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_was_started_when_the_kernel_says() {
        let before = Instant::now();
        let mut child = std::process::Command::new("sleep").arg("10").spawn().expect("it starts");
        let root = Identity::of(child.id()).expect("it is there");
        let (at, after) = (started(&root), Instant::now());
        child.kill().expect("killed");
        child.wait().expect("reaped");
        // By ticks of 10 ms, rounded down.
        let tick = Duration::from_millis(11);
        assert!(at + tick >= before && at <= after, "{:?} {:?}", before.checked_duration_since(at), after - before);
    }
}
