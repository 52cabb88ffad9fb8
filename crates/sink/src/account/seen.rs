//! Which spans have been seen, exactly, and therefore how many distinct ones each request and trace has.
//!
//! Spans of the load are kept by request in pages of sixteen neighbours: requests of the same moment arrive together,
//! so the few pages at work stay in the CPU's cache, and a span costs nine bytes. All others are kept by trace id.

use std::collections::{HashMap, HashSet};

use crate::requests::run_lengths;

/// Requests in a page: 2 to the power of this.
const PAGE_BITS: u32 = 4;
/// Spans that a page or trace may have before they are hashed instead of searched.
const CROWD: usize = 1_024;

/// Spans seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pages: HashMap<u64, Page>,
    /// Spans of pages that are full: hashed by request index and span id.
    crowd: HashSet<(u64, [u8; 8])>,
    traces: HashMap<[u8; 16], Trace>,
}

/// Sixteen neighbouring requests.
#[derive(Debug, Default)]
struct Page {
    /// Spans of each request.
    counts: [u32; 1 << PAGE_BITS],
    /// Position of the request within the page, span by span.
    requests: Vec<u8>,
    /// Span ids, in the same order.
    spans: Vec<[u8; 8]>,
}

#[derive(Debug)]
enum Trace {
    Few(Vec<[u8; 8]>),
    Many(HashSet<[u8; 8]>),
}

impl Seen {
    /// Notes a span of a request of the load; false if it was there before.
    pub(crate) fn of_request(&mut self, index: u64, span_id: [u8; 8]) -> bool {
        let page = self.pages.entry(index >> PAGE_BITS).or_default();
        let position = (index & ((1 << PAGE_BITS) - 1)) as u8;
        let known = page.spans.iter().zip(&page.requests).any(|(span, at)| *span == span_id && *at == position);
        if known {
            return false;
        }
        if page.spans.len() < CROWD {
            page.requests.push(position);
            page.spans.push(span_id);
        } else if !self.crowd.insert((index, span_id)) {
            return false;
        }
        let count = &mut page.counts[usize::from(position)];
        *count = count.saturating_add(1);
        true
    }

    /// Notes a span of any other trace; false if it was there before.
    pub(crate) fn of_trace(&mut self, trace_id: [u8; 16], span_id: [u8; 8]) -> bool {
        let trace = self.traces.entry(trace_id).or_insert_with(|| Trace::Few(Vec::new()));
        match trace {
            Trace::Few(spans) if spans.contains(&span_id) => false,
            Trace::Few(spans) if spans.len() < CROWD => {
                spans.push(span_id);
                true
            }
            Trace::Few(spans) => {
                let mut many: HashSet<_> = spans.drain(..).collect();
                many.insert(span_id);
                *trace = Trace::Many(many);
                true
            }
            Trace::Many(spans) => spans.insert(span_id),
        }
    }

    /// Distinct traces.
    pub(crate) fn traces(&self) -> u64 {
        let of_requests = self.pages.values().flat_map(|page| page.counts).filter(|count| *count > 0).count();
        (of_requests + self.traces.len()) as u64
    }

    /// Run-length encoding of the distinct spans of every request: see [`run_lengths`].
    pub(crate) fn spans_by_request(&self) -> Vec<(u32, u64)> {
        let mut pages: Vec<_> = self.pages.iter().collect();
        pages.sort_unstable_by_key(|(number, _)| **number);
        run_lengths(pages.into_iter().flat_map(|(number, page)| {
            let first = number << PAGE_BITS;
            (first..).zip(page.counts).filter(|(_, count)| *count > 0)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::requests::MAX_INDEX;

    proptest! {
        /// Against a plain set, with few enough ids that duplicates and neighbours are frequent.
        #[test]
        fn agrees_with_a_set(spans in prop::collection::vec((0_u64..40, 0_u64..6, any::<bool>()), 0..400)) {
            let mut seen = Seen::default();
            let mut set = BTreeSet::new();
            let mut counts = BTreeMap::new();
            for (index, span, tied) in spans {
                let new = set.insert((index, span, tied));
                let span_id = span.to_be_bytes();
                if tied {
                    prop_assert_eq!(seen.of_request(index, span_id), new);
                    *counts.entry(index).or_insert(0) += u32::from(new);
                } else {
                    prop_assert_eq!(seen.of_trace(u128::from(index).to_be_bytes(), span_id), new);
                }
            }
            prop_assert_eq!(seen.spans_by_request(), run_lengths(counts));
            let traces: BTreeSet<_> = set.iter().map(|(index, _, tied)| (*index, *tied)).collect();
            prop_assert_eq!(seen.traces(), traces.len() as u64);
        }
    }

    #[test]
    fn crowded_requests_and_traces_stay_exact() {
        let mut seen = Seen::default();
        for pass in 0..2 {
            for span in 0..5_000_u64 {
                assert_eq!(seen.of_request(7, span.to_be_bytes()), pass == 0);
                assert_eq!(seen.of_trace([7; 16], span.to_be_bytes()), pass == 0);
            }
        }
        assert!(seen.of_request(6, 1_u64.to_be_bytes()), "a neighbour in the same page is another request");
        assert_eq!(seen.spans_by_request(), [(0, 6), (1, 1), (5_000, 1)]);
    }

    #[test]
    fn a_huge_index_costs_one_page() {
        let mut seen = Seen::default();
        assert!(seen.of_request(MAX_INDEX, [1; 8]));
        assert_eq!(seen.pages.len(), 1);
        assert_eq!(seen.spans_by_request(), [(0, MAX_INDEX), (1, 1)]);
    }
}
