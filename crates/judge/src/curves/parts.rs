//! What curves are made of: variants, bands over rounds and courses over time.

use serde::Serialize;
use unladen_journal::record::VariantKind;
use unladen_stats::estimate::median;
use unladen_stats::quantile::nearest_rank;

use super::super::evidence::Evidence;

/// A variant, also the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantName {
    /// Key of the variant.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// `baseline`, `placebo` or `variant`.
    pub kind: VariantKind,
}

/// The latency of all variants: quantile curves, and what share of the requests took how long.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Latency {
    /// Where the quantile curves have their points, 0 to 1.
    pub quantiles: Vec<f64>,
    /// Limits of the classes of `shares`, µs, ascending, one more than there are classes.
    pub limits_us: Vec<f64>,
    /// One entry per variant.
    #[serde(rename = "arms")]
    pub variants: Vec<VariantLatency>,
}

/// The latency of one variant. Curves have a value per quantile, `null` where a run has too few requests for one.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct VariantLatency {
    /// Key of the variant.
    pub name: String,
    /// Latency in the runs, µs.
    pub runs: Band,
    /// Latency over that of the baseline's run in the same round, less 1; `null` for the baseline itself.
    pub shift: Option<Band>,
    /// Share of the requests in each class, mean over the runs.
    pub shares: Vec<f64>,
}

/// Numbers over rounds: the median, and between which two values the middle 80 % of the rounds lie.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Band {
    /// Medians.
    pub median: Vec<Option<f64>>,
    /// A tenth of the rounds is lower.
    pub low: Vec<Option<f64>>,
    /// A tenth of the rounds is higher.
    pub high: Vec<Option<f64>>,
}

/// One number over time, in every run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Course {
    /// Its name.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Unit: `cores`, `B`, `1/s` or `us`.
    pub unit: &'static str,
    /// Seconds between two values; what was sampled more often is averaged.
    pub step_s: f64,
    /// The runs that count.
    pub runs: Vec<RunCourse>,
}

/// One number over the time of one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RunCourse {
    /// Number of the run.
    pub run: u32,
    /// The time of the first value is this times `step_s`; 0 is the start of the window.
    pub first: i64,
    /// One value per step; `null` if there is none.
    pub values: Vec<Option<f64>>,
}

impl Band {
    /// The next point, from the values of the rounds there; without any it is a gap.
    pub(super) fn push(&mut self, mut values: Vec<f64>) {
        values.sort_by(f64::total_cmp);
        self.median.push(median(&values).map(short));
        self.low.push(nearest_rank(&values, 0.1).map(short));
        self.high.push(nearest_rank(&values, 0.9).map(short));
    }
}

/// All variants with runs, the baseline first.
pub(super) fn names(evidence: &Evidence<'_>) -> Vec<VariantName> {
    let named = evidence.all_variants().filter_map(|variant| {
        let kind = variant.all.first()?.kind;
        Some(VariantName { name: variant.name.clone(), label: variant.label.clone(), kind })
    });
    named.collect()
}

/// With four digits that count: more cannot be seen, and would be most of a report's bytes.
pub(super) fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn four_digits_remain() {
        for (value, expected) in [(123_456.0, 123_500.0), (-0.012_345_6, -0.012_35), (0.0, 0.0), (9.999_96, 10.0)] {
            assert!((short(value) - expected).abs() < 1e-9, "{value}: {}", short(value));
        }
    }
}
