//! Faults on demand: what a backend does to its senders on a bad day. Pure: [`Faults::decide`] says what happens to a
//! request from its number and the time; the sink's listener does it.
//!
//! Deterministic, so that two runs see the same bad day: shares are exact over any number of requests, and random delays
//! come from the request's number.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use unladen_trace::mix;

/// What goes wrong. Several may be wanted at once: a request is delayed first; then the first of reset, black hole
/// and refusal that applies happens to it; what is left may be dropped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Every request waits before it is looked at.
    pub delay: Option<Delay>,
    /// Requests are refused.
    pub refuse: Option<Refusal>,
    /// Connections are reset when a request comes in.
    pub reset: bool,
    /// Requests are taken and never answered.
    pub black_hole: bool,
    /// Share of the messages with spans, 0 to 1, that are answered as if all were well and thrown away.
    pub drop_share: f64,
    /// Connections are closed after so many requests; always, whatever `flapping` says.
    pub close_after: Option<u64>,
    /// Everything above holds only now and then.
    pub flapping: Option<Flapping>,
}

/// How long requests wait, ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Delay {
    /// All as long.
    FixedMs(u64),
    /// Between these two, all equally likely.
    UniformMs(u64, u64),
    /// Exponentially distributed with this mean: most are short, one in a hundred is 4.6 times as long.
    ExponentialMs(u64),
}

/// How requests are refused.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Refusal {
    /// Status over HTTP.
    pub http: u16,
    /// Status over gRPC.
    pub grpc: u8,
    /// Share of the requests, 0 to 1, evenly spread.
    pub share: f64,
}

impl Default for Refusal {
    /// Come again later: 503 and `UNAVAILABLE`.
    fn default() -> Self {
        Self { http: 503, grpc: 14, share: 1.0 }
    }
}

/// Good and bad times, in turn; it begins with a good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flapping {
    /// Without faults, ms.
    pub good_ms: u64,
    /// With faults, ms.
    pub bad_ms: u64,
}

/// What happens to a request once its delay is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    /// Nothing bad.
    Serve,
    /// An answer that says no.
    Refuse(Refusal),
    /// The connection is reset.
    Reset,
    /// No answer.
    BlackHole,
}

