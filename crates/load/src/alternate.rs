//! Several loads that share the time: one target at a time, turn by turn, so that all of them meet the machine in the same moods.
//!
//! Each target has a plan of its own: rate, trace ids, checks, connections, histograms. Its load's clock stands still while others have
//! their turns, so it knows nothing of them: its schedule, its seconds and its window go on where they stopped. A turn ends with its
//! last answer, so nothing of one target is under way in the turn of another, and what lies between two turns counts for nobody.
//!
//! Known as duet benchmarking where both sides run at the same moment (Bulej et al., "Duet Benchmarking", 2020, arXiv:2001.05811), and as
//! switchback experiments where one system changes between treatments (Bojinov, Simchi-Levi & Zhao, Management Science 69(7), 2023).

mod members;
mod schedule;

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

pub use schedule::{Lengths, schedule};

pub(crate) use members::{Concluded, LATE_NS, Members};

use crate::error::LoadError;
use crate::outcome::{Outcome, Quantiles, Second};
use crate::pace::nanoseconds;
use crate::plan::Plan;
use crate::ready::Ready;
use crate::sys;

/// From the last connection to the start, if no start is given.
const HEAD_START_NS: u64 = 1_000_000;
/// So large a share of a turn's requests may be sent late, until the generator is called late in it.
const LATE_SHARE: f64 = 0.05;

/// Loads that take turns: read as JSON by the generator process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternation {
    /// One load for each target. Lengths, start and cores of the plans are not looked at: `turns`, `start_at_ns` and `core` say them.
    pub targets: Vec<Plan>,
    /// The turns, in their order: first those that warm up, then those that are measured.
    pub turns: Vec<Turn>,
    /// Instant of the first turn, `CLOCK_MONOTONIC` nanoseconds; `None`: as soon as all are connected.
    pub start_at_ns: Option<u64>,
    /// Seconds between the last turn of the warm-up and the first that is measured.
    pub pause_s: f64,
    /// Core to run on; `None`: wherever the system puts it.
    pub core: Option<u32>,
}

/// One target has the load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Index into [`Alternation::targets`].
    pub target: usize,
    /// Seconds for which requests are due. It ends with the last answer.
    pub length_s: f64,
    /// What it is for.
    pub part: Part,
    /// Turns of one number count, or do not, together: a super-block.
    pub group: u32,
}

/// What a turn is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Not measured.
    WarmUp,
    /// A short turn among those of others.
    Block,
    /// A long one: the target has the load for itself.
    Alone,
}

/// A measured turn that has been taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// What was wanted.
    pub turn: Turn,
    /// When it began, `CLOCK_MONOTONIC` nanoseconds.
    pub start_ns: u64,
    /// When its last answer was there.
    pub end_ns: u64,
    /// Requests due in it and answered well.
    pub requests: u64,
    /// Of those due in it, how many were sent more than a millisecond late although a connection was free.
    pub late: u64,
    /// Whether it counts.
    pub fate: Fate,
}

impl Taken {
    /// One in which nothing has been done yet.
    pub(crate) fn none(turn: &Turn, start_ns: u64) -> Self {
        Self { turn: *turn, start_ns, end_ns: start_ns, requests: 0, late: 0, fate: Fate::Counts }
    }
}

/// Whether a turn counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It does.
    #[default]
    Counts,
    /// It does not: the generator was late in a turn of its group.
    Late,
    /// It does not: something else took the machine during its group.
    Disturbed,
    /// It does not: a JIT compiler was unusually busy during its group.
    Compiling,
}

/// What happens while the turns are taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// All connections stand.
    Ready,
    /// The first measured turn begins at this instant, `CLOCK_MONOTONIC` nanoseconds, [`Alternation::pause_s`] from now.
    Measuring(u64),
    /// The last block is over; what comes after it are stretches alone, if there are any.
    BlocksOver,
    /// A second of a target's own time has passed.
    Second(usize, Second),
}

/// Reads what is to be read between turns, when nothing is under way.
pub trait Meter {
    /// Before the first measured turn, and after every one.
    fn edge(&mut self);

    /// After the last turn of a group: whether it counts. It is not told whose turns they were.
    fn fate(&mut self) -> Fate;
}

