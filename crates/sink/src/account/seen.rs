//! Which spans have been seen, and therefore how many distinct ones each request and trace has.
//!
//! A span is known by 64 bits of its ids, mixed so that two spans of one trace never have the same; two of different
//! traces do once in 10¹² runs of five thousand spans, and less than once in a million runs of five million. That takes
//! 9 to 14 bytes a span, and the price of a look is that of the memory: see [`Seen::foresee`].

use std::collections::HashMap;

use crate::requests::{mix, run_lengths};

/// Requests whose counts lie side by side: 2 to the power of this.
const PAGE_BITS: u32 = 10;
/// Parts of the table that grow on their own, so that growing never takes much memory at once.
const SHARD_BITS: u32 = 8;
/// Entries of a part at first.
const SHARD: usize = 64;
/// Salt of spans of a request, of spans of any other trace, of such traces themselves.
const OF_REQUEST: u64 = 0x6c62_272e_07bb_0142;
const OF_TRACE: u64 = 0x62b8_2175_6295_c58d;
const TRACE: u64 = 0x1000_0000_01b3_cbf3;

/// Spans seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    marks: Marks,
    /// Spans of each request, by the upper bits of its index.
    counts: HashMap<u64, Box<[u32; 1 << PAGE_BITS]>>,
    /// Traces that are of no request.
    traces: u64,
    last_trace: [u8; 16],
}

impl Seen {
    /// Fetches what will be looked at for these spans. Looks one after the other would each wait for the memory; these
    /// need not, as none depends on another.
    pub(crate) fn foresee<'a>(&self, spans: impl Iterator<Item = (Option<u64>, &'a [u8; 16], [u8; 8])>) {
        let touched = spans.fold(0, |touched, (request, trace_id, span_id)| {
            touched ^ self.marks.touch(mark(request, trace_id, span_id))
        });
        std::hint::black_box(touched);
    }

    /// Notes a span of a request of the load; false if it was there before.
    pub(crate) fn of_request(&mut self, index: u64, span_id: [u8; 8]) -> bool {
        if !self.marks.insert(mark(Some(index), &[0; 16], span_id)) {
            return false;
        }
        let page = self.counts.entry(index >> PAGE_BITS).or_insert_with(|| Box::new([0; 1 << PAGE_BITS]));
        let count = &mut page[(index & ((1 << PAGE_BITS) - 1)) as usize];
        *count = count.saturating_add(1);
        true
    }

    /// Notes a span of any other trace; false if it was there before.
    pub(crate) fn of_trace(&mut self, trace_id: [u8; 16], span_id: [u8; 8]) -> bool {
        let is_new = self.marks.insert(mark(None, &trace_id, span_id));
        // Spans of a trace often follow each other.
        if is_new && (self.traces == 0 || self.last_trace != trace_id) {
            self.last_trace = trace_id;
            self.traces += u64::from(self.marks.insert(trace_mark(TRACE, &trace_id)));
        }
        is_new
    }

    /// Distinct traces.
    pub(crate) fn traces(&self) -> u64 {
        let of_requests = self.counts.values().flat_map(|page| page.iter()).filter(|count| **count > 0).count();
        of_requests as u64 + self.traces
    }

    /// Run-length encoding of the distinct spans of every request: see [`run_lengths`].
    pub(crate) fn spans_by_request(&self) -> Vec<(u32, u64)> {
        let mut pages: Vec<_> = self.counts.iter().collect();
        pages.sort_unstable_by_key(|(number, _)| **number);
        run_lengths(pages.into_iter().flat_map(|(number, page)| {
            let first = number << PAGE_BITS;
            (first..).zip(page.iter().copied()).filter(|(_, count)| *count > 0)
        }))
    }
}

/// For one trace or request, a bijection of the span id.
#[inline]
fn mark(request: Option<u64>, trace_id: &[u8; 16], span_id: [u8; 8]) -> u64 {
    let trace = match request {
        Some(index) => mix(index ^ OF_REQUEST),
        None => trace_mark(OF_TRACE, trace_id),
    };
    mix(u64::from_le_bytes(span_id) ^ trace)
}

#[inline]
fn trace_mark(salt: u64, trace_id: &[u8; 16]) -> u64 {
    let id = u128::from_be_bytes(*trace_id);
    mix(mix((id >> 64) as u64 ^ salt) ^ id as u64)
}

/// A set of random numbers of 64 bits.
#[derive(Debug)]
struct Marks {
    shards: Vec<Shard>,
}

#[derive(Debug)]
struct Shard {
    /// 0 is an empty slot.
    slots: Vec<u64>,
    used: usize,
}

impl Default for Marks {
    fn default() -> Self {
        Self { shards: (0..1 << SHARD_BITS).map(|_| Shard { slots: vec![0; SHARD], used: 0 }).collect() }
    }
}

impl Marks {
    #[inline]
    fn touch(&self, mark: u64) -> u64 {
        let slots = &self.shards[(mark >> (64 - SHARD_BITS)) as usize].slots;
        slots[slot(mark, slots.len())]
    }

    /// False if it was there before.
    #[inline]
    fn insert(&mut self, mark: u64) -> bool {
        let mark = mark.max(1);
        let shard = &mut self.shards[(mark >> (64 - SHARD_BITS)) as usize];
        let length = shard.slots.len();
        let mut at = slot(mark, length);
        loop {
            match shard.slots[at] {
                0 => break,
                other if other == mark => return false,
                _ => at = if at + 1 == length { 0 } else { at + 1 },
            }
        }
        shard.slots[at] = mark;
        shard.used += 1;
        if shard.used * 8 > length * 7 {
            shard.grow();
        }
        true
    }
}

impl Shard {
    fn grow(&mut self) {
        let length = self.slots.len() * 3 / 2;
        let old = std::mem::replace(&mut self.slots, vec![0; length]);
        for mark in old.into_iter().filter(|mark| *mark != 0) {
            let mut at = slot(mark, length);
            while self.slots[at] != 0 {
                at = if at + 1 == length { 0 } else { at + 1 };
            }
            self.slots[at] = mark;
        }
    }
}

/// Where a mark belongs among so many slots: the bits that do not choose the shard, scaled.
#[inline]
fn slot(mark: u64, length: usize) -> usize {
    (u128::from(mark << SHARD_BITS) * length as u128 >> 64) as usize
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
        assert_eq!(seen.counts.len(), 1);
        assert_eq!(seen.spans_by_request(), [(0, MAX_INDEX), (1, 1)]);
    }
}
