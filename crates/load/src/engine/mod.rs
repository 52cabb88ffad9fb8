//! The engine: one thread, its connections, one event loop. Threads share nothing on the way of a request but, in a closed
//! loop, the counter that numbers requests.
//!
//! An open loop does not wake up for a response: it sleeps until the next request is due, reads what has come by then and takes
//! the time of arrival from the kernel's receive stamps. That halves the wake-ups, and the generator's own wake-up is in no
//! latency. It does wait for responses when requests queue for a connection, when the next request is far off, or when
//! responses are too large to be left in the socket.

mod agenda;
mod connection;
mod dispatch;
mod exchange;
mod http1;
mod http2;
mod iterations;
mod judge;
mod lanes;
mod protocol;
mod tick;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls_left_out.rs"]
mod tls;
mod users;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use crate::error::LoadError;
use crate::h2::frame;
use crate::h2::request::Encoded;
use crate::http1::head::HeadReader;
use crate::http1::request::Template;
use crate::pace::{Cursor, Profile, Schedule, Span};
use crate::plan::Check;
use crate::record::{Recorder, Samples};
use crate::request::Request;
use crate::script::{Progress, Script};
use crate::second::SecondPart;
use crate::sys::{self, Alarm, Clock, ClockBridge, Poller, ThreadTimes};
use crate::target::Address;
use crate::tls::Tls;
use agenda::Agenda;
use connection::Connection;
use lanes::Lanes;
use protocol::{Http1, Http2, Protocol};
use users::{Turns, Users};

/// Bytes that one read takes at most, with the beginning of a frame that was left of the last one.
const BUFFER: usize = (64 << 10) + frame::HEAD + frame::MAX_PAYLOAD;
/// Responses larger than this are read as they come: the socket's buffer may not hold them.
const LARGE_RESPONSE: u64 = 32 << 10;
/// A sleep that ignores responses lasts at most this long, nanoseconds.
const LONGEST_BLIND_SLEEP: u64 = 2_500_000;
/// How often timeouts, the stop flag and the seconds are looked after, nanoseconds.
const TICK: u64 = 10_000_000;
/// How long connections outlive a load whose time is up, ns. A service may end a thread with its connection, and with the thread goes what
/// the kernel has counted for it: whoever reads that at the window's end needs a moment.
const LINGER: u64 = 50_000_000;

/// What all threads of a load share, read-only but for the atomics.
pub(crate) struct Shared<'a> {
    /// Where to connect, dealt round; never empty.
    pub(crate) addresses: Vec<Address>,
    /// With TLS.
    pub(crate) tls: Option<Tls>,
    /// What a good answer looks like.
    pub(crate) check: Check,
    /// Method, for the framing of responses.
    pub(crate) method: String,
    /// HTTP/2: the request; `None`: HTTP/1.1.
    pub(crate) http2: Option<Encoded>,
    /// gRPC: the status wanted.
    pub(crate) grpc: Option<u16>,
    /// HTTP/2: requests at once per connection.
    pub(crate) streams: usize,
    /// Patience with one request, nanoseconds.
    pub(crate) timeout: u64,
    /// Patience with a connection that is being made, nanoseconds.
    pub(crate) connect_timeout: u64,
    /// Open loop: when iterations are due. `None`: closed loop.
    pub(crate) schedule: Option<Schedule>,
    /// Closed loop of users: how many there are, how long each pauses (nanoseconds), and iterations per second at most.
    pub(crate) users: Option<(Profile, u64, Option<f64>)>,
    /// Closed loops: iterations at most, this process's part.
    pub(crate) limit: u64,
    /// This process's part of the load: number from 0, and how many there are.
    pub(crate) shard: (u64, u64),
    /// Open loop: nanoseconds that a request waits at most for later ones, to be sent with them.
    pub(crate) slot: u64,
    /// Open loop: whether threads spin instead of sleeping.
    pub(crate) spin: bool,
    /// Set from outside to end the load early.
    pub(crate) stop: &'a AtomicBool,
    /// End of the window; lowered by the first thread that sees the stop flag.
    pub(crate) end: AtomicU64,
    /// Closed loop: number of the next iteration.
    pub(crate) iterations: AtomicU64,
    /// Sequences: number of the next request.
    pub(crate) counter: AtomicU64,
}

