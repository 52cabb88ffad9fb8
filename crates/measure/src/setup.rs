//! What stays the same over all runs of a study: cores, ports, addresses, cgroups; and how a process is made from it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use unladen_journal::notices::Notice;
use unladen_journal::record::Calibration;
use unladen_linux::{CpuSet, Netns, userns};
use unladen_processes::relay;
use unladen_processes::subject::kubernetes::ProbeOrder;
use unladen_processes::subject::launch::{Image, LONGEST_PAD, log_name};
use unladen_processes::subject::{Launch, Launcher, LauncherOptions, Limits, Partition, Running, Topology, partition};
use unladen_sink::config::Protocol;
use unladen_study::plan::{self, Plan, PlannedVariant, Process};
use unladen_study::spec::{Lifetime, Network};
use unladen_study::variables::{PortName, Variables};

use super::error::RunError;
use super::folder::RunFolder;
use super::instrument::RelayPart;
use super::ports;
use super::sent_from::{self, SentFrom};
use super::service::{RunningService, readiness, stop_all};
use super::took::Admitted;

/// Ids of one run's traces: see `unladen_trace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceIds {
    pub(super) tag: u64,
    pub(super) key: u64,
}

impl TraceIds {
    /// Ids of the same run for requests that are no part of its ledger: those before and after the window's, of which `sent` were sent in
    /// loads before this one. The key differs in bits beyond every index: so what a sender that knows only the low half of an id sends is
    /// told apart from the window's, and no id comes twice.
    pub(super) fn other(self, sent: u64) -> Self {
        Self { tag: self.tag ^ 2, key: self.key ^ 1 << 63 ^ (sent << 32 & !(1 << 63)) }
    }
}

/// Everything that the runs of a study share.
pub(super) struct Setup<'a> {
    pub(super) plan: &'a Plan,
    pub(super) folder: &'a RunFolder,
    pub(super) launcher: Launcher,
    pub(super) partition: Partition,
    /// What is known of the variants' spans; empty until they are calibrated.
    pub(super) calibrations: Vec<Calibration>,
    /// On a cluster: pods of the variants as they were admitted, the last of each.
    pub(super) admitted: RefCell<BTreeMap<String, Admitted>>,
    /// On a cluster: pods of other nodes that send the load.
    pub(super) load_pods: Option<SentFrom>,
    /// On a cluster with probes in the pods: what these are told.
    pub(super) probes: Option<ProbeOrder>,
    seed: u64,
    variables: Variables,
    /// One for each run that is alive at the same time.
    addresses: Vec<Addresses>,
}

/// Where the processes of a run listen.
#[derive(Debug)]
struct Addresses {
    sinks: BTreeMap<Protocol, SocketAddr>,
    ports: BTreeMap<PortName, u16>,
    /// A network of the run's own, in which its fixed addresses are its alone.
    network: Option<Arc<Netns>>,
}

/// The setup as one of several runs that are alive at the same time sees it: with addresses of its own.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    setup: &'a Setup<'a>,
    number: usize,
}

impl<'a> Deref for Site<'a> {
    type Target = Setup<'a>;

    fn deref(&self) -> &Self::Target {
        self.setup
    }
}

impl<'a> Setup<'a> {
    /// With sites for so many runs at the same time.
    pub(super) fn new(plan: &'a Plan, folder: &'a RunFolder, seed: u64, sites: usize) -> Result<Self, RunError> {
        let variables = Variables {
            unladen: std::env::current_exe().unwrap_or_default(),
            environment: std::env::vars().collect(),
            ..plan.variables()
        };
        let limits =
            plan.variants.iter().flat_map(|variant| &variant.processes).any(|process| process.limits.are_any());
        let available = CpuSet::allowed().map_err(RunError::Cpus)?;
        let topology = Topology::read(Path::new("/sys"), &available);
        let launcher = Launcher::new(&LauncherOptions::new(seed, limits))?;
        let (mut partition, mut at) = (partition(&available, &topology, 1), Ipv4Addr::LOCALHOST.into());
        let mut probes = None;
        if let Some(cluster) = &plan.study.on.kubernetes {
            probes = sent_from::probes(cluster, seed)?;
            if probes.is_some() {
                at = launcher.address_for_pods(cluster.context.as_deref())?;
                // Which cores pods have, their node says.
                (partition.subject, partition.apart) = (available, false);
            }
        }
        Ok(Self {
            plan,
            folder,
            launcher,
            partition,
            calibrations: Vec::new(),
            admitted: RefCell::default(),
            load_pods: None,
            probes,
            seed,
            variables,
            addresses: sites_of(plan, seed, sites.max(1), at)?,
        })
    }

