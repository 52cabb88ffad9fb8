//! One metric, one variant, the baseline: from the runs of the rounds to a finding.
//!
//! The arithmetic is `unladen-stats`; here it is decided which numbers meet which. Both the ratio and the difference are
//! estimated; the metric says which of them decides.

use unladen_stats::estimate::{Estimate, Interval, Level, hodges_lehmann, median, paired_t};
use unladen_stats::verdict::{CrossCheck, Verdict, cross_check, verdict};
use unladen_stats::{pair, plan, rank};

use super::evidence::Arm;
use super::findings::{Finding, NoticeLine, RoundValue};
use super::metrics::{Better, Compared, Margin, Metric, Place};
use super::words;
use crate::notices::Notice;
use crate::study::spec::Study;

/// The level of every interval in the findings.
pub(super) const LEVEL: Level = Level::P95;

/// A finding with the paired numbers that it rests on, turned so that more is a cost.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) finding: Finding,
    /// Log-ratios by round; `None` if some value has none.
    pub(super) log_ratios: Option<Vec<f64>>,
    /// Differences by round.
    pub(super) differences: Vec<f64>,
    /// What the numbers below were turned by: −1 if more of the metric is better.
    pub(super) sign: f64,
}

/// Compares `variant` with the runs of `bare` (the baseline, or baseline and placebo). `None` without a round in which both sides have
/// a number.
pub(super) fn compare(
    study: &Study,
    metric: &Metric,
    service: Option<&str>,
    bare: &[&Arm<'_>],
    variant: &Arm<'_>,
) -> Option<Comparison> {
    let mut rounds = Vec::new();
    for (round, run) in &variant.valid {
        let values: Vec<f64> = bare.iter().filter_map(|arm| metric.value(arm.valid.get(round)?, service)).collect();
        if let (Some(baseline), Some(value)) = (mean(metric, &values), metric.value(run, service)) {
            rounds.push(RoundValue { round: *round, baseline, value });
        }
    }
    Comparison::of(study, metric, service, rounds)
}

/// Mean of the baseline runs of a round, on the scale on which the metric is compared.
fn mean(metric: &Metric, values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let first = *values.first()?;
    if metric.compared == Compared::Ratio && values.iter().all(|value| *value > 0.0) {
        // Relative to the first, so that equal values have exactly themselves as their mean.
        Some(first * (values.iter().map(|value| (value / first).ln()).sum::<f64>() / count).exp())
    } else {
        Some(values.iter().sum::<f64>() / count)
    }
}

impl Comparison {
    fn of(study: &Study, metric: &Metric, service: Option<&str>, rounds: Vec<RoundValue>) -> Option<Self> {
        let pairs: Vec<(f64, f64)> = rounds.iter().map(|round| (round.baseline, round.value)).collect();
        let side = |of: fn(&RoundValue) -> f64| median(&rounds.iter().map(of).collect::<Vec<_>>());
        let (baseline, value) = (side(|round| round.baseline)?, side(|round| round.value)?);
        let differences = pair::differences(&pairs).ok()?;
        let log_ratios = pair::log_ratios(&pairs).ok();
        let difference = hodges_lehmann(&differences, LEVEL).ok()?;
        let ratio = log_ratios.as_deref().and_then(|values| hodges_lehmann(values, LEVEL).ok());
        let relative = metric.compared == Compared::Ratio && ratio.is_some();
        let margin = match metric.margin {
            Margin::Absolute(margin) if relative && baseline > 0.0 => margin / baseline,
            Margin::Absolute(margin) => margin,
            Margin::OfStudy if relative => study.margin.0,
            Margin::OfStudy => study.margin.0 * baseline.abs(),
        };
        let sign = if metric.better == Better::Higher { -1.0 } else { 1.0 };
        let ratio = ratio.as_ref().map(Estimate::relative);
        let mut finding = Finding {
            metric: metric.name.to_string(),
            title: metric.title.to_string(),
            place: place(metric.place).to_owned(),
            unit: metric.unit.to_owned(),
            service: service.map(str::to_owned),
            operation: None,
            baseline,
            value,
            difference: difference.interval.map(|_| difference.value),
            difference_low: difference.interval.map(|interval| interval.low),
            difference_high: difference.interval.map(|interval| interval.high),
            ratio: ratio.and_then(|ratio| ratio.interval.map(|_| ratio.value)),
            ratio_low: ratio.and_then(|ratio| ratio.interval).map(|interval| interval.low),
            ratio_high: ratio.and_then(|ratio| ratio.interval).map(|interval| interval.high),
            mean_ratio: ratio.and_then(|ratio| ratio.interval.map(|_| ratio.mean)),
            level: difference.interval.map(|interval| interval.achieved),
            verdict: String::new(),
            words: String::new(),
            detectable: None,
            margin,
            relative,
            budget: None,
            rounds,
            notices: Vec::new(),
        };
        let turned = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| sign * value).collect() };
        let comparison = Self {
            log_ratios: log_ratios.as_deref().map(turned),
            differences: turned(&differences),
            sign,
            finding: finding.clone(),
        };
        comparison.judge(&mut finding);
        Some(Self { finding, ..comparison })
    }

    /// The values that decide, on the scale on which they are averaged.
    pub(super) fn deciding(&self) -> &[f64] {
        match &self.log_ratios {
            Some(log_ratios) if self.finding.relative => log_ratios,
            _ => &self.differences,
        }
    }

    /// An estimate from the deciding values, on the scale of the margin.
    fn estimate(
        &self,
        by: fn(&[f64], Level) -> Result<Estimate, unladen_stats::estimate::EstimateError>,
    ) -> Option<Estimate> {
        let estimate = by(self.deciding(), LEVEL).ok()?;
        Some(if self.finding.relative { self.turned_back(&estimate) } else { estimate })
    }

    /// From log-ratios, turned, to relative differences, turned: a throughput of 0.9 is a cost of 10 %, not of 11 %.
    fn turned_back(&self, estimate: &Estimate) -> Estimate {
        let natural = |value: f64| self.sign * (self.sign * value).exp_m1();
        let interval = estimate.interval.map(|it| Interval { low: natural(it.low), high: natural(it.high), ..it });
        Estimate { value: natural(estimate.value), mean: natural(estimate.mean), interval, ..*estimate }
    }

    fn judge(&self, finding: &mut Finding) {
        let margin = finding.margin;
        let Some(estimate) = self.estimate(hodges_lehmann) else { return };
        let Some(interval) = estimate.interval else {
            finding.verdict = name(Verdict::CannotTell).to_owned();
            finding.words = words::too_few(finding.rounds.len(), rank::fewest(LEVEL));
            return;
        };
        let verdict = verdict(&interval, margin);
        let n = self.deciding().len();
        let sd = hodges_lehmann(self.deciding(), LEVEL).ok().and_then(|it| plan::implied_sd(&it.interval?, n, LEVEL));
        let sd = sd.filter(|sd| *sd > 0.0);
        let relative = |value: f64| if finding.relative { value.exp_m1() } else { value };
        finding.detectable = sd.and_then(|sd| plan::smallest_detectable(sd, n, LEVEL)).map(relative);
        let wanted = if finding.relative { margin.ln_1p() } else { margin };
        let more =
            sd.filter(|_| verdict == Verdict::CannotTell).and_then(|sd| plan::rounds_for_half_width(sd, wanted, LEVEL));
        finding.verdict = name(verdict).to_owned();
        finding.words = words::finding(finding, verdict, &estimate, &interval, more);
        if let Some(t) = self.estimate(paired_t)
            && let CrossCheck::Disagree { rank, t } = cross_check(&estimate, &t, margin)
        {
            let notice =
                Notice::MethodsDisagree { rank: words::verdict(rank).to_owned(), t: words::verdict(t).to_owned() };
            finding.notices.push(NoticeLine::from(&notice));
        }
    }
}

/// A verdict as it stands in `findings.json`.
pub(super) fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Costs => "costs",
        Verdict::Saves => "saves",
        Verdict::NoDifference => "no_difference",
        Verdict::CannotTell => "cannot_tell",
    }
}

fn place(place: Place) -> &'static str {
    match place {
        Place::Sentence => "sentence",
        Place::Table => "table",
        Place::Detail => "detail",
    }
}
