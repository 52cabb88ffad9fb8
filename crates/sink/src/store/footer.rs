//! The footer of a span file, `FileMetaData` in
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>: the schema once, the part of each
//! row group as it is encoded. Written here and not by the `parquet` crate, whose footers are trees of objects that it copies
//! to write them: one for the record of every row group, and for the footer of a file all of them once more.

use std::sync::Arc;

use unladen_decode::wire::put_varint;

use super::columns::{CORE, Core, Keys, Meaning, Physical, Type};
use super::pages::Encoding;
use super::thrift::{Of, Struct, put_binary, put_list, zigzag};

/// A column of a file.
#[derive(Debug)]
pub(super) struct Leaf {
    name: Arc<str>,
    physical: Physical,
}

/// The columns of a file, and its schema as the footer has it.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) leaves: Vec<Leaf>,
    pub(super) encoded: Vec<u8>,
}

impl Schema {
    /// [`CORE`] and a column for every key.
    pub(super) fn of(keys: &Keys) -> Self {
        let (mut leaves, mut encoded) = (Vec::new(), Vec::new());
        let out = &mut encoded;
        let columns = CORE.len() + keys.columns.len();
        put_list(1 + columns, Of::Struct, out);
        let mut root = Struct::begin(out);
        root.binary(4, b"spans");
        root.int(5, columns as i32);
        root.end();
        for Core { name, physical, is_optional, meaning } in &CORE {
            put_element(name, *physical, *is_optional, *meaning, out);
            leaves.push(Leaf { name: (*name).into(), physical: *physical });
        }
        for (name, kind) in &keys.columns {
            let (physical, meaning) = match kind {
                Type::Text => (Physical::ByteArray, Meaning::Utf8),
                Type::Whole => (Physical::Int64, Meaning::Plain),
                Type::Real => (Physical::Double, Meaning::Plain),
                Type::Truth => (Physical::Boolean, Meaning::Plain),
            };
            put_element(name, physical, true, meaning, out);
            leaves.push(Leaf { name: Arc::clone(name), physical });
        }
        Self { leaves, encoded }
    }
}

/// A `SchemaElement`.
fn put_element(name: &str, physical: Physical, is_optional: bool, meaning: Meaning, out: &mut Vec<u8>) {
    let mut element = Struct::begin(out);
    element.int(1, physical.number());
    if let Physical::Fixed(bytes) = physical {
        element.int(2, bytes.into());
    }
    element.int(3, is_optional.into());
    element.binary(4, name.as_bytes());
    if let Some((converted, logical)) = meaning.numbers() {
        element.int(6, converted);
        let mut choice = element.within(10);
        choice.within(logical).end();
        choice.end();
    }
    element.end();
}

/// What a footer says of a column chunk.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Of the data page.
    pub(super) encoding: Encoding,
    /// With zstd.
    pub(super) is_compressed: bool,
    pub(super) rows: usize,
    /// Bytes of the pages with their headers, before compression and as written.
    pub(super) uncompressed: usize,
    pub(super) written: usize,
    /// Offsets in the file.
    pub(super) dictionary: Option<u64>,
    pub(super) data: u64,
    pub(super) range: Option<Range>,
}

/// Least and largest value of a chunk, and how many rows have none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) least: i64,
    pub(super) largest: i64,
    pub(super) missing: usize,
}

/// `CompressionCodec`.
const UNCOMPRESSED: i32 = 0;
const ZSTD: i32 = 6;

impl Leaf {
    /// Appends the `ColumnChunk` of this column.
    pub(super) fn put_chunk(&self, chunk: &Chunk, out: &mut Vec<u8>) {
        let mut whole = Struct::begin(out);
        // Required, of no meaning.
        whole.long(2, 0);
        let mut metadata = whole.within(3);
        metadata.int(1, self.physical.number());
        let with_dictionary = [Encoding::Plain, Encoding::Rle, chunk.encoding];
        let encodings = if chunk.dictionary.is_some() { &with_dictionary[..] } else { &with_dictionary[1..] };
        metadata.list(2, encodings.len(), Of::I32);
        encodings.iter().for_each(|encoding| put_varint(metadata.out, zigzag(*encoding as i64)));
        metadata.list(3, 1, Of::Binary);
        put_binary(self.name.as_bytes(), metadata.out);
        metadata.int(4, if chunk.is_compressed { ZSTD } else { UNCOMPRESSED });
        metadata.long(5, chunk.rows as i64);
        metadata.long(6, chunk.uncompressed as i64);
        metadata.long(7, chunk.written as i64);
        metadata.long(9, chunk.data as i64);
        if let Some(dictionary) = chunk.dictionary {
            metadata.long(11, dictionary as i64);
        }
        if let Some(range) = &chunk.range {
            let mut statistics = metadata.within(12);
            statistics.long(3, range.missing as i64);
            statistics.binary(5, &range.largest.to_le_bytes());
            statistics.binary(6, &range.least.to_le_bytes());
            statistics.end();
        }
        metadata.end();
        whole.end();
    }
}

/// Appends what stands before the column chunks of a `RowGroup`.
pub(super) fn begin_group(columns: usize, out: &mut Vec<u8>) {
    Struct::begin(out).list(1, columns, Of::Struct);
}

/// A `RowGroup` as a whole.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) rows: usize,
    pub(super) offset: u64,
    pub(super) ordinal: usize,
    /// Sums over its chunks.
    pub(super) uncompressed: usize,
    pub(super) written: usize,
}

/// Appends what stands behind its column chunks.
pub(super) fn end_group(totals: &Totals, out: &mut Vec<u8>) {
    let mut group = Struct::after(1, out);
    group.long(2, totals.uncompressed as i64);
    group.long(3, totals.rows as i64);
    group.long(5, totals.offset as i64);
    group.long(6, totals.written as i64);
    if let Ok(ordinal) = i16::try_from(totals.ordinal) {
        group.short(7, ordinal);
    }
    group.end();
}

/// What of a file stands in its footer.
#[derive(Debug)]
pub(super) struct Footer<'a> {
    /// [`Schema::encoded`], and the number of its columns.
    pub(super) schema: &'a [u8],
    pub(super) columns: usize,
    pub(super) rows: u64,
    /// So many row groups, one after the other.
    pub(super) count: usize,
    pub(super) groups: &'a [u8],
    /// Key and value.
    pub(super) note: (&'a str, &'a str),
}

impl Footer<'_> {
    /// Appends the `FileMetaData`.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut file = Struct::begin(out);
        file.int(1, 1);
        file.encoded_list(2);
        file.out.extend_from_slice(self.schema);
        file.long(3, self.rows as i64);
        file.list(4, self.count, Of::Struct);
        file.out.extend_from_slice(self.groups);
        file.list(5, 1, Of::Struct);
        let mut note = Struct::begin(file.out);
        note.binary(1, self.note.0.as_bytes());
        note.binary(2, self.note.1.as_bytes());
        note.end();
        file.binary(6, concat!("unladen-sink version ", env!("CARGO_PKG_VERSION")).as_bytes());
        // Ranges count for nothing unless a column says how its values are ordered: as their type is.
        file.list(7, self.columns, Of::Struct);
        for _ in 0..self.columns {
            let mut order = Struct::begin(file.out);
            order.within(1).end();
            order.end();
        }
        file.end();
    }
}
