//! Datadog's payloads of spans, versions 0.4 (as is 0.3) and 0.5 (DataDog/datadog-agent, `pkg/trace/api/version.go`): an array of chunks,
//! each an array of spans of one trace. In 0.4 a span is a map, in 0.5 an array of 12 whose texts are indices of a table.
//!
//! Links, events and `meta_struct` are not kept.

use bumpalo::Bump;

use super::msgpack::Reader;
use crate::broken::Broken;
use crate::buffers::size;
use crate::gather::Gatherer;
use crate::ids::hex_exact;
use crate::span::{Batch, Kind, Source, Span, Status};
use crate::value::Value;

/// Why a span without a trace id or an id can never be stored.
pub(super) const IDS: [&str; 2] = ["a span's trace_id is 0", "a span's span_id is 0"];
/// Bytes of a usual span.
const USUAL_SPAN: usize = 400;
/// Texts of a message's table: 16 for each span that a message may have. One may take a single byte, and takes 16 in memory.
const MAX_TEXTS: usize = 1 << 20;
/// Bytes of the texts of all spans of a message with a table, where they stand once for every span: a kilobyte for each span that a
/// message may have. Else a text of megabytes and an index of a byte would be megabytes for every byte.
const MAX_WRITTEN_OUT: usize = 64 << 20;

pub(super) const CHUNKS: &str = "expected an array of chunks";
const TOO_MANY_TEXTS: &str = "a message has more than 1048576 texts; send smaller batches";
const CHUNK: &str = "expected a chunk, an array of spans";

/// All spans of a payload of version 0.4.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    payload(Reader::new(body), body.len(), arena, |reader, gatherer, found| {
        for _ in 0..reader.map("expected a span, a map of its fields")? {
            match reader.text()? {
                b"service" => found.service = reader.text()?,
                b"name" => found.name = reader.text()?,
                b"resource" => found.span.operation = reader.text()?,
                b"type" => found.kind = reader.text()?,
                b"trace_id" => found.trace_id(reader.unsigned()?),
                b"span_id" => found.span.span_id = reader.unsigned()?.to_be_bytes(),
                b"parent_id" => found.parent_id(reader.unsigned()?),
                b"start" => found.start(reader.signed()?),
                b"duration" => found.span.duration_ns = reader.signed()?,
                b"error" => found.error(reader.signed()?),
                b"meta" => {
                    for _ in 0..reader.map("expected meta, a map of texts")? {
                        found.meta(reader.text()?, reader.text()?, gatherer);
                    }
                }
                b"metrics" => {
                    for _ in 0..reader.map("expected metrics, a map of numbers")? {
                        gatherer.attribute(reader.text()?, Value::Real(reader.real()?));
                    }
                }
                _ => reader.skip()?,
            }
        }
        Ok(())
    })
}

/// All spans of a payload of version 0.5.
///
/// # Errors
/// If the body is not of this format, or ends too early. Then none of its spans may be counted.
pub fn decode_with_table<'a>(body: &'a [u8], arena: &'a Bump) -> Result<Batch<'a>, Broken> {
    let mut reader = Reader::new(body);
    let mut table = Table::read(&mut reader)?;
    payload(reader, body.len(), arena, |reader, gatherer, found| {
        let left = table.left;
        if reader.array("expected a span, an array of 12")? != 12 {
            return reader.broken("expected a span of 12 values");
        }
        found.service = table.text(reader)?;
        found.name = table.text(reader)?;
        found.span.operation = table.text(reader)?;
        found.trace_id(reader.unsigned()?);
        found.span.span_id = reader.unsigned()?.to_be_bytes();
        found.parent_id(reader.unsigned()?);
        found.start(reader.signed()?);
        found.span.duration_ns = reader.signed()?;
        found.error(reader.signed()?);
        for _ in 0..reader.map("expected meta, a map of texts")? {
            found.meta(table.text(reader)?, table.text(reader)?, gatherer);
        }
        for _ in 0..reader.map("expected metrics, a map of numbers")? {
            gatherer.attribute(table.text(reader)?, Value::Real(reader.real()?));
        }
        found.kind = table.text(reader)?;
        found.texts = left - table.left;
        Ok(())
    })
}

/// The texts of a message.
pub(super) struct Table<'a> {
    texts: Vec<&'a [u8]>,
    /// Bytes of texts that its spans may still have.
    pub(super) left: usize,
}

