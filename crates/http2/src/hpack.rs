//! Header compression for HTTP/2 (RFC 7541): a decoder for what the server sends, and the few pieces a client with cached blocks
//! needs to encode.
//!
//! The crates at hand are not fit for a hostile peer or a hot path: `hpack` (RUSTSEC-2023-0085) and its fork `fluke-hpack` panic on
//! a truncated block, and all of them allocate two vectors per field. This one hands out slices, and its memory and its work
//! per block are bounded.

use std::collections::VecDeque;

use crate::huffman;
use crate::static_table::STATIC;
pub use crate::static_table::{FIRST_DYNAMIC, static_field};

/// Size of the dynamic table that the server may use, bytes by RFC 7541, 4.1: the default, which we do not change.
pub const TABLE_SIZE: usize = 4096;
/// Most bytes, counted as in the table, that one block may unfold to: a reference of one byte may stand for 4 KiB.
pub const MAX_DECODED: usize = 256 << 10;
/// What an entry costs besides its name and value.
const OVERHEAD: usize = 32;

/// Why a block is not HPACK, or more than is tolerated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// It ends within a field.
    #[error("a header block ends too early")]
    Truncated,
    /// A number is out of all bounds.
    #[error("a number in a header block is too large")]
    Number,
    /// It refers to an entry that does not exist.
    #[error("a header block refers to an entry that does not exist")]
    Index,
    /// A string is not in the Huffman code.
    #[error("a string in a header block is not in the Huffman code")]
    Huffman,
    /// The table's size is changed in the wrong place or beyond its limit.
    #[error("a header block sets a wrong table size")]
    TableSize,
    /// It unfolds to more than [`MAX_DECODED`].
    #[error("a header block unfolds to more than 256 KiB")]
    TooLarge,
}

/// The dynamic table and its decoder.
#[derive(Debug)]
pub struct Decoder {
    /// Entries, newest first: the bytes of name and value, and the length of the name.
    entries: VecDeque<(Box<[u8]>, usize)>,
    /// Size of the entries by RFC 7541, 4.1.
    size: usize,
    /// Largest size that the server wants.
    limit: usize,
    /// Changes of the table so far: a block means the same again only if there was none in between.
    changes: u64,
    /// Decoded name and value of the field at hand, where they are not in a table.
    scratch: Vec<u8>,
}

/// A name in either table, or the scratch buffer.
enum Name {
    Indexed(usize),
    Scratch,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// An empty table.
    pub fn new() -> Self {
        Self { entries: VecDeque::new(), size: 0, limit: TABLE_SIZE, changes: 0, scratch: Vec::new() }
    }

    /// Number of changes of the table so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Decodes a whole block; hands every field on as name and value.
    ///
    /// # Errors
    /// If the block breaks RFC 7541, or its fields are larger than allowed. The table is then unknown, and the connection must end (RFC 9113, section 4.3).
    pub fn decode(&mut self, block: &[u8], mut field: impl FnMut(&[u8], &[u8])) -> Result<(), BlockError> {
        let (mut input, mut unfolded, mut fields) = (block, 0usize, 0usize);
        let mut count = |name: usize, value: usize| {
            unfolded += name + value + OVERHEAD;
            if unfolded > MAX_DECODED { Err(BlockError::TooLarge) } else { Ok(()) }
        };
        while let Some(&first) = input.first() {
            if first & 0x80 != 0 {
                let index = number(&mut input, 7)?;
                let (name, value) = lookup(&self.entries, index)?;
                count(name.len(), value.len())?;
                field(name, value);
            } else if first & 0xe0 == 0x20 {
                let size = number(&mut input, 5)?;
                // RFC 7541, 4.2: only at the beginning of a block, within what we allow.
                if fields > 0 || size > TABLE_SIZE {
                    return Err(BlockError::TableSize);
                }
                self.limit = size;
                self.changes += 1;
                self.evict(size);
                continue;
            } else {
                let indexing = first & 0xc0 == 0x40;
                let index = number(&mut input, if indexing { 6 } else { 4 })?;
                self.scratch.clear();
                let name = if index == 0 {
                    string(&mut input, &mut self.scratch)?;
                    Name::Scratch
                } else {
                    Name::Indexed(index)
                };
                let split = self.scratch.len();
                string(&mut input, &mut self.scratch)?;
                let value = &self.scratch[split..];
                let name = match name {
                    Name::Indexed(index) => lookup(&self.entries, index)?.0,
                    Name::Scratch => &self.scratch[..split],
                };
                count(name.len(), value.len())?;
                field(name, value);
                if indexing {
                    let entry = [name, value].concat().into_boxed_slice();
                    let length = name.len();
                    self.insert(entry, length);
                }
            }
            fields += 1;
        }
        Ok(())
    }

