#![doc = include_str!("../README.md")]

mod profile;
mod schedule;

pub use profile::{Profile, Stage, StagesError};
pub use schedule::{Arrivals, Cursor, Schedule};

use serde::{Deserialize, Serialize};

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

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
    /// The parts of a load of so many seconds if it starts at `start`.
    #[must_use]
    pub fn of(warmup_s: f64, window_s: f64, start: u64) -> Self {
        let (warmup, window) = (nanoseconds(warmup_s), nanoseconds(window_s));
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

/// When requests are due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pacing {
    /// Open loop: evenly spaced, sent when due whatever the service does.
    Constant {
        /// Requests per second.
        rate: f64,
    },
    /// Closed loop: every connection sends its next request when the last is answered.
    Closed,
    /// Open loop: independent requests, as those of many users are, with exponential gaps (a Poisson process).
    Poisson {
        /// Requests per second in the mean.
        rate: f64,
        /// Seed of the gaps: the same one gives the same instants.
        #[serde(default)]
        seed: u64,
    },
    /// Open loop: the rate goes in straight lines from value to value; the last one holds to the end.
    Stages {
        /// Requests per second at the start.
        #[serde(default)]
        from: f64,
        /// The lines, in requests per second.
        stages: Vec<Stage>,
        /// Evenly or at random.
        #[serde(default)]
        arrivals: Arrivals,
    },
    /// Open loop: recorded gaps between requests, again and again.
    Replay {
        /// Microseconds from each request to the next.
        gaps_us: Vec<f64>,
    },
    /// Open loop: all requests at once; as many are on their way at a time as there are connections. Ends with the last answer.
    Burst {
        /// How many.
        count: u64,
    },
    /// Closed loop of users, each with a connection of its own, that pause after every iteration (one request, or the
    /// plan's sequence). There are at least as many connections as the most users at a time.
    Users {
        /// Users at the start.
        #[serde(default)]
        from: f64,
        /// How their number changes, in straight lines.
        #[serde(default)]
        stages: Vec<Stage>,
        /// Seconds that a user pauses after an iteration.
        #[serde(default)]
        think_s: f64,
        /// Iterations per second of all users together at most: they wait for their turn, as with JMeter's constant throughput
        /// timer. A turn that nobody was there to take is not made up for.
        #[serde(default)]
        rate: Option<f64>,
    },
}

impl Pacing {
    /// The schedule of an open loop of this length with at most so many requests; `None` for a closed loop.
    #[must_use]
    pub fn schedule(&self, length_ns: u64, limit: Option<u64>) -> Option<Schedule> {
        let schedule = match self {
            Self::Constant { rate } => Schedule::constant(*rate, length_ns),
            Self::Poisson { rate, seed } => {
                Schedule::of_rate(Profile::constant(*rate), Arrivals::Poisson { seed: *seed }, length_ns)
            }
            Self::Stages { from, stages, arrivals } => {
                Schedule::of_rate(Profile::new(*from, stages), *arrivals, length_ns)
            }
            Self::Replay { gaps_us } => {
                let gaps: Vec<u64> = gaps_us.iter().map(|gap| (gap * 1e3).round() as u64).collect();
                Schedule::replay(&gaps, length_ns)
            }
            Self::Burst { count } => Schedule::burst(*count, length_ns),
            Self::Closed | Self::Users { .. } => return None,
        };
        Some(schedule.at_most(limit.unwrap_or(u64::MAX)))
    }

    /// Mean of the wanted rate over a part of the load (nanoseconds from its start); `None` for a closed loop and a burst.
    #[must_use]
    pub fn mean_rate(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let (from, to) = (from_ns as f64 / SECOND as f64, to_ns as f64 / SECOND as f64);
        match self {
            Self::Constant { rate } | Self::Poisson { rate, .. } => Some(*rate),
            Self::Stages { from: value, stages, .. } => {
                let profile = Profile::new(*value, stages);
                (to > from).then(|| (profile.area(to) - profile.area(from)) / (to - from))
            }
            Self::Replay { .. } => self.schedule(to_ns, None).map(|schedule| schedule.max_per_second()),
            Self::Users { rate, .. } => *rate,
            Self::Closed | Self::Burst { .. } => None,
        }
    }

    /// The users of a closed loop over time, each with a connection of its own; `None` if connections are no users.
    #[must_use]
    pub fn users(&self) -> Option<Profile> {
        match self {
            Self::Users { from, stages, .. } => Some(Profile::new(*from, stages)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_warm_up_then_window() {
        let span = Span::of(0.5, 2.0, 1_000);
        assert_eq!((span.window_start, span.window_end), (500_001_000, 2_500_001_000));
        assert!(!span.in_window(span.window_start - 1) && span.in_window(span.window_start));
        assert!(span.in_window(span.window_end - 1) && !span.in_window(span.window_end));
        assert_eq!(
            (span.second_of(1_000), span.second_of(1_000 + SECOND - 1), span.second_of(1_000 + SECOND)),
            (0, 0, 1)
        );
    }
}
