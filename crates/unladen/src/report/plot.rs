//! Geometry of the forest plots: where the intervals of the findings stand on an axis. Draws nothing; the template does.

use serde::Serialize;

use super::view;
use crate::judge::findings::{Finding, Findings, RoundValue, VariantFindings};
use crate::judge::units::{self, Scale};

/// Width of the axis: places are per cent of it.
const WIDTH: f64 = 100.0;
/// Height of a row, pixels.
const ROW: f64 = 26.0;

/// One metric, all variants, one axis.
#[derive(Debug, Serialize)]
pub(super) struct Panel {
    title: String,
    /// What the axis shows: `relative to the baseline`, or the unit.
    axis: String,
    height: f64,
    zero: f64,
    /// The noise floor: where the placebo's interval reaches, to both sides.
    band: Option<Band>,
    ticks: Vec<Tick>,
    rows: Vec<Mark>,
}

#[derive(Debug, Serialize)]
struct Band {
    x: f64,
    width: f64,
}

#[derive(Debug, Serialize)]
struct Tick {
    x: f64,
    label: String,
}

#[derive(Debug, Serialize)]
struct Mark {
    label: String,
    y: f64,
    low: f64,
    middle: f64,
    high: f64,
    /// One per round; those far out stand at the edge.
    dots: Vec<f64>,
    budget: Option<f64>,
    budget_text: String,
    verdict: &'static str,
    class: String,
    text: String,
}

/// The panels of a study: the prominent metrics of the whole subject that have an interval and any spread.
pub(super) fn panels(findings: &Findings) -> Vec<Panel> {
    let mut metrics: Vec<&str> = Vec::new();
    for finding in findings.variants.iter().flat_map(view::prominent) {
        if finding.service.is_none() && finding.operation.is_none() && !metrics.contains(&finding.metric.as_str()) {
            metrics.push(&finding.metric);
        }
    }
    metrics.into_iter().filter_map(|metric| panel(findings, metric)).collect()
}

fn panel(findings: &Findings, metric: &str) -> Option<Panel> {
    let of = |variant: &'_ VariantFindings| {
        let finding = variant.metrics.iter().find(|it| it.metric == metric && it.service.is_none())?.clone();
        finding.difference.is_some().then(|| (variant.clone(), finding))
    };
    let all: Vec<(VariantFindings, Finding)> = findings.variants.iter().filter_map(of).collect();
    // One axis needs one scale: relative only if all of them are.
    let relative = all.iter().all(|(_, finding)| finding.relative);
    let interval = |finding: &Finding| -> Option<[f64; 3]> {
        if relative {
            Some([finding.ratio_low?, finding.ratio?, finding.ratio_high?])
        } else {
            Some([finding.difference_low?, finding.difference?, finding.difference_high?])
        }
    };
    let limit = |finding: &Finding| finding.budget.as_ref().filter(|it| it.relative == relative).map(|it| it.value);
    let points = all.iter().flat_map(|(_, finding)| interval(finding).into_iter().flatten().chain(limit(finding)));
    let (least, most) = points.fold((0.0_f64, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)));
    if most <= least {
        return None;
    }
    let dots = |finding: &Finding| -> Vec<f64> {
        let offset = |it: &RoundValue| if relative { it.value / it.baseline - 1.0 } else { it.value - it.baseline };
        finding.rounds.iter().map(offset).filter(|it| it.is_finite()).collect()
    };
    let axis = Axis::of(least, most, all.iter().flat_map(|(_, finding)| dots(finding)));
    let rows = all.iter().zip(0_u8..).filter_map(|((variant, finding), index)| {
        let [low, middle, high] = interval(finding)?;
        let row = view::row(variant, finding);
        let label = if variant.kind == "placebo" { "noise floor".to_owned() } else { view::clean(&variant.label) };
        Some(Mark {
            label,
            y: ROW * (f64::from(index) + 0.5),
            low: axis.at(low),
            middle: axis.at(middle),
            high: axis.at(high),
            dots: dots(finding).into_iter().map(|it| axis.at(it)).collect(),
            budget: limit(finding).map(|it| axis.at(it)),
            budget_text: finding.budget.as_ref().map(|it| it.limit.clone()).unwrap_or_default(),
            verdict: row.verdict,
            class: row.verdict.replace(' ', "-"),
            text: if relative { row.ratio } else { format!("{} {}", row.difference, Scale::of_values(finding).unit()) },
        })
    });
    let rows: Vec<Mark> = rows.collect();
    let (_, first) = all.first()?;
    let placebo = all.iter().find(|(variant, _)| variant.kind == "placebo").and_then(|(_, finding)| interval(finding));
    let band = placebo.map(|[low, _, high]| {
        let reach = low.abs().max(high.abs());
        Band { x: axis.at(-reach), width: axis.at(reach) - axis.at(-reach) }
    });
    Some(Panel {
        title: first.title.clone(),
        axis: match axis.scale(relative, &first.unit).unit() {
            unit if relative => format!("relative to the baseline, {unit}"),
            "" => "difference from the baseline".to_owned(),
            unit => format!("difference from the baseline, {unit}"),
        },
        height: ROW * rows.len() as f64,
        zero: axis.at(0.0),
        band,
        ticks: axis.ticks(relative, &first.unit),
        rows,
    })
}

