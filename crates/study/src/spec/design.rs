//! What keeps the variants of a round from taking turns.

use std::fmt;
use std::time::Duration;

use super::{Design, PreheatUntil, Study, Time};

/// Why the variants of a study cannot take turns within a round, whatever `design` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeparateReason {
    /// All requests at once.
    Burst,
    /// A fixed number of requests.
    Requests,
    /// A program of the study's own is the load.
    Driver,
    /// The search of the capacity follows the window.
    Capacity,
    /// A closed loop at full speed follows the window.
    Saturation,
}

impl fmt::Display for SeparateReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Burst => "`load.burst` sends all requests at once, so there are no blocks of it",
            Self::Requests => "`load.requests` is timed from its first request to its last, without a pause",
            Self::Driver => "`load.driver` is a program that cannot be told to pause",
            Self::Capacity => "`capacity` needs the machine for one variant",
            Self::Saturation => "`saturation` needs the machine for one variant",
        })
    }
}

/// Longest and shortest block unless the study says otherwise. The shorter, the less the machine changes from one to the next: what a
/// round's difference is off by falls with the square root of the length (`bench/README.md`).
const LONGEST_BLOCK: Duration = Duration::from_millis(100);
const SHORTEST_BLOCK: Duration = Duration::from_millis(6);
/// Requests that a block holds where it may be so long: in its first half, what cold caches cost is over (`bench/README.md`).
const REQUESTS_OF_A_BLOCK: f64 = 6.0;
/// Longest stretch alone unless the study says otherwise.
const ALONE: Time = Time(Duration::from_secs(2));

impl Study {
    /// Whether the variants of a round take turns, as far as the study says.
    #[must_use]
    pub fn alternates(&self) -> bool {
        self.design != Some(Design::Separate) && self.why_separate().is_none()
    }

    /// Length of a block of an alternating round. In a closed loop the ends of a block, at which its connections run out of work, weigh
    /// more, and a JVM, for which one heats up until its compilers rest, pays more for cold caches: there it is long.
    #[must_use]
    pub fn block_length(&self) -> Time {
        let rate = self.load.rate.filter(|_| self.preheat_until != PreheatUntil::Steady);
        let wanted = rate.map_or(LONGEST_BLOCK.as_secs_f64(), |rate| REQUESTS_OF_A_BLOCK / rate);
        let bounds = (SHORTEST_BLOCK.as_secs_f64(), LONGEST_BLOCK.as_secs_f64());
        self.block.unwrap_or(Time(Duration::from_secs_f64(wanted.clamp(bounds.0, bounds.1))))
    }

    /// For how long each variant has the load for itself after the blocks of an alternating round.
    #[must_use]
    pub fn alone_time(&self) -> Time {
        self.alone.unwrap_or(Time(self.window.0.min(ALONE.0)))
    }

    /// Why the variants cannot take turns within a round (`design: alternating`); `None`: nothing in the study speaks against it.
    #[must_use]
    pub fn why_separate(&self) -> Option<SeparateReason> {
        let load = &self.load;
        let reasons = [
            (load.driver.is_some(), SeparateReason::Driver),
            (load.burst.is_some(), SeparateReason::Burst),
            (load.requests.is_some(), SeparateReason::Requests),
            (self.capacity.is_some(), SeparateReason::Capacity),
            (self.saturation.is_some(), SeparateReason::Saturation),
        ];
        reasons.into_iter().find(|(holds, _)| *holds).map(|(_, reason)| reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Capacity, Load};

    #[test]
    fn a_block_holds_six_requests_if_it_may_be_so_long() {
        let length = |rate: Option<f64>| {
            Study::new("x", Load { rate, ..Load::new("http://localhost/") }).block_length().0.as_millis()
        };
        let rates = [None, Some(20.0), Some(100.0), Some(500.0), Some(10_000.0)];
        assert_eq!(rates.map(length), [100, 100, 60, 12, 6]);
        let study = Study::new("x", Load { rate: Some(500.0), ..Load::new("http://localhost/") });
        let jvm = Study { preheat_until: PreheatUntil::Steady, ..study.clone() };
        assert_eq!(jvm.block_length().0.as_millis(), 100);
        let own = Study { block: Some(Time(Duration::from_millis(50))), ..study };
        assert_eq!(own.block_length().0.as_millis(), 50);
    }

    #[test]
    fn what_is_done_once_or_alone_takes_no_turns() {
        let study = || Study::new("x", Load { rate: Some(500.0), ..Load::new("http://localhost/") });
        assert_eq!(study().why_separate(), None);
        let load = |change: fn(&mut Load)| {
            let mut study = study();
            change(&mut study.load);
            study.why_separate()
        };
        assert_eq!(load(|it| it.burst = Some(100_000)), Some(SeparateReason::Burst));
        assert_eq!(load(|it| it.requests = Some(1000)), Some(SeparateReason::Requests));
        assert_eq!(load(|it| it.driver = Some("pump".into())), Some(SeparateReason::Driver));
        let capacity: Capacity = serde_json::from_str(r#"{"limit": "20ms"}"#).expect("a search");
        assert_eq!(Study { capacity: Some(capacity), ..study() }.why_separate(), Some(SeparateReason::Capacity));
    }
}
