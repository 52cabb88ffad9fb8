//! Geometry of the forest plots: where the intervals of the findings stand on an axis. Draws nothing; the template does.

use serde::Serialize;
use unladen_judge::findings::{Finding, Findings, RoundValue, VariantFindings, VariantKind};
use unladen_judge::units::{self, Scale};

use super::view;

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

impl Panel {
    /// Of its rows, pixels.
    pub(super) fn height(&self) -> f64 {
        self.height
    }

    /// With labels of at most so many characters.
    pub(super) fn with_short_labels(mut self, characters: usize) -> Self {
        self.rows.iter_mut().for_each(|row| row.label = view::shortened(&row.label, characters));
        self
    }
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
    /// Low end, estimate, high end; none with too few rounds.
    interval: Option<[f64; 3]>,
    /// One per round; those far out stand at the edge.
    dots: Vec<f64>,
    budget: Option<f64>,
    budget_text: String,
    verdict: &'static str,
    class: String,
    text: String,
}

/// The same as numbers in the printed unit, for a library that has axes of its own.
#[derive(Debug, Serialize)]
pub(super) struct Forest {
    pub(super) title: String,
    pub(super) axis: String,
    unit: &'static str,
    pub(super) rows: Vec<ForestRow>,
    /// The noise floor.
    band: Option<[f64; 2]>,
    /// Between which numbers the axis reaches.
    reach: [f64; 2],
}

#[derive(Debug, Serialize)]
pub(super) struct ForestRow {
    #[serde(rename = "arm")]
    variant: String,
    interval: Option<[f64; 3]>,
    /// Round and number.
    dots: Vec<(u32, f64)>,
    budget: Option<f64>,
    budget_text: String,
    verdict: &'static str,
    text: String,
}

/// The forest plots of a study, one per prominent metric.
pub(super) fn forests(findings: &Findings) -> Vec<Forest> {
    shown_metrics(findings).into_iter().filter_map(|metric| forest(findings, metric)).collect()
}

fn forest(findings: &Findings, metric: &str) -> Option<Forest> {
    let shown = Shown::of(findings, metric);
    let axis = shown.axis()?;
    let (_, first) = shown.findings.first()?;
    let scale = axis.scale(shown.relative, &first.unit);
    let short = |number: f64| format!("{:.5e}", scale.scaled(number)).parse().unwrap_or(0.0);
    let row = |(variant, finding): &(&VariantFindings, &Finding)| {
        let row = view::row(variant, finding);
        ForestRow {
            variant: variant.name.clone(),
            interval: shown.interval(finding).map(|it| it.map(short)),
            dots: finding.rounds.iter().filter_map(|it| Some((it.round, short(shown.dot(it)?)))).collect(),
            budget: shown.limit(finding).map(short),
            budget_text: finding.budget.as_ref().map(|it| it.limit.clone()).unwrap_or_default(),
            verdict: row.verdict.words(),
            text: if shown.relative {
                row.ratio
            } else {
                format!("{} {}", row.difference, Scale::of_values(finding).unit())
            },
        }
    };
    Some(Forest {
        title: first.title.clone(),
        axis: shown.title(&axis, &first.unit),
        unit: scale.unit(),
        rows: shown.findings.iter().map(row).collect(),
        band: shown.noise().map(|reach| [short(-reach), short(reach)]),
        reach: [short(axis.least), short(axis.most)],
    })
}

/// The panels of a study: the prominent metrics of the whole subject that differ at all.
pub(super) fn panels(findings: &Findings) -> Vec<Panel> {
    shown_metrics(findings).into_iter().filter_map(|metric| panel(findings, metric)).collect()
}

/// The metrics that are drawn.
fn shown_metrics(findings: &Findings) -> Vec<&str> {
    let mut metrics: Vec<&str> = Vec::new();
    for finding in findings.variants.iter().flat_map(view::prominent) {
        if finding.is_of_whole() && !metrics.contains(&finding.metric.as_str()) {
            metrics.push(&finding.metric);
        }
    }
    metrics
}

/// The findings on one metric, on one scale: relative only if all of them are.
struct Shown<'a> {
    findings: Vec<(&'a VariantFindings, &'a Finding)>,
    relative: bool,
}

impl<'a> Shown<'a> {
    fn of(findings: &'a Findings, metric: &str) -> Self {
        let of = |variant: &'a VariantFindings| Some((variant, variant.finding(metric)?));
        let findings: Vec<_> = findings.variants.iter().filter_map(of).collect();
        let relative = findings.iter().all(|(_, finding)| finding.relative);
        Self { findings, relative }
    }

