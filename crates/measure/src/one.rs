//! One run: fresh processes, ready, warm-up, window, drain, stop. The unit of evidence.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use unladen_journal::notices::{LoadNotice, Notice};
use unladen_journal::record::{Ledger, ProcessRecord, RunRecord};
use unladen_journal::role::Role;
use unladen_ledger::summary::Summary;
use unladen_ledger::{Learned, Shortfall};
use unladen_probe::timeline;
use unladen_processes::subject::Ended;
use unladen_study::spec::Faults;

use super::after;
use super::checks;
use super::error::RunError;
use super::expected::Expected;
use super::instrument::SinkPart;
use super::kubernetes::without_secrets;
use super::ledger;
use super::queries;
use super::reported_losses;
use super::run::{Numbers, Run, RunContext, Watched, WindowResult};
use super::service::{Ends, RunningService, stop_all};
use super::stack::{Hosts, Started};
use super::stop::{LAST_QUIET, drain, stop_in_two_steps};
use super::watch::{Phase, Step, Watcher};

impl Run<'_> {
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
        Ok(RunContext {
            folder,
            logs,
            ids,
            sink,
            relay,
            services: Vec::new(),
            stack: None,
            hosts: Hosts::default(),
            record,
            expected: Expected::default(),
            queries: Numbers::default(),
            others: 0,
            watcher,
        })
    }

    /// Starts the services and waits until they are ready and set up. If something is wrong with the set-up, the record is void.
    pub(super) fn start(&mut self, context: &mut RunContext<'_>) -> Result<(), RunError> {
        let (variant, started) = (self.variant(), Instant::now());
        let RunContext { folder, sink, services, stack, hosts, .. } = context;
        let of_run = (folder.as_path(), self.number);
        *hosts = self.setup.start_services(variant, of_run, sink, (services, stack), self.interrupted)?;
        context.record.admitted = without_secrets(context.stack.as_ref().map(Started::admitted).unwrap_or_default());
        context.record.phases.start_s = started.elapsed().as_secs_f64();
        self.set_up(context)?;
        if context.record.void.is_none() {
            context.queries = Numbers::before(self.setup, variant, &context.hosts)?;
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
        if let Some(stack) = context.stack.take() {
            stack.remove()?;
        }
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
            self.drain(context, &result, Instant::now())?;
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
        let plan =
            self.setup.load_plan(self.variant(), &context.folder, context.ids.other(context.others), &context.hosts)?;
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

    /// Waits for the spans that are still on their way after the load.
    pub(super) fn drain(
        &self,
        context: &mut RunContext<'_>,
        result: &WindowResult,
        load_ended: Instant,
    ) -> Result<(), RunError> {
        context.see(Step::Phase(Phase::Drain));
        let wanted = ledger::wanted(self.variant(), result.outcome.as_ref(), context.others);
        let result = self.await_spans(context, wanted, load_ended);
        context.record.phases.drain_s = load_ended.elapsed().as_secs_f64();
        result
    }

    fn await_spans(
        &self,
        context: &mut RunContext<'_>,
        wanted: Option<u64>,
        load_ended: Instant,
    ) -> Result<(), RunError> {
        let limit = &self.setup.plan().study.drain;
        if !context.queries.backends.is_empty() {
            // Senders may still hold what a slow backend has not taken from them, and not all of them send it as they end.
            let interrupted = || self.interrupted.load(Ordering::Relaxed);
            queries::settle(&mut context.queries.backends, limit, wanted, interrupted, &mut Vec::new());
            context.sink.look(Duration::ZERO)?;
            return self.check_interrupted();
        }
        if drain(&mut context.sink, limit, wanted, load_ended, self.interrupted)? {
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
            record.void = record.void.take().or_else(|| observation.lost.map(LoadNotice::failed));
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

/// Start-up time and end of a process, which the probe does not know.
fn complete<'a>(
    record: &mut ProcessRecord,
    mut services: impl Iterator<Item = &'a RunningService>,
    ends: &[(String, u32, Ended)],
) {
    let same = |service: &str, replica: u32| service == record.service && replica == record.replica;
    if let Some(service) = services.find(|service| same(&service.process.service, service.process.replica)) {
        record.start_up_s = service.start_up_s;
        record.image = service.running.image().map(str::to_owned);
    }
    record.ended = ends
        .iter()
        .find(|(service, replica, _)| same(service, *replica))
        .map_or_else(|| "running".to_owned(), |(_, _, ended)| ended.to_string());
}
