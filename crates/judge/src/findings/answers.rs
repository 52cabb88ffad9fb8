//! Findings on the answers of a script's requests, by request and kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Range;

/// How long the answers of one sort took: those to one request, those of one kind to it, or whole iterations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerFindings {
    /// Name of the request; `null`: whole iterations.
    pub request: Option<String>,
    /// Kind of its answers, `other` where no kind of the study's holds; `null`: all of them.
    pub kind: Option<String>,
    /// Where times count from: `request` (it was due) or `iteration` (the first request of its iteration was due).
    #[schemars(with = "String")]
    pub from: TimesFrom,
    /// In the runs of the baseline; `null`: it has no such answers.
    pub baseline: Option<AnswerNumbers>,
    /// In the runs of the variant; `null`: it has no such answers.
    pub value: Option<AnswerNumbers>,
}

/// Where times count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimesFrom {
    /// The request was due.
    Request,
    /// The first request of its iteration was due.
    Iteration,
}

/// Numbers of answers of one sort: medians over the valid runs, between the lowest and the highest run. A quantile beyond which a
/// typical run has fewer than ten answers is `null`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerNumbers {
    /// Good answers (or iterations that came to their end) per run.
    pub answers: Range,
    /// Requests (or iterations) that failed, per run; `null` of a kind, which only good answers have.
    pub failed: Option<Range>,
    /// Iterations per run that were under way when the window ended, whose length is not known; `null` of requests.
    pub unfinished: Option<Range>,
    /// Median, µs.
    pub p50_us: Option<Range>,
    /// 90th percentile, µs.
    pub p90_us: Option<Range>,
    /// 95th percentile, µs.
    pub p95_us: Option<Range>,
    /// 99th percentile, µs.
    pub p99_us: Option<Range>,
}

impl AnswerFindings {
    /// Its name as it stands in tables: `result: sold out`, `whole iterations`.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.request, &self.kind) {
            (Some(request), Some(kind)) => format!("{request}: {kind}"),
            (Some(request), None) => request.clone(),
            (None, _) => "whole iterations".to_owned(),
        }
    }
}