    /// Adds an entry; one that is larger than the table empties it.
    fn insert(&mut self, entry: Box<[u8]>, name: usize) {
        self.changes += 1;
        let size = entry.len() + OVERHEAD;
        self.evict(self.limit.saturating_sub(size));
        if size <= self.limit {
            self.size += size;
            self.entries.push_front((entry, name));
        }
    }

    /// Drops the oldest entries until the rest is no larger than this.
    fn evict(&mut self, limit: usize) {
        while self.size > limit {
            let Some((entry, _)) = self.entries.pop_back() else { return };
            self.size -= entry.len() + OVERHEAD;
        }
    }
}

/// An entry of the two tables.
fn lookup(entries: &VecDeque<(Box<[u8]>, usize)>, index: usize) -> Result<(&[u8], &[u8]), BlockError> {
    let place = index.checked_sub(1).ok_or(BlockError::Index)?;
    match STATIC.get(place) {
        Some((name, value)) => Ok((name.as_bytes(), value.as_bytes())),
        None => {
            let (bytes, name) = entries.get(place - STATIC.len()).ok_or(BlockError::Index)?;
            Ok(bytes.split_at(*name))
        }
    }
}

/// Reads a number whose first byte has so many bits for it (RFC 7541, 5.1).
fn number(input: &mut &[u8], bits: u32) -> Result<usize, BlockError> {
    let (&first, mut rest) = input.split_first().ok_or(BlockError::Truncated)?;
    let most = (1usize << bits) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (&byte, after) = rest.split_first().ok_or(BlockError::Truncated)?;
            rest = after;
            // No length or index that we could accept needs more than four bytes.
            if shift > 21 {
                return Err(BlockError::Number);
            }
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *input = rest;
    Ok(value)
}

/// Reads a string and appends it, decoded (RFC 7541, 5.2).
fn string(input: &mut &[u8], into: &mut Vec<u8>) -> Result<(), BlockError> {
    let coded = input.first().ok_or(BlockError::Truncated)? & 0x80 != 0;
    let length = number(input, 7)?;
    let (bytes, rest) = input.split_at_checked(length).ok_or(BlockError::Truncated)?;
    *input = rest;
    if coded {
        huffman::decode(bytes, into).ok_or(BlockError::Huffman)?;
    } else {
        into.extend_from_slice(bytes);
    }
    Ok(())
}

