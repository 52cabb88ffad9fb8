//! Due times of an open loop: a function of the request's index alone, so that no error adds up and a late request never
//! moves a later one.
//!
//! A schedule is two things: how many requests are due by an instant (a [`Profile`] of the rate, or recorded gaps), and
//! whether they come evenly or at random. A random (Poisson) arrival is an even one on a stretched axis: the sums of unit
//! exponentials take the place of 0, 1, 2 … (Çinlar, "Introduction to Stochastic Processes", 1975, 4.7).

use unladen_trace::mix;

use super::SECOND;
use super::profile::Profile;

/// How requests follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// At equal distances (of the area under the rate).
    #[default]
    Even,
    /// Independent of each other, as the requests of many users are: exponential gaps.
    Poisson {
        /// Seed of the gaps; the same one gives the same schedule.
        seed: u64,
    },
}

/// What the due times come from.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// So many requests a second.
    Constant(f64),
    /// A rate that changes, or random arrivals.
    Rate(Profile, Arrivals),
    /// Recorded gaps, again and again: offsets of the requests of one turn, and its length, nanoseconds.
    Replay(Vec<u64>, u64),
    /// All at the start.
    Burst,
}

/// Due times of an open loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    kind: Kind,
    /// Length of the load in nanoseconds.
    length_ns: u64,
    /// Requests at most.
    count: u64,
}

impl Schedule {
    /// Evenly spaced requests: number 0 is due at 0, the last one before the end of the load.
    #[must_use]
    pub fn constant(rate: f64, length_ns: u64) -> Self {
        Self { kind: Kind::Constant(rate), length_ns, count: u64::MAX }
    }

    /// Requests at a rate that may change, evenly or at random.
    #[must_use]
    pub fn of_rate(profile: Profile, arrivals: Arrivals, length_ns: u64) -> Self {
        Self { kind: Kind::Rate(profile, arrivals), length_ns, count: u64::MAX }
    }

    /// Recorded gaps between requests in nanoseconds, from the first one on, repeated to the end of the load: the gap after
    /// the last request of a turn leads to the first one of the next.
    #[must_use]
    pub fn replay(gaps_ns: &[u64], length_ns: u64) -> Self {
        let mut at = 0u64;
        let mut offsets = Vec::with_capacity(gaps_ns.len());
        for gap in gaps_ns {
            offsets.push(at);
            at = at.saturating_add(*gap);
        }
        Self { kind: Kind::Replay(offsets, at), length_ns, count: u64::MAX }
    }

    /// All requests at once.
    #[must_use]
    pub fn burst(count: u64, length_ns: u64) -> Self {
        Self { kind: Kind::Burst, length_ns, count }
    }

    /// The same with at most so many requests.
    #[must_use]
    pub fn at_most(self, count: u64) -> Self {
        Self { count: self.count.min(count), ..self }
    }

    /// Nanoseconds from the start of the load to the instant at which the request is due; `None`: no such request. Random
    /// arrivals are summed up from the first one: a [`Cursor`] is for those who want them one after the other.
    #[must_use]
    pub fn due_ns(&self, index: u64) -> Option<u64> {
        let place = match &self.kind {
            Kind::Rate(_, Arrivals::Poisson { seed }) => (0..=index).map(|index| gap(*seed, index)).sum(),
            _ => index as f64,
        };
        self.due_at(index, place)
    }

    /// The due time of the request with this index and this place on the axis of arrivals.
    fn due_at(&self, index: u64, place: f64) -> Option<u64> {
        if index >= self.count {
            return None;
        }
        let due = match &self.kind {
            // 53 bits hold 104 days of nanoseconds exactly.
            Kind::Constant(rate) => (place * (SECOND as f64 / rate)).round() as u64,
            Kind::Rate(profile, _) => (profile.when_area(place)? * SECOND as f64).round() as u64,
            Kind::Replay(offsets, turn) => {
                let (turns, at) = (index / offsets.len().max(1) as u64, index % offsets.len().max(1) as u64);
                turns.checked_mul(*turn)?.checked_add(*offsets.get(at as usize)?)?
            }
            Kind::Burst => 0,
        };
        (due < self.length_ns).then_some(due)
    }

    /// Highest rate, requests a second; infinite for a burst.
    #[must_use]
    pub fn max_per_second(&self) -> f64 {
        match &self.kind {
            Kind::Constant(rate) => *rate,
            Kind::Rate(profile, _) => profile.most(),
            Kind::Replay(offsets, turn) => offsets.len() as f64 * SECOND as f64 / (*turn).max(1) as f64,
            Kind::Burst => f64::INFINITY,
        }
    }

