//! Those who ask a probe elsewhere.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use unladen_linux::monotonic_ns;
use unladen_load::child::{line, read_line};
use unladen_load::parts::Clock;

use super::{Answer, Ask, Counters, Remote, Whose, Window};
use crate::observation::Observation;
use crate::target::Target;

/// A probe answers within this time, or is lost.
const AT_ONCE: Duration = Duration::from_secs(5);
/// The same for what it has seen over a window, which it puts together first.
const SOON: Duration = Duration::from_secs(30);
/// No answer is longer, bytes.
const MAX_ANSWER: u64 = 64 << 20;
/// Questions about its clock: the quickest answer counts.
const QUESTIONS: usize = 8;

/// Why a probe does not answer.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The connection.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// It has said why.
    #[error("{0}")]
    Refused(String),
}

impl From<RemoteError> for io::Error {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Connection(error) => error,
            RemoteError::Refused(_) => Self::other(error),
        }
    }
}

/// Whether a probe answers.
///
/// # Errors
/// It does not, or it is of another version.
pub fn ping(remote: &Remote) -> Result<(), RemoteError> {
    Conversation::open(remote).map(drop)
}

/// A conversation with a probe.
#[derive(Debug)]
struct Conversation {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Conversation {
    fn open(remote: &Remote) -> Result<Self, RemoteError> {
        let stream = TcpStream::connect_timeout(&remote.address, AT_ONCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(AT_ONCE))?;
        let reader = BufReader::new(stream.try_clone()?);
        let mut it = Self { stream, reader };
        let hello = Ask::Hello { secret: remote.secret.clone(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let Answer::Hello = it.ask(&hello)? else { return Err(unexpected()) };
        Ok(it)
    }

    fn tell(&mut self, what: &Ask) -> Result<(), RemoteError> {
        Ok(line(&mut self.stream, what)?)
    }

    fn answer(&mut self) -> Result<Answer, RemoteError> {
        match read_line(&mut self.reader, MAX_ANSWER)? {
            None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Some(Answer::Failed(message)) => Err(RemoteError::Refused(message)),
            Some(answer) => Ok(answer),
        }
    }

    fn ask(&mut self, what: &Ask) -> Result<Answer, RemoteError> {
        self.tell(what)?;
        self.answer()
    }

    /// Its clock.
    fn clock(&mut self) -> Result<Clock, RemoteError> {
        let mut known: Option<Clock> = None;
        for _ in 0..QUESTIONS {
            let sent = monotonic_ns();
            let Answer::Clock(said) = self.ask(&Ask::Clock)? else { return Err(unexpected()) };
            let received = monotonic_ns();
            let clock = Clock::of(sent, said, received);
            known = Some(known.map_or(clock, |known| known.or(clock, received)));
        }
        known.ok_or_else(unexpected)
    }
}

fn unexpected() -> RemoteError {
    RemoteError::Refused("it answers something else".to_owned())
}

/// Counters elsewhere, read again and again. Once it is lost there are none any more.
#[derive(Debug)]
pub(crate) struct RemoteCounters {
    conversation: Result<Conversation, RemoteError>,
}

impl RemoteCounters {
    pub(crate) fn new(remote: &Remote) -> Self {
        Self { conversation: Conversation::open(remote) }
    }

    /// Asks it to read now; what it reads is for [`RemoteCounters::counters`].
    pub(crate) fn begin(&mut self) {
        let Ok(conversation) = &mut self.conversation else { return };
        if let Err(error) = conversation.tell(&Ask::Read) {
            self.conversation = Err(error);
        }
    }

    pub(crate) fn counters(&mut self) -> Option<Counters> {
        let answer = self.conversation.as_mut().ok()?.answer();
        let error = match answer {
            Ok(Answer::Counters(counters)) => return Some(counters),
            Ok(_) => unexpected(),
            Err(error) => error,
        };
        self.conversation = Err(error);
        None
    }

    /// Why there are no counters any more.
    pub(crate) fn failure(&self) -> Option<String> {
        self.conversation.as_ref().err().map(ToString::to_string)
    }
}

/// A window that a probe elsewhere watches. Dropping it lets the probe go.
#[derive(Debug)]
pub(crate) struct RemoteSampler {
    /// Its place among the targets.
    pub(crate) place: usize,
    service: String,
    stop: Sender<()>,
    thread: JoinHandle<Result<Observation, RemoteError>>,
}

impl RemoteSampler {
    /// `window`: by the clock of this process.
    pub(crate) fn start(place: usize, target: Target, remote: &Remote, window: Window) -> io::Result<Self> {
        let mut conversation = Conversation::open(remote)?;
        let clock = conversation.clock()?;
        let end_ns = window.end_ns;
        let window = Window { start_ns: clock.there(window.start_ns), end_ns: clock.there(end_ns), ..window };
        let service = target.service.clone();
        let Target { service: name, replica, role, endpoint, .. } = target;
        let whose = Whose { service: name, replica, role, endpoint };
        let Answer::Watching = conversation.ask(&Ask::Watch { whose, window })? else {
            return Err(unexpected().into());
        };
        let (stop, stopped) = channel();
        let thread = thread::Builder::new().name("remote-probe".to_owned()).spawn(move || {
            let left = Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()));
            let now = match stopped.recv_timeout(left) {
                Ok(()) => true,
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => return Err(unexpected()),
            };
            conversation.stream.set_read_timeout(Some(SOON))?;
            match conversation.ask(&Ask::Finish { now })? {
                Answer::Seen(seen) => Ok(*seen),
                _ => Err(unexpected()),
            }
        })?;
        Ok(Self { place, service, stop, thread })
    }

    /// Ends the window now.
    pub(crate) fn end(&self) {
        // If the thread is gone already, the window has passed its planned end.
        let _ = self.stop.send(());
    }

    /// What was seen, or why nothing is known of it.
    pub(crate) fn finish(self) -> Result<Observation, String> {
        let lost = |why: String| format!("the probe of {} was lost: {why}", self.service);
        match self.thread.join() {
            Ok(seen) => seen.map_err(|error| lost(error.to_string())),
            Err(_) => Err(lost("its thread has ended".to_owned())),
        }
    }

    /// Whether [`Self::finish`] will not wait.
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}
