//! Datadog's payload of spans, version 1.0 (DataDog/datadog-agent, `pkg/proto/pbgo/trace/idx`): maps whose keys are the field numbers of
//! its Protocol Buffers. A text stands where it comes first and has the next number from then on; later only the number comes, 0 is the
//! empty text. So what is passed over has to be searched for texts.
//!
//! The whole trace id stands with the chunk, behind its spans. Links, events, `meta_struct`, lists and maps are not kept.

use bumpalo::Bump;

use super::msgpack::{Reader, Reference};
use super::spans::{CHUNKS, Found, IDS, Table};
use crate::broken::Broken;
use crate::buffers::size;
use crate::gather::Gatherer;
use crate::span::{Batch, Kind};
use crate::value::Value;

/// Bytes of a usual span: most of its texts are numbers.
const USUAL_SPAN: usize = 150;
/// Field of a payload that has its chunks.
const CHUNKS_FIELD: u64 = 11;
/// Field of a payload with texts, numbered as if they had come one by one.
const TEXTS_FIELD: u64 = 1;
/// Until the id of the chunk is known: any that is one.
const NOT_KNOWN_YET: [u8; 16] = [0xff; 16];
/// Kinds by number, from 1.
const KINDS: [&[u8]; 5] = [b"internal", b"server", b"client", b"producer", b"consumer"];

const PAYLOAD: &str = "expected a payload, a map by field numbers";

/// All spans of a payload.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut message = Message {
        reader: Reader::new(body),
        texts: Table::streamed(),
        gatherer: Gatherer::new(arena, body.len() / USUAL_SPAN),
    };
    for _ in 0..message.reader.map(PAYLOAD)? {
        match message.reader.unsigned()? {
            TEXTS_FIELD => message.texts.fill(&mut message.reader)?,
            CHUNKS_FIELD => {
                for _ in 0..message.reader.array(CHUNKS)? {
                    message.chunk()?;
                }
            }
            _ => message.skip()?,
        }
    }
    message.reader.end()?;
    Ok(message.gatherer.finish())
}

/// Chunks that a payload says it has, 0 if it is broken before them.
pub fn chunks(body: &[u8]) -> u64 {
    let mut reader = Reader::new(body);
    let mut find = || {
        for _ in 0..reader.map(PAYLOAD)? {
            if reader.unsigned()? == CHUNKS_FIELD {
                return reader.array(CHUNKS);
            }
            reader.skip()?;
        }
        Ok(0)
    };
    find().map_or(0, u64::from)
}

/// A payload that is being read.
struct Message<'a> {
    reader: Reader<'a>,
    texts: Table<'a>,
    gatherer: Gatherer<'a>,
}

impl<'a> Message<'a> {
    fn chunk(&mut self) -> Result<(), Broken> {
        let first = self.gatherer.spans().len();
        let mut id = [0; 16];
        for _ in 0..self.reader.map("expected a chunk, a map by field numbers")? {
            match self.reader.unsigned()? {
                4 => {
                    for _ in 0..self.reader.array("expected an array of spans")? {
                        self.span()?;
                    }
                }
                6 => id = self.reader.text()?.try_into().unwrap_or_default(),
                _ => self.skip()?,
            }
        }
        if id == [0; 16] {
            self.gatherer.reject_from(first, IDS[0]);
        }
        self.gatherer.spans().iter_mut().skip(first).for_each(|span| span.trace_id = id);
        Ok(())
    }

