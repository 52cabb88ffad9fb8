//! One variant as it runs: the processes to start, in order, with everything merged that the study says of them.
//!
//! Of a study without a matrix, or of one cell of it.

use std::path::PathBuf;

use indexmap::IndexMap;
use unladen_journal::record::VariantKind;
use unladen_journal::role::Role;
use unladen_journal::units::{Ratio, Time};

use super::agents::{self, Under};
use super::key::KeyPath;
use super::matrix::Cell;
use super::order::start_order;
use super::problem::{Problem, ProblemKind};
use super::spec::{
    BASELINE, Command, Faults, Lifetime, Limits, Load, Loss, Override, PLACEBO, Ready, Scrape, Service, Stop, Study,
    TraceHeader, Variant,
};
use super::stack::{Pod, Stack};
use super::variables::{Reference, VariableError, expand};
use super::words;

/// One variant with everything that its runs need.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedVariant {
    /// What it is called: the key of the variant; `placebo` for the placebo; of a matrix, with its values: `full@spans=5`.
    pub name: String,
    /// Key of the variant in the study.
    pub key: String,
    /// The values of the matrix that it depends on.
    pub cell: Cell,
    /// Name of the variant that it is held against.
    pub against: String,
    /// What is asked of it.
    pub load: Load,
    /// Name for people.
    pub label: String,
    /// What the variant is for.
    pub kind: VariantKind,
    /// Processes in start order (after `needs`), replicas unrolled; also those that live through the study.
    pub processes: Vec<Process>,
    /// What brings its other processes: a Compose project, or the manifests of a cluster.
    pub stack: Option<Stack>,
    /// Declared spans per sampled request. `Some(0.0)` for baseline and placebo unless the study says otherwise.
    pub spans_per_request: Option<f64>,
    /// Whether `spans_per_request` was learned in the calibration.
    pub calibrated: bool,
    /// Share of requests that carry the sampled flag.
    pub sampled: Ratio,
    /// What the sink does to its senders.
    pub faults: Option<Faults>,
    /// Where the agent tells what it lost itself, by stage.
    pub losses: IndexMap<String, Loss>,
}

/// One process to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Name of its service.
    pub service: String,
    /// 0, 1, … within the service.
    pub replica: u32,
    /// What the service is in the study.
    pub role: Role,
    /// Fresh for every run, or one for the study.
    pub lifetime: Lifetime,
    /// Program first, then its arguments; of a container what replaces the image's own, if anything.
    pub command: Vec<String>,
    /// The container to run it in; `None`: it is a process of this machine.
    pub image: Option<Image>,
    /// What it is in the manifests of a cluster.
    pub pod: Option<Pod>,
    /// Environment on top of unladen's own.
    pub env: IndexMap<String, String>,
    /// The agent that it runs under; command and environment are with it.
    pub agent: Option<Under>,
    /// Working directory; absolute once resolved.
    pub cwd: PathBuf,
    /// Command that builds it, if any.
    pub build: Option<Vec<String>>,
    /// When it counts as ready.
    pub ready: Ready,
    /// Regular expressions: what it must have said when the window begins.
    pub expect_log: Vec<String>,
    /// Longest time that it may take, if it is a check or a setup.
    pub at_most: Time,
    /// Limits on its cgroup.
    pub limits: Limits,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Time,
    /// What to keep of the metrics that it shows of itself.
    pub scrape: Option<Scrape>,
    /// Where it gives its CPU profile.
    pub pprof: Option<String>,
}

/// What a service's container is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// What is mounted, as in the study; host paths absolute once resolved.
    pub volumes: Vec<String>,
    /// User in the container; `None`: the image's.
    pub user: Option<String>,
}

/// Longest time that a check or a setup may take, unless the study says otherwise.
const MAX_CHECK_OR_SETUP_TIME: Time = Time(std::time::Duration::from_secs(60));

impl Process {
    /// Whether the stack of its variant brings it.
    #[must_use]
    pub fn is_stacked(&self) -> bool {
        self.command.is_empty() && self.image.is_none()
    }

    /// A service of a stack that the study does not name.
    #[must_use]
    pub fn of_stack(service: &str) -> Self {
        Self {
            service: service.to_owned(),
            replica: 0,
            role: Role::Dependency,
            lifetime: Lifetime::Run,
            command: Vec::new(),
            image: None,
            pod: None,
            env: IndexMap::new(),
            agent: None,
            cwd: PathBuf::new(),
            build: None,
            ready: Ready::default(),
            expect_log: Vec::new(),
            at_most: MAX_CHECK_OR_SETUP_TIME,
            limits: Limits::default(),
            grace: Stop::default().grace,
            scrape: None,
            pprof: None,
        }
    }
}

