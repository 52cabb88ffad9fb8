//! The system calls that the generator needs: clocks, sleeping, sockets, kernel receive timestamps. Linux only.
//!
//! The only module with unsafe code: `recvmsg` with control messages, which no safe crate reads for timestamps, and
//! `sched_setattr`, which no safe crate calls.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, epoll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustix::thread::{ClockId, CpuSet};
use rustix::time::Timespec;

use crate::network::Network;
use crate::pace::SECOND;
use crate::target::Address;

/// Nanoseconds of a clock.
fn clock(id: rustix::time::ClockId) -> u64 {
    let now = rustix::time::clock_gettime(id);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

/// `CLOCK_MONOTONIC`, nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    clock(rustix::time::ClockId::Monotonic)
}

/// What the calling thread has had of its core, nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadTimes {
    /// CPU time.
    pub(crate) cpu: u64,
    /// Time that it was ready and waited for a core (`run_delay` of proc_pid_schedstat(5)). 0 where the kernel keeps no account
    /// of it.
    pub(crate) waited: u64,
}

/// Both for the calling thread.
pub(crate) fn thread_times() -> ThreadTimes {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = text.split_ascii_whitespace().nth(1).and_then(|delay| delay.parse().ok()).unwrap_or_default();
    ThreadTimes { cpu: clock(rustix::time::ClockId::ThreadCPUTime), waited }
}

/// A time as the kernel takes it.
fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / SECOND) as i64, tv_nsec: (ns % SECOND) as _ }
}

/// Sleeps until an instant of `CLOCK_MONOTONIC`, or a signal.
pub(crate) fn sleep_until(at_ns: u64) {
    // A signal ends the sleep early; every caller looks at the clock again anyway.
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec(at_ns));
}

/// Sleeps until instants, more exactly than the system alone: a sleeper wakes up some microseconds after its timer, always
/// (9 to 20 on a virtual machine), so the timer is set that much early. What is early nevertheless waits on its feet.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    /// Nanoseconds by which the timer is set early: 19 of 20 sleeps end later than that after their timer.
    lead: u64,
}

impl Alarm {
    /// Step of the lead, nanoseconds.
    const STEP: u64 = 20;
    /// Most nanoseconds of lead: what wakes up later than this by habit is disturbed, not slow.
    const MAX_LEAD: u64 = 40_000;

    /// Sleeps until an instant of a clock, or a signal; returns the time.
    pub(crate) fn sleep_until(&mut self, clock: Clock, at_ns: u64) -> u64 {
        let timer = at_ns.saturating_sub(self.lead);
        clock.sleep_until(timer);
        let mut now = clock.now();
        self.learn(now.saturating_sub(timer));
        // After a signal there may be much left; every caller looks at the clock anyway.
        while now < at_ns && at_ns - now <= Self::MAX_LEAD {
            std::hint::spin_loop();
            now = clock.now();
        }
        now
    }

    /// Moves the lead towards the 5 % quantile of what is seen.
    fn learn(&mut self, late: u64) {
        self.lead = if late > self.lead {
            (self.lead + Self::STEP).min(Self::MAX_LEAD)
        } else {
            self.lead.saturating_sub(19 * Self::STEP)
        };
    }
}

/// Makes the calling thread's timers fire on time (the default lets them slip by 50 µs) and pins it, if wanted.
pub(crate) fn prepare_thread(core: Option<u32>) -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(core as usize);
        rustix::thread::sched_setaffinity(None, &set)?;
    }
    Ok(())
}

/// Lets the calling thread keep a schedule: it goes ahead of what else wants its core as soon as something is due. A longer
/// turn (the default is about 3 ms) would let a neighbour finish its own first, and that is what the largest send lags of an
/// otherwise idle machine are. Priority is for those who may raise it, the short turn for everyone since Linux 6.12; without
/// either the thread runs as it did.
pub(crate) fn go_ahead() {
    let Ok(as_it_is) = rustix::process::getpriority_process(None) else { return };
    for nice in [as_it_is.min(-15), as_it_is] {
        let wanted = libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            sched_policy: libc::SCHED_OTHER as u32,
            sched_flags: 0,
            sched_nice: nice,
            sched_priority: 0,
            // The turn, nanoseconds; the least that the kernel takes.
            sched_runtime: 100_000,
            sched_deadline: 0,
            sched_period: 0,
        };
        // SAFETY: the pointer is to a structure that states its own size and outlives the call; 0 is the calling thread.
        if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) } == 0 {
            return;
        }
    }
}