    fn span(&mut self) -> Result<(), Broken> {
        let (at, left) = (self.reader.at(), self.texts.left);
        let mut found = Found::default();
        found.span.trace_id = NOT_KNOWN_YET;
        self.gatherer.begin();
        for _ in 0..self.reader.map("expected a span, a map by field numbers")? {
            match self.reader.unsigned()? {
                1 => found.service = self.text()?,
                2 => found.name = self.text()?,
                3 => found.span.operation = self.text()?,
                4 => found.span.span_id = self.reader.unsigned()?.to_be_bytes(),
                5 => found.parent_id(self.reader.unsigned()?),
                6 => found.start(self.reader.signed()?),
                7 => found.span.duration_ns = self.reader.signed()?,
                8 => found.error(self.reader.truth()?.into()),
                9 => self.attributes(&mut found)?,
                10 => found.kind = self.text()?,
                13 => self.attribute(b"env")?,
                14 => self.attribute(b"version")?,
                15 => self.attribute(b"component")?,
                16 => {
                    let number = self.reader.unsigned()?;
                    let name = usize::try_from(number).ok().and_then(|number| KINDS.get(number.checked_sub(1)?));
                    if let Some(name) = name {
                        found.span.kind = Kind::named(name);
                        self.gatherer.text(b"span.kind", name);
                    }
                }
                _ => self.skip()?,
            }
        }
        found.texts = left - self.texts.left;
        found.span.size = size(self.reader.at() - at + found.texts);
        found.push(&mut self.gatherer);
        Ok(())
    }

    /// Keys, types and values of attributes, one after the other.
    fn attributes(&mut self, found: &mut Found<'a>) -> Result<(), Broken> {
        let values = self.reader.array("expected attributes, an array of keys, types and values")?;
        if values % 3 != 0 {
            return self.reader.broken("expected a key, a type and a value of every attribute");
        }
        for _ in 0..values / 3 {
            let key = self.text()?;
            let value = match self.reader.unsigned()? {
                1 => {
                    let text = self.text()?;
                    found.meta(key, text, &mut self.gatherer);
                    continue;
                }
                2 => Value::Truth(self.reader.truth()?),
                3 => Value::Real(self.reader.real()?),
                4 => Value::Whole(self.reader.signed()?),
                // Bytes, a list, a map.
                5..=7 => {
                    self.skip()?;
                    continue;
                }
                _ => return self.reader.broken("expected the type of an attribute, 1 to 7"),
            };
            self.gatherer.attribute(key, value);
        }
        Ok(())
    }

    /// A field that is an attribute in other versions; empty if it is not there.
    fn attribute(&mut self, key: &[u8]) -> Result<(), Broken> {
        let text = self.text()?;
        self.gatherer.text(key, text);
        Ok(())
    }

