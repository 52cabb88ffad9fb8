//! Classes of response bodies: the same length and hash is the same class. It shows that two variants did the same work.
//!
//! Most services answer every request alike, so a body is compared with the last ones seen before it is hashed. The number
//! of classes is bounded; what does not fit is counted, not told apart.

use std::collections::HashMap;

use crate::outcome::BodyClass;

/// Longest body that a plan looks into, bytes, after decompression.
pub(crate) const MAX_BODY: usize = 1 << 20;
/// Classes that are told apart per thread.
const MAX_CLASSES: usize = 1024;
/// Largest body that is kept for comparison, bytes.
const MAX_CAPTURED: usize = 16 << 10;
/// Classes in the outcome.
const REPORTED: usize = 16;

/// FNV-1a over 64-bit little-endian words, the last one padded with zeros, with a shift after each so that high bits
/// reach low ones: eight bytes cost what one costs in the original. It does not depend on how the bytes are cut up.
#[derive(Debug, Clone, Copy)]
pub struct BodyHash {
    /// State after the whole words.
    state: u64,
    /// Bytes of the word that is not yet whole.
    word: u64,
    /// Bytes so far.
    length: u64,
}

impl Default for BodyHash {
    fn default() -> Self {
        Self { state: 0xcbf2_9ce4_8422_2325, word: 0, length: 0 }
    }
}

impl BodyHash {
    /// Takes a whole word in.
    #[inline]
    fn fold(state: u64, word: u64) -> u64 {
        let state = (state ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        state ^ (state >> 29)
    }

    /// Takes more of the body in.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !self.length.is_multiple_of(8) {
            let Some((&byte, rest)) = bytes.split_first() else { return };
            self.word |= u64::from(byte) << (8 * (self.length % 8));
            self.length += 1;
            bytes = rest;
            if self.length.is_multiple_of(8) {
                self.state = Self::fold(self.state, self.word);
                self.word = 0;
            }
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.state = Self::fold(self.state, u64::from_le_bytes(*word));
        }
        self.length += 8 * words.len() as u64;
        for &byte in rest {
            self.word |= u64::from(byte) << (8 * (self.length % 8));
            self.length += 1;
        }
    }

    /// Length so far, bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The hash. The length is part of it.
    #[must_use]
    pub fn finish(&self) -> u64 {
        Self::fold(Self::fold(self.state, self.word), self.length)
    }
}

/// Which class a body belongs to; an index into the classes of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class(usize);

/// A class of one thread.
#[derive(Debug, Clone)]
struct Known {
    length: u64,
    hash: u64,
    count: u64,
}

/// The classes that one thread has seen.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    known: Vec<Known>,
    by_hash: HashMap<(u64, u64), usize>,
    /// The last body that came in one piece, with its class.
    last: Option<(Vec<u8>, Class)>,
    other: u64,
}

impl Bodies {
    /// The class of a body in one piece; `None`: there are too many classes.
    pub(crate) fn whole(&mut self, body: &[u8]) -> Option<Class> {
        if let Some((last, class)) = &self.last
            && last == body
        {
            return Some(*class);
        }
        let mut hash = BodyHash::default();
        hash.update(body);
        let class = self.hashed(&hash)?;
        if body.len() <= MAX_CAPTURED {
            match &mut self.last {
                Some((last, of)) => {
                    last.clear();
                    last.extend_from_slice(body);
                    *of = class;
                }
                None => self.last = Some((body.to_vec(), class)),
            }
        }
        Some(class)
    }

    /// The class of a body that came in pieces.
    pub(crate) fn hashed(&mut self, hash: &BodyHash) -> Option<Class> {
        let (length, hash) = (hash.length(), hash.finish());
        if let Some(&at) = self.by_hash.get(&(length, hash)) {
            return Some(Class(at));
        }
        if self.known.len() == MAX_CLASSES {
            return None;
        }
        self.known.push(Known { length, hash, count: 0 });
        self.by_hash.insert((length, hash), self.known.len() - 1);
        Some(Class(self.known.len() - 1))
    }

    /// Counts a response of the window.
    pub(crate) fn count(&mut self, class: Option<Class>) {
        match class {
            Some(Class(at)) => self.known[at].count += 1,
            None => self.other += 1,
        }
    }
}

/// The classes of all threads together: the most frequent ones, and the number of responses in no class of them.
pub(crate) fn merge<'a>(threads: impl IntoIterator<Item = &'a Bodies>) -> (Vec<BodyClass>, u64) {
    let mut counts: HashMap<(u64, u64), u64> = HashMap::new();
    let mut other = 0;
    for bodies in threads {
        other += bodies.other;
        for known in bodies.known.iter().filter(|known| known.count > 0) {
            *counts.entry((known.length, known.hash)).or_default() += known.count;
        }
    }
    let mut classes: Vec<_> = counts.into_iter().collect();
    classes.sort_by_key(|&((length, hash), count)| (std::cmp::Reverse(count), length, hash));
    let rest = classes.split_off(classes.len().min(REPORTED));
    other += rest.iter().map(|&(_, count)| count).sum::<u64>();
    let named = |((length, hash), count)| BodyClass { length, hash: format!("{hash:016x}"), count };
    (classes.into_iter().map(named).collect(), other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hash(body: &[u8]) -> u64 {
        let mut hash = BodyHash::default();
        hash.update(body);
        hash.finish()
    }

    #[test]
    fn classes_are_counted_and_the_most_frequent_come_first() {
        let mut bodies = Bodies::default();
        for body in [&b"a"[..], b"b", b"b", b"", b"b"] {
            let class = bodies.whole(body);
            bodies.count(class);
        }
        let (classes, other) = merge(&[bodies]);
        assert_eq!(classes.iter().map(|c| (c.length, c.count)).collect::<Vec<_>>(), [(1, 3), (0, 1), (1, 1)]);
        assert_eq!(other, 0);
    }

    #[test]
    fn endlessly_different_bodies_take_bounded_memory() {
        let mut bodies = Bodies::default();
        for number in 0..10_000u32 {
            let class = bodies.whole(&number.to_le_bytes());
            bodies.count(class);
        }
        assert_eq!(bodies.known.len(), MAX_CLASSES);
        let (classes, other) = merge(&[bodies]);
        assert_eq!(classes.len(), REPORTED);
        assert_eq!(classes.iter().map(|c| c.count).sum::<u64>() + other, 10_000);
    }

    #[test]
    fn threads_are_added_up() {
        let mut threads = [Bodies::default(), Bodies::default()];
        for bodies in &mut threads {
            let class = bodies.whole(b"same");
            bodies.count(class);
        }
        assert_eq!(merge(&threads).0[0].count, 2);
    }

    #[test]
    fn trailing_zeros_and_flipped_bits_are_seen() {
        assert_ne!(hash(b""), hash(b"\0"));
        assert_ne!(hash(b"12345678"), hash(b"12345678\0"));
        let body: Vec<u8> = (0..64).collect();
        for bit in 0..body.len() * 8 {
            let mut other = body.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(hash(&body), hash(&other), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn the_hash_does_not_depend_on_the_cuts(body: Vec<u8>, cuts in proptest::collection::vec(0usize..64, 0..8)) {
            let mut pieces = BodyHash::default();
            let mut rest = &body[..];
            for cut in cuts {
                let (piece, tail) = rest.split_at(cut.min(rest.len()));
                pieces.update(piece);
                rest = tail;
            }
            pieces.update(rest);
            prop_assert_eq!(pieces.finish(), hash(&body));
            prop_assert_eq!(pieces.length(), body.len() as u64);
        }
    }
}
