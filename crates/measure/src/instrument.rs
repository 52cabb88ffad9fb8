//! The instrument's own processes: the load generator and the sink, started from the same executable, spoken to in JSON
//! lines over pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use unladen_ledger::summary::{Event as SinkEvent, Summary};
use unladen_linux::{CpuSet, Netns};
use unladen_processes::relay;
use unladen_processes::subject::{Launch, Launcher, Limits, Piped, Running, SubjectError};

/// A part of the instrument failed.
#[derive(Debug, thiserror::Error)]
pub enum InstrumentError {
    /// It could not be started.
    #[error("cannot start unladen's own {part} process: {source}")]
    Start {
        /// Which part.
        part: &'static str,
        /// Why.
        source: SubjectError,
    },
    /// It ended, or said something that was not expected.
    #[error("unladen's own {part} process failed: {message}")]
    Failed {
        /// Which part.
        part: &'static str,
        /// What it said.
        message: String,
    },
}

/// A process of the instrument that speaks events of type `E`.
#[derive(Debug)]
pub(super) struct Part<E> {
    name: &'static str,
    running: Running,
    events: Receiver<E>,
    /// The sink takes the end of its input for the end of unladen; the load generator reads its plan to the end.
    input: Option<ChildStdin>,
}

/// Why no event came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// None within the time.
    Timeout,
    /// The process has ended or closed its output.
    Ended,
}

impl<E: DeserializeOwned + Send + 'static> Part<E> {
    /// Starts the hidden subcommand `command` and hands it `config` on standard input, which stays open or not.
    pub(super) fn start(
        launcher: &Launcher,
        name: &'static str,
        command: &str,
        config: &impl Serialize,
        input_stays: bool,
        cpus: &CpuSet,
        logs: &Path,
    ) -> Result<Self, InstrumentError> {
        Self::launch(launcher, name, &launch(name, command, cpus, logs), config, input_stays)
    }

    /// The same for a launch that is more than the usual one.
    fn launch(
        launcher: &Launcher,
        name: &'static str,
        launch: &Launch,
        config: &impl Serialize,
        input_stays: bool,
    ) -> Result<Self, InstrumentError> {
        let failed = |message: String| InstrumentError::Failed { part: name, message };
        let Piped { running, stdin: mut input, stdout: output } =
            launcher.launch_piped(launch).map_err(|source| InstrumentError::Start { part: name, source })?;
        let mut line = serde_json::to_vec(config).map_err(|error| failed(error.to_string()))?;
        line.push(b'\n');
        input.write_all(&line).and_then(|()| input.flush()).map_err(|error| failed(error.to_string()))?;
        let (send, events) = mpsc::channel();
        thread::spawn(move || read_events(output, &send));
        Ok(Self { name, running, events, input: input_stays.then_some(input) })
    }

    /// The next event, waited for at most `time`.
    pub(super) fn next(&self, time: Duration) -> Result<E, Silence> {
        self.events.recv_timeout(time).map_err(|error| match error {
            RecvTimeoutError::Timeout => Silence::Timeout,
            RecvTimeoutError::Disconnected => Silence::Ended,
        })
    }

    /// Tells it something more; its input must have stayed.
    fn tell(&mut self, what: &impl Serialize) -> std::io::Result<()> {
        let Some(input) = &mut self.input else { return Err(std::io::ErrorKind::BrokenPipe.into()) };
        serde_json::to_writer(&mut *input, what)?;
        input.write_all(b"\n")?;
        input.flush()
    }

    /// Its process.
    pub(super) fn running(&self) -> &Running {
        &self.running
    }

    /// Asks it to end (SIGTERM); its last events still arrive.
    pub(super) fn end(&mut self) {
        self.running.ask_to_stop();
    }

    /// Makes sure that it has ended.
    pub(super) fn stop(mut self, grace: Duration) {
        // What survives even SIGKILL here is met again, and reported, when the launcher is closed.
        let _ = self.running.stop(grace);
    }

    /// The error for an end that was not expected, with what it last said.
    pub(super) fn failure(&self) -> InstrumentError {
        let tail = self.running.log_tail(6);
        let message = if tail.is_empty() { "it ended without a word".to_owned() } else { tail };
        InstrumentError::Failed { part: self.name, message }
    }
}

/// How a part is usually launched.
fn launch(name: &str, command: &str, cpus: &CpuSet, logs: &Path) -> Launch {
    Launch {
        service: name.to_owned(),
        // Not the path it was started by: that file may have been replaced by a newer build meanwhile.
        command: vec!["/proc/self/exe".to_owned(), command.to_owned()],
        cwd: logs.to_owned(),
        log: logs.join(format!("{name}.log")),
        cpus: Some(cpus.clone()),
        limits: Limits::default(),
        ..Launch::default()
    }
}

