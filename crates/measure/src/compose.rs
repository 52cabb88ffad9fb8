//! The services of a run that are a Compose project: started together, each then a service like any other. They are asked in the network
//! namespaces of their containers, and the sink listens in these, so that nothing passes through a bridge or a published port.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use unladen_load::plan::Replica;
use unladen_load::target::Target;
use unladen_processes::linux::Netns;
use unladen_processes::subject::compose::{Changes, ComposeError, Configured, Files, Fit, Project};
use unladen_processes::subject::{Ended, Placed, SubjectError};
use unladen_study::plan::{Plan, PlannedVariant, Process};
use unladen_study::spec::{ComposeProject, Volumes};

use super::error::RunError;
use super::instrument::{InstrumentError, SinkPart};
use super::ports;
use super::service::{RunningService, readiness};
use super::setup::{Site, addresses};

/// What the tool and the engine need to start a project, besides the time that its services have to get ready.
const AROUND: Duration = Duration::from_secs(60);

/// What variables of Compose files begin with that hold the addresses of the sink.
const SINK: &str = "UNLADEN_SINK_";

/// Where services are found that have an address of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct Hosts(Vec<Host>);

#[derive(Debug, Clone)]
struct Host {
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
    /// A URL, or `host:port`, with the address in place of the name.
    fn place(&self, text: &str) -> String {
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

/// Whether a Compose file of a variant speaks of the sink. Files that cannot be read are told of when they are needed.
pub(super) fn names_the_sink(plan: &Plan, variant: &PlannedVariant) -> bool {
    let files = variant.compose.iter().flat_map(|compose| &compose.files);
    let read = |file: &String| std::fs::read_to_string(plan.dir.join(file)).unwrap_or_default();
    files.map(read).any(|text| text.contains(SINK))
}

impl Site<'_> {
    /// Starts the services of a variant: its project, if it has one, then its other processes in order, each when the one before is ready.
    /// What has been started is in `services` and `project`, whether the rest could be or not. Returns where services are found.
    pub(super) fn start_services(
        &self,
        variant: &PlannedVariant,
        (folder, run): (&Path, u32),
        sink: &mut SinkPart,
        (services, project): (&mut Vec<RunningService>, &mut Option<Project>),
        interrupted: &AtomicBool,
    ) -> Result<Hosts, RunError> {
        let mut hosts = Hosts::default();
        if let Some(compose) = &variant.compose {
            let (started, of_project);
            (started, of_project, hosts) = self.start_project(variant, compose, (folder, run), sink, interrupted)?;
            *project = Some(started);
            services.extend(of_project);
        }
        for process in variant.fresh().filter(|process| variant.compose.is_none() || !process.is_composed()) {
            services.push(self.start(process, folder, run, interrupted)?);
        }
        Ok(hosts)
    }

    /// Starts a project and waits until its services are ready. The sink listens in the networks of all its containers.
    fn start_project(
        &self,
        variant: &PlannedVariant,
        compose: &ComposeProject,
        (folder, run): (&Path, u32),
        sink: &mut SinkPart,
        interrupted: &AtomicBool,
    ) -> Result<(Project, Vec<RunningService>, Hosts), RunError> {
        let mut processes = Vec::new();
        for process in variant.fresh().filter(|process| process.is_composed()) {
            processes.push(self.resolve(process, folder)?);
        }
        let dir = &self.plan().dir;
        let sinks = self.variables(None).sinks.into_iter();
        let files = Files {
            files: compose.files.iter().map(|file| dir.join(file)).collect(),
            profiles: compose.profiles.clone(),
            privileged: compose.privileged,
            named: processes.iter().map(|process| process.service.clone()).collect(),
            env: sinks.map(|(name, address)| (format!("{SINK}{}", name.to_uppercase()), address)).collect(),
            dir: dir.clone(),
            log: folder.join("logs"),
            cpus: self.partition.instrument.clone(),
        };
        let configured = self.launcher.configure(files, interrupted)?;
        self.look_at_ports(&configured, &processes)?;
        let keep = compose.volumes == Volumes::Keep;
        let fit = Fit {
            cpus: self.partition.subject.clone(),
            services: self.changes(&processes),
            pad: self.pad(run),
            keep_volumes: keep.then(|| variant.name.clone()),
        };
        let timeout = processes.iter().map(|process| process.ready.timeout.0).max().unwrap_or_default();
        let mut listening = Listening { own: self.own_network(), heard: Vec::new(), error: None, sink };
        let mut seen = |network: &Arc<Netns>| listening.listen_in(network);
        let (project, composed) = self.launcher.up(configured, &fit, timeout + AROUND, &mut seen, interrupted)?;
        if let Some(error) = listening.error {
            return Err(error.into());
        }
        let hosts = Hosts(composed.iter().map(host).collect());
        self.reaches_somebody(variant, folder, &hosts)?;
        let mut services = Vec::new();
        for (composed, host) in composed.into_iter().zip(&hosts.0) {
            services.extend(ready(composed, host, &processes, interrupted)?);
        }
        Ok((project, services, hosts))
    }

    /// What the study changes in the services of the file.
    fn changes(&self, processes: &[Process]) -> BTreeMap<String, Changes> {
        let count = |service: &str| processes.iter().filter(|process| process.service == service).count();
        let changes = |process: &Process| {
            let (cores, mut limits) = self.limits(process, &self.partition.subject);
            limits.cpuset = limits.cpuset.or(Some(cores));
            let replicas = u32::try_from(count(&process.service)).ok().filter(|count| *count > 1);
            (process.service.clone(), Changes { env: process.env.clone(), limits, replicas })
        };
        processes.iter().filter(|process| process.replica == 0).map(changes).collect()
    }

    /// In the network of the machine somebody else may listen.
    fn look_at_ports(&self, configured: &Configured, processes: &[Process]) -> Result<(), RunError> {
        let services = configured.services();
        for process in processes.iter().filter(|it| services.get(&it.service).is_some_and(|it| it.host_network)) {
            let here = Host {
                service: process.service.clone(),
                replica: 0,
                address: Ipv4Addr::LOCALHOST.into(),
                network: None,
            };
            let mut wanted = addresses(process).into_iter().map(|address| here.place(&address));
            if let Some(address) = wanted.find(|address| ports::taken(address, None)) {
                let service = process.service.clone();
                return Err(SubjectError::from(ComposeError::PortTaken { service, address }).into());
            }
        }
        Ok(())
    }

    /// A port of this machine is nobody's: none is published in a round.
    fn reaches_somebody(&self, variant: &PlannedVariant, folder: &Path, hosts: &Hosts) -> Result<(), RunError> {
        let url = variant.load.resolve(&self.variables(Some(folder)))?.url;
        let own = self.own_network();
        let is_here = |host: &Host| host.network.as_ref().is_some_and(|network| network.name().ok() == own);
        let others = variant.processes.iter().any(|process| !process.is_composed());
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
    heard: Vec<PathBuf>,
    error: Option<InstrumentError>,
    sink: &'s mut SinkPart,
}

impl Listening<'_> {
    fn listen_in(&mut self, network: &Arc<Netns>) {
        let Ok(name) = network.name() else { return };
        // Containers may share a network, also with the machine.
        if self.own.as_ref() == Some(&name) || self.heard.contains(&name) || self.error.is_some() {
            return;
        }
        self.error = self.sink.listen_in(network).err();
        self.heard.push(name);
    }
}

fn host(composed: &Placed) -> Host {
    Host {
        service: composed.running.service().to_owned(),
        replica: composed.running.replica(),
        address: composed.address,
        network: composed.network.clone(),
    }
}

/// Waits until a container is ready. `None`: it has done what it was there for, and ended.
fn ready(
    composed: Placed,
    host: &Host,
    processes: &[Process],
    interrupted: &AtomicBool,
) -> Result<Option<RunningService>, RunError> {
    let mut running = composed.running;
    let of_service = |process: &&Process| process.service == host.service;
    let named = processes.iter().filter(of_service).find(|process| process.replica == host.replica);
    let named = named.or_else(|| processes.iter().find(of_service)).cloned();
    // What only prepares something for the others may end when it is done.
    let may_end = named.is_none();
    let mut process = named.unwrap_or_else(|| Process::of_project(&host.service));
    process.replica = host.replica;
    for url in [&mut process.ready.http, &mut process.ready.tcp, &mut process.pprof].into_iter().flatten() {
        *url = host.place(url);
    }
    if let Some(scrape) = &mut process.scrape {
        scrape.url = host.place(&scrape.url);
    }
    let network = composed.network;
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
