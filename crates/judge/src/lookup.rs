//! Findings in findings: by metric, by kind; and what a range says of itself. Decides nothing.

use unladen_journal::record::VariantKind;
use unladen_stats::estimate::{Estimate, median};
use unladen_stats::verdict::Verdict;

use super::findings::{Finding, Findings, Range, StepFindings, VariantFindings};

impl Findings {
    /// Findings about the study's variants without the placebo's.
    pub fn real_variants(&self) -> impl Iterator<Item = &VariantFindings> {
        self.variants.iter().filter(|variant| variant.kind != VariantKind::Placebo)
    }

    /// The placebo's findings.
    #[must_use]
    pub fn placebo(&self) -> Option<&VariantFindings> {
        self.variants.iter().find(|variant| variant.kind == VariantKind::Placebo)
    }
}

impl VariantFindings {
    /// The finding on a metric of the subject as a whole, or of the load.
    #[must_use]
    pub fn finding(&self, metric: &str) -> Option<&Finding> {
        of_whole(&self.metrics, metric)
    }
}

impl StepFindings {
    /// The finding on a metric of the subject as a whole, or of the load.
    #[must_use]
    pub fn finding(&self, metric: &str) -> Option<&Finding> {
        of_whole(&self.metrics, metric)
    }
}

impl Finding {
    /// Whether it is on the subject as a whole, or on the load: not on one service or operation.
    #[must_use]
    pub fn is_of_whole(&self) -> bool {
        self.service.is_none() && self.operation.is_none()
    }

    /// The difference with its interval, relative or not; `None` without an interval.
    #[must_use]
    pub fn range(&self, relative: bool) -> Option<Range> {
        let (value, low, high) = match relative {
            true => (self.ratio, self.ratio_low, self.ratio_high),
            false => (self.difference, self.difference_low, self.difference_high),
        };
        Some(Range { value: value?, low: low?, high: high? })
    }

    /// Takes its verdict away; the numbers stay.
    pub(super) fn take_verdict(&mut self, reason: &str) {
        self.verdict = Verdict::CannotTell;
        self.words = format!("no verdict: {reason}");
    }
}

impl Range {
    /// An estimate that has an interval.
    pub(super) fn of(estimate: &Estimate) -> Option<Self> {
        estimate.interval.map(|it| Self { value: estimate.value, low: it.low, high: it.high })
    }

    /// Their median between the lowest and the highest; `None` of none.
    pub(super) fn over(values: &[f64]) -> Option<Self> {
        let (low, high) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
        Some(Self { value: median(values)?, low, high })
    }

    /// How far from 0 its ends are at most.
    #[must_use]
    pub fn magnitude(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// Half its width; `None` where it has none.
    #[must_use]
    pub fn half_width(self) -> Option<f64> {
        Some((self.high - self.low) / 2.0).filter(|width| *width > 0.0)
    }
}

/// Of several findings the one on a metric of the subject as a whole, or of the load.
pub(super) fn of_whole<'a>(findings: &'a [Finding], metric: &str) -> Option<&'a Finding> {
    findings.iter().find(|it| it.metric == metric && it.is_of_whole())
}
