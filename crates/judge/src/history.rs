//! One study, run again and again: what two of its results say beside each other, and where a metric has changed over many.
//!
//! The rule is the same for both: a difference from the baseline has changed when the intervals of two results do not overlap.
//! Both intervals are of 95 %, so that chance alone parts them far less than once in twenty pairs (about once in 180 for equally
//! wide ones: Schenker and Gentleman 2001, "On Judging the Significance of Differences by Examining the Overlap Between Confidence
//! Intervals"). Baselines are shown, never compared: they have no interval, and machines differ.

use serde::Serialize;

use super::findings::{Finding, Findings, Place, Range, VariantFindings, VariantKind};

/// A result with the name that it is known by.
#[derive(Debug, Clone, Copy)]
pub struct Result<'a> {
    /// What names it, a folder mostly.
    pub id: &'a str,
    /// What was found.
    pub findings: &'a Findings,
}

/// What a metric did from one result to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The whole interval lies above that of before.
    Up,
    /// The whole interval lies below it.
    Down,
}

/// A difference with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// Estimate: a ratio if the trend is relative, else in the unit of the metric.
    pub value: f64,
    /// Low end.
    pub low: f64,
    /// High end.
    pub high: f64,
}

impl Difference {
    /// On the scale that decides; `None` without an interval, or when nothing is said of it.
    fn of(findings: &Findings, variant: &VariantFindings, finding: &Finding, relative: bool) -> Option<Self> {
        if findings.void.is_some() || variant.refused.is_some() || finding.refused.is_some() {
            return None;
        }
        finding.range(relative).map(|Range { value, low, high }| Self { value, low, high })
    }

    /// Whether it has changed since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<Change> {
        match () {
            () if self.low > before.high => Some(Change::Up),
            () if self.high < before.low => Some(Change::Down),
            () => None,
        }
    }
}

/// Which metric of which variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Key {
    /// Key of the variant.
    pub variant: String,
    /// Name of the metric.
    pub metric: String,
    /// Its service, if it is kept by service.
    pub service: Option<String>,
    /// Its operation, if it is kept by operation.
    pub operation: Option<String>,
}

impl Key {
    fn of(variant: &VariantFindings, finding: &Finding) -> Self {
        Self {
            variant: variant.name.clone(),
            metric: finding.metric.clone(),
            service: finding.service.clone(),
            operation: finding.operation.clone(),
        }
    }

    /// The finding of this key.
    #[must_use]
    pub fn find<'a>(&self, findings: &'a Findings) -> Option<(&'a VariantFindings, &'a Finding)> {
        let variant = findings.variants.iter().find(|it| it.name == self.variant)?;
        let same =
            |it: &&Finding| it.metric == self.metric && it.service == self.service && it.operation == self.operation;
        Some((variant, variant.metrics.iter().find(same)?))
    }
}

/// One metric of one variant over the results of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trend {
    /// Which.
    pub key: Key,
    /// Name of the variant for people, as in the last result that has it.
    pub label: String,
    /// Name of the metric for people.
    pub title: String,
    /// `sentence`, `table` or `detail`, as in the last result that has it.
    pub place: Place,
    /// Unit of the differences, if they are not relative.
    pub unit: String,
    /// Whether the differences are relative to the baseline.
    pub relative: bool,
    /// One per result that has the metric, in the order given.
    pub points: Vec<Point>,
}

/// One result in a trend.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// What names the result.
    pub id: String,
    /// Median of the baseline.
    pub baseline: f64,
    /// Median of the variant.
    pub value: f64,
    /// Difference; `None` without an interval, or when nothing is said of it.
    pub difference: Option<Difference>,
    /// What it did since the last result with a difference.
    pub change: Option<Change>,
}