/// Appends a number after the pattern of its first byte.
pub fn put_number(into: &mut Vec<u8>, pattern: u8, bits: u32, value: usize) {
    let most = (1usize << bits) - 1;
    if value < most {
        return into.push(pattern | value as u8);
    }
    into.push(pattern | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        into.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    into.push(rest as u8);
}

/// Appends a string as it is.
fn put_string(into: &mut Vec<u8>, text: &[u8]) {
    put_number(into, 0, 7, text.len());
    into.extend_from_slice(text);
}

/// Appends a reference to a whole field.
pub fn put_indexed(into: &mut Vec<u8>, index: usize) {
    put_number(into, 0x80, 7, index);
}

/// Appends a field as a literal. `indexing`: both sides put it into their dynamic table.
pub fn put_literal(into: &mut Vec<u8>, name: &str, value: &[u8], indexing: bool) {
    let (pattern, bits) = if indexing { (0x40, 6) } else { (0, 4) };
    match STATIC.iter().position(|(known, _)| *known == name) {
        Some(place) => put_number(into, pattern, bits, place + 1),
        None => {
            into.push(pattern);
            put_string(into, name.as_bytes());
        }
    }
    put_string(into, value);
}

/// Appends a literal that stays out of the table, its name taken from an entry.
pub fn put_literal_named(into: &mut Vec<u8>, name_index: usize, value: &[u8]) {
    put_number(into, 0, 4, name_index);
    put_string(into, value);
}

/// Appends a change of the table's size.
pub fn put_table_size(into: &mut Vec<u8>, size: usize) {
    put_number(into, 0x20, 5, size);
}

/// What a field takes in the dynamic table.
pub fn entry_size(name: &str, value: &str) -> usize {
    name.len() + value.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ascii"), 16).expect("hex"))
            .collect()
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, BlockError> {
        let mut fields = Vec::new();
        decoder.decode(block, |name, value| {
            fields.push(format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
        })?;
        Ok(fields)
    }

    /// A sequence of blocks with the fields each means and the size of the table after it.
    fn check(limit: usize, blocks: &[(&str, &[&str], usize)]) {
        let mut decoder = Decoder { limit, ..Decoder::new() };
        for (hex, fields, size) in blocks {
            assert_eq!(decode(&mut decoder, &bytes(hex)).expect("a good block"), *fields, "{hex}");
            assert_eq!(decoder.size, *size, "{hex}");
        }
    }

    #[test]
    fn appendix_c2_single_fields() {
        check(
            4096,
            &[("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", &["custom-key: custom-header"], 55)],
        );
        check(4096, &[("040c 2f73 616d 706c 652f 7061 7468", &[":path: /sample/path"], 0)]);
        check(4096, &[("1008 7061 7373 776f 7264 0673 6563 7265 74", &["password: secret"], 0)]);
        check(4096, &[("82", &[":method: GET"], 0)]);
    }

    /// Requests with and without Huffman (C.3, C.4).
    #[test]
    fn appendix_c3_and_c4_requests() {
        let first = &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"][..];
        let second = &[
            ":method: GET",
            ":scheme: http",
            ":path: /",
            ":authority: www.example.com",
            "cache-control: no-cache",
        ][..];
        let third = &[
            ":method: GET",
            ":scheme: https",
            ":path: /index.html",
            ":authority: www.example.com",
            "custom-key: custom-value",
        ][..];
        for blocks in [
            [
                "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                "8286 84be 5808 6e6f 2d63 6163 6865",
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
            ],
            [
                "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
                "8286 84be 5886 a8eb 1064 9cbf",
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
            ],
        ] {
            check(4096, &[(blocks[0], first, 57), (blocks[1], second, 110), (blocks[2], third, 164)]);
        }
    }

    /// Responses with evictions, with and without Huffman (C.5, C.6): the table holds 256 bytes.
    #[test]
    fn appendix_c5_and_c6_responses() {
        let date = "date: Mon, 21 Oct 2013 20:13:21 GMT";
        let first = &[":status: 302", "cache-control: private", date, "location: https://www.example.com"][..];
        let second = &[":status: 307", "cache-control: private", date, "location: https://www.example.com"][..];
        let third = &[
            ":status: 200",
            "cache-control: private",
            "date: Mon, 21 Oct 2013 20:13:22 GMT",
            "location: https://www.example.com",
            "content-encoding: gzip",
            "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ][..];
        for blocks in [
            [
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 \
                 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                "4803 3330 37c1 c0bf",
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 \
                 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 \
                 3630 303b 2076 6572 7369 6f6e 3d31",
            ],
            [
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
                 63c7 8f0b 97c8 e9ae 82ae 43d3",
                "4883 640e ffc1 c0bf",
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
                 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
            ],
        ] {
            check(256, &[(blocks[0], first, 222), (blocks[1], second, 222), (blocks[2], third, 215)]);
        }
    }

    #[test]
    fn the_table_size_changes_at_the_beginning_of_a_block_only() {
        let mut decoder = Decoder::new();
        let entry = bytes("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572");
        decode(&mut decoder, &entry).expect("a good block");
        assert_eq!((decoder.size, decoder.changes), (55, 1));
        // To 0 and back to 4096 in one block: the entry is gone, later ones are kept.
        decode(&mut decoder, &bytes("20 3fe1 1f 88")).expect("a good block");
        assert_eq!((decoder.size, decoder.limit), (0, 4096));
        assert_eq!(decode(&mut decoder, &bytes("be")), Err(BlockError::Index));
        assert_eq!(decode(&mut decoder, &bytes("88 20")), Err(BlockError::TableSize));
        assert_eq!(decode(&mut decoder, &bytes("3fe2 1f")), Err(BlockError::TableSize));
    }

    #[test]
    fn broken_blocks_are_refused() {
        for (hex, error) in [
            ("80", BlockError::Index),
            ("bf", BlockError::Index),
            ("3f", BlockError::Truncated),
            ("ff ff ff ff ff ff 01", BlockError::Number),
            ("40", BlockError::Truncated),
            ("48 03 32 30", BlockError::Truncated),
            ("40 05 61", BlockError::Truncated),
            ("48 81 ff", BlockError::Huffman),
            ("7f 80 80 80 80 80 80 80 80 80 01", BlockError::Number),
        ] {
            assert_eq!(decode(&mut Decoder::new(), &bytes(hex)), Err(error), "{hex}");
        }
    }

    #[test]
    fn a_bomb_is_refused_before_it_unfolds() {
        // An entry of 4 KiB, then 60,000 references to it: 240 MiB from 64 KiB.
        let mut block = vec![0x40, 1, b'a'];
        put_string(&mut block, &vec![b'x'; 4000]);
        block.extend(std::iter::repeat_n(0xbe, 60_000));
        let mut seen = 0;
        let result = Decoder::new().decode(&block, |_, value| seen += value.len());
        assert_eq!(result, Err(BlockError::TooLarge));
        assert!(seen <= MAX_DECODED);
    }

    #[test]
    fn what_we_put_we_can_read() {
        let mut block = Vec::new();
        put_indexed(&mut block, static_field(":method", "GET").expect("static"));
        put_literal(&mut block, ":path", b"/x", true);
        put_literal(&mut block, "x-long", &[b'y'; 300], true);
        put_literal(&mut block, "x-none", b"", false);
        put_literal_named(&mut block, FIRST_DYNAMIC, b"other");
        let mut decoder = Decoder::new();
        let fields = decode(&mut decoder, &block).expect("our own");
        assert_eq!(fields[..2], [":method: GET", ":path: /x"]);
        assert_eq!((fields[3].as_str(), fields[4].as_str()), ("x-none: ", "x-long: other"));
        assert_eq!(decoder.entries.len(), 2);
        assert_eq!(decoder.size, entry_size(":path", "/x") + entry_size("x-long", &"y".repeat(300)));
    }

    proptest! {
        #[test]
        fn whatever_comes_the_decoder_keeps_within_its_table(blocks: Vec<Vec<u8>>) {
            let mut decoder = Decoder::new();
            for block in &blocks {
                let _ = decode(&mut decoder, block);
                prop_assert!(decoder.size <= TABLE_SIZE);
                prop_assert_eq!(decoder.size, decoder.entries.iter().map(|(e, _)| e.len() + OVERHEAD).sum::<usize>());
            }
        }
    }
}
