//! Spans by service and operation, with the distribution of their durations.
//!
//! Names come from outside, so their number is bounded: what comes after the first few hundred is counted under
//! [`OTHER`]. The store keeps every name as it came.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use hdrhistogram::Histogram;
use unladen_ledger::summary;

use crate::buffers::same;

/// Name under which services and operations beyond the limits are counted.
pub(crate) const OTHER: &str = "(other)";
/// Services told apart.
const MAX_SERVICES: usize = 256;
/// Operations told apart, over all services: each has a histogram of up to 300 KiB.
const MAX_OPERATIONS: usize = 512;
/// Bytes of a name that tell it from others.
const MAX_NAME: usize = 1_024;
/// Durations of an operation that are taken at once.
const MAX_PENDING: usize = 64;
/// Durations are exact to three digits.
const DIGITS: u8 = 3;

/// Spans by service and operation.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    services: Names,
    operations: Vec<Operation>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The one counted last.
    last: u32,
}

/// Names, each with a number; the last one is looked at first.
#[derive(Debug, Default)]
struct Names {
    names: Vec<Box<[u8]>>,
    last: usize,
}

#[derive(Debug)]
struct Operation {
    service: u32,
    name: Box<[u8]>,
    spans: u64,
    of_load: u64,
    /// The one that was counted after this the last time.
    next: u32,
    durations: Option<Histogram<u32>>,
    /// Durations that the histogram has yet to take, ns: it is larger than what is at hand of the memory, and to take
    /// many at once costs little more than to take one.
    pending: Vec<u64>,
}

impl Operation {
    #[inline(never)]
    fn settle(&mut self) {
        for duration in self.pending.drain(..) {
            if let Some(durations) = &mut self.durations {
                // It grows as needed, so no duration is out of range.
                let _ = durations.record(duration);
            }
        }
    }
}

impl Names {
    fn number(&mut self, name: &[u8]) -> u32 {
        if self.names.get(self.last).is_none_or(|last| !same(last, name)) {
            self.last = self.find(name);
        }
        self.last as u32
    }

    fn find(&mut self, name: &[u8]) -> usize {
        if let Some(number) = self.names.iter().position(|known| **known == *name) {
            return number;
        }
        if self.names.len() > MAX_SERVICES {
            // The last one is `OTHER`.
            return MAX_SERVICES;
        }
        self.names.push(if self.names.len() == MAX_SERVICES { OTHER.as_bytes() } else { name }.into());
        self.names.len() - 1
    }
}

impl Operations {
    /// Number of a service.
    #[inline]
    pub(crate) fn number(&mut self, service: &[u8]) -> u32 {
        self.services.number(head(service))
    }

    /// Counts one span of a service by its number.
    #[inline]
    pub(crate) fn count(&mut self, service: u32, operation: &[u8], duration_ns: i64, is_of_load: bool) {
        let operation = head(operation);
        // What follows what is mostly the same: so names are compared, and hashed only if they are others.
        let guess = self.operations.get(self.last as usize).map_or(0, |last| last.next);
        let number = if self.is(guess, service, operation) {
            guess
        } else {
            let number = self.find(service, operation);
            let number = number.unwrap_or_else(|| self.add(service, operation));
            if let Some(last) = self.operations.get_mut(self.last as usize) {
                last.next = number;
            }
            number
        };
        self.last = number;
        let operation = &mut self.operations[number as usize];
        operation.spans += 1;
        operation.of_load += u64::from(is_of_load);
        // A clock that ran backwards says nothing about the duration; the span still counts.
        operation.pending.push(u64::try_from(duration_ns).unwrap_or(0));
        if operation.pending.len() >= MAX_PENDING {
            operation.settle();
        }
    }

    #[inline]
    fn find(&self, service: u32, operation: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one((service, operation));
        self.table.find(hash, |number| self.is(*number, service, operation)).copied()
    }

    #[inline]
    fn is(&self, number: u32, service: u32, operation: &[u8]) -> bool {
        let known = self.operations.get(number as usize);
        known.is_some_and(|known| known.service == service && same(&known.name, operation))
    }

