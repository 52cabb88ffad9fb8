//! What came back: the output of the load generator.

use serde::{Deserialize, Serialize};

use crate::plan::Shard;
use crate::warning::LoadWarning;

/// One line of the generator's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The connections stand; the load starts at `start_at_ns`, or now if the plan has none.
    Ready,
    /// A second has passed (live display): what is known of the requests due in it. Requests that are still on their way
    /// are not in it yet; [`Outcome::seconds`] has the complete rows.
    Second(Second),
    /// The load has ended.
    Done(Box<Outcome>),
}

/// The numbers of one load. "Window" means requests that were due in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Requests answered well in the window.
    pub requests: u64,
    /// Requests in the window that failed, in any way.
    pub errors: u64,
    /// Errors of the window by class. `connect`: no connection could be made; `timeout`: no answer in time; `reset`: the
    /// connection (HTTP/2: or the stream) ended before the answer did; `protocol`: what came is not HTTP; `status` and
    /// `length`: the answer is not what [`crate::plan::Check`] wants; `grpc`: the call's status is not OK; `unsent`: still
    /// waiting for a free connection when the load was given up; `check`: a test of [`crate::plan::Request::checks`] does
    /// not hold; `capture`: what a later step needs is not there; `redirect`: a redirect that was to be followed and could not
    /// be, because it leads to another server or is one too many (see [`crate::plan::Plan::redirects`]).
    pub error_classes: std::collections::BTreeMap<String, u64>,
    /// Well answered requests whose answer *arrived* within the window: the divisor of CPU per request.
    pub completed_in_window: u64,
    /// Requests taken on over the whole load, warm-up included (those whose connection could not be made too): the
    /// indices in the trace ids run from 0 up to this.
    pub sent_total: u64,
    /// Requests answered over the whole load (any status), warm-up included.
    pub answered_total: u64,
    /// Of those, requests that carried the sampled flag.
    pub sampled_total: u64,
    /// Wanted rate, requests per second (open loop).
    pub target_rate: Option<f64>,
    /// Achieved rate in the window: answers (any status) that arrived in it, per second.
    pub rate: f64,
    /// Length of the window in seconds.
    pub duration_s: f64,
    /// Start and end of the window, `CLOCK_MONOTONIC` nanoseconds.
    pub window_start_ns: u64,
    /// See `window_start_ns`.
    pub window_end_ns: u64,
    /// Response time of well answered requests from the instant the request was *due*, µs. In a closed loop a request is
    /// due when its connection is free for it.
    pub latency_us: Quantiles,
    /// Response time of well answered requests from the instant the request was sent, µs.
    pub service_time_us: Quantiles,
    /// How late requests were sent after they were due, µs: the generator's own lateness and the wait for a free connection.
    pub send_lag_us: Quantiles,
    /// The same without requests that waited for a connection: the generator's own lateness, µs.
    #[serde(default)]
    pub lateness_us: Quantiles,
    /// Bytes sent and received while the window lasted, above TCP.
    pub bytes_sent: u64,
    /// See `bytes_sent`.
    pub bytes_received: u64,
    /// Status codes of the window.
    #[serde(deserialize_with = "text_keys")]
    pub statuses: std::collections::BTreeMap<u16, u64>,
    /// Of those, the ones after which a step of a script was sent again, as its `until` did not hold yet: how many there are depends
    /// on how long the work took.
    #[serde(default, deserialize_with = "text_keys", skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub asked_again: std::collections::BTreeMap<u16, u64>,
    /// gRPC: statuses of the window by name; `none` if the answer had none.
    #[serde(default)]
    pub grpc_statuses: std::collections::BTreeMap<String, u64>,
    /// Classes of response bodies in the window, most frequent first; at most 16, the rest summed in `other_bodies`. Without those of
    /// `asked_again`.
    pub bodies: Vec<BodyClass>,
    /// Responses whose body class is not among `bodies`.
    pub other_bodies: u64,
    /// Connections opened after the first ones, over the whole load.
    pub reconnects: u64,
    /// HTTP/2: requests that were sent again because the server said that it had not processed them (GOAWAY, REFUSED_STREAM),
    /// over the whole load. Their latency and service time count from the first time.
    #[serde(default)]
    pub resent: u64,
    /// Redirects that were followed, over the whole load. What follows one is a request of its own, due when the redirect came.
    #[serde(default)]
    pub redirected: u64,
    /// CPU time of the generator's threads over the window, µs per request in `completed_in_window`.
    pub cpu_us_per_request: f64,
    /// How busy the busiest thread of the generator was over the window, as a share of the window: the time in which it ran, or was
    /// ready and waited for a core that another had. At 1 it never rested.
    #[serde(default)]
    pub busiest_thread: f64,
    /// Requests due in the window that had no answer when the generator gave up waiting for stragglers. They are errors too
    /// (`timeout`, `unsent`), unless the load was interrupted.
    pub unanswered: u64,
    /// Requests due in the window while every connection was busy: they waited for the service, not for the generator, and
    /// that wait is in `latency_us` and `send_lag_us`. 0 in a closed loop.
    #[serde(default)]
    pub queued: u64,
    /// Whether the load was ended early; the window then ends at that instant.
    #[serde(default)]
    pub interrupted: bool,
    /// Every second of the whole load.
    pub seconds: Vec<Second>,
    /// By request, if the plan has several.
    #[serde(default)]
    pub named: Vec<Named>,
    /// Whole iterations of a sequence that has several requests, or one that is sent again and again.
    #[serde(default)]
    pub iterations: Option<Iterations>,
    /// Good answers by request and kind, for requests that have kinds.
    #[serde(default)]
    pub kinds: Vec<Kind>,
    /// How the tests of the plan's requests went.
    #[serde(default)]
    pub tests: Vec<Tested>,
    /// Little's law, as a check of the generator's own books.
    #[serde(default)]
    pub little: Little,
    /// Which part of the load this is, if several processes share it.
    #[serde(default)]
    pub shard: Option<Shard>,
    /// The processes that shared the load ([`crate::parts`]), by their numbers; empty: one process sent it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartSeen>,
    /// Reasons not to believe the load; empty if there are none.
    #[serde(rename = "doubts", default)]
    pub warnings: Vec<LoadWarning>,
}

