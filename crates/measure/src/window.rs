//! The window of a run: a load of a fixed time, a fixed number of requests, or a driver of the study's own.

use std::time::{Duration, Instant};

use unladen_journal::notices::Notice;
use unladen_journal::record::Work;
use unladen_journal::units::Time;
use unladen_load::outcome::{Event as LoadEvent, Outcome};
use unladen_load::plan::{Pacing, Plan};
use unladen_processes::linux::clock::reaped_cpu_ns;
use unladen_processes::linux::monotonic_ns;
use unladen_processes::probe::{Observation, Sampler, Schedule, Viewer};
use unladen_study::plan::Process;

use super::RunError;
use super::checks;
use super::instrument::{Part, Silence};
use super::one::{Run, Scene, Up, died, instrument, target};
use super::programs::{End, Ran};
use super::watch::{Phase, Step};

/// Time between "all is ready" and the first request: the load generator starts and connects in it.
const HEAD_START: Duration = Duration::from_millis(250);
/// The same where the window ends with the work, so that a second more costs nothing; and so much more for each connection.
const PATIENT_HEAD_START: Duration = Duration::from_secs(1);
const PER_CONNECTION: Duration = Duration::from_millis(2);
/// Time between the sampler's start and the driver's.
const DRIVER_HEAD_START: Duration = Duration::from_millis(20);

/// What was seen of the window.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The generator's account. `None`: a driver did the work, or something ended; the record then says what.
    pub(super) outcome: Option<Outcome>,
    /// The probe's. `None`: there was no window.
    pub(super) observation: Option<Observation>,
}

