//! Services that are started together, as files of another tool have them: a Compose project, or the manifests of a cluster. Each is then a
//! service like any other. They are asked in the network namespaces of their containers, and the sink listens in these, so that nothing
//! passes through a bridge, a proxy or a published port.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use unladen_journal::record::VariantKind;
use unladen_linux::Netns;
use unladen_load::plan::Replica;
use unladen_load::target::Target;
use unladen_processes::subject::compose::Project;
use unladen_processes::subject::kubernetes::Deployed;
use unladen_processes::subject::{Ended, Placed, SubjectError};
use unladen_study::plan::{Plan, PlannedVariant, Process};
use unladen_study::stack::Stack;

use super::error::RunError;
use super::instrument::{InstrumentError, SinkPart};
use super::service::{RunningService, readiness};
use super::setup::Site;
use super::took::{self, Admitted};

/// What a tool and an engine, or a cluster, need to start a stack, besides the time that its services have to get ready.
const AROUND: Duration = Duration::from_secs(60);

/// What variables of the files begin with that hold the addresses of the sink.
const SINK: &str = "UNLADEN_SINK_";

/// A stack that was started. Dropping it removes whatever is left of it.
#[derive(Debug)]
pub(super) enum Started {
    Compose(Project),
    Kubernetes(Deployed),
}

impl Started {
    /// Pods of its services as a cluster admitted them; empty elsewhere.
    pub(super) fn admitted(&self) -> Admitted {
        match self {
            Self::Compose(_) => Admitted::new(),
            Self::Kubernetes(deployed) => deployed.admitted().clone(),
        }
    }

    /// Removes everything that belongs to it.
    pub(super) fn remove(self) -> Result<(), SubjectError> {
        match self {
            Self::Compose(project) => project.remove(),
            Self::Kubernetes(deployed) => deployed.remove(),
        }
    }
}

/// What a stack of a run is started with.
pub(super) struct Wanted<'w> {
    pub(super) variant: &'w PlannedVariant,
    /// Its services that the study names, variables filled in.
    pub(super) processes: &'w [Process],
    /// Folder of the run.
    pub(super) folder: &'w Path,
    /// Number of the run.
    pub(super) run: u32,
    pub(super) interrupted: &'w AtomicBool,
}

impl Wanted<'_> {
    /// How long the stack may take.
    pub(super) fn patience(&self) -> Duration {
        self.processes.iter().map(|process| process.ready.timeout.0).max().unwrap_or_default() + AROUND
    }

    /// The first replica of each service, and how many there are to be; `None`: as many as the files say.
    pub(super) fn services(&self) -> impl Iterator<Item = (&Process, Option<u32>)> {
        let count = |service: &str| self.processes.iter().filter(|process| process.service == service).count();
        let replicas = move |process: &Process| u32::try_from(count(&process.service)).ok().filter(|count| *count > 1);
        self.processes.iter().filter(|it| it.replica == 0).map(move |process| (process, replicas(process)))
    }
}

/// Where services are found that have an address of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct Hosts(Vec<Host>);

/// Where one replica of a service is.
#[derive(Debug, Clone)]
pub(super) struct Host {
    service: String,
    replica: u32,
    address: IpAddr,
    network: Option<Arc<Netns>>,
}

impl Hosts {
    /// The replicas of the service that a URL names; empty if it names none of these.
    pub(super) fn replicas(&self, url: &str) -> Vec<Replica> {
        let Ok(target) = Target::parse(url) else { return Vec::new() };
        let named = self.0.iter().filter(|host| host.service == target.host);
        named
            .map(|it| Replica { address: it.address, network: it.network.as_ref().map(|network| network.path()) })
            .collect()
    }

    /// A URL with the address of the service that it names, and the network in which it is asked; of several replicas the first.
    pub(super) fn find(&self, url: &str) -> Option<(String, Option<Arc<Netns>>)> {
        let target = Target::parse(url).ok()?;
        let host = self.0.iter().find(|host| host.service == target.host)?;
        Some((host.place(url), host.network.clone()))
    }
}

impl Host {
    /// The first replica of a service, in the network of this machine.
    pub(super) fn at(service: &str, address: IpAddr) -> Self {
        Self { service: service.to_owned(), replica: 0, address, network: None }
    }

    /// A URL, or `host:port`, with the address in place of the name.
    pub(super) fn place(&self, text: &str) -> String {
        let address = match self.address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let (before, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (format!("{scheme}://"), rest),
            None => (String::new(), text),
        };
        match rest.strip_prefix(&self.service) {
            Some(rest) if rest.starts_with([':', '/', '?']) || rest.is_empty() => format!("{before}{address}{rest}"),
            _ => text.to_owned(),
        }
    }
}

/// Whether a file of a variant's stack speaks of the sink. Files that cannot be read are told of when they are needed.
pub(super) fn names_the_sink(plan: &Plan, variant: &PlannedVariant) -> bool {
    let files = variant.stack.iter().flat_map(Stack::files);
    files.map(|file| plan.dir.join(file)).any(|path| holds(&path, SINK))
}