    /// The text that comes next, or that the next number stands for.
    #[inline]
    fn text(&mut self) -> Result<&'a [u8], Broken> {
        match self.reader.reference()? {
            Reference::Text(text) => {
                self.texts.add(text, &self.reader)?;
                Ok(text)
            }
            Reference::Number(number) => self.texts.at(number, &self.reader),
        }
    }

    /// Passes over a value, but for the texts in it, which later ones refer to.
    fn skip(&mut self) -> Result<(), Broken> {
        let texts = &mut self.texts;
        self.reader.skip_seeing(|reader, text| texts.add(text, reader))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::datadog::message::Message;
    use crate::span::Status;
    use crate::testing::broken;

    const TRACE: [u8; 16] = *b"\x5e\xed\x5e\xed\x5e\xed\x5e\xed\xf8\xca\xfe\x00\xde\xad\xbe\xef";

    /// A chunk of two spans, and one whose id is not told.
    fn message() -> Message {
        let mut message = Message::streamed();
        message.map(3).number(3).text("go").number(10).array(3).text("_dd.tags").number(1).text("pets");
        message.number(11).array(2);
        message.map(5).number(1).number(1).number(2).text("").number(3).array(3).text("service").number(1).text("pets");
        message.number(4).array(2);
        let times = [1_556_604_172_355_737_001, 1_431];
        message.span(4, ["pets", "http.request", "GET /vets"], [7, 0], times, false);
        message.number(9).array(21).text("http.method").number(1).text("GET").text("sampled").number(2).truth(true);
        message.text("rate").number(3).real(0.5).text("size").number(4).number(42);
        // What is not kept is searched for texts all the same.
        message.text("raw").number(5).binary(b"GET");
        message.text("list").number(6).array(2).number(1).text("only here");
        message.text("map").number(7).array(3).text("key").number(1).text("value");
        message.number(10).text("web").number(11).array(1).map(1).number(4).text("state").number(12).array(0);
        message.span(5, ["db", "sql.query", "SELECT"], [8, 7], [1_556_604_172_355_738_000, 400], true);
        message.number(9).array(3).text("only here").number(1).text("value").number(10).text("sql");
        message.number(13).text("").number(15).text("state").number(16).number(3);
        message.number(6).binary(&TRACE);
        message.map(1).number(4).array(1).span(0, ["pets", "", ""], [9, 0], [1, 1], false);
        message
    }

    #[test]
    fn spans_with_their_texts() {
        let (message, arena) = (message().bytes, Bump::new());
        assert_eq!((chunks(&message), chunks(b"x"), chunks(b"\x80")), (2, 0, 0));
        let batch = decode(&message, &arena).expect("sound");
        assert_eq!((batch.spans.len(), batch.rejected, batch.reason), (2, 1, Some(IDS[0])));
        let [server, client] = [batch.spans[0], batch.spans[1]];
        assert_eq!((server.trace_id, client.trace_id), (TRACE, TRACE));
        assert_eq!((server.span_id, server.parent_id), (7_u64.to_be_bytes(), None));
        assert_eq!((client.span_id, client.parent_id), (8_u64.to_be_bytes(), Some(7_u64.to_be_bytes())));
        assert_eq!((server.kind, client.kind), (Kind::Server, Kind::Client), "by type, by number");
        assert_eq!((server.status, client.status), (Status::Unset, Status::Error));
        assert_eq!((server.start_ns, server.duration_ns), (1_556_604_172_355_737_001, 1_431));
        assert_eq!((server.operation, client.operation), (&b"GET /vets"[..], &b"SELECT"[..]));
        assert_eq!(batch.sources[server.source as usize].service, b"pets");
        assert_eq!(batch.sources[client.source as usize].service, b"db");
        assert_eq!(
            server.attributes.json(),
            r#"{"http.method":"GET","sampled":true,"rate":0.5,"size":42,"operation.name":"http.request","span.type":"web"}"#
        );
        assert_eq!(
            client.attributes.json(),
            r#"{"only here":"value","component":"state","span.kind":"client","operation.name":"sql.query","span.type":"sql"}"#
        );
    }

    /// Texts may stand in front as a list.
    #[test]
    fn texts_in_front() {
        let mut message = Message::streamed();
        message.map(2).number(1).array(2).text("pets").text("GET").number(11).array(1);
        message
            .map(2)
            .number(4)
            .array(1)
            .span(0, ["pets", "GET", "GET"], [7, 0], [1, 1], false)
            .number(6)
            .binary(&TRACE);
        let arena = Bump::new();
        let batch = decode(&message.bytes, &arena).expect("sound");
        assert_eq!((batch.spans.len(), batch.spans[0].operation), (1, &b"GET"[..]));
        assert_eq!(batch.sources[0].service, b"pets");
    }

    #[test]
    fn what_is_no_payload_is_told_with_its_place() {
        let whole = [message().bytes, vec![0xc0]].concat();
        let cases: [(&[u8], &'static str, usize); 7] = [
            (b"[]", PAYLOAD, 0),
            (b"\x81\xa1x", "expected a number", 1),
            (b"\x81\x0b\x91\x90", "expected a chunk, a map by field numbers", 3),
            (b"\x81\x0b\x91\x81\x04\x91\x81\x01\xc3", "expected a text or the number of one", 8),
            (b"\x81\x0b\x91\x81\x04\x91\x81\x01\x01", "expected the index of a text, found one beyond the table", 9),
            (
                b"\x81\x0b\x91\x81\x04\x91\x81\x09\x92\xa1x\x01",
                "expected a key, a type and a value of every attribute",
                9,
            ),
            (&whole, "expected the end of the message", whole.len() - 1),
        ];
        let arena = Bump::new();
        for (body, what, at) in cases {
            assert_eq!(decode(body, &arena).err(), Some(Broken::At { what, at }), "{body:x?}");
        }
    }

    proptest! {
        #[test]
        fn broken_payloads(at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
            let arena = Bump::new();
            if let Ok(batch) = decode(&broken(&message().bytes, at, byte, cut), &arena) {
                prop_assert!(batch.spans.len() as u64 + batch.rejected <= 3);
            }
        }
    }
}