impl Shared<'_> {
    /// Where a connection goes. Shards deal together: each may have fewer connections than there are addresses.
    pub(crate) fn address(&self, connection: usize) -> &Address {
        let (shard, shards) = self.shard;
        let of_all = connection as u64 * shards + shard;
        &self.addresses[(of_all % self.addresses.len() as u64) as usize]
    }
}

/// What a thread tells while it runs.
pub(crate) enum Message {
    /// Its connections stand, or cannot be made.
    Connected(Result<(), LoadError>),
    /// What it knows of a second that has just passed.
    Passed(SecondPart),
    /// A second in which nothing can change any more.
    Closed(SecondPart),
}

/// One thread's engine.
pub(crate) struct Engine<'a> {
    shared: &'a Shared<'a>,
    messages: Sender<Message>,
    template: Template,
    /// Several requests, or ones with values: takes the template's place.
    script: Option<Script>,
    /// Where the iteration in each lane stands; empty without a script. HTTP/1.1: a lane is a connection.
    progress: Vec<Progress>,
    /// HTTP/2: the lanes of plans with a script or users.
    lanes: Lanes,
    /// Iteration that was taken last.
    iteration: u64,
    /// Readers of heads, one for each of the script's steps.
    heads: Vec<HeadReader>,
    poller: Poller,
    connections: Vec<Connection>,
    /// Connections with room for a request, longest free first. Some may have been closed since.
    idle: VecDeque<usize>,
    /// Connections that do not stand.
    closed: VecDeque<usize>,
    /// Closed loop: connections that have got their answer since the last round of sends.
    freed: Vec<usize>,
    /// HTTP/2: connections that have something to send.
    dirty: Vec<usize>,
    /// HTTP/2: requests that a server has not processed, with how often that has happened to them; they are sent again.
    returned: VecDeque<(Request, u8)>,
    /// Why the last handshake failed.
    reason: Option<String>,
    /// Connections that are being made, and requests that wait for an answer.
    active: usize,
    /// Connections in the middle of connecting, sending or receiving: they must not be left alone.
    delicate: usize,
    /// Open loop: this thread's part of the schedule.
    cursor: Option<Cursor>,
    /// Closed loop of users: this thread's.
    users: Option<Users>,
    /// What single connections are to do later.
    agenda: Agenda,
    /// Size of the largest response so far.
    largest: u64,
    buffer: Box<[u8]>,
    /// With TLS: what has been read and not been opened.
    sealed: Box<[u8]>,
    clock: Clock,
    bridge: ClockBridge,
    /// Of a load that shares its time: end of the turn under way, at which nothing more is due. `u64::MAX`: there are no turns.
    turn_end: u64,
    /// Open loop: keeps receive stamps on.
    _stamping: Option<OwnedFd>,
    recorder: Recorder,
    /// The load's parts, as far as known before the start.
    span: Span,
    next_tick: u64,
    /// How late sleeps end here.
    alarm: Alarm,
    /// Seconds whose passing has been told.
    passed: u32,
    times_at_window_start: Option<ThreadTimes>,
    times_at_window_end: Option<ThreadTimes>,
    /// When to give up waiting for answers.
    give_up: u64,
    interrupted: bool,
}

