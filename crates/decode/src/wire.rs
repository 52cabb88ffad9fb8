//! Protocol Buffers as slices of the message that came in: a cursor over fields that copies and allocates nothing.
//!
//! Follows <https://protobuf.dev/programming-guides/encoding/>. Knows no message: what a field means is decided where
//! it is read. Unknown fields, groups included, are skipped.

use thiserror::Error;

/// Groups within groups that are followed before the message is called broken; `prost` stops at the same depth.
const MAX_GROUP_DEPTH: u32 = 100;

/// Why a message is not Protocol Buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WireError {
    /// The message ends within a field.
    #[error("the message ends in the middle of a field")]
    Truncated,
    /// A varint of more than ten bytes or 64 bits.
    #[error("a varint is longer than 64 bits")]
    Varint,
    /// Field number 0 or beyond 2²⁹ − 1, or a wire type that does not exist.
    #[error("a field's tag is invalid")]
    Tag,
    /// A known field with the wire type of another.
    #[error("a field has the wrong wire type")]
    Type,
    /// A group that ends without having begun, or is nested too deeply.
    #[error("a group is not closed properly")]
    Group,
}

/// The value of one field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    /// `int32` … `uint64`, `bool`, enums.
    Varint(u64),
    /// `fixed64`, `double`.
    Fixed64(u64),
    /// `bytes`, `string`, messages, packed fields.
    Bytes(&'a [u8]),
    /// `fixed32`, `float`.
    Fixed32(u32),
    /// A group, skipped.
    Group,
}

impl<'a> Value<'a> {
    /// The bytes of a length-delimited field.
    #[inline]
    pub(crate) fn bytes(self) -> Result<&'a [u8], WireError> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(WireError::Type),
        }
    }

    /// The number of a varint field.
    #[inline]
    pub(crate) fn varint(self) -> Result<u64, WireError> {
        match self {
            Value::Varint(number) => Ok(number),
            _ => Err(WireError::Type),
        }
    }

    /// The number of an `int32` field: the lower half of the varint, with its sign.
    #[inline]
    pub(crate) fn int32(self) -> Result<i32, WireError> {
        Ok(self.varint()? as i32)
    }

    /// The number of an `sint32` field, in which signs alternate.
    #[inline]
    pub(crate) fn sint32(self) -> Result<i32, WireError> {
        let number = self.varint()?;
        Ok(((number as u32) >> 1) as i32 ^ -((number & 1) as i32))
    }

    /// The number of a `fixed64` field.
    #[inline]
    pub(crate) fn fixed64(self) -> Result<u64, WireError> {
        match self {
            Value::Fixed64(number) => Ok(number),
            _ => Err(WireError::Type),
        }
    }
}

