//! The parts of a load as one that sends it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::connection::Connection;
use super::{ALONE, Answer, Ask, Meeting};
use crate::alternate::{self, Alternation, Event, Fate, LATE_NS, Meter, Outcomes, Part, Senders, Taken, Turn};
use crate::error::LoadError;
use crate::histogram::{Histograms, add, parse, quantiles};
use crate::merge::{self, merge_seconds};
use crate::outcome::{Outcome, PartSeen, Quantiles, Second};
use crate::ready::write;
use crate::sys;

/// What a part needs to hear of a turn and get ready for it, besides the way there, ns.
const HEADWAY_NS: u64 = 200_000;
/// Parts may take so long for what needs no load: to connect to many targets, to encode histograms.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at the stop flag while nothing is sent, ns.
const LOOK_NS: u64 = 20_000_000;

/// Takes the turns of an alternation by the parts that come to a meeting, as [`alternate::run`] does by itself. The meter is of this
/// process.
///
/// # Errors
/// [`LoadError`] if a part cannot do its part, does not come, or is lost.
pub fn run(
    meeting: &Meeting,
    alternation: &Alternation,
    meter: &mut dyn Meter,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<Outcomes, LoadError> {
    alternate::check(alternation)?;
    sys::prepare_thread(alternation.core).map_err(LoadError::system("pin a thread to its core"))?;
    let mut parts = meeting.gather(stop)?;
    let order = Ask::Connect { alternation: Box::new(of_parts(alternation)), of: meeting.parts };
    parts.iter_mut().try_for_each(|part| part.ask(&order))?;
    for part in &mut parts {
        let Answer::Ready = part.answer(PATIENCE, stop)? else { return Err(part.unexpected()) };
    }
    let patience = alternation.targets.iter().map(|plan| plan.timeout_s).fold(0.0, f64::max);
    let patience = PATIENCE + Duration::from_secs_f64(2.0 * patience);
    let passed = vec![Vec::new(); alternation.targets.len()];
    let outs = alternation.targets.iter().map(|plan| plan.out.clone()).collect();
    alternate::take_turns(alternation, Parts { parts, patience, group: None, passed, outs, stop }, meter, events, stop)
}

/// What parts are told: they have neither the files nor the networks of this machine.
fn of_parts(alternation: &Alternation) -> Alternation {
    let mut told = alternation.clone();
    for plan in &mut told.targets {
        (plan.out, plan.network) = (None, None);
        plan.replicas.iter_mut().for_each(|replica| replica.network = None);
    }
    Alternation { core: None, ..told }
}

struct Parts<'s> {
    parts: Vec<Connection>,
    patience: Duration,
    /// That of the last turn.
    group: Option<u32>,
    /// By target: seconds that have passed in the last turn, in any part, and in how many.
    passed: Vec<Vec<(Second, usize)>>,
    /// Where the histograms of each target go.
    outs: Vec<Option<PathBuf>>,
    stop: &'s AtomicBool,
}

impl Parts<'_> {
    /// The same for all.
    fn tell(&mut self, what: &Ask) -> Result<(), LoadError> {
        self.parts.iter_mut().try_for_each(|part| part.ask(what))
    }

    /// A part's view of seconds that have passed.
    fn pass(&mut self, target: usize, seconds: Vec<Second>) {
        let rows = &mut self.passed[target];
        for second in seconds {
            match rows.iter_mut().find(|(row, _)| row.second == second.second) {
                None => rows.push((second, 1)),
                Some((row, count)) => {
                    *count += 1;
                    let mut sum = vec![std::mem::take(row)];
                    merge_seconds(&mut sum, vec![second]);
                    *row = sum.swap_remove(0);
                }
            }
        }
    }
}

