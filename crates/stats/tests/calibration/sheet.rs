//! The sheet of a calibration: what was expected, what came out, and whether chance explains the difference.

use crate::simulation::count;

/// By how many standard errors a figure may miss its expectation.
///
/// A normal value misses by more than 4.6 standard errors with probability 4.2 in a million, any of 200 comparisons with
/// probability 0.00084: a correct crate fails with less than one seed in 1,000. (The seed is fixed, so that what passed
/// once passes again.) What a published figure may miss by beside chance, such as its rounding, is added to that.
const STANDARD_ERRORS: f64 = 4.6;
const MAX_COMPARISONS: usize = 200;

/// Runs behind each published figure: it errs as well.
const PUBLISHED_RUNS: f64 = 20_000.0;

/// What a figure is held against.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// Follows from theory: only our own simulation errs.
    Theory(f64),
    /// Published, rounded to within `rounding`. `model` allows for a noise model that is published in words and rebuilt
    /// here.
    Published { value: f64, rounding: f64, model: f64 },
    /// Published as the range of several cells, or bounded by theory on both sides.
    Between(f64, f64),
}

impl Expected {
    /// Published to one decimal.
    pub(crate) const fn tenths(value: f64) -> Self {
        Self::Published { value, rounding: 0.05, model: 0.0 }
    }

    /// Published to whole numbers.
    pub(crate) const fn whole(value: f64) -> Self {
        Self::Published { value, rounding: 0.5, model: 0.0 }
    }

    /// Published, of a model that may be `model` off.
    pub(crate) const fn rebuilt(value: f64, rounding: f64, model: f64) -> Self {
        Self::Published { value, rounding, model }
    }

    /// Lower and upper end.
    const fn range(self) -> (f64, f64) {
        match self {
            Self::Theory(value) | Self::Published { value, .. } => (value, value),
            Self::Between(low, high) => (low, high),
        }
    }

    /// What `here` may miss by, given the standard error of such a figure from so many runs.
    fn allowed(self, here: f64, runs: usize, error: impl Fn(f64, f64) -> f64) -> f64 {
        let (low, high) = self.range();
        let value = if here < low { low } else { high };
        let (ours, theirs) = (error(value, count(runs)), error(value, PUBLISHED_RUNS));
        STANDARD_ERRORS
            * match self {
                Self::Theory(_) => ours,
                Self::Published { .. } | Self::Between(..) => ours.hypot(theirs),
            }
            + match self {
                Self::Published { rounding, model, .. } => rounding + model,
                Self::Theory(_) | Self::Between(..) => 0.0,
            }
    }
}

/// All comparisons of a calibration.
#[derive(Default)]
pub(crate) struct Sheet {
    comparisons: usize,
    misses: Vec<String>,
}

impl Sheet {
    #[expect(clippy::unused_self, reason = "reads as a part of the sheet")]
    pub(crate) fn title(&self, title: &str) {
        println!("\n{title}\n{:<58} {:>11} {:>8} {:>9}", "", "expected", "here", "allowed");
    }

    /// A rate in per cent: `hits` of `runs`.
    pub(crate) fn rate(&mut self, what: &str, expected: Expected, hits: usize, runs: usize) {
        let here = 100.0 * count(hits) / count(runs);
        // The error of a rate p in n runs is √(p(1−p)/n), never taken as less than that of one hit in n.
        let error = |percent: f64, n: f64| {
            let p = (percent / 100.0).clamp(1.0 / n, 1.0 - 1.0 / n);
            100.0 * (p * (1.0 - p) / n).sqrt()
        };
        self.compare(what, expected.range(), here, expected.allowed(here, runs, error), 1);
    }

    /// The effect that 80 % of studies find, from how far both ends of their intervals fell short of 0 without an effect:
    /// it would have moved all of them as a whole.
    pub(crate) fn effect(&mut self, what: &str, expected: Expected, mut short_by: Vec<f64>) {
        short_by.sort_by(f64::total_cmp);
        let at = |percent: usize| short_by[short_by.len() * percent / 100];
        // The error of a quantile is √(q(1−q)/n) over the density there, 0.04 over the distance of its neighbours. The
        // two ends of an interval hang together: they count as one.
        let error = |_, n: f64| 0.4 / n.sqrt() * (at(82) - at(78)) / 0.04;
        let runs = short_by.len() / 2;
        self.compare(what, expected.range(), at(80), expected.allowed(at(80), runs, error), 2);
    }

    /// A mean, with the standard deviation of what it is the mean of.
    pub(crate) fn mean(&mut self, what: &str, expected: Expected, (mean, sd): (f64, f64), runs: usize) {
        self.compare(what, expected.range(), mean, expected.allowed(mean, runs, |_, n| sd / n.sqrt()), 2);
    }

    /// A figure that is printed to show why something is not done.
    #[expect(clippy::unused_self, reason = "reads as a part of the sheet")]
    pub(crate) fn show(&self, what: &str, hits: usize, runs: usize) {
        println!("{what:<58} {:>11} {:>8.1}", "", 100.0 * count(hits) / count(runs));
    }

    fn compare(&mut self, what: &str, (low, high): (f64, f64), here: f64, allowed: f64, digits: usize) {
        self.comparisons += 1;
        let expected = if low < high { format!("{low:.digits$}–{high:.digits$}") } else { format!("{low:.digits$}") };
        let within = here >= low - allowed && here <= high + allowed;
        let mark = if within { "" } else { "  <-- MISS" };
        println!("{what:<58} {expected:>11} {here:>8.digits$} {:>9}{mark}", format!("±{allowed:.digits$}"));
        if !within {
            self.misses.push(format!("{what}: {here:.digits$}, expected {expected} ±{allowed:.digits$}"));
        }
    }

    /// Ends the calibration.
    #[track_caller]
    pub(crate) fn finish(self) {
        println!("\n{} comparisons, {} beyond chance", self.comparisons, self.misses.len());
        assert!(self.comparisons <= MAX_COMPARISONS, "{} comparisons need a wider allowance", self.comparisons);
        assert!(self.misses.is_empty(), "beyond chance:\n{}", self.misses.join("\n"));
    }
}
