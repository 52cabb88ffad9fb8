//! Burns an exact amount of CPU time: of the thread's own clock, so waiting for a core does not count.

use std::sync::LazyLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::work::logarithms;

/// What one reading of the clock costs, in ns of the very same clock. It is a system call of about 0.3 µs, hence part
/// of what is burnt.
static READING: LazyLock<i64> = LazyLock::new(|| {
    let mut readings = [0; 101];
    for reading in &mut readings {
        let before = thread_cpu_ns();
        *reading = thread_cpu_ns() - before;
    }
    readings.sort_unstable();
    readings[readings.len() / 2]
});

/// Burns `time` of CPU, give or take half a reading of the clock.
pub(super) fn burn(time: Duration) {
    let reading = *READING;
    // From the first reading to the last it is one reading short of the whole call, and the loop below ends half a
    // reading late on average.
    let end = thread_cpu_ns() + time.as_nanos() as i64 - reading * 3 / 2;
    loop {
        let left = end - thread_cpu_ns();
        if left <= 0 {
            return;
        }
        // Mostly in user mode, as a service would: a slice of what is left, small enough not to overshoot even in a
        // debug build, where a logarithm takes about 20 ns instead of 3.
        std::hint::black_box(logarithms((left / 32).try_into().unwrap_or(u32::MAX)));
    }
}

/// CPU time that this thread has used.
pub(super) fn thread_cpu() -> Duration {
    Duration::from_nanos(thread_cpu_ns().unsigned_abs())
}

fn thread_cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burns_what_it_is_told() {
        for micros in [5, 100, 1_000] {
            let times = 400_000 / (micros * 10).max(1_000);
            burn(Duration::from_micros(1)); // The first call weighs the clock.
            let mut errors: Vec<f64> = (0..times)
                .map(|_| {
                    let before = thread_cpu_ns();
                    burn(Duration::from_micros(micros));
                    // The two readings around it overlap with one reading's worth of time.
                    (thread_cpu_ns() - before - *READING) as f64 / 1_000.0 - micros as f64
                })
                .collect();
            errors.sort_unstable_by(f64::total_cmp);
            // The median: a neighbour's interrupt is booked on whoever is running.
            let error = errors[errors.len() / 2];
            assert!(error.abs() < 1.0, "{micros} µs are {error:+.3} µs off");
        }
    }
}
