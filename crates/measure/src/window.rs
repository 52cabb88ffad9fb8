//! The window of a run: a load of a fixed time, a fixed number of requests, or a driver of the study's own.

use std::time::{Duration, Instant};

use unladen_journal::notices::{LoadNotice, Notice};
use unladen_journal::record::Work;
use unladen_journal::units::Time;
use unladen_linux::clock::reaped_cpu_ns;
use unladen_linux::monotonic_ns;
use unladen_load::outcome::{Event as LoadEvent, Outcome};
use unladen_load::plan::{Pacing, Plan};
use unladen_probe::{Sampler, Schedule, Viewer};
use unladen_study::plan::Process;

use super::checks;
use super::error::RunError;
use super::instrument::{Part, Silence};
use super::programs::{End, FinishedProgram};
use super::run::{Run, RunContext, WindowResult};
use super::service::{RunningService, died, instrument, target};
use super::watch::{Phase, Step};

/// Time between "all is ready" and the first request: the load generator starts and connects in it.
const HEAD_START: Duration = Duration::from_millis(250);
/// The same where the window ends with the work, so that a second more costs nothing; and so much more for each connection.
const PATIENT_HEAD_START: Duration = Duration::from_secs(1);
const PER_CONNECTION: Duration = Duration::from_millis(2);
/// Time between the sampler's start and the driver's.
const DRIVER_HEAD_START: Duration = Duration::from_millis(20);