/// From numbers to places.
struct Axis {
    least: f64,
    most: f64,
}

impl Axis {
    /// Holds everything from `least` to `most` and those of the `dots` that are not far out, with some air.
    fn of(least: f64, most: f64, dots: impl Iterator<Item = f64>) -> Self {
        let far = (most - least) * 0.6;
        let near = dots.filter(|dot| *dot >= least - far && *dot <= most + far);
        let (least, most) = near.fold((least, most), |(least, most), dot| (least.min(dot), most.max(dot)));
        let air = (most - least) * 0.05;
        Self { least: least - air, most: most + air }
    }

    /// Where a number stands; what lies outside is drawn at the edge.
    fn at(&self, number: f64) -> f64 {
        let place = (number - self.least) / (self.most - self.least) * WIDTH;
        (place.clamp(0.0, WIDTH) * 100.0).round() / 100.0
    }

    fn scale(&self, relative: bool, unit: &str) -> Scale {
        let magnitude = self.least.abs().max(self.most.abs());
        if relative { units::percent(magnitude, None) } else { Scale::of(unit, magnitude, None) }
    }

    /// Two to four round numbers, without their unit, which the title has.
    fn ticks(&self, relative: bool, unit: &str) -> Vec<Tick> {
        let rough = (self.most - self.least) / 4.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|it| it * power).find(|it| *it >= rough).unwrap_or(rough);
        let scale = self.scale(relative, unit);
        let first = (self.least / step).ceil();
        let count = ((self.most / step).floor() - first) as i32;
        let number = |index: i32| (first + f64::from(index)) * step;
        (0..=count.clamp(0, 12))
            .map(|index| Tick { x: self.at(number(index)), label: scale.tick(number(index)) })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (least, most, labels) in [
            (0.0, 0.2, &["0", "+10", "+20"][..]),
            (-0.012, 0.03, &["0", "+2"]),
            (-0.9, 0.0, &["−75", "−50", "−25", "0"]),
            (-0.0004, 0.0003, &["−0.04", "−0.02", "0", "+0.02"]),
        ] {
            let ticks = Axis::of(least, most, std::iter::empty()).ticks(true, "us");
            assert_eq!(ticks.iter().map(|tick| tick.label.as_str()).collect::<Vec<_>>(), labels);
        }
    }

    #[test]
    fn places_stay_on_the_axis() {
        let axis = Axis::of(-1.0, 1.0, [1.5, 40.0].into_iter());
        assert!(axis.at(1.5) < WIDTH && axis.at(1.5) > axis.at(1.0));
        assert!(axis.at(99.0) <= WIDTH && axis.at(-99.0) >= 0.0);
    }
}
