//! Parquet's encodings, byte by byte: <https://parquet.apache.org/docs/file-format/data-pages/encodings/> and the page
//! headers in front. Knows values and bytes, not what they mean.

use super::thrift::{Struct, zigzag};
use crate::wire::put_varint;

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
/// Bytes that hold eight numbers of so many bits each.
const EIGHT: usize = 16;
const EIGHT_WIDTH: u32 = 16;

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

/// Eight numbers of at most [`EIGHT_WIDTH`] bits, side by side; none of them waits for another.
#[inline]
fn eight(numbers: &[u32; 8], width: u32) -> u128 {
    let [a, b, c, d, e, f, g, h] = numbers.map(u64::from);
    let low = (a | b << width) | (c | d << width) << (2 * width);
    let high = (e | f << width) | (g | h << width) << (2 * width);
    u128::from(low) | u128::from(high) << (4 * width)
}

/// The RLE and bit-packing hybrid, in one run: numbers of `width` bits, of which all are `only` if that is given.
pub(super) fn hybrid(numbers: &[u32], width: u32, only: Option<u32>, out: &mut Vec<u8>) {
    if let Some(only) = only {
        return run(numbers.len(), width, only, out);
    }
    let groups = numbers.len().div_ceil(8);
    put_varint(out, (groups as u64) << 1 | 1);
    let start = out.len();
    let end = start + groups * width as usize;
    if width > EIGHT_WIDTH {
        pack(numbers.iter().map(|number| u64::from(*number)), width, out);
        return out.resize(end, 0);
    }
    // Eight at a time are whole bytes.
    out.resize(end + EIGHT, 0);
    let (eights, rest) = numbers.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut at = start;
    for numbers in eights.iter().chain((!rest.is_empty()).then_some(&last)) {
        if let Some(place) = out[at..].first_chunk_mut::<EIGHT>() {
            *place = eight(numbers, width).to_le_bytes();
        }
        at += width as usize;
    }
    out.truncate(end);
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
    let mut deltas = [0_i64; BLOCK];
    let mut at = 1;
    while at < numbers.len() {
        let count = BLOCK.min(numbers.len() - at);
        for (delta, pair) in deltas.iter_mut().zip(numbers[at - 1..at + count].windows(2)) {
            *delta = pair[1].wrapping_sub(pair[0]);
        }
        let deltas = &deltas[..count];
        let least = deltas.iter().copied().min().unwrap_or(0);
        let above = |delta: &i64| delta.wrapping_sub(least) as u64;
        put_varint(out, zigzag(least));
        let mut widths = [0; BLOCK / MINIBLOCK];
        for (bits, miniblock) in widths.iter_mut().zip(deltas.chunks(MINIBLOCK)) {
            *bits = width(miniblock.iter().map(above).fold(0, |all, number| all | number)) as u8;
        }
        out.extend_from_slice(&widths);
        for (bits, miniblock) in widths.iter().zip(deltas.chunks(MINIBLOCK)) {
            let start = out.len();
            pack(miniblock.iter().map(above), u32::from(*bits), out);
            out.resize(start + MINIBLOCK / 8 * usize::from(*bits), 0);
        }
        at += count;
    }
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
        for width in 1..=20 {
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
    fn one_value_and_none() {
        let mut out = Vec::new();
        delta(&[-1], &mut out);
        assert_eq!(out, [0x80, 0x01, 4, 1, 1]);
        out.clear();
        delta(&[], &mut out);
        assert_eq!(out, [0x80, 0x01, 4, 0, 0]);
    }
}
