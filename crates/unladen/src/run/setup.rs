//! What stays the same over all runs of a study: cores, ports, addresses, cgroups; and how a process is made from it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::folder::RunFolder;
use super::one::Up;
use super::{RunError, load_plan, ports};
use crate::journal::record::Calibration;
use crate::linux::CpuSet;
use crate::notices::Notice;
use crate::study::plan::{Arm, Plan, Process};
use crate::study::spec::{Attributes, Faults, Sync};
use crate::study::variables::{PortName, SINKS, Variables};
use crate::subject::launch::LONGEST_PAD;
use crate::subject::{
    Launch, Launcher, LauncherOptions, Limits, Partition, Readiness, Running, SubjectError, Topology, partition,
};

/// Ids of one run's traces: see `unladen_load::trace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceIds {
    pub(super) tag: u64,
    pub(super) key: u64,
}

impl TraceIds {
    /// Ids of the same run for requests that are no part of its ledger: those before and after the window's.
    pub(super) fn other(self) -> Self {
        Self { tag: self.tag ^ 2, ..self }
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
    seed: u64,
    sinks: BTreeMap<&'static str, SocketAddr>,
    variables: Variables,
}

impl<'a> Setup<'a> {
    pub(super) fn new(plan: &'a Plan, folder: &'a RunFolder, seed: u64) -> Result<Self, RunError> {
        let names = plan.ports();
        let mut free = ports::allocate(names.len() + SINKS.len(), seed)?.into_iter();
        let sinks: BTreeMap<_, _> =
            SINKS.into_iter().zip(free.by_ref().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))).collect();
        let ports: BTreeMap<PortName, u16> = names.into_iter().zip(free).collect();
        let addresses = sinks.iter().map(|(name, address)| ((*name).to_owned(), address.to_string())).collect();
        let variables = Variables {
            ports,
            sinks: addresses,
            unladen: std::env::current_exe().unwrap_or_default(),
            environment: std::env::vars().collect(),
            ..plan.variables()
        };
        let limits = plan.arms.iter().flat_map(|arm| &arm.processes).any(|process| process.limits.are_any());
        let available = CpuSet::allowed().map_err(RunError::Cpus)?;
        let topology = Topology::read(Path::new("/sys"), &available);
        Ok(Self {
            plan,
            folder,
            launcher: Launcher::new(&LauncherOptions::new(seed, limits))?,
            partition: partition(&available, &topology, 1),
            calibrations: Vec::new(),
            seed,
            sinks,
            variables,
        })
    }

    /// Notices that every run carries.
    pub(super) fn notices(&self) -> Vec<Notice> {
        self.launcher.no_cgroups().map(|reason| Notice::NoCgroup { reason: reason.to_owned() }).into_iter().collect()
    }

    /// Where CPU time is read from, in words.
    pub(super) fn cgroups(&self) -> String {
        match (self.launcher.cgroup_version(), self.launcher.no_cgroups()) {
            (Some(version), _) => version.to_string(),
            (None, reason) => format!("process tree: {}", reason.unwrap_or("no cgroups")),
        }
    }

    /// The ports of the study by their names.
    pub(super) fn ports(&self) -> BTreeMap<String, u16> {
        let named = self.variables.ports.iter().map(|(name, port)| match name.replica {
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

    pub(super) fn variables(&self, run_dir: Option<&Path>) -> Variables {
        Variables { run_dir: run_dir.map(Path::to_owned), ..self.variables.clone() }
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
    ) -> Result<Up, RunError> {
        let process = self.resolve(process, folder)?;
        let readiness = Readiness {
            http: process.ready.http.clone(),
            tcp: process.ready.tcp.clone(),
            log: process.ready.log.clone(),
            timeout: process.ready.timeout.0,
            network: None,
        };
        if let Some(address) = addresses(&process).into_iter().find(|address| ports::taken(address, None)) {
            return Err(RunError::PortTaken { service: process.service, address });
        }
        let mut running = self.launch(&process, folder, run, &self.partition.subject)?;
        match running.wait_ready(&readiness, interrupted) {
            Ok(start_up) => {
                // Who says of nothing that it is ready has been watched for a moment only.
                let start_up_s = readiness.is_told().then_some(start_up.as_secs_f64());
                Ok(Up { process, running, start_up_s })
            }
            Err(error) => {
                let _ = running.stop(process.grace.0);
                match error {
                    SubjectError::Interrupted { .. } => Err(RunError::Interrupted),
                    error => Err(error.into()),
                }
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
        let log = folder.join("logs").join(match process.replica {
            0 => format!("{}.log", process.service),
            replica => format!("{}-{replica}.log", process.service),
        });
        let everywhere = process.limits.on_all_cores();
        let cpuset = process.limits.cpuset.as_deref().filter(|_| !everywhere).map(str::parse).transpose();
        let all = || self.partition.subject.union(&self.partition.instrument);
        let launch = Launch {
            service: process.service.clone(),
            replica: process.replica,
            command: process.command.clone(),
            env: process.env.clone(),
            cwd: process.cwd.clone(),
            log,
            cpus: Some(if everywhere { all() } else { cpus.clone() }),
            limits: Limits {
                cpus: process.limits.cpus,
                memory: process.limits.memory.map(|bytes| bytes.0),
                // The study's check has refused what is no list of CPUs.
                cpuset: cpuset.unwrap_or_default(),
            },
            network: None,
            pad: self.random(run, 1).random_range(0..=LONGEST_PAD),
        };
        Ok(self.launcher.launch(&launch)?)
    }

    /// What the sink of a run is told.
    pub(super) fn sink_config(&self, arm: &Arm, folder: &Path, ids: TraceIds) -> unladen_sink::config::Config {
        use unladen_sink::config::{Attributes as Stored, Config, Requests, Sync as Durable};
        Config {
            otlp_grpc: self.sinks.get("otlp_grpc").copied(),
            otlp_http: self.sinks.get("otlp_http").copied(),
            zipkin: self.sinks.get("zipkin").copied(),
            skywalking: self.sinks.get("skywalking").copied(),
            elastic: self.sinks.get("elastic").copied(),
            jaeger: self.sinks.get("jaeger").copied(),
            out: folder.to_owned(),
            requests: arm.is_traced().then_some(Requests { tag: ids.tag, key: ids.key }),
            attributes: match self.plan.study.sink.attributes {
                Attributes::None => Stored::None,
                Attributes::Few => Stored::Few,
                Attributes::All => Stored::All,
            },
            sync: match self.plan.study.sink.sync {
                Sync::Always => Durable::Always,
                Sync::Interval => Durable::Interval,
                Sync::End => Durable::End,
            },
            faults: arm.faults.as_ref().map(Faults::of_sink),
            ..Config::default()
        }
    }

    /// What the load generator of a run is told, without start and lengths.
    pub(super) fn load_plan(
        &self,
        arm: &Arm,
        folder: &Path,
        ids: TraceIds,
    ) -> Result<unladen_load::plan::Plan, RunError> {
        use unladen_load::plan::{Plan, Trace};
        let load = arm.load.resolve(&self.variables(Some(folder)))?;
        let trace = load_plan::header(load.trace);
        Ok(Plan {
            trace: trace.map(|header| Trace { header, tag: ids.tag, key: ids.key, sampled: arm.sampled.0 }),
            out: Some(folder.to_owned()),
            cores: self.partition.instrument.iter().take(1).map(|core| core as u32).collect(),
            ..load_plan::plan(&load, self.seed, &self.plan.dir)?
        })
    }
}

/// Where the process is to listen, as far as its readiness tells.
fn addresses(process: &Process) -> Vec<String> {
    let of_url = |url: &String| {
        let url: http::Uri = url.parse().ok()?;
        Some(format!("{}:{}", url.host()?, url.port_u16().unwrap_or(80)))
    };
    process.ready.tcp.iter().cloned().chain(process.ready.http.as_ref().and_then(of_url)).collect()
}
