//! Where the numbers of the latency come from.
//!
//! In a round whose variants run one after the other all of them come from the window. In an alternating round the load has been to every
//! variant twice: in its *blocks*, while the processes of the others are alive, and in a stretch *alone*. What the others do in the background
//! (collections, exports) reaches into a variant's blocks and slows its slowest requests, so its tail is not told from there. Which number is
//! sound in the blocks is a matter of measurement; [`NUMBERS`] is the only place that says it.
//!
//! Nor is what lasts about as long as a block told from there: of a stall that begins in a block the first part alone meets requests, those that
//! wait the longest, as the block ends with its last answer.

use unladen_journal::record::{Blocks, RunRecord};
use unladen_load::outcome::Quantiles;

use super::metrics::Metric;

/// A part of an alternating round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The variant's blocks: many requests, spread over the whole round.
    Blocks,
    /// The stretch in which it has the load for itself.
    Alone,
}

/// A number of the latency.
struct Number {
    metric: &'static str,
    /// Which quantile it is, if it is one.
    quantile: Option<f64>,
    /// Where it is taken from in an alternating round.
    from: From,
    of: fn(&Quantiles) -> f64,
}

const NUMBERS: [Number; 8] = [
    number("latency_p50", Some(0.5), From::Blocks, |it| it.p50),
    number("latency_p75", Some(0.75), From::Blocks, |it| it.p75),
    number("latency_p90", Some(0.9), From::Blocks, |it| it.p90),
    number("latency_p95", Some(0.95), From::Alone, |it| it.p95),
    number("latency_p99", Some(0.99), From::Alone, |it| it.p99),
    number("latency_p999", Some(0.999), From::Alone, |it| it.p999),
    // Largely made by the tail.
    number("latency_mean", None, From::Alone, |it| it.mean),
    number("latency_max", None, From::Alone, |it| it.max),
];

const fn number(metric: &'static str, quantile: Option<f64>, from: From, of: fn(&Quantiles) -> f64) -> Number {
    Number { metric, quantile, from, of }
}

fn find(metric: &str) -> Option<&'static Number> {
    NUMBERS.iter().find(|number| number.metric == metric)
}

/// Which quantile of the requests a metric is, if it is one.
pub(super) fn quantile_of(metric: &str) -> Option<f64> {
    find(metric)?.quantile
}

/// Where a metric of the latency is taken from in an alternating round; `None`: it is none.
pub(super) fn source(metric: &str) -> Option<From> {
    find(metric).map(|number| number.from)
}

/// Whether a quantile of the blocks is that of the variant and not of its neighbours. For numbers that exist of the blocks only: those by request,
/// by operation and by second.
pub(super) fn is_sound_in_blocks(quantile: f64) -> bool {
    let sound = NUMBERS.iter().filter(|number| number.from == From::Blocks).filter_map(|number| number.quantile);
    sound.fold(0.0, f64::max) >= quantile - 1e-9
}

/// How long a latency may be in blocks, as a share of a block, to be taken from there.
const SHORT: f64 = 0.2;
/// The same of the stretch alone. Where a service stands still for longer than a block, the blocks that it does not have meet most of that,
/// and its own look quick: only the stretch alone tells.
const SHORT_ALONE: f64 = 0.5;

/// Where a number is taken from in this run.
fn from(number: &Number, run: &RunRecord) -> From {
    let is_long = |blocks: &Blocks| match &blocks.not_from_blocks {
        Some(metrics) => metrics.contains(number.metric),
        None => length(number, run).is_some_and(|length| length > 1.0),
    };
    if run.blocks.as_ref().is_some_and(is_long) { From::Alone } else { number.from }
}

/// How long a number is in a run, as a share of the longest that may come from blocks; `None`: nobody knows how long a block was.
fn length(number: &Number, run: &RunRecord) -> Option<f64> {
    let blocks = run.blocks.as_ref().filter(|blocks| blocks.length_s > 0.0)?;
    let of = |latency: &Quantiles, share: f64| (number.of)(latency) / 1e6 / (share * blocks.length_s);
    let in_blocks = run.load.as_ref().map(|load| of(&load.latency_us, SHORT));
    let alone = blocks.alone.as_ref().map(|alone| of(&alone.latency_us, SHORT_ALONE));
    in_blocks.into_iter().chain(alone).reduce(f64::max)
}

/// The metrics of the latency, and how long each is in a run, as a share of the longest that may come from blocks.
pub(super) fn lengths() -> impl Iterator<Item = (&'static str, impl Fn(&RunRecord) -> Option<f64>)> {
    NUMBERS.iter().map(|number| (number.metric, |run: &RunRecord| length(number, run)))
}

