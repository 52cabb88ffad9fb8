//! Heating up an alternating round: all its variants side by side, for as long as they would take one after the other, each until its
//! JIT compilers rest, if that is sooner.

use std::time::{Duration, Instant};

use unladen_journal::notices::LoadNotice;
use unladen_journal::units::Time;
use unladen_linux::process::Identity;
use unladen_load::outcome::{Event, Outcome};
use unladen_load::plan::{Pacing, Plan};
use unladen_probe::jvm::JitClock;
use unladen_study::spec::PreheatUntil;

use super::error::RunError;
use super::instrument::{Part, Silence};
use super::preheat::{elsewhere, stretches};
use super::round::Round;
use super::run::RunContext;
use super::watch::{Phase, Step};

/// How often the compilers are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Looks over which a compiler must have rested.
const LOOKS: usize = 8;
/// Share of the time below which a compiler rests.
const REST: f64 = 0.03;
/// Requests that a variant must have answered before the rest of its compilers is believed. HotSpot compiles what every request calls once
/// into code that counts, and again, for good, after 5,000 calls, or 15,000 calls and turns of loops (`Tier4InvocationThreshold`,
/// `Tier4CompileThreshold`): in between it rests, and the code that counts is slower.
const REQUESTS: u64 = 20_000;

/// Compilers of a round, looked at again and again. Pure but for the clock that it is handed.
#[derive(Debug)]
struct Compilers {
    /// By look of this stretch: seconds, and how long each variant's compilers had something to do, ns.
    looks: Vec<(f64, Vec<u64>)>,
    /// Requests that each variant has answered in all stretches.
    answered: Vec<u64>,
}

impl Compilers {
    fn of(variants: usize) -> Self {
        Self { looks: Vec::new(), answered: vec![0; variants] }
    }

    fn add(&mut self, at_s: f64, busy_ns: Vec<u64>) {
        self.looks.push((at_s, busy_ns));
    }

    /// The variants whose compilers had no more than a little to do over the last looks, and will have no more: they have compiled what
    /// every request calls, or there are none.
    fn resting(&self) -> Vec<usize> {
        let Some((at_s, now)) = self.looks.last() else { return Vec::new() };
        let Some((before_s, before)) = self.looks.len().checked_sub(LOOKS + 1).and_then(|at| self.looks.get(at)) else {
            return Vec::new();
        };
        let share = |at: usize| now[at].saturating_sub(before[at]) as f64 / 1e9 / (at_s - before_s);
        let are_through = |at: usize| now[at] == 0 || self.answered[at] >= REQUESTS;
        (0..now.len()).filter(|at| share(*at) <= REST && are_through(*at)).collect()
    }
}

