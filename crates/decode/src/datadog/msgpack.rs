//! MessagePack (<https://github.com/msgpack/msgpack/blob/master/spec.md>) as slices of the message that came in: a cursor that copies
//! and allocates nothing. As liberal as Datadog's agent (`decoder_bytes.go` in its package `pbgo/trace`), because what a tracer's
//! encoder makes of a value depends on its language: nothing stands for any value, bytes for text, and every number for every other.

use rmp::Marker;

use crate::broken::Broken;

/// A value, or what one begins with.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Item<'a> {
    Nil,
    Truth(bool),
    Signed(i64),
    Unsigned(u64),
    Real(f64),
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    Extension,
    /// As many values follow.
    Array(u32),
    /// As many pairs of values follow.
    Map(u32),
}

/// A cursor over a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// At the start of a message.
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { message, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Says what is amiss with what was read last.
    pub(super) fn broken<T>(&self, what: &'static str) -> Result<T, Broken> {
        Err(Broken::At { what, at: self.at })
    }

    /// Nothing may follow.
    pub(super) fn end(&self) -> Result<(), Broken> {
        if self.at < self.message.len() { self.broken("expected the end of the message") } else { Ok(()) }
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        match self.message[self.at..].first_chunk::<N>() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => self.broken("the message ends in the middle of a value"),
        }
    }

    #[inline]
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        match self.message[self.at..].get(..length) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => self.broken("a text is longer than the message"),
        }
    }

    /// Every value takes at least a byte, so a count that lies is known at once.
    #[inline]
    fn count(&self, values: u32, bytes_of_one: usize) -> Result<u32, Broken> {
        if (values as usize).saturating_mul(bytes_of_one) > self.message.len() - self.at {
            return self.broken("an array or map has more values than the message has bytes");
        }
        Ok(values)
    }

    /// The next value; of arrays and maps its beginning.
    #[inline]
    fn item(&mut self) -> Result<Item<'a>, Broken> {
        let [first] = self.take()?;
        Ok(match Marker::from_u8(first) {
            Marker::FixStr(length) => Item::Text(self.bytes(length.into())?),
            Marker::FixPos(number) => Item::Unsigned(number.into()),
            Marker::U8 => Item::Unsigned(u8::from_be_bytes(self.take()?).into()),
            Marker::U16 => Item::Unsigned(u16::from_be_bytes(self.take()?).into()),
            Marker::U32 => Item::Unsigned(u32::from_be_bytes(self.take()?).into()),
            Marker::U64 => Item::Unsigned(u64::from_be_bytes(self.take()?)),
            Marker::FixNeg(number) => Item::Signed(number.into()),
            Marker::I8 => Item::Signed(i8::from_be_bytes(self.take()?).into()),
            Marker::I16 => Item::Signed(i16::from_be_bytes(self.take()?).into()),
            Marker::I32 => Item::Signed(i32::from_be_bytes(self.take()?).into()),
            Marker::I64 => Item::Signed(i64::from_be_bytes(self.take()?)),
            Marker::F32 => Item::Real(f32::from_be_bytes(self.take()?).into()),
            Marker::F64 => Item::Real(f64::from_be_bytes(self.take()?)),
            Marker::Str8 => Item::Text(self.sized::<1>()?),
            Marker::Bin8 => Item::Bytes(self.sized::<1>()?),
            Marker::Str16 => Item::Text(self.sized::<2>()?),
            Marker::Bin16 => Item::Bytes(self.sized::<2>()?),
            Marker::Str32 => Item::Text(self.sized::<4>()?),
            Marker::Bin32 => Item::Bytes(self.sized::<4>()?),
            Marker::FixArray(values) => Item::Array(self.count(values.into(), 1)?),
            Marker::Array16 => {
                let values = u16::from_be_bytes(self.take()?).into();
                Item::Array(self.count(values, 1)?)
            }
            Marker::Array32 => {
                let values = u32::from_be_bytes(self.take()?);
                Item::Array(self.count(values, 1)?)
            }
            Marker::FixMap(pairs) => Item::Map(self.count(pairs.into(), 2)?),
            Marker::Map16 => {
                let pairs = u16::from_be_bytes(self.take()?).into();
                Item::Map(self.count(pairs, 2)?)
            }
            Marker::Map32 => {
                let pairs = u32::from_be_bytes(self.take()?);
                Item::Map(self.count(pairs, 2)?)
            }
            Marker::Null => Item::Nil,
            Marker::True => Item::Truth(true),
            Marker::False => Item::Truth(false),
            // A byte says of which type an extension is.
            Marker::FixExt1 => self.extension(1)?,
            Marker::FixExt2 => self.extension(2)?,
            Marker::FixExt4 => self.extension(4)?,
            Marker::FixExt8 => self.extension(8)?,
            Marker::FixExt16 => self.extension(16)?,
            Marker::Ext8 => self.length::<1>().and_then(|length| self.extension(length))?,
            Marker::Ext16 => self.length::<2>().and_then(|length| self.extension(length))?,
            Marker::Ext32 => self.length::<4>().and_then(|length| self.extension(length))?,
            Marker::Reserved => {
                return Err(Broken::At { what: "expected a value, found 0xc1, which begins none", at: self.at - 1 });
            }
        })
    }

    /// A length of `N` bytes, at most four.
    #[inline]
    fn length<const N: usize>(&mut self) -> Result<usize, Broken> {
        Ok(self.take::<N>()?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }

    /// Text or bytes behind a length of `N` bytes.
    #[inline]
    fn sized<const N: usize>(&mut self) -> Result<&'a [u8], Broken> {
        let length = self.length::<N>()?;
        self.bytes(length)
    }

    fn extension(&mut self, length: usize) -> Result<Item<'a>, Broken> {
        self.bytes(length + 1)?;
        Ok(Item::Extension)
    }

    /// Values of the array that begins here; `what` it should be.
    pub(super) fn array(&mut self, what: &'static str) -> Result<u32, Broken> {
        let at = self.at;
        match self.item()? {
            Item::Array(values) => Ok(values),
            Item::Nil => Ok(0),
            _ => Err(Broken::At { what, at }),
        }
    }

    /// Pairs of the map that begins here; `what` it should be.
    pub(super) fn map(&mut self, what: &'static str) -> Result<u32, Broken> {
        let at = self.at;
        match self.item()? {
            Item::Map(pairs) => Ok(pairs),
            Item::Nil => Ok(0),
            _ => Err(Broken::At { what, at }),
        }
    }

    /// Text, as it came: not necessarily UTF-8.
    #[inline]
    pub(super) fn text(&mut self) -> Result<&'a [u8], Broken> {
        let at = self.at;
        match self.item()? {
            Item::Text(bytes) | Item::Bytes(bytes) => Ok(bytes),
            Item::Nil => Ok(&[]),
            _ => Err(Broken::At { what: "expected a text", at }),
        }
    }

    /// A text, or the number of one that came before.
    #[inline]
    pub(super) fn reference(&mut self) -> Result<Reference<'a>, Broken> {
        let at = self.at;
        match self.item()? {
            Item::Text(text) => Ok(Reference::Text(text)),
            Item::Unsigned(number) => Ok(Reference::Number(number)),
            Item::Nil => Ok(Reference::Number(0)),
            _ => Err(Broken::At { what: "expected a text or the number of one", at }),
        }
    }

    /// True or false, or a number that is not 0.
    pub(super) fn truth(&mut self) -> Result<bool, Broken> {
        let at = self.at;
        match self.item()? {
            Item::Truth(truth) => Ok(truth),
            Item::Unsigned(number) => Ok(number != 0),
            Item::Signed(number) => Ok(number != 0),
            Item::Nil => Ok(false),
            _ => Err(Broken::At { what: "expected true or false", at }),
        }
    }

    /// A number of 64 bits without sign, which languages without such numbers send as one with a sign.
    #[inline]
    pub(super) fn unsigned(&mut self) -> Result<u64, Broken> {
        let at = self.at;
        match self.item()? {
            Item::Unsigned(number) => Ok(number),
            Item::Signed(number) => Ok(number as u64),
            Item::Real(number) => Ok(number as u64),
            Item::Nil => Ok(0),
            _ => Err(Broken::At { what: NUMBER, at }),
        }
    }

    /// A whole number; the nearest there is, if it has more than 63 bits.
    #[inline]
    pub(super) fn signed(&mut self) -> Result<i64, Broken> {
        let at = self.at;
        match self.item()? {
            Item::Unsigned(number) => Ok(i64::try_from(number).unwrap_or(i64::MAX)),
            Item::Signed(number) => Ok(number),
            Item::Real(number) => Ok(number as i64),
            Item::Nil => Ok(0),
            _ => Err(Broken::At { what: NUMBER, at }),
        }
    }

    /// Any number.
    #[inline]
    pub(super) fn real(&mut self) -> Result<f64, Broken> {
        let at = self.at;
        match self.item()? {
            Item::Real(number) => Ok(number),
            Item::Unsigned(number) => Ok(number as f64),
            Item::Signed(number) => Ok(number as f64),
            Item::Nil => Ok(0.0),
            _ => Err(Broken::At { what: NUMBER, at }),
        }
    }

    /// Passes over a value and all that is within it.
    pub(super) fn skip(&mut self) -> Result<(), Broken> {
        self.skip_seeing(|_, _| Ok(()))
    }

    /// The same, and shows every text on the way. It counts what is left instead of calling itself, so nesting costs nothing.
    pub(super) fn skip_seeing(
        &mut self,
        mut on_text: impl FnMut(&Self, &'a [u8]) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let mut left = 1_u64;
        while left > 0 {
            left -= 1;
            left += match self.item()? {
                Item::Array(values) => u64::from(values),
                Item::Map(pairs) => 2 * u64::from(pairs),
                Item::Text(text) => {
                    on_text(self, text)?;
                    0
                }
                _ => 0,
            };
        }
        Ok(())
    }
}

