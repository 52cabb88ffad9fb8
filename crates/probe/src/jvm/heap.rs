//! What the counters of a JVM say about its memory, collections, classes and threads at one instant.
//!
//! Every collector lays its heap out as up to two generations of spaces. Serial, Parallel, CMS and G1 have an *eden*, in
//! which objects are made and which each collection empties: what the other spaces hold changes (nearly) only by a
//! collection, so it is the heap as the last collection left it. ZGC and Shenandoah have one space without an eden and
//! write it down at other times than a collection's end: what a collection leaves cannot be had of them.

use super::counters::Counters;

/// What a JVM says of itself at one instant. `None`: it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Heap {
    /// Used by all spaces, bytes.
    pub used: u64,
    /// Eden, if there is one.
    pub eden: Option<Eden>,
    /// Largest size, bytes, by the two ways in which collectors state it: as a sum of generations, and as each of them.
    pub reserved: [u64; 2],
    /// Metaspace in use and committed, bytes, the class space included, as of the last collection; `None` before the first.
    pub metaspace: Option<(u64, u64)>,
    /// Loaded classes, less unloaded ones.
    pub classes: Option<u64>,
    /// Java threads, those of the JVM itself apart.
    pub threads: Option<u64>,
    /// Collections since the start, of all kinds.
    pub collections: u64,
    /// Of them, those that empty eden.
    pub young_collections: u64,
    /// Time in them, ns: pauses only, of a concurrent collector.
    pub collecting_ns: u64,
}

/// Where objects are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Eden {
    /// In use, bytes.
    pub used: u64,
    /// Size, bytes.
    pub capacity: u64,
    /// In use by all other spaces, bytes.
    pub others: u64,
}

impl Heap {
    /// From the counters; `None` if they lack the heap: the JVM has not set it up yet.
    #[must_use]
    pub fn of(counters: &Counters<'_>) -> Option<Self> {
        let mut used = None;
        let mut eden = None;
        let mut sizes = [0_u64; 2];
        for (generation, size) in sizes.iter_mut().enumerate() {
            let prefix = format!("sun.gc.generation.{generation}");
            *size = counters.number(&format!("{prefix}.maxCapacity")).unwrap_or(0);
            for space in 0..3 {
                let space = format!("{prefix}.space.{space}");
                let Some(in_it) = counters.number(&format!("{space}.used")) else { continue };
                used = Some(used.unwrap_or(0) + in_it);
                if counters.text(&format!("{space}.name")) == Some("eden") {
                    let capacity = counters.number(&format!("{space}.capacity")).unwrap_or(0);
                    eden = Some(Eden { used: in_it, capacity, others: 0 });
                }
            }
        }
        let used = used?;
        let frequency = counters.number("sun.os.hrt.frequency").filter(|&it| it > 0).unwrap_or(1_000_000_000);
        let collectors = |what: &str| -> u64 {
            (0..3).filter_map(|number| counters.number(&format!("sun.gc.collector.{number}.{what}"))).sum()
        };
        let metaspace = counters.number("sun.gc.metaspace.used").zip(counters.number("sun.gc.metaspace.capacity"));
        Some(Self {
            used,
            eden: eden.map(|eden| Eden { others: used.saturating_sub(eden.used), ..eden }),
            reserved: [sizes[0].saturating_add(sizes[1]), sizes[0].max(sizes[1])],
            metaspace: metaspace.filter(|&(used, _)| used > 0),
            classes: classes(counters),
            threads: counters.number("java.threads.live"),
            collections: collectors("invocations"),
            young_collections: counters.number("sun.gc.collector.0.invocations").unwrap_or(0),
            collecting_ns: (u128::from(collectors("time")) * 1_000_000_000 / u128::from(frequency))
                .try_into()
                .unwrap_or(u64::MAX),
        })
    }
}

/// Classes from class files and from the shared archive, less those that were unloaded.
fn classes(counters: &Counters<'_>) -> Option<u64> {
    let count = |name: &str| counters.number(&format!("java.cls.{name}"));
    let loaded = count("loadedClasses")? + count("sharedLoadedClasses").unwrap_or(0);
    let unloaded = count("unloadedClasses").unwrap_or(0) + count("sharedUnloadedClasses").unwrap_or(0);
    Some(loaded.saturating_sub(unloaded))
}

#[cfg(test)]
mod tests {
    use super::super::counters::tests::file;
    use super::*;

    fn heap(numbers: &[(&str, i64)], texts: &[(&str, &str)]) -> Option<Heap> {
        let file = file(true, numbers, texts);
        Heap::of(&Counters::parse(&file).expect("a whole file"))
    }

    #[test]
    fn a_heap_with_an_eden_knows_what_the_last_collection_left() {
        let g1 = heap(
            &[
                ("sun.gc.generation.0.maxCapacity", 128),
                ("sun.gc.generation.1.maxCapacity", 120),
                ("sun.gc.generation.0.space.0.used", 30),
                ("sun.gc.generation.0.space.0.capacity", 64),
                ("sun.gc.generation.0.space.1.used", 0),
                ("sun.gc.generation.0.space.2.used", 4),
                ("sun.gc.generation.1.space.0.used", 60),
                ("sun.gc.collector.0.invocations", 300),
                ("sun.gc.collector.2.invocations", 78),
                ("sun.gc.collector.0.time", 500),
                ("sun.gc.collector.2.time", 50),
                ("sun.os.hrt.frequency", 1_000_000),
                ("sun.gc.metaspace.used", 76_432),
                ("sun.gc.metaspace.capacity", 327_680),
                ("java.cls.loadedClasses", 14),
                ("java.cls.sharedLoadedClasses", 396),
                ("java.cls.unloadedClasses", 3),
                ("java.threads.live", 6),
            ],
            &[("sun.gc.generation.0.space.0.name", "eden")],
        );
        let expected = Heap {
            used: 94,
            eden: Some(Eden { used: 30, capacity: 64, others: 64 }),
            reserved: [248, 128],
            metaspace: Some((76_432, 327_680)),
            classes: Some(407),
            threads: Some(6),
            collections: 378,
            young_collections: 300,
            collecting_ns: 550_000,
        };
        assert_eq!(g1, Some(expected));
    }

    #[test]
    fn a_heap_without_an_eden_is_one_number_and_a_jvm_that_starts_has_none() {
        let shenandoah = heap(
            &[("sun.gc.generation.1.space.0.used", 62), ("sun.gc.metaspace.used", 0), ("sun.gc.metaspace.capacity", 9)],
            &[("sun.gc.generation.1.space.0.name", "Heap")],
        )
        .expect("a heap");
        assert_eq!((shenandoah.used, shenandoah.eden, shenandoah.metaspace), (62, None, None));
        assert_eq!(heap(&[("sun.os.hrt.frequency", 1)], &[]), None);
    }
}