/// Whether a file, or one within a folder, holds a text.
fn holds(path: &Path, text: &str) -> bool {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        return entries.map(|entry| entry.path()).any(|path| holds(&path, text));
    }
    std::fs::read_to_string(path).is_ok_and(|content| content.contains(text))
}

impl Site<'_> {
    /// Starts the services of a variant: its stack, if it has one, then its other processes in order, each when the one before is ready.
    /// What has been started is in `services` and `stack`, whether the rest could be or not. Returns where services are found.
    pub(super) fn start_services(
        &self,
        variant: &PlannedVariant,
        (folder, run): (&Path, u32),
        sink: &mut SinkPart,
        (services, stack): (&mut Vec<RunningService>, &mut Option<Started>),
        interrupted: &AtomicBool,
    ) -> Result<Hosts, RunError> {
        let mut hosts = Hosts::default();
        if let Some(planned) = &variant.stack {
            let (started, of_stack);
            (started, of_stack, hosts) = self.start_stack(variant, planned, (folder, run), sink, interrupted)?;
            let admitted = started.admitted();
            *stack = Some(started);
            services.extend(of_stack);
            self.look_at_pods(variant, admitted)?;
        }
        for process in variant.fresh().filter(|process| variant.stack.is_none() || !process.is_stacked()) {
            services.push(self.start(process, folder, run, interrupted)?);
        }
        Ok(hosts)
    }

    /// Starts a stack and waits until its services are ready. The sink listens in the networks of all its containers.
    fn start_stack(
        &self,
        variant: &PlannedVariant,
        planned: &Stack,
        (folder, run): (&Path, u32),
        sink: &mut SinkPart,
        interrupted: &AtomicBool,
    ) -> Result<(Started, Vec<RunningService>, Hosts), RunError> {
        let mut processes = Vec::new();
        for process in variant.fresh().filter(|process| process.is_stacked()) {
            processes.push(self.resolve(process, folder)?);
        }
        let wanted = Wanted { variant, processes: &processes, folder, run, interrupted };
        let mut listening = Listening { own: self.own_network(), networks: Vec::new(), error: None, sink };
        let mut seen = |network: &Arc<Netns>| listening.listen_in(network);
        let (started, placed) = match planned {
            Stack::Compose(project) => self.start_project(project, &wanted, &mut seen)?,
            Stack::Kubernetes(cluster) => self.deploy(cluster, &wanted, &mut seen)?,
        };
        if let Some(error) = listening.error {
            return Err(error.into());
        }
        let hosts = Hosts(placed.iter().map(host).collect());
        self.reaches_somebody(variant, folder, &hosts)?;
        let mut services = Vec::new();
        for (placed, host) in placed.into_iter().zip(&hosts.0) {
            services.extend(ready(placed, host, &processes, interrupted)?);
        }
        if matches!(started, Started::Kubernetes(_)) {
            // By then all pods have been waited for: that is the cluster's time, not the service's.
            services.iter_mut().for_each(|service| service.start_up_s = None);
        }
        Ok((started, services, hosts))
    }

    /// Whether the pods of a variant are what it declares, by those of its baseline: it, or they, may have been started before.
    fn look_at_pods(&self, variant: &PlannedVariant, admitted: Admitted) -> Result<(), RunError> {
        if admitted.is_empty() {
            return Ok(());
        }
        let mut known = self.admitted.borrow_mut();
        known.insert(variant.name.clone(), admitted);
        let planned = |name: &str| self.plan().variants.iter().find(|it| it.name == name);
        for (name, pods) in known.iter() {
            let Some(other) = planned(name).filter(|it| it.kind == VariantKind::Variant) else { continue };
            let Some((bare, bare_pods)) = planned(&other.against).zip(known.get(&other.against)) else { continue };
            if let Some(inert) = took::inert((bare, bare_pods), (other, pods)) {
                return Err(RunError::inert(name, inert));
            }
        }
        Ok(())
    }

    /// What variables of the files hold: where the sink is.
    pub(super) fn sinks_by_variable(&self) -> impl Iterator<Item = (String, String)> {
        self.variables(None)
            .sinks
            .into_iter()
            .map(|(name, address)| (format!("{SINK}{}", name.to_uppercase()), address))
    }

    /// A port of this machine is nobody's: none is published in a round.
    fn reaches_somebody(&self, variant: &PlannedVariant, folder: &Path, hosts: &Hosts) -> Result<(), RunError> {
        let url = variant.load.resolve(&self.variables(Some(folder)))?.url;
        let own = self.own_network();
        let is_here = |host: &Host| host.network.as_ref().is_some_and(|network| network.name().ok() == own);
        let others = variant.processes.iter().any(|process| !process.is_stacked());
        if variant.load.driver.is_some() || others || hosts.find(&url).is_some() || hosts.0.iter().any(is_here) {
            return Ok(());
        }
        Err(RunError::NobodyThere {
            url,
            services: hosts.0.iter().map(|host| host.service.clone()).collect::<Vec<_>>().join(", "),
        })
    }

    /// The network that the sink is in, by its name.
    fn own_network(&self) -> Option<PathBuf> {
        match self.network() {
            Some(network) => network.name().ok(),
            None => std::fs::read_link("/proc/thread-self/ns/net").ok(),
        }
    }
}