/// A cursor over the fields of one message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of `message`, in the order of the wire.
    #[inline]
    pub(crate) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// What is left of the message.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next field's number and value; `None` at the end of the message.
    // Inlined always, so that the cursor lives in registers: through memory every field would wait for the last.
    #[expect(clippy::inline_always, reason = "a third of the time to receive a span is spent here")]
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, WireError> {
        let [first, rest @ ..] = self.rest else { return Ok(None) };
        let (field, wire_type) = if *first < 0x80 && *first >= 8 {
            self.rest = rest;
            (u32::from(*first >> 3), *first & 7)
        } else {
            self.tag()?
        };
        let value = match wire_type {
            2 => Value::Bytes(self.bytes()?),
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.take::<8>()?)),
            _ => self.seldom(field, wire_type, 0)?,
        };
        Ok(Some((field, value)))
    }

    /// The bytes of the next field if its tag, of one byte, is this one and its length takes one byte too; else nothing is
    /// read. For fields of which many follow each other.
    #[expect(clippy::inline_always, reason = "see `next`")]
    #[inline(always)]
    pub(crate) fn another(&mut self, tag: u8) -> Option<&'a [u8]> {
        let [first, length @ 0..0x80, rest @ ..] = self.rest else { return None };
        let (bytes, rest) = rest.split_at_checked(usize::from(*length)).filter(|_| *first == tag)?;
        self.rest = rest;
        Some(bytes)
    }

    #[inline(never)]
    fn tag(&mut self) -> Result<(u32, u8), WireError> {
        let tag = u32::try_from(self.varint()?).map_err(|_| WireError::Tag)?;
        if tag >> 3 == 0 { Err(WireError::Tag) } else { Ok((tag >> 3, (tag & 7) as u8)) }
    }

    #[expect(clippy::inline_always, reason = "see `next`")]
    #[inline(always)]
    fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The value of any field.
    #[inline(never)]
    fn seldom(&mut self, field: u32, wire_type: u8, depth: u32) -> Result<Value<'a>, WireError> {
        match wire_type {
            0 => self.varint().map(Value::Varint),
            1 => self.take::<8>().map(|bytes| Value::Fixed64(u64::from_le_bytes(bytes))),
            2 => self.bytes().map(Value::Bytes),
            3 => self.skip_group(field, depth).map(|()| Value::Group),
            4 => Err(WireError::Group),
            5 => self.take::<4>().map(|bytes| Value::Fixed32(u32::from_le_bytes(bytes))),
            _ => Err(WireError::Tag),
        }
    }

    fn skip_group(&mut self, group: u32, depth: u32) -> Result<(), WireError> {
        if depth >= MAX_GROUP_DEPTH {
            return Err(WireError::Group);
        }
        loop {
            match self.tag()? {
                (field, 4) if field == group => return Ok(()),
                (field, wire_type) => self.seldom(field, wire_type, depth + 1)?,
            };
        }
    }

    #[expect(clippy::inline_always, reason = "see `next`")]
    #[inline(always)]
    fn varint(&mut self) -> Result<u64, WireError> {
        // One byte is by far the most frequent, then two: lengths of ids, enums, lengths of spans.
        match self.rest {
            [first, rest @ ..] if *first < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*first))
            }
            [first, second, rest @ ..] if *second < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*first & 0x7f) | u64::from(*second) << 7)
            }
            _ => {
                let (number, rest) = long_varint(self.rest)?;
                self.rest = rest;
                Ok(number)
            }
        }
    }

    #[expect(clippy::inline_always, reason = "see `next`")]
    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

