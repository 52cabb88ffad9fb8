//! One thread's part of a second: what the rows of an outcome and the live view are added up from.

use hdrhistogram::Histogram;

use crate::error::LoadError;
use crate::named::NamedParts;
use crate::outcome::Second;

/// One thread's part of a second.
#[derive(Debug, Clone)]
pub(crate) struct SecondPart {
    /// The counts; `first_index` is `u64::MAX` if nothing was due.
    pub(crate) row: Second,
    /// Latencies of the well answered requests, nanoseconds.
    pub(crate) latency: Histogram<u32>,
    /// The same by name.
    pub(crate) named: NamedParts,
}

impl SecondPart {
    /// A second in which nothing has happened yet.
    pub(crate) fn new(second: u32) -> Result<Self, LoadError> {
        let latency = Histogram::new_with_bounds(1 << 7, 1 << 42, 2)
            .map_err(|error| LoadError::System { what: "make a histogram", source: std::io::Error::other(error) })?;
        Ok(Self {
            row: Second { second, first_index: u64::MAX, ..Second::default() },
            latency,
            named: NamedParts::default(),
        })
    }

    /// A copy for the live view, without the names.
    pub(crate) fn live(&self) -> Self {
        Self { row: self.row.clone(), latency: self.latency.clone(), named: NamedParts::default() }
    }

    /// Adds another thread's part of the same second.
    pub(crate) fn add(&mut self, other: &Self) {
        self.row.first_index = self.row.first_index.min(other.row.first_index);
        self.row.sent += other.row.sent;
        self.row.answered += other.row.answered;
        self.row.sampled += other.row.sampled;
        self.row.errors += other.row.errors;
        self.named.add(&other.named);
        let added = self.latency.add(&other.latency);
        debug_assert!(added.is_ok(), "histograms of seconds have the same bounds");
    }
}
