//! Distributions of the latency over the rounds, from each run's histogram; runs are never merged.
//!
//! Of an alternating run the whole curve is of the stretch that the variant had alone, if its histogram is there, because a curve from two parts
//! would have a step in it; else of its blocks, as far as that is sound ([`super::super::latency`]).

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use unladen_load::histogram::{self, FILE_NAME};
use unladen_stats::estimate::median;

use super::super::evidence::{Evidence, VariantRuns};
use super::super::latency::is_sound_in_blocks;
use super::parts::{Band, Latency, VariantLatency, short};

/// Requests that must lie beyond a point of a curve.
const BEYOND: f64 = 10.0;
/// Classes in which requests are counted.
const CLASSES: u32 = 64;

/// Tag of the histogram of the stretch that a variant had alone.
const ALONE: &str = "alone_latency";

/// Latency by round, nanoseconds.
type Rounds = BTreeMap<u32, Histogram<u64>>;

pub(super) fn read(evidence: &Evidence<'_>, unread: &mut u32) -> Option<Latency> {
    let mut all: Vec<(&VariantRuns<'_>, Rounds)> = Vec::new();
    let mut only_blocks = false;
    for variant in evidence.all_variants() {
        let mut rounds = Rounds::new();
        for (round, run) in variant.valid.iter().filter(|(_, run)| run.load.is_some()) {
            let found = histogram::read(&evidence.folder.dir.join(&run.dir).join(FILE_NAME)).unwrap_or_default();
            let of = |wanted: &str| found.iter().find(|(tag, all)| tag == wanted && !all.is_empty());
            let alone = of(ALONE).filter(|_| run.blocks.is_some());
            only_blocks |= run.blocks.is_some() && alone.is_none();
            match alone.or_else(|| of("latency")) {
                Some((_, histogram)) => drop(rounds.insert(*round, histogram.clone())),
                None => *unread += 1,
            }
        }
        all.push((variant, rounds));
    }
    let histograms = || all.iter().flat_map(|(_, rounds)| rounds.values());
    let limits = limits(histograms())?;
    let mut quantiles = grid(histograms().map(Histogram::len).max()?);
    quantiles.retain(|quantile| !only_blocks || is_sound_in_blocks(*quantile));
    let variants = all.iter().filter(|(_, rounds)| !rounds.is_empty()).map(|(variant, rounds)| {
        let bare = evidence.baseline_of(variant);
        let against = all.iter().find(|(it, _)| it.name == bare.name && it.name != variant.name);
        VariantLatency {
            name: variant.name.clone(),
            runs: band(&quantiles, |quantile| rounds.values().filter_map(|it| at(it, quantile)).collect()),
            shift: against.map(|(_, bare)| {
                band(&quantiles, |quantile| {
                    let pair = |(round, it)| Some(at(it, quantile)? / at(bare.get(round)?, quantile)? - 1.0);
                    rounds.iter().filter_map(pair).collect()
                })
            }),
            shares: shares(rounds, &limits),
        }
    });
    let variants = variants.collect();
    let limits_us = limits.iter().map(|limit| short(*limit as f64 / 1e3)).collect();
    Some(Latency { variants, quantiles, limits_us })
}

/// Dense where latencies rise steeply: 0.05 … 0.9, then nine steps towards each further nine.
fn grid(requests: u64) -> Vec<f64> {
    let mut grid: Vec<f64> = (0..=18).map(|step| f64::from(step) * 0.05).collect();
    grid[0] = 0.01;
    for nines in 2..=7 {
        grid.extend((1..10).rev().map(|step| 1.0 - f64::from(step) * 10_f64.powi(-nines)));
    }
    grid.retain(|quantile| requests as f64 * (1.0 - quantile) >= BEYOND);
    grid
}

/// µs; `None` if too few requests lie beyond.
fn at(histogram: &Histogram<u64>, quantile: f64) -> Option<f64> {
    (histogram.len() as f64 * (1.0 - quantile) >= BEYOND).then(|| histogram.value_at_quantile(quantile) as f64 / 1e3)
}

fn band(quantiles: &[f64], values: impl Fn(f64) -> Vec<f64>) -> Band {
    let mut band = Band::default();
    quantiles.iter().for_each(|quantile| band.push(values(*quantile)));
    band
}

/// From the fastest thousandth of the fastest run to the slowest thousandth of the typical one, in equal ratios.
fn limits<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Option<Vec<u64>> {
    let (mut lows, mut highs) = (Vec::new(), Vec::new());
    for histogram in histograms {
        lows.push(histogram.value_at_quantile(0.001) as f64);
        highs.push(histogram.value_at_quantile(0.999) as f64);
    }
    let low = lows.into_iter().reduce(f64::min)?.max(1.0);
    let high = median(&highs)?.max(low * 1.5);
    let step = (high / low).ln() / f64::from(CLASSES);
    let mut limits: Vec<u64> = (0..=CLASSES).map(|number| (low * (f64::from(number) * step).exp()) as u64).collect();
    limits.dedup();
    Some(limits)
}

fn shares(rounds: &Rounds, limits: &[u64]) -> Vec<f64> {
    let share = |pair: &[u64]| {
        let of = |it: &Histogram<u64>| it.count_between(pair[0], pair[1].saturating_sub(1)) as f64 / it.len() as f64;
        short(rounds.values().map(of).sum::<f64>() / rounds.len() as f64)
    };
    limits.windows(2).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl Iterator<Item = u64>) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).expect("three digits");
        values.for_each(|value| histogram.record(value).expect("it grows"));
        histogram
    }

    #[test]
    fn the_grid_ascends_and_ends_where_requests_do() {
        let grid = grid(10_000);
        assert!(grid.windows(2).all(|pair| pair[0] < pair[1]), "{grid:?}");
        assert!((grid.last().expect("points") - 0.999).abs() < 1e-9, "{grid:?}");
        assert!(grid.contains(&0.5), "{grid:?}");
        assert_eq!(super::grid(9), Vec::<f64>::new());
    }

    #[test]
    fn shares_add_up_to_all_within_the_limits() {
        let rounds = Rounds::from([
            (1, histogram((1..=10_000).map(|step| step * 1_000))),
            (2, histogram((1..=10_000).map(|step| step * 2_000))),
        ]);
        let limits = limits(rounds.values()).expect("requests");
        let sum: f64 = shares(&rounds, &limits).iter().sum();
        assert!((0.8..=1.0).contains(&sum), "{sum}");
    }

    #[test]
    fn a_band_has_the_middle_of_the_rounds() {
        let band = band(&[0.5], |_| (1..=10).rev().map(f64::from).collect());
        assert_eq!((band.low, band.median, band.high), (vec![Some(1.0)], vec![Some(5.5)], vec![Some(9.0)]));
        assert_eq!(super::band(&[0.5], |_| Vec::new()).median, [None]);
    }
}