/// The clock of one load: `CLOCK_MONOTONIC`, less the time for which the load was paused. It stands still between the turns of a load
/// that shares its time with others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock {
    /// Nanoseconds.
    paused: u64,
}

impl Clock {
    /// Now.
    #[inline]
    pub(crate) fn now(self) -> u64 {
        monotonic_ns().saturating_sub(self.paused)
    }

    /// An instant of this clock on `CLOCK_MONOTONIC`, as long as the load is not paused.
    pub(crate) fn monotonic(self, at: u64) -> u64 {
        at.saturating_add(self.paused)
    }

    /// Goes on from an instant of this clock.
    pub(crate) fn go_on_from(&mut self, at: u64) {
        self.paused = monotonic_ns().saturating_sub(at);
    }

    /// Sleeps until an instant of this clock, or a signal; returns the time.
    fn sleep_until(self, at: u64) {
        sleep_until(self.monotonic(at));
    }
}

/// From `CLOCK_REALTIME`, in which the kernel stamps packets, to the load's clock, in which everything else counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockBridge {
    /// Realtime minus the load's clock, nanoseconds.
    offset: i128,
}

impl ClockBridge {
    /// Reads both clocks, until the two readings of one frame the other within a microsecond (three tries).
    pub(crate) fn measure(load: Clock) -> Self {
        let mut best = (u64::MAX, 0);
        for _ in 0..3 {
            let before = monotonic_ns();
            let real = clock(rustix::time::ClockId::Realtime);
            let frame = monotonic_ns() - before;
            if frame < best.0 {
                best = (frame, i128::from(real) - i128::from(before + frame / 2));
            }
            if frame < 1_000 {
                break;
            }
        }
        Self { offset: best.1 + i128::from(load.paused) }
    }

    /// A stamp on the load's clock, held between the send and now: the realtime clock may be set at any time.
    pub(crate) fn to_monotonic(self, stamp: u64, sent: u64, now: u64) -> u64 {
        let at = i128::from(stamp) - self.offset;
        at.clamp(i128::from(sent), i128::from(now.max(sent))) as u64
    }
}

/// Which sockets are readable.
pub(crate) struct Poller {
    /// The epoll instance.
    epoll: OwnedFd,
    /// Filled by [`Poller::wait`].
    events: Vec<epoll::Event>,
}

/// A socket that wants attention.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    /// The number under which it was added.
    pub(crate) token: usize,
    /// It can be written to (asked for only while connecting or with unsent bytes).
    pub(crate) writable: bool,
    /// There is something to read: bytes, the end, or an error.
    pub(crate) readable: bool,
    /// The other side has ended the connection: there is more to read than bytes.
    pub(crate) ended: bool,
}

