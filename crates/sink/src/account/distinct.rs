//! Which spans have been seen, and therefore how many distinct ones each request and trace has.
//!
//! A span is known by 64 bits of its ids, mixed so that two spans of one trace never have the same; two of different
//! traces do once in 10¹² runs of five thousand spans, and less than once in a million runs of five million. That takes
//! 9 to 14 bytes a span.
//!
//! Requests of the load come nearly in their order, so what is known of neighbours lies together and is at hand. Other
//! traces come in no order: to look for them takes as long as the memory does, see [`DistinctSpans::fetch`].

use std::collections::HashMap;

use unladen_ledger::summary::run_lengths;
use unladen_trace::mix;

/// Requests whose counts lie side by side: 2 to the power of this.
const PAGE_BITS: u32 = 10;
/// Pages that may still be incomplete when the next one begins, and one that is not.
const NEIGHBOURS: usize = 16;
/// Spans of a page that are foreseen: one crowded request must not make all that follow it large.
const MAX_RESERVED: usize = 16 << PAGE_BITS;
/// Parts of the table that grow on their own, so that growing never takes much memory at once.
const SHARD_BITS: u32 = 8;
/// Buckets that are allocated together. All pieces are of one size, so that what one part gives back when it grows is
/// what the next needs; blocks that grow with the parts leave holes as large as everything else.
const PIECE: usize = 64;
/// Salt of spans of a request, of spans of any other trace, of such traces themselves.
const OF_REQUEST: u64 = 0x6c62_272e_07bb_0142;
const OF_TRACE: u64 = 0x62b8_2175_6295_c58d;
const TRACE: u64 = 0x1000_0000_01b3_cbf3;

/// Spans seen.
#[derive(Debug, Default)]
pub(crate) struct DistinctSpans {
    /// Of requests.
    pages: Vec<Page>,
    /// Where the page of some requests is, by the upper bits of their indices.
    places: HashMap<u64, usize>,
    /// The page looked at last.
    last_page: usize,
    /// Of all other traces.
    marks: Marks,
    /// Traces that are of no request.
    traces: u64,
    last_trace: u64,
}

/// What is known of requests with neighbouring indices.
#[derive(Debug)]
struct Page {
    /// The upper bits of their indices.
    number: u64,
    /// Spans of each.
    counts: Box<[u32; 1 << PAGE_BITS]>,
    marks: Shard,
}

impl DistinctSpans {
    /// Marks of a span and, if it is of no request, of its trace; else the second is of no meaning.
    #[inline]
    pub(crate) fn marks(trace: TraceMarks, span_id: [u8; 8]) -> [u64; 2] {
        [mix(u64::from_le_bytes(span_id) ^ trace.salt), trace.mark]
    }

    /// Fetches what marks lie in. Looks one after the other would each wait for the memory; these need not, as none depends
    /// on another.
    pub(crate) fn fetch(&self, marks: impl Iterator<Item = u64>) {
        std::hint::black_box(marks.fold(0, |all, mark| all ^ self.marks.touch(mark)));
    }

    /// Notes a span of a request of the load; false if it was there before. `mark` is from [`DistinctSpans::marks`].
    #[inline]
    pub(crate) fn of_request(&mut self, index: u64, mark: u64) -> bool {
        let page = self.page(index >> PAGE_BITS);
        if !page.marks.add(mark.max(1)) {
            return false;
        }
        let count = &mut page.counts[(index & ((1 << PAGE_BITS) - 1)) as usize];
        *count = count.saturating_add(1);
        true
    }

    #[inline]
    fn page(&mut self, number: u64) -> &mut Page {
        if self.pages.get(self.last_page).is_none_or(|page| page.number != number) {
            self.last_page = *self.places.entry(number).or_insert_with(|| {
                // Most likely as many spans as its neighbours have, so it need not grow step by step.
                let used = self.pages.iter().rev().take(NEIGHBOURS).map(|page| page.marks.used).max();
                let marks = Shard::with_room_for(used.unwrap_or(0).min(MAX_RESERVED));
                self.pages.push(Page { number, counts: Box::new([0; 1 << PAGE_BITS]), marks });
                self.pages.len() - 1
            });
        }
        &mut self.pages[self.last_page]
    }

