//! Budgets: the user's limits on the cost, held against the findings of every variant.

use indexmap::IndexMap;
use unladen_stats::verdict::{Budgeted, Outcome, budgets};

use super::compare::{Comparison, LEVEL};
use super::findings::{BudgetFinding, BudgetLine};
use super::metrics::METRICS;
use super::words;

/// Limits by metric, as the user wrote them.
pub type Budgets = IndexMap<String, String>;

/// A limit that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// Not a number with a unit.
    #[error(
        "the budget `{limit}` of {metric} is not a limit: write a relative one such as `10%` or an absolute one such as {example}"
    )]
    Limit {
        /// Metric.
        metric: String,
        /// What was written.
        limit: String,
        /// What would do.
        example: &'static str,
    },
}

/// A limit as a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limit {
    /// A share of the baseline if `relative`, else in the metric's unit.
    value: f64,
    relative: bool,
}

/// Reads `10%`, `50MiB`, `100us`, `5`.
pub(super) fn parse(metric: &str, limit: &str) -> Result<Limit, BudgetError> {
    let unit = METRICS.iter().find(|known| known.name == metric).map_or("", |known| known.unit);
    let error = || BudgetError::Limit { metric: metric.to_owned(), limit: limit.to_owned(), example: example(unit) };
    let text = limit.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number: f64 = number.parse().map_err(|_| error())?;
    let limit = match (unit, suffix.trim()) {
        // Of a share, per cent are points: a baseline without errors has no relative limit.
        ("ratio", "%") => Limit { value: number / 100.0, relative: false },
        (_, "%") => Limit { value: number / 100.0, relative: true },
        (unit, suffix) => Limit { value: number * factor(unit, suffix).ok_or_else(error)?, relative: false },
    };
    if limit.value.is_finite() { Ok(limit) } else { Err(error()) }
}

/// What one `suffix` is in `unit`.
fn factor(unit: &str, suffix: &str) -> Option<f64> {
    const MIB: f64 = 1024.0 * 1024.0;
    let microseconds = match suffix {
        "ns" => Some(1e-3),
        "us" | "µs" => Some(1.0),
        "ms" => Some(1e3),
        "s" => Some(1e6),
        _ => None,
    };
    let bytes = match suffix {
        "B" => Some(1.0),
        "KiB" | "Ki" => Some(1024.0),
        "MiB" | "Mi" => Some(MIB),
        "GiB" | "Gi" => Some(1024.0 * MIB),
        "kB" | "KB" => Some(1e3),
        "MB" => Some(1e6),
        "GB" => Some(1e9),
        _ => None,
    };
    match unit {
        "us" => microseconds,
        "ms" => microseconds.map(|it| it / 1e3),
        "MiB" => bytes.map(|it| it / MIB),
        "B" => bytes.or_else(|| suffix.is_empty().then_some(1.0)),
        "1/s" => matches!(suffix, "" | "/s").then_some(1.0),
        "MiB/min" => matches!(suffix, "MiB/min").then_some(1.0),
        _ => suffix.is_empty().then_some(1.0),
    }
}

fn example(unit: &str) -> &'static str {
    match unit {
        "us" | "ms" => "`100us` or `5ms`",
        "MiB" | "B" => "`50MiB`",
        "1/s" => "`100/s`",
        "MiB/min" => "`1MiB/min`",
        "ratio" => "`0.001`",
        _ => "`5`",
    }
}

/// The comparisons of one variant, and why it is not judged, if so.
pub(super) struct Judged<'a> {
    pub(super) variant: &'a str,
    pub(super) comparisons: &'a mut [Comparison],
    pub(super) refused: Option<String>,
}

/// Holds all budgets against all variants as one family, writes the outcomes into the findings and lists them.
pub(super) fn hold(limits: &Budgets, variants: &mut [Judged<'_>]) -> Result<Vec<BudgetLine>, BudgetError> {
    let mut lines = Vec::new();
    // Position in `lines`, variant, comparison, limit: those that can be decided.
    let mut decidable: Vec<(usize, usize, usize, Limit)> = Vec::new();
    for (metric, text) in limits {
        let limit = parse(metric, text)?;
        for (index, judged) in variants.iter().enumerate() {
            let whole = |it: &Comparison| it.finding.metric == *metric && it.finding.service.is_none();
            let found = judged.comparisons.iter().position(whole);
            let words = match (&judged.refused, found) {
                (Some(reason), _) => reason.clone(),
                (None, None) => unavailable(metric, judged.comparisons),
                (None, Some(comparison)) => {
                    decidable.push((lines.len(), index, comparison, limit));
                    String::new()
                }
            };
            lines.push(BudgetLine {
                variant: judged.variant.to_owned(),
                metric: metric.clone(),
                limit: text.clone(),
                outcome: "undecided".to_owned(),
                words,
            });
        }
    }
    let family: Vec<(Vec<f64>, f64)> = decidable
        .iter()
        .map(|&(_, variant, comparison, limit)| numbers(&variants[variant].comparisons[comparison], limit))
        .collect();
    let budgeted: Vec<Budgeted<'_>> = family.iter().map(|(values, limit)| Budgeted { values, limit: *limit }).collect();
    let outcomes = budgets(&budgeted, LEVEL);
    for ((&(line, variant, comparison, limit), outcome), (values, _)) in decidable.iter().zip(outcomes).zip(&family) {
        let finding = &mut variants[variant].comparisons[comparison].finding;
        let line = &mut lines[line];
        line.outcome = name(outcome).to_owned();
        line.words = if values.is_empty() {
            format!("a relative limit needs a baseline above zero in {}", finding.title)
        } else {
            format!("{} {}, the limit is {}", finding.title, words::estimate(finding, limit.relative), line.limit)
        };
        finding.budget = Some(BudgetFinding {
            limit: line.limit.clone(),
            value: limit.value,
            relative: limit.relative,
            outcome: line.outcome.clone(),
        });
    }
    Ok(lines)
}

/// The paired values of a budget with its limit on their scale. No values: they have no ratio.
fn numbers(comparison: &Comparison, limit: Limit) -> (Vec<f64>, f64) {
    if !limit.relative {
        return (comparison.differences.clone(), limit.value);
    }
    let values = comparison.log_ratios.clone().unwrap_or_default();
    // "10 % less" and "10 % more" are not equally far from 1.
    let limit = comparison.sign * (comparison.sign * limit.value).ln_1p();
    (values, limit)
}

fn unavailable(metric: &str, comparisons: &[Comparison]) -> String {
    let measured = comparisons.iter().map(|it| it.finding.metric.as_str());
    let nearest = measured.max_by(|a, b| strsim::jaro_winkler(metric, a).total_cmp(&strsim::jaro_winkler(metric, b)));
    match nearest.filter(|nearest| strsim::jaro_winkler(metric, nearest) > 0.85) {
        Some(nearest) => format!("{metric} was not measured; did you mean {nearest}?"),
        None => format!("{metric} was not measured in this study"),
    }
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
        Outcome::Undecided => "undecided",
    }
}
