//! An alternating round: the processes of all its variants are alive, and the load turns between them in short blocks. Every variant
//! still has a run of its own, with fresh processes, a folder, a sink, a ledger and a record.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use unladen_journal::notices::{LoadNotice, Notice, RoundsNotice};
use unladen_journal::record::{Blocks, Design, RunRecord};
use unladen_journal::role::Role;
use unladen_linux::monotonic_ns;
use unladen_load::alternate::{self, Alternation, Lengths};
use unladen_probe::edges::{Edge, Edges, Source, Sources};
use unladen_probe::host::available_memory;
use unladen_probe::{Observation, Sampler, Schedule, Target};
use unladen_study::plan::Process;
use unladen_study::spec::{PreheatUntil, Study};

use super::blocks::{Lifespan, Turns, idle_rates, rates};
use super::checks;
use super::error::RunError;
use super::groups;
use super::instrument::{Part, Silence};
use super::run::{Run, RunContext, Watched, WindowResult};
use super::schedule::Slot;
use super::sent_from::SentFrom;
use super::service::{Ends, RunningService, died, instrument, stop_all, target};
use super::setup::Setup;
use super::turns::{Config, Event, Measured};
use super::watch::{Phase, Step, Watcher};

/// From the last block of the warm-up to the first that is measured: the probes start in it.
const HEAD_START: Duration = Duration::from_millis(250);
/// How long the processes are watched while nothing is asked of anybody, before the load and after it.
const IDLE: Duration = Duration::from_secs(1);
/// A round in which fewer blocks count than this share of them is void.
const ENOUGH: f64 = 0.5;

/// A round to do.
pub(super) struct Round<'r, 'a> {
    pub(super) setup: &'r Setup<'a>,
    pub(super) shared: &'r mut [RunningService],
    /// Its runs, in the order in which they start.
    pub(super) slots: &'r [Slot],
    /// Number of the first of them.
    pub(super) number: u32,
    /// Length of a block, seconds.
    pub(super) block_s: f64,
    pub(super) interrupted: &'r AtomicBool,
}

/// Where the processes of a round stand among the targets of its edges.
struct Places {
    /// By run.
    runs: Vec<Range<usize>>,
    shared: Range<usize>,
    /// The first of the sinks, one for each run.
    sinks: usize,
}

/// What was seen of a round.
struct RoundMeasurement {
    measured: Measured,
    /// By run.
    observations: Vec<Option<Observation>>,
}

impl Round<'_, '_> {
    /// Does the round. The records are complete even when runs are void; an error means that the study cannot go on. Where a service
    /// has ended that was needed, only its run's record is handed out: nothing is known of the others.
    pub(super) fn perform(mut self, watcher: &mut dyn Watcher) -> Result<Vec<RunRecord>, RunError> {
        let watched: Watched<'_> = RefCell::new(&mut *watcher);
        let mut contexts = Vec::with_capacity(self.slots.len());
        match self.measure(&mut contexts, &watched) {
            Ok(results) => self.conclude(contexts, results),
            Err(error) => {
                for context in contexts.iter_mut().rev() {
                    // The first error is the one to tell.
                    let _ = stop_all(&mut context.services);
                }
                Err(error)
            }
        }
    }

