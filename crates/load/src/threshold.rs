//! `p99>50ms`: limits on an outcome that make a load fail. Pure.

use std::fmt;
use std::str::FromStr;

use crate::outcome::{Outcome, Quantiles};

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    /// A latency, µs: from the due instant in an open loop.
    Latency(Place),
    /// A service time, µs: from the send.
    Service(Place),
    /// Share of the window's requests that failed.
    ErrorRate,
    /// Number of them.
    Errors,
    /// Answers per second.
    Rate,
    /// Requests of the window that were answered well.
    Requests,
}

/// A place in a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Mean,
    P50,
    P75,
    P90,
    P95,
    P99,
    P999,
    Max,
}

/// Places by name.
const PLACES: [(&str, Place); 9] = [
    ("mean", Place::Mean),
    ("p50", Place::P50),
    ("p75", Place::P75),
    ("p90", Place::P90),
    ("p95", Place::P95),
    ("p99", Place::P99),
    ("p999", Place::P999),
    ("p99.9", Place::P999),
    ("max", Place::Max),
];

/// How the value stands to the limit when the load fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    More,
    AtLeast,
    Less,
    AtMost,
}

/// Comparisons by sign, the longer ones first.
const COMPARISONS: [(&str, Comparison); 4] =
    [(">=", Comparison::AtLeast), ("<=", Comparison::AtMost), (">", Comparison::More), ("<", Comparison::Less)];

