//! JSON (RFC 8259) as slices of the text that came in: a cursor that the caller leads through objects and arrays. Text
//! without escapes is not copied, text with escapes goes into an arena. Knows no format: what a member means is decided
//! where it is read.
//!
//! Invalid UTF-8 within strings is let through, as in Protocol Buffers: the store shows it with replacement characters.

use bumpalo::Bump;

use crate::broken::Broken;
use crate::buffers::size;
use crate::value::Value;

/// Values within values that are followed before the text is called broken.
const MAX_DEPTH: u32 = 64;

/// A cursor over a JSON text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
    arena: &'a Bump,
}

impl<'a> Reader<'a> {
    /// At the start of `text`.
    pub(crate) fn new(text: &'a [u8], arena: &'a Bump) -> Self {
        Self { text, at: 0, depth: 0, arena }
    }

    /// Puts text that was made from what was read where it can stay.
    pub(crate) fn keep(&self, text: &[u8]) -> &'a [u8] {
        self.arena.alloc_slice_copy(text)
    }

    fn broken<T>(&self, what: &'static str) -> Result<T, Broken> {
        Err(Broken::At { what, at: self.at })
    }

    /// The next byte that is no white space, left in place.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Broken> {
        if self.peek() != Some(byte) {
            return self.broken(what);
        }
        self.at += 1;
        Ok(())
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), Broken> {
        if self.peek().is_some() { self.broken("there is more than one JSON value") } else { Ok(()) }
    }

    /// Leads through what stands between two brackets, separated by commas; `null` is as good as nothing. `what` says what is
    /// expected: the beginning, and a comma or the end.
    #[inline]
    fn bracketed(
        &mut self,
        [open, close]: [u8; 2],
        what: [&'static str; 2],
        mut item: impl FnMut(&mut Self) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        if self.peek() == Some(b'n') {
            return self.word(b"null");
        }
        self.expect(open, what[0])?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.broken("values are nested too deeply");
        }
        if self.peek() == Some(close) {
            self.at += 1;
        } else {
            loop {
                item(self)?;
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(byte) if byte == close => break self.at += 1,
                    _ => return self.broken(what[1]),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Leads through an object: `member` gets each key and must read its value. `null` is an object without members.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let what = ["an object is expected", "a comma or the end of an object is expected"];
        self.bracketed(*b"{}", what, |reader| {
            let key = reader.string()?;
            reader.expect(b':', "a colon is expected")?;
            member(reader, key)
        })
    }

    /// The same; gives the object's length in the text.
    pub(crate) fn measured(
        &mut self,
        member: impl FnMut(&mut Self, &'a [u8]) -> Result<(), Broken>,
    ) -> Result<u32, Broken> {
        self.peek();
        let start = self.at;
        self.object(member)?;
        Ok(size(self.at - start))
    }

    /// Leads through an array: `item` must read each value. `null` is an array without values.
    pub(crate) fn array(&mut self, item: impl FnMut(&mut Self) -> Result<(), Broken>) -> Result<(), Broken> {
        self.bracketed(*b"[]", ["an array is expected", "a comma or the end of an array is expected"], item)
    }

    /// A string; empty for `null`.
    pub(crate) fn text(&mut self) -> Result<&'a [u8], Broken> {
        if self.peek() == Some(b'n') {
            self.word(b"null")?;
            return Ok(&[]);
        }
        self.string()
    }

    /// Any value. Objects, arrays and `null` come as [`Value::Json`].
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Broken> {
        match self.peek() {
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true").map(|()| Value::Truth(true)),
            Some(b'f') => self.word(b"false").map(|()| Value::Truth(false)),
            Some(b'n') => self.word(b"null").map(|()| Value::Json(b"null")),
            Some(b'{' | b'[') => {
                let start = self.at;
                self.skip()?;
                let json = &self.text[start..self.at];
                // What is stored as JSON must be JSON to those who read it.
                Ok(Value::Json(match String::from_utf8_lossy(json) {
                    std::borrow::Cow::Borrowed(_) => json,
                    std::borrow::Cow::Owned(lossy) => self.arena.alloc_slice_copy(lossy.as_bytes()),
                }))
            }
            _ => self.broken("a value is expected"),
        }
    }

    /// Reads past any value.
    pub(crate) fn skip(&mut self) -> Result<(), Broken> {
        match self.peek() {
            Some(b'{') => self.object(|reader, _| reader.skip()),
            Some(b'[') => self.array(Self::skip),
            Some(b'"') => {
                self.at += 1;
                while !self.scan()? {}
                Ok(())
            }
            _ => self.value().map(drop),
        }
    }

    fn word(&mut self, word: &'static [u8]) -> Result<(), Broken> {
        if !self.text[self.at..].starts_with(word) {
            return self.broken("a value is expected");
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<Value<'a>, Broken> {
        let start = self.at;
        self.at += usize::from(self.text[start] == b'-');
        let first = self.text.get(self.at).copied();
        let digits = self.digits()?;
        if first == Some(b'0') && digits > 1 {
            return self.broken("a number begins with a zero");
        }
        let mut is_whole = true;
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
            is_whole = false;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
            is_whole = false;
        }
        let text = &self.text[start..self.at];
        if is_whole && let Some(number) = whole(text) {
            return Ok(Value::Whole(number));
        }
        match std::str::from_utf8(text).map(str::parse::<f64>) {
            Ok(Ok(number)) => Ok(Value::Real(number)),
            _ => self.broken("a number is expected"),
        }
    }

    fn digits(&mut self) -> Result<usize, Broken> {
        let rest = &self.text[self.at..];
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        if digits == 0 {
            return self.broken("a digit is expected");
        }
        self.at += digits;
        Ok(digits)
    }

    #[inline]
    fn string(&mut self) -> Result<&'a [u8], Broken> {
        self.expect(b'"', "a string is expected")?;
        let start = self.at;
        if self.scan()? {
            return Ok(&self.text[start..self.at - 1]);
        }
        while !self.scan()? {}
        unescape(&self.text[start..self.at - 1], start, self.arena)
    }

    /// Reads to the end of a string, and past it, or past the next escape; true at the end.
    #[inline]
    fn scan(&mut self) -> Result<bool, Broken> {
        while let Some(word) = self.text[self.at..].first_chunk::<8>() {
            let special = special(u64::from_le_bytes(*word));
            if special != 0 {
                self.at += special.trailing_zeros() as usize / 8;
                break;
            }
            self.at += 8;
        }
        loop {
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(true);
                }
                Some(b'\\') if self.at + 1 < self.text.len() => {
                    self.at += 2;
                    return Ok(false);
                }
                Some(0x20..) => self.at += 1,
                Some(_) => return self.broken("a control character is in a string"),
                None => return self.broken("the text ends within a string"),
            }
        }
    }
}