    /// Notes a span of any other trace; false if it was there before.
    #[inline]
    pub(crate) fn of_trace(&mut self, [span, trace]: [u64; 2]) -> bool {
        let is_new = self.marks.insert(span);
        // Spans of a trace often follow each other.
        if is_new && self.last_trace != trace {
            self.last_trace = trace;
            self.traces += u64::from(self.marks.insert(trace));
        }
        is_new
    }

    /// Distinct traces.
    pub(crate) fn traces(&self) -> u64 {
        let of_requests = self.pages.iter().flat_map(|page| &page.counts[..]).filter(|count| **count > 0).count();
        of_requests as u64 + self.traces
    }

    /// Run-length encoding of the distinct spans of every request: see [`run_lengths`].
    pub(crate) fn spans_by_request(&self) -> Vec<(u32, u64)> {
        let mut pages: Vec<_> = self.pages.iter().collect();
        pages.sort_unstable_by_key(|page| page.number);
        run_lengths(pages.into_iter().flat_map(|page| {
            let first = page.number << PAGE_BITS;
            (first..).zip(page.counts.iter().copied()).filter(|(_, count)| *count > 0)
        }))
    }
}

/// What spans of one trace share: a salt that makes [`DistinctSpans::marks`] a bijection of the span id, and the trace's own mark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceMarks {
    salt: u64,
    mark: u64,
}

