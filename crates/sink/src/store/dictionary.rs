//! Values of a column of which many are equal: each is hashed once, kept once, and known by its number from then on.
//!
//! What is kept is laid out as Parquet's PLAIN encoding, so that a dictionary page is a copy of it.

use std::hash::{BuildHasher, Hasher};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::buffers::{empty, same};

/// Bytes of the length before a string in PLAIN encoding.
const LENGTH: usize = 4;

/// Values from which on it can be told that most of them are different.
const MIN_VALUES: usize = 256;
/// Groups for which a column is not looked through that had mostly different values.
const REST: u8 = 15;

/// Stands for "no code".
const NULL: u32 = u32::MAX;

/// A value that the next one may be: its code, and where it stands. Of no meaning once the dictionary is cleared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guess {
    code: u32,
    start: u32,
    end: u32,
}

impl Default for Guess {
    /// No value.
    fn default() -> Self {
        Self { code: NULL, start: u32::MAX, end: 0 }
    }
}

impl Guess {
    /// The code of the value; none of any value's if there is no guess.
    #[inline]
    pub(super) fn code(self) -> u32 {
        self.code
    }

    /// The value, in PLAIN encoding but for its length; empty if there is no guess.
    #[inline]
    fn of(self, plain: &[u8]) -> Option<&[u8]> {
        plain.get(self.start as usize..self.end as usize)
    }
}

/// Distinct values of one column of one row group.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    /// With their places, so that a value that is found was looked at in one place only.
    table: HashTable<Guess>,
    hasher: DefaultHashBuilder,
    plain: Vec<u8>,
    /// Where each value ends in `plain`.
    ends: Vec<u32>,
    /// For how many groups equal values are not looked for: each then has a code of its own, but for guesses.
    rests: u8,
}

impl Dictionary {
    /// Code of a string, which is the next guess. What is not UTF-8 is kept with replacement characters.
    #[inline]
    pub(super) fn text(&mut self, bytes: &[u8], guess: &mut Guess) -> u32 {
        if !self.is(*guess, bytes) {
            *guess = self.look(bytes, LENGTH, |plain| {
                // `from_utf8_lossy` goes byte by byte, and nearly all is ASCII.
                let lossy = (!bytes.is_ascii()).then(|| String::from_utf8_lossy(bytes));
                let text = lossy.as_ref().map_or(bytes, |lossy| lossy.as_bytes());
                plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
                plain.extend_from_slice(text);
            });
        }
        guess.code
    }

    /// Code of a number of 64 bits, which is the next guess.
    #[inline]
    pub(super) fn fixed(&mut self, bytes: [u8; 8], guess: &mut Guess) -> u32 {
        if !self.is(*guess, &bytes) {
            *guess = self.look(&bytes, 0, |plain| plain.extend_from_slice(&bytes));
        }
        guess.code
    }

    #[inline]
    fn is(&self, guess: Guess, bytes: &[u8]) -> bool {
        guess.of(&self.plain).is_some_and(|value| same(value, bytes))
    }

    /// Where a value is, added if need be; `prefix` is the length of what stands before it in PLAIN encoding.
    #[inline(never)]
    fn look(&mut self, bytes: &[u8], prefix: usize, append: impl FnOnce(&mut Vec<u8>)) -> Guess {
        let Self { table, hasher, plain, ends, rests } = self;
        let add = |plain: &mut Vec<u8>| {
            let (code, start) = (ends.len() as u32, plain.len() + prefix);
            append(plain);
            let end = plain.len() as u32;
            ends.push(end);
            Guess { code, start: start as u32, end }
        };
        if *rests > 0 {
            return add(plain);
        }
        let is_it = |known: &Guess| known.of(plain).is_some_and(|value| same(value, bytes));
        let hash_of = |known: &Guess| hash(hasher, known.of(plain).unwrap_or_default());
        match table.entry(hash(hasher, bytes), is_it, hash_of) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => *place.insert(add(plain)).get(),
        }
    }

    /// Number of distinct values.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// All values in PLAIN encoding, by code.
    pub(super) fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// One value in PLAIN encoding.
    pub(super) fn value(&self, code: u32) -> &[u8] {
        let code = code as usize;
        let start = if code == 0 { 0 } else { self.ends[code - 1] };
        &self.plain[start as usize..self.ends[code] as usize]
    }

    /// Forgets all values but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        empty(&mut self.plain);
        empty(&mut self.ends);
    }
}

/// Hash of bytes. `hash_one` takes their length in as well, of which the hasher has been told by `write`.
fn hash(hasher: &DefaultHashBuilder, bytes: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

/// Which rows have a value: a bit each, as Parquet has its definition levels.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// Lowest bits first; rows beyond the end have no value.
    pub(super) words: Vec<u64>,
    /// One more than the last row that has a value.
    end: usize,
}

impl Presence {
    /// Whether a row has a value already.
    #[inline]
    pub(super) fn has(&self, row: usize) -> bool {
        self.end > row
    }

    /// Gives a row a value, which must come after all rows that have one.
    #[inline]
    pub(super) fn set(&mut self, row: usize) {
        if self.words.len() <= row / 64 {
            self.words.resize(row / 64 + 1, 0);
        }
        self.words[row / 64] |= 1 << (row % 64);
        self.end = row + 1;
    }

    /// Forgets all rows but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.end = 0;
    }
}

/// A column of which rows may have no value: codes of a dictionary.
#[derive(Debug, Default)]
pub(super) struct Column {
    pub(super) dictionary: Dictionary,
    /// Of the rows that have a value, in their order.
    pub(super) codes: Vec<u32>,
    pub(super) present: Presence,
}

