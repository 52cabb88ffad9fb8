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
use super::books;
use super::checks;
use super::expected::Expected;
use super::instrument::{InstrumentError, RelayPart, SinkPart};
use super::profile::Profiler;
use super::queries::{self, Asked};
use super::schedule::Slot;
use super::setup::{Setup, Site, TraceIds};
use super::told;
use super::watch::{Phase, Step, Watcher};
use super::window::Seen;

/// How long the sink may be quiet after the last process has ended before the books are closed.
pub(super) const LAST_QUIET: Duration = Duration::from_millis(150);

/// A process of the study that is up.
#[derive(Debug)]
pub(super) struct Up {
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
    pub(super) shared: &'a mut [Up],
    pub(super) slot: Slot,
    pub(super) number: u32,
    pub(super) interrupted: &'a AtomicBool,
    /// Samples the subjects over the window.
    pub(super) profiler: Option<&'a mut Profiler>,
}

/// What a run has going.
pub(super) struct Scene<'w> {
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
    pub(super) ups: Vec<Up>,
    pub(super) record: RunRecord,
    /// What services have yet to say.
    pub(super) expected: Expected,
    /// Numbers that the study asks for.
    asked: Numbers,
    /// Requests with other trace ids, whose spans are no part of the ledger.
    pub(super) others: u64,
    watcher: &'w Watched<'w>,
}

/// Who watches, for several runs at the same time.
pub(super) type Watched<'w> = RefCell<&'w mut dyn Watcher>;