    /// One of the runs.
    pub(super) fn run(&mut self, at: usize) -> Run<'_> {
        Run {
            setup: self.setup.site(at),
            shared: &mut *self.shared,
            slot: self.slots[at],
            number: self.number + u32::try_from(at).unwrap_or(u32::MAX),
            interrupted: self.interrupted,
            profiler: None,
        }
    }

    fn measure<'w>(
        &mut self,
        contexts: &mut Vec<RunContext<'w>>,
        watched: &'w Watched<'w>,
    ) -> Result<Vec<WindowResult>, RunError> {
        let available = available_memory();
        for at in 0..self.slots.len() {
            contexts.push(self.run(at).open(watched)?);
            let context = &mut contexts[at];
            self.run(at).start(context)?;
            if context.record.void.is_some() {
                return Ok(Vec::new());
            }
            let now = available.zip(available_memory());
            if let Some(fit) = now.and_then(|(before, now)| groups::fit(before, now, at + 1, self.slots.len())) {
                return Err(RunError::Memory { variants: self.slots.len(), fit });
            }
        }
        self.together(watched);
        let places = self.places(contexts);
        let before = self.idle(contexts)?;
        if !self.preheat(contexts)? {
            return Ok(Vec::new());
        }
        let Some(measurement) = self.load(contexts)? else { return Ok(Vec::new()) };
        let mut results = self.split(contexts, measurement.observations, &measurement.measured);
        let load_ended = Instant::now();
        for (at, context) in contexts.iter_mut().enumerate() {
            self.run(at).drain(context, &results[at], load_ended)?;
        }
        let after = self.idle(contexts)?;
        self.charge(contexts, &mut results, &measurement.measured, &places, (&before, &after));
        for (at, context) in contexts.iter_mut().enumerate() {
            self.run(at).look_back(context)?;
            context.ask_again();
        }
        Ok(results)
    }

    /// Tells that from now on all runs of the round go on together.
    fn together(&self, watched: &Watched<'_>) {
        let Some(first) = self.slots.first() else { return };
        watched.borrow_mut().see(Step::Together { round: first.round, runs: self.slots.len() });
    }

    /// Stops the services of all runs and closes their ledgers.
    fn conclude(
        &mut self,
        mut contexts: Vec<RunContext<'_>>,
        results: Vec<WindowResult>,
    ) -> Result<Vec<RunRecord>, RunError> {
        let measured = !results.is_empty();
        let mut results = results.into_iter();
        let mut ends: Vec<Result<(Ends, WindowResult), RunError>> = Vec::new();
        for (at, context) in contexts.iter_mut().enumerate().rev() {
            let result = results.next_back().unwrap_or_default();
            let stopped = self.run(at).stop(context, &result);
            ends.push(stopped.map(|ends| (ends, result)));
        }
        let mut records = Vec::with_capacity(contexts.len());
        for ((at, context), end) in contexts.into_iter().enumerate().zip(ends.into_iter().rev()) {
            let (ends, result) = end?;
            if measured || context.record.void.is_some() {
                records.push(self.run(at).conclude(context, result, &ends)?);
            }
        }
        Ok(records)
    }

    /// Where everybody stands among the targets: the services of the runs, what lives through the study, the sinks.
    fn places(&self, contexts: &[RunContext<'_>]) -> Places {
        let mut next = 0;
        let mut take = |count: usize| {
            let range = next..next + count;
            next += count;
            range
        };
        let runs = contexts.iter().map(|context| take(context.services.len())).collect();
        let shared = take(self.shared.len());
        Places { runs, shared, sinks: next }
    }

    /// Everybody's CPU, in the order of [`Round::places`].
    fn sources(&self, contexts: &[RunContext<'_>]) -> Sources {
        let source = |target: Target| Source { family: target.family, cgroup: target.cgroup, remote: target.remote };
        let services = contexts.iter().flat_map(|context| &context.services).chain(self.shared.iter());
        let sinks = contexts.iter().map(|context| instrument(("sink", context.sink.running())));
        Sources {
            targets: services.map(target).chain(sinks).map(source).collect(),
            unladen: std::process::id(),
            compilers: self.setup.plan.study.preheat_until == PreheatUntil::Steady,
        }
    }

    /// CPU per second of everybody while nothing is asked of anybody.
    fn idle(&self, contexts: &mut [RunContext<'_>]) -> Result<Vec<Option<f64>>, RunError> {
        let mut edges = Edges::new(self.sources(contexts));
        let (before, started): (Edge, Instant) = (edges.read(), Instant::now());
        while started.elapsed() < IDLE {
            self.check_interrupted()?;
            std::thread::sleep(Duration::from_millis(20).min(IDLE.saturating_sub(started.elapsed())));
        }
        let after = edges.read();
        if let Some(lost) = edges.failure() {
            let said = format!("one in a pod does not answer ({lost}). `unladen run --resume` continues the study");
            return Err(RunError::Probe(std::io::Error::other(said)));
        }
        contexts.iter_mut().try_for_each(|context| context.sink.look(Duration::ZERO))?;
        Ok(rates(&before, &after))
    }

    /// The load of all runs.
    fn alternation(&mut self, contexts: &[RunContext<'_>]) -> Result<Alternation, RunError> {
        let study = &self.setup.plan.study;
        let lengths = lengths(study, self.block_s);
        let round = self.slots.first().map_or(0, |slot| u64::from(slot.round) << 8 | u64::from(slot.attempt));
        let turns = alternate::schedule(
            contexts.len(),
            &lengths,
            self.setup.seed() ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
        let mut targets = Vec::with_capacity(contexts.len());
        for (at, context) in contexts.iter().enumerate() {
            let run = self.run(at);
            targets.push(run.setup.load_plan(run.variant(), &context.folder, context.ids, &context.hosts)?);
        }
        let core = self.setup.partition.instrument.iter().next().map(|core| core as u32);
        Ok(Alternation { targets, turns, start_at_ns: None, pause_s: HEAD_START.as_secs_f64(), core })
    }

    /// Warm-up, blocks, and the stretches alone. `None`: something ended, and a record says what.
    fn load(&mut self, contexts: &mut [RunContext<'_>]) -> Result<Option<RoundMeasurement>, RunError> {
        let meeting = self.setup.load_pods.as_ref().map(SentFrom::meeting);
        let config = Config { alternation: self.alternation(contexts)?, sources: self.sources(contexts), meeting };
        let patience = patience(&config.alternation);
        let Some(first) = contexts.first() else { return Ok(None) };
        first.see(Step::Phase(Phase::WarmUp));
        let cpus = &self.setup.partition.instrument;
        let part: Part<Event> =
            Part::start(&self.setup.launcher, "load", "__turns", &config, false, cpus, &first.logs)?;
        let deadline = Instant::now() + patience;
        let (mut samplers, mut observations) = (Vec::new(), Vec::new());
        let outcome = loop {
            if let Err(interrupted) = self.check_interrupted() {
                part.stop(Duration::from_secs(1));
                return Err(interrupted);
            }
            match part.next(Duration::from_millis(20)) {
                Ok(Event::Done { measured }) => break Ok(*measured),
                Ok(Event::Measuring { at_ns }) => {
                    samplers = self.samplers(contexts, &part, at_ns)?;
                    contexts.iter().take(1).for_each(|context| context.see(Step::Phase(Phase::Window)));
                }
                Ok(Event::BlocksOver) => {
                    observations = samplers.drain(..).map(Sampler::finish_now).collect();
                    contexts.iter().take(1).for_each(|context| context.see(Step::Phase(Phase::Alone)));
                }
                Ok(Event::Second { second, .. }) => {
                    contexts.iter().take(1).for_each(|context| context.see(Step::Second(&second)))
                }
                Ok(Event::Ready) | Err(Silence::Timeout) => {}
                Err(Silence::Ended) => {
                    break Err((0, LoadNotice::failed(part.failure())));
                }
            }
            if let Some(gone) = self.missing(contexts) {
                break Err(gone);
            }
            if Instant::now() > deadline {
                break Err((0, LoadNotice::failed("it did not end in time")));
            }
            contexts.iter_mut().try_for_each(|context| context.sink.look(Duration::ZERO))?;
        };
        part.stop(Duration::from_secs(2));
        match outcome {
            Ok(measured) => Ok(Some(RoundMeasurement { measured, observations })),
            Err((at, notice)) => {
                contexts[at].record.void = Some(notice);
                Ok(None)
            }
        }
    }

    /// A service that has ended, or has not said what it should, and whose run that hits.
    pub(super) fn missing(&mut self, contexts: &mut [RunContext<'_>]) -> Option<(usize, Notice)> {
        if let Some(notice) = self.shared.iter_mut().find_map(died) {
            return Some((0, notice));
        }
        let of = |context: &mut RunContext<'_>| {
            context.services.iter_mut().find_map(died).or_else(|| context.expected.overdue())
        };
        contexts.iter_mut().enumerate().find_map(|(at, context)| Some((at, of(context)?)))
    }

    /// The probes of every run, from an instant on.
    fn samplers(
        &mut self,
        contexts: &mut [RunContext<'_>],
        load: &Part<Event>,
        window_start_ns: u64,
    ) -> Result<Vec<Sampler>, RunError> {
        let schedule = Schedule {
            window_start_ns,
            // It ends when the blocks do.
            window_end_ns: window_start_ns + Duration::from_secs(24 * 3600).as_nanos() as u64,
            interval: Duration::from_secs(1),
            cpus: Some(self.setup.partition.instrument.clone()),
        };
        let mut samplers = Vec::with_capacity(contexts.len());
        for context in contexts {
            let services = self.shared.iter().chain(&context.services).map(target);
            let relay = context.relay.iter().map(|relay| ("relay", relay.running()));
            let parts =
                [("load", load.running()), ("sink", context.sink.running())].into_iter().chain(relay).map(instrument);
            samplers.push(Sampler::start(services.chain(parts).collect(), schedule.clone()).map_err(RunError::Probe)?);
            context.expected.window_begins();
        }
        let wait = Duration::from_nanos(window_start_ns.saturating_sub(monotonic_ns()));
        std::thread::sleep(wait);
        Ok(samplers)
    }

    /// What was seen of each run, and whether its load can be believed.
    fn split(
        &mut self,
        contexts: &mut [RunContext<'_>],
        mut observations: Vec<Option<Observation>>,
        measured: &Measured,
    ) -> Vec<WindowResult> {
        let study = &self.setup.plan.study;
        observations.resize_with(contexts.len(), || None);
        count_the_others_as_ours(&mut observations, self.shared.len());
        let turns = Turns::of(measured);
        let outcomes = measured.outcomes.targets.iter().cloned();
        let mut results = Vec::with_capacity(contexts.len());
        for ((at, context), (outcome, observation)) in contexts.iter_mut().enumerate().zip(outcomes.zip(observations)) {
            let load = &self.run(at).variant().load;
            let record = &mut context.record;
            (record.design, record.phases.warmup_s) = (Design::Alternating, study.warmup.as_seconds());
            record.phases.window_s = turns.wall_s();
            record.void = checks::load(&outcome, load);
            record.notices.extend(checks::remarks(&outcome, load));
            results.push(WindowResult { outcome: Some(outcome), observation });
        }
        results
    }

    /// Charges every run with the CPU of its processes.
    fn charge(
        &mut self,
        contexts: &mut [RunContext<'_>],
        results: &mut [WindowResult],
        measured: &Measured,
        places: &Places,
        (before, after): (&[Option<f64>], &[Option<f64>]),
    ) {
        let turns = Turns::of(measured);
        let runs = contexts.len();
        for (at, (context, result)) in contexts.iter_mut().zip(results).enumerate() {
            let own = places.runs[at].clone();
            let is_subject = |place: &usize| is_subject(&context.services[place - own.start].process);
            let subjects: Vec<usize> = own.clone().filter(is_subject).collect();
            let blocks = turns.blocks(at, runs, &subjects);
            let all = blocks.super_blocks();
            // Compilers at work are no fault of the machine's, and at most half of the super-blocks are unusual.
            let enough = f64::from(blocks.kept) >= ENOUGH * f64::from(all - blocks.compiling);
            let Blocks { kept, late, disturbed, compiling, .. } = blocks;
            let lost = RoundsNotice::BlocksLost { kept, of: all, late, disturbed, compiling };
            context.record.void = context.record.void.take().or((!enough).then(|| lost.into()));
            context.record.blocks = Some(blocks);
            let Some(observation) = &mut result.observation else { continue };
            // As the probe was given them: what lives through the study, the run's own, the load, the sink.
            let idle = idle_rates(before, after, own.clone());
            let shared = places.shared.clone().map(|place| (place, Lifespan::ThroughTheStudy));
            let services = own.zip(idle).map(|(place, idle)| (place, Lifespan::WithTheRun { idle }));
            let (processes, parts) = observation.processes.split_at_mut(shared.len() + services.len());
            for (process, (place, lifespan)) in processes.iter_mut().zip(shared.chain(services)) {
                turns.charge_process(process, at, place, lifespan);
            }
            let sink = places.sinks + at;
            let idle = idle_rates(before, after, sink..sink + 1).first().copied().flatten();
            for part in parts.iter_mut().filter(|part| part.service == "sink") {
                turns.charge_process(part, at, sink, Lifespan::WithTheRun { idle });
            }
        }
    }

    pub(super) fn check_interrupted(&self) -> Result<(), RunError> {
        if self.interrupted.load(Ordering::Relaxed) { Err(RunError::Interrupted) } else { Ok(()) }
    }
}

fn is_subject(process: &Process) -> bool {
    process.role == Role::Subject
}

/// Every probe has watched its own run alone; the processes of the other runs are none of the machine's others.
fn count_the_others_as_ours(observations: &mut [Option<Observation>], shared: usize) {
    let used_s = |observation: &Option<Observation>| -> f64 {
        let processes = observation.iter().flat_map(|it| it.processes.iter().skip(shared));
        let own = processes.filter(|process| process.service != "load" || process.role.is_some());
        own.filter_map(|process| process.cpu_ns).sum::<u64>() as f64 / 1e9
    };
    let used: Vec<f64> = observations.iter().map(used_s).collect();
    let all: f64 = used.iter().sum();
    for (observation, own) in observations.iter_mut().zip(used) {
        if let Some(observation) = observation {
            observation.host.count_as_ours(all - own);
        }
    }
}

/// How the study shares the time of a round, for each variant.
fn lengths(study: &Study, block_s: f64) -> Lengths {
    Lengths {
        warmup_s: study.warmup.as_seconds(),
        window_s: study.window.as_seconds(),
        block_s,
        in_halves: study.load.is_open(),
        alone_s: study.alone_time().as_seconds(),
    }
}

/// How long the turns may take: services that answer slowly make them longer.
fn patience(alternation: &Alternation) -> Duration {
    let planned: f64 = alternation.turns.iter().map(|turn| turn.length_s).sum();
    let timeout = alternation.targets.iter().map(|plan| plan.timeout_s).fold(0.0, f64::max);
    Duration::from_secs_f64(2.0 * planned + alternation.pause_s + 2.0 * timeout + 30.0)
}
