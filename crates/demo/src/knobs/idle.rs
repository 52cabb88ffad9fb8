//! CPU that a service uses whatever it is asked: timers, housekeeping, an agent that looks for work.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::burn::{burn, thread_cpu};

/// What is burnt at a time.
const SLICE: Duration = Duration::from_millis(2);

/// Burns so many milliseconds of CPU in every second, until the process ends.
pub(super) fn start(ms_per_second: f64) -> anyhow::Result<()> {
    thread::Builder::new()
        .name("idle".to_owned())
        .spawn(move || burn_for_ever(ms_per_second / 1_000.0))
        .context("cannot start the thread of --idle-burn-ms-per-second")?;
    Ok(())
}

/// Keeps the CPU time of this thread at so large a share of the time.
fn burn_for_ever(share: f64) {
    let start = Instant::now();
    loop {
        // All that the thread has used counts: to go to sleep and to wake up costs CPU as well.
        let behind = start.elapsed().mul_f64(share).saturating_sub(thread_cpu());
        if behind < SLICE {
            // Not longer than a second: of a very small share nobody waits for the next slice.
            thread::sleep(Duration::from_secs_f64(((SLICE - behind).as_secs_f64() / share).min(1.0)));
        } else {
            burn(SLICE);
        }
    }
}
