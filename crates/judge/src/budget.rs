//! Budgets: the user's limits on the cost, held against the findings of every variant.

use indexmap::IndexMap;
use unladen_stats::estimate::Level;
use unladen_stats::verdict::{Budgeted, Outcome, budgets};
use unladen_study::metrics::{self, Compared, Limit, Metric, Unit, Worse};

use super::compare::Comparison;
use super::findings::{BudgetFinding, BudgetLine, Finding};
use super::{units, words};

/// A budget on the ledger, not on a comparison.
const SPAN_LOSS: &str = "span_loss";

/// Limits by metric, as the user wrote them.
pub type Budgets = IndexMap<String, String>;

/// A limit that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the budget `{limit}` of {metric} is not a limit: write {wanted}")]
pub struct BudgetError {
    metric: String,
    limit: String,
    wanted: String,
}

/// A number that only a probe knows; its budget is a percentage or a plain number.
const UNKNOWN: Metric =
    Metric { name: "", unit: Unit::Count, compared: Compared::Difference, worse: Worse::More, meaning: "" };

fn read(metric: &str, limit: &str) -> Result<Limit, BudgetError> {
    let known = metrics::find(metric).unwrap_or(&UNKNOWN);
    known.limit(limit).ok_or_else(|| BudgetError {
        metric: metric.to_owned(),
        limit: limit.to_owned(),
        wanted: known.limit_form(),
    })
}

/// The comparisons of one variant, and why it is not judged, if so.
pub(super) struct Judged<'a> {
    pub(super) variant: &'a str,
    pub(super) comparisons: &'a mut [Comparison],
    pub(super) refused: Option<String>,
    /// Lost spans, and spans wanted; `None` without spans.
    pub(super) spans: Option<(u64, u64)>,
}

/// A budget that can be decided: its line, variant and comparison by position, and its limit.
struct Decidable {
    line: usize,
    variant: usize,
    comparison: usize,
    limit: Limit,
}

/// Holds all budgets against all variants as one family, writes the outcomes into the findings and lists them.
pub(super) fn hold(
    limits: &Budgets,
    level: Level,
    variants: &mut [Judged<'_>],
) -> Result<Vec<BudgetLine>, BudgetError> {
    let mut lines = Vec::new();
    let mut decidable = Vec::new();
    for (key, text) in limits {
        let (metric, service) = metrics::of_service(key);
        let limit = read(metric, text)?;
        if metric == SPAN_LOSS {
            lines.extend(variants.iter().map(|judged| span_loss(judged, limit, text)));
            continue;
        }
        for (variant, judged) in variants.iter().enumerate() {
            let meant = |it: &Comparison| it.finding.metric == metric && it.finding.service.as_deref() == service;
            let words = match (&judged.refused, judged.comparisons.iter().position(meant)) {
                (Some(reason), _) => format!("no verdict on {metric}: {reason}"),
                (None, None) => unavailable(metric, service, judged.comparisons),
                (None, Some(comparison)) if judged.comparisons[comparison].finding.refused.is_some() => {
                    let reason = judged.comparisons[comparison].finding.refused.as_deref();
                    format!("no verdict on {metric}: {}", reason.unwrap_or_default())
                }
                (None, Some(comparison)) => {
                    decidable.push(Decidable { line: lines.len(), variant, comparison, limit });
                    String::new()
                }
            };
            lines.push(BudgetLine {
                variant: judged.variant.to_owned(),
                metric: metric.to_owned(),
                service: service.map(str::to_owned),
                limit: text.clone(),
                outcome: Outcome::Undecided,
                words,
            });
        }
    }
    let family: Vec<(Vec<f64>, f64)> =
        decidable.iter().map(|it| numbers(&variants[it.variant].comparisons[it.comparison], it.limit)).collect();
    let budgeted: Vec<Budgeted<'_>> = family.iter().map(|(values, limit)| Budgeted { values, limit: *limit }).collect();
    for ((it, outcome), (values, _)) in decidable.iter().zip(budgets(&budgeted, level)).zip(&family) {
        let finding = &mut variants[it.variant].comparisons[it.comparison].finding;
        let line = &mut lines[it.line];
        line.outcome = outcome;
        line.words = if values.is_empty() {
            format!("a relative limit needs a baseline above zero in {}", finding.title)
        } else {
            format!(
                "{}{} {}, the limit is {}",
                finding.title,
                of(finding),
                words::estimate(finding, it.limit.relative),
                line.limit
            )
        };
        finding.budget = Some(BudgetFinding {
            limit: line.limit.clone(),
            value: it.limit.value,
            relative: it.limit.relative,
            outcome,
        });
    }
    Ok(lines)
}

/// The share of lost spans: every one is counted, so there is no chance in it and the limit holds or does not.
fn span_loss(judged: &Judged<'_>, limit: Limit, text: &str) -> BudgetLine {
    let (outcome, words) = match (&judged.refused, judged.spans) {
        (Some(reason), _) => (Outcome::Undecided, format!("no verdict on {SPAN_LOSS}: {reason}")),
        (None, None) => (Outcome::Undecided, "no ledger: no spans arrived, and none are declared".to_owned()),
        (None, Some((lost, wanted))) => {
            // Of nothing, nothing can be lost.
            let share = if wanted == 0 { 0.0 } else { lost as f64 / wanted as f64 };
            let outcome = if share <= limit.value { Outcome::Pass } else { Outcome::Fail };
            let (lost, wanted) = (units::count(lost), units::count(wanted));
            (outcome, format!("{lost} of {wanted} spans were lost ({}), the limit is {text}", units::share(share)))
        }
    };
    BudgetLine {
        variant: judged.variant.to_owned(),
        metric: SPAN_LOSS.to_owned(),
        service: None,
        limit: text.to_owned(),
        outcome,
        words,
    }
}

fn of(finding: &Finding) -> String {
    finding.service.as_ref().map_or_else(String::new, |service| format!(" of {service}"))
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

fn unavailable(metric: &str, service: Option<&str>, comparisons: &[Comparison]) -> String {
    if let Some(service) = service
        && comparisons.iter().any(|it| it.finding.metric == metric)
    {
        return format!(
            "{metric} was not measured for {service} alone: only studies with several subjects have metrics per service"
        );
    }
    let likeness = |it: &&str| strsim::jaro_winkler(metric, it);
    let measured = comparisons.iter().map(|it| it.finding.metric.as_str());
    let nearest = measured.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest.filter(|nearest| metrics::find(metric).is_none() && likeness(nearest) > 0.85) {
        Some(nearest) => format!("{metric} was not measured; did you mean {nearest}?"),
        None => format!("{metric} was not measured in this study"),
    }
}
