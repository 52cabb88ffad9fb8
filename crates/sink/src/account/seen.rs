//! Which spans have been seen, and therefore how many distinct ones each request and trace has.
//!
//! A span is known by 64 bits: 20 of its trace and 44 of itself. Two different ones have the same 64 less than twice
//! in a million runs of five million spans in traces of three, once in seventy thousand if the traces have a hundred. That takes
//! about 11 bytes a span, and the price of a look is that of the memory: so spans of one trace lie side by side, and what
//! a batch needs is fetched together, see [`Seen::fetch`].

use std::collections::HashMap;

use crate::requests::{mix, run_lengths};

/// Requests whose counts lie side by side: 2 to the power of this.
const PAGE_BITS: u32 = 10;
/// Parts of the table that grow on their own, so that growing never takes much memory at once.
const SHARD_BITS: u32 = 8;
/// Buckets that are allocated together. All pieces are of one size, so that what one part gives back when it grows is
/// what the next needs; blocks that grow with the parts leave holes as large as everything else.
const PIECE: usize = 64;
/// Bits of a mark that are of the trace.
const TRACE_BITS: u32 = 20;
/// Buckets that are looked through before a mark goes elsewhere: a trace with very many spans would fill those of others.
const PROBES: usize = 4;
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
    last_trace: u64,
}

impl Seen {
    /// Mark of a span.
    #[inline]
    pub(crate) fn mark(trace: TraceMarks, span_id: [u8; 8]) -> u64 {
        trace.with(mix(u64::from_le_bytes(span_id) ^ trace.salt))
    }

