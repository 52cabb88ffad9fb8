//! What all parsers share: a run of another tool, and what can be wrong with its file.

use std::collections::BTreeMap;

use indexmap::IndexMap;

/// What a parser found wrong, before it is known in which file.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    /// Line, from 1, where it is known.
    pub(crate) line: Option<u64>,
    /// What is wrong and what to do.
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }
}

/// One run of another tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ForeignRun {
    /// Numbers by the metric's name, in the metric's unit; unknown names are kept as they are.
    pub(crate) numbers: BTreeMap<String, f64>,
    /// Requests behind them.
    pub(crate) requests: Option<u64>,
    /// Most requests that could be under way at once.
    pub(crate) concurrency: Option<f64>,
}

impl ForeignRun {
    pub(crate) fn put(&mut self, metric: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.numbers.insert(metric.to_owned(), value);
        }
    }
}

/// Counts by key, in the order of first appearance.
pub(crate) fn tally<'a>(keys: impl Iterator<Item = &'a str>) -> IndexMap<&'a str, u64> {
    let mut counts = IndexMap::new();
    for key in keys {
        *counts.entry(key).or_insert(0) += 1;
    }
    counts
}