/// The trends of a study over its results, which come in their order in time. The metrics come in the order of the last result
/// that has them, the placebo apart: it is the baseline once more.
#[must_use]
pub fn trends(results: &[Result<'_>]) -> Vec<Trend> {
    let mut trends: Vec<Trend> = Vec::new();
    for result in results.iter().rev() {
        for variant in result.findings.variants.iter().filter(|it| it.kind != VariantKind::Placebo) {
            for finding in &variant.metrics {
                let key = Key::of(variant, finding);
                if !trends.iter().any(|it| it.key == key) {
                    trends.push(trend(key, variant, finding, results));
                }
            }
        }
    }
    trends
}

fn trend(key: Key, variant: &VariantFindings, finding: &Finding, results: &[Result<'_>]) -> Trend {
    let found: Vec<_> = results.iter().filter_map(|it| Some((it, key.find(it.findings)?))).collect();
    // A ratio is comparable over machines; one result that has none takes all of them to differences.
    let relative = found.iter().all(|(_, (_, finding))| finding.relative);
    let mut before: Option<Difference> = None;
    let points = found.iter().map(|(result, (variant, finding))| {
        let difference = Difference::of(result.findings, variant, finding, relative);
        let change = difference.and_then(|now| now.since(&before?));
        before = difference.or(before);
        Point { id: result.id.to_owned(), baseline: finding.baseline, value: finding.value, difference, change }
    });
    let points = points.collect();
    Trend {
        key,
        label: variant.label.clone(),
        title: finding.title.clone(),
        place: finding.place,
        unit: finding.unit.clone(),
        relative,
        points,
    }
}

/// One metric of one variant in two results.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair<'a> {
    /// Which.
    pub key: Key,
    /// In the first result.
    pub before: Option<(&'a VariantFindings, &'a Finding)>,
    /// In the second.
    pub after: Option<(&'a VariantFindings, &'a Finding)>,
    /// Whether the two are compared as ratios.
    pub relative: bool,
    /// What it did.
    pub change: Option<Change>,
    /// Whether both have an interval, so that something can be said.
    pub comparable: bool,
}

/// Holds two results of a study beside each other, metric by metric, also what only one of them has.
#[must_use]
pub fn compare<'a>(before: &'a Findings, after: &'a Findings) -> Vec<Pair<'a>> {
    let mut keys: Vec<Key> = Vec::new();
    for variant in after.variants.iter().chain(&before.variants) {
        for key in variant.metrics.iter().map(|finding| Key::of(variant, finding)) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    let pair = |key: Key| {
        let sides = [before, after].map(|it| (it, key.find(it)));
        let relative = sides.iter().filter_map(|(_, found)| *found).all(|(_, finding)| finding.relative);
        let of = |(findings, found): (&Findings, Option<(&VariantFindings, &Finding)>)| {
            found.and_then(|(variant, finding)| Difference::of(findings, variant, finding, relative))
        };
        let differences = (of(sides[0]), of(sides[1]));
        let change = match differences {
            (Some(before), Some(after)) => after.since(&before),
            _ => None,
        };
        let comparable = differences.0.is_some() && differences.1.is_some();
        Pair { before: sides[0].1, after: sides[1].1, relative, change, comparable, key }
    };
    keys.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(low: f64, high: f64) -> Difference {
        Difference { value: f64::midpoint(low, high), low, high }
    }

    /// A result with one variant and one metric.
    fn findings(ratio: Option<(f64, f64)>, relative: bool) -> Findings {
        let finding = serde_json::json!({
            "metric": "cpu_per_request", "title": "CPU per request", "place": "sentence", "unit": "us", "service": null,
            "operation": null, "baseline": 100.0, "value": 110.0, "difference": 10.0, "difference_low": 8.0,
            "difference_high": 12.0, "ratio": ratio.map(|it| f64::midpoint(it.0, it.1)), "ratio_low": ratio.map(|it| it.0),
            "ratio_high": ratio.map(|it| it.1), "mean_ratio": null, "level": 0.95, "verdict": "costs", "words": "",
            "detectable": null, "rounds_needed": null, "margin": 0.01, "relative": relative, "budget": null, "rounds": [],
            "notices": [],
        });
        let variant = serde_json::json!({
            "name": "otel", "label": "OpenTelemetry", "kind": "variant", "refused": null, "valid_runs": 12, "runs": 12,
            "metrics": [finding], "ledger": null,
        });
        let findings = serde_json::json!({
            "schema": 1, "study": "shop", "question": "", "rounds": 12, "rounds_begun": 12, "void": null, "conclusions": [],
            "variants": [variant], "budgets": [], "notices": [], "comparisons": {"made": 1, "expected_by_chance": 0.0},
            "load": {"url": "", "pacing": "", "rate": null, "connections": 1, "requests": 0, "errors": 0, "window_s": 5.0,
                "fixed_work": false},
            "instrument": {"load_cpu_us_per_request": null, "sink_cpu_us_per_span": null, "send_lag_p99_us": null,
                "cores_apart": null},
            "host": null,
        });
        serde_json::from_value(findings).expect("findings")
    }

    fn changes(results: &[Findings]) -> Vec<Option<Change>> {
        let results: Vec<Result<'_>> = results.iter().map(|findings| Result { id: "x", findings }).collect();
        let [trend] = &trends(&results)[..] else { panic!("one metric") };
        trend.points.iter().map(|point| point.change).collect()
    }

    #[test]
    fn intervals_that_touch_have_not_changed() {
        let before = difference(1.0, 2.0);
        assert_eq!(difference(2.0, 3.0).since(&before), None);
        assert_eq!(difference(2.1, 3.0).since(&before), Some(Change::Up));
        assert_eq!(difference(0.0, 0.9).since(&before), Some(Change::Down));
        assert_eq!(difference(0.0, 5.0).since(&before), None);
    }

    #[test]
    fn a_change_is_marked_where_it_happens_and_once() {
        let results =
            [(0.08, 0.12), (0.09, 0.13), (0.20, 0.24), (0.21, 0.25), (0.05, 0.07)].map(|it| findings(Some(it), true));
        assert_eq!(changes(&results), [None, None, Some(Change::Up), None, Some(Change::Down)]);
    }

    #[test]
    fn results_that_say_nothing_are_passed_over() {
        let mut results = [(0.08, 0.12), (0.20, 0.24), (0.08, 0.12), (0.20, 0.24)].map(|it| findings(Some(it), true));
        results[1].void = Some("the generator was late".to_owned());
        results[2].variants[0].refused = Some("unequal work".to_owned());
        assert_eq!(changes(&results), [None, None, None, Some(Change::Up)]);
    }

    #[test]
    fn ratios_and_differences_are_not_mixed() {
        let results = [findings(Some((0.08, 0.12)), true), findings(None, false)];
        let named: Vec<_> = results.iter().map(|findings| Result { id: "x", findings }).collect();
        let [trend] = &trends(&named)[..] else { panic!("one metric") };
        assert!(!trend.relative);
        assert_eq!(trend.points[0].difference, Some(Difference { value: 10.0, low: 8.0, high: 12.0 }));
    }

    #[test]
    fn two_results_are_compared_also_where_one_lacks_a_metric() {
        let (before, mut after) = (findings(Some((0.08, 0.12)), true), findings(Some((0.13, 0.2)), true));
        let mut another = after.variants[0].metrics[0].clone();
        another.metric = "rss".to_owned();
        after.variants[0].metrics.push(another);
        let pairs = compare(&before, &after);
        assert_eq!(pairs.len(), 2);
        assert_eq!((pairs[0].change, pairs[0].comparable), (Some(Change::Up), true));
        assert_eq!((pairs[1].change, pairs[1].comparable, pairs[1].before.is_none()), (None, false, true));
    }
}
