//! What a study says about spans beyond how many a request makes: the sink and its bad days, what agents tell of their own
//! losses, what backends count, and the calibration.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use unladen_journal::units::{Ratio, Time};

/// The span sink of the study.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sink {
    /// Which attributes are stored with each span.
    pub attributes: Attributes,
    /// When an acknowledged span is on the disk.
    pub sync: Sync,
    /// Faults of the sink, in every variant that has no `faults` of its own.
    pub faults: Option<Faults>,
}

/// Which attributes of a span are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attributes {
    /// None.
    None,
    /// A handful that name the operation.
    #[default]
    Few,
    /// All of them.
    All,
}

/// When an acknowledged span is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// Before it is acknowledged.
    #[default]
    Always,
    /// Within about a second.
    Interval,
    /// When its file is full.
    End,
}

/// Faults of the sink. Several at once: a request is delayed first; then it is reset, left
/// without an answer or refused; of what is left a share is thrown away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Delay before each request is handled.
    pub delay: Option<Delay>,
    /// Requests are refused.
    pub refuse: Option<Refuse>,
    /// Connections are reset when a request comes in.
    pub reset: bool,
    /// Requests are accepted and never answered.
    pub black_hole: bool,
    /// Exactly this share of the batches is acknowledged, then dropped.
    pub drop: Ratio,
    /// Connections are closed after this many requests.
    pub close_after: Option<u64>,
    /// Apply the faults above only part of the time.
    pub flapping: Option<Flapping>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            delay: None,
            refuse: None,
            reset: false,
            black_hole: false,
            drop: Ratio(0.0),
            close_after: None,
            flapping: None,
        }
    }
}

/// How requests are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Refuse {
    /// Status over HTTP.
    pub http: u16,
    /// Status over gRPC; 14 is `UNAVAILABLE`, which agents repeat, 3 is `INVALID_ARGUMENT`, which they do not.
    pub grpc: u8,
    /// Exactly this share of the requests.
    pub share: Ratio,
}

impl Default for Refuse {
    fn default() -> Self {
        Self { http: 503, grpc: 14, share: Ratio(1.0) }
    }
}

/// Good and bad times, in turn; it begins with a good one when the sink starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flapping {
    /// Time without faults.
    pub good: Time,
    /// Time with faults.
    pub bad: Time,
}

/// How long requests wait: `50ms`, `10ms..50ms` (all equally likely) or `exponential 50ms` (the mean).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// All as long.
    Fixed(Time),
    /// Between these two, all equally likely.
    Uniform(Time, Time),
    /// Exponentially distributed with this mean.
    Exponential(Time),
}

/// A text that is no delay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not {WANTED}")]
pub struct DelayError(String);

const WANTED: &str = "a delay such as `50ms`, `10ms..50ms` or `exponential 50ms`";

impl FromStr for Delay {
    type Err = DelayError;

    fn from_str(text: &str) -> Result<Self, DelayError> {
        let time = |part: &str| part.parse::<Time>().map_err(|_| DelayError(text.to_owned()));
        if let Some(mean) = text.trim().strip_prefix("exponential ") {
            return Ok(Self::Exponential(time(mean)?));
        }
        match text.split_once("..") {
            Some((least, most)) => {
                let (least, most) = (time(least)?, time(most)?);
                if least <= most { Ok(Self::Uniform(least, most)) } else { Err(DelayError(text.to_owned())) }
            }
            None => Ok(Self::Fixed(time(text)?)),
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => time.fmt(f),
            Self::Uniform(least, most) => write!(f, "{least}..{most}"),
            Self::Exponential(mean) => write!(f, "exponential {mean}"),
        }
    }
}

impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Within a visitor an error is found where the value stands.
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Delay;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(WANTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Delay, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Delay {
    fn schema_name() -> Cow<'static, str> {
        "Delay".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let time = "[0-9.]+ ?(ns|us|µs|ms|s|m|min|h)";
        let pattern = format!("^(exponential )?{time}$|^{time} ?\\.\\. ?{time}$");
        json_schema!({ "type": "string", "pattern": pattern, "description": WANTED })
    }
}