impl PlannedVariant {
    /// A variant of nothing.
    #[must_use]
    pub fn empty(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            key: name.to_owned(),
            cell: Cell::new(),
            against: BASELINE.to_owned(),
            load: Load::new("http://127.0.0.1/"),
            label: name.to_owned(),
            kind: VariantKind::Variant,
            processes: Vec::new(),
            stack: None,
            spans_per_request: None,
            calibrated: false,
            sampled: Ratio(1.0),
            faults: None,
            losses: IndexMap::new(),
        }
    }

    /// Whether its requests carry trace ids.
    #[must_use]
    pub fn is_traced(&self) -> bool {
        self.load.trace != TraceHeader::None && self.load.driver.is_none()
    }

    /// Whether a service runs in the variant.
    #[must_use]
    pub fn runs(&self, service: &str) -> bool {
        self.processes.iter().any(|process| process.service == service)
    }

    /// Processes that live through the study, in start order.
    pub fn shared(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|process| process.lifetime == Lifetime::Study)
    }

    /// Processes that are started afresh for every run of this variant, in start order.
    pub fn fresh(&self) -> impl Iterator<Item = &Process> {
        let is_fresh = |process: &&Process| process.lifetime == Lifetime::Run && !process.role.ends_by_itself();
        self.processes.iter().filter(is_fresh)
    }

    /// The program that does the work of the load, if the study has one. It is started when everything else is ready.
    #[must_use]
    pub fn driver(&self) -> Option<&Process> {
        self.programs(Role::Driver).next()
    }

    /// The programs of a role that run to their end, in the order of the study after `needs`.
    pub fn programs(&self, role: Role) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(move |process| role.ends_by_itself() && process.role == role)
    }
}

/// Each service and replica once, as it comes first.
pub(super) fn once<'a>(processes: impl Iterator<Item = &'a Process>) -> Vec<&'a Process> {
    let mut found: Vec<&Process> = Vec::new();
    for process in processes {
        if !found.iter().any(|known| known.service == process.service && known.replica == process.replica) {
            found.push(process);
        }
    }
    found
}

/// Baseline, placebo, variants.
pub(super) fn variants(study: &Study) -> Result<Vec<PlannedVariant>, Box<Problem>> {
    let order = start_order(&study.services).map_err(|circle| {
        let kind = ProblemKind::Circle { circle: circle.join(" → ") };
        Problem::boxed(KeyPath::of(&["services"]), None, kind)
    })?;
    let mut variants = Vec::with_capacity(study.variants.len() + 1);
    if let Some(baseline) = study.variants.get(BASELINE) {
        variants.push(planned(study, &order, BASELINE, baseline, VariantKind::Baseline)?);
        if study.placebo {
            variants.push(planned(study, &order, BASELINE, baseline, VariantKind::Placebo)?);
        }
    }
    for (name, variant) in study.variants.iter().filter(|(name, _)| *name != BASELINE) {
        variants.push(planned(study, &order, name, variant, VariantKind::Variant)?);
    }
    Ok(variants)
}

fn planned(
    study: &Study,
    order: &[&str],
    key: &str,
    variant: &Variant,
    kind: VariantKind,
) -> Result<PlannedVariant, Box<Problem>> {
    let unchanged = Override::default();
    let mut processes = Vec::new();
    for name in order {
        let Some(service) = study.services.get(*name).filter(|service| service.runs_in(key)) else { continue };
        let change = variant.services.get(*name);
        for replica in 0..service.replicas {
            let process = process(study, name, service, change.unwrap_or(&unchanged), replica);
            let path = match change {
                Some(_) => KeyPath::of(&["variants", key, "services", name]),
                None => KeyPath::of(&["services", name]),
            };
            processes.push(process.map_err(|kind| Problem::boxed(path, None, kind))?);
        }
    }
    let name = if kind == VariantKind::Placebo { PLACEBO } else { key };
    Ok(PlannedVariant {
        name: name.to_owned(),
        key: key.to_owned(),
        cell: Cell::new(),
        against: BASELINE.to_owned(),
        load: Load { trace: trace(study, variant), ..load(study)? },
        label: variant.label.clone().filter(|_| kind != VariantKind::Placebo).unwrap_or_else(|| name.to_owned()),
        kind,
        processes,
        stack: Stack::of(study, variant),
        // The bare service makes no spans, so that any that arrive in its runs are unexplained.
        spans_per_request: variant.spans_per_request.or((kind != VariantKind::Variant).then_some(0.0)),
        calibrated: false,
        sampled: variant.sampled.unwrap_or(Ratio(1.0)),
        faults: variant.faults.clone().or_else(|| study.sink.faults.clone()),
        losses: variant.losses.clone(),
    })
}

/// The header of a variant's requests: what an agent reads comes after what the study says.
pub(super) fn trace(study: &Study, variant: &Variant) -> TraceHeader {
    let of_agents = || variant.agents().next().map(|preset| preset.trace);
    match (variant.trace, study.load.trace) {
        (Some(own), _) => own,
        (None, TraceHeader::W3c) => of_agents().unwrap_or_default(),
        (None, of_load) => of_load,
    }
}