impl Round<'_, '_> {
    /// Heats all variants up side by side. `false`: something ended, and a record says what.
    pub(super) fn preheat(&mut self, contexts: &mut [RunContext<'_>]) -> Result<bool, RunError> {
        if self.setup.plan.study.preheat.0.is_zero() {
            return Ok(true);
        }
        let elsewhere = elsewhere(self.setup);
        if let Some((own, all)) = &elsewhere {
            for (at, context) in contexts.iter().enumerate() {
                self.run(at).move_services(context, own, all)?;
            }
        }
        let started = Instant::now();
        // Side by side the variants share the cores: together they have as long as one after the other.
        let time = self.setup.plan.study.preheat.0 * u32::try_from(contexts.len()).unwrap_or(u32::MAX);
        let mut compilers = Compilers::of(contexts.len());
        let heated = stretches(time).try_fold(true, |heated, time| match heated {
            true => self.heat(contexts, time, &mut compilers),
            false => Ok(false),
        });
        for (at, context) in contexts.iter_mut().enumerate() {
            if let Some((own, all)) = &elsewhere {
                self.run(at).move_services(context, all, own)?;
            }
            // Its share: the variants had the cores together.
            context.record.phases.preheat_s = started.elapsed().as_secs_f64() / self.slots.len() as f64;
        }
        heated
    }

    fn heat(
        &mut self,
        contexts: &mut [RunContext<'_>],
        time: Time,
        compilers: &mut Compilers,
    ) -> Result<bool, RunError> {
        contexts.iter().take(1).for_each(|context| context.see(Step::Phase(Phase::WarmUp)));
        let mut parts: Vec<Part<Event>> = Vec::with_capacity(contexts.len());
        let variants = u32::try_from(contexts.len()).unwrap_or(u32::MAX);
        for (at, context) in contexts.iter().enumerate() {
            let run = self.run(at);
            let plan = run.unmeasured_plan(context, time, Some(Pacing::Closed))?;
            // Together as many as one of them has: a compiler gets its share of the cores beside all threads that answer requests.
            let connections = (plan.connections / variants).max(1);
            parts.push(run.generator(context, &Plan { connections, ..plan })?);
        }
        compilers.looks.clear();
        let result = self.await_heat(contexts, &mut parts, compilers);
        parts.into_iter().for_each(|part| part.stop(Duration::from_secs(2)));
        result
    }

    /// Waits for the generators, or ends them when the compilers rest.
    fn await_heat(
        &mut self,
        contexts: &mut [RunContext<'_>],
        parts: &mut [Part<Event>],
        compilers: &mut Compilers,
    ) -> Result<bool, RunError> {
        let until = self.setup.plan.study.preheat_until;
        let (mut outcomes, mut clocks): (Vec<Option<Outcome>>, Vec<JitClock>) =
            contexts.iter().map(|_| (None, JitClock::default())).unzip();
        let (started, mut looked) = (Instant::now(), Instant::now());
        while outcomes.iter().any(Option::is_none) {
            self.check_interrupted()?;
            for (at, part) in parts.iter().enumerate().filter(|(at, _)| outcomes[*at].is_none()).collect::<Vec<_>>() {
                match part.next(Duration::from_millis(5)) {
                    Ok(Event::Done(outcome)) => outcomes[at] = Some(*outcome),
                    Ok(Event::Second(second)) => compilers.answered[at] += second.answered,
                    Ok(Event::Ready) | Err(Silence::Timeout) => {}
                    Err(Silence::Ended) => {
                        contexts[at].record.void = Some(LoadNotice::failed(part.failure()));
                        return Ok(false);
                    }
                }
            }
            if let Some((at, notice)) = self.missing(contexts) {
                contexts[at].record.void = Some(notice);
                return Ok(false);
            }
            if until == PreheatUntil::Steady && looked.elapsed() >= LOOK {
                looked = Instant::now();
                let busy =
                    contexts.iter().zip(&mut clocks).map(|(context, clock)| clock.busy(&processes(context))).collect();
                compilers.add(started.elapsed().as_secs_f64(), busy);
                // The others have the cores for themselves then.
                compilers.resting().into_iter().for_each(|at| parts[at].end());
            }
            contexts.iter_mut().try_for_each(|context| context.sink.look(Duration::ZERO))?;
        }
        for (context, outcome) in contexts.iter_mut().zip(outcomes) {
            context.others += outcome.map_or(0, |outcome| outcome.sent_total);
        }
        Ok(true)
    }
}

/// All processes of a run's services.
fn processes(context: &RunContext<'_>) -> Vec<Identity> {
    context.services.iter().flat_map(|service| service.running.members()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_rest_when_they_have_not_worked_for_four_seconds() {
        let mut compilers = Compilers { answered: vec![REQUESTS; 2], ..Compilers::of(2) };
        assert!(compilers.resting().is_empty());
        let mut look = |number: u32, first_ms: u64, second_ms: u64| {
            compilers.add(f64::from(number) * 0.5, vec![first_ms * 1_000_000, second_ms * 1_000_000]);
            compilers.resting()
        };
        // The first compiles for 3 s, the second, more slowly, for 6 s.
        let rested: Vec<Vec<usize>> = (0..30)
            .map(|number| look(number, u64::from(number.min(6)) * 400, u64::from(number.min(12)) * 100))
            .collect();
        let since = |variant: usize| rested.iter().position(|resting| resting.contains(&variant));
        // The last 100 ms of the second are compiled until 6 s; spread over the 4 s up to 9.5 s they are 2.5 % of them, which is rest.
        assert_eq!((since(0), since(1)), (Some(14), Some(19)));
        assert!(rested[19..].iter().all(|resting| resting == &[0, 1]), "{rested:?}");
        // Of too few requests the second still has something to compile.
        compilers.answered[1] -= 1;
        assert_eq!(compilers.resting(), [0]);
    }

    #[test]
    fn what_has_no_compiler_needs_no_requests() {
        let mut compilers = Compilers::of(2);
        (0..=8).for_each(|number| compilers.add(f64::from(number) * 0.5, vec![0, 7]));
        assert_eq!(compilers.resting(), [0]);
    }
}
