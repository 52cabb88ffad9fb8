//! Requests of one name in one second, and their rows. A row covers as many seconds as it takes for all rows of a load to stay
//! within a bound, so that memory does not grow with the length of the load.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::histogram;
use crate::outcome::NamedSecond;

/// Rows of all names together at most.
const MAX_ROWS: u64 = 7_200;

/// The requests of one name that were due in one second.
#[derive(Debug, Clone)]
pub(crate) struct NamedPart {
    requests: u64,
    errors: u64,
    /// Of the well answered ones, nanoseconds; it grows to what it needs.
    latency: Option<Histogram<u32>>,
}

impl NamedPart {
    /// None as yet.
    fn new() -> Self {
        // Two significant digits, from 128 ns; the bounds are good, so there always is one.
        let latency = Histogram::new_with_bounds(1 << 7, 1 << 20, 2).ok().map(|mut latency| {
            latency.auto(true);
            latency
        });
        Self { requests: 0, errors: 0, latency }
    }

    /// Adds another thread's or second's.
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.errors += other.errors;
        if let (Some(sum), Some(part)) = (&mut self.latency, &other.latency) {
            histogram::add(sum, part);
        }
    }
}

/// The names of one second, by their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedParts(Vec<Option<Box<NamedPart>>>);

impl NamedParts {
    /// The part of a name.
    fn part(&mut self, name: usize) -> &mut NamedPart {
        if self.0.len() <= name {
            self.0.resize_with(name + 1, || None);
        }
        self.0[name].get_or_insert_with(|| Box::new(NamedPart::new()))
    }

    /// A request has been answered well after so many nanoseconds.
    pub(crate) fn answered(&mut self, name: usize, latency: u64) {
        let part = self.part(name);
        part.requests += 1;
        if let Some(histogram) = &mut part.latency {
            // It grows to hold the value (saturating would not); beyond an hour that would only take memory.
            let recorded = histogram.record(latency.min(1 << 42));
            debug_assert!(recorded.is_ok(), "a histogram that grows takes every value");
        }
    }

    /// A request has failed.
    pub(crate) fn failed(&mut self, name: usize) {
        self.part(name).errors += 1;
    }

    /// Adds another thread's or second's.
    pub(crate) fn add(&mut self, other: &Self) {
        for (name, part) in other.0.iter().enumerate() {
            if let Some(part) = part {
                self.part(name).add(part);
            }
        }
    }
}

/// Turns seconds into rows as they close.
#[derive(Debug)]
pub(crate) struct NamedRows {
    /// Seconds that a row covers.
    every: u32,
    /// Rows that may still change, by their number.
    open: BTreeMap<u32, NamedParts>,
    rows: Vec<Vec<NamedSecond>>,
}

impl NamedRows {
    /// For a load of so many seconds with so many names.
    pub(crate) fn new(names: usize, seconds: u64) -> Self {
        let every = u32::try_from((seconds * names as u64).div_ceil(MAX_ROWS)).unwrap_or(u32::MAX).max(1);
        Self { every, open: BTreeMap::new(), rows: vec![Vec::new(); names] }
    }

    /// Takes in a second that can no longer change. Seconds come in order.
    pub(crate) fn closed(&mut self, second: u32, parts: &NamedParts) {
        if self.rows.is_empty() {
            return;
        }
        let number = second / self.every;
        self.open.entry(number).or_default().add(parts);
        while let Some(entry) = self.open.first_entry()
            && *entry.key() < number
        {
            let (number, parts) = entry.remove_entry();
            self.put(number, &parts);
        }
    }

    /// Writes the rows of an interval.
    fn put(&mut self, number: u32, parts: &NamedParts) {
        for (rows, part) in self.rows.iter_mut().zip(&parts.0) {
            let Some(part) = part else { continue };
            let found = part.latency.as_ref().map(histogram::quantiles).unwrap_or_default();
            rows.push(NamedSecond {
                second: number * self.every,
                seconds: self.every,
                requests: part.requests,
                errors: part.errors,
                p50_us: found.p50,
                p99_us: found.p99,
                max_us: found.max,
            });
        }
    }

    /// All rows, by name.
    pub(crate) fn finish(mut self) -> Vec<Vec<NamedSecond>> {
        for (number, parts) in std::mem::take(&mut self.open) {
            self.put(number, &parts);
        }
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(requests: &[(usize, u64)]) -> NamedParts {
        let mut parts = NamedParts::default();
        for &(name, latency) in requests {
            parts.answered(name, latency);
        }
        parts
    }

    #[test]
    fn a_row_for_every_name_and_second_in_which_there_was_any() {
        let mut rows = NamedRows::new(3, 60);
        let mut first = parts(&[(0, 1_000_000), (2, 5_000_000)]);
        first.add(&parts(&[(0, 3_000_000)]));
        first.failed(2);
        rows.closed(0, &first);
        rows.closed(1, &NamedParts::default());
        rows.closed(2, &parts(&[(0, u64::MAX)]));
        let rows = rows.finish();
        let seen: Vec<Vec<_>> = rows
            .iter()
            .map(|rows| rows.iter().map(|row| (row.second, row.seconds, row.requests, row.errors)).collect())
            .collect();
        assert_eq!(seen, [vec![(0, 1, 2, 0), (2, 1, 1, 0)], vec![], vec![(0, 1, 1, 1)]]);
        // Two significant digits.
        assert!((rows[0][0].p50_us / 1_000.0 - 1.0f64).abs() < 0.01, "{}", rows[0][0].p50_us);
        assert!((rows[0][0].max_us / 3_000.0 - 1.0f64).abs() < 0.01, "{}", rows[0][0].max_us);
    }

    #[test]
    fn long_loads_have_longer_rows_with_the_quantiles_of_all_their_requests() {
        let hours = 3 * 3600;
        let mut rows = NamedRows::new(80, hours);
        for second in 0..hours as u32 {
            rows.closed(second, &parts(&[(0, 1_000_000), (79, u64::from(second % 100) * 1_000_000)]));
            assert!(rows.open.len() <= 1, "{}", rows.open.len());
        }
        let rows = rows.finish();
        assert_eq!(rows.iter().map(Vec::len).sum::<usize>(), 2 * 90);
        let row = &rows[79][0];
        assert_eq!((row.seconds, row.requests), (120, 120));
        assert!((row.p99_us / 99_000.0 - 1.0f64).abs() < 0.03, "{}", row.p99_us);
        assert_eq!(rows[0].iter().map(|row| row.requests).sum::<u64>(), hours);
    }
}
