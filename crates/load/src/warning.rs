//! Why a load should not be believed: what its numbers say about the generator itself. Pure. Whoever runs the load decides what
//! follows; a latency that counts from the due time is right whatever is said here, but it may not be the service's alone.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::outcome::{Little, Outcome};
use crate::trust::{LITTLE_SAMPLES, LITTLE_SHARE, MIN_RATE_SHARE, SATURATED, WAITING, late_limit_us};

/// A reason to doubt a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum LoadWarning {
    /// The generator sent late although a connection was free: it woke up late or had no CPU.
    Late {
        /// 99th percentile of [`Outcome::lateness_us`].
        p99_us: f64,
        /// What was allowed.
        limit_us: f64,
    },
    /// Requests waited for a free connection: with more of them the service would have been asked on time.
    OutOfConnections {
        /// Requests of the window that waited.
        queued: u64,
        /// Requests of the window.
        requests: u64,
    },
    /// A thread of the generator had used up its core: what was measured is the generator.
    Saturated {
        /// The time in which it ran or waited for its core, as a share of the window.
        share: f64,
    },
    /// Fewer answers came than were wanted.
    RateMissed {
        /// Requests per second.
        wanted: f64,
        /// Requests per second.
        achieved: f64,
    },
    /// The number in flight is not the rate times the service time: a number is wrong.
    Little {
        /// Mean number in flight.
        in_flight: f64,
        /// Rate times mean service time.
        expected: f64,
        /// How far apart they may be.
        tolerance: f64,
    },
}

impl fmt::Display for LoadWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Late { p99_us, limit_us } => write!(
                f,
                "the generator sent {p99_us:.0} µs late (99th percentile; {limit_us:.0} µs are allowed). Give it a core of its own"
            ),
            Self::OutOfConnections { queued, requests } => {
                write!(f, "{queued} of {requests} requests waited for a free connection. Give it more connections")
            }
            Self::Saturated { share } => write!(
                f,
                "a thread of the generator was busy {:.0} % of the time. Give it more cores, or ask for less",
                share * 100.0
            ),
            Self::RateMissed { wanted, achieved } => {
                write!(f, "{achieved:.1} answers came per second of the {wanted:.1} wanted. Ask for less")
            }
            Self::Little { in_flight, expected, tolerance } => write!(
                f,
                "{in_flight:.2} requests were in flight, but rate times service time is {expected:.2} (within {tolerance:.2} \
                 is allowed). Please report this with the plan that was run"
            ),
        }
    }
}

/// Holds both sides of Little's law against each other. `burst` is how many requests one wake-up may send: samples are taken
/// right after wake-ups and may be high by so many. Where the law has nothing to say, [`Little::holds`] stays `None`: few
/// samples, a window hardly longer than an answer takes, or requests without an answer, whose time in flight is in no mean.
pub(crate) fn judge_little(
    mut little: Little,
    burst: f64,
    mean_service_s: f64,
    duration_s: f64,
    complete: bool,
) -> Little {
    let most = little.in_flight.max(little.expected);
    // Samples 10 ms apart say the same as long as the same requests are in flight.
    let independent = (little.samples as f64 / (1.0 + mean_service_s / 0.01)).max(1.0);
    little.tolerance = LITTLE_SHARE * most + 4.0 * (most / independent).sqrt() + burst;
    let says = complete && little.samples >= LITTLE_SAMPLES && duration_s >= 4.0 * mean_service_s;
    little.holds = says.then_some((little.in_flight - little.expected).abs() <= little.tolerance);
    little
}

