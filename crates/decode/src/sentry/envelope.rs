//! The frame of an envelope: a line with a header, then items, each a line with a header and a payload. The payload is as
//! long as the header says, or ends with the line. Knows no item.

use bumpalo::Bump;

use crate::broken::Broken;
use crate::json::reader::Reader;

/// One item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Item<'a> {
    /// What it is: `transaction`, `span`, `client_report`, ….
    pub(super) kind: &'a [u8],
    /// Media type of the payload; empty if the header gives none.
    pub(super) content_type: &'a [u8],
    pub(super) payload: &'a [u8],
    /// Where the payload begins in the envelope.
    pub(super) at: usize,
}

/// The items of an envelope, one after the other.
#[derive(Debug)]
pub(super) struct Items<'a> {
    envelope: &'a [u8],
    at: usize,
    arena: &'a Bump,
}

impl<'a> Items<'a> {
    /// Of a whole envelope; an error if it does not begin with a header.
    pub(super) fn of(envelope: &'a [u8], arena: &'a Bump) -> Result<Self, Broken> {
        let mut items = Self { envelope, at: 0, arena };
        items.header(|reader, _| reader.skip())?;
        Ok(items)
    }

    /// The next item; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Item<'a>>, Broken> {
        while self.envelope.get(self.at) == Some(&b'\n') {
            self.at += 1;
        }
        if self.at == self.envelope.len() {
            return Ok(None);
        }
        let (mut item, mut length) = (Item::default(), None);
        self.header(|reader, key| match key {
            b"type" => reader.text().map(|kind| item.kind = kind),
            b"content_type" => reader.text().map(|kind| item.content_type = kind),
            b"length" => reader.value().map(|number| length = number.whole()),
            _ => reader.skip(),
        })?;
        item.at = self.at;
        item.payload = match length {
            None => self.line(),
            Some(length) => self.counted(length)?,
        };
        Ok(Some(item))
    }

    /// Leads through the object on the next line.
    fn header(&mut self, member: impl FnMut(&mut Reader<'a>, &'a [u8]) -> Result<(), Broken>) -> Result<(), Broken> {
        let at = self.at;
        let mut reader = Reader::new(self.line(), self.arena);
        reader.object(member).and_then(|()| reader.end()).map_err(|error| error.behind(at))
    }

    /// What is left of a line.
    fn line(&mut self) -> &'a [u8] {
        let rest = &self.envelope[self.at..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.at += (end + 1).min(rest.len());
        &rest[..end]
    }

    /// A payload of so many bytes, and the line's end behind it.
    fn counted(&mut self, length: i64) -> Result<&'a [u8], Broken> {
        let rest = &self.envelope[self.at..];
        let split = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
        let Some((payload, behind)) = split else {
            return Err(Broken::At { what: "the envelope is shorter than the length of an item", at: self.at });
        };
        if !matches!(behind.first(), None | Some(b'\n')) {
            let at = self.at + payload.len();
            return Err(Broken::At { what: "an item is longer than its length", at });
        }
        self.at += payload.len() + behind.len().min(1);
        Ok(payload)
    }
}

/// The id in the header of an envelope; empty if there is none.
pub fn id(envelope: &[u8]) -> String {
    let arena = Bump::new();
    let mut id = &[][..];
    let mut items = Items { envelope, at: 0, arena: &arena };
    let read = items.header(|reader, key| match key {
        b"event_id" => reader.text().map(|text| id = text),
        _ => reader.skip(),
    });
    // An envelope that is broken gets another answer.
    if read.is_err() { String::new() } else { String::from_utf8_lossy(id).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kinds and payloads, or why there are none.
    fn items(envelope: &str) -> Result<Vec<(String, String)>, Broken> {
        let arena = Bump::new();
        let mut items = Items::of(envelope.as_bytes(), &arena)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut all = Vec::new();
        while let Some(item) = items.next()? {
            assert!(envelope.as_bytes()[item.at..].starts_with(item.payload));
            all.push((text(item.kind), text(item.payload)));
        }
        Ok(all)
    }

    #[test]
    fn items_with_and_without_length() {
        let envelope = "{\"event_id\":\"12\",\"dsn\":\"http://a@b/1\"}\n\
                        {\"type\":\"attachment\",\"length\":6}\na\nb\r\nc\n\
                        {\"type\":\"session\"}\n{}\n\
                        {\"type\":\"attachment\",\"length\":0}\n\n\
                        {\"type\":\"span\",\"content_type\":\"x\"}\n{\"a\":1}";
        let expected = [("attachment", "a\nb\r\nc"), ("session", "{}"), ("attachment", ""), ("span", "{\"a\":1}")];
        let expected: Vec<_> = expected.map(|(kind, payload)| (kind.to_string(), payload.to_string())).into();
        assert_eq!(items(envelope), Ok(expected.clone()));
        assert_eq!(items(&format!("{envelope}\n")), Ok(expected));
        assert_eq!(id(envelope.as_bytes()), "12");
        for empty in ["{}", "{}\n", "{}\n\n"] {
            assert_eq!((items(empty), id(empty.as_bytes())), (Ok(Vec::new()), String::new()));
        }
    }

    #[test]
    fn broken_frames() {
        let at = |what, at| Err(Broken::At { what, at });
        let short = "the envelope is shorter than the length of an item";
        assert_eq!(items("{}\n{\"type\":\"span\",\"length\":3}\n{}"), at(short, 30));
        assert_eq!(items("{}\n{\"type\":\"span\",\"length\":-1}\n{}"), at(short, 31));
        assert_eq!(items("{}\n{\"length\":9223372036854775807}\n"), at(short, 34));
        assert_eq!(items("{}\n{\"type\":\"span\",\"length\":1}\n{}"), at("an item is longer than its length", 31));
        assert_eq!(items("{}\nhello\nworld"), at("an object is expected", 3));
        assert_eq!(items("{} {}\n"), at("there is more than one JSON value", 3));
        assert_eq!(items(""), at("an object is expected", 0));
        assert_eq!(id(b"hello"), "");
    }
}
