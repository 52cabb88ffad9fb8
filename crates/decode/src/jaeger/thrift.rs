//! A `Batch` (jaegertracing/jaeger-idl, `jaeger.thrift`) in Thrift's binary protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-binary-protocol.md>), walked without copying.

use bumpalo::Bump;

use super::tags;
use crate::broken::Broken;
use crate::buffers::size;
use crate::gather::Gatherer;
use crate::ids::padded;
use crate::span::{Batch, Source, Span};
use crate::value::Value;

/// Structures within structures that are followed.
const MAX_DEPTH: u32 = 32;
/// Bytes of a usual span.
const USUAL_SPAN: usize = 300;

const BOOL: u8 = 2;
const BYTE: u8 = 3;
const DOUBLE: u8 = 4;
const I16: u8 = 6;
const I32: u8 = 8;
const I64: u8 = 10;
const STRING: u8 = 11;
const STRUCT: u8 = 12;
const MAP: u8 = 13;
const SET: u8 = 14;
const LIST: u8 = 15;

/// All spans of a batch.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, body.len() / USUAL_SPAN);
    let mut source = Source::default();
    let mut number = None;
    let mut reader = Reader { text: body, at: 0 };
    reader.structure(|reader, field, kind| match (field, kind) {
        (1, STRUCT) => process(reader, &mut source),
        (2, LIST) => reader.list(STRUCT, |reader| {
            // The process may follow its spans, so their source is known for good only at the end.
            let number = *number.get_or_insert_with(|| gatherer.fresh_source());
            span(reader, number, &mut gatherer)
        }),
        _ => reader.skip(kind, 0),
    })?;
    if reader.at < body.len() {
        return reader.broken("there is more than one batch");
    }
    gatherer.known_source(number, source);
    Ok(gatherer.finish())
}

fn process<'a>(reader: &mut Reader<'a>, source: &mut Source<'a>) -> Result<(), Broken> {
    reader.structure(|reader, field, kind| match (field, kind) {
        (1, STRING) => reader.bytes().map(|name| source.service = name),
        (2, LIST) => reader.list(STRUCT, |reader| {
            if let (b"service.instance.id", 0, Some(Value::Text(text))) = tag(reader)? {
                source.instance = Some(text);
            }
            Ok(())
        }),
        _ => reader.skip(kind, 0),
    })
}

fn span<'a>(reader: &mut Reader<'a>, source: u32, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    let at = reader.at;
    let mut span = Span { source, ..Span::default() };
    let (mut low, mut high, mut id, mut parent, mut referred) = (0, 0, 0, 0, 0);
    gatherer.begin();
    reader.structure(|reader, field, kind| {
        match (field, kind) {
            (1, I64) => low = reader.i64()?,
            (2, I64) => high = reader.i64()?,
            (3, I64) => id = reader.i64()?,
            (4, I64) => parent = reader.i64()?,
            (5, STRING) => span.operation = reader.bytes()?,
            (6, LIST) => reader.list(STRUCT, |reader| {
                let (span, is_child) = reference(reader)?;
                if referred == 0 || is_child {
                    referred = span;
                }
                Ok(())
            })?,
            (8, I64) => span.start_ns = u64::try_from(reader.i64()?).unwrap_or(0).saturating_mul(1_000),
            (9, I64) => span.duration_ns = reader.i64()?.saturating_mul(1_000),
            (10, LIST) => reader.list(STRUCT, |reader| {
                if let (key, kind, Some(value)) = tag(reader)? {
                    tags::add(key, kind, value, &mut span, gatherer);
                }
                Ok(())
            })?,
            _ => reader.skip(kind, 0)?,
        }
        Ok(())
    })?;
    let parent = if parent == 0 { referred } else { parent };
    span.parent_id = padded(&parent.to_be_bytes());
    span.trace_id = (u128::from(high as u64) << 64 | u128::from(low as u64)).to_be_bytes();
    span.span_id = id.to_be_bytes();
    span.size = size(reader.at - at);
    if gatherer.has_ids(&span, tags::IDS) {
        gatherer.push(span);
    }
    Ok(())
}