    /// For each of so many senders that share the schedule: nanoseconds that a request waits at most for later ones, to share a
    /// wake-up with them. A wake-up costs 12 to 29 µs of CPU, a request 4: up to 5,000 requests a second each has a wake-up (and
    /// its exact instant) of its own, above two (from 10,000 on three) go together, from 30,000 on those of 67 µs.
    #[must_use]
    pub fn slot_ns(&self, senders: u64) -> u64 {
        let interval = SECOND as f64 * senders.max(1) as f64 / self.max_per_second();
        if interval >= 200_000.0 {
            return 0;
        }
        let together = if interval > 100_000.0 { 1.0 } else { 2.0 };
        // Due times are rounded: the last one is not to be missed by a nanosecond.
        (together * interval).max(66_667.0).ceil() as u64 + 1
    }
}

/// The unit exponential before the request with this index. Counter-based, so that every thread and every shard sees the
/// same arrivals.
fn gap(seed: u64, index: u64) -> f64 {
    let bits = mix(seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15))) >> 11;
    // In (0, 1]: the logarithm is finite.
    -((bits + 1) as f64 / (1u64 << 53) as f64).ln()
}

/// A walk through every `stride`-th request of a schedule, so that threads and shards share it without asking each other.
#[derive(Debug, Clone)]
pub struct Cursor {
    schedule: Schedule,
    index: u64,
    stride: u64,
    /// Place of `index` on the axis of arrivals.
    place: f64,
    /// When it is due.
    due: Option<u64>,
}

impl Cursor {
    /// At the request `first`.
    #[must_use]
    pub fn new(schedule: Schedule, first: u64, stride: u64) -> Self {
        let mut cursor = Self { schedule, index: 0, stride: stride.max(1), place: 0.0, due: None };
        cursor.place = match cursor.schedule.kind {
            Kind::Rate(_, Arrivals::Poisson { seed }) => gap(seed, 0),
            _ => 0.0,
        };
        cursor.go_to(first);
        cursor
    }

    /// Moves on to an index.
    fn go_to(&mut self, index: u64) {
        match self.schedule.kind {
            Kind::Rate(_, Arrivals::Poisson { seed }) => {
                for next in self.index + 1..=index {
                    self.place += gap(seed, next);
                }
            }
            _ => self.place = index as f64,
        }
        self.index = index;
        self.due = self.schedule.due_at(index, self.place);
    }