/// Bit 7 of every byte that is a quote, a backslash or a control character; bytes after the first may be wrong.
#[inline]
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = is_zero(word ^ (ONES * b'"' as u64));
    let backslash = is_zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

/// A whole number of 64 bits, among which there is no zero with a sign.
fn whole(text: &[u8]) -> Option<i64> {
    let (digits, is_negative) = match text {
        b"-0" => return None,
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    digits.iter().try_fold(0_i64, |number, digit| {
        let digit = i64::from(digit - b'0');
        let number = number.checked_mul(10)?;
        if is_negative { number.checked_sub(digit) } else { number.checked_add(digit) }
    })
}

/// Text with its escapes replaced. Halves of surrogate pairs that stand alone become replacement characters.
fn unescape<'a>(text: &[u8], offset: usize, arena: &'a Bump) -> Result<&'a [u8], Broken> {
    // An escape is never shorter than what it stands for.
    let out = arena.alloc_slice_fill_copy(text.len(), 0_u8);
    let (mut from, mut to) = (0, 0);
    while from < text.len() {
        let wrong = Err(Broken::At { what: "a string has an escape that JSON does not know", at: offset + from });
        if text[from] != b'\\' {
            out[to] = text[from];
            (from, to) = (from + 1, to + 1);
            continue;
        }
        out[to] = match text.get(from + 1) {
            Some(plain @ (b'"' | b'\\' | b'/')) => *plain,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let Some(unit) = unit(text, from) else { return wrong };
                from += 6;
                let mut code = unit;
                if (0xd800..0xdc00).contains(&unit)
                    && let Some(low @ 0xdc00..0xe000) = self::unit(text, from)
                {
                    code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    from += 6;
                }
                let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                to += letter.encode_utf8(&mut out[to..]).len();
                continue;
            }
            _ => return wrong,
        };
        (from, to) = (from + 2, to + 1);
    }
    Ok(&out[..to])
}