/// The span that a reference names, 0 for none, and whether this one is its child.
fn reference(reader: &mut Reader<'_>) -> Result<(i64, bool), Broken> {
    let (mut span, mut is_child) = (0, true);
    reader.structure(|reader, field, kind| {
        match (field, kind) {
            (1, I32) => is_child = reader.i32()? == 0,
            (4, I64) => span = reader.i64()?,
            _ => reader.skip(kind, 0)?,
        }
        Ok(())
    })?;
    Ok((span, is_child))
}

/// A `Tag`: its key, its type, and its value if the type is known.
fn tag<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], u8, Option<Value<'a>>), Broken> {
    let (mut key, mut kind) = (&[][..], 0);
    // By type; bytes come last.
    let mut values = [Value::Text(&[]), Value::Real(0.0), Value::Truth(false), Value::Whole(0), Value::Text(&[])];
    reader.structure(|reader, field, of| {
        match (field, of) {
            (1, STRING) => key = reader.bytes()?,
            (2, I32) => kind = reader.i32()?,
            (3, STRING) => values[0] = Value::Text(reader.bytes()?),
            (4, DOUBLE) => values[1] = Value::Real(f64::from_bits(reader.i64()? as u64)),
            (5, BOOL) => values[2] = Value::Truth(reader.take::<1>()? != [0]),
            (6, I64) => values[3] = Value::Whole(reader.i64()?),
            (7, STRING) => values[4] = Value::Text(reader.bytes()?),
            _ => reader.skip(of, 0)?,
        }
        Ok(())
    })?;
    let kind = u8::try_from(kind).unwrap_or(u8::MAX);
    Ok((key, kind, values.get(usize::from(kind)).copied()))
}

/// A cursor over Thrift's binary protocol.
#[derive(Debug)]
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn broken<T>(&self, what: &'static str) -> Result<T, Broken> {
        Err(Broken::At { what, at: self.at })
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        match self.text[self.at..].first_chunk::<N>() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => self.broken("the message ends in the middle of a value"),
        }
    }

    fn i32(&mut self) -> Result<i32, Broken> {
        self.take().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, Broken> {
        self.take().map(i64::from_be_bytes)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Broken> {
        let length = usize::try_from(self.i32()?);
        match length.ok().and_then(|length| self.text[self.at..].get(..length)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => self.broken("a string is longer than the message"),
        }
    }

    /// Leads through a structure: `member` gets each field's number and type, and must read its value.
    fn structure(&mut self, mut member: impl FnMut(&mut Self, i16, u8) -> Result<(), Broken>) -> Result<(), Broken> {
        loop {
            let [kind] = self.take()?;
            if kind == 0 {
                return Ok(());
            }
            let field = i16::from_be_bytes(self.take()?);
            member(self, field, kind)?;
        }
    }

    /// Leads through a list or set of values of one type.
    fn list(&mut self, kind: u8, mut item: impl FnMut(&mut Self) -> Result<(), Broken>) -> Result<(), Broken> {
        let [found] = self.take()?;
        let items = self.i32()?;
        if found != kind && items != 0 {
            return self.broken("a list has items of another type");
        }
        // Every item takes at least a byte, so a count that is too large ends with the message.
        for _ in 0..items {
            item(self)?;
        }
        Ok(())
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), Broken> {
        if depth > MAX_DEPTH {
            return self.broken("structures are nested too deeply");
        }
        match kind {
            BOOL | BYTE => self.take::<1>().map(drop),
            I16 => self.take::<2>().map(drop),
            I32 => self.take::<4>().map(drop),
            I64 | DOUBLE => self.take::<8>().map(drop),
            STRING => self.bytes().map(drop),
            STRUCT => self.structure(|reader, _, kind| reader.skip(kind, depth + 1)),
            LIST | SET => {
                let [kind] = self.take()?;
                for _ in 0..self.i32()? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            MAP => {
                let [key, content] = self.take()?;
                for _ in 0..self.i32()? {
                    self.skip(key, depth + 1)?;
                    self.skip(content, depth + 1)?;
                }
                Ok(())
            }
            _ => self.broken("a type that Thrift does not know"),
        }
    }
}
