//! A `Batch` (jaegertracing/jaeger-idl, `jaeger.thrift`) in Thrift's binary protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-binary-protocol.md>), walked without copying.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bumpalo::Bump;

use super::{SPAN_ID, SpecialTags, TRACE_ID};
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
pub(crate) fn decode<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
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
    if let Some(known) = number.and_then(|number| gatherer.source_mut(number)) {
        *known = source;
    }
    Ok(gatherer.finish())
}

fn process<'a>(reader: &mut Reader<'a>, source: &mut Source<'a>) -> Result<(), Broken> {
    reader.structure(|reader, field, kind| match (field, kind) {
        (1, STRING) => reader.bytes().map(|name| source.service = name),
        (2, LIST) => reader.list(STRUCT, |reader| {
            if let Tag { key: b"service.instance.id", kind: 0, text, .. } = tag(reader)? {
                source.instance = Some(text);
            }
            Ok(())
        }),
        _ => reader.skip(kind, 0),
    })
}

fn span<'a>(reader: &mut Reader<'a>, source: u32, gatherer: &mut Gatherer<'a>) -> Result<(), Broken> {
    let at = reader.at;
    let (mut low, mut high, mut id, mut parent) = (0, 0, 0, 0);
    let (mut operation, mut start, mut duration, mut referred) = (&[][..], 0_i64, 0_i64, 0);
    let mut special = SpecialTags::default();
    gatherer.begin();
    reader.structure(|reader, field, kind| {
        match (field, kind) {
            (1, I64) => low = reader.i64()?,
            (2, I64) => high = reader.i64()?,
            (3, I64) => id = reader.i64()?,
            (4, I64) => parent = reader.i64()?,
            (5, STRING) => operation = reader.bytes()?,
            (6, LIST) => reader.list(STRUCT, |reader| {
                let (mut kind_of_reference, mut span) = (0, 0);
                reader.structure(|reader, field, kind| {
                    match (field, kind) {
                        (1, I32) => kind_of_reference = reader.i32()?,
                        (4, I64) => span = reader.i64()?,
                        _ => reader.skip(kind, 0)?,
                    }
                    Ok(())
                })?;
                if referred == 0 || kind_of_reference == 0 {
                    referred = span;
                }
                Ok(())
            })?,
            (8, I64) => start = reader.i64()?,
            (9, I64) => duration = reader.i64()?,
            (10, LIST) => reader.list(STRUCT, |reader| {
                tag(reader)?.give(&mut special, gatherer);
                Ok(())
            })?,
            _ => reader.skip(kind, 0)?,
        }
        Ok(())
    })?;
    let number = |number: i64| padded(&number.to_be_bytes());
    let trace_id = (u128::from(high as u64) << 64 | u128::from(low as u64)).to_be_bytes();
    let Some(trace_id) = padded(&trace_id) else {
        gatherer.reject(TRACE_ID);
        return Ok(());
    };
    let Some(span_id) = number(id) else {
        gatherer.reject(SPAN_ID);
        return Ok(());
    };
    let times = Span::lasting(u64::try_from(start).unwrap_or(0).saturating_mul(1_000), duration.saturating_mul(1_000));
    gatherer.push(Span {
        source,
        trace_id,
        span_id,
        parent_id: number(parent).or(number(referred)),
        kind: special.kind,
        operation,
        status: special.status(),
        size: size(reader.at - at),
        ..times
    });
    Ok(())
}

#[derive(Default)]
struct Tag<'a> {
    key: &'a [u8],
    kind: i32,
    text: &'a [u8],
    double: f64,
    truth: bool,
    long: i64,
    binary: &'a [u8],
}

fn tag<'a>(reader: &mut Reader<'a>) -> Result<Tag<'a>, Broken> {
    let mut tag = Tag::default();
    reader.structure(|reader, field, kind| {
        match (field, kind) {
            (1, STRING) => tag.key = reader.bytes()?,
            (2, I32) => tag.kind = reader.i32()?,
            (3, STRING) => tag.text = reader.bytes()?,
            (4, DOUBLE) => tag.double = f64::from_bits(reader.i64()? as u64),
            (5, BOOL) => tag.truth = reader.take::<1>()? != [0],
            (6, I64) => tag.long = reader.i64()?,
            (7, STRING) => tag.binary = reader.bytes()?,
            _ => reader.skip(kind, 0)?,
        }
        Ok(())
    })?;
    Ok(tag)
}

impl Tag<'_> {
    fn give(&self, special: &mut SpecialTags, gatherer: &mut Gatherer<'_>) {
        match self.kind {
            0 => {
                special.text(self.key, self.text);
                gatherer.attribute(self.key, Value::Text(self.text));
            }
            1 => gatherer.attribute(self.key, Value::Real(self.double)),
            2 => {
                special.truth(self.key, self.truth);
                gatherer.attribute(self.key, Value::Truth(self.truth));
            }
            3 => gatherer.attribute(self.key, Value::Whole(self.long)),
            4 => gatherer.attribute(self.key, Value::Text(STANDARD.encode(self.binary).as_bytes())),
            _ => {}
        }
    }
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
