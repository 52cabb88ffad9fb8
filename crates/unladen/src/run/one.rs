//! One run: fresh processes, ready, warm-up, window, drain, stop. The unit of evidence.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use unladen_load::outcome::{Event as LoadEvent, Outcome};

use super::RunError;
use super::books;
use super::checks;
use super::instrument::{Part, Silence, SinkPart};
use super::profile::Profiler;
use super::schedule::Slot;
use super::setup::Setup;
use super::watch::{Phase, Step, Watcher};
use crate::journal::record::{Phases, ProcessRecord, RunRecord, SCHEMA};
use crate::linux::monotonic_ns;
use crate::notices::Notice;
use crate::probe::scrape::{Endpoint, Wanted};
use crate::probe::{Observation, Sampler, Schedule, Target, timeline};
use crate::study::plan::{Arm, Process};
use crate::study::spec::{Keep, Scrape, ScrapeKind};
use crate::subject::{Ended, Running, SubjectError};

/// Time between "all is ready" and the first request: the load generator starts and connects in it.
const HEAD_START: Duration = Duration::from_millis(150);
/// How long the sink may be quiet after the last process has ended before the books are closed.
const LAST_QUIET: Duration = Duration::from_millis(150);

/// A process of the study that is up.
#[derive(Debug)]
pub(super) struct Up {
    /// What was started.
    pub(super) process: Process,
    /// The process.
    pub(super) running: Running,
    /// Seconds from exec to readiness.
    pub(super) start_up_s: f64,
}

/// What a run needs besides the study's setup.
pub(super) struct Run<'a> {
    pub(super) setup: &'a Setup<'a>,
    pub(super) shared: &'a mut [Up],
    pub(super) slot: Slot,
    pub(super) number: u32,
    pub(super) interrupted: &'a AtomicBool,
    /// Samples the subjects over the window.
    pub(super) profiler: Option<&'a mut Profiler>,
}

