//! What agents report of their own losses: by service and stage.

use std::collections::{BTreeMap, HashMap};

use unladen_decode::loss::{LossCount, Stage};
use unladen_ledger::summary;

/// Counters kept; agents that report more are not counted any further.
const MAX_COUNTERS: usize = 10_000;

/// Service, instance, metric and series.
type Counter = (Box<[u8]>, Box<[u8]>, Box<[u8]>, u64);

/// Losses reported so far.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    counters: HashMap<(Stage, Counter), u64>,
}

impl Losses {
    /// Adds a report.
    pub(crate) fn add(&mut self, loss: &LossCount<'_>) {
        let LossCount { source, stage, metric, series, spans, is_cumulative } = loss;
        let counter = (source.service().into(), source.instance.unwrap_or_default().into(), (*metric).into(), *series);
        let key = (*stage, counter);
        if self.counters.len() >= MAX_COUNTERS && !self.counters.contains_key(&key) {
            return;
        }
        let count = self.counters.entry(key).or_insert(0);
        *count = if *is_cumulative { (*count).max(*spans) } else { count.saturating_add(*spans) };
    }

    /// By service and stage. A loss that an agent reports under two names counts once.
    pub(crate) fn list(&self) -> Vec<summary::ReportedLoss> {
        let mut by_metric: BTreeMap<(&[u8], Stage, &[u8]), u64> = BTreeMap::new();
        for ((stage, (service, _, metric, _)), spans) in &self.counters {
            let sum = by_metric.entry((service, *stage, metric)).or_insert(0);
            *sum = sum.saturating_add(*spans);
        }
        let mut by_stage: BTreeMap<(&[u8], Stage), u64> = BTreeMap::new();
        for ((service, stage, _), spans) in by_metric {
            let most = by_stage.entry((service, stage)).or_insert(0);
            *most = spans.max(*most);
        }
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        by_stage
            .into_iter()
            .map(|((service, stage), spans)| summary::ReportedLoss {
                service: text(service),
                stage: stage.name().into(),
                spans,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unladen_decode::span::Source;

    fn loss(instance: &'static [u8], metric: &'static [u8], spans: u64, is_cumulative: bool) -> LossCount<'static> {
        let source = Source { service: b"shop", instance: Some(instance) };
        LossCount { source, stage: Stage::Queue, metric, series: 1, spans, is_cumulative }
    }

    fn spans(all: &[LossCount<'_>]) -> u64 {
        let mut losses = Losses::default();
        all.iter().for_each(|loss| losses.add(loss));
        let list = losses.list();
        assert_eq!((list.len(), list[0].service.as_str(), list[0].stage.as_str()), (1, "shop", "queue"));
        list[0].spans
    }

    #[test]
    fn counters_grow_or_add_up() {
        assert_eq!(spans(&[loss(b"1", b"new", 5, true), loss(b"1", b"new", 9, true)]), 9);
        assert_eq!(spans(&[loss(b"1", b"new", 5, false), loss(b"1", b"new", 9, false)]), 14);
        assert_eq!(spans(&[loss(b"1", b"new", 5, true), loss(b"2", b"new", 9, true)]), 14, "two instances");
        assert_eq!(spans(&[loss(b"1", b"new", 5, true), loss(b"1", b"old", 5, true)]), 5, "the same under two names");
        let most = [loss(b"1", b"new", u64::MAX, true), loss(b"2", b"new", u64::MAX, true)];
        assert_eq!(spans(&most), u64::MAX, "nonsense does not wrap around");
    }
}