/// Units of time, in µs.
const UNITS: [(&str, f64); 5] = [("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6)];

/// A condition under which a load fails: `p99>50ms`, `service-p90>=2s`, `error-rate>1%`, `errors>0`, `rate<950`,
/// `requests<1000`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    quantity: Quantity,
    comparison: Comparison,
    /// In the quantity's own unit.
    limit: f64,
    /// As written.
    text: String,
}

/// Why a text is no threshold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no condition: {reason}. Write one such as p99>50ms, mean>2ms, service-p90>1s, error-rate>1%, errors>0 or rate<950"
)]
pub struct ThresholdError {
    text: String,
    reason: &'static str,
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let bad = |reason| ThresholdError { text: text.to_owned(), reason };
        let (at, sign, comparison) = COMPARISONS
            .into_iter()
            .filter_map(|(sign, comparison)| text.find(sign).map(|at| (at, sign, comparison)))
            .next()
            .ok_or_else(|| bad("it has none of > >= < <="))?;
        let (name, value) = (text[..at].trim(), text[at + sign.len()..].trim());
        let place = |name: &str| PLACES.into_iter().find(|(known, _)| *known == name).map(|(_, place)| place);
        let service = |name: &str| place(name.strip_prefix("service-")?);
        let quantity = match name {
            "error-rate" => Quantity::ErrorRate,
            "errors" => Quantity::Errors,
            "rate" => Quantity::Rate,
            "requests" => Quantity::Requests,
            _ => place(name)
                .map(Quantity::Latency)
                .or_else(|| service(name).map(Quantity::Service))
                .ok_or_else(|| bad("nothing that is measured has this name"))?,
        };
        let digits = value.trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
        let unit = &value[digits.len()..];
        let factor = match quantity {
            Quantity::Latency(_) | Quantity::Service(_) => {
                let found = UNITS.into_iter().find(|(known, _)| *known == unit);
                found.map(|(_, factor)| factor).ok_or_else(|| bad("a time needs a unit: us, ms, s or m"))?
            }
            Quantity::ErrorRate if unit == "%" => 0.01,
            Quantity::ErrorRate | Quantity::Errors | Quantity::Rate | Quantity::Requests if unit.is_empty() => 1.0,
            Quantity::ErrorRate | Quantity::Errors | Quantity::Rate | Quantity::Requests => {
                return Err(bad("the unit does not fit"));
            }
        };
        let number: f64 = digits.trim().parse().map_err(|_| bad("the limit is not a number"))?;
        if !number.is_finite() || number < 0.0 {
            return Err(bad("the limit is not a number"));
        }
        Ok(Self { quantity, comparison, limit: number * factor, text: text.to_owned() })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// A place's value.
fn at(place: Place, quantiles: &Quantiles) -> Option<f64> {
    let value = match place {
        Place::Mean => quantiles.mean,
        Place::P50 => quantiles.p50,
        Place::P75 => quantiles.p75,
        Place::P90 => quantiles.p90,
        Place::P95 => quantiles.p95,
        Place::P99 => quantiles.p99,
        Place::P999 => quantiles.p999,
        Place::Max => quantiles.max,
    };
    (quantiles.count > 0).then_some(value)
}

impl Threshold {
    /// Whether an outcome fails it, and then in words: `p99 is 61.2 ms: p99>50ms`. Without a single good answer every
    /// condition on a time fails: nothing is known of it.
    #[must_use]
    pub fn broken_by(&self, outcome: &Outcome) -> Option<String> {
        let name = self.text.split(['<', '>']).next().unwrap_or_default().trim();
        let failed = outcome.errors as f64;
        let all = failed + outcome.requests as f64;
        let value = match self.quantity {
            Quantity::Latency(place) => at(place, &outcome.latency_us),
            Quantity::Service(place) => at(place, &outcome.service_time_us),
            Quantity::ErrorRate => (all > 0.0).then(|| failed / all),
            Quantity::Errors => Some(failed),
            Quantity::Rate => Some(outcome.rate),
            Quantity::Requests => Some(outcome.requests as f64),
        };
        let Some(value) = value else { return Some(format!("{name} is unknown, nothing was answered: {}", self.text)) };
        let broken = match self.comparison {
            Comparison::More => value > self.limit,
            Comparison::AtLeast => value >= self.limit,
            Comparison::Less => value < self.limit,
            Comparison::AtMost => value <= self.limit,
        };
        let words = match self.quantity {
            Quantity::Latency(_) | Quantity::Service(_) => format!("{:.3} ms", value / 1e3),
            Quantity::ErrorRate => format!("{:.3} %", value * 100.0),
            Quantity::Errors | Quantity::Requests => format!("{value}"),
            Quantity::Rate => format!("{value:.1}/s"),
        };
        broken.then(|| format!("{name} is {words}: {}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        let latency_us = Quantiles { count: 990, mean: 5e3, p99: 50e3, max: 80e3, ..Quantiles::default() };
        let service_time_us = Quantiles { count: 990, p90: 2e3, ..Quantiles::default() };
        Outcome { requests: 990, errors: 10, rate: 99.5, latency_us, service_time_us, ..Outcome::default() }
    }

    #[test]
    fn conditions_by_table() {
        for (text, broken) in [
            ("p99>50ms", false),
            ("p99>=50ms", true),
            ("p99 > 49.9 ms", true),
            ("p99>0.05s", false),
            ("mean>4999us", true),
            ("max<0.1s", true),
            ("service-p90<=2ms", true),
            ("service-p90>2ms", false),
            ("error-rate>1%", false),
            ("error-rate>0.9%", true),
            ("error-rate>=0.01", true),
            ("errors>0", true),
            ("errors>10", false),
            ("rate<100", true),
            ("requests<990", false),
        ] {
            let threshold: Threshold = text.parse().expect(text);
            assert_eq!(threshold.broken_by(&outcome()).is_some(), broken, "{text}");
            assert_eq!(threshold.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_with_an_example() {
        for text in ["", "p99", "p98>1ms", "p99>50", "p99>fast", "error-rate>1ms", "errors>1%", "rate>NaN", "p99>-1ms"]
        {
            let error = text.parse::<Threshold>().expect_err(text).to_string();
            assert!(error.contains("p99>50ms"), "{error}");
        }
    }

    #[test]
    fn a_broken_one_says_by_what_and_silence_is_no_success() {
        let threshold: Threshold = "p99>=50ms".parse().expect("good");
        assert_eq!(threshold.broken_by(&outcome()).as_deref(), Some("p99 is 50.000 ms: p99>=50ms"));
        assert!(threshold.broken_by(&Outcome::default()).is_some());
    }
}