impl<'a> Engine<'a> {
    /// The engine of thread `number` of `threads`, with its share of the connections. Nothing is connected yet.
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        template: Template,
        script: Option<Script>,
        (number, threads): (u64, u64),
        connections: usize,
        messages: Sender<Message>,
    ) -> Result<Self, LoadError> {
        let span = Span { start: 0, window_start: 0, window_end: 0 };
        let (shard, shards) = shared.shard;
        let (first, stride) = (number * shards + shard, threads * shards);
        let users = shared.users.as_ref().map(|(profile, think, rate)| Users {
            profile: profile.clone(),
            think: *think,
            first,
            stride,
            turns: rate.map(|rate| Turns::new(rate, first, stride)),
        });
        let timed = shared.schedule.is_some() || users.is_some();
        let protocol = || match shared.http2 {
            None => Protocol::Http1(Http1::new()),
            Some(_) => Protocol::Http2(Box::new(Http2::new(shared.streams, &shared.method))),
        };
        Ok(Self {
            heads: match &script {
                Some(script) => script.steps().iter().map(|step| HeadReader::new(&step.method)).collect(),
                None => vec![HeadReader::new(&shared.method)],
            },
            progress: vec![Progress::default(); if script.is_some() { connections } else { 0 }],
            lanes: Lanes::new(shared.http2.is_some() && (script.is_some() || users.is_some())),
            iteration: 0,
            cursor: shared.schedule.clone().map(|schedule| Cursor::new(schedule, first, stride)),
            users,
            agenda: Agenda::default(),
            poller: Poller::new(connections).map_err(LoadError::system("make an epoll instance"))?,
            connections: (0..connections).map(|_| Connection::new(protocol())).collect(),
            idle: VecDeque::with_capacity(connections + 1),
            closed: (0..connections).collect(),
            freed: Vec::with_capacity(connections),
            dirty: Vec::new(),
            returned: VecDeque::new(),
            reason: None,
            active: 0,
            delicate: 0,
            largest: 0,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            sealed: vec![0; if shared.tls.is_some() { BUFFER } else { 0 }].into_boxed_slice(),
            clock: Clock::default(),
            bridge: ClockBridge::measure(Clock::default()),
            turn_end: u64::MAX,
            _stamping: if timed && matches!(shared.address(0), Address::Tcp(..)) {
                Some(sys::keep_stamping().map_err(LoadError::system("switch receive timestamps on"))?)
            } else {
                None
            },
            recorder: match &script {
                Some(script) => Recorder::new(span)?.with_names(script)?,
                None => Recorder::new(span)?,
            },
            span,
            next_tick: 0,
            alarm: Alarm::default(),
            passed: 0,
            times_at_window_start: None,
            times_at_window_end: None,
            give_up: u64::MAX,
            interrupted: false,
            shared,
            messages,
            template,
            script,
        })
    }

    /// Runs the load from its start to the last answer and returns the record.
    pub(crate) fn run(mut self, span: Span) -> Result<Recorder, LoadError> {
        self.begin(span);
        self.wait_until(span.start);
        while !self.go_on_until_turn_ends()? {}
        if self.now() >= span.window_end {
            self.wait_until(span.window_end + LINGER);
        }
        Ok(self.end())
    }

    /// Takes over the times of a load that shares its time with others; its clock stands still until its first turn.
    pub(crate) fn begin_turns(&mut self, span: Span) {
        self.begin(span);
        self.turn_end = span.start;
        self.recorder.samples = Some(Samples::default());
    }

    /// The next turn begins now: requests are due for so many nanoseconds from where the last turn ended.
    pub(crate) fn begin_turn(&mut self, length: u64) -> std::io::Result<()> {
        let from = self.turn_end;
        self.turn_end = from + length;
        self.recorder.turn_last = self.turn_end - 1;
        self.clock.go_on_from(from);
        // The clock has gone back to where the last turn was over, and ticks go on from there as if nothing had been waited for.
        self.next_tick = from + self.next_tick.saturating_sub(from) % TICK;
        self.bridge = ClockBridge::measure(self.clock);
        // A server may have closed connections meanwhile.
        for at in 0..self.poller.wait(0)? {
            self.attend(self.poller.get(at));
        }
        Ok(())
    }

    /// What is written down.
    pub(crate) fn recorder_mut(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// Waits for an instant of `CLOCK_MONOTONIC`, or the stop flag.
    pub(crate) fn wait_until(&self, at: u64) {
        while sys::monotonic_ns() < at && !self.shared.stop.load(Ordering::Relaxed) {
            sys::sleep_until(at.min(sys::monotonic_ns() + TICK));
        }
    }

    /// The load's time.
    #[inline]
    fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Sends and receives until the turn is over and has all its answers, or the load has ended: then it is `true`.
    pub(crate) fn go_on_until_turn_ends(&mut self) -> Result<bool, LoadError> {
        loop {
            let now = self.now();
            if now >= self.next_tick && !self.tick(now)? {
                return Ok(true);
            }
            if now >= self.turn_end && self.is_quiet(now, self.turn_end) {
                return Ok(false);
            }
            self.dispatch(now);
            let ready = self.rest(now).map_err(LoadError::system("wait for the sockets"))?;
            for at in 0..ready {
                self.attend(self.poller.get(at));
            }
            self.send_freed();
        }
    }

    /// Closed loop: the next request on every connection that has got its answer. All that is ready is received first and then
    /// everything is sent: the processor keeps either path of the kernel in its caches, and no answer's time of arrival
    /// includes sends on other connections.
    #[inline]
    fn send_freed(&mut self) {
        for place in 0..self.freed.len() {
            let now = self.now();
            self.take_over(self.freed[place], now, now);
        }
        self.freed.clear();
    }

    /// Whether requests are due at instants of their own, so that arrivals are stamped and sleeping is worth it.
    fn is_timed(&self) -> bool {
        self.cursor.is_some() || self.users.is_some()
    }

    /// Whether the kernel stamps what comes: it does so for TCP, and only a timed load needs it.
    fn is_stamped(&self) -> bool {
        self.is_timed() && matches!(self.shared.address(0), Address::Tcp(..))
    }

    /// Waits for the next thing to do; returns how many sockets are ready.
    fn rest(&mut self, now: u64) -> std::io::Result<usize> {
        let later = self.agenda.next_at().filter(|&at| at < self.turn_end).unwrap_or(u64::MAX);
        if !self.is_timed() {
            let pending = self.closed.iter().any(|&at| self.connections[at].may_connect(now + TICK));
            if later < now + TICK {
                return self.poller.wait(later.saturating_sub(now).max(1));
            }
            return self.poller.wait_ms(if pending { 1 } else { TICK / 1_000_000 });
        }
        let due = self.next_due(now).unwrap_or(u64::MAX);
        let backlog = due <= now || !self.returned.is_empty();
        let wake = if backlog { now + self.retry_in(now) } else { self.slot_end(due) };
        let in_turn = now < self.turn_end;
        let turn_end = if in_turn { self.turn_end } else { u64::MAX };
        let wake = wake.min(later).min(self.next_tick).min(turn_end).max(now);
        if !backlog {
            self.prepare();
        }
        if self.shared.spin {
            return self.poller.wait(0);
        }
        // After the end of a turn, the last answer is what is waited for.
        let blind = !backlog
            && in_turn
            && (self.active == 0 || self.is_stamped())
            && self.delicate == 0
            && self.users.is_none()
            && self.script.as_ref().is_none_or(|script| !script.is_sequence())
            && self.largest <= LARGE_RESPONSE;
        if !blind {
            return self.poller.wait(wake - now);
        }
        // A service that wakes the generator up pays for it with CPU time, so it does not, at any rate and in turns of any length.
        // A longer rest is slept in equal parts: the last must not be so short that it is spun away.
        let sleeps = if self.active == 0 { 1 } else { (wake - now).div_ceil(LONGEST_BLIND_SLEEP).max(1) };
        let wake = now + (wake - now) / sleeps;
        // What is due goes first; the responses already carry their time of arrival.
        let now = self.alarm.sleep_until(self.clock, wake);
        self.dispatch(now);
        self.poller.wait(0)
    }

    /// Open loop: puts the next request together while there is time.
    #[inline]
    fn prepare(&mut self) {
        if let (Some(script), Some(cursor)) = (&mut self.script, &self.cursor) {
            script.prepare(cursor.index());
        }
    }

    /// When to wake up for a request that is due at this instant: with the last one that shares its slot.
    fn slot_end(&self, due: u64) -> u64 {
        match &self.cursor {
            Some(cursor) if self.shared.slot > 0 && due < u64::MAX => {
                self.span.start + cursor.last_due_by(due - self.span.start + self.shared.slot)
            }
            _ => due,
        }
    }

    /// Nanoseconds until a connection may be tried again for requests that wait.
    fn retry_in(&self, now: u64) -> u64 {
        self.closed.iter().map(|&at| self.connections[at].retry_in(now)).fold(TICK, u64::min)
    }
}