    /// Fetches what spans of these traces lie in. Looks one after the other would each wait for the memory; these need not,
    /// as none depends on another.
    pub(crate) fn fetch<'a>(&self, traces: impl Iterator<Item = &'a TraceMarks>) {
        std::hint::black_box(traces.fold(0, |all, trace| all ^ self.marks.touch(trace.salt)));
    }

    /// Notes a span of a request of the load; false if it was there before. `mark` is from [`Seen::mark`].
    #[inline]
    pub(crate) fn of_request(&mut self, index: u64, mark: u64) -> bool {
        if !self.marks.insert(mark) {
            return false;
        }
        let page = self.counts.entry(index >> PAGE_BITS).or_insert_with(|| Box::new([0; 1 << PAGE_BITS]));
        let count = &mut page[(index & ((1 << PAGE_BITS) - 1)) as usize];
        *count = count.saturating_add(1);
        true
    }

    /// Notes a span of any other trace; false if it was there before.
    #[inline]
    pub(crate) fn of_trace(&mut self, trace: TraceMarks, mark: u64) -> bool {
        let trace = trace.with(mix(trace.salt ^ TRACE));
        let is_new = self.marks.insert(mark);
        // Spans of a trace often follow each other.
        if is_new && self.last_trace != trace {
            self.last_trace = trace;
            self.traces += u64::from(self.marks.insert(trace));
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

/// What the marks of a trace's spans have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceMarks {
    salt: u64,
}

impl TraceMarks {
    /// Of a trace, or of a request of the load.
    #[inline]
    pub(crate) fn of(request: Option<u64>, trace_id: &[u8; 16]) -> Self {
        if let Some(index) = request {
            return Self { salt: mix(index ^ OF_REQUEST) };
        }
        let id = u128::from_be_bytes(*trace_id);
        Self { salt: mix(mix((id >> 64) as u64 ^ OF_TRACE) ^ id as u64) }
    }

    /// A mark with the trace's bits in front.
    #[inline]
    fn with(self, own: u64) -> u64 {
        self.salt & !(u64::MAX >> TRACE_BITS) | own >> TRACE_BITS
    }
}

/// A set of random numbers of 64 bits: buckets the size of a cache line, in the order of the numbers.
#[derive(Debug)]
struct Marks {
    shards: Vec<Shard>,
}

#[derive(Debug)]
struct Shard {
    pieces: Vec<Box<[Bucket; PIECE]>>,
    used: usize,
}

/// Filled from the front; 0 is an empty slot. What does not fit goes into one of the next few, or after those into one far
/// away, see [`Probe`].
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket([u64; SLOTS]);

const SLOTS: usize = 8;

impl Default for Marks {
    fn default() -> Self {
        let shard = || Shard { pieces: pieces(1), used: 0 };
        Self { shards: (0..1 << SHARD_BITS).map(|_| shard()).collect() }
    }
}

impl Marks {
    #[inline]
    fn touch(&self, mark: u64) -> u64 {
        let shard = &self.shards[(mark >> (64 - SHARD_BITS)) as usize];
        let at = place(mark, shard.buckets());
        shard.pieces[at / PIECE][at % PIECE].0[0]
    }

    /// False if it was there before.
    #[inline]
    fn insert(&mut self, mark: u64) -> bool {
        let mark = mark.max(1);
        let shard = &mut self.shards[(mark >> (64 - SHARD_BITS)) as usize];
        if !shard.insert(mark) {
            return false;
        }
        shard.used += 1;
        if shard.used * 8 > shard.buckets() * SLOTS * 7 {
            shard.grow();
        }
        true
    }
}

impl Bucket {
    /// Whether a mark is in it, and how many are. Looks at all of it: where the first empty slot is cannot be foreseen, and
    /// to guess wrong costs more.
    #[inline]
    fn look(&self, mark: u64) -> (bool, usize) {
        self.0.iter().fold((false, 0), |(is_in, used), slot| (is_in | (*slot == mark), used + usize::from(*slot != 0)))
    }
}

/// The buckets where a mark may be, in their order: where the first with room is, it is or is not there at all.
struct Probe {
    mark: u64,
    at: usize,
    left: usize,
    length: usize,
}

impl Probe {
    #[inline]
    fn new(mark: u64, length: usize) -> Self {
        Self { mark, at: place(mark, length), left: PROBES, length }
    }

    /// On to the next.
    #[inline]
    fn next(&mut self) {
        self.left = self.left.wrapping_sub(1);
        self.at = match self.left {
            0 => place(mix(self.mark), self.length),
            _ if self.at + 1 == self.length => 0,
            _ => self.at + 1,
        };
    }
}

impl Shard {
    #[inline]
    fn buckets(&self) -> usize {
        self.pieces.len() * PIECE
    }

    #[inline]
    fn insert(&mut self, mark: u64) -> bool {
        let mut probe = Probe::new(mark, self.buckets());
        loop {
            let bucket = &mut self.pieces[probe.at / PIECE][probe.at % PIECE];
            let (is_in, used) = bucket.look(mark);
            if is_in {
                return false;
            }
            if let Some(slot) = bucket.0.get_mut(used) {
                *slot = mark;
                return true;
            }
            probe.next();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.pieces);
        self.pieces = pieces(old.len() + old.len().div_ceil(2));
        let length = self.buckets();
        let mut used = vec![0_u8; length];
        // They come in their order, so the new buckets fill up one after the other; each piece is given back as soon as it
        // is empty.
        for piece in old {
            for mark in piece.iter().flat_map(|bucket| bucket.0).filter(|mark| *mark != 0) {
                let mut probe = Probe::new(mark, length);
                while usize::from(used[probe.at]) == SLOTS {
                    probe.next();
                }
                self.pieces[probe.at / PIECE][probe.at % PIECE].0[usize::from(used[probe.at])] = mark;
                used[probe.at] += 1;
            }
        }
    }
}

fn pieces(count: usize) -> Vec<Box<[Bucket; PIECE]>> {
    (0..count).map(|_| Box::new([Bucket::default(); PIECE])).collect()
}

/// Where a mark belongs among so many buckets: the bits that do not choose the shard, scaled.
#[inline]
fn place(mark: u64, length: usize) -> usize {
    ((u128::from(mark << SHARD_BITS) * length as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::requests::MAX_INDEX;

    fn of_request(seen: &mut Seen, index: u64, span_id: [u8; 8]) -> bool {
        seen.of_request(index, Seen::mark(TraceMarks::of(Some(index), &[0; 16]), span_id))
    }

    fn of_trace(seen: &mut Seen, trace_id: [u8; 16], span_id: [u8; 8]) -> bool {
        let trace = TraceMarks::of(None, &trace_id);
        seen.fetch([trace].iter());
        seen.of_trace(trace, Seen::mark(trace, span_id))
    }

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
                    prop_assert_eq!(of_request(&mut seen, index, span_id), new);
                    *counts.entry(index).or_insert(0) += u32::from(new);
                } else {
                    prop_assert_eq!(of_trace(&mut seen, u128::from(index).to_be_bytes(), span_id), new);
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
                assert_eq!(of_request(&mut seen, 7, span.to_be_bytes()), pass == 0);
                assert_eq!(of_trace(&mut seen, [7; 16], span.to_be_bytes()), pass == 0);
            }
        }
        assert!(of_request(&mut seen, 6, 1_u64.to_be_bytes()), "a neighbour in the same page is another request");
        assert_eq!(seen.spans_by_request(), [(0, 6), (1, 1), (5_000, 1)]);
    }

    #[test]
    fn a_huge_index_costs_one_page() {
        let mut seen = Seen::default();
        assert!(of_request(&mut seen, MAX_INDEX, [1; 8]));
        assert_eq!(seen.counts.len(), 1);
        assert_eq!(seen.spans_by_request(), [(0, MAX_INDEX), (1, 1)]);
    }
}
