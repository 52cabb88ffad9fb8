//! One metric, one variant, the baseline: from the runs of the rounds to a finding.
//!
//! The arithmetic is `unladen-stats`; here it is decided which numbers meet which. Both the ratio and the difference are
//! estimated; the metric says which of them decides.

use unladen_journal::notices::Notice;
use unladen_stats::estimate::{Estimate, Interval, Level, hodges_lehmann, median, paired_t};
use unladen_stats::verdict::{CrossCheck, Verdict, cross_check, verdict};
use unladen_stats::{pair, plan, rank};
use unladen_study::metrics::{Compared, Worse};
use unladen_study::spec::{OnUndecided, Study};

use super::evidence::{VariantRuns, number};
use super::findings::{Finding, NoticeLine, RoundValue};
use super::metrics::{Margin, Metric};
use super::words;

/// The level of every interval in the findings of a study: 95 %, or what two looks, or looking until it is narrow, leave of it.
pub(super) fn level(study: &Study) -> Level {
    match study.on_undecided {
        OnUndecided::Extend => plan::TwoLooks::LEVEL,
        OnUndecided::Report if !study.until.is_empty() => plan::NARROW_LEVEL,
        OnUndecided::Report => Level::P95,
    }
}

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
    /// The level of its interval.
    level: Level,
}

/// Compares `variant` with `baseline`. `None` without a round in which both sides have a number.
///
/// The placebo is not averaged into the baseline, although that would narrow the intervals by about an eighth: the
/// difference between one run and the mean of two is lopsided when runs are hit now and then, and the signed-rank
/// interval then misses the truth more often than it says (5.5 % at 12 rounds, 7.3 % at 24; `make calibrate` shows it).
pub(super) fn compare(
    study: &Study,
    metric: &Metric,
    service: Option<&str>,
    baseline: &VariantRuns<'_>,
    variant: &VariantRuns<'_>,
) -> Option<Comparison> {
    let mut rounds = Vec::new();
    for (round, run) in &variant.valid {
        let bare = baseline.valid.get(round).and_then(|bare| metric.value(bare, service));
        if let (Some(baseline), Some(value)) = (bare, metric.value(run, service)) {
            rounds.push(by_round(*round, baseline, value));
        }
    }
    Comparison::of(study, metric, service, rounds)
}

fn by_round(round: u32, baseline: f64, value: f64) -> RoundValue {
    let ratio = (baseline > 0.0 && value > 0.0).then(|| value / baseline - 1.0).filter(|ratio| ratio.is_finite());
    RoundValue { round, baseline, value, difference: value - baseline, ratio }
}