    fn add(&mut self, service: u32, operation: &[u8]) -> u32 {
        let name = if self.operations.len() < MAX_OPERATIONS { operation } else { OTHER.as_bytes() };
        if let Some(number) = self.find(service, name) {
            return number;
        }
        let number = self.operations.len() as u32;
        let durations = Histogram::new(DIGITS).ok();
        let (name, pending) = (name.into(), Vec::with_capacity(MAX_PENDING));
        self.operations.push(Operation { service, name, spans: 0, of_load: 0, next: number, durations, pending });
        let hash = |number: &u32| {
            let known = &self.operations[*number as usize];
            self.hasher.hash_one((known.service, &*known.name))
        };
        self.table.insert_unique(hash(&number), number, hash);
        number
    }

    /// Distinct spans by service.
    pub(crate) fn by_service(&self) -> BTreeMap<String, u64> {
        let mut spans = BTreeMap::new();
        for operation in &self.operations {
            *spans.entry(self.service(operation)).or_insert(0) += operation.spans;
        }
        spans
    }

    fn service(&self, operation: &Operation) -> String {
        text(&self.services.names[operation.service as usize])
    }

    /// Every operation, ordered by service and name.
    pub(crate) fn list(&mut self) -> Vec<summary::Operation> {
        self.operations.iter_mut().for_each(Operation::settle);
        let mut list: Vec<summary::Operation> = self
            .operations
            .iter()
            .map(|operation| {
                let quantile = |q| operation.durations.as_ref().map_or(0, |all| all.value_at_quantile(q)) as f64 / 1e3;
                summary::Operation {
                    service: self.service(operation),
                    operation: text(&operation.name),
                    spans: operation.spans,
                    of_load: operation.of_load,
                    p50_us: quantile(0.5),
                    p90_us: quantile(0.9),
                    p99_us: quantile(0.99),
                }
            })
            .collect();
        list.sort_by(|a, b| (&a.service, &a.operation).cmp(&(&b.service, &b.operation)));
        list
    }
}

/// What is told apart of a name.
fn head(name: &[u8]) -> &[u8] {
    &name[..name.len().min(MAX_NAME)]
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unladen_decode::span::{Source, UNKNOWN_SERVICE};

    fn count(operations: &mut Operations, service: &[u8], operation: &[u8], duration_ns: i64, is_of_load: bool) {
        let service = operations.number(Source { service, instance: None }.service());
        operations.count(service, operation, duration_ns, is_of_load);
    }

    #[test]
    fn durations_by_operation() {
        let mut operations = Operations::default();
        for duration in 1..=1000 {
            count(&mut operations, b"shop", b"buy", duration * 1_000, true);
        }
        count(&mut operations, b"shop", b"look", -5, true);
        count(&mut operations, b"", b"look", i64::MAX, true);
        let by_service = BTreeMap::from([("shop".into(), 1_001), (UNKNOWN_SERVICE.into(), 1)]);
        assert_eq!(operations.by_service(), by_service);
        let list = operations.list();
        assert_eq!(list.len(), 3);
        assert_eq!((list[0].operation.as_str(), list[0].spans), ("buy", 1_000));
        assert!((list[0].p50_us / 500.0 - 1.0).abs() < 1e-3, "{}", list[0].p50_us);
        assert!((list[0].p99_us / 990.0 - 1.0).abs() < 1e-3, "{}", list[0].p99_us);
        assert_eq!((list[1].operation.as_str(), list[1].p50_us), ("look", 0.0));
    }

    #[test]
    fn long_names_are_cut() {
        let mut operations = Operations::default();
        let name = vec![b'x'; 1 << 20];
        for _ in 0..2 {
            count(&mut operations, &name, &name, 1, true);
        }
        let list = operations.list();
        assert_eq!((list.len(), list[0].spans, list[0].service.len(), list[0].operation.len()), (1, 2, 1_024, 1_024));
    }

    #[test]
    fn names_without_end_are_bounded() {
        let mut operations = Operations::default();
        for number in 0..2_000 {
            count(&mut operations, b"shop", format!("GET /order/{number}").as_bytes(), 1, true);
            count(&mut operations, format!("service-{number}").as_bytes(), b"op", 1, true);
        }
        let list = operations.list();
        // Each service may add its own `(other)` to the limit.
        assert!(list.len() <= MAX_OPERATIONS + MAX_SERVICES + 1, "{}", list.len());
        assert_eq!(list.iter().map(|operation| operation.spans).sum::<u64>(), 4_000, "all spans are booked somewhere");
        assert_eq!(operations.by_service().values().sum::<u64>(), 4_000);
        assert_eq!(operations.by_service()[OTHER], 2_000 - (MAX_SERVICES as u64 - 1));
    }
}
