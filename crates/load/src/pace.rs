//! When requests are due: pure functions of counts and times. No clock, no sleep; the engines bring those.

use crate::plan::{Pacing, Plan};

/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Due times of an open loop: a closed form of the request's index, so that no error adds up and a late request never
/// moves a later one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Requests per second.
    rate: f64,
    /// Length of the load in nanoseconds.
    length_ns: u64,
}

impl Schedule {
    /// Evenly spaced requests: number 0 is due at 0, the last one before the end of the load.
    #[must_use]
    pub fn constant(rate: f64, length_ns: u64) -> Self {
        Self { rate, length_ns }
    }

    /// Nanoseconds from the start of the load to the instant at which the request is due; `None`: no such request.
    #[must_use]
    pub fn due_ns(&self, index: u64) -> Option<u64> {
        // 53 bits hold 104 days of nanoseconds exactly.
        let due = (index as f64 * (SECOND as f64 / self.rate)).round() as u64;
        (due < self.length_ns).then_some(due)
    }

    /// Least nanoseconds between two wake-ups of the sender. A wake-up costs 12 to 29 µs of CPU, a request 4: up to 5,000
    /// requests a second each has a wake-up (and its exact instant) of its own; above, a few share one.
    #[must_use]
    pub fn slot_ns(&self) -> u64 {
        if self.rate <= 5_000.0 { 0 } else { ((2.0 * SECOND as f64 / self.rate) as u64).clamp(100_000, 200_000) }
    }
}

/// The parts of a load on the monotonic clock, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Start of the warm-up.
    pub start: u64,
    /// Start of the window.
    pub window_start: u64,
    /// End of the window: nothing is due from here on.
    pub window_end: u64,
}

impl Span {
    /// The parts of a plan's load if it starts at `start`.
    #[must_use]
    pub fn of(plan: &Plan, start: u64) -> Self {
        let (warmup, window) = (nanoseconds(plan.warmup_s), nanoseconds(plan.window_s));
        Self { start, window_start: start + warmup, window_end: start + warmup + window }
    }

    /// Whether an instant lies in the window.
    #[must_use]
    pub fn in_window(&self, at: u64) -> bool {
        self.window_start <= at && at < self.window_end
    }

    /// Number of the second in which an instant lies, from the start of the warm-up.
    #[must_use]
    pub fn second_of(&self, at: u64) -> u32 {
        u32::try_from(at.saturating_sub(self.start) / SECOND).unwrap_or(u32::MAX)
    }
}

/// Seconds as nanoseconds; negative and absurd ones are held to the range.
#[must_use]
pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * SECOND as f64).round() as u64
}

impl Pacing {
    /// The schedule of an open loop; `None` for a closed one.
    #[must_use]
    pub fn schedule(&self, length_ns: u64) -> Option<Schedule> {
        match *self {
            Self::Constant { rate } => Some(Schedule::constant(rate, length_ns)),
            Self::Closed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn constant_rates_by_table() {
        for (rate, index, due) in [
            (1.0, 0, Some(0)),
            (1.0, 9, Some(9 * SECOND)),
            (1.0, 10, None),
            (1_000.0, 1, Some(1_000_000)),
            (3.0, 1, Some(333_333_333)),
            (3.0, 3, Some(SECOND)),
            (0.5, 4, Some(8 * SECOND)),
            (0.5, 5, None),
            (30_000.0, 299_999, Some(9_999_966_667)),
            (30_000.0, 300_000, None),
        ] {
            assert_eq!(Schedule::constant(rate, 10 * SECOND).due_ns(index), due, "{rate}/s, request {index}");
        }
    }

    #[test]
    fn slots_by_rate() {
        for (rate, slot) in
            [(10.0, 0), (5_000.0, 0), (5_001.0, 200_000), (10_000.0, 200_000), (20_000.0, 100_000), (1e6, 100_000)]
        {
            assert_eq!(Schedule::constant(rate, SECOND).slot_ns(), slot, "{rate}/s");
        }
    }

    #[test]
    fn a_load_is_warm_up_then_window() {
        let mut plan = Plan::new("http://h/");
        (plan.warmup_s, plan.window_s) = (0.5, 2.0);
        let span = Span::of(&plan, 1_000);
        assert_eq!((span.window_start, span.window_end), (500_001_000, 2_500_001_000));
        assert!(!span.in_window(span.window_start - 1) && span.in_window(span.window_start));
        assert!(span.in_window(span.window_end - 1) && !span.in_window(span.window_end));
        assert_eq!(
            (span.second_of(1_000), span.second_of(1_000 + SECOND - 1), span.second_of(1_000 + SECOND)),
            (0, 0, 1)
        );
    }

    proptest! {
        #[test]
        fn due_times_rise_and_their_number_is_rate_times_length(rate in 0.01f64..1e6, seconds in 1u64..100) {
            let schedule = Schedule::constant(rate, seconds * SECOND);
            let expected = (rate * seconds as f64).ceil() as u64;
            // Rounding to a nanosecond may move a request that falls exactly on the end by one.
            prop_assert!(schedule.due_ns(expected.saturating_sub(2)).is_some());
            prop_assert!(schedule.due_ns(expected + 1).is_none());
            let mut last = None;
            for index in 0..expected.min(1_000) {
                let due = schedule.due_ns(index);
                prop_assert!(due >= last);
                last = due;
            }
        }

        #[test]
        fn requests_per_whole_window_do_not_depend_on_where_it_starts(rate in 1u32..100_000, warmup in 0u64..10) {
            let schedule = Schedule::constant(f64::from(rate), (warmup + 1) * SECOND);
            let first = u64::from(rate) * warmup;
            prop_assert_eq!(schedule.due_ns(first), Some(warmup * SECOND));
            prop_assert!(schedule.due_ns(first + u64::from(rate) - 1).is_some());
            prop_assert_eq!(schedule.due_ns(first + u64::from(rate)), None);
        }
    }
}