/// Times and negative numbers. Eight bytes at once if there are as many, because one after the other each would wait for the
/// last.
fn long_varint(bytes: &[u8]) -> Result<(u64, &[u8]), WireError> {
    let Some(first) = bytes.first_chunk::<8>() else { return slow_varint(bytes) };
    let word = u64::from_le_bytes(*first);
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return slow_varint(bytes);
    }
    let bits = ends.trailing_zeros() + 1;
    // The low seven bits of each byte, brought together by twos, fours and eights.
    let sevens = word & (u64::MAX >> (64 - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
    let pairs = (sevens & 0x007f_007f_007f_007f) | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let eights = (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4;
    Ok((eights, &bytes[bits as usize / 8..]))
}

#[inline(never)]
fn slow_varint(bytes: &[u8]) -> Result<(u64, &[u8]), WireError> {
    let mut number = 0;
    for (position, byte) in bytes.iter().take(10).enumerate() {
        if position == 9 && *byte > 1 {
            return Err(WireError::Varint);
        }
        number |= u64::from(byte & 0x7f) << (7 * position);
        if *byte < 0x80 {
            return Ok((number, &bytes[position + 1..]));
        }
    }
    Err(if bytes.len() < 10 { WireError::Truncated } else { WireError::Varint })
}

/// What stands in a length-delimited field that may be repeated. After an error there is no end.
#[inline]
pub(crate) fn repeated(message: &[u8], wanted: u32) -> impl Iterator<Item = Result<&[u8], WireError>> {
    let mut fields = Fields::of(message);
    std::iter::from_fn(move || {
        loop {
            match fields.next() {
                Ok(Some((field, value))) if field == wanted => return Some(value.bytes()),
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    })
}

/// Fields 1 and 2, both length-delimited: an entry of a map, or any pair of key and value.
#[inline]
pub(crate) fn pair(message: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    // As every encoder writes it: a short key, then a short value, and nothing else.
    if let [0x0a, length @ 0..0x80, rest @ ..] = message
        && let Some((key, [0x12, length @ 0..0x80, content @ ..])) = rest.split_at_checked(usize::from(*length))
        && content.len() == usize::from(*length)
    {
        return Ok((key, content));
    }
    any_pair(message)
}

#[inline(never)]
fn any_pair(message: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let (mut key, mut content) = (&[][..], &[][..]);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => key = value.bytes()?,
            2 => content = value.bytes()?,
            _ => {}
        }
    }
    Ok((key, content))
}

/// Appends a varint.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number as u8) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a varint field, unless it is 0, the default that proto3 leaves out.
#[inline]
pub fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    if number != 0 {
        put_varint(out, u64::from(field) << 3);
        put_varint(out, number);
    }
}

/// Appends a length-delimited field.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(message: &[u8]) -> Result<Vec<(u32, Value<'_>)>, WireError> {
        let mut fields = Fields::of(message);
        let mut found = Vec::new();
        while let Some(field) = fields.next()? {
            found.push(field);
        }
        Ok(found)
    }

    #[test]
    fn every_wire_type() {
        let message = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x11, 1, 0, 0, 0, 0, 0, 0, 0, // 2: fixed64 1
            0x1a, 2, b'h', b'i', // 3: bytes
            0x25, 2, 0, 0, 0, // 4: fixed32 2
            0x2b, 0x08, 0x01, 0x33, 0x34, 0x2c, // 5: group with a varint and an inner group 6
        ];
        let expected = vec![
            (1, Value::Varint(150)),
            (2, Value::Fixed64(1)),
            (3, Value::Bytes(b"hi")),
            (4, Value::Fixed32(2)),
            (5, Value::Group),
        ];
        assert_eq!(all(&message), Ok(expected));
    }

    #[test]
    fn fields_that_follow_each_other() {
        let message = [0x4a, 1, b'a', 0x4a, 0, 0x4a, 0x80, 0x00, 0x4a, 3, b'c', b'u', b't'];
        let mut fields = Fields::of(&message);
        assert_eq!((fields.another(0x12), fields.another(0x4a)), (None, Some(&b"a"[..])));
        assert_eq!((fields.another(0x4a), fields.another(0x4a)), (Some(&b""[..]), None), "a length of two bytes");
        assert_eq!(fields.next(), Ok(Some((9, Value::Bytes(b"")))));
        assert_eq!((fields.another(0x4a), fields.another(0x4a)), (Some(&b"cut"[..]), None));
        let mut cut = Fields::of(&message[8..12]);
        assert_eq!((cut.another(0x4a), cut.next()), (None, Err(WireError::Truncated)));
    }

    #[test]
    fn broken_messages() {
        let cases: [(&[u8], WireError); 10] = [
            (&[0x08], WireError::Truncated),
            (&[0x08, 0x80], WireError::Truncated),
            (&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2], WireError::Varint),
            (&[0x11, 1, 2, 3], WireError::Truncated),
            (&[0x1a, 3, b'h'], WireError::Truncated),
            (&[0x1a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], WireError::Truncated),
            (&[0x00, 0x00], WireError::Tag),
            (&[0x0e], WireError::Tag),
            (&[0x0c], WireError::Group),
            (&[0x0b, 0x14], WireError::Group),
        ];
        for (message, error) in cases {
            assert_eq!(all(message), Err(error), "{message:?}");
        }
        assert_eq!(all(&[0x0b; 200]), Err(WireError::Group), "nested too deeply");
    }

    #[test]
    fn numbers_come_back() {
        let edges = (0..64).flat_map(|bit| [1 << bit, u64::MAX >> bit, 0x0123_4567_89ab_cdef >> bit]);
        for number in edges {
            let mut out = Vec::new();
            put_number(&mut out, 9, number);
            let alone = if number == 0 { vec![] } else { vec![(9, Value::Varint(number))] };
            assert_eq!(all(&out), Ok(alone.clone()), "nothing behind it");
            put_bytes(&mut out, 2, b"what stands behind it");
            assert_eq!(all(&out), Ok([alone, vec![(2, Value::Bytes(b"what stands behind it"))]].concat()));
        }
    }

    #[test]
    fn numbers_may_be_longer_than_need_be() {
        // Zeros at the high end say nothing, and ten bytes are as many as there may be.
        for length in 2..=10_usize {
            let mut message = vec![0x08, 0x85];
            message.resize(length, 0x80);
            message.push(0);
            assert_eq!(all(&message), Ok(vec![(1, Value::Varint(5))]), "{length} bytes");
            message.extend_from_slice(&[0x1a, 7, 1, 2, 3, 4, 5, 6, 7]);
            assert_eq!(all(&message).map(|fields| fields.len()), Ok(2), "{length} bytes");
        }
    }
}