/// A meter that reads nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn edge(&mut self) {}

    fn fate(&mut self) -> Fate {
        Fate::Counts
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Outcomes {
    /// By target, in their order. The window is all measured turns of the target, those that do not count included; but the latencies
    /// ([`Outcome::latency_us`] and its likes) are of the blocks that count.
    pub targets: Vec<Outcome>,
    /// Latency of the turns in which a target had the load for itself, by target, µs; empty where there were none.
    pub alone_us: Vec<Quantiles>,
    /// The measured turns, in their order.
    pub turns: Vec<Taken>,
}

/// Who sends the loads in their turns: this process, or several elsewhere. Instants are of this machine's `CLOCK_MONOTONIC`.
pub(crate) trait Senders {
    /// All loads begin at this instant, each with its first turn.
    fn begin(&mut self, at_ns: u64) -> Result<(), LoadError>;

    /// Waits for an instant, or the stop flag.
    fn wait_until(&mut self, at_ns: u64);

    /// Takes a turn, until its last answer is there.
    fn take(&mut self, turn: &Turn) -> Result<Taken, LoadError>;

    /// Hands on which seconds of a target have passed.
    fn emit(&mut self, target: usize, events: &mut dyn FnMut(Event));

    /// The latencies of the last turns of these targets join the others, or are forgotten.
    fn settle(&mut self, targets: &[usize], fate: Fate) -> Result<(), LoadError>;

    /// Adds up: by target its outcome, and its latency alone if it had a turn for itself.
    fn conclude(self) -> Result<Vec<(Outcome, Option<Quantiles>)>, LoadError>;
}

/// Takes the turns, on the calling thread, and returns what came back. `events` is called between turns. Setting `stop` ends the load
/// early; what then comes back covers the turns so far.
///
/// # Errors
/// As [`crate::run`].
pub fn run(
    alternation: &Alternation,
    meter: &mut dyn Meter,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<Outcomes, LoadError> {
    check(alternation)?;
    let readies: Vec<Ready<'_>> =
        (0..alternation.targets.len()).map(|at| Ready::new(&alternation.plan(at), stop)).collect::<Result<_, _>>()?;
    sys::prepare_thread(alternation.core).map_err(LoadError::system("pin a thread to its core"))?;
    take_turns(alternation, Members::connect(&readies)?, meter, events, stop)
}

/// Lets them take the turns: all are connected.
pub(crate) fn take_turns<S: Senders>(
    alternation: &Alternation,
    mut senders: S,
    meter: &mut dyn Meter,
    events: &mut dyn FnMut(Event),
    stop: &AtomicBool,
) -> Result<Outcomes, LoadError> {
    events(Event::Ready);
    let start = alternation.start_at_ns.unwrap_or_else(|| sys::monotonic_ns() + HEAD_START_NS);
    senders.begin(start)?;
    senders.wait_until(start);
    let mut taken: Vec<Taken> = Vec::with_capacity(alternation.turns.len());
    let last_block = alternation.turns.iter().rev().find(|turn| turn.part == Part::Block).map(|turn| turn.group);
    for group in alternation.turns.chunk_by(|one, next| (one.part, one.group) == (next.part, next.group)) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Some(part) = group.first().map(|turn| turn.part) else { continue };
        if part != Part::WarmUp && taken.is_empty() {
            let at = sys::monotonic_ns() + nanoseconds(alternation.pause_s);
            events(Event::Measuring(at));
            senders.wait_until(at);
            meter.edge();
        }
        let first = taken.len();
        for turn in group {
            let one = senders.take(turn)?;
            if part != Part::WarmUp {
                meter.edge();
                taken.push(one);
            }
            senders.emit(turn.target, events);
        }
        if part != Part::WarmUp {
            let fate = fate(&taken[first..], meter.fate());
            taken[first..].iter_mut().for_each(|one| one.fate = fate);
            let targets: Vec<usize> = group.iter().map(|turn| turn.target).collect();
            senders.settle(&targets, fate)?;
            if part == Part::Block && group.first().map(|turn| turn.group) == last_block {
                events(Event::BlocksOver);
            }
        }
    }
    let mut outcomes = Outcomes { turns: taken, ..Outcomes::default() };
    for (outcome, alone) in senders.conclude()? {
        outcomes.targets.push(outcome);
        outcomes.alone_us.extend(alone);
    }
    Ok(outcomes)
}

/// Whether the turns of a group count. A stretch alone always does: there is no other to take its place.
fn fate(group: &[Taken], metered: Fate) -> Fate {
    let is_late = |one: &Taken| one.late as f64 > LATE_SHARE * one.requests.max(1) as f64;
    match group.first().map(|one| one.turn.part) {
        Some(Part::Block) if group.iter().any(is_late) => Fate::Late,
        Some(Part::Block) => metered,
        _ => Fate::Counts,
    }
}

impl Alternation {
    /// The plan of a target, with the lengths that its turns make.
    pub(crate) fn plan(&self, target: usize) -> Plan {
        let seconds = |is_of: fn(Part) -> bool| {
            let turns = self.turns.iter().filter(|turn| turn.target == target && is_of(turn.part));
            // Whole nanoseconds, as the turns have them.
            turns.map(|turn| nanoseconds(turn.length_s)).sum::<u64>() as f64 / 1e9
        };
        let (warmup_s, window_s) = (seconds(|part| part == Part::WarmUp), seconds(|part| part != Part::WarmUp));
        Plan { warmup_s, window_s, cores: Vec::new(), start_at_ns: None, ..self.targets[target].clone() }
    }
}

/// Refuses turns that make no sense.
pub(crate) fn check(alternation: &Alternation) -> Result<(), LoadError> {
    let refuse = |field, value: String, remedy| Err(LoadError::Plan { field, value, remedy });
    let targets = alternation.targets.len();
    if let Some(turn) = alternation.turns.iter().find(|turn| turn.target >= targets) {
        return refuse("turns.target", turn.target.to_string(), "write the number of a target, from 0");
    }
    if let Some(turn) = alternation.turns.iter().find(|turn| !(1e-3..=1e6).contains(&turn.length_s)) {
        return refuse("turns.length_s", turn.length_s.to_string(), "write seconds, at least a millisecond");
    }
    if alternation.turns.windows(2).any(|pair| pair[0].part != Part::WarmUp && pair[1].part == Part::WarmUp) {
        return refuse("turns.part", "warm_up".to_owned(), "warm up before the first turn that is measured");
    }
    if !(0.0..=60.0).contains(&alternation.pause_s) {
        return refuse("pause_s", alternation.pause_s.to_string(), "write seconds, 0 to 60");
    }
    if alternation.targets.iter().any(|plan| plan.limit.is_some() || plan.shard.is_some()) {
        return refuse(
            "targets",
            "limit or shard".to_owned(),
            "what takes turns has no limit of requests and no shards",
        );
    }
    Ok(())
}
