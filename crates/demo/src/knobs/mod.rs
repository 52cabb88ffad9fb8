//! Known costs and faults, injected into the consumer. Each is exact enough to be found again by measuring, and costs
//! nothing while it is off.

mod burn;
mod cold;
mod deferred;
mod idle;
mod memory;
mod pause;

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::options::Knobs;
use super::work::logarithms;
use cold::Cold;
use deferred::Deferred;
use pause::Pauses;

/// What is done to every request.
pub(super) struct Injector {
    burn: Duration,
    /// Logarithms more than the request's own.
    extra_work: u32,
    /// Absent: nothing is left for later.
    deferred: Option<Deferred>,
    cold: Cold,
    batch: Duration,
    /// Requests of a batch, and those that there were so far.
    batch_of: u64,
    batched: AtomicU64,
    delay: Duration,
    /// What is added to the delay with every second.
    slower: Duration,
    started: Instant,
    pauses: Pauses,
    error_share: f64,
    /// Requests that could have failed so far.
    requests: AtomicU64,
    body_extra: usize,
    /// Kept for as long as the consumer lives.
    _held: Vec<u8>,
}

impl Injector {
    pub(super) fn new(knobs: &Knobs) -> anyhow::Result<Self> {
        let deferred = match Duration::from_micros(knobs.deferred_us.into()) {
            Duration::ZERO => None,
            work => Some(Deferred::start(work, Duration::from_secs_f64(knobs.deferred_by_s))?),
        };
        Ok(Self {
            burn: Duration::from_micros(knobs.burn_us.into()),
            extra_work: knobs.extra_work,
            deferred,
            cold: Cold::new(Duration::from_micros(knobs.cold_us.into())),
            batch: Duration::from_micros(knobs.batch_us.into()),
            batch_of: u64::from(knobs.batch_of).max(1),
            batched: AtomicU64::new(0),
            delay: Duration::from_micros(knobs.delay_us.into()),
            slower: Duration::from_micros(knobs.slower_us_per_second.into()),
            started: Instant::now(),
            pauses: Pauses::default(),
            error_share: knobs.error_share,
            requests: AtomicU64::new(0),
            body_extra: knobs.body_extra as usize,
            _held: memory::hold(knobs.hold_mib)?,
        })
    }

    /// What costs CPU: `--burn-us`, `--extra-work`, `--cold-us`, `--batch-us` and, later, `--deferred-us`.
    pub(super) fn burn(&self) {
        if !self.burn.is_zero() {
            burn::burn(self.burn);
        }
        if self.extra_work > 0 {
            black_box(logarithms(self.extra_work));
        }
        self.cold.burn();
        if !self.batch.is_zero() && (self.batched.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.batch_of) {
            burn::burn(self.batch);
        }
        if let Some(deferred) = &self.deferred {
            deferred.leave();
        }
    }

    /// `--delay-us` and `--slower-us-per-second`
    pub(super) async fn delay(&self) {
        let grown = if self.slower.is_zero() {
            Duration::ZERO
        } else {
            self.slower.mul_f64(self.started.elapsed().as_secs_f64())
        };
        if let Err(error) = self.pauses.pause(self.delay + grown).await {
            eprintln!("cannot delay the answer: {error}");
        }
    }

    /// `--error-share`: whether this request is to fail. Evenly spread, so that every window gets its share.
    pub(super) fn fails(&self) -> bool {
        if self.error_share == 0.0 {
            return false;
        }
        let before = self.requests.fetch_add(1, Ordering::Relaxed) as f64;
        ((before + 1.0) * self.error_share).floor() > (before * self.error_share).floor()
    }

    /// `--body-extra`
    pub(super) fn extend(&self, mut body: String) -> Bytes {
        body.extend(std::iter::repeat_n('x', self.body_extra));
        body.into()
    }
}

/// Starts what goes on beside the requests (`--die-after-s`, `--leak-mib-per-minute`, `--idle-burn-ms-per-second`, `--stall-ms`), then
/// waits for `--slow-start-ms`.
pub(super) async fn start(knobs: &Knobs) -> anyhow::Result<()> {
    if let Some(seconds) = knobs.die_after_s {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            eprintln!("dies {seconds} s after its start, as told by --die-after-s");
            std::process::exit(1);
        });
    }
    if knobs.leak_mib_per_minute > 0.0 {
        tokio::spawn(memory::leak(knobs.leak_mib_per_minute));
    }
    if knobs.idle_burn_ms_per_second > 0.0 {
        idle::start(knobs.idle_burn_ms_per_second)?;
    }
    if knobs.stall_ms > 0 {
        let length = Duration::from_millis(knobs.stall_ms.into());
        tokio::spawn(pause::stall(length, Duration::from_secs_f64(knobs.stall_every_s)));
    }
    if knobs.slow_start_ms > 0 {
        tokio::time::sleep(Duration::from_millis(knobs.slow_start_ms.into())).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_evenly_spread() {
        let knobs = Knobs { error_share: 0.25, ..Knobs::default() };
        let injector = Injector::new(&knobs).expect("nothing to hold");
        let failed: Vec<bool> = (0..8).map(|_| injector.fails()).collect();
        assert_eq!(failed, [false, false, false, true, false, false, false, true]);
    }
}