/// What a run has of a part. Of a run that had the machine for itself either part is its window.
fn part(run: &RunRecord, from: From) -> Option<&Quantiles> {
    let latency = match (&run.blocks, from) {
        (Some(blocks), From::Alone) => &blocks.alone.as_ref()?.latency_us,
        _ => &run.load.as_ref()?.latency_us,
    };
    (latency.count > 0).then_some(latency)
}

/// A number of the latency in one run, µs; `None` where it cannot be told soundly.
pub(super) fn latency(metric: &Metric, run: &RunRecord, _: Option<&str>) -> Option<f64> {
    value(&metric.name, run)
}

/// The same by the metric's name.
pub(super) fn value(metric: &str, run: &RunRecord) -> Option<f64> {
    let number = find(metric)?;
    part(run, from(number, run)).map(number.of)
}

/// Requests behind a quantile of one run: good answers in the part that it comes from, or what another tool says.
pub(super) fn requests(metric: &str, run: &RunRecord) -> Option<u64> {
    match &run.imported {
        Some(imported) => imported.requests,
        None => part(run, from(find(metric)?, run)).map(|latency| latency.count),
    }
}

#[cfg(test)]
mod tests {
    use unladen_journal::record::Alone;
    use unladen_load::outcome::Outcome;

    use super::super::from_blocks::settle;
    use super::*;

    fn run(blocks: Option<Blocks>) -> RunRecord {
        let latency_us = Quantiles { count: 5_000, p50: 100.0, p99: 900.0, ..Quantiles::default() };
        let load = Outcome { requests: 5_000, latency_us, ..Outcome::default() };
        RunRecord { load: Some(load), blocks, ..RunRecord::empty() }
    }

    #[test]
    fn the_tail_comes_from_the_stretch_alone_or_not_at_all() {
        let alone = Alone {
            latency_us: Quantiles { count: 1_000, p50: 80.0, p99: 400.0, ..Quantiles::default() },
            ..Alone::default()
        };
        for (run, p99, requests_behind) in [
            (run(None), Some(900.0), Some(5_000)),
            (run(Some(Blocks::default())), None, None),
            (run(Some(Blocks { alone: Some(alone), ..Blocks::default() })), Some(400.0), Some(1_000)),
            (run(Some(Blocks { alone: Some(Alone::default()), ..Blocks::default() })), None, None),
        ] {
            assert_eq!((value("latency_p99", &run), requests("latency_p99", &run)), (p99, requests_behind));
            assert_eq!((value("latency_p50", &run), requests("latency_p50", &run)), (Some(100.0), Some(5_000)));
        }
        // As long as a fifth of a block.
        let alone = Some(Alone {
            latency_us: Quantiles { count: 1_000, p50: 80.0, ..Quantiles::default() },
            ..Alone::default()
        });
        let of =
            |length_s| value("latency_p50", &run(Some(Blocks { length_s, alone: alone.clone(), ..Blocks::default() })));
        assert_eq!([0.00051, 0.00049].map(of), [Some(100.0), Some(80.0)]);
        // One part for all: that of the slowest variant in most rounds.
        let blocks = Blocks { length_s: 0.00051, alone, ..Blocks::default() };
        let in_round = |round, p50| {
            let mut run = RunRecord { round, ..run(Some(blocks.clone())) };
            run.load.as_mut().expect("a load").latency_us.p50 = p50;
            run
        };
        let mut runs =
            [in_round(1, 90.0), in_round(1, 110.0), in_round(2, 95.0), in_round(3, 101.0), in_round(3, 106.0)];
        settle(&mut runs);
        assert!(runs.iter().all(|run| value("latency_p50", run) == Some(80.0)), "102 µs are a fifth of a block");
        runs[0].load.as_mut().expect("a load").latency_us.p50 = 900.0;
        runs[4].load.as_mut().expect("a load").latency_us.p50 = 96.0;
        settle(&mut runs);
        assert!(runs.iter().all(|run| value("latency_p50", run) != Some(80.0)), "one slow round changes nothing");
        // Quick in its blocks, and not alone: it stands still while the others have theirs.
        let standing = Quantiles { count: 1_000, p50: 900.0, ..Quantiles::default() };
        let alone = Some(Alone { latency_us: standing, ..Alone::default() });
        let blocks = Blocks { length_s: 0.0017, alone, ..Blocks::default() };
        assert_eq!(value("latency_p50", &run(Some(blocks))), Some(900.0));
        assert!(is_sound_in_blocks(0.9) && !is_sound_in_blocks(0.95));
    }

    #[test]
    fn every_latency_metric_has_a_source() {
        let metrics = super::super::metrics::METRICS.iter().filter(|it| it.name.starts_with("latency_"));
        for metric in metrics {
            assert!(source(&metric.name).is_some(), "{}", metric.name);
        }
    }
}
