//! One run: fresh processes, ready, warm-up, window, drain, stop. The unit of evidence.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use unladen_journal::notices::Notice;
use unladen_journal::record::{Ledger, ProcessRecord, RunRecord};
use unladen_journal::role::Role;
use unladen_processes::linux::Netns;
use unladen_processes::probe::scrape::{Endpoint, Wanted};
use unladen_processes::probe::{Target, timeline};
use unladen_processes::subject::{Ended, Running, SubjectError};
use unladen_sink::ledger::{Learned, Shortfall};
use unladen_sink::summary::Summary;
use unladen_study::plan::{PlannedVariant, Process};
use unladen_study::spec::{Drain, Faults, Keep, Scrape, ScrapeKind};

use super::RunError;
use super::after;
use super::checks;
use super::expected::Expected;
use super::instrument::{InstrumentError, RelayPart, SinkPart};
use super::ledger;
use super::profile::Profiler;
use super::queries::{self, NumberQuery};
use super::reported_losses;
use super::schedule::Slot;
use super::setup::{Setup, Site, TraceIds};
use super::watch::{Phase, Step, Watcher};
use super::window::WindowResult;

/// How long the sink may be quiet after the last process has ended before the ledger is closed.
pub(super) const LAST_QUIET: Duration = Duration::from_millis(150);

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
}

/// What a run needs besides the study's setup.
pub(super) struct Run<'a> {
    pub(super) setup: Site<'a>,
    pub(super) shared: &'a mut [RunningService],
    pub(super) slot: Slot,
    pub(super) number: u32,
    pub(super) interrupted: &'a AtomicBool,
    /// Samples the subjects over the window.
    pub(super) profiler: Option<&'a mut Profiler>,
}

/// What belongs to one run while it is measured.
pub(super) struct RunContext<'w> {
    /// Folder of the run.
    pub(super) folder: PathBuf,
    /// Its logs.
    pub(super) logs: PathBuf,
    /// Ids of the traces of the window.
    pub(super) ids: TraceIds,
    pub(super) sink: SinkPart,
    /// Takes services in a network of their own to what is outside.
    pub(super) relay: Option<RelayPart>,
    /// Services of the run.
    pub(super) services: Vec<RunningService>,
    pub(super) record: RunRecord,
    /// What services have yet to say.
    pub(super) expected: Expected,
    /// Numbers that the study asks for.
    queries: Numbers,
    /// Requests with other trace ids, whose spans are no part of the ledger.
    pub(super) others: u64,
    watcher: &'w Watched<'w>,
}

/// Who watches, for several runs at the same time.
pub(super) type Watched<'w> = RefCell<&'w mut dyn Watcher>;

impl RunContext<'_> {
    /// Asks agents once more what they lost.
    pub(super) fn ask_again(&mut self) {
        self.queries.losses.iter_mut().for_each(NumberQuery::ask_again);
    }

    /// Tells whoever watches.
    pub(super) fn see(&self, step: Step<'_>) {
        self.watcher.borrow_mut().see(step);
    }
}

/// How the services of a run ended: name, replica, how.
pub(super) type Ends = Vec<(String, u32, Ended)>;