impl Poller {
    /// A poller that reports up to `batch` sockets at a time.
    pub(crate) fn new(batch: usize) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(batch.clamp(1, 1024)) })
    }

    /// What to wait for: reading always, writing if asked. Edge-triggered: the kernel then need not look at every socket once
    /// more to find that it has been read. So a reader must go on until a read takes less than it could, and to the end if
    /// [`Ready::ended`].
    fn interest(writing: bool) -> epoll::EventFlags {
        let reading = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        if writing { reading | epoll::EventFlags::OUT } else { reading }
    }

    /// Starts to watch a socket; closing it ends that.
    pub(crate) fn add(&self, socket: impl AsFd, token: usize, writing: bool) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, epoll::EventData::new_u64(token as u64), Self::interest(writing))?)
    }

    /// Changes whether writability is watched.
    pub(crate) fn set_writing(&self, socket: impl AsFd, token: usize, writing: bool) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(token as u64), Self::interest(writing))?)
    }

    /// Waits until a socket is ready or the time has passed; 0 only looks. Fills [`Poller::get`].
    pub(crate) fn wait(&mut self, timeout_ns: u64) -> io::Result<usize> {
        self.events.clear();
        if timeout_ns > 0 {
            // epoll_wait knows milliseconds only, and epoll_pwait2 needs Linux 5.11; ppoll on the instance does without.
            let mut wanted = [PollFd::new(&self.epoll, PollFlags::IN)];
            match rustix::event::poll(&mut wanted, Some(&timespec(timeout_ns))) {
                Ok(0) | Err(Errno::INTR) => return Ok(0),
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        self.look()
    }

    /// Waits until a socket is ready or about the time has passed, to the millisecond: one system call instead of two.
    pub(crate) fn wait_ms(&mut self, timeout_ms: u64) -> io::Result<usize> {
        self.events.clear();
        let timeout = timespec(timeout_ms * 1_000_000);
        self.collect(Some(&timeout))
    }

    /// Looks without waiting.
    fn look(&mut self) -> io::Result<usize> {
        self.collect(Some(&timespec(0)))
    }

    /// `epoll_wait`.
    fn collect(&mut self, timeout: Option<&Timespec>) -> io::Result<usize> {
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), timeout) {
            Ok(count) => Ok(count),
            Err(Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }

    /// One of the sockets that [`Poller::wait`] found.
    pub(crate) fn get(&self, at: usize) -> Ready {
        let event = self.events[at];
        let (flags, data) = (event.flags, event.data);
        Ready {
            token: data.u64() as usize,
            writable: flags.intersects(epoll::EventFlags::OUT | epoll::EventFlags::ERR | epoll::EventFlags::HUP),
            ended: flags.intersects(epoll::EventFlags::RDHUP | epoll::EventFlags::ERR | epoll::EventFlags::HUP),
            readable: flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::ERR | epoll::EventFlags::HUP),
        }
    }
}

/// Starts to connect without waiting. The socket is writable once it stands or has failed; [`connected`] tells which. Where the
/// address is in another network namespace, the calling thread moves there and stays: the threads of a load connect to
/// nothing else.
pub(crate) fn connect(address: &Address, stamps: bool) -> io::Result<OwnedFd> {
    match address {
        Address::Tcp(address, network) => {
            network.as_ref().map_or(Ok(()), Network::move_thread)?;
            connect_tcp(*address, stamps)
        }
        Address::Unix(path) => {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            // Stands at once, or not at all (a full queue is an error too).
            rustix::net::connect(&socket, &SocketAddrUnix::new(path.as_path())?)?;
            Ok(socket)
        }
    }
}

/// [`connect`] over TCP.
fn connect_tcp(address: SocketAddr, stamps: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    if address.ip().is_loopback() {
        // There is no path to be congested, and a control that paces (BBR) spends a timer on every send. Reno is built into
        // every kernel; where it may not be chosen, the default stays.
        let _ = sockopt::set_tcp_congestion(&socket, "reno");
    }
    if stamps {
        stamp_packets(socket.as_fd())?;
    }
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno.into()),
    }
}

/// Keeps the kernel stamping for as long as it is held. The kernel stamps while any socket wants it, and switches that on
/// and off a moment late: without this, packets on a fresh connection could come without a stamp.
pub(crate) fn keep_stamping() -> io::Result<OwnedFd> {
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    stamp_packets(socket.as_fd())?;
    Ok(socket)
}

/// Whether a connection attempt has succeeded.
pub(crate) fn connected(socket: impl AsFd) -> io::Result<()> {
    sockopt::socket_error(socket)?.map_err(io::Error::from)
}