impl Faults {
    /// Delay and fate of request `number`, counted from 0 over all connections, `since_start` of the sink.
    #[must_use]
    pub fn decide(&self, number: u64, since_start: Duration) -> (Duration, Fate) {
        if self.flapping.is_some_and(|flapping| flapping.is_good(since_start)) {
            return (Duration::ZERO, Fate::Serve);
        }
        let delay = match self.delay {
            None => 0,
            Some(Delay::FixedMs(ms)) => ms,
            Some(Delay::UniformMs(least, most)) => {
                let width = most.saturating_sub(least).saturating_add(1);
                least + ((u128::from(mix(number.wrapping_add(1))) * u128::from(width)) >> 64) as u64
            }
            Some(Delay::ExponentialMs(mean)) => {
                // 53 random bits, and never 0, whose logarithm is infinite.
                let uniform = ((mix(number.wrapping_add(1)) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                (-uniform.ln() * mean as f64).round() as u64
            }
        };
        let fate = match self.refuse {
            _ if self.reset => Fate::Reset,
            _ if self.black_hole => Fate::BlackHole,
            Some(refusal) if falls_on(number, refusal.share) => Fate::Refuse(refusal),
            _ => Fate::Serve,
        };
        (Duration::from_millis(delay), fate)
    }

    /// Whether message `number` of those that carry spans, counted from 0, is answered as if all were well and thrown away.
    #[must_use]
    pub fn drops(&self, number: u64, since_start: Duration) -> bool {
        falls_on(number, self.drop_share) && !self.flapping.is_some_and(|flapping| flapping.is_good(since_start))
    }

    /// Whether a connection that has had so many requests is closed.
    #[must_use]
    pub fn closes(&self, requests: u64) -> bool {
        self.close_after.is_some_and(|limit| requests >= limit)
    }
}

/// Whether a share of all requests, evenly spread, holds this one: whenever the share has come together once more.
fn falls_on(number: u64, share: f64) -> bool {
    whole(number + 1, share) > whole(number, share)
}

/// Of so many requests, how many a share is; a hair more, because shares such as 0.1 are no exact numbers.
fn whole(requests: u64, share: f64) -> u64 {
    (requests as f64 * share.clamp(0.0, 1.0) + 1e-9).floor() as u64
}

impl fmt::Display for Faults {
    /// In words, for reports: `answers 20 ms late, drops 10 % of the batches`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.delay.map(|delay| match delay {
            Delay::FixedMs(ms) => format!("answers {ms} ms late"),
            Delay::UniformMs(least, most) => format!("answers {least} to {most} ms late"),
            Delay::ExponentialMs(mean) => format!("answers {mean} ms late on average, exponentially distributed"),
        }));
        if self.reset {
            parts.push("resets connections".to_owned());
        }
        if self.black_hole {
            parts.push("never answers".to_owned());
        }
        parts.extend(self.refuse.map(|Refusal { http, grpc, share }| {
            format!("refuses {} with HTTP {http} or gRPC status {grpc}", portion(share, "requests"))
        }));
        if self.drop_share > 0.0 {
            parts.push(format!("drops {} but acknowledges them", portion(self.drop_share, "batches")));
        }
        parts.extend(self.close_after.map(|limit| format!("closes connections after {limit} requests")));
        if parts.is_empty() {
            parts.push("does nothing wrong".to_owned());
        }
        f.write_str(&parts.join(", "))?;
        match self.flapping {
            Some(Flapping { good_ms, bad_ms }) => write!(f, "; alternating {good_ms} ms healthy, {bad_ms} ms faulty"),
            None => Ok(()),
        }
    }
}

/// `10 % of the batches`, `all batches`.
fn portion(share: f64, what: &str) -> String {
    if share >= 1.0 { format!("all {what}") } else { format!("{} % of the {what}", (share * 1e8).round() / 1e6) }
}

