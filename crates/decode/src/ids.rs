//! Ids that do not come as the 16 and 8 bytes of a span: hexadecimal text of any length, and names that are hashed.

use unladen_trace::mix;

/// 2⁶⁴ divided by the golden ratio: an odd number whose bits look like chance.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hexadecimal digits as a number of `N` bytes, filled up with zeros from the left; `None` if there are none, too many, or
/// all are zero (W3C Trace Context calls zeros invalid).
pub(crate) fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    if digits.is_empty() || digits.len() > 2 * N {
        return None;
    }
    let mut id = [0; N];
    if digits.len() == 2 * N && N.is_multiple_of(4) {
        for (bytes, digits) in id.chunks_exact_mut(4).zip(digits.chunks_exact(8)) {
            bytes.copy_from_slice(&eight(*digits.first_chunk()?)?);
        }
        return (id != [0; N]).then_some(id);
    }
    let mut any = 0;
    for (position, digit) in digits.iter().rev().enumerate() {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            b'A'..=b'F' => digit - b'A' + 10,
            _ => return None,
        };
        any |= value;
        id[N - 1 - position / 2] |= value << (4 * (position % 2));
    }
    (any != 0).then_some(id)
}

/// Four bytes from eight hexadecimal digits, all of them at once.
fn eight(digits: [u8; 8]) -> Option<[u8; 4]> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let digits = u64::from_le_bytes(digits);
    // Bit 7 of every byte that is at least `least`; right for bytes below 128.
    let from = |word: u64, least: u8| word + ONES * u64::from(128 - least);
    let lower = digits | (ONES * 0x20);
    let is_number = from(digits & !HIGH, b'0') & !from(digits & !HIGH, b'9' + 1);
    let is_letter = from(lower & !HIGH, b'a') & !from(lower & !HIGH, b'f' + 1);
    if (is_number | is_letter) & !digits & HIGH != HIGH {
        return None;
    }
    // A letter has bit 6 set, and its low half is one to six: nine less than its value.
    let values = (digits & (ONES * 15)) + ((digits >> 6) & ONES) * 9;
    let pairs = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some(((fours | fours >> 16) as u32).to_le_bytes())
}

/// The same for exactly as many digits as the id has room for.
pub(crate) fn hex_exact<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    if digits.len() == 2 * N { hex(digits) } else { None }
}

/// An id of `N` bytes or fewer, filled up with zeros from the left; `None` if there is none, or it is all zeros.
pub(crate) fn padded<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let mut id = [0; N];
    id.get_mut(N.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    (id != [0; N]).then_some(id)
}

