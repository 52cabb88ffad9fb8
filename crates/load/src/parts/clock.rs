//! What a clock elsewhere says, by questions and answers: as in NTP (RFC 5905, section 8), but for one offset and without a discipline. Pure.

/// Two clocks of crystals drift apart by less than this share of the time: each by up to 50 parts in a million.
const DRIFT: f64 = 100e-6;

/// Another machine's `CLOCK_MONOTONIC`, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// Its reading minus that of this machine at the same instant, ns.
    offset_ns: i64,
    /// How wrong the offset may have been when it was found: half of the time from question to answer, ns.
    bound_ns: u64,
    /// When it was found, by this machine's clock, ns.
    found_ns: u64,
}

impl Clock {
    /// By a question that was sent, an answer that was received, and what it says.
    #[must_use]
    pub fn of(sent_ns: u64, said_ns: u64, received_ns: u64) -> Self {
        let bound_ns = received_ns.saturating_sub(sent_ns).div_ceil(2);
        let offset_ns = i128::from(said_ns) - i128::from(sent_ns) - i128::from(bound_ns);
        Self { offset_ns: offset_ns as i64, bound_ns, found_ns: received_ns }
    }

    /// How wrong it may be at an instant, ns.
    #[must_use]
    pub fn bound_ns(&self, now_ns: u64) -> u64 {
        self.bound_ns + (now_ns.saturating_sub(self.found_ns) as f64 * DRIFT) as u64
    }

    /// The better known of two, at an instant.
    #[must_use]
    pub fn or(self, other: Self, now_ns: u64) -> Self {
        if other.bound_ns(now_ns) <= self.bound_ns(now_ns) { other } else { self }
    }

    /// What the other clock says at an instant of this one.
    #[must_use]
    pub fn there(&self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.offset_ns)
    }

    /// What this clock says at an instant of the other one.
    #[must_use]
    pub fn here(&self, there_ns: u64) -> u64 {
        there_ns.saturating_add_signed(self.offset_ns.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_within_its_bound_however_the_way_is_shared() {
        let ahead = 5_000_000_000;
        for to_there in [0, 100, 300, 400] {
            let clock = Clock::of(1_000, 1_000 + to_there + ahead, 1_400);
            assert_eq!(clock.bound_ns(1_400), 200);
            let truth = 2_000 + ahead;
            assert!(clock.there(2_000).abs_diff(truth) <= 200, "{clock:?}");
            assert_eq!(clock.here(clock.there(2_000)), 2_000);
        }
        let behind = Clock::of(9_000, 1_200, 9_400);
        assert_eq!((behind.there(9_200), behind.here(1_200)), (1_200, 9_200));
    }

    #[test]
    fn what_was_found_long_ago_is_known_less_well() {
        let (first, second) = (Clock::of(0, 7, 2_000), Clock::of(1_000_000_000, 7, 1_000_050_000));
        assert_eq!(first.bound_ns(1_000_002_000), 101_000);
        assert_eq!(first.or(second, 1_000_050_000), second);
        assert_eq!(first.or(second, 2_000), first, "a second has not passed yet");
    }
}