    /// Nanoseconds from the start to the instant at which the request at hand is due; `None`: there are no more.
    #[inline]
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        self.due
    }

    /// Due time of the last request from the one at hand on that is due by this instant, nanoseconds from the start. For a
    /// schedule that is not even, the instant itself.
    #[must_use]
    pub fn last_due_by(&self, limit_ns: u64) -> u64 {
        let (Kind::Constant(rate), Some(due)) = (&self.schedule.kind, self.due) else { return limit_ns };
        let interval = SECOND as f64 / rate * self.stride as f64;
        // One more than there can be, since due times are rounded.
        let more = (limit_ns.saturating_sub(due) as f64 / interval) as u64 + 1;
        let at = |more: u64| {
            let index = self.index.saturating_add(more.saturating_mul(self.stride));
            self.schedule.due_at(index, index as f64).filter(|&due| due <= limit_ns)
        };
        at(more).or_else(|| at(more - 1)).unwrap_or(due)
    }

    /// Index of the request at hand.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Takes the request at hand: its index. Moves on to the next.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let taken = self.index;
        self.go_to(taken.saturating_add(self.stride));
        taken
    }

    /// Whether the schedule has a number of requests and all of them are taken.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.index >= self.schedule.count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Stage;
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
        for (rate, senders, slot) in [
            (10.0, 1, 0),
            (5_000.0, 1, 0),
            (8_000.0, 1, 125_001),
            (10_000.0, 1, 200_001),
            (10_000.0, 2, 0),
            (20_000.0, 1, 100_001),
            (20_000.0, 2, 200_001),
            (30_000.0, 1, 66_668),
            (1e6, 1, 66_668),
        ] {
            assert_eq!(Schedule::constant(rate, SECOND).slot_ns(senders), slot, "{rate}/s by {senders}");
        }
        assert_eq!(Schedule::burst(5, SECOND).slot_ns(1), 66_668);
    }

    #[test]
    fn even_requests_share_slots_in_whole_groups() {
        for (rate, senders, together) in
            [(7_000.0, 1, 2), (10_000.0, 1, 3), (29_999.0, 1, 3), (30_000.0, 1, 3), (21_000.0, 3, 2)]
        {
            let schedule = Schedule::constant(rate, SECOND);
            let slot = schedule.slot_ns(senders);
            let mut cursor = Cursor::new(schedule, 0, senders);
            for _ in 0..1_000 {
                let first = cursor.due_ns().expect("within the second");
                let end = cursor.last_due_by(first + slot);
                let mut count = 0;
                while cursor.due_ns().is_some_and(|due| due <= end) {
                    count += 1;
                    cursor.take();
                }
                assert_eq!(count, together, "{rate}/s by {senders}");
            }
        }
        let last = Cursor::new(Schedule::constant(10.0, SECOND), 9, 1);
        assert_eq!(last.last_due_by(2 * SECOND), 900_000_000, "there are no more");
        let random = Schedule::of_rate(Profile::constant(1_000.0), Arrivals::Poisson { seed: 1 }, SECOND);
        assert_eq!(Cursor::new(random, 0, 1).last_due_by(77), 77);
    }

    #[test]
    fn a_ramp_has_as_many_requests_as_the_area_under_it() {
        let ramp = Profile::new(0.0, &[Stage { seconds: 10.0, to: 100.0 }]);
        let schedule = Schedule::of_rate(ramp, Arrivals::Even, 10 * SECOND);
        assert_eq!(schedule.due_ns(0), Some(0));
        assert_eq!(schedule.due_ns(125), Some(5 * SECOND));
        assert!(schedule.due_ns(499).is_some());
        assert_eq!(schedule.due_ns(500), None);
    }

    #[test]
    fn a_recording_is_played_again_and_again() {
        let schedule = Schedule::replay(&[10, 20, 70], 250);
        let dues: Vec<_> = (0..9).map(|index| schedule.due_ns(index)).collect();
        assert_eq!(
            dues,
            [Some(0), Some(10), Some(30), Some(100), Some(110), Some(130), Some(200), Some(210), Some(230)]
        );
        assert_eq!(schedule.due_ns(9), None);
        assert_eq!(Schedule::replay(&[], 250).due_ns(0), None);
    }

    #[test]
    fn a_burst_is_due_at_once_and_a_number_is_a_number() {
        let burst = Schedule::burst(3, SECOND);
        assert_eq!((burst.due_ns(0), burst.due_ns(2), burst.due_ns(3)), (Some(0), Some(0), None));
        let mut cursor = Cursor::new(Schedule::constant(1_000.0, SECOND).at_most(5), 1, 2);
        assert_eq!((cursor.take(), cursor.take()), (1, 3));
        assert!(cursor.is_used_up() && cursor.due_ns().is_none());
        assert!(!Cursor::new(Schedule::constant(1.0, SECOND), 7, 1).is_used_up(), "ended by time, not by number");
    }

    #[test]
    fn random_arrivals_have_the_mean_and_the_spread_of_a_poisson_process() {
        let schedule = Schedule::of_rate(Profile::constant(1_000.0), Arrivals::Poisson { seed: 7 }, 100 * SECOND);
        let mut cursor = Cursor::new(schedule, 0, 1);
        let (mut gaps, mut last) = (Vec::new(), 0);
        while let Some(due) = cursor.due_ns() {
            gaps.push((due - last) as f64 / 1e6);
            last = due;
            cursor.take();
        }
        // The seed is fixed, so this cannot flake. 100,000 arrivals: the count's standard deviation is 316, and both mean
        // and standard deviation of the gaps are 1 ms, known to 1 % at three of theirs.
        assert!((99_000..101_000).contains(&gaps.len()), "{}", gaps.len());
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let spread = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean - 1.0).abs() < 0.01 && (spread - 1.0).abs() < 0.01, "{mean} {spread}");
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

        #[test]
        fn shares_make_up_the_whole(threads in 1u64..7, seed: u64) {
            for arrivals in [Arrivals::Even, Arrivals::Poisson { seed }] {
                let profile = Profile::new(10.0, &[Stage { seconds: 1.0, to: 400.0 }]);
                let schedule = Schedule::of_rate(profile, arrivals, 2 * SECOND);
                let walk = |first, stride| {
                    let mut cursor = Cursor::new(schedule.clone(), first, stride);
                    std::iter::from_fn(move || cursor.due_ns().map(|due| (cursor.take(), due))).collect::<Vec<_>>()
                };
                let mut shares: Vec<_> = (0..threads).flat_map(|thread| walk(thread, threads)).collect();
                shares.sort_unstable();
                prop_assert_eq!(&shares, &walk(0, 1));
                for &(index, due) in shares.iter().take(50) {
                    prop_assert_eq!(schedule.due_ns(index), Some(due));
                }
            }
        }
    }
}