/// A text, or which one it is of those that came before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reference<'a> {
    Text(&'a [u8]),
    Number(u64),
}

const NUMBER: &str = "expected a number";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size_and_sign() {
        let sizes: [(&[u8], u64, i64, f64); 14] = [
            (&[0x05], 5, 5, 5.0),
            (&[0xff], u64::MAX, -1, -1.0),
            (&[0xcc, 200], 200, 200, 200.0),
            (&[0xcd, 1, 0], 256, 256, 256.0),
            (&[0xce, 0, 1, 0, 0], 65_536, 65_536, 65_536.0),
            (&[0xcf, 0, 0, 0, 1, 0, 0, 0, 0], 1 << 32, 1 << 32, 4_294_967_296.0),
            (&[0xcf, 255, 255, 255, 255, 255, 255, 255, 255], u64::MAX, i64::MAX, u64::MAX as f64),
            (&[0xd0, 0x80], -128_i64 as u64, -128, -128.0),
            (&[0xd1, 0xff, 0], -256_i64 as u64, -256, -256.0),
            (&[0xd2, 0xff, 0xff, 0, 0], -65_536_i64 as u64, -65_536, -65_536.0),
            (&[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0], 1 << 63, i64::MIN, i64::MIN as f64),
            (&[0xca, 0x3f, 0x80, 0, 0], 1, 1, 1.0),
            (&[0xcb, 0x40, 0x09, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18], 3, 3, std::f64::consts::PI),
            (&[0xc0], 0, 0, 0.0),
        ];
        for (message, unsigned, signed, real) in sizes {
            assert_eq!(Reader::new(message).unsigned(), Ok(unsigned), "{message:x?}");
            assert_eq!(Reader::new(message).signed(), Ok(signed), "{message:x?}");
            assert_eq!(Reader::new(message).real(), Ok(real), "{message:x?}");
            for end in 0..message.len() {
                assert!(Reader::new(&message[..end]).signed().is_err(), "{message:x?} cut after {end}");
            }
        }
        let text = Broken::At { what: NUMBER, at: 0 };
        assert_eq!(Reader::new(b"\xa15").signed(), Err(text), "a text is no number");
    }

    #[test]
    fn text_of_every_length() {
        let heads: [&[u8]; 7] =
            [b"\xa2", b"\xd9\x02", b"\xda\0\x02", b"\xdb\0\0\0\x02", b"\xc4\x02", b"\xc5\0\x02", b"\xc6\0\0\0\x02"];
        for head in heads {
            let message = [head, b"hi"].concat();
            let mut reader = Reader::new(&message);
            assert_eq!((reader.text(), reader.end()), (Ok(&b"hi"[..]), Ok(())), "{head:x?}");
            assert!(Reader::new(&message[..message.len() - 1]).text().is_err(), "{head:x?}");
        }
        assert_eq!(Reader::new(b"\xc0").text(), Ok(&b""[..]));
    }

    #[test]
    fn everything_is_passed_over_that_is_not_wanted() {
        let mut message = vec![0x9f];
        let items: [&[u8]; 15] = [
            b"\xc0",
            b"\xc2",
            b"\xc3",
            b"\xd4\x01x",
            b"\xd5\x01xx",
            b"\xd6\x01xxxx",
            b"\xd7\x01xxxxxxxx",
            b"\xd8\x01xxxxxxxxxxxxxxxx",
            b"\xc7\x01\x05x",
            b"\xc8\0\x01\x05x",
            b"\xc9\0\0\0\x01\x05x",
            b"\x82\xa1a\x91\x01\xa1b\x80",
            b"\xdc\0\x01\x01",
            b"\xde\0\x01\x01\x02",
            b"\xdf\0\0\0\x01\x01\xdd\0\0\0\0",
        ];
        message.extend(items.concat());
        let mut reader = Reader::new(&message);
        assert_eq!((reader.skip(), reader.end()), (Ok(()), Ok(())));
        for end in 0..message.len() {
            assert!(Reader::new(&message[..end]).skip().is_err(), "cut after {end}");
        }
        let nested = [vec![0x91; 1 << 20], vec![0xc0]].concat();
        assert_eq!(Reader::new(&nested).skip(), Ok(()), "a million arrays within each other");
    }

    #[test]
    fn lies_are_told_where_they_stand() {
        let at = |message: &[u8]| match Reader::new(message).skip() {
            Err(Broken::At { what, at }) => (what, at),
            other => panic!("{other:?}"),
        };
        let many = "an array or map has more values than the message has bytes";
        assert_eq!(at(b"\x92\x01"), (many, 1));
        assert_eq!(at(b"\xdd\xff\xff\xff\xff"), (many, 5));
        assert_eq!(at(b"\x81\x01"), (many, 1));
        assert_eq!(at(b"\xdb\xff\xff\xff\xffx"), ("a text is longer than the message", 5));
        assert_eq!(at(b"\xc9\xff\xff\xff\xffx"), ("a text is longer than the message", 5));
        assert_eq!(at(b"\xc1"), ("expected a value, found 0xc1, which begins none", 0));
        assert_eq!(at(b""), ("the message ends in the middle of a value", 0));
    }
}