impl TraceMarks {
    /// Of a trace, or of a request of the load.
    #[inline]
    pub(crate) fn of(request: Option<u64>, trace_id: &[u8; 16]) -> Self {
        if let Some(index) = request {
            let salt = mix(index ^ OF_REQUEST);
            return Self { salt, mark: salt };
        }
        let id = u128::from_be_bytes(*trace_id);
        let salt = mix(mix((id >> 64) as u64 ^ OF_TRACE) ^ id as u64);
        Self { salt, mark: mix(salt ^ TRACE) }
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

/// Filled from the front; 0 is an empty slot. What does not fit goes into the next one that has room.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket([u64; SLOTS]);

const SLOTS: usize = 8;

impl Default for Marks {
    fn default() -> Self {
        Self { shards: (0..1 << SHARD_BITS).map(|_| Shard::default()).collect() }
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
        self.shards[(mark >> (64 - SHARD_BITS)) as usize].add(mark)
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self { pieces: pieces(1), used: 0 }
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

impl Shard {
    /// Empty, with room for so many marks.
    fn with_room_for(marks: usize) -> Self {
        // As full as before it grows.
        let count = (marks * 8).div_ceil(PIECE * SLOTS * 7).max(1);
        Self { pieces: pieces(count), used: 0 }
    }

    #[inline]
    fn buckets(&self) -> usize {
        self.pieces.len() * PIECE
    }

    /// False if it was there before. Zero is no mark.
    #[inline]
    fn add(&mut self, mark: u64) -> bool {
        if !self.insert(mark) {
            return false;
        }
        self.used += 1;
        if self.used * 8 > self.buckets() * SLOTS * 7 {
            self.grow();
        }
        true
    }

    #[inline]
    fn insert(&mut self, mark: u64) -> bool {
        let mut at = place(mark, self.buckets());
        loop {
            let bucket = &mut self.pieces[at / PIECE][at % PIECE];
            let (is_in, used) = bucket.look(mark);
            if is_in {
                return false;
            }
            if let Some(slot) = bucket.0.get_mut(used) {
                *slot = mark;
                return true;
            }
            at = if at + 1 == self.buckets() { 0 } else { at + 1 };
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
                let mut at = place(mark, length);
                while usize::from(used[at]) == SLOTS {
                    at = if at + 1 == length { 0 } else { at + 1 };
                }
                self.pieces[at / PIECE][at % PIECE].0[usize::from(used[at])] = mark;
                used[at] += 1;
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
    use unladen_trace::MAX_INDEX;

    use super::*;

    fn of_request(distinct: &mut DistinctSpans, index: u64, span_id: [u8; 8]) -> bool {
        distinct.of_request(index, DistinctSpans::marks(TraceMarks::of(Some(index), &[0; 16]), span_id)[0])
    }

    fn of_trace(distinct: &mut DistinctSpans, trace_id: [u8; 16], span_id: [u8; 8]) -> bool {
        let marks = DistinctSpans::marks(TraceMarks::of(None, &trace_id), span_id);
        distinct.fetch(marks.into_iter());
        distinct.of_trace(marks)
    }

    proptest! {
        /// Against a plain set, with few enough ids that duplicates and neighbours are frequent.
        #[test]
        fn agrees_with_a_set(spans in prop::collection::vec((0_u64..40, 0_u64..6, any::<bool>()), 0..400)) {
            let mut distinct = DistinctSpans::default();
            let mut set = BTreeSet::new();
            let mut counts = BTreeMap::new();
            for (index, span, tied) in spans {
                let new = set.insert((index, span, tied));
                let span_id = span.to_be_bytes();
                if tied {
                    prop_assert_eq!(of_request(&mut distinct, index, span_id), new);
                    *counts.entry(index).or_insert(0) += u32::from(new);
                } else {
                    prop_assert_eq!(of_trace(&mut distinct, u128::from(index).to_be_bytes(), span_id), new);
                }
            }
            prop_assert_eq!(distinct.spans_by_request(), run_lengths(counts));
            let traces: BTreeSet<_> = set.iter().map(|(index, _, tied)| (*index, *tied)).collect();
            prop_assert_eq!(distinct.traces(), traces.len() as u64);
        }
    }

    #[test]
    fn crowded_requests_and_traces_stay_exact() {
        let mut distinct = DistinctSpans::default();
        for pass in 0..2 {
            for span in 0..5_000_u64 {
                assert_eq!(of_request(&mut distinct, 7, span.to_be_bytes()), pass == 0);
                assert_eq!(of_trace(&mut distinct, [7; 16], span.to_be_bytes()), pass == 0);
            }
        }
        assert!(of_request(&mut distinct, 6, 1_u64.to_be_bytes()), "a neighbour in the same page is another request");
        assert_eq!(distinct.spans_by_request(), [(0, 6), (1, 1), (5_000, 1)]);
    }

    #[test]
    fn pages_have_the_room_that_their_neighbours_needed() {
        let mut distinct = DistinctSpans::default();
        let mut fill = |page: u64, spans: u64| {
            for span in 0..spans {
                assert!(of_request(&mut distinct, (page << PAGE_BITS) | (span % 1_024), span.to_be_bytes()));
            }
            (
                distinct.pages[page as usize].marks.pieces.len(),
                distinct.pages.iter().map(|page| page.marks.used).sum::<usize>(),
            )
        };
        let (grown, _) = fill(0, 3_072);
        assert_eq!((grown, fill(1, 1), fill(2, 3_072)), (8, (7, 3_073), (7, 6_145)));
        fill(3, 100_000);
        assert_eq!(fill(4, 1).0, 37, "a crowded page makes the next one large only so far");
    }

    #[test]
    fn a_huge_index_costs_one_page() {
        let mut distinct = DistinctSpans::default();
        assert!(of_request(&mut distinct, MAX_INDEX, [1; 8]));
        assert_eq!(distinct.pages.len(), 1);
        assert_eq!(distinct.spans_by_request(), [(0, MAX_INDEX), (1, 1)]);
    }
}