    /// Sees to it that runs which are alive at the same time do not collide at fixed addresses: each gets a network of its own. Returns why
    /// that cannot be; then they must run one after the other.
    pub(super) fn keep_apart(&mut self) -> Option<String> {
        let fixed = match self.fixed() {
            Ok(fixed) => fixed,
            // What cannot be resolved is told when it is started.
            Err(_) => return None,
        };
        let wanted = self.plan.study.network;
        let fresh = || self.plan.variants.iter().flat_map(PlannedVariant::fresh);
        let containers = fresh().find(|process| process.image.is_some());
        // Agents call their makers, or ask where they are: in a network of their own they reach nobody.
        let confines = fresh().any(|process| process.agent.is_some())
            && fresh().all(|process| process.image.is_none() && !process.is_stacked());
        if let (Some(process), false) = (containers, fixed.is_empty() && wanted != Some(Network::Own)) {
            // Only the engine can give a container a network, and the others could not reach it there.
            return Some(format!(
                "`{}` is a container in the network of this machine, where several variants at once cannot listen at {}",
                process.service,
                if fixed.is_empty() { "the same address".to_owned() } else { fixed.join(", ") }
            ));
        }
        match (wanted, fixed.is_empty()) {
            (Some(Network::Host), false) => {
                return Some(format!(
                    "several variants at once cannot listen at {} (`network: host`)",
                    fixed.join(", ")
                ));
            }
            (Some(Network::Host), true) => return None,
            (None, true) if !confines => return None,
            (Some(Network::Own), _) | (None, _) => {}
        }
        let must_be = wanted.is_some() || !fixed.is_empty();
        let refused = |why: String| {
            let where_ = if fixed.is_empty() { "the machine's network".to_owned() } else { fixed.join(", ") };
            format!("several variants at once cannot share {where_}, and no network of their own can be made: {why}")
        };
        let networks = userns::become_able().and_then(|()| {
            let networks = self.addresses.iter().map(|_| Netns::new());
            networks.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())
        });
        match networks {
            Ok(networks) => {
                for (site, network) in self.addresses.iter_mut().zip(networks) {
                    site.network = Some(Arc::new(network));
                }
                None
            }
            Err(why) => must_be.then(|| refused(why)),
        }
    }

    /// Addresses of the fresh services, and of the load, that are the same in all sites.
    fn fixed(&self) -> Result<Vec<String>, RunError> {
        let of = |site: Site<'_>| -> Result<Vec<String>, RunError> {
            let mut all = Vec::new();
            for variant in &self.plan.variants {
                for process in variant.fresh().filter(|process| !process.is_stacked()) {
                    all.extend(addresses(&site.resolve(process, self.folder.path())?));
                }
            }
            all.sort_unstable();
            all.dedup();
            Ok(all)
        };
        if self.addresses.len() < 2 {
            return Ok(Vec::new());
        }
        Ok(ports::fixed(&of(self.site(0))?, &of(self.site(1))?))
    }

    /// Notices that every run carries.
    pub(super) fn notices(&self) -> Vec<Notice> {
        let no_cgroup = self.launcher.no_cgroups().map(|reason| Notice::NoCgroup { reason: reason.to_owned() });
        // Probes in pods read the groups of their containers, whatever this process may do.
        no_cgroup.filter(|_| self.probes.is_none()).into_iter().collect()
    }

    /// Where CPU time is read from, in words.
    pub(super) fn cgroups(&self) -> String {
        if self.probes.is_some() {
            return "probes in the pods".to_owned();
        }
        match (self.launcher.cgroup_version(), self.launcher.no_cgroups()) {
            (Some(version), _) => version.to_string(),
            (None, reason) => format!("process tree: {}", reason.unwrap_or("no cgroups")),
        }
    }

    /// The ports of the study by their names.
    pub(super) fn ports(&self) -> BTreeMap<String, u16> {
        let named = self.addresses.iter().take(1).flat_map(|site| &site.ports).map(|(name, port)| match name.replica {
            0 => (name.name.clone(), *port),
            _ => (name.to_string(), *port),
        });
        named.collect()
    }

    /// Ids of the run's traces, from the seed and the run's number.
    pub(super) fn trace_ids(&self, run: u32) -> TraceIds {
        let mut random = self.random(run, 0);
        // A tag of 0 would make the first trace id of key 0 all zeros, which W3C Trace Context forbids.
        TraceIds { tag: random.next_u64() | 1, key: random.next_u64() }
    }

    fn random(&self, run: u32, stream: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream((u64::from(run) << 8) | stream);
        random
    }

    /// Seed of everything that is drawn.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// As this one of the runs that are alive at the same time sees it.
    pub(super) fn site(&'a self, number: usize) -> Site<'a> {
        Site { setup: self, number }
    }

    /// Starts the services that live through the study.
    pub(super) fn start_shared(&self, interrupted: &AtomicBool) -> Result<Vec<RunningService>, RunError> {
        let shared = self.folder.run("shared")?;
        let mut services = Vec::new();
        for process in self.plan.shared() {
            match self.site(0).start(process, &shared, 0, interrupted) {
                Ok(service) => services.push(service),
                Err(error) => {
                    let _ = stop_all(&mut services);
                    return Err(error);
                }
            }
        }
        Ok(services)
    }
}

