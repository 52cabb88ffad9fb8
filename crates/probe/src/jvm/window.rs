//! From what a JVM said once a second to one number per run.

use super::heap::Heap;
use super::mappings::Resident;

/// Samples over which the lowest level is taken: of 15 s. A run's number is the median of these, so that it neither depends
/// on where in its cycle of collections a sample fell, nor gets lower the longer the window is.
const MINIMUM_OVER: usize = 15;
/// Below this many collections an eden whose level is not written down says too little about allocation.
const ENOUGH_COLLECTIONS: u64 = 10;

/// A JVM over the window.
#[derive(Debug, Default)]
pub(super) struct Window {
    samples: Vec<Heap>,
    /// CPU time of the compiler at the first sample and at the last, ns since it started.
    compiling_ns: Option<(u64, u64)>,
    /// At the window's end.
    pub(super) resident: Option<Resident>,
}

/// What the timeline holds of one sample.
pub(super) fn instant(heap: &Heap, compiling_ns: u64) -> impl Iterator<Item = (&'static str, f64)> {
    let values = [
        ("heap", Some(heap.used)),
        (super::HEAP_AFTER_GC, heap.eden.filter(|_| heap.collections > 0).map(|eden| eden.others)),
        ("metaspace", heap.metaspace.map(|(used, _)| used)),
        ("classes", heap.classes),
        ("java_threads", heap.threads),
        ("gc_count", Some(heap.collections)),
        ("gc_time", Some(heap.collecting_ns)),
        ("jit_time", Some(compiling_ns)),
    ];
    values.into_iter().filter_map(|(name, value)| Some((name, value? as f64)))
}

impl Window {
    /// Takes in a sample of the window.
    pub(super) fn add(&mut self, heap: Heap, compiling_ns: u64) {
        self.samples.push(heap);
        self.compiling_ns.get_or_insert((compiling_ns, compiling_ns)).1 = compiling_ns;
    }

    /// The numbers of the run, by the names of the journal.
    pub(super) fn numbers(&self) -> Vec<(&'static str, f64)> {
        let Some((first, last)) = self.samples.first().zip(self.samples.last()) else { return Vec::new() };
        let values = [
            ("heap", self.heap()),
            (super::HEAP_AFTER_GC, self.heap_after_gc()),
            ("metaspace", last.metaspace.map(|(used, _)| used)),
            ("classes", last.classes),
            ("java_threads", last.threads),
            ("gc_count", Some(last.collections.saturating_sub(first.collections))),
            ("gc_time", Some(last.collecting_ns.saturating_sub(first.collecting_ns))),
            ("jit_time", self.compiling_ns.map(|(first, last)| last.saturating_sub(first))),
            ("allocated", self.allocated()),
            ("code_cache", self.resident.map(|resident| resident.code)),
            ("off_heap", self.off_heap(last)),
        ];
        values.into_iter().filter_map(|(name, value)| Some((name, value? as f64))).collect()
    }

    /// Whether eden's level is written down between collections. Serial and Parallel of newer JDKs (seen with 25) do so at
    /// collections only, right after which it is 0.
    fn eden_is_live(&self) -> bool {
        self.samples.iter().filter_map(|heap| heap.eden).any(|eden| eden.used > 0)
    }

    /// The median of the samples.
    fn heap(&self) -> Option<u64> {
        let known = self.eden_is_live() || self.samples.iter().all(|heap| heap.eden.is_none());
        let mut used: Vec<u64> = self.samples.iter().map(|heap| heap.used).collect();
        middle(&mut used).filter(|_| known)
    }

    /// What collections left at the lowest; needs one in the window.
    fn heap_after_gc(&self) -> Option<u64> {
        let mut left = Vec::new();
        for pair in self.samples.windows(2) {
            if pair[1].collections > pair[0].collections {
                left.push(pair[1].eden?.others);
            }
        }
        let mut lowest: Vec<u64> = left.chunks(MINIMUM_OVER).filter_map(|chunk| chunk.iter().min().copied()).collect();
        middle(&mut lowest)
    }

    /// Bytes allocated over the window, about: eden is as good as full when it is collected.
    fn allocated(&self) -> Option<u64> {
        let mut sum: i128 = 0;
        for pair in self.samples.windows(2) {
            let (before, after) = (pair[0].eden?, pair[1].eden?);
            let collections = pair[1].young_collections.saturating_sub(pair[0].young_collections);
            sum +=
                i128::from(collections) * i128::from(after.capacity) + i128::from(after.used) - i128::from(before.used);
        }
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let enough = self.eden_is_live() || last.collections.saturating_sub(first.collections) >= ENOUGH_COLLECTIONS;
        u64::try_from(sum).ok().filter(|_| enough)
    }

    /// Resident memory that is neither heap nor metaspace nor compiled code.
    fn off_heap(&self, last: &Heap) -> Option<u64> {
        let resident = self.resident?;
        let (_, metaspace) = last.metaspace?;
        Some(resident.all.saturating_sub(resident.heap + resident.code + metaspace))
    }
}

/// The middle one, or the lower of the two.
fn middle(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::super::heap::Eden;
    use super::*;

    fn window(samples: &[(u64, u64, u64)]) -> Window {
        let heap = |&(eden, others, collections): &(u64, u64, u64)| Heap {
            used: eden + others,
            eden: Some(Eden { used: eden, capacity: 100, others }),
            collections,
            young_collections: collections,
            ..Heap::default()
        };
        Window { samples: samples.iter().map(heap).collect(), ..Window::default() }
    }

    fn number(window: &Window, name: &str) -> Option<f64> {
        window.numbers().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    #[test]
    fn what_collections_left_is_taken_at_its_lowest() {
        // The first sample shows what a collection before the window left: it does not count.
        let window = window(&[(50, 10, 7), (20, 40, 8), (60, 40, 8), (5, 30, 11)]);
        assert_eq!(number(&window, "heap_after_gc"), Some(30.0));
        assert_eq!(number(&window, "heap"), Some(60.0));
        assert_eq!(number(&window, "gc_count"), Some(4.0));
        // 4 edens of 100 were filled, from 50 in the first to 5 in the last.
        assert_eq!(number(&window, "allocated"), Some(355.0));
    }

    #[test]
    fn without_a_collection_nothing_is_said_of_what_it_leaves() {
        let window = window(&[(10, 40, 3), (30, 40, 3), (80, 40, 3)]);
        assert_eq!((number(&window, "heap_after_gc"), number(&window, "allocated")), (None, Some(70.0)));
    }

    #[test]
    fn an_eden_that_is_only_written_down_at_collections_is_no_level() {
        let few = window(&[(0, 40, 3), (0, 41, 6)]);
        assert_eq!((number(&few, "heap"), number(&few, "allocated")), (None, None));
        assert_eq!(number(&few, "heap_after_gc"), Some(41.0));
        let many = window(&[(0, 40, 3), (0, 41, 30)]);
        assert_eq!(number(&many, "allocated"), Some(2_700.0));
    }

    #[test]
    fn off_heap_is_what_is_left() {
        let mut one = window(&[(10, 40, 3)]);
        one.samples[0].metaspace = Some((5, 8));
        one.resident = Some(Resident { all: 100, heap: 55, code: 7 });
        assert_eq!((number(&one, "off_heap"), number(&one, "code_cache")), (Some(30.0), Some(7.0)));
        one.samples[0].metaspace = None;
        assert_eq!(number(&one, "off_heap"), None);
        assert!(Window::default().numbers().is_empty());
    }
}
