//! Runs a load: starts a thread per core, lets them connect, gives the start, adds up.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use crate::engine::{Engine, Message, Shared};
use crate::error::LoadError;
use crate::http1::request::Template;
use crate::outcome::{Event, Outcome};
use crate::pace::Span;
use crate::plan::Plan;
use crate::ready::Ready;
use crate::record::Recorder;
use crate::script::Script;
use crate::sys;

/// From the last connection to the start, if the plan has no start: time for the threads to hear of it.
const HEAD_START_NS: u64 = 1_000_000;

/// Runs a load to its end and returns what came back. Blocks; `events` is called on this thread with [`Event::Ready`] and, as
/// they pass, [`Event::Second`]s. Setting `stop` ends the load early: nothing is sent any more, answers are waited for up to
/// a second, and the outcome covers the window up to that instant.
///
/// # Errors
/// [`LoadError`] if the load could not run at all, or its histograms could not be written. Failing requests are no error.
pub fn run(plan: &Plan, events: &mut dyn FnMut(Event), stop: &AtomicBool) -> Result<Outcome, LoadError> {
    let ready = Ready::new(plan, stop)?;
    let Ready { plan, shared, template, script, connections, threads, .. } = &ready;
    let (records, seconds, span) = thread::scope(|scope| {
        let (messages, received) = mpsc::channel();
        let mut starts = Vec::new();
        let mut handles = Vec::new();
        for number in 0..*threads {
            let (start, started) = mpsc::channel();
            starts.push(start);
            let messages = messages.clone();
            let work = (template.clone(), script.clone());
            let connections = connections / threads + usize::from(number < connections % threads);
            let core = plan.cores.get(number).copied();
            handles.push(
                scope.spawn(move || thread(shared, work, (number, *threads), connections, core, messages, &started)),
            );
        }
        drop(messages);
        // An error drops the start channels, which ends the threads; the scope waits for them.
        let span = start(plan, &starts, &received)?;
        events(Event::Ready);
        let mut seconds = ready.seconds();
        for message in &received {
            match message {
                Message::Passed(part) => {
                    if let Some(second) = seconds.passed(part) {
                        events(Event::Second(second));
                    }
                }
                Message::Closed(part) => seconds.closed(part),
                Message::Connected(_) => {}
            }
        }
        let mut records = Vec::new();
        for handle in handles {
            if let Some(record) = handle.join().map_err(|_| LoadError::Thread)?? {
                records.push(record);
            }
        }
        Ok::<_, LoadError>((records, seconds, span))
    })?;
    Ok(ready.conclude(&records, seconds, &span)?.0)
}

/// One thread: connects, waits for the start, runs. `None`: the start was called off.
fn thread(
    shared: &Shared<'_>,
    (template, script): (Template, Option<Script>),
    (number, threads): (usize, usize),
    connections: usize,
    core: Option<u32>,
    messages: Sender<Message>,
    started: &Receiver<Span>,
) -> Result<Option<Recorder>, LoadError> {
    let ready = sys::prepare_thread(core)
        .map_err(LoadError::system("pin a thread to its core"))
        .and_then(|()| {
            Engine::new(shared, template, script, (number as u64, threads as u64), connections, messages.clone())
        })
        .and_then(|mut engine| engine.connect_all().map(|()| engine));
    match ready {
        Ok(engine) => {
            // If nobody listens any more, no start will come either.
            let _ = messages.send(Message::Connected(Ok(())));
            drop(messages);
            let Ok(span) = started.recv() else { return Ok(None) };
            // A closed loop has no schedule to keep, and would take its core from everyone.
            if shared.schedule.is_some() {
                sys::go_ahead();
            }
            engine.run(span).map(Some)
        }
        Err(error) => {
            let _ = messages.send(Message::Connected(Err(error)));
            Ok(None)
        }
    }
}

/// Waits until all threads are connected, then gives the start.
fn start(plan: &Plan, starts: &[Sender<Span>], received: &Receiver<Message>) -> Result<Span, LoadError> {
    for _ in starts {
        match received.recv() {
            Ok(Message::Connected(result)) => result?,
            Ok(_) | Err(_) => return Err(LoadError::Thread),
        }
    }
    let now = sys::monotonic_ns();
    let at = plan.start_at_ns.unwrap_or(now + HEAD_START_NS);
    let span = plan.span(at);
    // A start that has just passed costs the warm-up a little; one after the warm-up would falsify the window.
    if now >= span.window_start && now > at {
        return Err(LoadError::StartPassed { late_ms: (now - at) / 1_000_000 });
    }
    for start in starts {
        start.send(span).map_err(|_| LoadError::Thread)?;
    }
    Ok(span)
}