impl Flapping {
    fn is_good(self, since_start: Duration) -> bool {
        let period = u128::from(self.good_ms) + u128::from(self.bad_ms);
        period == 0 || since_start.as_millis() % period < u128::from(self.good_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(faults: &Faults, requests: u64) -> Vec<Fate> {
        (0..requests).map(|number| faults.decide(number, Duration::ZERO).1).collect()
    }

    #[test]
    fn shares_are_exact_at_any_time() {
        for (share, of_a_thousand) in [(0.0, 0), (0.1, 100), (0.3, 300), (1.0 / 3.0, 333), (1.0, 1_000), (7.0, 1_000)] {
            let faults = Faults { drop_share: share, ..Faults::default() };
            let mut dropped = 0_u64;
            for number in 0..1_000 {
                dropped += u64::from(faults.drops(number, Duration::ZERO));
                let wanted = (number + 1) as f64 * share.min(1.0);
                assert!((dropped as f64 - wanted).abs() < 1.0, "{share}: {dropped} of {}", number + 1);
            }
            assert_eq!(dropped, of_a_thousand, "{share}");
        }
    }

    #[test]
    fn the_worst_comes_first() {
        let refusal = Refusal::default();
        let all = Faults { reset: true, black_hole: true, refuse: Some(refusal), drop_share: 1.0, ..Faults::default() };
        assert_eq!(fates(&all, 1), [Fate::Reset]);
        assert_eq!(fates(&Faults { reset: false, ..all.clone() }, 1), [Fate::BlackHole]);
        assert_eq!(fates(&Faults { reset: false, black_hole: false, ..all }, 1), [Fate::Refuse(refusal)]);
        assert_eq!(fates(&Faults::default(), 1), [Fate::Serve]);
    }

    #[test]
    fn a_share_is_refused() {
        let tenth = Refusal { share: 0.1, ..Refusal::default() };
        let fates = fates(&Faults { refuse: Some(tenth), ..Faults::default() }, 1_000);
        assert_eq!(fates.iter().filter(|fate| **fate == Fate::Refuse(tenth)).count(), 100);
        assert_eq!(fates.iter().filter(|fate| **fate == Fate::Serve).count(), 900);
    }

    #[test]
    fn said_in_words() {
        let refuse = Some(Refusal { http: 429, grpc: 8, share: 0.25 });
        let faults = Faults { delay: Some(Delay::UniformMs(1, 9)), refuse, drop_share: 0.07, ..Faults::default() };
        let flapping = Some(Flapping { good_ms: 5_000, bad_ms: 100 });
        assert_eq!(
            Faults { close_after: Some(7), flapping, ..faults }.to_string(),
            "answers 1 to 9 ms late, refuses 25 % of the requests with HTTP 429 or gRPC status 8, drops 7 % of the \
             batches but acknowledges them, closes connections after 7 requests; alternating 5000 ms healthy, 100 ms \
             faulty"
        );
        assert_eq!(Faults { black_hole: true, ..Faults::default() }.to_string(), "never answers");
        assert_eq!(Faults::default().to_string(), "does nothing wrong");
    }

    #[test]
    fn delays() {
        let delay = |delay, number| {
            Faults { delay: Some(delay), ..Faults::default() }.decide(number, Duration::ZERO).0.as_millis()
        };
        assert_eq!(delay(Delay::FixedMs(7), 3), 7);
        let drawn: Vec<u128> = (0..10_000).map(|number| delay(Delay::UniformMs(10, 19), number)).collect();
        for ms in 10..=19 {
            // The numbers are fixed, so this cannot flake: five standard deviations of a fair draw.
            let hits = drawn.iter().filter(|drawn| **drawn == ms).count();
            assert!((850..=1_150).contains(&hits), "{ms} ms: {hits}");
        }
        assert!(drawn.iter().all(|ms| (10..=19).contains(ms)));
        assert_eq!(delay(Delay::UniformMs(5, 3), 1), 5, "the wrong way round");
        let mut drawn: Vec<u128> = (0..10_000).map(|number| delay(Delay::ExponentialMs(1_000), number)).collect();
        drawn.sort_unstable();
        // The median of an exponential distribution is ln 2 of its mean, its 99th percentile ln 100.
        assert!((680..=706).contains(&drawn[5_000]) && (4_300..=4_900).contains(&drawn[9_900]), "{}", drawn[9_900]);
        let mean = drawn.iter().sum::<u128>() / 10_000;
        assert!((970..=1_030).contains(&mean), "{mean}");
    }

    #[test]
    fn flapping_and_closing() {
        let flapping = Some(Flapping { good_ms: 100, bad_ms: 50 });
        let faults = Faults { reset: true, flapping, close_after: Some(2), ..Faults::default() };
        let at = |ms| faults.decide(0, Duration::from_millis(ms)).1;
        assert_eq!([at(0), at(99), at(100), at(149)], [Fate::Serve, Fate::Serve, Fate::Reset, Fate::Reset]);
        assert_eq!([at(150), at(260)], [Fate::Serve, Fate::Reset]);
        assert_eq!([faults.closes(1), faults.closes(2)], [false, true]);
        assert!(!Faults::default().closes(u64::MAX));
    }

    #[test]
    fn read_from_a_study() {
        let json = r#"{"delay":{"uniform_ms":[1,9]},"refuse":{"http":429},"flapping":{"good_ms":1,"bad_ms":2}}"#;
        let faults: Faults = serde_json::from_str(json).expect("JSON");
        assert_eq!(faults.delay, Some(Delay::UniformMs(1, 9)));
        assert_eq!(faults.refuse, Some(Refusal { http: 429, ..Refusal::default() }));
        assert!(serde_json::from_str::<Faults>(r#"{"slow":1}"#).is_err());
    }
}