impl Senders for Parts<'_> {
    fn begin(&mut self, at_ns: u64) -> Result<(), LoadError> {
        self.parts.iter_mut().try_for_each(|part| {
            let at_ns = part.there(at_ns);
            part.ask(&Ask::Begin { at_ns })
        })
    }

    fn wait_until(&mut self, at_ns: u64) {
        while sys::monotonic_ns() < at_ns && !self.stop.load(Ordering::Relaxed) {
            sys::sleep_until(at_ns.min(sys::monotonic_ns() + LOOK_NS));
        }
    }

    fn take(&mut self, turn: &Turn) -> Result<Taken, LoadError> {
        if self.group.replace(turn.group) != Some(turn.group) {
            self.parts.iter_mut().try_for_each(|part| part.look_at_clock(self.stop))?;
        }
        let way_ns = self.parts.iter().map(Connection::round_trip_ns).max().unwrap_or_default();
        let at = sys::monotonic_ns() + way_ns + HEADWAY_NS;
        for part in &mut self.parts {
            let at_ns = part.there(at);
            part.ask(&Ask::Take { turn: *turn, at_ns })?;
        }
        let patience = self.patience + Duration::from_secs_f64(turn.length_s);
        let mut whole = Taken::none(turn, at);
        for number in 0..self.parts.len() {
            let part = &mut self.parts[number];
            let Answer::Taken { taken, seconds } = part.answer(patience, self.stop)? else {
                return Err(part.unexpected());
            };
            let late_ns = part.here(taken.start_ns).saturating_sub(at);
            if turn.part == Part::Block && taken.requests > 0 {
                part.open_late_ns = part.open_late_ns.max(late_ns);
            }
            whole.end_ns = whole.end_ns.max(part.here(taken.end_ns));
            whole.requests += taken.requests;
            // Those of a part that began late were not sent while the others' were, though each in its own time.
            whole.late += if late_ns > LATE_NS { taken.requests } else { taken.late };
            self.pass(turn.target, seconds);
        }
        Ok(whole)
    }

    fn emit(&mut self, target: usize, events: &mut dyn FnMut(Event)) {
        let all = self.parts.len();
        for (second, _) in self.passed[target].extract_if(.., |(_, count)| *count == all) {
            events(Event::Second(target, second));
        }
    }

    fn settle(&mut self, targets: &[usize], fate: Fate) -> Result<(), LoadError> {
        self.parts.iter_mut().for_each(|part| part.settle(fate));
        self.tell(&Ask::Settle { targets: targets.to_vec(), fate })
    }

    fn conclude(mut self) -> Result<Vec<(Outcome, Option<Quantiles>)>, LoadError> {
        self.tell(&Ask::Conclude)?;
        let mut targets: Vec<Vec<Share>> = self.outs.iter().map(|_| Vec::new()).collect();
        for part in &mut self.parts {
            let Answer::Done(returned) = part.answer(self.patience, self.stop)? else { return Err(part.unexpected()) };
            if returned.len() != targets.len() {
                return Err(part.unexpected());
            }
            for (shares, one) in targets.iter_mut().zip(returned) {
                shares.push(Share::of(part, *one.outcome, &one.histograms)?);
            }
        }
        targets.into_iter().zip(&self.outs).map(|(shares, out)| whole(shares, out.as_ref())).collect()
    }
}

/// A part's share of what came back of a target.
struct Share {
    part: merge::Part,
    alone: Option<hdrhistogram::Histogram<u64>>,
    seen: PartSeen,
}

impl Share {
    fn of(part: &Connection, mut outcome: Outcome, histograms: &str) -> Result<Self, LoadError> {
        let failed = |message| LoadError::Parts { message: format!("{}: {message}", part.name()) };
        let mut lines = parse(histograms.as_bytes()).map_err(failed)?;
        let alone = lines.iter().position(|(tag, _)| tag == ALONE).map(|at| lines.swap_remove(at).1);
        let histograms = Histograms::from_tagged(lines).map_err(failed)?;
        outcome.window_start_ns = part.here(outcome.window_start_ns);
        outcome.window_end_ns = part.here(outcome.window_end_ns);
        let seen = PartSeen {
            number: part.hello.number,
            machine: part.hello.machine.clone(),
            sent: outcome.sent_total,
            clock_bound_us: part.clock_bound_ns as f64 / 1e3,
            late_us: part.late_ns as f64 / 1e3,
        };
        Ok(Self { part: merge::Part { path: part.name().into(), outcome, histograms }, alone, seen })
    }
}

/// One outcome of all parts; its histograms are written as those of a load by one process are.
fn whole(shares: Vec<Share>, out: Option<&PathBuf>) -> Result<(Outcome, Option<Quantiles>), LoadError> {
    let (mut parts, mut seen) = (Vec::with_capacity(shares.len()), Vec::with_capacity(shares.len()));
    let mut alone: Option<hdrhistogram::Histogram<u64>> = None;
    for share in shares {
        match (&mut alone, share.alone) {
            (Some(sum), Some(one)) => add(sum, &one),
            (sum @ None, one) => *sum = one,
            (Some(_), None) => {}
        }
        parts.push(share.part);
        seen.push(share.seen);
    }
    let merged = merge::merge(parts).map_err(|error| LoadError::Parts { message: error.to_string() });
    let (mut outcome, histograms) = merged?;
    outcome.parts = seen;
    if let Some(out) = out {
        write(out, &outcome, &histograms, outcome.window_start_ns)?;
    }
    Ok((outcome, alone.as_ref().map(quantiles)))
}
