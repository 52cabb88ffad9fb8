//! The requests of a script, and what to make of their answers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Whether requests are alternatives or steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// One of them each time, by weight.
    #[default]
    Weighted,
    /// All of them one after the other, each when the last is answered: an iteration. It ends early if a step fails.
    /// The first step is due when the pacing says, the others when they can be sent.
    Sequence,
}

/// One of several requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Name, by which it is counted.
    pub name: String,
    /// Share among alternatives, relative to the others'.
    #[serde(default = "Request::one")]
    pub weight: f64,
    /// HTTP method.
    #[serde(default = "Request::get")]
    pub method: String,
    /// Path and query; `None`: as in the plan's url. One that begins with a value (`{{location}}`) may be a whole URL: then its
    /// path and query are sent.
    #[serde(default)]
    pub path: Option<String>,
    /// Headers, besides the plan's.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Body.
    #[serde(default)]
    pub body: Option<String>,
    /// File that holds the body; it is read once, and sent as it is.
    #[serde(default)]
    pub body_file: Option<PathBuf>,
    /// What a good answer looks like; `None`: as the plan says.
    #[serde(default)]
    pub check: Option<Check>,
    /// What else must hold of an answer, counted each for itself.
    #[serde(default)]
    pub checks: Vec<NamedTest>,
    /// Kinds of good answers: the first whose test holds is an answer's kind, `other` if none does. Latencies are kept by kind.
    #[serde(default)]
    pub kinds: Vec<NamedTest>,
    /// What to take from an answer for later steps.
    #[serde(default)]
    pub captures: Vec<Capture>,
    /// Send it again and again until something holds of its answer.
    #[serde(default)]
    pub until: Option<Until>,
}

impl Request {
    /// `GET` of a path, under its name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            weight: Self::one(),
            method: Self::get(),
            path: None,
            headers: Vec::new(),
            body: None,
            body_file: None,
            check: None,
            checks: Vec::new(),
            kinds: Vec::new(),
            captures: Vec::new(),
            until: None,
        }
    }

    /// The default weight.
    fn one() -> f64 {
        1.0
    }

    /// The default method.
    fn get() -> String {
        "GET".to_owned()
    }
}

/// Something that may hold of an answer, with the name under which it is counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedTest {
    /// Name.
    pub name: String,
    /// What must hold.
    pub test: Test,
}

/// Something that may hold of an answer. Bodies are looked at up to 1 MiB, after decompression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Test {
    /// Its status.
    Status(u16),
    /// Its `grpc-status`, by name (`NOT_FOUND`) or as a number.
    GrpcStatus(String),
    /// Its body holds this text.
    BodyContains(String),
    /// Its body matches this regular expression.
    BodyMatches(String),
    /// Its body is JSON with this value at this pointer (RFC 6901).
    JsonEquals {
        /// For example `/items/0/id`; empty for the whole body.
        pointer: String,
        /// Value wanted.
        value: serde_json::Value,
    },
    /// It has this header with this value.
    HeaderEquals {
        /// Name; upper and lower case are the same.
        name: String,
        /// Value wanted.
        value: String,
    },
}

/// Something to take from an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Name; `{{name}}` stands for it in later steps.
    pub name: String,
    /// Where it is.
    pub from: Source,
}

/// Where a capture is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// At this pointer (RFC 6901) of a JSON body; texts without their quotes, everything else as JSON.
    Json(String),
    /// In this header.
    Header(String),
    /// What the first group of this regular expression (or all of it, if it has none) matches in the body.
    Regex(String),
}

/// When a step that is sent again and again is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// What must hold of the answer.
    pub test: Test,
    /// Seconds from an answer to the next try.
    #[serde(default)]
    pub pause_s: f64,
    /// Tries at most; the last one fails (`check`) if it does not hold then.
    pub most: u32,
}

/// What stands for a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Value {
    /// Number of the iteration, counted from here.
    Counter {
        /// In iteration 0.
        #[serde(default)]
        from: i64,
    },
    /// Any whole number of a range, both ends included.
    Integer {
        /// Least.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// Letters and digits.
    Text {
        /// How many.
        length: u32,
    },
    /// A random UUID (version 4, RFC 9562).
    Uuid,
    /// A column of a CSV file with a header line (RFC 4180): row by row, from the top again after the last.
    Csv {
        /// File, read once.
        file: PathBuf,
        /// Name of the column.
        column: String,
        /// Any row instead of the next.
        #[serde(default)]
        random: bool,
    },
}

/// What a good answer looks like.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Status wanted; `None`: any below 400.
    pub status: Option<u16>,
    /// Exact body length in bytes, if it matters.
    pub length: Option<u64>,
}