/// A name as a number that is the same on every machine and in every run. Two names are told apart as well as by chance;
/// not made to withstand somebody who looks for collisions.
pub(crate) fn hash(seed: u64, name: &[u8]) -> u64 {
    let mut state = mix(seed ^ name.len() as u64);
    let (words, rest) = name.as_chunks::<16>();
    words.iter().for_each(|word| state = fold(state, u128::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut word = [0; 16];
        word[..rest.len()].copy_from_slice(rest);
        state = fold(state, u128::from_le_bytes(word));
    }
    mix(state)
}

/// Takes 16 bytes in: both halves of a product, so that every bit of them counts. The halves are not treated alike, so words
/// that swap places do not cancel.
fn fold(state: u64, word: u128) -> u64 {
    let product = u128::from(word as u64 ^ state) * u128::from((word >> 64) as u64 ^ GOLDEN);
    product as u64 ^ (product >> 64) as u64 ^ state.rotate_left(32)
}

/// A trace id from a name: the name itself if it is 32 hexadecimal digits, else a hash of it; never all zeros.
pub(crate) fn trace_id(name: &[u8]) -> [u8; 16] {
    hex_exact(name).unwrap_or_else(|| {
        let (high, low) = (hash(1, name), hash(2, name));
        (u128::from(high) << 64 | u128::from(low.max(1))).to_be_bytes()
    })
}

/// A name whose spans have ids of their own: hashed once for all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Named(u64);

impl Named {
    /// By its name.
    pub(crate) fn new(name: &[u8]) -> Self {
        Self(hash(3, name))
    }

    /// The id of a span by its number: the sequence splitmix64, so no two numbers have the same one. Never all zeros.
    pub(crate) fn span_id(self, number: i64) -> [u8; 8] {
        mix(self.0.wrapping_add((number as u64).wrapping_mul(GOLDEN))).max(1).to_be_bytes()
    }
}

/// A span id from a name and a number within it; never all zeros.
pub(crate) fn span_id(name: &[u8], number: i64) -> [u8; 8] {
    Named::new(name).span_id(number)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn hexadecimal() {
        assert_eq!(hex::<2>(b"0aF"), Some([0, 0xaf]));
        assert_eq!(hex::<2>(b"10aF"), Some([0x10, 0xaf]));
        for wrong in [&b""[..], b"0", b"0000", b"12345", b"12g", b"-1", "é".as_bytes()] {
            assert_eq!(hex::<2>(wrong), None, "{wrong:?}");
        }
        assert_eq!((hex_exact::<2>(b"af"), hex_exact::<2>(b"00af")), (None, Some([0, 0xaf])));
    }

    #[test]
    fn eight_digits_at_once() {
        for byte in 0..=255_u8 {
            for at in 0..8 {
                let mut digits = *b"0aF9b1C8";
                digits[at] = byte;
                let one_by_one = std::str::from_utf8(&digits).ok().filter(|_| byte != b'+');
                let expected = one_by_one.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                assert_eq!(eight(digits).map(u32::from_be_bytes), expected, "{byte} at {at}");
            }
        }
        assert_eq!(hex::<16>(b"0af7651916cd43dd8448eb211c80319C").map(|id| id[15]), Some(0x9c));
        assert_eq!((hex::<8>(b"0000000000000000"), hex::<8>(b"000000000000000g")), (None, None));
    }

    #[test]
    fn bytes_are_padded() {
        assert_eq!(padded::<4>(&[1, 2]), Some([0, 0, 1, 2]));
        assert_eq!(padded::<2>(&[1, 2]), Some([1, 2]));
        assert_eq!((padded::<2>(&[1, 2, 3]), padded::<2>(&[0]), padded::<2>(&[])), (None, None, None));
    }

    #[test]
    fn names_become_ids_of_their_own() {
        assert_eq!(trace_id(b"0af7651916cd43dd8448eb211c80319c")[..2], [0x0a, 0xf7]);
        let mut traces = HashSet::new();
        let mut spans = HashSet::new();
        for number in 0..2_000_i64 {
            let name = format!("f0e1.{number}.16000000");
            assert!(traces.insert(trace_id(name.as_bytes())));
            assert_eq!(trace_id(name.as_bytes()), trace_id(name.as_bytes()));
            assert!(spans.insert(span_id(name.as_bytes(), 0)) && spans.insert(span_id(name.as_bytes(), 1)));
        }
        // Words that swap places, within 16 bytes and beyond, and text that is only longer by zeros.
        assert!(traces.insert(trace_id(b"aaaaaaaabbbbbbbb")) && traces.insert(trace_id(b"bbbbbbbbaaaaaaaa")));
        let (a, b) = ([b'a'; 16], [b'b'; 16]);
        assert!(traces.insert(trace_id(&[a, b].concat())) && traces.insert(trace_id(&[b, a].concat())));
        assert!(traces.insert(trace_id(b"a")) && traces.insert(trace_id(b"a\0")));
        // A word that makes a factor zero must not make the rest of the name count for nothing.
        let zero = GOLDEN.to_le_bytes();
        let with_zero = |rest: &[u8]| trace_id(&[b"01234567".as_slice(), &zero, rest].concat());
        assert!(traces.insert(with_zero(b"a")) && traces.insert(with_zero(b"b")));
    }
}
