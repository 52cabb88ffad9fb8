//! The generator as a process of its own: a plan as JSON on standard input, events as JSON lines on standard output.
//!
//! A process of its own keeps the generator's CPU apart from the service's. SIGTERM and SIGINT end the load early; the outcome
//! is still delivered.

use std::io::{BufRead, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::outcome::Event;
use crate::plan::Plan;

/// Exit code if the load could not run.
const COULD_NOT_RUN: u8 = 2;

/// Reads one plan up to the end of the input, runs it, and writes every [`Event`] as a line of JSON: `ready`, `second`s, `done`.
/// Returns 0, or 2 after one line on standard error that says why the load could not run. If the output is closed, the load ends.
pub fn main(mut input: impl Read, mut output: impl Write) -> ExitCode {
    serve(&mut input, &mut output, |plan: Plan, emit, stop| {
        let outcome = crate::run(&plan, &mut |event| emit(&event), stop).map_err(|error| error.to_string())?;
        emit(&Event::Done(Box::new(outcome)));
        Ok(())
    })
}

/// Reads a plan of any kind up to the end of the input and hands it to `load`, with a way to write events as lines of JSON, each at
/// once, and the flag that SIGTERM and SIGINT set to end the load. Returns 0, or 2 after one line on standard error.
pub fn serve<P: DeserializeOwned, E: Serialize>(
    input: &mut dyn Read,
    output: &mut dyn Write,
    load: impl FnOnce(P, &mut dyn FnMut(&E), &AtomicBool) -> Result<(), String>,
) -> ExitCode {
    match try_serve(input, output, load) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

fn try_serve<P: DeserializeOwned, E: Serialize>(
    input: &mut dyn Read,
    output: &mut dyn Write,
    load: impl FnOnce(P, &mut dyn FnMut(&E), &AtomicBool) -> Result<(), String>,
) -> Result<(), String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| format!("cannot listen for signal {signal}: {error}"))?;
    }
    let mut text = String::new();
    input.read_to_string(&mut text).map_err(|error| format!("cannot read the plan: {error}"))?;
    let plan: P = serde_json::from_str(&text).map_err(|error| format!("the plan is not valid: {error}"))?;
    let mut failed = None;
    let mut emit = |event: &E| {
        if let Err(error) = line(output, event) {
            failed = Some(error);
            stop.store(true, Ordering::Relaxed);
        }
    };
    load(plan, &mut emit, &stop)?;
    failed.map_or(Ok(()), |error| Err(format!("cannot write to standard output: {error}")))
}

/// Writes an event as one line, at once.
///
/// # Errors
/// It cannot be written.
pub fn line(output: &mut dyn Write, event: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(event)?;
    text.push(b'\n');
    output.write_all(&text)?;
    output.flush()
}

/// The next line of at most so many bytes; `None`: the other end says no more.
///
/// # Errors
/// It cannot be read, is longer (its rest is not read), or is not what is wanted.
pub fn read_line<T: DeserializeOwned>(reader: impl BufRead, max_bytes: u64) -> std::io::Result<Option<T>> {
    let mut text = Vec::new();
    reader.take(max_bytes).read_until(b'\n', &mut text)?;
    if text.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&text)?)) }
}
