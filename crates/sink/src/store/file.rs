//! Rows as Parquet: the schema, how each column is encoded, and the file that row groups are appended to.
//!
//! Times are plain 64-bit numbers of nanoseconds, because several readers refuse Parquet's nanosecond timestamps. A file
//! is called `….partial` until its footer is written, so whatever ends in `.parquet` is whole.

use std::fs::{self, File};
use std::io::BufWriter;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::rows::{Rows, Strings};
use crate::span::{Kind, Protocol, Status};

/// One row per span. `request` is the index of the request that started the trace, `attributes` a JSON object.
const SCHEMA: &str = "
message spans {
  required fixed_len_byte_array(16) trace_id;
  required fixed_len_byte_array(8) span_id;
  optional fixed_len_byte_array(8) parent_id;
  required binary kind (utf8);
  required binary service (utf8);
  optional binary instance (utf8);
  required binary operation (utf8);
  required int64 start_ns;
  required int64 duration_ns;
  required binary status (utf8);
  required binary protocol (utf8);
  required int64 arrival_ns;
  required int32 size;
  optional int64 request;
  optional binary attributes (json);
}";

/// Columns of which many rows are equal.
const REPETITIVE: [&str; 6] = ["kind", "service", "instance", "operation", "status", "protocol"];
/// Columns that grow slowly from row to row.
const STEADY: [&str; 4] = ["start_ns", "duration_ns", "arrival_ns", "request"];
/// Columns by which a reader may want to skip row groups.
const RANGED: [&str; 3] = ["start_ns", "arrival_ns", "request"];

/// A span file being written.
pub(super) struct SpanFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    path: PathBuf,
}

impl SpanFile {
    /// Starts a file that will be called `path`.
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let file = BufWriter::new(File::create(partial(&path))?);
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties()?))?;
        Ok(Self { writer, path })
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Appends some of the rows as one row group.
    pub(super) fn append(&mut self, rows: &Rows, range: Range<usize>) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        write_group(&mut group, rows, range)?;
        group.close()?;
        Ok(())
    }

    /// Writes the footer, waits for the disk and gives the file its name; returns its size.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.writer.finish()?;
        let bytes = self.bytes();
        self.writer.inner().get_ref().sync_data()?;
        fs::rename(partial(&self.path), &self.path)?;
        Ok(bytes)
    }
}

fn partial(path: &Path) -> PathBuf {
    path.with_extension("parquet.partial")
}

fn properties() -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("unladen-sink version ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true);
    // Random ids do not compress, and trying to costs as much as everything else.
    for column in ["trace_id", "span_id", "parent_id"] {
        properties = properties.set_column_compression(ColumnPath::from(column), Compression::UNCOMPRESSED);
    }
    for column in REPETITIVE {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(column), true);
    }
    for column in STEADY {
        properties = properties.set_column_encoding(ColumnPath::from(column), Encoding::DELTA_BINARY_PACKED);
    }
    for column in RANGED {
        properties = properties.set_column_statistics_enabled(ColumnPath::from(column), EnabledStatistics::Chunk);
    }
    Ok(properties.build())
}

type Group<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

/// Columns in the order of [`SCHEMA`].
fn write_group(group: &mut Group<'_>, rows: &Rows, range: Range<usize>) -> Result<()> {
    required::<FixedLenByteArrayType>(group, &ids::<16>(&rows.trace_id, range.clone()))?;
    required::<FixedLenByteArrayType>(group, &ids::<8>(&rows.span_id, range.clone()))?;
    let parents = |rows: &[bool]| rows.iter().filter(|has| **has).count();
    let first = parents(&rows.has_parent[..range.start]);
    let has_parent = &rows.has_parent[range.clone()];
    let parent_ids = ids::<8>(&rows.parent_id, first..first + parents(has_parent));
    optional::<FixedLenByteArrayType>(group, &parent_ids, has_parent.iter().copied())?;
    names(group, &Kind::NAMES, &rows.kind[range.clone()])?;
    strings(group, &rows.service, range.clone(), false)?;
    strings(group, &rows.instance, range.clone(), true)?;
    strings(group, &rows.operation, range.clone(), false)?;
    required::<Int64Type>(group, &rows.start_ns[range.clone()])?;
    required::<Int64Type>(group, &rows.duration_ns[range.clone()])?;
    names(group, &Status::NAMES, &rows.status[range.clone()])?;
    names(group, &Protocol::NAMES, &rows.protocol[range.clone()])?;
    required::<Int64Type>(group, &rows.arrival_ns[range.clone()])?;
    required::<Int32Type>(group, &rows.size[range.clone()])?;
    let request = &rows.request[range.clone()];
    let indices: Vec<i64> = request.iter().copied().flatten().collect();
    optional::<Int64Type>(group, &indices, request.iter().map(Option::is_some))?;
    attributes(group, rows, range)
}

fn attributes(group: &mut Group<'_>, rows: &Rows, range: Range<usize>) -> Result<()> {
    let mut start = rows.attributes_end[..range.start].iter().rev().copied().flatten().next().unwrap_or(0);
    let mut objects = Vec::with_capacity(range.len());
    let ends = &rows.attributes_end[range];
    let text = Bytes::copy_from_slice(&rows.attributes);
    for end in ends.iter().copied().flatten() {
        objects.push(ByteArray::from(text.slice(start..end)));
        start = end;
    }
    optional::<ByteArrayType>(group, &objects, ends.iter().map(Option::is_some))
}

fn ids<const N: usize>(bytes: &[u8], range: Range<usize>) -> Vec<FixedLenByteArray> {
    let bytes = Bytes::copy_from_slice(&bytes[range.start * N..range.end * N]);
    (0..range.len()).map(|row| ByteArray::from(bytes.slice(row * N..(row + 1) * N)).into()).collect()
}

fn names(group: &mut Group<'_>, names: &[&'static str], rows: &[u8]) -> Result<()> {
    let names: Vec<ByteArray> = names.iter().map(|name| Bytes::from_static(name.as_bytes()).into()).collect();
    let values: Vec<ByteArray> = rows.iter().map(|row| names[usize::from(*row)].clone()).collect();
    required::<ByteArrayType>(group, &values)
}

fn strings(group: &mut Group<'_>, column: &Strings, range: Range<usize>, is_optional: bool) -> Result<()> {
    let text = Bytes::copy_from_slice(&column.text);
    let starts = std::iter::once(&0).chain(&column.ends);
    let distinct: Vec<ByteArray> =
        starts.zip(&column.ends).map(|(start, end)| text.slice(*start..*end).into()).collect();
    let rows = &column.rows[range];
    let values: Vec<ByteArray> = rows.iter().flatten().map(|number| distinct[*number as usize].clone()).collect();
    if is_optional {
        optional::<ByteArrayType>(group, &values, rows.iter().map(Option::is_some))
    } else {
        required::<ByteArrayType>(group, &values)
    }
}

fn required<T: DataType>(group: &mut Group<'_>, values: &[T::T]) -> Result<()> {
    column::<T>(group, values, None)
}

fn optional<T: DataType>(group: &mut Group<'_>, values: &[T::T], present: impl Iterator<Item = bool>) -> Result<()> {
    let levels: Vec<i16> = present.map(i16::from).collect();
    column::<T>(group, values, Some(&levels))
}

fn column<T: DataType>(group: &mut Group<'_>, values: &[T::T], levels: Option<&[i16]>) -> Result<()> {
    let missing = || ParquetError::General("the schema has fewer columns than rows have".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}