impl Comparison {
    fn of(study: &Study, metric: &Metric, service: Option<&str>, rounds: Vec<RoundValue>) -> Option<Self> {
        let pairs: Vec<(f64, f64)> = rounds.iter().map(|round| (round.baseline, round.value)).collect();
        let side = |of: fn(&RoundValue) -> f64| median(&rounds.iter().map(of).collect::<Vec<_>>());
        let mean = |of: fn(&RoundValue) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len() as f64;
        let (baseline, value) = (side(|round| round.baseline)?, side(|round| round.value)?);
        let differences = pair::differences(&pairs).ok()?;
        let log_ratios = pair::log_ratios(&pairs).ok();
        let level = level(study);
        let difference = hodges_lehmann(&differences, level).ok()?;
        let ratio = log_ratios.as_deref().and_then(|values| hodges_lehmann(values, level).ok());
        let relative = metric.compared == Compared::Ratio && ratio.is_some();
        let margin = match metric.margin {
            Margin::Absolute(margin) if relative && baseline > 0.0 => margin / baseline,
            Margin::Absolute(margin) => margin,
            Margin::OfStudy if relative => study.margin.0,
            Margin::OfStudy => study.margin.0 * baseline.abs(),
        };
        let sign = if metric.worse == Worse::Less { -1.0 } else { 1.0 };
        let ratio = ratio.as_ref().map(Estimate::relative);
        let finding = Finding {
            metric: metric.name.to_string(),
            title: metric.title.to_string(),
            place: metric.place,
            unit: metric.unit.to_owned(),
            service: service.map(str::to_owned),
            operation: None,
            baseline,
            value,
            baseline_mean: mean(|round| round.baseline),
            value_mean: mean(|round| round.value),
            difference: difference.interval.map(|_| difference.value),
            difference_low: difference.interval.map(|interval| interval.low),
            difference_high: difference.interval.map(|interval| interval.high),
            ratio: ratio.and_then(|ratio| ratio.interval.map(|_| ratio.value)),
            ratio_low: ratio.and_then(|ratio| ratio.interval).map(|interval| interval.low),
            ratio_high: ratio.and_then(|ratio| ratio.interval).map(|interval| interval.high),
            mean_ratio: ratio.and_then(|ratio| ratio.interval.map(|_| ratio.mean)),
            level: difference.interval.map(|interval| interval.achieved),
            verdict: Verdict::CannotTell,
            words: String::new(),
            refused: None,
            detectable: None,
            rounds_needed: None,
            margin,
            relative,
            budget: None,
            rounds,
            notices: Vec::new(),
        };
        let turned = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| sign * value).collect() };
        let mut comparison = Self {
            log_ratios: log_ratios.as_deref().map(turned),
            differences: turned(&differences),
            sign,
            level,
            finding,
        };
        comparison.finding.verdict = comparison.verdict();
        Some(comparison)
    }

    /// What the interval says; without one it cannot tell.
    pub(super) fn verdict(&self) -> Verdict {
        let interval = self.estimate(hodges_lehmann).and_then(|estimate| estimate.interval);
        interval.map_or(Verdict::CannotTell, |interval| verdict(&interval, self.finding.margin))
    }

    /// Whether the metric is 0 on both sides in every round.
    pub(super) fn is_zero(&self) -> bool {
        self.finding.rounds.iter().all(|round| round.baseline == 0.0 && round.value == 0.0)
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
        let estimate = by(self.deciding(), self.level).ok()?;
        Some(if self.finding.relative { self.turned_back(&estimate) } else { estimate })
    }

    /// From log-ratios, turned, to relative differences, turned: a throughput of 0.9 is a cost of 10 %, not of 11 %.
    fn turned_back(&self, estimate: &Estimate) -> Estimate {
        let natural = |value: f64| self.sign * (self.sign * value).exp_m1();
        let interval = estimate.interval.map(|it| Interval { low: natural(it.low), high: natural(it.high), ..it });
        Estimate { value: natural(estimate.value), mean: natural(estimate.mean), interval, ..*estimate }
    }

    /// Puts the finding into words, with what it would take to know more and whether the cross-check agrees.
    pub(super) fn say(&mut self) {
        let margin = self.finding.margin;
        let Some(estimate) = self.estimate(hodges_lehmann) else { return };
        let Some(interval) = estimate.interval else {
            self.finding.words = words::too_few(self.finding.rounds.len(), rank::min_rounds(self.level));
            return;
        };
        let verdict = self.verdict();
        let sd = self.scatter();
        let relative = |value: f64| if self.finding.relative { value.exp_m1() } else { value };
        let detectable =
            sd.and_then(|sd| plan::smallest_detectable(sd, self.deciding().len(), self.level)).map(relative);
        let wanted = if self.finding.relative { margin.ln_1p() } else { margin };
        let undecided = sd.filter(|_| verdict == Verdict::CannotTell);
        let more = undecided.and_then(|sd| plan::rounds_for_half_width(sd, wanted, self.level));
        self.finding.detectable = detectable;
        self.finding.rounds_needed = more.map(number);
        self.finding.words = words::finding(&self.finding, verdict, &estimate, &interval);
        if let Some(t) = self.estimate(paired_t)
            && let check = cross_check(&estimate, &t, margin)
            && check.on_the_effect()
            && let CrossCheck::Disagree { rank, t } = check
        {
            let (rank, t) = (rank.words().to_owned(), t.words().to_owned());
            self.finding.notices.push(NoticeLine::from(&Notice::MethodsDisagree { rank, t }));
        }
    }

    /// Standard deviation of the deciding values that their interval stands for; `None` if they do not differ.
    fn scatter(&self) -> Option<f64> {
        let values = self.deciding();
        let interval = hodges_lehmann(values, self.level).ok()?.interval?;
        plan::implied_sd(&interval, values.len(), self.level).filter(|sd| *sd > 0.0)
    }
}