/// Asks for a kernel receive timestamp with everything that is read.
fn stamp_packets(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the pointer and the length describe `on`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends what the socket takes at once. [`io::ErrorKind::WouldBlock`] if that is nothing.
#[inline]
pub(crate) fn send(socket: impl AsFd, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

/// Receives what is there; 0 bytes are the end.
#[inline]
pub(crate) fn receive(socket: impl AsFd, into: &mut [u8]) -> Result<usize, Errno> {
    rustix::net::recv(socket, into, rustix::net::RecvFlags::DONTWAIT).map(|(taken, _)| taken)
}

/// Room for control messages, aligned as the kernel wants it. A timestamp takes 32 bytes.
#[repr(align(8))]
struct Control([u8; 64]);

/// Receives what is there and when its last packet reached the machine (`CLOCK_REALTIME` nanoseconds, if stamped).
pub(crate) fn receive_stamped(socket: impl AsFd, into: &mut [u8]) -> Result<(usize, Option<u64>), Errno> {
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: a message header of zeros is valid: no name, no parts, no control.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control.0).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the header points to `part` (which describes `into`) and to `control`; both outlive the call.
    let taken = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    if taken < 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    let mut stamp = None;
    // SAFETY: the kernel filled the header in; the CMSG functions stay within the control buffer that it describes, and
    // a message of this type and length carries a timespec.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(&raw const message);
        while !at.is_null() {
            if (*at).cmsg_level == libc::SOL_SOCKET && (*at).cmsg_type == libc::SCM_TIMESTAMPNS {
                let time = std::ptr::read_unaligned(libc::CMSG_DATA(at).cast::<libc::timespec>());
                stamp = Some(time.tv_sec as u64 * SECOND + time.tv_nsec as u64);
            }
            at = libc::CMSG_NXTHDR(&raw const message, at);
        }
    }
    Ok((taken as usize, stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_held_between_send_and_now() {
        let bridge = ClockBridge { offset: 1_000_000 };
        for (stamp, expected) in [(1_000_150, 150), (1_000_050, 100), (1_000_500, 200), (0, 100)] {
            assert_eq!(bridge.to_monotonic(stamp, 100, 200), expected, "stamp {stamp}");
        }
    }

    #[test]
    fn the_alarm_learns_by_how_much_nearly_all_sleeps_are_late() {
        let mut alarm = Alarm::default();
        // Lateness from 10 to 20 µs, evenly, and once in a while a millisecond.
        for turn in 0..200_000u64 {
            alarm.learn(if turn % 100 == 0 { 1_000_000 } else { 10_000 + turn * 7_919 % 10_000 });
        }
        assert!((9_500..11_500).contains(&alarm.lead), "{}", alarm.lead);
        (0..200_000).for_each(|_| alarm.learn(1_000_000));
        assert_eq!(alarm.lead, Alarm::MAX_LEAD);
        let before = monotonic_ns();
        assert!(alarm.sleep_until(Clock::default(), before + 300_000) >= before + 300_000);
    }

    #[test]
    fn a_paused_clock_goes_on_from_where_it_stood() {
        let mut clock = Clock::default();
        let stood = clock.now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        clock.go_on_from(stood);
        let now = clock.now();
        assert!((stood..stood + 15_000_000).contains(&now), "{} ns", now - stood);
        assert!(clock.monotonic(now) >= stood + 20_000_000);
        let bridge = ClockBridge::measure(clock).offset - ClockBridge::measure(Clock::default()).offset;
        assert!((bridge - i128::from(clock.paused)).abs() < 1_000_000, "{bridge}");
    }

    #[test]
    fn received_packets_carry_a_stamp_between_send_and_receive() {
        use std::io::Write;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let socket =
            connect(&Address::Tcp(listener.local_addr().expect("bound"), None), true).expect("loopback connects");
        let (mut peer, _) = listener.accept().expect("a connection");
        let mut poller = Poller::new(4).expect("epoll");
        poller.add(&socket, 7, false).expect("watched");
        // Switching the stamps on takes the kernel a moment; until then packets come without.
        for _ in 0..1000 {
            let before = monotonic_ns();
            peer.write_all(b"hello").expect("sent");
            assert_eq!(poller.wait(5 * SECOND).expect("waits"), 1);
            assert_eq!(poller.get(0).token, 7);
            let mut bytes = [0; 16];
            let (taken, stamp) = receive_stamped(&socket, &mut bytes).expect("bytes");
            let now = monotonic_ns();
            assert_eq!(&bytes[..taken], b"hello");
            let Some(stamp) = stamp else {
                std::thread::sleep(std::time::Duration::from_millis(5));
                continue;
            };
            let at = i128::from(stamp) - ClockBridge::measure(Clock::default()).offset;
            // The two clocks are read a few instructions apart; a preempted reading is rejected, so 1 ms is ample.
            assert!(
                (i128::from(before) - 1_000_000..=i128::from(now) + 1_000_000).contains(&at),
                "{before} {at} {now}"
            );
            return;
        }
        panic!("5 seconds without a stamp");
    }
}
