//! Thrift's compact protocol, as far as Parquet's page headers and footers need it written:
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>. Knows no struct: which fields there
//! are is decided where they are written.

use unladen_decode::wire::put_varint;

/// Types of fields and of the elements of lists.
mod kind {
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const STRUCT: u8 = 12;
}

/// What the elements of a list are.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum Of {
    I32 = kind::I32,
    Binary = kind::BINARY,
    Struct = kind::STRUCT,
}

/// A number with its sign in the lowest bit.
pub(super) fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// Appends a string or bytes.
pub(super) fn put_binary(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends what stands before the elements of a list.
pub(super) fn put_list(count: usize, of: Of, out: &mut Vec<u8>) {
    if count < 15 {
        out.push((count as u8) << 4 | of as u8);
    } else {
        out.push(0xf0 | of as u8);
        put_varint(out, count as u64);
    }
}

/// A struct being written, field by field in ascending order; the numbers of neighbours are at most 15 apart.
#[derive(Debug)]
pub(super) struct Struct<'a> {
    pub(super) out: &'a mut Vec<u8>,
    last: u8,
}

impl<'a> Struct<'a> {
    /// No field yet.
    pub(super) fn begin(out: &'a mut Vec<u8>) -> Self {
        Self { out, last: 0 }
    }

    /// One of which the fields up to `last` are written already.
    pub(super) fn after(last: u8, out: &'a mut Vec<u8>) -> Self {
        Self { out, last }
    }

    fn field(&mut self, number: u8, kind: u8) {
        self.out.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn number(&mut self, number: u8, kind: u8, value: i64) {
        self.field(number, kind);
        put_varint(self.out, zigzag(value));
    }

    /// An `i16`.
    pub(super) fn short(&mut self, number: u8, value: i16) {
        self.number(number, kind::I16, value.into());
    }

    /// An `i32`, or an enum.
    pub(super) fn int(&mut self, number: u8, value: i32) {
        self.number(number, kind::I32, value.into());
    }

    /// An `i64`.
    pub(super) fn long(&mut self, number: u8, value: i64) {
        self.number(number, kind::I64, value);
    }

    /// A string or bytes.
    pub(super) fn binary(&mut self, number: u8, value: &[u8]) {
        self.field(number, kind::BINARY);
        put_binary(value, self.out);
    }

    /// A list; its elements are to follow.
    pub(super) fn list(&mut self, number: u8, count: usize, of: Of) {
        self.encoded_list(number);
        put_list(count, of, self.out);
    }

    /// A list of which everything is to follow.
    pub(super) fn encoded_list(&mut self, number: u8) {
        self.field(number, kind::LIST);
    }

    /// A struct within.
    pub(super) fn within(&mut self, number: u8) -> Struct<'_> {
        self.field(number, kind::STRUCT);
        Struct::begin(self.out)
    }

    /// The end of it.
    pub(super) fn end(self) {
        self.out.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_as_in_the_specification() {
        let mut out = Vec::new();
        let mut all = Struct::begin(&mut out);
        all.int(1, -1);
        all.long(4, 150);
        all.binary(5, b"ab");
        all.list(7, 2, Of::I32);
        [zigzag(1), zigzag(-2)].iter().for_each(|number| put_varint(all.out, *number));
        let mut within = all.within(8);
        within.short(2, 3);
        within.end();
        all.list(9, 15, Of::Struct);
        all.end();
        let expected =
            [0x15, 1, 0x36, 0xac, 2, 0x18, 2, b'a', b'b', 0x29, 0x25, 2, 3, 0x1c, 0x24, 6, 0, 0x19, 0xfc, 15, 0];
        assert_eq!(out, expected);
    }
}
