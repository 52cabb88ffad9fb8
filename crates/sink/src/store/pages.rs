//! Parquet's encodings, byte by byte: <https://parquet.apache.org/docs/file-format/data-pages/encodings/> and the page
//! headers in front. Knows values and bytes, not what they mean.

use unladen_decode::wire::put_varint;

use super::thrift::{Struct, zigzag};

/// Encodings of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Encoding {
    Plain = 0,
    Rle = 3,
    DeltaBinaryPacked = 5,
    RleDictionary = 8,
}

/// Values of a block of DELTA_BINARY_PACKED.
const BLOCK: usize = 128;
/// Values of each of its miniblocks.
const MINIBLOCK: usize = 32;
/// Bits of numbers that are packed eight at a time, and bytes that are written for eight of them.
const EIGHT_WIDTH: u32 = 31;
const EIGHT: usize = 32;

/// Appends numbers of `width` bits each, lowest bits first; the last byte is filled with zeros.
fn pack(numbers: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut bits, mut used) = (0_u64, 0);
    for number in numbers {
        bits |= number << used;
        if used + width >= 64 {
            out.extend_from_slice(&bits.to_le_bytes());
            bits = if used == 0 { 0 } else { number >> (64 - used) };
            used = used + width - 64;
        } else {
            used += width;
        }
    }
    let rest = used.div_ceil(8) as usize;
    out.extend_from_slice(&bits.to_le_bytes()[..rest]);
}

/// Bits that hold numbers up to `largest`.
pub(super) fn width(largest: u64) -> u32 {
    64 - largest.leading_zeros()
}