impl Run<'_> {
    /// Warm-up and window.
    pub(super) fn window(&mut self, context: &mut RunContext<'_>) -> Result<WindowResult, RunError> {
        let load = &self.variant().load;
        if let Some(driver) = self.variant().driver() {
            self.driven(context, driver)
        } else if load.is_fixed_work() {
            self.counted(context)
        } else {
            self.timed(context)
        }
    }

    /// A load of a fixed time.
    fn timed(&mut self, context: &mut RunContext<'_>) -> Result<WindowResult, RunError> {
        let study = &self.setup.plan().study;
        if !study.preheat.0.is_zero() {
            let Some(took_s) = self.preheat(context)? else { return Ok(WindowResult::default()) };
            context.record.phases.preheat_s = took_s;
        }
        let start_ns = monotonic_ns() + HEAD_START.as_nanos() as u64;
        let window_start_ns = start_ns + study.warmup.0.as_nanos() as u64;
        let window_end_ns = window_start_ns + study.window.0.as_nanos() as u64;
        let plan = Plan {
            start_at_ns: Some(start_ns),
            warmup_s: study.warmup.as_seconds(),
            window_s: study.window.as_seconds(),
            ..self.setup.load_plan(self.variant(), &context.folder, context.ids, &context.hosts)?
        };
        let part = self.generator(context, &plan)?;
        let sampler = self.sampler(context, Some(&part), (window_start_ns, window_end_ns))?;
        context.see(Step::Phase(Phase::WarmUp));
        let Some(outcome) = self.generate(context, part, &plan, window_start_ns, Some(&sampler.viewer()))? else {
            return Ok(WindowResult::default());
        };
        context.record.phases.warmup_s = study.warmup.as_seconds();
        context.record.phases.window_s = study.window.as_seconds();
        context.record.void = checks::load(&outcome, &self.variant().load);
        context.record.notices.extend(checks::remarks(&outcome, &self.variant().load));
        Ok(WindowResult { outcome: Some(outcome), observation: sampler.finish() })
    }

    /// A fixed number of requests. The warm-up is a load of its own, so that the number is exact; its spans are no part of
    /// the ledger.
    fn counted(&mut self, context: &mut RunContext<'_>) -> Result<WindowResult, RunError> {
        let load = &self.variant().load;
        // What can be done only once is not done beforehand: then there is no warm-up.
        let time = self.setup.plan.study.warmup;
        if !time.0.is_zero() {
            let pacing = load.burst.is_some().then_some(Pacing::Closed);
            let Some(took_s) = self.unmeasured(context, time, pacing)? else { return Ok(WindowResult::default()) };
            context.record.phases.warmup_s = took_s;
        }
        let head_start = PATIENT_HEAD_START + load.max_connections() * PER_CONNECTION;
        let start_ns = monotonic_ns() + head_start.as_nanos() as u64;
        let end_ns = start_ns + load.at_most.0.as_nanos() as u64;
        let plan = Plan {
            start_at_ns: Some(start_ns),
            warmup_s: 0.0,
            window_s: load.at_most.as_seconds(),
            limit: load.requests,
            ..self.setup.load_plan(self.variant(), &context.folder, context.ids, &context.hosts)?
        };
        let part = self.generator(context, &plan)?;
        let sampler = self.sampler(context, Some(&part), (start_ns, end_ns))?;
        let Some(outcome) = self.generate(context, part, &plan, start_ns, Some(&sampler.viewer()))? else {
            return Ok(WindowResult::default());
        };
        let observation = sampler.finish_now();
        context.record.phases.window_s = outcome.duration_s;
        let units = load.requests.or(load.burst).unwrap_or_default();
        context.record.work = Some(Work { units, completion_s: outcome.duration_s });
        context.record.void =
            (outcome.window_end_ns >= end_ns).then(|| self.unfinished()).or_else(|| checks::load(&outcome, load));
        Ok(WindowResult { outcome: Some(outcome), observation })
    }

    /// A load of its own that is not measured, for so long: of the study's pacing, unless another one is given. Returns how many seconds
    /// it took; `None`: something ended, and the record says what.
    pub(super) fn unmeasured(
        &mut self,
        context: &mut RunContext<'_>,
        time: Time,
        pacing: Option<Pacing>,
    ) -> Result<Option<f64>, RunError> {
        context.see(Step::Phase(Phase::WarmUp));
        let plan = self.unmeasured_plan(context, time, pacing)?;
        let part = self.generator(context, &plan)?;
        let Some(outcome) = self.generate(context, part, &plan, u64::MAX, None)? else { return Ok(None) };
        context.others += outcome.sent_total;
        Ok(Some(outcome.duration_s))
    }

    /// The plan of a load that is not measured.
    pub(super) fn unmeasured_plan(
        &self,
        context: &RunContext<'_>,
        time: Time,
        pacing: Option<Pacing>,
    ) -> Result<Plan, RunError> {
        let plan =
            self.setup.load_plan(self.variant(), &context.folder, context.ids.other(context.others), &context.hosts)?;
        let pacing = pacing.unwrap_or_else(|| plan.pacing.clone());
        Ok(Plan { pacing, warmup_s: 0.0, window_s: time.as_seconds(), out: None, ..plan })
    }

    /// Work that a program of the study's own does.
    fn driven(&mut self, context: &mut RunContext<'_>, driver: &Process) -> Result<WindowResult, RunError> {
        let load = &self.variant().load;
        context.see(Step::Phase(Phase::WarmUp));
        let rehearsing = Instant::now();
        for _ in 0..load.rehearsals {
            if self.drive(context, driver)?.is_none() {
                return Ok(WindowResult::default());
            }
            context.others += load.work.unwrap_or(1);
        }
        context.record.phases.warmup_s = rehearsing.elapsed().as_secs_f64();
        let start_ns = monotonic_ns() + DRIVER_HEAD_START.as_nanos() as u64;
        let sampler = self.sampler(context, None, (start_ns, start_ns + load.at_most.0.as_nanos() as u64))?;
        std::thread::sleep(Duration::from_nanos(start_ns.saturating_sub(monotonic_ns())));
        context.see(Step::Phase(Phase::Window));
        context.expected.window_begins();
        let reaped_ns = reaped_cpu_ns();
        let Some(ran) = self.drive(context, driver)? else { return Ok(WindowResult::default()) };
        let mut observation = sampler.finish_now();
        // The probe has not watched the driver, but it is not one of the others.
        if let Some(observation) = &mut observation {
            observation.host.count_as_ours((reaped_cpu_ns() - reaped_ns) as f64 / 1e9);
        }
        let took_s = ran.took.as_secs_f64();
        context.record.phases.window_s = took_s;
        context.record.work = Some(Work { units: load.work.unwrap_or(1), completion_s: took_s });
        ran.report(&mut context.record);
        Ok(WindowResult { outcome: None, observation })
    }

    /// Runs the driver once, to its end. `None`: it failed, or something else ended; the record says what.
    fn drive(&mut self, context: &mut RunContext<'_>, driver: &Process) -> Result<Option<FinishedProgram>, RunError> {
        let ran = self.program(context, driver, self.variant().load.at_most.0)?;
        if ran.is_well() {
            return Ok(Some(ran));
        }
        context.record.void = Some(match ran.end {
            End::TimeIsUp => self.unfinished(),
            End::Void(notice) => notice,
            End::Itself(how) => {
                Notice::DriverFailed { service: driver.service.clone(), how: how.to_string(), log_tail: ran.last_words }
            }
        });
        Ok(None)
    }

    fn unfinished(&self) -> Notice {
        LoadNotice::WorkUnfinished { limit_s: self.variant().load.at_most.as_seconds() }.into()
    }

    /// Starts the load generator.
    pub(super) fn generator(&self, context: &RunContext<'_>, plan: &Plan) -> Result<Part<LoadEvent>, RunError> {
        let cpus = &self.setup.partition.instrument;
        Ok(Part::start(&self.setup.launcher, "load", "__load", plan, false, cpus, &context.logs)?)
    }

    /// Starts the probe of everything that is up.
    fn sampler(
        &self,
        context: &RunContext<'_>,
        load: Option<&Part<LoadEvent>>,
        (window_start_ns, window_end_ns): (u64, u64),
    ) -> Result<Sampler, RunError> {
        let services = self.shared.iter().chain(&context.services).map(target);
        let parts = load.map(|load| ("load", load.running())).into_iter().chain([("sink", context.sink.running())]);
        let schedule = Schedule {
            window_start_ns,
            window_end_ns,
            interval: Duration::from_secs(1),
            cpus: Some(self.setup.partition.instrument.clone()),
        };
        Sampler::start(services.chain(parts.map(instrument)).collect(), schedule).map_err(RunError::Probe)
    }

    /// Waits for the outcome of a generator. `None`: a service or the generator ended; the record says which. Whoever watches is told
    /// what the `viewer` sees.
    fn generate(
        &mut self,
        context: &mut RunContext<'_>,
        load: Part<LoadEvent>,
        plan: &Plan,
        window_start_ns: u64,
        viewer: Option<&Viewer>,
    ) -> Result<Option<Outcome>, RunError> {
        let mut in_window = false;
        let lasts = Duration::from_secs_f64(plan.warmup_s + plan.window_s + plan.timeout_s);
        let limit = Instant::now() + HEAD_START + lasts + Duration::from_secs(10);
        let outcome = loop {
            if let Err(interrupted) = self.check_interrupted() {
                load.stop(Duration::from_secs(1));
                return Err(interrupted);
            }
            if !in_window && monotonic_ns() >= window_start_ns {
                in_window = true;
                context.expected.window_begins();
                context.see(Step::Phase(Phase::Window));
                if let Some(profiler) = &mut self.profiler {
                    profiler.begin(&context.services, Duration::from_secs_f64(plan.window_s), &context.folder);
                }
            }
            match load.next(Duration::from_millis(20)) {
                Ok(LoadEvent::Done(outcome)) => break Some(*outcome),
                Ok(LoadEvent::Second(second)) => {
                    context.see(Step::Second(&second));
                    if let Some(sample) = viewer.and_then(Viewer::latest) {
                        context.see(Step::Sample(&sample));
                    }
                }
                Ok(LoadEvent::Ready) | Err(Silence::Timeout) => {}
                Err(Silence::Ended) => {
                    context.record.void = Some(LoadNotice::failed(load.failure()));
                    break None;
                }
            }
            if let Some(notice) = self.died(context).or_else(|| context.expected.overdue()) {
                context.record.void = Some(notice);
                break None;
            }
            if Instant::now() > limit {
                context.record.void = Some(LoadNotice::failed("it did not end in time"));
                break None;
            }
            context.sink.look(Duration::ZERO)?;
        };
        load.stop(Duration::from_secs(2));
        if let Some(profiler) = &mut self.profiler {
            profiler.end();
        }
        Ok(outcome)
    }

    /// The first service that has ended.
    pub(super) fn died(&mut self, context: &mut RunContext<'_>) -> Option<Notice> {
        let all: Vec<&mut RunningService> = self.shared.iter_mut().chain(&mut context.services).collect();
        all.into_iter().find_map(died)
    }
}