impl Faults {
    /// The same as the sink takes it, in whole milliseconds.
    #[must_use]
    pub fn of_sink(&self) -> unladen_ledger::faults::Faults {
        use unladen_ledger::faults::{Delay as Wait, Faults, Flapping, Refusal};
        let ms = |time: Time| u64::try_from((time.0 + Duration::from_micros(500)).as_millis()).unwrap_or(u64::MAX);
        Faults {
            delay: self.delay.map(|delay| match delay {
                Delay::Fixed(time) => Wait::FixedMs(ms(time)),
                Delay::Uniform(least, most) => Wait::UniformMs(ms(least), ms(most)),
                Delay::Exponential(mean) => Wait::ExponentialMs(ms(mean)),
            }),
            refuse: self.refuse.as_ref().map(|refuse| Refusal {
                http: refuse.http,
                grpc: refuse.grpc,
                share: refuse.share.0,
            }),
            reset: self.reset,
            black_hole: self.black_hole,
            drop_share: self.drop.0,
            close_after: self.close_after,
            flapping: self
                .flapping
                .as_ref()
                .map(|flapping| Flapping { good_ms: ms(flapping.good), bad_ms: ms(flapping.bad) }),
        }
    }
}

/// Where a variant's agent reports its losses at one stage: in its log, or in a Prometheus metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Loss {
    /// Service whose log is read. Absent: those of all subjects.
    pub service: Option<String>,
    /// Regular expression of the lines that tell of a loss; its one group `(…)`, if there is one, is the number of spans.
    /// Without a group each line is one loss.
    pub log: Option<String>,
    /// Whether to add the numbers up, or to take the last one of each process, because each is a running total.
    pub numbers: Numbers,
    /// URL of metrics in Prometheus' text format, read when the services are ready and again before they stop.
    pub prometheus: Option<String>,
    /// Its metric, a counter: `NAME`, or with labels `NAME{label="value",other!=""}`; all series that fit are added up.
    pub metric: Option<String>,
    /// Spans per counted unit: 3 for segments of 3 spans each.
    pub each: f64,
}

impl Default for Loss {
    fn default() -> Self {
        Self { service: None, log: None, numbers: Numbers::default(), prometheus: None, metric: None, each: 1.0 }
    }
}

/// What the numbers in a log are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Numbers {
    /// Each is a loss of its own.
    #[default]
    Sum,
    /// Each is the count so far.
    Last,
}

/// How to query a backend for its number of spans: by a JSON document or a Prometheus metric. Queried when the services are
/// ready and again in the drain until the number stands still and a storage shows what its collector has taken; the difference is
/// what arrived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Count {
    /// URL of a JSON document.
    pub http: Option<String>,
    /// What is sent there (as `POST` and JSON), for query languages. Absent: `GET`.
    pub body: Option<String>,
    /// Where in the document the number is, as a JSON pointer (RFC 6901): `/hits/total`.
    pub pointer: Option<String>,
    /// URL of metrics in Prometheus' text format.
    pub prometheus: Option<String>,
    /// Its metric: `NAME`, or with labels `NAME{label="value",other!=""}`; all series that fit are added up.
    pub metric: Option<String>,
    /// Spans per counted unit: 3 for segments of 3 spans each.
    pub each: f64,
}

impl Default for Count {
    fn default() -> Self {
        Self { http: None, body: None, pointer: None, prometheus: None, metric: None, each: 1.0 }
    }
}

/// A short, slow load on every variant that makes spans, before the first round: so slow that nothing is lost. It finds how
/// many spans a request makes where the study does not say so, and checks it where it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Calibration {
    /// Requests; 0 for no calibration.
    pub requests: u32,
    /// Requests per second.
    pub rate: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { requests: 40, rate: 20.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_and_written_back() {
        for (text, written) in
            [("50ms", "50ms"), ("10 ms .. 0.05s", "10ms..50ms"), ("exponential 50ms", "exponential 50ms")]
        {
            let delay: Delay = text.parse().expect(text);
            assert_eq!(delay.to_string(), written);
            assert_eq!(written.parse(), Ok(delay));
        }
        for text in ["", "50", "50ms..", "50ms..10ms", "exponential", "normal 5ms", "1ms..2ms..3ms"] {
            assert!(text.parse::<Delay>().is_err(), "{text}");
        }
    }

    #[test]
    fn faults_become_the_sinks() {
        let faults = Faults {
            delay: Some(Delay::Uniform(Time::seconds(0.01), Time::seconds(0.0504))),
            refuse: Some(Refuse { share: Ratio(0.1), ..Refuse::default() }),
            flapping: Some(Flapping { good: Time::seconds(1.0), bad: Time::seconds(2.0) }),
            ..Faults::default()
        };
        assert_eq!(
            faults.of_sink().to_string(),
            "answers 10 to 50 ms late, refuses 10 % of the requests with HTTP 503 or gRPC status 14; alternating \
             1000 ms healthy, 2000 ms faulty"
        );
    }
}
