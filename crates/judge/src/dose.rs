//! Cost over dose: a straight line through the cells of a matrix, "so many µs per request, and so many more per span".
//!
//! In every round the increments of a variant over its baseline are fitted by least squares over the dose; slope and intercept
//! are then numbers of that round like any other metric, and get their Hodges-Lehmann estimate and exact interval over the
//! rounds. The scatter of the points about one line is not the noise that matters; that of whole rounds is.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use unladen_stats::estimate::{Level, hodges_lehmann};
use unladen_study::matrix::{Cell, labelled};

use super::compare::{compare, level};
use super::evidence::{Evidence, VariantRuns};
use super::findings::{DoseFindings, DosePoint, Range};
use super::metrics::METRICS;
use super::units::{self, Scale};

/// Metrics of which a dose is told, and how the amount per unit of dose is said.
const SHOWN_METRICS: [&str; 2] = ["cpu_per_request", "rss"];
/// Fewest doses that make a line worth drawing: two always fit.
const MIN_POINTS: usize = 3;
/// A point that is off the line by less than this share of what the line rises is let pass.
const BEND: f64 = 0.05;

/// What the variants on one line have in common: their key, and the values of the other keys of the matrix.
type Group = (String, Vec<(String, String)>);

/// Every line that the matrix allows: per variant and numeric key, at each combination of the other keys.
pub(super) fn doses(evidence: &Evidence<'_>, refused: impl Fn(&str) -> bool) -> Vec<DoseFindings> {
    let study = &evidence.folder.study;
    let mut found = Vec::new();
    for axis in study.matrix.keys() {
        let mut groups: IndexMap<Group, Vec<(f64, &VariantRuns<'_>)>> = IndexMap::new();
        for variant in evidence.variants.iter().filter(|variant| !refused(&variant.name)) {
            let Some(dose) = variant.cell.get(axis).and_then(|value| number(value)) else { continue };
            let others =
                variant.cell.iter().filter(|(key, _)| *key != axis).map(|(k, v)| (k.clone(), v.clone())).collect();
            groups.entry((variant.key().to_owned(), others)).or_default().push((dose, variant));
        }
        for ((key, others), variants) in groups {
            let declared = study.variants.get(&key).and_then(|it| it.label.clone());
            let label = labelled(&declared.unwrap_or_else(|| key.clone()), &others.into_iter().collect::<Cell>());
            found.extend(
                SHOWN_METRICS.iter().filter_map(|metric| dose(evidence, axis, &key, &label, metric, &variants)),
            );
        }
    }
    found
}

fn dose(
    evidence: &Evidence<'_>,
    axis: &str,
    variant: &str,
    label: &str,
    metric: &str,
    variants: &[(f64, &VariantRuns<'_>)],
) -> Option<DoseFindings> {
    let study = &evidence.folder.study;
    let metric = METRICS.iter().find(|known| known.name == metric)?;
    let mut compared: Vec<_> = variants
        .iter()
        .filter_map(|(dose, runs)| {
            Some((*dose, compare(study, metric, None, evidence.baseline_of(runs), runs)?.finding))
        })
        .collect();
    if compared.len() < MIN_POINTS {
        return None;
    }
    compared.sort_by(|a, b| a.0.total_cmp(&b.0));
    let in_all = |round: u32| compared.iter().all(|(_, finding)| finding.rounds.iter().any(|it| it.round == round));
    let rounds: BTreeSet<u32> = compared.iter().flat_map(|(_, it)| it.rounds.iter().map(|it| it.round)).collect();
    let fits: Vec<Fit> = rounds
        .into_iter()
        .filter(|round| in_all(*round))
        .filter_map(|round| {
            let points = compared
                .iter()
                .filter_map(|(dose, it)| Some((*dose, it.rounds.iter().find(|it| it.round == round)?.difference)));
            Fit::of(points.collect())
        })
        .collect();
    let level = level(study);
    let fixed = range(fits.iter().map(|fit| fit.at(0.0)), level);
    let per_unit = range(fits.iter().map(|fit| fit.slope), level);
    let points: Vec<DosePoint> = compared
        .iter()
        .map(|(dose, finding)| DosePoint {
            dose: *dose,
            baseline: finding.baseline,
            difference: finding.difference,
            difference_low: finding.difference_low,
            difference_high: finding.difference_high,
            ratio: finding.range(true),
            fitted: range(fits.iter().map(|fit| fit.at(*dose)), level),
        })
        .collect();
    let off_the_line = off_the_line(&fits, &points);
    let mut found = DoseFindings {
        axis: axis.to_owned(),
        variant: variant.to_owned(),
        label: label.to_owned(),
        metric: metric.name.to_string(),
        title: metric.title.to_string(),
        unit: metric.unit.to_owned(),
        fixed,
        per_unit,
        points,
        off_the_line,
        words: String::new(),
    };
    found.words = words(&found);
    Some(found)
}

/// `OpenTelemetry, CPU per request: 4.1 µs [2.0, 6.3] fixed, and 5.2 µs [4.9, 5.6] for each spans.`
fn words(found: &DoseFindings) -> String {
    let (Some(fixed), Some(per_unit)) = (found.fixed, found.per_unit) else {
        return format!("{}, {} over {}: too few rounds for a line.", found.label, found.title, found.axis);
    };
    let text = |range: Range| Scale::of_range(&found.unit, range).signed_range(range);
    let bent = match &found.off_the_line[..] {
        [] => String::new(),
        doses => {
            let doses = super::words::list(doses.iter().map(|dose| units::chosen("", *dose)));
            format!("; but a straight line is too simple: it misses the cost at {doses}")
        }
    };
    format!(
        "{}, {}: {} fixed, and {} per unit of {}{bent}.",
        found.label,
        found.title,
        text(fixed),
        text(per_unit),
        found.axis
    )
}

/// The straight line of one round.
#[derive(Debug, Clone, PartialEq)]
struct Fit {
    intercept: f64,
    slope: f64,
    /// What is found beyond the line, point by point.
    residuals: Vec<f64>,
}

impl Fit {
    /// Least squares; `None` if all doses are the same.
    fn of(points: Vec<(f64, f64)>) -> Option<Self> {
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        if spread <= 0.0 {
            return None;
        }
        let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
        let intercept = y - slope * x;
        let residuals = points.iter().map(|(dose, found)| found - intercept - slope * dose).collect();
        Some(Self { intercept, slope, residuals })
    }

    fn at(&self, dose: f64) -> f64 {
        self.intercept + self.slope * dose
    }
}

/// Doses whose points are surely off the line, by more than a share of what it rises: a bend that matters, not one that a
/// thousand rounds would show in any cost.
fn off_the_line(fits: &[Fit], points: &[DosePoint]) -> Vec<f64> {
    let fitted = |point: Option<&DosePoint>| point.and_then(|it| it.fitted).map(|it| it.value);
    let Some(rise) = fitted(points.last()).zip(fitted(points.first())).map(|(last, first)| (last - first).abs()) else {
        return Vec::new();
    };
    let is_off = |index: usize| {
        let residuals = fits.iter().filter_map(|fit| fit.residuals.get(index).copied());
        range(residuals, Level::P99).is_some_and(|it| it.low > BEND * rise || it.high < -BEND * rise)
    };
    points.iter().enumerate().filter(|(index, _)| is_off(*index)).map(|(_, point)| point.dose).collect()
}

fn range(values: impl Iterator<Item = f64>, level: Level) -> Option<Range> {
    Range::of(&hodges_lehmann(&values.collect::<Vec<_>>(), level).ok()?)
}

/// A dose: `5`, `0.1`, `10%`.
fn number(text: &str) -> Option<f64> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    Some(number).filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_points_on_it_is_exact() {
        let fit = Fit::of(vec![(1.0, 7.0), (2.0, 9.0), (5.0, 15.0), (20.0, 45.0)]).expect("four doses");
        assert!((fit.at(0.0) - 5.0).abs() < 1e-9 && (fit.slope - 2.0).abs() < 1e-9, "{fit:?}");
        assert!(fit.residuals.iter().all(|it| it.abs() < 1e-9), "{fit:?}");
        assert_eq!(Fit::of(vec![(1.0, 7.0), (1.0, 9.0)]), None);
        assert_eq!(Fit::of(Vec::new()), None);
    }

    #[test]
    fn a_bend_is_seen_if_it_is_sure_and_large() {
        let off = |bend: f64, rounds: usize| {
            let doses: [f64; 5] = [0.0, 1.0, 2.0, 3.0, 4.0];
            let of = |round: usize| {
                // A kink at 2, and a little noise.
                let noise = |dose: f64| ((round as f64 * 7.0 + dose * 3.0) % 5.0 - 2.0) * 0.05;
                Fit::of(doses.map(|dose| (dose, 10.0 * dose + bend * (dose - 2.0).abs() + noise(dose))).to_vec())
            };
            let fits: Vec<Fit> = (0..rounds).filter_map(of).collect();
            let point = |dose| DosePoint {
                dose,
                baseline: 1.0,
                difference: None,
                difference_low: None,
                difference_high: None,
                ratio: None,
                fitted: range(fits.iter().map(|fit| fit.at(dose)), Level::P95),
            };
            off_the_line(&fits, &doses.map(point))
        };
        assert_eq!(off(6.0, 8), [0.0, 2.0, 4.0]);
        assert!(off(1.0, 8).is_empty(), "less than a twentieth of the rise");
        assert!(off(6.0, 7).is_empty(), "7 rounds cannot be sure at 99 %");
    }

    #[test]
    fn doses_are_numbers_or_shares() {
        assert_eq!(
            (number("5"), number("10%"), number("0.5"), number("http")),
            (Some(5.0), Some(0.1), Some(0.5), None)
        );
    }
}