/// A process that sent a part of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PartSeen {
    /// Which part, from 1.
    pub number: u32,
    /// Machine that it was on.
    pub machine: String,
    /// Requests that it sent over the whole load.
    pub sent: u64,
    /// How wrong its clock can have been read at the start of a turn, at most, µs.
    pub clock_bound_us: f64,
    /// How long after its instant it began a block that counts and in which it sent something, at most, µs; not more exact than
    /// `clock_bound_us`.
    pub late_us: f64,
}

/// The requests of one name that were due in the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Named {
    /// Name.
    pub name: String,
    /// Answered well.
    pub requests: u64,
    /// Failed, in any way.
    pub errors: u64,
    /// As in [`Outcome::latency_us`].
    pub latency_us: Quantiles,
    /// As in [`Outcome::service_time_us`].
    pub service_time_us: Quantiles,
    /// The same of those that carry the sampled flag, where only some do: what a perfect tracer would see of them.
    #[serde(default)]
    pub sampled_us: Quantiles,
    /// Second by second over the whole load, by the instant requests were due; seconds without any are left out.
    #[serde(default)]
    pub seconds: Vec<NamedSecond>,
}

/// The requests of one name in one second, or in several if the load is long: all names together have at most 7,200 rows.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct NamedSecond {
    /// Seconds since the start of the warm-up.
    pub second: u32,
    /// How many seconds it covers.
    pub seconds: u32,
    /// Answered well.
    pub requests: u64,
    /// Failed, in any way.
    pub errors: u64,
    /// Median, 99th percentile and maximum of the latency, µs.
    pub p50_us: f64,
    /// See `p50_us`.
    pub p99_us: f64,
    /// See `p50_us`.
    pub max_us: f64,
}