    fn interval(&self, finding: &Finding) -> Option<[f64; 3]> {
        finding.range(self.relative).map(|range| [range.low, range.value, range.high])
    }

    fn dot(&self, round: &RoundValue) -> Option<f64> {
        if self.relative { round.ratio } else { Some(round.difference) }
    }

    fn dots(&self, finding: &Finding) -> Vec<f64> {
        finding.rounds.iter().filter_map(|round| self.dot(round)).collect()
    }

    /// How far the placebo's interval reaches from 0: the noise floor.
    fn noise(&self) -> Option<f64> {
        let (_, placebo) = self.findings.iter().find(|(variant, _)| variant.kind == VariantKind::Placebo)?;
        let [low, _, high] = self.interval(placebo)?;
        Some(low.abs().max(high.abs()))
    }

    /// What the axis shows.
    fn title(&self, axis: &Axis, unit: &str) -> String {
        match axis.scale(self.relative, unit).unit() {
            unit if self.relative => format!("relative to the baseline, {unit}"),
            "" => "difference from the baseline".to_owned(),
            unit => format!("difference from the baseline, {unit}"),
        }
    }

    fn limit(&self, finding: &Finding) -> Option<f64> {
        finding.budget.as_ref().filter(|budget| budget.relative == self.relative).map(|budget| budget.value)
    }

    /// What the axis must hold; dots only where there is nothing else.
    fn axis(&self) -> Option<Axis> {
        let fixed = |finding: &Finding| match self.interval(finding) {
            Some(interval) => interval.into_iter().chain(self.limit(finding)).collect(),
            None => self.dots(finding),
        };
        let points = self.findings.iter().flat_map(|(_, finding)| fixed(finding));
        let (least, most) = points.fold((0.0_f64, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)));
        let dots = self.findings.iter().flat_map(|(_, finding)| self.dots(finding));
        (most > least).then(|| Axis::of(least, most, dots))
    }
}

fn panel(findings: &Findings, metric: &str) -> Option<Panel> {
    let shown = Shown::of(findings, metric);
    let axis = shown.axis()?;
    let (_, first) = shown.findings.first()?;
    let mark = |(index, (variant, finding)): (u8, &(&VariantFindings, &Finding))| {
        let row = view::row(variant, finding);
        let unit = Scale::of_values(finding).unit();
        Mark {
            label: if variant.kind == VariantKind::Placebo {
                "noise floor".to_owned()
            } else {
                view::clean(&variant.label)
            },
            y: ROW * (f64::from(index) + 0.5),
            interval: shown.interval(finding).map(|it| it.map(|number| axis.at(number))),
            dots: shown.dots(finding).into_iter().map(|number| axis.at(number)).collect(),
            budget: shown.limit(finding).map(|number| axis.at(number)),
            budget_text: finding.budget.as_ref().map(|it| it.limit.clone()).unwrap_or_default(),
            verdict: row.verdict.words(),
            class: view::class(row.verdict),
            text: if shown.relative { row.ratio } else { format!("{} {unit}", row.difference) },
        }
    };
    let rows: Vec<Mark> = (0..).zip(&shown.findings).map(mark).collect();
    let band = shown.noise().map(|reach| Band { x: axis.at(-reach), width: axis.at(reach) - axis.at(-reach) });
    Some(Panel {
        title: first.title.clone(),
        axis: shown.title(&axis, &first.unit),
        height: ROW * rows.len() as f64,
        zero: axis.at(0.0),
        band,
        ticks: axis.ticks(shown.relative, &first.unit),
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
        let scale = self.scale(relative, unit);
        let step = scale.round_step((self.most - self.least) / 4.0);
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

    /// Round as they are printed: 5 MiB, not 5,000,000 bytes.
    #[test]
    fn ticks_are_round_in_the_printed_unit() {
        let ticks = Axis::of(0.0, 9.3e6, std::iter::empty()).ticks(false, "B");
        assert_eq!(ticks.iter().map(|tick| tick.label.as_str()).collect::<Vec<_>>(), ["0", "+2.5", "+5", "+7.5"]);
    }

    #[test]
    fn places_stay_on_the_axis() {
        let axis = Axis::of(-1.0, 1.0, [1.5, 40.0].into_iter());
        assert!(axis.at(1.5) < WIDTH && axis.at(1.5) > axis.at(1.0));
        assert!(axis.at(99.0) <= WIDTH && axis.at(-99.0) >= 0.0);
    }
}