/// The number of a `\uXXXX` at this place.
fn unit(text: &[u8], at: usize) -> Option<u32> {
    let [b'\\', b'u', digits @ ..] = text.get(at..at + 6)? else { return None };
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::broken;

    fn read<T>(text: &[u8], read: impl FnOnce(&mut Reader<'_>) -> Result<T, Broken>) -> Result<T, Broken> {
        let arena = Bump::new();
        let mut reader = Reader::new(text, &arena);
        let value = read(&mut reader)?;
        reader.end()?;
        Ok(value)
    }

    fn text(json: &str) -> Result<String, Broken> {
        read(json.as_bytes(), |reader| Ok(String::from_utf8_lossy(reader.text()?).into_owned()))
    }

    #[test]
    fn texts() {
        assert_eq!(text(r#""""#), Ok(String::new()));
        assert_eq!(text("null"), Ok(String::new()));
        assert_eq!(text(r#" "plain größer" "#), Ok("plain größer".into()));
        assert_eq!(text(r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00z""#), Ok("a\"\\/\u{8}\u{c}\n\r\té😀z".into()));
        assert_eq!(text(r#""\ud83d!\ude00\ud83d""#), Ok("\u{fffd}!\u{fffd}\u{fffd}".into()));
        for wrong in [r#""a"#, r#""a\"#, r#""\x""#, r#""\u12""#, r#""\u12g4""#, "\"a\nb\"", "'a'", "1", r#""a" 1"#] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_and_words() {
        let arena = Bump::new();
        let value = |json: &'static str| Reader::new(json.as_bytes(), &arena).value();
        assert_eq!(value("-12"), Ok(Value::Whole(-12)));
        assert_eq!(value("9223372036854775807"), Ok(Value::Whole(i64::MAX)));
        assert_eq!(value("-9223372036854775808"), Ok(Value::Whole(i64::MIN)));
        assert_eq!(value("9223372036854775808"), Ok(Value::Real(9_223_372_036_854_775_808.0)));
        assert_eq!(value("1.5e3"), Ok(Value::Real(1_500.0)));
        let Ok(Value::Real(zero)) = value("-0") else { panic!("a zero with a sign is not a whole number") };
        assert!(zero == 0.0 && zero.is_sign_negative());
        assert_eq!((value("true"), value("null")), (Ok(Value::Truth(true)), Ok(Value::Json(b"null"))));
        assert_eq!(value("[1, {\"a\":[]}] "), Ok(Value::Json(b"[1, {\"a\":[]}]")));
        for wrong in ["", "-", "01", "1.", ".5", "1e", "+1", "tru", "nul", "[1,]", "[1 2]", "{\"a\"}", "{1:2}", "]"] {
            assert!(value(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_say_where() {
        let error = read(br#"{"a": [1, x]}"#, |reader| reader.skip()).expect_err("broken");
        assert_eq!(error.to_string(), "a value is expected at byte 10");
    }

    #[test]
    fn nesting_ends_somewhere() {
        for open in ["[", "{\"a\":"] {
            let error = read(open.repeat(1 << 20).as_bytes(), |reader| reader.skip()).expect_err("too deep");
            assert_eq!(
                error,
                Broken::At { what: "values are nested too deeply", at: 65 * open.len() - open.len() + 1 }
            );
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        use serde_json::Value as Json;
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            any::<String>().prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    fn rebuilt(reader: &mut Reader<'_>) -> Result<serde_json::Value, Broken> {
        use serde_json::Value as Json;
        Ok(match reader.peek() {
            Some(b'{') => {
                let mut map = serde_json::Map::new();
                reader.object(|reader, key| {
                    map.insert(String::from_utf8_lossy(key).into_owned(), rebuilt(reader)?);
                    Ok(())
                })?;
                Json::Object(map)
            }
            Some(b'[') => {
                let mut list = Vec::new();
                reader.array(|reader| rebuilt(reader).map(|value| list.push(value)))?;
                Json::Array(list)
            }
            _ => match reader.value()? {
                Value::Text(text) => Json::from(String::from_utf8_lossy(text).into_owned()),
                Value::Whole(number) => Json::from(number),
                Value::Real(number) => Json::from(number),
                Value::Truth(truth) => Json::from(truth),
                Value::Json(_) => Json::Null,
            },
        })
    }

    /// With whole numbers that an `i64` cannot hold as the reader gives them: as floats.
    fn in_range(json: serde_json::Value) -> serde_json::Value {
        use serde_json::Value as Json;
        match json {
            Json::Number(number) if number.is_u64() && !number.is_i64() => Json::from(number.as_f64()),
            Json::Array(items) => items.into_iter().map(in_range).collect(),
            Json::Object(members) => members.into_iter().map(|(key, value)| (key, in_range(value))).collect(),
            other => other,
        }
    }

    proptest! {
        #[test]
        fn finds_what_serde_wrote(json in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_vec_pretty(&json) } else { serde_json::to_vec(&json) };
            let text = text.expect("JSON");
            prop_assert_eq!(read(&text, rebuilt), Ok(json));
            prop_assert_eq!(read(&text, |reader| reader.skip()), Ok(()));
        }

        /// Broken texts never panic, and what serde takes, the reader takes.
        #[test]
        fn broken_texts(json in any_json(), at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let text = broken(&serde_json::to_vec(&json).expect("JSON"), at, byte, cut);
            let ours = read(&text, rebuilt);
            if let Ok(json) = serde_json::from_slice::<serde_json::Value>(&text) {
                prop_assert_eq!(ours, Ok(in_range(json)));
            }
        }

        #[test]
        fn noise(text in prop::collection::vec(prop::sample::select(&b"{}[]\",:\\u0dn1.e- \x00\xfft"[..]), 0..60)) {
            let (ours, theirs) = (read(&text, |reader| reader.skip()), serde_json::from_slice::<serde_json::Value>(&text));
            prop_assert!(theirs.is_err() || ours.is_ok());
        }
    }
}