/// The head of a run of the RLE and bit-packing hybrid in which all `count` numbers, of `width` bits, are `only`.
fn run(count: usize, width: u32, only: u32, out: &mut Vec<u8>) {
    put_varint(out, (count as u64) << 1);
    out.extend_from_slice(&only.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Appends numbers of at most [`EIGHT_WIDTH`] bits as [`pack`] does, as if zeros followed to a multiple of eight: that many
/// are whole bytes. None waits for another.
fn pack_eights(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let start = out.len();
    let end = start + numbers.len().div_ceil(8) * width as usize;
    out.resize(end + EIGHT, 0);
    let (eights, rest) = numbers.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut at = start;
    for numbers in eights.iter().chain((!rest.is_empty()).then_some(&last)) {
        if let Some(place) = out[at..].first_chunk_mut::<EIGHT>() {
            put_eight(numbers, width, place);
        }
        at += width as usize;
    }
    out.truncate(end);
}

#[inline]
fn put_eight(numbers: &[u32; 8], width: u32, place: &mut [u8; EIGHT]) {
    let [a, b, c, d, e, f, g, h] = numbers.map(u64::from);
    let (ab, cd, ef, gh) = (a | b << width, c | d << width, e | f << width, g | h << width);
    if width <= 16 {
        let (low, high) = (ab | cd << (2 * width), ef | gh << (2 * width));
        let all = u128::from(low) | u128::from(high) << (4 * width);
        return place[..16].copy_from_slice(&all.to_le_bytes());
    }
    let four = |low: u64, high: u64| u128::from(low) | u128::from(high) << (2 * width);
    // Four numbers of an odd width end in the middle of a byte.
    let (bytes, bits) = ((width / 2) as usize, width % 2 * 4);
    let low = four(ab, cd);
    let high = four(ef, gh) << bits | low >> (8 * bytes);
    place[..16].copy_from_slice(&low.to_le_bytes());
    place[bytes..bytes + 16].copy_from_slice(&high.to_le_bytes());
}

/// The RLE and bit-packing hybrid, in one run: numbers of `width` bits, at most [`EIGHT_WIDTH`], of which all are `only` if
/// that is given.
pub(super) fn hybrid(numbers: &[u32], width: u32, only: Option<u32>, out: &mut Vec<u8>) {
    if let Some(only) = only {
        return run(numbers.len(), width, only, out);
    }
    put_varint(out, (numbers.len().div_ceil(8) as u64) << 1 | 1);
    pack_eights(numbers, width, out);
}

/// Definition levels of a flat optional column in a data page of version 1: which rows have a value, a bit each, of which
/// those beyond the end of `present` are zeros; `values` is how many are ones.
pub(super) fn levels(present: &[u64], rows: usize, values: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    if values == rows || values == 0 {
        run(rows, 1, u32::from(values > 0), out);
    } else {
        let groups = rows.div_ceil(8);
        put_varint(out, (groups as u64) << 1 | 1);
        let end = out.len() + groups;
        present.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out.resize(end, 0);
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Truth values, PLAIN: one bit each.
pub(super) fn truths(values: impl Iterator<Item = bool>, out: &mut Vec<u8>) {
    pack(values.map(u64::from), 1, out);
}

/// DELTA_BINARY_PACKED.
pub(super) fn delta(numbers: &[i64], out: &mut Vec<u8>) {
    put_varint(out, BLOCK as u64);
    put_varint(out, (BLOCK / MINIBLOCK) as u64);
    put_varint(out, numbers.len() as u64);
    put_varint(out, zigzag(numbers.first().copied().unwrap_or(0)));
    let (mut block, mut small) = ([0_i64; BLOCK], [0_u32; MINIBLOCK]);
    let mut at = 1;
    while at < numbers.len() {
        let count = BLOCK.min(numbers.len() - at);
        let deltas = &mut block[..count];
        for (delta, pair) in deltas.iter_mut().zip(numbers[at - 1..at + count].windows(2)) {
            *delta = pair[1].wrapping_sub(pair[0]);
        }
        let (least, _) = bounds(deltas).unwrap_or_default();
        deltas.iter_mut().for_each(|delta| *delta = delta.wrapping_sub(least));
        put_varint(out, zigzag(least));
        let mut widths = [0; BLOCK / MINIBLOCK];
        for (bits, miniblock) in widths.iter_mut().zip(deltas.chunks(MINIBLOCK)) {
            *bits = width(miniblock.iter().fold(0, |all, delta| all | *delta as u64)) as u8;
        }
        out.extend_from_slice(&widths);
        for (bits, miniblock) in widths.iter().zip(deltas.chunks(MINIBLOCK)) {
            let (start, bits) = (out.len(), u32::from(*bits));
            if bits <= EIGHT_WIDTH {
                small.iter_mut().zip(miniblock).for_each(|(small, delta)| *small = *delta as u32);
                pack_eights(&small[..miniblock.len()], bits, out);
            } else {
                pack(miniblock.iter().map(|delta| *delta as u64), bits, out);
            }
            out.resize(start + MINIBLOCK / 8 * bits as usize, 0);
        }
        at += count;
    }
}

/// Least and largest of some numbers. Four side by side: one after the other each would wait for the last.
pub(super) fn bounds(numbers: &[i64]) -> Option<(i64, i64)> {
    let (mut least, mut largest) = ([*numbers.first()?; 4], [*numbers.first()?; 4]);
    let (fours, rest) = numbers.as_chunks::<4>();
    for four in fours {
        least = std::array::from_fn(|lane| least[lane].min(four[lane]));
        largest = std::array::from_fn(|lane| largest[lane].max(four[lane]));
    }
    Some((*least.iter().chain(rest).min()?, *largest.iter().chain(rest).max()?))
}

/// What kind of page a header announces.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Rows, in this encoding.
    Data(Encoding),
    /// The values that codes stand for, PLAIN.
    Dictionary,
}

/// A `PageHeader`.
pub(super) fn header(kind: Kind, values: usize, uncompressed: usize, compressed: usize, out: &mut Vec<u8>) {
    let mut header = Struct::begin(out);
    header.int(1, if matches!(kind, Kind::Dictionary) { 2 } else { 0 });
    header.int(2, uncompressed as i32);
    header.int(3, compressed as i32);
    let mut of_kind = header.within(if matches!(kind, Kind::Dictionary) { 7 } else { 5 });
    of_kind.int(1, values as i32);
    match kind {
        Kind::Data(encoding) => {
            of_kind.int(2, encoding as i32);
            // Definition and repetition levels.
            of_kind.int(3, Encoding::Rle as i32);
            of_kind.int(4, Encoding::Rle as i32);
        }
        Kind::Dictionary => of_kind.int(2, Encoding::Plain as i32),
    }
    of_kind.end();
    header.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_lowest_bits_first() {
        // The example of the specification: 0 to 7 in three bits.
        let mut out = Vec::new();
        pack(0..8, 3, &mut out);
        assert_eq!(out, [0b1000_1000, 0b1100_0110, 0b1111_1010]);
        for width in [1, 7, 31, 33, 63, 64] {
            let mask = u64::MAX >> (64 - width);
            let numbers: Vec<u64> = (0..100_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
            let mut out = Vec::new();
            pack(numbers.iter().copied(), width, &mut out);
            let bit = |at: usize| out[at / 8] >> (at % 8) & 1;
            let back: Vec<u64> = (0..100)
                .map(|n| (0..width as usize).map(|b| u64::from(bit(n * width as usize + b)) << b).sum())
                .collect();
            assert_eq!(back, numbers, "{width} bits");
        }
    }

    #[test]
    fn codes_are_packed_as_numbers_are() {
        for width in 1..=EIGHT_WIDTH {
            let mask = u32::MAX >> (32 - width);
            for count in [1, 7, 8, 9, 100] {
                let numbers: Vec<u32> = (0..count).map(|n: u32| n.wrapping_mul(0x9e37_79b9) & mask).collect();
                let (mut out, mut expected) = (vec![7], vec![7]);
                hybrid(&numbers, width, None, &mut out);
                put_varint(&mut expected, u64::from(count.div_ceil(8)) << 1 | 1);
                let end = expected.len() + (count.div_ceil(8) * width) as usize;
                pack(numbers.iter().map(|number| u64::from(*number)), width, &mut expected);
                expected.resize(end, 0);
                assert_eq!(out, expected, "{count} of {width} bits");
            }
        }
        let mut out = Vec::new();
        hybrid(&[5; 300], 9, Some(5), &mut out);
        assert_eq!(out, [0xd8, 0x04, 5, 0]);
    }

    #[test]
    fn levels_are_a_bit_a_row() {
        let all = |present: &[u64], rows, values| {
            let mut out = Vec::new();
            levels(present, rows, values, &mut out);
            out
        };
        assert_eq!(all(&[0b1101], 12, 3), [3, 0, 0, 0, 5, 0b1101, 0]);
        assert_eq!(all(&[1 << 63, 1], 70, 2), [10, 0, 0, 0, 19, 0, 0, 0, 0, 0, 0, 0, 0x80, 1]);
        assert_eq!((all(&[3], 2, 2), all(&[], 300, 0)), (vec![2, 0, 0, 0, 4, 1], vec![3, 0, 0, 0, 0xd8, 0x04, 0]));
    }

    #[test]
    fn deltas_as_in_the_specification() {
        // 7, 5, 3, 1, 2, 3, 4, 5: first value 7, least delta -2, the rest in two bits.
        let mut out = Vec::new();
        delta(&[7, 5, 3, 1, 2, 3, 4, 5], &mut out);
        let head = [0x80, 0x01, 4, 8, 14, 3, 2, 0, 0, 0];
        assert_eq!(out[..head.len()], head);
        assert_eq!(out[head.len()..], [0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn deltas_of_every_width_come_back() {
        for bits in [0, 1, 7, 16, 17, 30, 31, 32, 33, 63] {
            // Up and down by as much; a last block that is not full.
            let numbers: Vec<i64> =
                (0..300).map(|n| if n % 3 == 1 { -n } else { (1_i64 << bits).wrapping_sub(1 + n) }).collect();
            let mut out = Vec::new();
            delta(&numbers, &mut out);
            assert_eq!(undelta(&out), numbers, "{bits} bits");
        }
    }

    /// What [`delta`] encoded, bit by bit as the specification has it.
    fn undelta(mut bytes: &[u8]) -> Vec<i64> {
        let number = |bytes: &mut &[u8]| {
            let length = bytes.iter().position(|byte| *byte < 0x80).expect("a varint") + 1;
            let (varint, rest) = bytes.split_at(length);
            *bytes = rest;
            varint.iter().rev().fold(0_u64, |all, byte| all << 7 | u64::from(byte & 0x7f))
        };
        let signed = |number: u64| (number >> 1) as i64 ^ -((number & 1) as i64);
        let head: [u64; 4] = std::array::from_fn(|_| number(&mut bytes));
        assert_eq!(head[..2], [BLOCK as u64, (BLOCK / MINIBLOCK) as u64]);
        let mut numbers = vec![signed(head[3])];
        while numbers.len() < head[2] as usize {
            let least = signed(number(&mut bytes));
            let (widths, rest) = bytes.split_first_chunk::<{ BLOCK / MINIBLOCK }>().expect("widths");
            bytes = rest;
            for width in widths.map(usize::from) {
                let (packed, rest) = bytes.split_at(MINIBLOCK / 8 * width);
                bytes = rest;
                for value in 0..MINIBLOCK.min(head[2] as usize - numbers.len()) {
                    let bit =
                        |bit: usize| u64::from(packed[(value * width + bit) / 8] >> ((value * width + bit) % 8) & 1);
                    let above: u64 = (0..width).map(|at| bit(at) << at).sum();
                    numbers.push(numbers[numbers.len() - 1].wrapping_add(least).wrapping_add(above as i64));
                }
            }
        }
        assert!(bytes.is_empty(), "nothing is left");
        numbers
    }

    #[test]
    fn bounds_are_those_of_all() {
        let numbers: Vec<i64> = (0..23).map(|n: i64| (n * 7 % 23 - 11) << 58).collect();
        for count in 1..numbers.len() {
            let some = &numbers[..count];
            assert_eq!(bounds(some), Some((*some.iter().min().expect("one"), *some.iter().max().expect("one"))));
        }
        assert_eq!(bounds(&[]), None);
    }

    #[test]
    fn one_value_and_none() {
        let mut out = Vec::new();
        delta(&[-1], &mut out);
        assert_eq!(out, [0x80, 0x01, 4, 1, 1]);
        out.clear();
        delta(&[], &mut out);
        assert_eq!(out, [0x80, 0x01, 4, 0, 0]);
    }
}
