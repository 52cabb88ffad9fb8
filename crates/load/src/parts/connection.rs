//! One part, as those see it who meet it.

use std::io::{self, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::clock::Clock;
use super::{Answer, Ask, Hello, MAX_CLOCK_BOUND_NS};
use crate::alternate::Fate;
use crate::child::{line, read_line};
use crate::error::LoadError;
use crate::sys;

/// How often the stop flag is looked at while an answer is waited for.
const LOOK: Duration = Duration::from_millis(50);
/// A stranger may take so long to say who he is.
const INTRODUCTION: Duration = Duration::from_secs(1);
/// No first line is longer, bytes.
const LONGEST_HELLO: u64 = 4_096;
/// No other line is longer, bytes: histograms of many requests, encoded.
const LONGEST_ANSWER: u64 = 1 << 28;
/// Questions at the start of a conversation: the quickest answer counts.
const QUESTIONS: usize = 8;
/// An answer about a clock is there after this time, or the part is lost.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A conversation with a part.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) hello: Hello,
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    /// What has come of the next line.
    line: Vec<u8>,
    clock: Clock,
    /// The largest bound that its clock had when a turn began, ns.
    pub(super) clock_bound_ns: u64,
    /// [`crate::outcome::PartSeen::late_us`], ns.
    pub(super) late_ns: u64,
    /// The same of the turns whose fate is open.
    pub(super) open_late_ns: u64,
    told_to_stop: bool,
}

impl Connection {
    /// Listens to who it is.
    pub(super) fn open(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(INTRODUCTION))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let hello = read_line(&mut reader, LONGEST_HELLO)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        stream.set_read_timeout(Some(LOOK))?;
        let clock = Clock::of(0, 0, u64::MAX);
        Ok(Self {
            hello,
            stream,
            reader,
            line: Vec::new(),
            clock,
            clock_bound_ns: 0,
            late_ns: 0,
            open_late_ns: 0,
            told_to_stop: false,
        })
    }

    /// `part 2 on node-b`.
    pub(super) fn name(&self) -> String {
        format!("part {} on {}", self.hello.number, self.hello.machine)
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    fn lost(&self, why: impl std::fmt::Display) -> LoadError {
        LoadError::Parts { message: format!("{} was lost: {why}", self.name()) }
    }

    /// Asks for something; its answer is for [`Connection::answer`].
    pub(super) fn ask(&mut self, what: &Ask) -> Result<(), LoadError> {
        line(&mut self.stream, what).map_err(|error| self.lost(error))
    }

    /// The next answer, within `patience`. If the flag is set meanwhile, the part is told, and answers sooner.
    pub(super) fn answer(&mut self, patience: Duration, stop: &AtomicBool) -> Result<Answer, LoadError> {
        let deadline = Instant::now() + patience;
        loop {
            if stop.load(Ordering::Relaxed) && !self.told_to_stop {
                self.told_to_stop = true;
                self.ask(&Ask::Stop)?;
            }
            let most = LONGEST_ANSWER.saturating_sub(self.line.len() as u64);
            match io::BufRead::read_until(&mut Read::by_ref(&mut self.reader).take(most), b'\n', &mut self.line) {
                Ok(_) if self.line.len() as u64 == LONGEST_ANSWER => return Err(self.lost("its answer does not end")),
                Ok(_) if self.line.last() != Some(&b'\n') => return Err(self.lost("it has ended")),
                Ok(_) => {
                    let answer = serde_json::from_slice(&self.line);
                    self.line.clear();
                    return match answer {
                        Ok(Answer::Failed { message }) => {
                            Err(LoadError::Parts { message: format!("{} cannot go on: {message}", self.name()) })
                        }
                        other => other.map_err(|error| self.lost(error)),
                    };
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if Instant::now() > deadline {
                        return Err(self.lost(format!("no answer within {} s", patience.as_secs())));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(error)),
            }
        }
    }

    pub(super) fn unexpected(&self) -> LoadError {
        self.lost("it answers something else")
    }

    /// Asks often enough what its clock says.
    pub(super) fn meet(&mut self, stop: &AtomicBool) -> Result<(), LoadError> {
        (0..QUESTIONS).try_for_each(|_| self.look_at_clock(stop))?;
        let bound = self.clock.bound_ns(sys::monotonic_ns());
        if bound > MAX_CLOCK_BOUND_NS {
            let message = format!(
                "the clock of {} is known to ±{:.1} ms only, as its answers take that long; the limit is {} ms. Put the load on a machine nearer to the service",
                self.name(),
                bound as f64 / 1e6,
                MAX_CLOCK_BOUND_NS / 1_000_000
            );
            return Err(LoadError::Parts { message });
        }
        Ok(())
    }

    /// Asks what its clock says.
    pub(super) fn look_at_clock(&mut self, stop: &AtomicBool) -> Result<(), LoadError> {
        let sent = sys::monotonic_ns();
        self.ask(&Ask::Clock)?;
        let Answer::Clock { at_ns } = self.answer(AT_ONCE, stop)? else { return Err(self.unexpected()) };
        let received = sys::monotonic_ns();
        self.clock = self.clock.or(Clock::of(sent, at_ns, received), received);
        Ok(())
    }

    /// How long a question takes to get there and back, at most, as far as is known, ns.
    pub(super) fn round_trip_ns(&self) -> u64 {
        2 * self.clock.bound_ns(sys::monotonic_ns())
    }

    /// An instant of this machine's clock, by that of the part.
    pub(super) fn there(&mut self, here_ns: u64) -> u64 {
        self.clock_bound_ns = self.clock_bound_ns.max(self.clock.bound_ns(here_ns));
        self.clock.there(here_ns)
    }

    /// The fate of its last turns.
    pub(super) fn settle(&mut self, fate: Fate) {
        let late_ns = std::mem::take(&mut self.open_late_ns);
        if fate == Fate::Counts {
            self.late_ns = self.late_ns.max(late_ns);
        }
    }

    /// An instant of the part's clock, by that of this machine.
    pub(super) fn here(&self, there_ns: u64) -> u64 {
        self.clock.here(there_ns)
    }
}