/// Every reason to doubt a load. `spins`: its threads never sleep, and use up their cores whatever they do.
pub(crate) fn warnings(outcome: &Outcome, spins: bool) -> Vec<LoadWarning> {
    let mut found = Vec::new();
    let due = outcome.requests + outcome.errors;
    if let Some(wanted) = outcome.target_rate {
        if outcome.rate < MIN_RATE_SHARE * wanted {
            found.push(LoadWarning::RateMissed { wanted, achieved: outcome.rate });
        }
        let limit_us = late_limit_us(outcome.service_time_us.p50);
        let p99_us = outcome.lateness_us.p99;
        if p99_us > limit_us {
            found.push(LoadWarning::Late { p99_us, limit_us });
        }
        if outcome.queued as f64 > WAITING * due as f64 {
            found.push(LoadWarning::OutOfConnections { queued: outcome.queued, requests: due });
        }
    }
    if outcome.busiest_thread >= SATURATED && !spins {
        found.push(LoadWarning::Saturated { share: outcome.busiest_thread });
    }
    let Little { in_flight, expected, tolerance, holds, .. } = outcome.little;
    if holds == Some(false) {
        found.push(LoadWarning::Little { in_flight, expected, tolerance });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Quantiles;

    fn good() -> Outcome {
        let service_time_us = Quantiles { p50: 500.0, ..Quantiles::default() };
        Outcome { requests: 1_000, rate: 500.0, target_rate: Some(500.0), service_time_us, ..Outcome::default() }
    }

    #[test]
    fn a_good_load_is_not_doubted() {
        assert_eq!(warnings(&good(), false), []);
        assert_eq!(warnings(&Outcome { busiest_thread: 1.0, ..good() }, true), []);
    }

    #[test]
    fn each_reason_has_its_limit() {
        let late = |p99| Quantiles { p99, ..Quantiles::default() };
        let broken = Little { holds: Some(false), ..Little::default() };
        for (outcome, name) in [
            (Outcome { lateness_us: late(1_001.0), ..good() }, "sent 1001 µs late"),
            (Outcome { queued: 11, ..good() }, "11 of 1000"),
            (Outcome { busiest_thread: 0.96, ..good() }, "96 %"),
            (Outcome { rate: 489.0, ..good() }, "489.0 answers"),
            (Outcome { little: broken, ..good() }, "in flight"),
        ] {
            let found = warnings(&outcome, false);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert!(found[0].to_string().contains(name), "{}", found[0]);
        }
        let fine = Outcome { queued: 10, busiest_thread: 0.94, rate: 491.0, lateness_us: late(999.0), ..good() };
        assert_eq!(warnings(&fine, false), []);
        // Whoever waits 50 ms for an answer may be asked 5 ms late.
        let mut slow = Outcome { lateness_us: late(4_999.0), ..good() };
        slow.service_time_us.p50 = 50_000.0;
        assert_eq!(warnings(&slow, false), []);
        let closed = Outcome { target_rate: None, rate: 1.0, queued: 500, ..good() };
        assert_eq!(warnings(&closed, false), []);
    }

    #[test]
    fn littles_law_by_table() {
        let judge = |in_flight, expected, samples, burst, mean_s, complete| {
            judge_little(Little { in_flight, expected, samples, ..Little::default() }, burst, mean_s, 10.0, complete)
                .holds
        };
        assert_eq!(judge(64.0, 62.0, 1_000, 0.0, 0.001, true), Some(true));
        assert_eq!(judge(64.0, 32.0, 1_000, 0.0, 0.001, true), Some(false));
        assert_eq!(judge(32.0, 64.0, 1_000, 0.0, 0.001, true), Some(false));
        assert_eq!(judge(0.9, 0.05, 1_000, 1.0, 0.000_05, true), Some(true), "sampled right after sending");
        assert_eq!(judge(64.0, 32.0, 19, 0.0, 0.001, true), None, "few samples");
        assert_eq!(judge(64.0, 32.0, 1_000, 0.0, 3.0, true), None, "long answers");
        assert_eq!(judge(64.0, 32.0, 1_000, 0.0, 0.001, false), None, "timeouts");
    }

    #[test]
    fn reasons_are_read_back() {
        let warning = LoadWarning::OutOfConnections { queued: 5, requests: 10 };
        let text = serde_json::to_string(&warning).expect("data");
        assert_eq!(text, r#"{"reason":"out_of_connections","queued":5,"requests":10}"#);
        assert_eq!(serde_json::from_str::<LoadWarning>(&text).expect("the same"), warning);
    }
}
