//! A load cut into parts whose requests are known by number.
//!
//! The load generator says of each second how many requests were due in it and the lowest of their numbers, no more. As long as requests
//! are numbered in the order in which they are due, that tells the numbers of every second. It does not where they mix: in a burst all
//! sequences are due at once, their later steps when the answer before is there, and each request is numbered when it is sent. So a
//! second ends a part only if every request before its end has a lower number than every one after it; by the counts that is certain.
//! Seconds between which there is no such end are one part.

use std::collections::BTreeMap;
use std::ops::Range;

use super::terms::{Load, SecondOfRequests};

/// Seconds of the load whose numbers do not mix with those of others, with the traces of their requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    /// Numbers of its requests.
    range: Range<u64>,
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) sampled: u64,
    /// Traces that should be here: see [`super::sampling::decide`].
    pub(super) due: u64,
    /// Traces that are here, by their number of spans.
    pub(super) traces: BTreeMap<u32, u64>,
    /// Its seconds, and last what has none.
    seconds: Vec<SecondOfRequests>,
}

impl Part {
    pub(super) fn arrived(&self) -> u64 {
        self.traces.values().sum()
    }

    fn take(&mut self, second: SecondOfRequests) {
        self.sent += second.sent;
        self.answered += second.answered;
        self.sampled += second.sampled;
        self.seconds.push(second);
    }

    /// What was lost in it by second: which of them it was in is not known, so by what was due in each.
    pub(super) fn spread(&self, lost: f64) -> Vec<f64> {
        let of: fn(&SecondOfRequests) -> u64 =
            if self.sampled > 0 { |second| second.sampled } else { |second| second.answered };
        let all: u64 = self.seconds.iter().map(of).sum();
        let even = 1.0 / self.seconds.len() as f64;
        let share = |second| if all > 0 { of(second) as f64 / all as f64 } else { even };
        self.seconds.iter().map(|second| lost * share(second)).collect()
    }
}

/// The parts, without gap or overlap: all seconds, and at the end everything that has none.
pub(super) fn parts(load: &Load<'_>) -> Vec<Part> {
    let sum = |of: fn(&SecondOfRequests) -> u64| load.seconds.iter().map(of).sum::<u64>();
    let rest = SecondOfRequests {
        first_index: sum(|second| second.sent),
        sent: load.sent.saturating_sub(sum(|second| second.sent)),
        answered: load.answered.saturating_sub(sum(|second| second.answered)),
        sampled: load.sampled.saturating_sub(sum(|second| second.sampled)),
    };
    let lowest = lowest_from(load.seconds);
    let mut parts = Vec::new();
    let mut open = Part::default();
    let (mut sent, mut mixed) = (0, false);
    for (second, lowest_after) in load.seconds.iter().zip(&lowest[1..]) {
        sent += second.sent;
        open.take(*second);
        let ends = match lowest_after {
            // So many numbers are lower than any of a later second, and so many requests were due until now.
            Some(lowest) => *lowest == sent,
            // Of what has no second nobody says the lowest number: if numbers mix at all, its may, too.
            None => !mixed || rest.sent == 0,
        };
        mixed |= !ends;
        if ends {
            parts.push(Part { range: open.range.start..sent, ..std::mem::take(&mut open) });
            open.range.start = sent;
        }
    }
    open.take(rest);
    parts.push(Part { range: open.range.start..u64::MAX, ..open });
    parts
}

/// The lowest number in each second and all later ones; `None`: nothing is due any more.
fn lowest_from(seconds: &[SecondOfRequests]) -> Vec<Option<u64>> {
    let mut lowest = vec![None; seconds.len() + 1];
    for (at, second) in seconds.iter().enumerate().rev() {
        let own = (second.sent > 0).then_some(second.first_index);
        lowest[at] = own.into_iter().chain(lowest[at + 1]).min();
    }
    lowest
}

/// Spreads the traces over the parts; returns the spans in all and the traces by their number of spans.
pub(super) fn distribute(runs: &[(u32, u64)], parts: &mut [Part]) -> (u64, BTreeMap<u32, u64>) {
    let (mut arrived, mut traces) = (0, BTreeMap::new());
    let mut index = 0;
    let mut at = 0;
    for (spans, requests) in runs {
        let end = index + requests;
        if *spans > 0 {
            arrived += u64::from(*spans) * requests;
            *traces.entry(*spans).or_insert(0) += requests;
        }
        while index < end && at < parts.len() {
            let until = end.min(parts[at].range.end);
            if *spans > 0 && until > index {
                *parts[at].traces.entry(*spans).or_insert(0) += until - index;
            }
            index = index.max(until);
            if index == parts[at].range.end {
                at += 1;
            }
        }
    }
    (arrived, traces)
}

/// The larger if two are equally frequent.
pub(super) fn most_frequent(traces: &BTreeMap<u32, u64>) -> Option<u32> {
    traces.iter().max_by_key(|(spans, traces)| (**traces, **spans)).map(|(spans, _)| *spans)
}

/// Spans of a trace on average.
pub(super) fn mean(traces: &BTreeMap<u32, u64>) -> f64 {
    let spans: u64 = traces.iter().map(|(spans, traces)| u64::from(*spans) * traces).sum();
    spans as f64 / traces.values().sum::<u64>() as f64
}
