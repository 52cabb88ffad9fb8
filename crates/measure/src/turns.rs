//! The process that sends the load of an alternating round, or lets others send it. It turns between the targets and reads everybody's CPU
//! time between two turns, when nothing is under way. Started like the load generator, spoken to in JSON lines over pipes.

use std::io::{Read, Write};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use unladen_load::alternate::{self, Alternation, Outcomes};
use unladen_load::child;
use unladen_load::outcome::Second;
use unladen_load::parts::{self, Meeting};
use unladen_probe::edges::{Edge, Edges, Sources};

/// What the process is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) alternation: Alternation,
    pub(crate) sources: Sources,
    /// Where those meet who send the load; `None`: this process sends it.
    pub(crate) meeting: Option<Meeting>,
}

/// What it says, a line each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// All connections stand.
    Ready,
    /// The first measured turn begins at this instant, `CLOCK_MONOTONIC` ns.
    Measuring { at_ns: u64 },
    /// The last block is over.
    BlocksOver,
    /// A second of a target's own time has passed.
    Second { target: usize, second: Second },
    /// The load has ended.
    Done { measured: Box<Measured> },
}

/// What came of the turns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) outcomes: Outcomes,
    /// Before the first measured turn, and after every one.
    pub(crate) edges: Vec<Edge>,
}

/// Reads a configuration up to the end of the input, takes the turns, writes every event as a line. Returns 0, or 2 after one line on
/// standard error.
pub fn main(mut input: impl Read, mut output: impl Write) -> ExitCode {
    child::serve(&mut input, &mut output, |config: Config, emit, stop| {
        let mut edges = Edges::new(config.sources);
        let mut on = |event| {
            emit(&match event {
                alternate::Event::Ready => Event::Ready,
                alternate::Event::Measuring(at_ns) => Event::Measuring { at_ns },
                alternate::Event::BlocksOver => Event::BlocksOver,
                alternate::Event::Second(target, second) => Event::Second { target, second },
            });
        };
        let outcomes = match &config.meeting {
            Some(meeting) => parts::run(meeting, &config.alternation, &mut edges, &mut on, stop),
            None => alternate::run(&config.alternation, &mut edges, &mut on, stop),
        };
        let outcomes = outcomes.map_err(|it| it.to_string())?;
        if let Some(lost) = edges.failure() {
            return Err(format!("the probe in a pod was lost: {lost}"));
        }
        emit(&Event::Done { measured: Box::new(Measured { outcomes, edges: edges.into_edges() }) });
        Ok(())
    })
}
