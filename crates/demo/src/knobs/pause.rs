//! Waits exactly, without using the CPU. The runtime's own timers are whole milliseconds, too coarse for a delay that
//! is to be found again; a `timerfd` is exact to some tens of µs, for a few µs of CPU per pause.
//!
//! A stall is another thing: the whole service stands still.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Pauses, as many at a time as are wanted.
#[derive(Default)]
pub(super) struct Pauses {
    /// Timers that nobody waits for.
    idle: Mutex<Vec<AsyncFd<OwnedFd>>>,
}

impl Pauses {
    /// Waits so long; not at all for a length of zero, with which a timer would never go off.
    pub(super) async fn pause(&self, length: Duration) -> io::Result<()> {
        if length.is_zero() {
            return Ok(());
        }
        let length = Timespec { tv_sec: length.as_secs() as i64, tv_nsec: length.subsec_nanos().into() };
        let timer = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let timer = match timer {
            Some(timer) => timer,
            None => new_timer()?,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: length };
        timerfd_settime(timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        // Reading how often it went off makes it ready to be set again.
        timer.async_io(Interest::READABLE, |timer| Ok(rustix::io::read(timer, &mut [0; 8])?)).await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(timer);
        Ok(())
    }
}

/// Lets the service stand still for `length` after every `every`, as a collection of garbage does, but without CPU.
pub(super) async fn stall(length: Duration, every: Duration) {
    loop {
        tokio::time::sleep(every.saturating_sub(length)).await;
        // Not tokio's: this thread is the only one that answers, and as long as it sleeps nobody does.
        std::thread::sleep(length);
    }
}

fn new_timer() -> io::Result<AsyncFd<OwnedFd>> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    // SAFETY: an `OwnedFd` is open and stays the same descriptor for as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn pauses_are_as_long_as_told_and_run_side_by_side() {
        let pauses = Pauses::default();
        let pause = || pauses.pause(Duration::from_micros(300));
        let mut shortest = Duration::MAX;
        for _ in 0..50 {
            let start = Instant::now();
            let (first, second) = tokio::join!(pause(), pause());
            first.and(second).expect("timers are to be had");
            assert!(start.elapsed() >= Duration::from_micros(300));
            shortest = shortest.min(start.elapsed());
        }
        // The shortest of many: a busy machine only ever makes them longer.
        assert!(shortest < Duration::from_micros(550), "{shortest:?}");
        assert_eq!(pauses.idle.lock().expect("not poisoned").len(), 2, "timers are used again");
    }
}
