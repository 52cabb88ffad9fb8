//! How the resident memory of a JVM is divided: heap, compiled code and everything else, from `/proc/PID/smaps`.
//!
//! Reading it makes the kernel walk the page tables, so it is for the window's end only, after the counters were read.

use std::fs;

/// Resident bytes of a JVM by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resident {
    /// All of it.
    pub all: u64,
    /// The Java heap.
    pub heap: u64,
    /// Compiled code: memory that is writable and executable, and no file's.
    pub code: u64,
}

/// One mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    /// Private, and of no file or of the archive of shared classes: part of a heap.
    heap_like: bool,
    code: bool,
    /// Where ZGC keeps its heap.
    named_heap: bool,
    resident: u64,
}

/// Of a process whose heap may grow to one of `reserved` bytes. `None` if it is not allowed or no heap is found.
#[must_use]
pub fn of(pid: u32, reserved: [u64; 2]) -> Option<Resident> {
    divide(&mappings(&fs::read_to_string(format!("/proc/{pid}/smaps")).ok()?), reserved)
}

fn divide(mappings: &[Mapping], reserved: [u64; 2]) -> Option<Resident> {
    let sum = |wanted: fn(&&Mapping) -> bool| mappings.iter().filter(wanted).map(|it| it.resident).sum::<u64>();
    let heap = match mappings.iter().any(|it| it.named_heap) {
        true => sum(|it| it.named_heap),
        false => reserved.iter().filter_map(|&size| run_of(mappings, size)).max()?,
    };
    Some(Resident { all: sum(|_| true), heap, code: sum(|it| it.code) })
}

/// Resident bytes of the mappings without a gap between them that are together exactly as large as the heap can get.
fn run_of(mappings: &[Mapping], size: u64) -> Option<u64> {
    // Collectors that know the heap's size only less some words' worth of bookkeeping state it with these.
    const BOUNDARY: u64 = 64 * 1024;
    const ALIGNED: u64 = 1024 * 1024;
    let size = size - size % BOUNDARY;
    let starts = mappings.iter().enumerate().filter(|(_, it)| it.heap_like && it.start % ALIGNED == 0);
    let wholes = |size: u64| {
        starts.clone().filter_map(move |(first, start)| {
            let mut end = start.start;
            let mut resident = 0;
            for mapping in &mappings[first..] {
                if mapping.start != end || !mapping.heap_like || end - start.start >= size {
                    break;
                }
                end = mapping.end;
                resident += mapping.resident;
            }
            (end - start.start == size).then_some(resident)
        })
    };
    // One more boundary: G1 of JDK 17 states 8 bytes less than there are.
    // Several arenas of the C library may happen to be as large; but hardly anything is resident in them.
    [size, size + BOUNDARY].into_iter().filter(|&size| size > 0).flat_map(wholes).max()
}

fn mappings(smaps: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for line in smaps.lines() {
        if let Some(kib) = line.strip_prefix("Rss:") {
            let kib: u64 = kib.trim().trim_end_matches(" kB").parse().unwrap_or(0);
            if let Some(last) = found.last_mut() {
                last.resident = kib * 1024;
            }
        } else if let Some(mapping) = head(line) {
            found.push(mapping);
        }
    }
    found
}

/// `f8000000-100000000 rw-p 00000000 00:00 0    [name]`.
fn head(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let name = words.nth(3).unwrap_or("");
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        heap_like: rights.ends_with('p') && !rights.contains('x') && (name.is_empty() || name.ends_with(".jsa")),
        code: rights == "rwxp" && name.is_empty(),
        named_heap: name.ends_with("java_heap"),
        resident: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const G1: &str = "f8000000-fde00000 rw-p 00000000 00:00 0 \nSize: 1 kB\nRss:               10240 kB\nPss: 1 kB\n\
        fde00000-ffe00000 ---p 00000000 00:00 0 \nRss:  0 kB\n\
        ffe00000-ffe75000 rw-p 00c77000 fe:00 315149   /usr/lib/jvm/lib/server/classes.jsa\nRss:  400 kB\n\
        ffe75000-100000000 rw-p 00000000 00:00 0 \nRss: 600 kB\n\
        55ea83332000-55ea83333000 r--p 00000000 fe:00 314792    /usr/bin/java\nRss: 4 kB\n\
        7f5e39400000-7f5e39670000 rwxp 00000000 00:00 0 \nRss: 2000 kB\n\
        7f5e56e0f000-7f5e56e17000 rw-s 00000000 fe:00 9986942     /tmp/hsperfdata_root/7381\nRss: 32 kB\n";

    #[test]
    fn a_heap_is_found_by_its_exact_size() {
        let expected = Resident { all: 13_276 * 1024, heap: 11_240 * 1024, code: 2_000 * 1024 };
        // As stated by Serial (two generations) and by G1 of JDK 17 (either, less 8 bytes).
        for reserved in [[128 << 20, 64 << 20], [(256 << 20) + 16, (128 << 20) - 8]] {
            assert_eq!(divide(&mappings(G1), reserved), Some(expected), "{reserved:?}");
        }
        assert_eq!(divide(&mappings(G1), [48 << 20, 16 << 20]), None, "another size");
        assert_eq!(divide(&[], [128 << 20, 0]), None);
    }

    #[test]
    fn of_two_that_are_as_large_the_fuller_one_is_the_heap() {
        let arenas = "18000000-18021000 rw-p 00000000 00:00 0 \nRss: 8 kB\n18021000-20000000 ---p 00000000 00:00 0 \nRss: 0 kB\n";
        let found = divide(&mappings(&format!("{arenas}{G1}")), [128 << 20, 0]).expect("a heap");
        assert_eq!(found.heap, 11_240 * 1024);
    }

    #[test]
    fn the_heap_of_zgc_has_a_name() {
        let z = "40000000000-40008000000 rw-s 00000000 00:01 9934    /memfd:java_heap (deleted)\nRss: 700 kB\n\
            40008000000-40080000000 ---p 00000000 00:00 0\nRss: 0 kB\n";
        assert_eq!(divide(&mappings(z), [1, 1]), Some(Resident { all: 700 * 1024, heap: 700 * 1024, code: 0 }));
    }
}
