//! The counters that a HotSpot JVM keeps in a mapped file, `hsperfdata_USER/PID`: format 2 of `jvmstat`, the same from
//! JDK 8 to 25 (`PerfDataPrologue` and `PerfDataEntry` in OpenJDK's `perfMemory.hpp` and `perfData.hpp`).
//!
//! The JVM writes while we read. Numbers are aligned words; an entry that is not whole yet ends the reading, and what was
//! read before it stands. No content whatsoever can make the parser panic.

use std::collections::HashMap;

/// First word of the file, big-endian whatever the machine.
const MAGIC: u32 = 0xcafe_c0c0;
/// Size of the prologue.
const PROLOGUE: usize = 32;
/// Size of an entry's head.
const ENTRY: usize = 20;
/// More entries than any JVM has; a larger count is nonsense.
const MAX_ENTRIES: u32 = 10_000;

/// Counters by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counters<'a> {
    numbers: HashMap<&'a str, i64>,
    texts: HashMap<&'a str, &'a str>,
}

impl<'a> Counters<'a> {
    /// Reads a file's content. `None` if it is no such file, is of another format, or is not ready to be read yet.
    #[must_use]
    pub fn parse(file: &'a [u8]) -> Option<Self> {
        if file.len() < PROLOGUE || u32::from_be_bytes(file[..4].try_into().ok()?) != MAGIC {
            return None;
        }
        let bytes = Bytes { file, little: file[4] == 1 };
        let (major, accessible) = (file[5], file[7]);
        if major != 2 || accessible != 1 {
            return None;
        }
        let mut at = usize::try_from(bytes.word(24)?).ok()?;
        let count = bytes.word(28)?;
        if count > MAX_ENTRIES {
            return None;
        }
        let mut counters = Self::default();
        for _ in 0..count {
            let Some(length) = counters.entry(bytes, at) else { break };
            at += length;
        }
        Some(counters)
    }

    /// Takes in the entry at `at` and returns its length; `None` if it is not whole.
    fn entry(&mut self, bytes: Bytes<'a>, at: usize) -> Option<usize> {
        let length = bytes.word(at)? as usize;
        let entry = bytes.file.get(at..at.checked_add(length)?).filter(|_| length > ENTRY)?;
        let entry = Bytes { file: entry, ..bytes };
        let (name_at, vector, data_at) = (entry.word(4)? as usize, entry.word(8)? as usize, entry.word(16)? as usize);
        let name = text(entry.file.get(name_at..)?)?;
        match (entry.file[12], vector) {
            (b'J', 0) => {
                self.numbers.insert(name, entry.long(data_at)?);
            }
            (b'B', 1..) => {
                let data = entry.file.get(data_at..data_at.checked_add(vector)?)?;
                self.texts.extend(text(data).map(|value| (name, value)));
            }
            // Other kinds are allowed by the format and never used.
            _ => {}
        }
        Some(length)
    }

    /// A number. Counters never fall below zero.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.numbers.get(name).and_then(|&number| u64::try_from(number).ok())
    }

    /// A text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.texts.get(name).copied()
    }
}

/// Bytes with their order.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    file: &'a [u8],
    little: bool,
}

impl Bytes<'_> {
    fn word(&self, at: usize) -> Option<u32> {
        let four = self.file.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    }

    fn long(&self, at: usize) -> Option<i64> {
        let eight = self.file.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if self.little { i64::from_le_bytes(eight) } else { i64::from_be_bytes(eight) })
    }
}

/// Up to the first zero byte.
fn text(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file with these numbers and texts.
    pub(crate) fn file(little: bool, numbers: &[(&str, i64)], texts: &[(&str, &str)]) -> Vec<u8> {
        let word = |value: usize| {
            let value = u32::try_from(value).expect("a small number");
            if little { value.to_le_bytes() } else { value.to_be_bytes() }
        };
        let mut entries = Vec::new();
        let mut entry = |name: &str, vector: usize, kind: u8, data: &[u8]| {
            let data_at = (ENTRY + name.len() + 1).next_multiple_of(8);
            let length = (data_at + data.len()).next_multiple_of(8);
            let start = entries.len();
            for value in [length, ENTRY, vector] {
                entries.extend(word(value));
            }
            entries.extend([kind, 1, 1, 1]);
            entries.extend(word(data_at));
            entries.extend(name.as_bytes());
            entries.resize(start + data_at, 0);
            entries.extend(data);
            entries.resize(start + length, 0);
        };
        for (name, value) in numbers {
            entry(name, 0, b'J', &if little { value.to_le_bytes() } else { value.to_be_bytes() });
        }
        for (name, value) in texts {
            let mut data = value.as_bytes().to_vec();
            data.resize(value.len() + 3, 0);
            entry(name, data.len(), b'B', &data);
        }
        let mut file = MAGIC.to_be_bytes().to_vec();
        file.extend([u8::from(little), 2, 0, 1]);
        file.extend(word(PROLOGUE + entries.len()));
        file.extend([0; 12]);
        file.extend(word(PROLOGUE));
        file.extend(word(numbers.len() + texts.len()));
        file.extend(entries);
        file.resize(file.len() + 100, 0);
        file
    }

    #[test]
    fn both_byte_orders_are_read() {
        for little in [true, false] {
            let file = file(little, &[("a.long", 7_000_000_000), ("bad", -1)], &[("a.text", "GarbageFirst")]);
            let counters = Counters::parse(&file).expect("a whole file");
            assert_eq!(counters.number("a.long"), Some(7_000_000_000));
            assert_eq!(counters.number("bad"), None, "no counter is negative");
            assert_eq!(counters.text("a.text"), Some("GarbageFirst"));
            assert_eq!((counters.number("a.text"), counters.number("nothing")), (None, None));
        }
    }

    #[test]
    fn other_formats_and_files_in_the_making_are_left_alone() {
        let good = file(true, &[("x", 1)], &[]);
        for (at, byte) in [(0, 0), (5, 1), (7, 0)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(Counters::parse(&bad), None, "byte {at}");
        }
        assert_eq!(Counters::parse(&[]), None);
        assert_eq!(Counters::parse(&good[..PROLOGUE - 1]), None);
    }

    #[test]
    fn what_stands_before_a_torn_entry_is_kept() {
        let mut torn = file(true, &[("first", 1), ("second", 2)], &[]);
        let second = PROLOGUE + u32::from_le_bytes(torn[PROLOGUE..PROLOGUE + 4].try_into().expect("4 bytes")) as usize;
        for length in [0, 20, u32::MAX] {
            torn[second..second + 4].copy_from_slice(&length.to_le_bytes());
            let counters = Counters::parse(&torn).expect("the head is whole");
            assert_eq!((counters.number("first"), counters.number("second")), (Some(1), None), "{length}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
            flips in proptest::collection::vec((0_usize..400, proptest::num::u8::ANY), 0..12),
            cut in 0_usize..400,
            little in proptest::bool::ANY,
        ) {
            drop(Counters::parse(&bytes));
            let mut file = file(little, &[("sun.gc.one", 1), ("sun.gc.two", 2), ("three", 3)], &[("name", "text")]);
            file.truncate(cut.max(8));
            for (at, byte) in flips {
                if let Some(place) = file.get_mut(at) {
                    *place = byte;
                }
            }
            drop(Counters::parse(&file));
        }
    }
}