impl<'a> Site<'a> {
    pub(super) fn plan(self) -> &'a Plan {
        self.setup.plan
    }

    fn addresses(&self) -> &'a Addresses {
        &self.setup.addresses[self.number]
    }

    /// Where the run's sink listens.
    pub(super) fn sinks(&self) -> &'a BTreeMap<Protocol, SocketAddr> {
        &self.addresses().sinks
    }

    /// The network of the run's own, if it has one.
    pub(super) fn network(&self) -> Option<&'a Arc<Netns>> {
        self.addresses().network.as_ref()
    }

    /// The network that a process is in: what lives through the study is outside.
    fn network_of(&self, process: &Process) -> Option<Arc<Netns>> {
        self.network().filter(|_| process.lifetime == Lifetime::Run).cloned()
    }

    /// Lets the run's services reach, from a network of their own, what is outside: what lives through the study, what the study names, and what
    /// listens on this machine at addresses that they are told.
    pub(super) fn relay(
        &self,
        variant: &PlannedVariant,
        folder: &Path,
        logs: &Path,
    ) -> Result<Option<RelayPart>, RunError> {
        let Some(network) = self.network() else { return Ok(None) };
        let (mut own, mut outside, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for process in variant.processes.iter().filter(|process| !process.is_stacked()) {
            let process = self.resolve(process, folder)?;
            match process.lifetime {
                Lifetime::Run => own.extend(addresses(&process)),
                Lifetime::Study => outside.extend(addresses(&process)),
            }
            texts.extend(process.command.iter().chain(process.env.values()).cloned());
        }
        own.extend(self.addresses().sinks.values().map(ToString::to_string));
        outside.extend(self.plan().study.reach.iter().cloned());
        outside.extend(ports::reached_outside(texts.iter().map(String::as_str), &own, &ports::listeners()));
        outside.sort_unstable();
        outside.dedup();
        if outside.is_empty() {
            return Ok(None);
        }
        let config = relay::Config { network: network.path(), addresses: outside };
        Ok(Some(RelayPart::start(&self.launcher, &config, &self.partition.instrument, logs)?))
    }

    pub(super) fn variables(&self, run_dir: Option<&Path>) -> Variables {
        let Addresses { sinks, ports, .. } = self.addresses();
        Variables {
            run_dir: run_dir.map(Path::to_owned),
            ports: ports.clone(),
            sinks: sinks.iter().map(|(protocol, address)| (protocol.name().to_owned(), address.to_string())).collect(),
            ..self.setup.variables.clone()
        }
    }

    /// A process with its run-time variables filled in.
    pub(super) fn resolve(&self, process: &Process, run_dir: &Path) -> Result<Process, RunError> {
        Ok(process.resolve(&self.variables(Some(run_dir)))?)
    }

    /// Starts a process and waits until it is ready. `folder` is that of the run, with `logs/` in it.
    pub(super) fn start(
        &self,
        process: &Process,
        folder: &Path,
        run: u32,
        interrupted: &AtomicBool,
    ) -> Result<RunningService, RunError> {
        let process = self.resolve(process, folder)?;
        let network = self.network_of(&process);
        let readiness = readiness(&process, network.clone());
        if let Some(address) = addresses(&process).into_iter().find(|address| ports::taken(address, network.as_deref()))
        {
            return Err(RunError::PortTaken { service: process.service, address });
        }
        let mut running = self.launch(&process, folder, run, &self.partition.subject)?;
        match running.wait_ready(&readiness, interrupted) {
            Ok(start_up) => {
                // Who says of nothing that it is ready has been watched for a moment only.
                let start_up_s = readiness.is_declared().then_some(start_up.as_secs_f64());
                Ok(RunningService { process, running, start_up_s, network, may_end: false })
            }
            Err(error) => {
                let _ = running.stop(process.grace.0);
                Err(error.into())
            }
        }
    }

    /// Starts a program that runs to its end, on the instrument's cores: it is the load, or is there for it.
    pub(super) fn launch_program(
        &self,
        process: &Process,
        folder: &Path,
        run: u32,
    ) -> Result<(Process, Running), RunError> {
        let process = self.resolve(process, folder)?;
        let running = self.launch(&process, folder, run, &self.partition.instrument)?;
        Ok((process, running))
    }

    /// Starts a process whose variables are filled in.
    fn launch(&self, process: &Process, folder: &Path, run: u32, cpus: &CpuSet) -> Result<Running, RunError> {
        let log = folder.join("logs").join(log_name(&process.service, process.replica));
        let (cpus, limits) = self.limits(process, cpus);
        let launch = Launch {
            service: process.service.clone(),
            replica: process.replica,
            image: process.image.as_ref().map(image),
            command: process.command.clone(),
            env: process.env.clone(),
            cwd: process.cwd.clone(),
            log,
            cpus: Some(cpus),
            limits,
            network: self.network_of(process),
            pad: self.pad_length(run),
        };
        Ok(self.launcher.launch(&launch)?)
    }

    /// The cores of a process, of those it has unless it says otherwise, and its limits.
    pub(super) fn limits(&self, process: &Process, cpus: &CpuSet) -> (CpuSet, Limits) {
        let everywhere = process.limits.on_all_cores();
        let cpuset = process.limits.cpuset.as_deref().filter(|_| !everywhere).map(str::parse).transpose();
        let all = || self.partition.subject.union(&self.partition.instrument);
        let limits = Limits {
            cpus: process.limits.cpus,
            memory: process.limits.memory.map(|bytes| bytes.0),
            // The study's check has refused what is no list of CPUs.
            cpuset: cpuset.unwrap_or_default(),
        };
        (if everywhere { all() } else { cpus.clone() }, limits)
    }

    pub(super) fn pad_length(&self, run: u32) -> usize {
        self.random(run, 1).random_range(0..=LONGEST_PAD)
    }

    /// What shifts the stacks of a run.
    pub(super) fn pad(&self, run: u32) -> String {
        "x".repeat(self.pad_length(run))
    }
}