impl<'a> Table<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Broken> {
        head(reader)?;
        let mut table = Self { texts: Vec::new(), left: MAX_WRITTEN_OUT };
        table.fill(reader)?;
        Ok(table)
    }

    /// Adds the texts of the array that begins here.
    pub(super) fn fill(&mut self, reader: &mut Reader<'a>) -> Result<(), Broken> {
        let count = reader.array("expected an array of texts")? as usize;
        if self.texts.len() + count > MAX_TEXTS {
            return reader.broken(TOO_MANY_TEXTS);
        }
        for _ in 0..count {
            self.texts.push(reader.text()?);
        }
        Ok(())
    }

    /// One that is filled as texts come in; the first is empty.
    pub(super) fn streamed() -> Self {
        Self { texts: vec![b""], left: MAX_WRITTEN_OUT }
    }

    /// Adds a text.
    pub(super) fn add(&mut self, text: &'a [u8], reader: &Reader<'_>) -> Result<(), Broken> {
        if self.texts.len() >= MAX_TEXTS {
            return reader.broken(TOO_MANY_TEXTS);
        }
        self.texts.push(text);
        Ok(())
    }

    /// The text whose index comes next.
    fn text(&mut self, reader: &mut Reader<'a>) -> Result<&'a [u8], Broken> {
        let index = reader.unsigned()?;
        self.at(index, reader)
    }

    /// The text of this index.
    pub(super) fn at(&mut self, index: u64, reader: &Reader<'_>) -> Result<&'a [u8], Broken> {
        let Some(text) = usize::try_from(index).ok().and_then(|index| self.texts.get(index)) else {
            return reader.broken("expected the index of a text, found one beyond the table");
        };
        match self.left.checked_sub(text.len()) {
            Some(left) => self.left = left,
            None => {
                return reader.broken("the texts of all spans together have more than 64 MiB; send smaller batches");
            }
        }
        Ok(text)
    }
}

/// Chunks that a payload of version 0.4 says it has, 0 if it has no beginning.
pub fn chunks(body: &[u8]) -> u64 {
    Reader::new(body).array(CHUNKS).map_or(0, u64::from)
}

/// The same of version 0.5, where a table of texts stands before them.
pub fn chunks_behind_table(body: &[u8]) -> u64 {
    let mut reader = Reader::new(body);
    let before = head(&mut reader).and_then(|()| reader.skip());
    before.and_then(|()| reader.array(CHUNKS)).map_or(0, u64::from)
}

/// The beginning of version 0.5.
fn head(reader: &mut Reader<'_>) -> Result<(), Broken> {
    match reader.array("expected an array of texts and chunks")? {
        2 => Ok(()),
        _ => reader.broken("expected an array of two, texts and chunks"),
    }
}

/// Leads through chunks and spans; `read` reads one span.
fn payload<'a>(
    mut reader: Reader<'a>,
    bytes: usize,
    arena: &'a Bump,
    mut read: impl FnMut(&mut Reader<'a>, &mut Gatherer<'a>, &mut Found<'a>) -> Result<(), Broken>,
) -> Result<Batch<'a>, Broken> {
    let mut gatherer = Gatherer::new(arena, bytes / USUAL_SPAN);
    for _ in 0..reader.array(CHUNKS)? {
        let first = gatherer.spans().len();
        let mut high = None;
        for _ in 0..reader.array(CHUNK)? {
            let at = reader.at();
            let mut found = Found::default();
            gatherer.begin();
            read(&mut reader, &mut gatherer, &mut found)?;
            found.span.size = size(reader.at() - at + found.texts);
            high = high.or(found.high);
            found.push(&mut gatherer);
        }
        if let Some(high) = high {
            gatherer.spans()[first..].iter_mut().for_each(|span| span.trace_id[..8].copy_from_slice(&high));
        }
    }
    reader.end()?;
    Ok(gatherer.finish())
}

/// A span in the making.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    pub(super) span: Span<'a>,
    pub(super) service: &'a [u8],
    /// What the instrumentation calls the operation; the resource is which one it is.
    pub(super) name: &'a [u8],
    /// `web`, `http`, `sql`, ….
    pub(super) kind: &'a [u8],
    /// The high half of the trace id: Datadog's ids had 64 bits once, so this is text beside them, and only some spans of a chunk
    /// have it.
    high: Option<[u8; 8]>,
    /// Bytes of texts that stand elsewhere in the message.
    pub(super) texts: usize,
}

impl<'a> Found<'a> {
    fn trace_id(&mut self, low: u64) {
        self.span.trace_id = u128::from(low).to_be_bytes();
    }

    pub(super) fn parent_id(&mut self, id: u64) {
        self.span.parent_id = (id != 0).then(|| id.to_be_bytes());
    }

    pub(super) fn start(&mut self, ns: i64) {
        self.span.start_ns = u64::try_from(ns).unwrap_or(0);
    }

    pub(super) fn error(&mut self, flag: i64) {
        self.span.status = if flag == 0 { Status::Unset } else { Status::Error };
    }

    pub(super) fn meta(&mut self, key: &[u8], text: &'a [u8], gatherer: &mut Gatherer<'a>) {
        match key {
            b"_dd.p.tid" => self.high = hex_exact(text),
            b"span.kind" => self.span.kind = Kind::named(text),
            _ => {}
        }
        gatherer.attribute(key, Value::Text(text));
    }

    pub(super) fn push(self, gatherer: &mut Gatherer<'a>) {
        let Self { mut span, service, name, kind, .. } = self;
        if !gatherer.has_ids(&span, IDS) {
            return;
        }
        if span.kind == Kind::Unspecified && kind == b"web" {
            span.kind = Kind::Server;
        }
        // As Datadog names them where it takes OpenTelemetry's spans.
        gatherer.text(b"operation.name", name);
        gatherer.text(b"span.type", kind);
        span.source = gatherer.source(Source { service, instance: None });
        gatherer.push(span);
    }
}

#[cfg(test)]
#[path = "spans_tests.rs"]
mod tests;
