//! What stays the same over all runs of a study: cores, ports, addresses, cgroups; and how a process is made from it.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::folder::RunFolder;
use super::one::Up;
use super::{RunError, ports};
use crate::notices::Notice;
use crate::study::plan::{Arm, Plan, Process};
use crate::study::spec::{Attributes, TraceHeader};
use crate::study::variables::{self, Variables};
use crate::subject::{Launch, Launcher, Limits, Partition, Readiness, log_tail};

/// Port names that `${sink.NAME}` stands for.
const SINK_PORTS: [&str; 2] = ["sink.otlp_grpc", "sink.otlp_http"];

/// Ids of one run's traces: see `unladen_load::trace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceIds {
    pub(super) tag: u64,
    pub(super) key: u64,
}

/// Everything that the runs of a study share.
#[derive(Debug)]
pub(super) struct Setup<'a> {
    pub(super) plan: &'a Plan,
    pub(super) folder: &'a RunFolder,
    pub(super) launcher: Launcher,
    pub(super) partition: Partition,
    seed: u64,
    ports: HashMap<String, u16>,
}

/// Now on `CLOCK_MONOTONIC`, ns: the clock that all processes of a machine share.
pub(super) fn clock_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl<'a> Setup<'a> {
    pub(super) fn new(plan: &'a Plan, folder: &'a RunFolder, seed: u64) -> Result<Self, RunError> {
        let mut names = variables::ports(plan);
        names.extend(SINK_PORTS.map(str::to_owned));
        Ok(Self {
            plan,
            folder,
            launcher: Launcher::new()?,
            partition: Partition::of_this_machine()?,
            seed,
            ports: ports::allocate(&names, seed)?,
        })
    }

    /// Notices that every run carries.
    pub(super) fn notices(&self) -> Vec<Notice> {
        self.launcher.no_cgroup().map(|reason| Notice::NoCgroup { reason: reason.to_owned() }).into_iter().collect()
    }

    /// Whether requests carry trace ids.
    pub(super) fn traced(&self) -> bool {
        self.plan.study.load.trace != TraceHeader::None
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

    fn address(&self, port: &str) -> SocketAddr {
        // Every name was allocated in `new`.
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.get(port).copied().unwrap_or(0)))
    }

    fn variables(&self, service: Option<(&str, u32)>) -> Variables {
        Variables {
            ports: self.ports.clone(),
            sink_otlp_grpc: self.address(SINK_PORTS[0]).to_string(),
            sink_otlp_http: self.address(SINK_PORTS[1]).to_string(),
            study_dir: self.plan.dir.clone(),
            run_dir: self.folder.path().to_owned(),
            executable: std::env::current_exe().unwrap_or_default(),
            user: self.plan.study.variables.clone(),
            service: service.map(|(name, replica)| (name.to_owned(), replica)),
        }
    }

    /// Processes with their run-time variables filled in.
    pub(super) fn resolve(&self, process: &Process) -> Result<Process, RunError> {
        Ok(process.resolve(&self.variables(Some((&process.service, process.replica))))?)
    }

    /// Starts a process and waits until it is ready.
    pub(super) fn start(
        &self,
        process: &Process,
        logs: &Path,
        run: u32,
        interrupted: &AtomicBool,
    ) -> Result<Up, RunError> {
        let process = self.resolve(process)?;
        let log = logs.join(match process.replica {
            0 => format!("{}.log", process.service),
            replica => format!("{}-{replica}.log", process.service),
        });
        let readiness = Readiness {
            http: process.ready.http.clone(),
            tcp: process.ready.tcp.clone(),
            log: process.ready.log.clone(),
            timeout: process.ready.timeout.0,
        };
        if let Some(address) = readiness.address().filter(|address| ports::taken(address)) {
            return Err(RunError::PortTaken { service: process.service, address });
        }
        let mut launch = Launch::new(&process.service, process.command.clone(), &log);
        launch.replica = process.replica;
        launch.env = process.env.clone();
        launch.cwd = Some(process.cwd.clone());
        launch.cpus = self.partition.subject_cpus();
        launch.limits = Limits {
            cpus: process.limits.cpus,
            memory: process.limits.memory.map(|bytes| bytes.0),
            cpuset: process.limits.cpuset.clone(),
        };
        launch.padding = self.random(run, 1).random_range(0..4096);
        let started = Instant::now();
        let mut running = self.launcher.launch(&launch)?;
        match running.wait_ready(&readiness, interrupted) {
            Ok(_) => Ok(Up { process, running, log, start_up_s: started.elapsed().as_secs_f64() }),
            Err(error) => {
                running.stop(process.grace.0);
                let tail = log_tail(&log, 8);
                Err(RunError::NotReady { source: error, log, tail })
            }
        }
    }

    /// What the sink of a run is told.
    pub(super) fn sink_config(&self, folder: &Path, ids: TraceIds) -> unladen_sink::config::Config {
        use unladen_sink::config::{Attributes as Stored, Config, Requests};
        Config {
            otlp_grpc: Some(self.address(SINK_PORTS[0])),
            otlp_http: Some(self.address(SINK_PORTS[1])),
            out: folder.to_owned(),
            requests: self.traced().then_some(Requests { tag: ids.tag, key: ids.key }),
            attributes: match self.plan.study.sink.attributes {
                Attributes::None => Stored::None,
                Attributes::Few => Stored::Few,
                Attributes::All => Stored::All,
            },
            ..Config::default()
        }
    }

    /// What the load generator of a run is told.
    pub(super) fn load_plan(
        &self,
        arm: &Arm,
        folder: &Path,
        ids: TraceIds,
        start_ns: u64,
    ) -> Result<unladen_load::plan::Plan, RunError> {
        use unladen_load::plan::{Check, Pacing, Plan, Trace, TraceHeader as Header};
        let study = &self.plan.study;
        let load = study.load.resolve(&self.variables(None))?;
        Ok(Plan {
            url: load.url,
            method: load.method,
            headers: load.headers.into_iter().collect(),
            body: load.body,
            pacing: load.rate.map_or(Pacing::Closed, |rate| Pacing::Constant { rate }),
            connections: load.connections,
            start_at_ns: Some(start_ns),
            warmup_s: study.warmup.as_seconds(),
            window_s: study.window.as_seconds(),
            timeout_s: load.timeout.as_seconds(),
            trace: match load.trace {
                TraceHeader::W3c => {
                    Some(Trace { header: Header::W3c, tag: ids.tag, key: ids.key, sampled: arm.sampled.0 })
                }
                TraceHeader::None => None,
            },
            check: Check { status: load.check.status, length: load.check.length },
            out: Some(folder.to_owned()),
        })
    }
}