impl<'a> Run<'a> {
    fn arm(&self) -> &'a Arm {
        &self.setup.plan.arms[self.slot.arm]
    }

    /// Does the run. The record is complete even when the run is void; an error means that the study cannot go on.
    pub(super) fn perform(mut self, watcher: &mut dyn Watcher) -> Result<RunRecord, RunError> {
        let arm = self.arm();
        watcher.see(Step::Run { slot: self.slot, arm });
        let dir = match self.profiler {
            Some(_) => format!("runs/profile-{}", arm.name),
            None => format!("runs/{:02}-{}", self.number, arm.name),
        };
        let folder = self.setup.folder.run(&dir)?;
        let logs = folder.join("logs");
        let mut record = RunRecord {
            schema: SCHEMA,
            run: self.number,
            round: self.slot.round,
            slot: self.slot.slot,
            variant: arm.name.clone(),
            kind: arm.kind,
            dir,
            started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            void: None,
            notices: self.setup.notices(),
            phases: Phases::default(),
            load: None,
            sink: None,
            ledger: None,
            processes: Vec::new(),
            instrument: Vec::new(),
            host: Default::default(),
        };

        watcher.see(Step::Phase(Phase::Start));
        let ids = self.setup.trace_ids(self.number);
        let mut sink = SinkPart::start(
            &self.setup.launcher,
            &self.setup.sink_config(&folder, ids),
            &self.setup.partition.instrument,
            &logs,
        )?;
        let started = Instant::now();
        let mut ups = self.start_services(arm, &folder)?;
        record.phases.start_s = started.elapsed().as_secs_f64();

        let (outcome, observation) = match self.load(&mut sink, &mut ups, &folder, &logs, ids, watcher, &mut record) {
            Ok(measured) => measured,
            Err(error) => {
                // The first error is the one to tell.
                let _ = stop_all(&mut ups);
                return Err(error);
            }
        };

        if let Some(outcome) = &outcome {
            watcher.see(Step::Phase(Phase::Drain));
            let draining = Instant::now();
            self.drain(&mut sink, books::wanted(arm, outcome), &mut record)?;
            record.phases.drain_s = draining.elapsed().as_secs_f64();
        }

        watcher.see(Step::Phase(Phase::Stop));
        let stopping = Instant::now();
        let ends = stop_all(&mut ups)?;
        while sink.quiet().min(stopping.elapsed()) < LAST_QUIET {
            sink.look(Duration::from_millis(20))?;
        }
        let summary = sink.finish()?;
        record.phases.stop_s = stopping.elapsed().as_secs_f64();

        self.fill(&mut record, outcome, observation, summary, &ups, &ends, &folder);
        Ok(record)
    }

    /// Starts the services of the run in order and waits until each is ready.
    fn start_services(&self, arm: &Arm, folder: &Path) -> Result<Vec<Up>, RunError> {
        let mut ups: Vec<Up> = Vec::new();
        for process in arm.fresh() {
            match self.setup.start(process, folder, self.number, self.interrupted) {
                Ok(up) => ups.push(up),
                Err(error) => {
                    let _ = stop_all(&mut ups);
                    return Err(error);
                }
            }
        }
        Ok(ups)
    }

    /// Warm-up and window. `None` for the outcome: a service or the generator ended; the record says which.
    #[expect(clippy::too_many_arguments, reason = "the parts of one run, each used once")]
    fn load(
        &mut self,
        sink: &mut SinkPart,
        ups: &mut [Up],
        folder: &Path,
        logs: &Path,
        ids: super::setup::TraceIds,
        watcher: &mut dyn Watcher,
        record: &mut RunRecord,
    ) -> Result<(Option<Outcome>, Option<Observation>), RunError> {
        let study = &self.setup.plan.study;
        let start_ns = monotonic_ns() + HEAD_START.as_nanos() as u64;
        let window_start_ns = start_ns + study.warmup.0.as_nanos() as u64;
        let window_end_ns = window_start_ns + study.window.0.as_nanos() as u64;
        let plan = self.setup.load_plan(self.arm(), folder, ids, start_ns)?;
        let load: Part<LoadEvent> =
            Part::start(&self.setup.launcher, "load", "__load", &plan, false, &self.setup.partition.instrument, logs)?;
        let services = self.shared.iter().chain(ups.iter()).map(target);
        let parts = [("load", load.running()), ("sink", sink.running())].map(instrument);
        let sampler = Sampler::start(
            services.chain(parts).collect(),
            Schedule {
                window_start_ns,
                window_end_ns,
                interval: Duration::from_secs(1),
                cpus: Some(self.setup.partition.instrument.clone()),
            },
        )
        .map_err(RunError::Probe)?;

        watcher.see(Step::Phase(Phase::WarmUp));
        let mut in_window = false;
        let limit = Instant::now()
            + HEAD_START
            + study.warmup.0
            + study.window.0
            + study.load.timeout.0
            + Duration::from_secs(10);
        let outcome = loop {
            if self.interrupted.load(Ordering::Relaxed) {
                sampler.abort();
                load.stop(Duration::from_secs(1));
                return Err(RunError::Interrupted);
            }
            if !in_window && monotonic_ns() >= window_start_ns {
                in_window = true;
                watcher.see(Step::Phase(Phase::Window));
                if let Some(profiler) = &mut self.profiler {
                    profiler.begin(ups, study.window.0, folder);
                }
            }
            match load.next(Duration::from_millis(20)) {
                Ok(LoadEvent::Done(outcome)) => break Some(*outcome),
                Ok(LoadEvent::Second(second)) => watcher.see(Step::Second(&second)),
                Ok(LoadEvent::Ready) | Err(Silence::Timeout) => {}
                Err(Silence::Ended) => {
                    record.void = Some(Notice::LoadFailed { message: load.failure().to_string() });
                    break None;
                }
            }
            if let Some(died) = died(self.shared).or_else(|| died(ups)) {
                record.void = Some(died);
                break None;
            }
            if Instant::now() > limit {
                record.void = Some(Notice::LoadFailed { message: "it did not end in time".to_owned() });
                break None;
            }
            sink.look(Duration::ZERO)?;
        };
        load.stop(Duration::from_secs(2));
        if let Some(profiler) = &mut self.profiler {
            profiler.end();
        }
        if outcome.is_none() {
            sampler.abort();
            return Ok((None, None));
        }
        record.phases.warmup_s = study.warmup.as_seconds();
        record.phases.window_s = study.window.as_seconds();
        Ok((outcome, sampler.finish()))
    }

    /// Waits for the spans that are still on their way.
    fn drain(&self, sink: &mut SinkPart, wanted: Option<u64>, record: &mut RunRecord) -> Result<(), RunError> {
        let drain = &self.setup.plan.study.drain;
        let started = Instant::now();
        loop {
            sink.look(Duration::from_millis(20))?;
            let all_there = wanted.is_some_and(|wanted| sink.received() >= wanted);
            let quiet = sink.quiet().min(started.elapsed()) >= drain.quiet.0;
            if all_there || quiet || self.interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            if started.elapsed() >= drain.limit.0 {
                if sink.quiet() < Duration::from_millis(500) {
                    record.notices.push(Notice::DrainLimit { limit_s: drain.limit.as_seconds() });
                }
                return Ok(());
            }
        }
    }

    /// Puts everything that was measured into the record.
    #[expect(clippy::too_many_arguments, reason = "the results of one run, each used once")]
    fn fill(
        &self,
        record: &mut RunRecord,
        outcome: Option<Outcome>,
        observation: Option<Observation>,
        summary: unladen_sink::summary::Summary,
        ups: &[Up],
        ends: &[(String, u32, Ended)],
        folder: &Path,
    ) {
        if let Some(observation) = observation {
            if let Err(error) = timeline::write(&folder.join("timeline.parquet"), &observation.timeline) {
                record
                    .notices
                    .push(Notice::Unwritten { file: "timeline.parquet".to_owned(), error: error.to_string() });
            }
            let (instrument, mut processes): (Vec<_>, Vec<_>) =
                observation.processes.into_iter().partition(|process| process.role.is_none());
            for process in &mut processes {
                complete(process, self.shared.iter().chain(ups), ends);
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
        if let Some(outcome) = outcome {
            record.void = record.void.take().or_else(|| checks::load(&outcome));
            // Without a ledger the report has no account of spans; why is plain from the study (no trace header) or
            // from the summary (no spans).
            record.ledger = self.setup.traced().then(|| books::close(self.arm(), &outcome, &summary).ok()).flatten();
            record.load = Some(outcome);
        }
        record.sink = Some(summary);
    }
}

/// Start-up time and end of a process, which the probe does not know.
fn complete<'a>(record: &mut ProcessRecord, mut ups: impl Iterator<Item = &'a Up>, ends: &[(String, u32, Ended)]) {
    let same = |service: &str, replica: u32| service == record.service && replica == record.replica;
    record.start_up_s = ups.find(|up| same(&up.process.service, up.process.replica)).map(|up| up.start_up_s);
    record.ended = ends
        .iter()
        .find(|(service, replica, _)| same(service, *replica))
        .map_or_else(|| "running".to_owned(), |(_, _, ended)| ended.to_string());
}