impl Column {
    /// Whether a row has a value already.
    #[inline]
    pub(super) fn has(&self, row: usize) -> bool {
        self.present.has(row)
    }

    /// Sets the value of a row, which must come after all rows that have one.
    #[inline]
    pub(super) fn set(&mut self, row: usize, code: u32) {
        self.present.set(row);
        self.codes.push(code);
    }

    /// Whether most values are others, so that a dictionary would only come on top of them.
    pub(super) fn is_mostly_distinct(&self) -> bool {
        self.dictionary.len() * 2 > self.codes.len()
    }

    /// Forgets all values but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.dictionary.clear();
        self.codes.clear();
        self.present.clear();
    }

    /// The same for a column whose codes need not tell values apart: what had mostly different values will have them again,
    /// and looking for equal ones costs more than all else.
    pub(super) fn clear_and_learn(&mut self) {
        let rests = match self.dictionary.rests {
            0 if self.codes.len() >= MIN_VALUES && self.is_mostly_distinct() => REST,
            rests => rests.saturating_sub(1),
        };
        self.clear();
        self.dictionary.rests = rests;
    }
}

/// How many recent ids are looked through for an equal one; a power of two.
const RECENT: usize = 1_024;

/// A column of random ids: those of one trace arrive close together, so equal ones are looked for nearby only.
#[derive(Debug)]
pub(super) struct Ids<const N: usize> {
    /// Ids by code; an id that comes again much later has two codes.
    pub(super) distinct: Vec<[u8; N]>,
    /// Of the rows that have an id, in their order.
    pub(super) codes: Vec<u32>,
    recent: Vec<u32>,
}

impl<const N: usize> Default for Ids<N> {
    fn default() -> Self {
        Self { distinct: Vec::new(), codes: Vec::new(), recent: vec![NULL; RECENT] }
    }
}

impl<const N: usize> Ids<N> {
    /// The next id.
    #[inline]
    pub(super) fn push(&mut self, id: &[u8; N]) {
        let slot = (usize::from(id[N - 1]) | usize::from(id[N - 2]) << 8) % RECENT;
        let code = self.recent[slot];
        if self.distinct.get(code as usize) == Some(id) {
            return self.codes.push(code);
        }
        let code = self.distinct.len() as u32;
        self.distinct.push(*id);
        self.recent[slot] = code;
        self.codes.push(code);
    }

    /// Forgets all ids but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.distinct.clear();
        self.codes.clear();
        self.recent.fill(NULL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_code() {
        let mut dictionary = Dictionary::default();
        let mut guess = Guess::default();
        let codes: Vec<u32> =
            ["a", "bc", "a", "", "bc", "bc", ""].iter().map(|s| dictionary.text(s.as_bytes(), &mut guess)).collect();
        assert_eq!(codes, [0, 1, 0, 2, 1, 1, 2]);
        assert_eq!(dictionary.plain(), b"\x01\0\0\0a\x02\0\0\0bc\0\0\0\0");
        assert_eq!((dictionary.len(), dictionary.value(1)), (3, &b"\x02\0\0\0bc"[..]));
        dictionary.clear();
        assert_eq!((dictionary.text(b"bc", &mut Guess::default()), dictionary.len()), (0, 1));
    }

    #[test]
    fn a_column_of_different_values_is_not_looked_through_for_a_while() {
        let mut column = Column::default();
        let fill = |column: &mut Column, values: u64| {
            for row in 0..600 {
                let code = column.dictionary.fixed((row as u64 % values).to_le_bytes(), &mut Guess::default());
                column.set(row, code);
            }
            let value = |code: u32| u64::from_le_bytes(column.dictionary.value(code).try_into().expect("8 bytes"));
            assert!(column.codes.iter().zip(0..).all(|(code, row)| value(*code) == row % values));
            let distinct = column.dictionary.len();
            column.clear_and_learn();
            distinct
        };
        assert_eq!((fill(&mut column, 7), fill(&mut column, 500)), (7, 500));
        let after: Vec<usize> = (0..17).map(|_| fill(&mut column, 7)).collect();
        assert_eq!(after, [[600; 15].as_slice(), &[7, 7]].concat());
    }

    #[test]
    fn rows_without_a_value_take_a_bit() {
        let mut column = Column::default();
        for row in [0, 2, 63, 64, 200] {
            assert!(!column.has(row));
            column.set(row, 7);
            assert!(column.has(row) && column.has(0) && !column.has(row + 1));
        }
        assert_eq!((column.present.words.as_slice(), column.codes.len()), (&[1 << 63 | 5, 1, 0, 1 << 8][..], 5));
        column.clear();
        assert!(!column.has(0) && column.present.words.is_empty());
    }

    #[test]
    fn broken_text_is_mended() {
        let mut dictionary = Dictionary::default();
        dictionary.text(b"caf\xe9", &mut Guess::default());
        assert_eq!(dictionary.plain(), b"\x06\0\0\0caf\xef\xbf\xbd");
    }

    #[test]
    fn ids_of_neighbours_have_one_code() {
        let mut ids = Ids::<8>::default();
        for number in [1_u64, 1, 2, 1, 1025, 1] {
            ids.push(&number.to_be_bytes());
        }
        // 1025 falls into the slot of 1, which is therefore not found again.
        assert_eq!(ids.codes, [0, 0, 1, 0, 2, 3]);
        let back: Vec<u64> = ids.codes.iter().map(|code| u64::from_be_bytes(ids.distinct[*code as usize])).collect();
        assert_eq!(back, [1, 1, 2, 1, 1025, 1]);
    }
}