impl<'a> Run<'a> {
    pub(super) fn variant(&self) -> &'a PlannedVariant {
        &self.setup.plan().variants[self.slot.variant]
    }

    /// Does the run. The record is complete even when the run is void; an error means that the study cannot go on.
    pub(super) fn perform(mut self, watcher: &mut dyn Watcher) -> Result<RunRecord, RunError> {
        let watched: Watched<'_> = RefCell::new(&mut *watcher);
        let mut context = self.open(&watched)?;
        let result = self.start(&mut context).and_then(|()| match context.record.void {
            Some(_) => Ok(WindowResult::default()),
            None => self.measure(&mut context),
        });
        match result {
            Ok(result) => {
                let ends = self.stop(&mut context, &result)?;
                self.conclude(context, result, &ends)
            }
            Err(error) => {
                // The first error is the one to tell.
                let _ = stop_all(&mut context.services);
                Err(error)
            }
        }
    }

    /// The folder of the run and its sink; nothing else has been started.
    pub(super) fn open<'w>(&self, watcher: &'w Watched<'w>) -> Result<RunContext<'w>, RunError> {
        let variant = self.variant();
        watcher.borrow_mut().see(Step::Run { slot: self.slot, variant });
        let dir = match self.profiler {
            Some(_) => format!("runs/profile-{}", variant.name),
            None => format!("runs/{:02}-{}", self.number, variant.name),
        };
        let folder = self.setup.folder.run(&dir)?;
        let logs = folder.join("logs");
        let record = RunRecord {
            run: self.number,
            round: self.slot.round,
            slot: self.slot.slot,
            attempt: self.slot.attempt,
            variant: variant.name.clone(),
            kind: variant.kind,
            cell: variant.cell.clone(),
            against: variant.against.clone(),
            dir,
            started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            notices: self.setup.notices(),
            faults: variant.faults.as_ref().map(Faults::of_sink),
            ..RunRecord::empty()
        };

        watcher.borrow_mut().see(Step::Phase(Phase::Start));
        let ids = self.setup.trace_ids(self.number);
        let sink = SinkPart::start(
            &self.setup.launcher,
            &self.setup.sink_config(variant, &folder, ids),
            &self.setup.partition.instrument,
            &logs,
            self.setup.network(),
        )?;
        let relay = self.setup.relay(variant, &folder, &logs)?;
        let (services, expected, queries) = (Vec::new(), Expected::default(), Numbers::default());
        Ok(RunContext { folder, logs, ids, sink, relay, services, record, expected, queries, others: 0, watcher })
    }

    /// Starts the services and waits until they are ready and set up. If something is wrong with the set-up, the record is void.
    pub(super) fn start(&mut self, context: &mut RunContext<'_>) -> Result<(), RunError> {
        let (variant, started) = (self.variant(), Instant::now());
        self.start_services(variant, context)?;
        context.record.phases.start_s = started.elapsed().as_secs_f64();
        self.set_up(context)?;
        if context.record.void.is_none() {
            context.queries = Numbers::before(self.setup, variant)?;
        }
        Ok(())
    }

    /// Stops the services; what they flush as they end still arrives.
    pub(super) fn stop(&self, context: &mut RunContext<'_>, result: &WindowResult) -> Result<Ends, RunError> {
        let variant = self.variant();
        context.see(Step::Phase(Phase::Stop));
        let stopping = Instant::now();
        let wanted = ledger::wanted(variant, result.outcome.as_ref(), context.others);
        let RunContext { services, queries, record, .. } = context;
        let (ends, counted) = stop_in_two_steps(&self.setup, variant, services, || {
            let interrupted = || self.interrupted.load(Ordering::Relaxed);
            let limit = &self.setup.plan.study.drain;
            queries::settle(&mut queries.backends, limit, wanted, interrupted, &mut record.notices)
        });
        let ends = ends?;
        context.record.counted = counted;
        while context.sink.quiet().min(stopping.elapsed()) < LAST_QUIET {
            context.sink.look(Duration::from_millis(20))?;
        }
        context.record.phases.stop_s = stopping.elapsed().as_secs_f64();
        Ok(ends)
    }

    /// Everything between the readiness of the services and their end.
    fn measure(&mut self, context: &mut RunContext<'_>) -> Result<WindowResult, RunError> {
        let result = self.window(context)?;
        if result.observation.is_some() {
            self.drain(context, &result)?;
            self.look_back(context)?;
        }
        // A profile is of the window alone.
        if result.outcome.is_some() && context.record.void.is_none() && self.profiler.is_none() {
            let started = Instant::now();
            self.after(context)?;
            context.record.phases.after_s = started.elapsed().as_secs_f64();
        }
        context.ask_again();
        Ok(result)
    }

    /// What the study's own programs create before the load.
    fn set_up(&mut self, context: &mut RunContext<'_>) -> Result<(), RunError> {
        let variant = self.variant();
        context.expected = Expected::of(self.shared.iter().chain(&context.services), self.setup.folder.path());
        if variant.programs(Role::Setup).next().is_some() {
            context.see(Step::Phase(Phase::Setup));
            let started = Instant::now();
            self.programs(context, Role::Setup)?;
            context.record.phases.setup_s = started.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// Whether the run was what it should be: what the services said by now, and what the study's own programs find.
    pub(super) fn look_back(&mut self, context: &mut RunContext<'_>) -> Result<(), RunError> {
        let void = context.record.void.take();
        context.record.void = void.or_else(|| context.expected.missing());
        if context.record.void.is_none() && self.variant().programs(Role::Check).next().is_some() {
            context.see(Step::Phase(Phase::Check));
            let started = Instant::now();
            self.programs(context, Role::Check)?;
            context.record.phases.check_s = started.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// Saturation and capacity, as far as the study asks for them.
    fn after(&mut self, context: &mut RunContext<'_>) -> Result<(), RunError> {
        let study = &self.setup.plan().study;
        if study.saturation.is_none() && study.capacity.is_none() {
            return Ok(());
        }
        let plan = self.setup.load_plan(self.variant(), &context.folder, context.ids.other())?;
        if let Some(wanted) = &study.saturation {
            context.see(Step::Phase(Phase::Saturation));
            let (found, sent) = after::saturate(&plan, wanted, self.interrupted)?;
            context.others += sent;
            context.record.saturation = Some(found);
        }
        if let Some(wanted) = &study.capacity {
            context.see(Step::Phase(Phase::Capacity));
            let (found, sent) = after::search(&plan, wanted, self.interrupted)?;
            context.others += sent;
            context.record.capacity = Some(found);
        }
        self.check_interrupted()?;
        context.record.notices.extend(checks::after(&context.record, study));
        context.record.void = self.died(context);
        context.sink.look(Duration::ZERO)?;
        Ok(())
    }

    /// An error if the user has interrupted the study.
    pub(super) fn check_interrupted(&self) -> Result<(), RunError> {
        if self.interrupted.load(Ordering::Relaxed) { Err(RunError::Interrupted) } else { Ok(()) }
    }

    /// Starts the services of the run in order and waits until each is ready.
    fn start_services(&self, variant: &PlannedVariant, context: &mut RunContext<'_>) -> Result<(), RunError> {
        for process in variant.fresh() {
            let service = self.setup.start(process, &context.folder, self.number, self.interrupted)?;
            context.services.push(service);
        }
        Ok(())
    }

    /// Waits for the spans that are still on their way.
    pub(super) fn drain(&self, context: &mut RunContext<'_>, result: &WindowResult) -> Result<(), RunError> {
        context.see(Step::Phase(Phase::Drain));
        let draining = Instant::now();
        let wanted = ledger::wanted(self.variant(), result.outcome.as_ref(), context.others);
        let result = self.await_spans(context, wanted);
        context.record.phases.drain_s = draining.elapsed().as_secs_f64();
        result
    }

    fn await_spans(&self, context: &mut RunContext<'_>, wanted: Option<u64>) -> Result<(), RunError> {
        let limit = &self.setup.plan().study.drain;
        if !context.queries.backends.is_empty() {
            // Senders may still hold what a slow backend has not taken from them, and not all of them send it as they end.
            let interrupted = || self.interrupted.load(Ordering::Relaxed);
            queries::settle(&mut context.queries.backends, limit, wanted, interrupted, &mut Vec::new());
            context.sink.look(Duration::ZERO)?;
            return self.check_interrupted();
        }
        if drain(&mut context.sink, limit, wanted, self.interrupted)? {
            context.record.notices.push(Notice::DrainLimit { limit_s: limit.limit.as_seconds() });
        }
        Ok(())
    }

    /// Closes the sink and the ledger, and puts everything that was measured into the record.
    pub(super) fn conclude(
        &self,
        context: RunContext<'_>,
        result: WindowResult,
        ends: &Ends,
    ) -> Result<RunRecord, RunError> {
        let RunContext { folder, sink, services, mut record, queries, others, .. } = context;
        let summary = sink.finish()?;
        record.reported_losses = reported_losses::read(self.variant(), &services, &queries.losses, &mut record.notices);
        if let Some(observation) = result.observation {
            if let Err(error) = timeline::write(&folder.join("timeline.parquet"), &observation.timeline) {
                record
                    .notices
                    .push(Notice::Unwritten { file: "timeline.parquet".to_owned(), error: error.to_string() });
            }
            let (instrument, mut processes): (Vec<_>, Vec<_>) =
                observation.processes.into_iter().partition(|process| process.role.is_none());
            for process in &mut processes {
                complete(process, self.shared.iter().chain(&services), ends);
            }
            record.notices.extend(checks::scrapes(&observation.scraped));
            record.notices.extend(checks::disturbances(&processes, &observation.host, record.phases.window_s));
            record.processes = processes;
            record.instrument = instrument;
            record.host = observation.host;
        }
        for (service, _, ended) in ends {
            if let Ended::Killed(grace) = ended {
                record.notices.push(Notice::Killed { service: service.clone(), grace_s: grace.as_secs_f64() });
            }
        }
        record.load = result.outcome;
        self.close_ledger(&mut record, &summary, others);
        record.sink = Some(summary);
        Ok(record)
    }

    /// The ledger. Without one the report has no account of spans; why is plain from the study (nothing declared, nothing
    /// calibrated) or from the summary (no spans).
    fn close_ledger(&self, record: &mut RunRecord, summary: &Summary, others: u64) {
        let is_traced = self.variant().is_traced();
        record.ledger = ledger::account(self.variant(), is_traced, record, summary, others);
        let is_known = record.ledger.as_ref().is_some_and(|ledger| ledger.expected > 0);
        if is_known && !is_traced {
            record.notices.push(Notice::LedgerByCounts);
        }
        record.shortfalls = self.shortfalls(record.ledger.as_ref(), summary);
    }

    /// Operations that lack spans, by what the calibration says.
    fn shortfalls(&self, ledger: Option<&Ledger>, summary: &Summary) -> Vec<Shortfall> {
        let learned = self.setup.calibrations.iter().find(|it| it.variant == self.variant().name);
        match (ledger, learned) {
            (Some(ledger), Some(learned)) if ledger.lost > 0 && !ledger.by_count => {
                Learned { operations: learned.operations.clone(), ..Learned::default() }.shortfalls(ledger, summary)
            }
            _ => Vec::new(),
        }
    }
}

/// Numbers that the study asks for.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    backends: Vec<NumberQuery>,
    losses: Vec<NumberQuery>,
}

impl Numbers {
    fn before(setup: Site<'_>, variant: &PlannedVariant) -> Result<Self, RunError> {
        Ok(Self { backends: queries::backends(setup, variant)?, losses: queries::losses(setup, variant)? })
    }
}

/// Waits for the spans that are still on their way; whether they still arrived when the time was up.
pub(super) fn drain(
    sink: &mut SinkPart,
    drain: &Drain,
    wanted: Option<u64>,
    interrupted: &AtomicBool,
) -> Result<bool, InstrumentError> {
    let started = Instant::now();
    loop {
        sink.look(Duration::from_millis(20))?;
        let all_there = wanted.is_some_and(|wanted| sink.received() >= wanted);
        let quiet = sink.quiet().min(started.elapsed()) >= drain.quiet.0;
        if all_there || quiet || interrupted.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if started.elapsed() >= drain.limit.0 {
            return Ok(sink.quiet() < Duration::from_millis(500));
        }
    }
}

/// Stops the processes, and in between, when those that send have flushed what they held but the backends that the study counts
/// (and what these need) still run, does `between`. Without such backends `between` comes last.
pub(super) fn stop_in_two_steps<T>(
    setup: &Setup<'_>,
    variant: &PlannedVariant,
    services: &mut Vec<RunningService>,
    between: impl FnOnce() -> T,
) -> (Result<Ends, SubjectError>, T) {
    let counted = queries::counted_services(&setup.plan.study, variant);
    let (mut backends, mut senders): (Vec<RunningService>, Vec<RunningService>) =
        services.drain(..).partition(|service| counted.contains(&service.process.service));
    let first = stop_all(&mut senders);
    let result = between();
    let second = stop_all(&mut backends);
    // Those that were started first stand first again.
    services.append(&mut backends);
    services.append(&mut senders);
    let ends = first.and_then(|mut ends| {
        ends.extend(second?);
        Ok(ends)
    });
    (ends, result)
}

/// Start-up time and end of a process, which the probe does not know.
fn complete<'a>(
    record: &mut ProcessRecord,
    mut services: impl Iterator<Item = &'a RunningService>,
    ends: &[(String, u32, Ended)],
) {
    let same = |service: &str, replica: u32| service == record.service && replica == record.replica;
    record.start_up_s = services
        .find(|service| same(&service.process.service, service.process.replica))
        .and_then(|service| service.start_up_s);
    record.ended = ends
        .iter()
        .find(|(service, replica, _)| same(service, *replica))
        .map_or_else(|| "running".to_owned(), |(_, _, ended)| ended.to_string());
}

pub(super) fn target(service: &RunningService) -> Target {
    Target {
        endpoint: service.process.scrape.as_ref().map(|scrape| endpoint(scrape, service.network.clone())),
        service: service.process.service.clone(),
        replica: service.process.replica,
        role: Some(service.process.role),
        family: service.running.family().clone(),
        cgroup: service.running.cgroup().cloned(),
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

pub(super) fn instrument((name, running): (&str, &Running)) -> Target {
    Target {
        endpoint: None,
        service: name.to_owned(),
        replica: 0,
        role: None,
        family: running.family().clone(),
        cgroup: running.cgroup().cloned(),
    }
}

/// How a service ended, if it has.
pub(super) fn died(service: &mut RunningService) -> Option<Notice> {
    let ended = service.running.alive()?;
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