/// The networks in which the sink listens.
struct Listening<'s> {
    own: Option<PathBuf>,
    networks: Vec<PathBuf>,
    error: Option<InstrumentError>,
    sink: &'s mut SinkPart,
}

impl Listening<'_> {
    fn listen_in(&mut self, network: &Arc<Netns>) {
        let Ok(name) = network.name() else { return };
        // Containers may share a network, also with the machine.
        if self.own.as_ref() == Some(&name) || self.networks.contains(&name) || self.error.is_some() {
            return;
        }
        self.error = self.sink.listen_in(network).err();
        self.networks.push(name);
    }
}

fn host(placed: &Placed) -> Host {
    Host {
        service: placed.running.service().to_owned(),
        replica: placed.running.replica(),
        address: placed.address,
        network: placed.network.clone(),
    }
}

/// Waits until a container is ready. `None`: it has done what it was there for, and ended.
fn ready(
    placed: Placed,
    host: &Host,
    processes: &[Process],
    interrupted: &AtomicBool,
) -> Result<Option<RunningService>, RunError> {
    let mut running = placed.running;
    let of_service = |process: &&Process| process.service == host.service;
    let named = processes.iter().filter(of_service).find(|process| process.replica == host.replica);
    let named = named.or_else(|| processes.iter().find(of_service)).cloned();
    let mut beside = None;
    if let Some((owner, _)) = host.service.split_once('/') {
        // Another container of its pods: what it uses is the service's.
        let owner = processes.iter().find(|process| process.service == owner);
        beside = owner.map(|owner| Process { role: owner.role, ..Process::of_stack(&host.service) });
    }
    let named = named.or(beside);
    // What only prepares something for the others may end when it is done.
    let may_end = named.is_none();
    let mut process = named.unwrap_or_else(|| Process::of_stack(&host.service));
    process.replica = host.replica;
    for url in [&mut process.ready.http, &mut process.ready.tcp, &mut process.pprof].into_iter().flatten() {
        *url = host.place(url);
    }
    if let Some(scrape) = &mut process.scrape {
        scrape.url = host.place(&scrape.url);
    }
    let network = placed.network;
    let readiness = readiness(&process, network.clone());
    match running.wait_ready(&readiness, interrupted) {
        Ok(start_up) => {
            let start_up_s = readiness.is_declared().then_some(start_up.as_secs_f64());
            Ok(Some(RunningService { process, running, start_up_s, network, may_end }))
        }
        Err(SubjectError::DiedAtStart { ended: Ended::Exit(0), .. }) if may_end => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(all: &[(&str, u32, &str)]) -> Hosts {
        let host = |(service, replica, address): &(&str, u32, &str)| Host {
            service: (*service).to_owned(),
            replica: *replica,
            address: address.parse().expect("an address"),
            network: None,
        };
        Hosts(all.iter().map(host).collect())
    }

    #[test]
    fn names_are_replaced_by_addresses() {
        let hosts = hosts(&[("api", 0, "172.18.0.2"), ("six", 0, "fd00::2")]);
        let find = |url: &str| hosts.find(url).map(|(url, _)| url);
        for (url, placed) in [
            ("http://api:8080/api/api", Some("http://172.18.0.2:8080/api/api")),
            ("http://api/x", Some("http://172.18.0.2/x")),
            ("http://api?x", Some("http://172.18.0.2?x")),
            ("http://six:1/", Some("http://[fd00::2]:1/")),
            ("http://api2:8080/", None),
            ("http://127.0.0.1:8080/", None),
        ] {
            assert_eq!(find(url).as_deref(), placed, "{url}");
        }
        assert_eq!(hosts.0[0].place("api:8080"), "172.18.0.2:8080");
        assert_eq!(hosts.0[0].place("localhost:8080"), "localhost:8080");
        assert_eq!(hosts.0[0].place("http://api2:8080/"), "http://api2:8080/");
    }

    #[test]
    fn a_load_goes_to_all_replicas() {
        let hosts = hosts(&[("api", 0, "172.18.0.2"), ("db", 0, "172.18.0.3"), ("api", 1, "172.18.0.4")]);
        let addresses: Vec<String> =
            hosts.replicas("http://api:8080/").iter().map(|replica| replica.address.to_string()).collect();
        assert_eq!(addresses, ["172.18.0.2", "172.18.0.4"]);
        assert_eq!(hosts.replicas("http://127.0.0.1/"), []);
    }
}