/// The load with the study's variables filled in.
fn load(study: &Study) -> Result<Load, Box<Problem>> {
    let mut load = study.load.clone();
    for (path, text) in load.texts_mut() {
        *text = expand(text, &study.variables, |_| None).map_err(|error| Problem::boxed(path, None, error.into()))?;
    }
    Ok(load)
}

fn process(
    study: &Study,
    name: &str,
    service: &Service,
    change: &Override,
    replica: u32,
) -> Result<Process, ProblemKind> {
    // Within a service with replicas, a port is the replica's own, unless it is named after another service.
    let own = |reference: &Reference| match reference {
        Reference::Replica => Some(replica.to_string()),
        Reference::Port { name: port, replica: None } if service.replicas > 1 => {
            let of_another = port != name && study.services.contains_key(port);
            (!of_another).then(|| format!("${{port.{port}.{replica}}}"))
        }
        _ => None,
    };
    let text = |text: &str| -> Result<String, VariableError> { expand(text, &study.variables, own) };
    let build_text = |text: &str| -> Result<String, VariableError> { expand(text, &study.variables, |_| None) };
    let optional = |value: &Option<String>| value.as_deref().map(text).transpose();

    let scrape = |scrape: &Scrape| Ok::<_, VariableError>(Scrape { url: text(&scrape.url)?, ..scrape.clone() });

    let command = match (&change.command, &change.image) {
        (Some(command), _) => command,
        // A program of this machine says nothing to a container that takes its place.
        (None, Some(_)) if service.image.is_none() => &Command::default(),
        (None, _) => &service.command,
    };
    let mut command = if command.is_absent() { Vec::new() } else { words_of(command, text)? };
    for argument in service.args.iter().chain(&change.args) {
        command.push(text(argument)?);
    }
    let mut env = IndexMap::new();
    let agent = change.agent.as_ref().and_then(|agent| Some((agent, agents::find(&agent.name)?)));
    let agent = match agent {
        Some((agent, preset)) => {
            let path = agent.path_in_study();
            for (name, value) in preset.environment(agent.spans, path.as_deref(), name) {
                env.insert(name, text(&value)?);
            }
            let words = preset.words(path.as_deref(), name).iter().map(|word| text(word)).collect::<Result<_, _>>()?;
            let path = optional(&path)?;
            let put = preset.put(words, path.as_deref(), command);
            command = put.map_err(|error| ProblemKind::of_agent(preset, error))?;
            Some(Under { preset, path })
        }
        None => None,
    };
    let pod = Pod::of(service, change, text)?;
    let image = match optional(&change.image)?.or(optional(&service.image)?) {
        Some(name) if pod.is_none() => {
            let volumes = service.volumes.iter().chain(&change.volumes).map(|volume| text(volume));
            Some(Image { name, volumes: volumes.collect::<Result<_, _>>()?, user: optional(&service.user)? })
        }
        _ => None,
    };
    for (name, value) in service.env.iter().chain(&change.env) {
        env.insert(name.clone(), text(value)?);
    }
    let build = change.build.as_ref().or(service.build.as_ref());
    let ready = change.ready.as_ref().unwrap_or(&service.ready);
    let cwd = optional(&change.cwd)?.or(optional(&service.cwd)?);
    Ok(Process {
        service: name.to_owned(),
        replica,
        role: service.role,
        lifetime: service.lifetime,
        command,
        image,
        pod,
        env,
        agent,
        cwd: PathBuf::from(cwd.unwrap_or_default()),
        build: build.map(|build| words_of(build, build_text)).transpose()?,
        ready: Ready {
            http: optional(&ready.http)?,
            tcp: optional(&ready.tcp)?,
            log: optional(&ready.log)?,
            healthy: ready.healthy,
            timeout: ready.timeout,
        },
        // Patterns are as they stand: a `$` in them is an end of a line.
        expect_log: service.expect_log.all().iter().chain(change.expect_log.all()).cloned().collect(),
        at_most: service.at_most.unwrap_or(MAX_CHECK_OR_SETUP_TIME),
        limits: change.limits.clone().unwrap_or_else(|| service.limits.clone()),
        grace: service.stop.grace,
        pprof: optional(&service.pprof)?,
        scrape: service.scrape.as_ref().map(scrape).transpose()?,
    })
}

/// Program and arguments. Split before anything is filled in, so that a value never splits a word.
fn words_of(
    command: &Command,
    text: impl Fn(&str) -> Result<String, VariableError>,
) -> Result<Vec<String>, ProblemKind> {
    let fill = |word: &str| text(word).map_err(ProblemKind::from);
    match command {
        Command::Line(line) => words::filled(line, fill),
        Command::Words(words) => words.iter().map(|word| fill(word)).collect(),
    }
}
