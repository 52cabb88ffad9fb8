//! Loads that this process sends by itself, each with its engine.

use std::sync::mpsc::{self, Receiver};

use hdrhistogram::Histogram;

use super::{Event, Fate, Part, Senders, Taken, Turn};
use crate::engine::{Engine, Message};
use crate::error::LoadError;
use crate::gather::Seconds;
use crate::histogram::{Histograms, quantiles};
use crate::outcome::{Outcome, Quantiles};
use crate::pace::{Span, nanoseconds};
use crate::plan::Plan;
use crate::ready::Ready;
use crate::sys;

/// A request may be sent so late after it was due, nanoseconds; later ones make a turn late.
pub(crate) const LATE_NS: u64 = 1_000_000;

/// The targets of a process.
pub(crate) struct Members<'r> {
    readies: &'r [Ready<'r>],
    members: Vec<Member<'r>>,
}

/// What came back of one target.
pub(crate) struct Concluded {
    pub(crate) outcome: Outcome,
    pub(crate) histograms: Histograms,
    /// Latency of the turns that it had for itself.
    pub(crate) alone: Option<Histogram<u64>>,
}

impl<'r> Members<'r> {
    /// With all their connections.
    pub(crate) fn connect(readies: &'r [Ready<'r>]) -> Result<Self, LoadError> {
        let members = readies.iter().map(Member::connect).collect::<Result<_, _>>()?;
        if readies.iter().any(|ready| ready.shared.schedule.is_some()) {
            sys::go_ahead();
        }
        Ok(Self { readies, members })
    }

    /// Adds up, with the histograms.
    pub(crate) fn conclude_all(self) -> Result<Vec<Concluded>, LoadError> {
        self.readies.iter().zip(self.members).map(|(ready, member)| member.conclude(ready)).collect()
    }
}

impl Senders for Members<'_> {
    fn begin(&mut self, at_ns: u64) -> Result<(), LoadError> {
        self.members.iter_mut().for_each(|member| member.begin(at_ns));
        Ok(())
    }

    fn wait_until(&mut self, at_ns: u64) {
        if let Some(any) = self.members.first() {
            any.engine.wait_until(at_ns);
        }
    }

    fn take(&mut self, turn: &Turn) -> Result<Taken, LoadError> {
        self.members[turn.target].take(turn)
    }

    fn emit(&mut self, target: usize, events: &mut dyn FnMut(Event)) {
        self.members[target].emit(target, events);
    }

    fn settle(&mut self, targets: &[usize], fate: Fate) -> Result<(), LoadError> {
        for target in targets {
            if let Some(member) = self.members.get_mut(*target) {
                member.settle(fate);
            }
        }
        Ok(())
    }

    fn conclude(self) -> Result<Vec<(Outcome, Option<Quantiles>)>, LoadError> {
        let all = self.conclude_all()?;
        Ok(all.into_iter().map(|one| (one.outcome, one.alone.as_ref().map(quantiles))).collect())
    }
}

/// A target with its engine.
struct Member<'r> {
    engine: Engine<'r>,
    received: Receiver<Message>,
    seconds: Seconds,
    span: Span,
    plan: &'r Plan,
    /// What the thread had of its core in the measured turns.
    times: (u64, u64),
    /// The histograms of the blocks, while those of the stretch alone are filled.
    blocks: Option<Histograms>,
}

impl<'r> Member<'r> {
    /// With all its connections.
    fn connect(ready: &'r Ready<'_>) -> Result<Self, LoadError> {
        let (messages, received) = mpsc::channel();
        let (template, script) = (ready.template.clone(), ready.script.clone());
        let mut engine = Engine::new(&ready.shared, template, script, (0, 1), ready.connections, messages)?;
        engine.connect_all()?;
        let (seconds, span) = (ready.seconds(), ready.plan.span(0));
        Ok(Self { engine, received, seconds, span, plan: &ready.plan, times: (0, 0), blocks: None })
    }

    /// Its load begins at this instant, with its first turn.
    fn begin(&mut self, start: u64) {
        self.span = self.plan.span(start);
        self.engine.begin_turns(self.span);
    }

    /// Takes a turn.
    fn take(&mut self, turn: &Turn) -> Result<Taken, LoadError> {
        if turn.part == Part::Alone && self.blocks.is_none() {
            self.blocks = Some(std::mem::replace(&mut self.engine.recorder_mut().histograms, Histograms::new()?));
        }
        let (before, start_ns) = (self.engine.recorder_mut().requests, sys::monotonic_ns());
        let times = sys::thread_times();
        self.engine.begin_turn(nanoseconds(turn.length_s)).map_err(LoadError::system("wait for the sockets"))?;
        self.engine.go_on_until_turn_ends()?;
        let (end_ns, now) = (sys::monotonic_ns(), sys::thread_times());
        if turn.part != Part::WarmUp {
            self.times.0 += now.cpu.saturating_sub(times.cpu);
            self.times.1 += now.waited.saturating_sub(times.waited);
        }
        let recorder = self.engine.recorder_mut();
        let samples = recorder.samples.as_ref().map(|samples| samples.sent.as_slice()).unwrap_or_default();
        let late = samples.iter().filter(|(lag, waited)| !waited && *lag > LATE_NS).count() as u64;
        Ok(Taken { end_ns, requests: recorder.requests - before, late, ..Taken::none(turn, start_ns) })
    }

    /// Hands on which seconds have passed.
    fn emit(&mut self, target: usize, events: &mut dyn FnMut(Event)) {
        for message in self.received.try_iter() {
            match message {
                Message::Passed(part) => {
                    if let Some(second) = self.seconds.passed(part) {
                        events(Event::Second(target, second));
                    }
                }
                Message::Closed(part) => self.seconds.closed(part),
                Message::Connected(_) => {}
            }
        }
    }

    /// The latencies of the last turn join the others, or are forgotten.
    fn settle(&mut self, fate: Fate) {
        let recorder = self.engine.recorder_mut();
        if let Some(samples) = &mut recorder.samples {
            samples.settle((fate == Fate::Counts).then_some(&mut recorder.histograms));
        }
    }

    /// Adds up.
    fn conclude(self, ready: &Ready<'_>) -> Result<Concluded, LoadError> {
        let Self { engine, received, mut seconds, span, times, blocks, .. } = self;
        let mut record = engine.end();
        (record.cpu_ns, record.waited_ns) = times;
        for message in received.try_iter() {
            if let Message::Closed(part) = message {
                seconds.closed(part);
            }
        }
        let alone = blocks.map(|blocks| std::mem::replace(&mut record.histograms, blocks).latency);
        let (outcome, histograms) = ready.conclude(std::slice::from_ref(&record), seconds, &span)?;
        Ok(Concluded { outcome, histograms, alone })
    }
}
