//! A process of the study while it runs: what the probe is to watch of it, whether it has died, and how it is stopped.

use std::sync::Arc;

use unladen_journal::notices::Notice;
use unladen_linux::Netns;
use unladen_probe::Target;
use unladen_probe::scrape::{Endpoint, Wanted};
use unladen_processes::subject::{Ended, Readiness, Running, SubjectError};
use unladen_study::plan::Process;
use unladen_study::spec::{Keep, Scrape, ScrapeKind};

/// A process of the study that runs.
#[derive(Debug)]
pub(super) struct RunningService {
    /// What was started.
    pub(super) process: Process,
    /// The process.
    pub(super) running: Running,
    /// Seconds from exec to readiness; `None` if the study does not say when it is ready.
    pub(super) start_up_s: Option<f64>,
    /// The network that it is in, if it is not unladen's.
    pub(super) network: Option<Arc<Netns>>,
    /// Whether it may end by itself when it has done well.
    pub(super) may_end: bool,
}

/// When a process whose variables are filled in counts as ready; it is asked in this network.
pub(super) fn readiness(process: &Process, network: Option<Arc<Netns>>) -> Readiness {
    Readiness {
        http: process.ready.http.clone(),
        tcp: process.ready.tcp.clone(),
        log: process.ready.log.clone(),
        healthy: process.ready.healthy,
        timeout: process.ready.timeout.0,
        network,
    }
}

/// How the services of a run ended: name, replica, how.
pub(super) type Ends = Vec<(String, u32, Ended)>;

/// What the probe watches of a service.
pub(super) fn target(service: &RunningService) -> Target {
    Target {
        endpoint: service.process.scrape.as_ref().map(|scrape| endpoint(scrape, service.network.clone())),
        service: service.process.service.clone(),
        replica: service.process.replica,
        role: Some(service.process.role),
        family: service.running.family().clone(),
        cgroup: service.running.cgroup().cloned(),
        remote: service.running.probe().cloned(),
    }
}

fn endpoint(scrape: &Scrape, network: Option<Arc<Netns>>) -> Endpoint {
    let wanted = |(name, keep): (&String, &Keep)| Wanted {
        name: name.clone(),
        labels: keep.labels.iter().map(|(label, value)| (label.clone(), value.clone())).collect(),
        metric: keep.metric(name).to_owned(),
        factor: keep.factor(name),
        counter: keep.kind.map(|kind| kind == ScrapeKind::Counter),
    };
    let keep = scrape.keep.iter().map(wanted).collect();
    Endpoint { url: scrape.url.clone(), every: scrape.every.0, keep, network }
}

/// What it watches of a part of the instrument, by its name.
pub(super) fn instrument((name, running): (&str, &Running)) -> Target {
    Target {
        endpoint: None,
        service: name.to_owned(),
        replica: 0,
        role: None,
        family: running.family().clone(),
        cgroup: running.cgroup().cloned(),
        remote: None,
    }
}

/// How a service ended, if it has.
pub(super) fn died(service: &mut RunningService) -> Option<Notice> {
    let may_end = service.may_end;
    let ended = service.running.alive().filter(|ended| !(may_end && *ended == Ended::Exit(0)))?;
    Some(Notice::ServiceDied {
        service: service.process.service.clone(),
        how: ended.to_string(),
        log_tail: service.running.log_tail(5),
    })
}

/// Stops the processes, the last started first, the replicas of a service together. All are asked, also when one cannot be stopped.
pub(super) fn stop_all(services: &mut [RunningService]) -> Result<Ends, SubjectError> {
    let stop = |service: &mut RunningService| -> Result<_, SubjectError> {
        Ok((service.process.service.clone(), service.process.replica, service.running.stop(service.process.grace.0)?))
    };
    let by_service = services.chunk_by_mut(|one, next| one.process.service == next.process.service).rev();
    let ends: Vec<_> = by_service
        .flat_map(|replicas| {
            replicas.iter_mut().for_each(|service| service.running.ask_to_stop());
            replicas.iter_mut().rev().map(stop)
        })
        .collect();
    ends.into_iter().collect()
}