impl Scene<'_> {
    /// Asks agents once more what they lost.
    pub(super) fn ask_again(&mut self) {
        self.asked.losses.iter_mut().for_each(Asked::again);
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
        let mut scene = self.open(&watched)?;
        let seen = self.start(&mut scene).and_then(|()| match scene.record.void {
            Some(_) => Ok(Seen::default()),
            None => self.measure(&mut scene),
        });
        match seen {
            Ok(seen) => {
                let ends = self.stop(&mut scene, &seen)?;
                self.conclude(scene, seen, &ends)
            }
            Err(error) => {
                // The first error is the one to tell.
                let _ = stop_all(&mut scene.ups);
                Err(error)
            }
        }
    }

    /// The folder of the run and its sink; nothing else has been started.
    pub(super) fn open<'w>(&self, watcher: &'w Watched<'w>) -> Result<Scene<'w>, RunError> {
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
        let (ups, expected, asked) = (Vec::new(), Expected::default(), Numbers::default());
        Ok(Scene { folder, logs, ids, sink, relay, ups, record, expected, asked, others: 0, watcher })
    }

    /// Starts the services and waits until they are ready and set up. If something is wrong with the set-up, the record is void.
    pub(super) fn start(&mut self, scene: &mut Scene<'_>) -> Result<(), RunError> {
        let (variant, started) = (self.variant(), Instant::now());
        self.start_services(variant, scene)?;
        scene.record.phases.start_s = started.elapsed().as_secs_f64();
        self.set_up(scene)?;
        if scene.record.void.is_none() {
            scene.asked = Numbers::before(self.setup, variant)?;
        }
        Ok(())
    }

    /// Stops the services; what they flush as they end still arrives.
    pub(super) fn stop(&self, scene: &mut Scene<'_>, seen: &Seen) -> Result<Ends, RunError> {
        let variant = self.variant();
        scene.see(Step::Phase(Phase::Stop));
        let stopping = Instant::now();
        let wanted = books::wanted(variant, seen.outcome.as_ref(), scene.others);
        let Scene { ups, asked, record, .. } = scene;
        let (ends, counted) = stop_in_two_steps(&self.setup, variant, ups, || {
            let interrupted = || self.interrupted.load(Ordering::Relaxed);
            let limit = &self.setup.plan.study.drain;
            queries::settle(&mut asked.backends, limit, wanted, interrupted, &mut record.notices)
        });
        let ends = ends?;
        scene.record.counted = counted;
        while scene.sink.quiet().min(stopping.elapsed()) < LAST_QUIET {
            scene.sink.look(Duration::from_millis(20))?;
        }
        scene.record.phases.stop_s = stopping.elapsed().as_secs_f64();
        Ok(ends)
    }

    /// Everything between the readiness of the services and their end.
    fn measure(&mut self, scene: &mut Scene<'_>) -> Result<Seen, RunError> {
        let seen = self.window(scene)?;
        if seen.observation.is_some() {
            self.drain(scene, &seen)?;
            self.look_back(scene)?;
        }
        // A profile is of the window alone.
        if seen.outcome.is_some() && scene.record.void.is_none() && self.profiler.is_none() {
            let started = Instant::now();
            self.after(scene)?;
            scene.record.phases.after_s = started.elapsed().as_secs_f64();
        }
        scene.ask_again();
        Ok(seen)
    }

    /// What the study's own programs create before the load.
    fn set_up(&mut self, scene: &mut Scene<'_>) -> Result<(), RunError> {
        let variant = self.variant();
        scene.expected = Expected::of(self.shared.iter().chain(&scene.ups), self.setup.folder.path());
        if variant.programs(Role::Setup).next().is_some() {
            scene.see(Step::Phase(Phase::Setup));
            let started = Instant::now();
            self.programs(scene, Role::Setup)?;
            scene.record.phases.setup_s = started.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// Whether the run was what it should be: what the services said by now, and what the study's own programs find.
    pub(super) fn look_back(&mut self, scene: &mut Scene<'_>) -> Result<(), RunError> {
        let void = scene.record.void.take();
        scene.record.void = void.or_else(|| scene.expected.missing());
        if scene.record.void.is_none() && self.variant().programs(Role::Check).next().is_some() {
            scene.see(Step::Phase(Phase::Check));
            let started = Instant::now();
            self.programs(scene, Role::Check)?;
            scene.record.phases.check_s = started.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// Saturation and capacity, as far as the study asks for them.
    fn after(&mut self, scene: &mut Scene<'_>) -> Result<(), RunError> {
        let study = &self.setup.plan().study;
        if study.saturation.is_none() && study.capacity.is_none() {
            return Ok(());
        }
        let plan = self.setup.load_plan(self.variant(), &scene.folder, scene.ids.other())?;
        if let Some(wanted) = &study.saturation {
            scene.see(Step::Phase(Phase::Saturation));
            let (found, sent) = after::saturate(&plan, wanted, self.interrupted)?;
            scene.others += sent;
            scene.record.saturation = Some(found);
        }
        if let Some(wanted) = &study.capacity {
            scene.see(Step::Phase(Phase::Capacity));
            let (found, sent) = after::search(&plan, wanted, self.interrupted)?;
            scene.others += sent;
            scene.record.capacity = Some(found);
        }
        self.check_interrupted()?;
        scene.record.notices.extend(checks::after(&scene.record, study));
        scene.record.void = self.died(scene);
        scene.sink.look(Duration::ZERO)?;
        Ok(())
    }

    /// An error if the user has interrupted the study.
    pub(super) fn check_interrupted(&self) -> Result<(), RunError> {
        if self.interrupted.load(Ordering::Relaxed) { Err(RunError::Interrupted) } else { Ok(()) }
    }

    /// Starts the services of the run in order and waits until each is ready.
    fn start_services(&self, variant: &PlannedVariant, scene: &mut Scene<'_>) -> Result<(), RunError> {
        for process in variant.fresh() {
            let up = self.setup.start(process, &scene.folder, self.number, self.interrupted)?;
            scene.ups.push(up);
        }
        Ok(())
    }

    /// Waits for the spans that are still on their way.
    pub(super) fn drain(&self, scene: &mut Scene<'_>, seen: &Seen) -> Result<(), RunError> {
        scene.see(Step::Phase(Phase::Drain));
        let draining = Instant::now();
        let wanted = books::wanted(self.variant(), seen.outcome.as_ref(), scene.others);
        let result = self.await_spans(scene, wanted);
        scene.record.phases.drain_s = draining.elapsed().as_secs_f64();
        result
    }

    fn await_spans(&self, scene: &mut Scene<'_>, wanted: Option<u64>) -> Result<(), RunError> {
        let limit = &self.setup.plan().study.drain;
        if !scene.asked.backends.is_empty() {
            // Senders may still hold what a slow backend has not taken from them, and not all of them send it as they end.
            let interrupted = || self.interrupted.load(Ordering::Relaxed);
            queries::settle(&mut scene.asked.backends, limit, wanted, interrupted, &mut Vec::new());
            scene.sink.look(Duration::ZERO)?;
            return self.check_interrupted();
        }
        if drain(&mut scene.sink, limit, wanted, self.interrupted)? {
            scene.record.notices.push(Notice::DrainLimit { limit_s: limit.limit.as_seconds() });
        }
        Ok(())
    }

    /// Closes the sink and the books, and puts everything that was measured into the record.
    pub(super) fn conclude(&self, scene: Scene<'_>, seen: Seen, ends: &Ends) -> Result<RunRecord, RunError> {
        let Scene { folder, sink, ups, mut record, asked, others, .. } = scene;
        let summary = sink.finish()?;
        record.told = told::losses(self.variant(), &ups, &asked.losses, &mut record.notices);
        if let Some(observation) = seen.observation {
            if let Err(error) = timeline::write(&folder.join("timeline.parquet"), &observation.timeline) {
                record
                    .notices
                    .push(Notice::Unwritten { file: "timeline.parquet".to_owned(), error: error.to_string() });
            }
            let (instrument, mut processes): (Vec<_>, Vec<_>) =
                observation.processes.into_iter().partition(|process| process.role.is_none());
            for process in &mut processes {
                complete(process, self.shared.iter().chain(&ups), ends);
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
        record.load = seen.outcome;
        self.close_books(&mut record, &summary, others);
        record.sink = Some(summary);
        Ok(record)
    }

    /// The ledger. Without one the report has no account of spans; why is plain from the study (nothing declared, nothing
    /// calibrated) or from the summary (no spans).
    fn close_books(&self, record: &mut RunRecord, summary: &Summary, others: u64) {
        let is_traced = self.variant().is_traced();
        record.ledger = books::account(self.variant(), is_traced, record, summary, others);
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
    backends: Vec<Asked>,
    losses: Vec<Asked>,
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
    ups: &mut Vec<Up>,
    between: impl FnOnce() -> T,
) -> (Result<Ends, SubjectError>, T) {
    let kept = queries::counted_services(&setup.plan.study, variant);
    let (mut backends, mut senders): (Vec<Up>, Vec<Up>) =
        ups.drain(..).partition(|up| kept.contains(&up.process.service));
    let first = stop_all(&mut senders);
    let result = between();
    let second = stop_all(&mut backends);
    // Those that were started first stand first again.
    ups.append(&mut backends);
    ups.append(&mut senders);
    let ends = first.and_then(|mut ends| {
        ends.extend(second?);
        Ok(ends)
    });
    (ends, result)
}

/// Start-up time and end of a process, which the probe does not know.
fn complete<'a>(record: &mut ProcessRecord, mut ups: impl Iterator<Item = &'a Up>, ends: &[(String, u32, Ended)]) {
    let same = |service: &str, replica: u32| service == record.service && replica == record.replica;
    record.start_up_s = ups.find(|up| same(&up.process.service, up.process.replica)).and_then(|up| up.start_up_s);
    record.ended = ends
        .iter()
        .find(|(service, replica, _)| same(service, *replica))
        .map_or_else(|| "running".to_owned(), |(_, _, ended)| ended.to_string());
}

pub(super) fn target(up: &Up) -> Target {
    Target {
        endpoint: up.process.scrape.as_ref().map(|scrape| endpoint(scrape, up.network.clone())),
        service: up.process.service.clone(),
        replica: up.process.replica,
        role: Some(up.process.role),
        family: up.running.family().clone(),
        cgroup: up.running.cgroup().cloned(),
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
pub(super) fn died(up: &mut Up) -> Option<Notice> {
    let ended = up.running.alive()?;
    Some(Notice::ServiceDied {
        service: up.process.service.clone(),
        how: ended.to_string(),
        log_tail: up.running.log_tail(5),
    })
}

/// Stops the processes, the last started first, the replicas of a service together. All are asked, also when one cannot be stopped.
pub(super) fn stop_all(ups: &mut [Up]) -> Result<Ends, SubjectError> {
    let stop = |up: &mut Up| -> Result<_, SubjectError> {
        Ok((up.process.service.clone(), up.process.replica, up.running.stop(up.process.grace.0)?))
    };
    let services = ups.chunk_by_mut(|one, next| one.process.service == next.process.service).rev();
    let ends: Vec<_> = services
        .flat_map(|replicas| {
            replicas.iter_mut().for_each(|up| up.running.ask_to_stop());
            replicas.iter_mut().rev().map(stop)
        })
        .collect();
    ends.into_iter().collect()
}