impl Run<'_> {
    /// Warm-up and window.
    pub(super) fn window(&mut self, scene: &mut Scene<'_>) -> Result<Seen, RunError> {
        let load = &self.variant().load;
        if let Some(driver) = self.variant().driver() {
            self.driven(scene, driver)
        } else if load.is_fixed_work() {
            self.counted(scene)
        } else {
            self.timed(scene)
        }
    }

    /// A load of a fixed time.
    fn timed(&mut self, scene: &mut Scene<'_>) -> Result<Seen, RunError> {
        let study = &self.setup.plan().study;
        if !study.preheat.0.is_zero() {
            let Some(took_s) = self.preheat(scene)? else { return Ok(Seen::default()) };
            scene.record.phases.preheat_s = took_s;
        }
        let start_ns = monotonic_ns() + HEAD_START.as_nanos() as u64;
        let window_start_ns = start_ns + study.warmup.0.as_nanos() as u64;
        let window_end_ns = window_start_ns + study.window.0.as_nanos() as u64;
        let plan = Plan {
            start_at_ns: Some(start_ns),
            warmup_s: study.warmup.as_seconds(),
            window_s: study.window.as_seconds(),
            ..self.setup.load_plan(self.variant(), &scene.folder, scene.ids)?
        };
        let part = self.generator(scene, &plan)?;
        let sampler = self.sampler(scene, Some(&part), (window_start_ns, window_end_ns))?;
        scene.see(Step::Phase(Phase::WarmUp));
        let Some(outcome) = self.generate(scene, part, &plan, window_start_ns, Some(&sampler.viewer()))? else {
            return Ok(Seen::default());
        };
        scene.record.phases.warmup_s = study.warmup.as_seconds();
        scene.record.phases.window_s = study.window.as_seconds();
        scene.record.void = checks::load(&outcome, &self.variant().load);
        scene.record.notices.extend(checks::remarks(&outcome, &self.variant().load));
        Ok(Seen { outcome: Some(outcome), observation: sampler.finish() })
    }

    /// A fixed number of requests. The warm-up is a load of its own, so that the number is exact; its spans are no part of
    /// the ledger.
    fn counted(&mut self, scene: &mut Scene<'_>) -> Result<Seen, RunError> {
        let load = &self.variant().load;
        // What can be done only once is not done beforehand: then there is no warm-up.
        let time = self.setup.plan.study.warmup;
        if !time.0.is_zero() {
            let pacing = load.burst.is_some().then_some(Pacing::Closed);
            let Some(took_s) = self.unmeasured(scene, time, pacing)? else { return Ok(Seen::default()) };
            scene.record.phases.warmup_s = took_s;
        }
        let head_start = PATIENT_HEAD_START + load.most_connections() * PER_CONNECTION;
        let start_ns = monotonic_ns() + head_start.as_nanos() as u64;
        let end_ns = start_ns + load.at_most.0.as_nanos() as u64;
        let plan = Plan {
            start_at_ns: Some(start_ns),
            warmup_s: 0.0,
            window_s: load.at_most.as_seconds(),
            limit: load.requests,
            ..self.setup.load_plan(self.variant(), &scene.folder, scene.ids)?
        };
        let part = self.generator(scene, &plan)?;
        let sampler = self.sampler(scene, Some(&part), (start_ns, end_ns))?;
        let Some(outcome) = self.generate(scene, part, &plan, start_ns, Some(&sampler.viewer()))? else {
            return Ok(Seen::default());
        };
        let observation = sampler.finish_now();
        scene.record.phases.window_s = outcome.duration_s;
        let units = load.requests.or(load.burst).unwrap_or_default();
        scene.record.work = Some(Work { units, completion_s: outcome.duration_s });
        scene.record.void =
            (outcome.window_end_ns >= end_ns).then(|| self.unfinished()).or_else(|| checks::load(&outcome, load));
        Ok(Seen { outcome: Some(outcome), observation })
    }

    /// A load of its own that is not measured, for so long: of the study's pacing, unless another one is given. Returns how many seconds
    /// it took; `None`: something ended, and the record says what.
    pub(super) fn unmeasured(
        &mut self,
        scene: &mut Scene<'_>,
        time: Time,
        pacing: Option<Pacing>,
    ) -> Result<Option<f64>, RunError> {
        scene.see(Step::Phase(Phase::WarmUp));
        let plan = self.unmeasured_plan(scene, time, pacing)?;
        let part = self.generator(scene, &plan)?;
        let Some(outcome) = self.generate(scene, part, &plan, u64::MAX, None)? else { return Ok(None) };
        scene.others += outcome.sent_total;
        Ok(Some(outcome.duration_s))
    }

    /// The plan of a load that is not measured.
    pub(super) fn unmeasured_plan(
        &self,
        scene: &Scene<'_>,
        time: Time,
        pacing: Option<Pacing>,
    ) -> Result<Plan, RunError> {
        let plan = self.setup.load_plan(self.variant(), &scene.folder, scene.ids.other())?;
        let pacing = pacing.unwrap_or_else(|| plan.pacing.clone());
        Ok(Plan { pacing, warmup_s: 0.0, window_s: time.as_seconds(), out: None, ..plan })
    }

    /// Work that a program of the study's own does.
    fn driven(&mut self, scene: &mut Scene<'_>, driver: &Process) -> Result<Seen, RunError> {
        let load = &self.variant().load;
        scene.see(Step::Phase(Phase::WarmUp));
        let rehearsing = Instant::now();
        for _ in 0..load.rehearsals {
            if self.drive(scene, driver)?.is_none() {
                return Ok(Seen::default());
            }
            scene.others += load.work.unwrap_or(1);
        }
        scene.record.phases.warmup_s = rehearsing.elapsed().as_secs_f64();
        let start_ns = monotonic_ns() + DRIVER_HEAD_START.as_nanos() as u64;
        let sampler = self.sampler(scene, None, (start_ns, start_ns + load.at_most.0.as_nanos() as u64))?;
        std::thread::sleep(Duration::from_nanos(start_ns.saturating_sub(monotonic_ns())));
        scene.see(Step::Phase(Phase::Window));
        scene.expected.window_begins();
        let reaped_ns = reaped_cpu_ns();
        let Some(ran) = self.drive(scene, driver)? else { return Ok(Seen::default()) };
        let mut observation = sampler.finish_now();
        // The probe has not watched the driver, but it is not one of the others.
        if let Some(seen) = &mut observation {
            seen.host.count_as_ours((reaped_cpu_ns() - reaped_ns) as f64 / 1e9);
        }
        let took_s = ran.took.as_secs_f64();
        scene.record.phases.window_s = took_s;
        scene.record.work = Some(Work { units: load.work.unwrap_or(1), completion_s: took_s });
        ran.tell(&mut scene.record);
        Ok(Seen { outcome: None, observation })
    }

    /// Runs the driver once, to its end. `None`: it failed, or something else ended; the record says what.
    fn drive(&mut self, scene: &mut Scene<'_>, driver: &Process) -> Result<Option<Ran>, RunError> {
        let ran = self.program(scene, driver, self.variant().load.at_most.0)?;
        if ran.is_well() {
            return Ok(Some(ran));
        }
        scene.record.void = Some(match ran.end {
            End::TimeIsUp => self.unfinished(),
            End::Void(notice) => notice,
            End::Itself(how) => {
                Notice::DriverFailed { service: driver.service.clone(), how: how.to_string(), log_tail: ran.last_words }
            }
        });
        Ok(None)
    }

    fn unfinished(&self) -> Notice {
        Notice::WorkUnfinished { limit_s: self.variant().load.at_most.as_seconds() }
    }

    /// Starts the load generator.
    pub(super) fn generator(&self, scene: &Scene<'_>, plan: &Plan) -> Result<Part<LoadEvent>, RunError> {
        let cpus = &self.setup.partition.instrument;
        Ok(Part::start(&self.setup.launcher, "load", "__load", plan, false, cpus, &scene.logs)?)
    }

    /// Starts the probe of everything that is up.
    fn sampler(
        &self,
        scene: &Scene<'_>,
        load: Option<&Part<LoadEvent>>,
        (window_start_ns, window_end_ns): (u64, u64),
    ) -> Result<Sampler, RunError> {
        let services = self.shared.iter().chain(&scene.ups).map(target);
        let parts = load.map(|load| ("load", load.running())).into_iter().chain([("sink", scene.sink.running())]);
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
        scene: &mut Scene<'_>,
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
                scene.expected.window_begins();
                scene.see(Step::Phase(Phase::Window));
                if let Some(profiler) = &mut self.profiler {
                    profiler.begin(&scene.ups, Duration::from_secs_f64(plan.window_s), &scene.folder);
                }
            }
            match load.next(Duration::from_millis(20)) {
                Ok(LoadEvent::Done(outcome)) => break Some(*outcome),
                Ok(LoadEvent::Second(second)) => {
                    scene.see(Step::Second(&second));
                    if let Some(sample) = viewer.and_then(Viewer::latest) {
                        scene.see(Step::Sample(&sample));
                    }
                }
                Ok(LoadEvent::Ready) | Err(Silence::Timeout) => {}
                Err(Silence::Ended) => {
                    scene.record.void = Some(Notice::LoadFailed { message: load.failure().to_string() });
                    break None;
                }
            }
            if let Some(notice) = self.died(scene).or_else(|| scene.expected.overdue()) {
                scene.record.void = Some(notice);
                break None;
            }
            if Instant::now() > limit {
                scene.record.void = Some(Notice::LoadFailed { message: "it did not end in time".to_owned() });
                break None;
            }
            scene.sink.look(Duration::ZERO)?;
        };
        load.stop(Duration::from_secs(2));
        if let Some(profiler) = &mut self.profiler {
            profiler.end();
        }
        Ok(outcome)
    }

    /// The first service that has ended.
    pub(super) fn died(&mut self, scene: &mut Scene<'_>) -> Option<Notice> {
        let all: Vec<&mut Up> = self.shared.iter_mut().chain(&mut scene.ups).collect();
        all.into_iter().find_map(died)
    }
}
