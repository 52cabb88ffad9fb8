//! `--cold-us`: what a request costs more after a pause.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::burn::burn;

/// Longer than between two requests of a load, shorter than the turn of another variant.
const PAUSE: Duration = Duration::from_millis(10);

/// Burns after a pause.
pub(super) struct Cold {
    work: Duration,
    started: Instant,
    /// When the last request came, ns after `started`.
    last_ns: AtomicU64,
}

impl Cold {
    /// `work` of zero: nothing is burnt.
    pub(super) fn new(work: Duration) -> Self {
        Self { work, started: Instant::now(), last_ns: AtomicU64::new(0) }
    }

    /// A request has come.
    pub(super) fn burn(&self) {
        if self.work.is_zero() {
            return;
        }
        let now = self.started.elapsed().as_nanos() as u64;
        let before = self.last_ns.swap(now, Ordering::Relaxed);
        if now.saturating_sub(before) > PAUSE.as_nanos() as u64 {
            burn(self.work);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::burn::thread_cpu;
    use super::*;

    #[test]
    fn burns_after_a_pause_only() {
        let cold = Cold::new(Duration::from_millis(5));
        let burnt = |pause: Duration| {
            std::thread::sleep(pause);
            let before = thread_cpu();
            cold.burn();
            thread_cpu().saturating_sub(before)
        };
        assert!(burnt(2 * PAUSE) > Duration::from_micros(4_500));
        assert!(burnt(2 * PAUSE) > Duration::from_micros(4_500));
        // On a busy machine there may be a pause where none was wanted, not five times in a row.
        assert!((0..5).any(|_| burnt(Duration::ZERO) < Duration::from_millis(1)));
    }
}