/// Iterations whose first request was due in the window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Iterations {
    /// All steps answered well.
    pub completed: u64,
    /// A step failed.
    pub failed: u64,
    /// The window ended between two of their steps. They would have been among the longer ones.
    pub unfinished: u64,
    /// From the instant the first request was due to the last answer, pauses between steps included; of the completed ones, µs.
    pub latency_us: Quantiles,
}

/// The good answers of one kind to the requests of one name that were due in the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Kind {
    /// Name of the request.
    pub request: String,
    /// Name of the kind; `other` where none of the plan's holds.
    pub name: String,
    /// How many there were.
    pub requests: u64,
    /// As in [`Outcome::latency_us`].
    pub latency_us: Quantiles,
    /// From the instant the iteration's first request was due to this answer, µs: what a user waited for it. Empty where an
    /// iteration is a request.
    pub iteration_us: Quantiles,
}

/// How a test went over the whole load.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tested {
    /// Name of the request.
    pub request: String,
    /// Name of the test.
    pub name: String,
    /// How often it held.
    pub passed: u64,
    /// How often it did not.
    pub failed: u64,
}

/// Little's law: the mean number of requests in flight is the rate of answers times their mean service time (Little, "A proof
/// for the queuing formula L = λW", Operations Research 9(3), 1961). Far apart, one of the three is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Little {
    /// Requests in flight, the mean of samples taken every 10 ms of the window. Of a load that shares its time, what is under way after the
    /// end of a turn is added to it, as those requests were due in the turn.
    pub in_flight: f64,
    /// Samples within the window and, of a load that shares its time, within its turns.
    pub samples: u64,
    /// Answers per second of the window times the mean service time of the good ones.
    pub expected: f64,
    /// How far apart the two may be: a tenth, what so few samples cannot tell apart, and what one wake-up sends.
    #[serde(default)]
    pub tolerance: f64,
    /// Whether they are no farther apart; `None` where the law says nothing: few samples, a window hardly longer than an answer
    /// takes, or requests without an answer.
    #[serde(default)]
    pub holds: Option<bool>,
}

/// Reads a map whose keys are numbers. Keys of JSON are text, and serde forgets how to read numbers from them inside a tagged
/// enum such as [`Event`].
fn text_keys<'de, D: serde::Deserializer<'de>>(from: D) -> Result<std::collections::BTreeMap<u16, u64>, D::Error> {
    std::collections::BTreeMap::<String, u64>::deserialize(from)?
        .into_iter()
        .map(|(key, value)| key.parse().map(|key| (key, value)).map_err(serde::de::Error::custom))
        .collect()
}

/// Quantiles of a histogram, in the unit that the field's name says.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// Samples.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// Responses that look the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyClass {
    /// Length in bytes.
    pub length: u64,
    /// Hash of the body (FNV-1a over 64-bit words, see [`crate::bodies`]), 16 hex digits.
    pub hash: String,
    /// How many.
    pub count: u64,
}

/// One second of the load, by the instant requests were due.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Second {
    /// Seconds since the start of the warm-up.
    pub second: u32,
    /// Index of the first request due in it. Requests are numbered in due order; steps of sequences, and what follows redirects, as
    /// they are sent, so that a few due at the end of a second may have a number of the next.
    pub first_index: u64,
    /// Requests sent (or given up before they could be).
    pub sent: u64,
    /// Requests answered (any status).
    pub answered: u64,
    /// Of those, requests that carried the sampled flag.
    pub sampled: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Median and 99th percentile of the latency, µs.
    pub p50_us: f64,
    /// See `p50_us`.
    pub p99_us: f64,
}