fn target(up: &Up) -> Target {
    Target {
        endpoint: up.process.scrape.as_ref().map(endpoint),
        service: up.process.service.clone(),
        replica: up.process.replica,
        role: Some(up.process.role),
        family: up.running.family().clone(),
        cgroup: up.running.cgroup().cloned(),
    }
}

fn endpoint(scrape: &Scrape) -> Endpoint {
    let wanted = |(name, keep): (&String, &Keep)| Wanted {
        name: name.clone(),
        labels: keep.labels.iter().map(|(label, value)| (label.clone(), value.clone())).collect(),
        metric: keep.metric(name).to_owned(),
        factor: keep.factor(name),
        counter: keep.kind.map(|kind| kind == ScrapeKind::Counter),
    };
    Endpoint { url: scrape.url.clone(), every: scrape.every.0, keep: scrape.keep.iter().map(wanted).collect() }
}

fn instrument((name, running): (&str, &Running)) -> Target {
    Target {
        endpoint: None,
        service: name.to_owned(),
        replica: 0,
        role: None,
        family: running.family().clone(),
        cgroup: running.cgroup().cloned(),
    }
}

/// The first service that has ended.
fn died(ups: &mut [Up]) -> Option<Notice> {
    ups.iter_mut().find_map(|up| {
        let ended = up.running.alive()?;
        Some(Notice::ServiceDied {
            service: up.process.service.clone(),
            how: ended.to_string(),
            log_tail: up.running.log_tail(5),
        })
    })
}

/// Stops the processes, the last started first. All are asked, also when one cannot be stopped.
pub(super) fn stop_all(ups: &mut [Up]) -> Result<Vec<(String, u32, Ended)>, SubjectError> {
    let ends: Vec<_> = ups
        .iter_mut()
        .rev()
        .map(|up| Ok((up.process.service.clone(), up.process.replica, up.running.stop(up.process.grace.0)?)))
        .collect();
    ends.into_iter().collect()
}