fn read_events<E: DeserializeOwned>(output: impl Read, send: &mpsc::Sender<E>) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        // A line that is no event ends the conversation; the reader sees `Ended` and looks into the log.
        let Ok(event) = serde_json::from_str(&line) else { break };
        if send.send(event).is_err() {
            break;
        }
    }
}

/// Lets the services in a network namespace reach addresses outside.
#[derive(Debug)]
pub(super) struct RelayPart(Part<relay::Event>);

impl RelayPart {
    /// Starts a relay and waits until it listens. Dropping it ends it.
    pub(super) fn start(
        launcher: &Launcher,
        config: &relay::Config,
        cpus: &CpuSet,
        logs: &Path,
    ) -> Result<Self, InstrumentError> {
        let part = Part::start(launcher, "relay", "__relay", config, true, cpus, logs)?;
        match part.next(Duration::from_secs(10)) {
            Ok(relay::Event::Ready) => Ok(Self(part)),
            Err(_) => Err(part.failure()),
        }
    }

    /// Its process.
    pub(super) fn running(&self) -> &Running {
        self.0.running()
    }
}

/// The sink of one run.
#[derive(Debug)]
pub(super) struct SinkPart {
    part: Part<SinkEvent>,
    received: u64,
    quiet_since: Instant,
}

impl SinkPart {
    /// Starts a sink, in a network namespace if one is given, and waits until it listens.
    pub(super) fn start(
        launcher: &Launcher,
        config: &unladen_sink::config::Config,
        cpus: &CpuSet,
        logs: &Path,
        network: Option<&Arc<Netns>>,
    ) -> Result<Self, InstrumentError> {
        let launch = Launch { network: network.cloned(), ..launch("sink", "__sink", cpus, logs) };
        let part = Part::launch(launcher, "sink", &launch, config, true)?;
        match part.next(Duration::from_secs(10)) {
            Ok(SinkEvent::Ready { .. }) => Ok(Self { part, received: 0, quiet_since: Instant::now() }),
            _ => Err(part.failure()),
        }
    }

    /// Its process.
    pub(super) fn running(&self) -> &Running {
        self.part.running()
    }

    /// Lets it listen in another network namespace as well, at the same addresses. The caller holds the namespace until this returns.
    pub(super) fn listen_in(&mut self, network: &Netns) -> Result<(), InstrumentError> {
        let failed = |message: String| InstrumentError::Failed { part: "sink", message };
        let network = network.path();
        self.part.tell(&unladen_sink::child::ListenIn { network }).map_err(|error| failed(error.to_string()))?;
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match self.part.next(deadline.saturating_duration_since(Instant::now())) {
                Ok(SinkEvent::Listening { error: None }) => return Ok(()),
                Ok(SinkEvent::Listening { error: Some(error) }) => {
                    return Err(failed(format!("it cannot listen in the network of a container: {error}")));
                }
                Ok(_) => {}
                Err(_) => return Err(self.part.failure()),
            }
        }
    }

    /// Takes in what the sink has said; fails if it has ended.
    pub(super) fn look(&mut self, time: Duration) -> Result<(), InstrumentError> {
        let mut wait = time;
        loop {
            match self.part.next(wait) {
                Ok(SinkEvent::Tick { received, quiet_ms, .. }) => {
                    self.received = received;
                    self.quiet_since =
                        Instant::now().checked_sub(Duration::from_millis(quiet_ms)).unwrap_or_else(Instant::now);
                }
                Ok(_) => {}
                Err(Silence::Timeout) => return Ok(()),
                Err(Silence::Ended) => return Err(self.part.failure()),
            }
            wait = Duration::ZERO;
        }
    }

    /// Spans received so far.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// How long no span has arrived.
    pub(super) fn quiet(&self) -> Duration {
        self.quiet_since.elapsed()
    }

    /// Ends it and returns its account.
    pub(super) fn finish(mut self) -> Result<Summary, InstrumentError> {
        self.part.end();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match self.part.next(deadline.saturating_duration_since(Instant::now())) {
                Ok(SinkEvent::Done(summary)) => {
                    self.part.stop(Duration::from_secs(5));
                    return Ok(*summary);
                }
                Ok(_) => {}
                Err(_) => return Err(self.part.failure()),
            }
        }
    }
}
