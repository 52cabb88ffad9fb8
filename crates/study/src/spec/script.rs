//! Several requests instead of one: a mix by weight or a sequence, with values, captures and checks.
//!
//! The same keys are read by `unladen load --script FILE`. Every text may hold `{{name}}`, which stands for a value or for
//! something taken from an earlier answer.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unladen_journal::units::Time;

use super::load::Check;

/// Several requests. Paths, header values and bodies may hold `{{name}}`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Whether the requests are alternatives or steps.
    #[serde(default)]
    pub order: Order,
    /// What stands for `{{name}}`. A value is the same in all steps of an iteration, and in every run of the study.
    #[serde(default)]
    pub values: IndexMap<String, Value>,
    /// The requests.
    pub requests: Vec<Request>,
}

/// Whether requests are alternatives or steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// One of them each time, by weight.
    #[default]
    Weighted,
    /// All of them one after the other, each when the last is answered: an iteration.
    Sequence,
}

/// What stands for a name: exactly one of `counter`, `integer`, `text`, `uuid` and `csv`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Value {
    /// Number of the iteration, counted from this one.
    pub counter: Option<i64>,
    /// Any whole number from the first to the second, both included: `[1, 6]`.
    pub integer: Option<Vec<i64>>,
    /// Random text of this many letters and digits.
    pub text: Option<u32>,
    /// A random UUID.
    pub uuid: bool,
    /// CSV file with a header line; row by row, from the top again after the last. Relative to the study file.
    pub csv: Option<String>,
    /// Name of the column of `csv`.
    pub column: Option<String>,
    /// Any row of `csv` instead of the next.
    pub random: bool,
}

/// One of several requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Name, by which it is counted.
    pub name: String,
    /// Share among alternatives, relative to the others'.
    #[serde(default = "one")]
    pub weight: f64,
    /// HTTP method.
    #[serde(default = "get")]
    pub method: String,
    /// Path and query. Absent: as in the load's `url`.
    #[serde(default)]
    pub path: Option<String>,
    /// Headers, besides the load's.
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    /// Body.
    #[serde(default)]
    pub body: Option<String>,
    /// File that holds the body, sent as it is; relative to the study file.
    #[serde(default)]
    pub body_file: Option<String>,
    /// What a good answer looks like. Absent: as the load says.
    #[serde(default)]
    pub check: Option<Check>,
    /// What else must hold of an answer, by name; counted each for itself.
    #[serde(default)]
    pub expect: IndexMap<String, Condition>,
    /// Kinds of good answers, by name: `{reserved: {json: /state, equals: RESERVED}, …}`. The first that holds is an answer's kind, `other`
    /// if none does. They are counted and timed apart; of a sequence the time since its first request, too.
    #[serde(default)]
    pub kinds: IndexMap<String, Condition>,
    /// What to take from an answer for later steps, by name.
    #[serde(default)]
    pub capture: IndexMap<String, Source>,
    /// Repeat the request until its answer meets a condition.
    #[serde(default)]
    pub until: Option<Until>,
    /// Name of its span, such as `GET /reservation/{id}`: compares latency from sampled spans with latency seen by the load
    /// generator.
    #[serde(default)]
    pub span: Option<String>,
}

/// Something that may hold of an answer: exactly one of `status`, `body_contains`, `body_matches`, `json` and `header`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// Its status.
    pub status: Option<u16>,
    /// Its body holds this text.
    pub body_contains: Option<String>,
    /// Its body matches this regular expression.
    pub body_matches: Option<String>,
    /// Its body is JSON, and at this pointer (RFC 6901, `/items/0/id`) is the value of `equals`.
    pub json: Option<String>,
    /// It has this header, and its value is that of `equals`.
    pub header: Option<String>,
    /// Value that `json` or `header` wants.
    pub equals: Option<serde_json::Value>,
}

/// Something to take from an answer: exactly one of `json`, `header` and `regex`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Source {
    /// At this pointer (RFC 6901) of a JSON body.
    pub json: Option<String>,
    /// In this header.
    pub header: Option<String>,
    /// What the first group of this regular expression matches in the body, or all of it without a group.
    pub regex: Option<String>,
}

/// When a step that is sent again and again is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Condition on the answer.
    pub holds: Condition,
    /// Pause between an answer and the next try.
    #[serde(default)]
    pub pause: Time,
    /// Maximum of tries; the last one fails if the condition is not met.
    pub most: u32,
}

/// For serde.
fn one() -> f64 {
    1.0
}

/// For serde.
fn get() -> String {
    "GET".to_owned()
}
