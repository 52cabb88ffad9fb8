//! Parquet's encodings, byte by byte: <https://parquet.apache.org/docs/file-format/data-pages/encodings/> and the page
//! headers in front (Thrift's compact protocol). Knows values and bytes, not what they mean.

use parquet::basic::Encoding;

use crate::wire::put_varint;

/// Values of a block of DELTA_BINARY_PACKED.
const BLOCK: usize = 128;
/// Values of each of its miniblocks.
const MINIBLOCK: usize = 32;

/// Appends numbers of `width` bits each, lowest bits first; the last byte is filled with zeros.
fn pack(numbers: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
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

/// The RLE and bit-packing hybrid, in one run: `count` numbers of `width` bits, of which all are `only` if that is given.
pub(super) fn hybrid(
    numbers: impl Iterator<Item = u32>,
    count: usize,
    width: u32,
    only: Option<u32>,
    out: &mut Vec<u8>,
) {
    if let Some(only) = only {
        put_varint(out, (count as u64) << 1);
        out.extend_from_slice(&only.to_le_bytes()[..width.div_ceil(8) as usize]);
        return;
    }
    let groups = count.div_ceil(8);
    put_varint(out, (groups as u64) << 1 | 1);
    let start = out.len();
    pack(numbers.map(u64::from), width, out);
    out.resize(start + groups * width as usize, 0);
}

/// Definition levels of a flat optional column in a data page of version 1: which rows have a value.
pub(super) fn levels(present: impl Iterator<Item = bool>, rows: usize, values: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let only = if values == rows {
        Some(1)
    } else if values == 0 {
        Some(0)
    } else {
        None
    };
    hybrid(present.map(u32::from), rows, 1, only, out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Truth values, PLAIN: one bit each.
pub(super) fn truths(values: impl Iterator<Item = bool>, out: &mut Vec<u8>) {
    pack(values.map(u64::from), 1, out);
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
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

/// Number of an encoding in Thrift.
fn number_of(encoding: Encoding) -> i64 {
    match encoding {
        Encoding::PLAIN => 0,
        Encoding::RLE => 3,
        Encoding::DELTA_BINARY_PACKED => 5,
        // Nothing else is written.
        _ => 8,
    }
}

/// A `PageHeader`.
pub(super) fn header(kind: Kind, values: usize, uncompressed: usize, compressed: usize, out: &mut Vec<u8>) {
    // An i32 field whose number is one more than the last.
    const NEXT_I32: u8 = 0x15;
    let next = |number: i64, out: &mut Vec<u8>| {
        out.push(NEXT_I32);
        put_varint(out, zigzag(number));
    };
    next(if matches!(kind, Kind::Dictionary) { 2 } else { 0 }, out);
    next(uncompressed as i64, out);
    next(compressed as i64, out);
    match kind {
        Kind::Data(encoding) => {
            // Field 5, a struct: number of values, their encoding, that of definition and repetition levels.
            out.push(0x2c);
            next(values as i64, out);
            next(number_of(encoding), out);
            next(number_of(Encoding::RLE), out);
            next(number_of(Encoding::RLE), out);
        }
        Kind::Dictionary => {
            // Field 7, a struct: number of values, their encoding.
            out.push(0x4c);
            next(values as i64, out);
            next(number_of(Encoding::PLAIN), out);
        }
    }
    out.extend_from_slice(&[0, 0]);
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