/// Free ports for so many sites. Sinks listen at this address. What lives through the study listens at the same port for all of them.
fn sites_of(plan: &Plan, seed: u64, sites: usize, at: IpAddr) -> Result<Vec<Addresses>, RunError> {
    let names = plan.ports();
    let shared = plan.ports_of_shared();
    let protocols = plan.offered_sinks();
    let mut free = ports::allocate((names.len() + protocols.len()) * sites, seed)?.into_iter();
    let mut all: Vec<Addresses> = Vec::with_capacity(sites);
    for _ in 0..sites {
        let local = |port| SocketAddr::from((at, port));
        let sinks = protocols.iter().copied().zip(free.by_ref().map(local)).collect();
        let mut ports: BTreeMap<PortName, u16> = names.iter().cloned().zip(free.by_ref()).collect();
        if let Some(first) = all.first() {
            ports.extend(
                first.ports.iter().filter(|(name, _)| shared.contains(name)).map(|(name, port)| (name.clone(), *port)),
            );
        }
        all.push(Addresses { sinks, ports, network: None });
    }
    Ok(all)
}

fn image(image: &plan::Image) -> Image {
    Image { name: image.name.clone(), volumes: image.volumes.clone(), user: image.user.clone() }
}

/// Where the process is to listen, as far as its readiness tells.
pub(super) fn addresses(process: &Process) -> Vec<String> {
    let of_url = |url: &String| {
        let url: http::Uri = url.parse().ok()?;
        Some(format!("{}:{}", url.host()?, url.port_u16().unwrap_or(80)))
    };
    process.ready.tcp.iter().cloned().chain(process.ready.http.as_ref().and_then(of_url)).collect()
}

#[cfg(test)]
mod tests {
    use unladen_sink::config::Requests;

    use super::*;

    #[test]
    fn requests_of_no_ledger_are_told_apart_by_half_an_id() {
        let ids = TraceIds { tag: 0x1234, key: 0xfeed_f00d_dead_beef };
        let requests = |ids: TraceIds| Requests { tag: ids.tag, key: ids.key };
        for (sent, index) in [(0, 0), (0, 1), (20_000, 1 << 20)] {
            let other = ids.other(sent);
            let mut id = requests(other).trace_id(index);
            assert_eq!(requests(ids).index(&id), None);
            assert_eq!(requests(ids.other(sent + 7)).index(&id), None);
            id[..8].fill(0);
            assert_eq!((requests(ids).index(&id), requests(other).index(&id)), (None, Some(index)));
        }
    }
}
