//! A file of spans: its schema, the row groups that are appended to it, and how what was appended survives a crash.
//!
//! A Parquet file cannot be read without its footer, which comes last. So after each row group stands a record with the
//! group's part of the footer and a checksum of both; readers of Parquet pass over it. [`SpanFile::reopen`] follows the
//! records of a file that was torn and the footer is written after all. A file is called `….partial` until then, so
//! whatever ends in `.parquet` is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type as SchemaType};

use super::encode::{Encoder, Place};
use super::group::{Group, Keys, Type};

/// One row per span; columns of attributes follow. `request` is the index of the request that started the trace,
/// `attributes` a JSON object of those that have no column. Times are plain numbers of nanoseconds, because several
/// readers refuse Parquet's own nanosecond timestamps.
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
  required int64 size;
  optional int64 request;
  optional binary attributes (json);
}";

/// The columns of [`SCHEMA`].
pub(super) const CORE: [&str; 15] = [
    "trace_id",
    "span_id",
    "parent_id",
    "kind",
    "service",
    "instance",
    "operation",
    "start_ns",
    "duration_ns",
    "status",
    "protocol",
    "arrival_ns",
    "size",
    "request",
    "attributes",
];

const MAGIC: &[u8; 4] = b"PAR1";
/// Ends every record.
const RECORD_MAGIC: &[u8; 8] = b"unladen1";
/// Fixed part at the end of a record: start of the row group, number of the group, length of the metadata, checksum, magic.
const RECORD_TAIL: usize = 8 + 8 + 4 + 4 + 8;
/// Length of a footer and magic, at the end of a file.
const FOOTER_TAIL: usize = 4 + 4;
/// Columns times row groups of a file: each takes about a kilobyte of memory as long as the file is written.
const MOST_CHUNKS: usize = 8_192;
/// Key in a file's metadata under which the number of its last group stands.
const LAST_GROUP: &str = "unladen.last_group";

/// A span file being written.
#[derive(Debug)]
pub(super) struct SpanFile {
    file: File,
    path: PathBuf,
    schema: SchemaDescPtr,
    /// Columns of attributes.
    attributes: usize,
    groups: Vec<RowGroupMetaData>,
    last_group: u64,
    end: u64,
}

impl SpanFile {
    /// Starts a file that will be called `path`, with a column for every key.
    pub(super) fn create(path: PathBuf, keys: &Keys) -> Result<Self> {
        let file = File::create(partial(&path))?;
        file.write_all_at(MAGIC, 0)?;
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema(keys)?)));
        let (attributes, end) = (keys.columns.len(), MAGIC.len() as u64);
        Ok(Self { file, path, schema, attributes, groups: Vec::new(), last_group: 0, end })
    }

    /// Opens a file that was not finished, up to its last whole record; `None` if it has none.
    pub(super) fn reopen(path: PathBuf) -> Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).open(partial(&path))?;
        let bytes = fs::read(partial(&path))?;
        let mut end = 0;
        let mut records = Vec::new();
        let mut from = MAGIC.len();
        while let Some(record) = Record::first(&bytes, from) {
            from = record.end;
            end = record.end;
            records.push(record);
        }
        let Some(last) = records.last() else { return Ok(None) };
        let last_group = last.group;
        let mut groups = Vec::new();
        for record in &records {
            let metadata = ParquetMetaDataReader::decode_metadata(record.metadata)?;
            groups.extend_from_slice(metadata.row_groups());
        }
        let schema = ParquetMetaDataReader::decode_metadata(last.metadata)?.file_metadata().schema_descr_ptr();
        let attributes = schema.num_columns() - CORE.len();
        Ok(Some(Self { file, path, schema, attributes, groups, last_group, end: end as u64 }))
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    /// Whether its footer is so long that another file should be begun: it is kept in memory until then.
    pub(super) fn is_long(&self) -> bool {
        self.groups.len() * self.schema.num_columns() >= MOST_CHUNKS
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.groups.iter().map(|group| group.num_rows() as u64).sum()
    }

    /// Number of the last group.
    pub(super) fn last_group(&self) -> u64 {
        self.last_group
    }

    /// Whether the file has a column for all that the group has.
    pub(super) fn fits(&self, group: &Group) -> bool {
        group.attributes.iter().skip(self.attributes).all(|column| column.codes.is_empty())
    }

    /// Appends a row group and its record; `number` grows from group to group, over all files. After an error the file is
    /// as before, so it can be tried again.
    pub(super) fn append(
        &mut self,
        encoder: &mut Encoder,
        group: &Group,
        number: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        out.clear();
        let place = Place { schema: &self.schema, offset: self.end, ordinal: self.groups.len() };
        let metadata = encoder.encode(group, self.attributes, place, out)?;
        let pages = out.len();
        self.footer(vec![metadata.clone()], number, &mut *out)?;
        let length = (out.len() - pages) as u32;
        out.extend_from_slice(&self.end.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        let checksum = crc32fast::hash(out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(RECORD_MAGIC);
        self.file.write_all_at(out, self.end)?;
        self.end += out.len() as u64;
        self.groups.push(metadata);
        self.last_group = number;
        Ok(())
    }

    /// Takes the last row group back, which could not be made durable.
    pub(super) fn take_back(&mut self, end: u64, last_group: u64) {
        self.groups.pop();
        self.end = end;
        self.last_group = last_group;
    }

    /// Waits until everything is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Writes the footer, waits for the disk and gives the file its name; returns its size. Can be tried again.
    pub(super) fn finish(&self) -> Result<u64> {
        let mut footer = Vec::new();
        self.footer(self.groups.clone(), self.last_group, &mut footer)?;
        self.file.write_all_at(&footer, self.end)?;
        let size = self.end + footer.len() as u64;
        self.file.set_len(size)?;
        self.file.sync_data()?;
        fs::rename(partial(&self.path), &self.path)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(size)
    }

    /// A footer, with its length and magic.
    fn footer(&self, groups: Vec<RowGroupMetaData>, last_group: u64, out: &mut Vec<u8>) -> Result<()> {
        let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
        let by = Some(concat!("unladen-sink version ", env!("CARGO_PKG_VERSION")).to_string());
        let notes = Some(vec![KeyValue::new(LAST_GROUP.into(), last_group.to_string())]);
        let file = FileMetaData::new(1, rows, by, notes, Arc::clone(&self.schema), None);
        ParquetMetaDataWriter::new(out, &ParquetMetaData::new(file, groups)).finish()
    }
}

/// Name of a file that is not finished.
pub(super) fn partial(path: &Path) -> PathBuf {
    path.with_extension("parquet.partial")
}

/// Number of the last group of a finished file. Read from the record before the footer, which has a checksum: what decodes
/// footers can take hours over a few bytes that are none.
pub(super) fn last_group(path: &Path) -> Result<u64> {
    let foreign = || ParquetError::General("this is no span file of unladen's".into());
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let before = |end: u64, bytes: usize| end.checked_sub(bytes as u64).ok_or_else(foreign);
    let mut tail = [0; FOOTER_TAIL];
    file.read_exact_at(&mut tail, before(size, FOOTER_TAIL)?)?;
    let [length @ .., _, _, _, _] = tail;
    let footer = before(before(size, FOOTER_TAIL)?, u32::from_le_bytes(length) as usize)?;
    let mut tail = [0; RECORD_TAIL];
    file.read_exact_at(&mut tail, before(footer, RECORD_TAIL)?)?;
    let start = tail.first_chunk().filter(|_| tail.ends_with(RECORD_MAGIC)).ok_or_else(foreign)?;
    let start = u64::from_le_bytes(*start);
    let mut record = vec![0; footer.checked_sub(start).ok_or_else(foreign)? as usize];
    file.read_exact_at(&mut record, start)?;
    let record = Record::ending(&record, start, 0, record.len()).ok_or_else(foreign)?;
    Ok(record.group)
}

/// The record behind a row group.
struct Record<'a> {
    metadata: &'a [u8],
    group: u64,
    end: usize,
}

impl<'a> Record<'a> {
    /// The record of the row group that starts at `from`.
    fn first(bytes: &'a [u8], from: usize) -> Option<Self> {
        let mut at = from;
        // The magic may also stand within a page by chance, hence the checks and the search beyond a false one.
        while let Some(found) = find(bytes.get(at..)?, RECORD_MAGIC) {
            let end = at + found + RECORD_MAGIC.len();
            if let Some(record) = Self::ending(bytes, 0, from, end) {
                return Some(record);
            }
            at += found + 1;
        }
        None
    }

    /// The record that ends at `end`, of the row group that starts at `from`; `bytes` begin at `base` of the file.
    fn ending(bytes: &'a [u8], base: u64, from: usize, end: usize) -> Option<Self> {
        let tail = bytes.get(end.checked_sub(RECORD_TAIL).filter(|start| *start >= from)?..end)?;
        let (start, tail) = tail.split_first_chunk::<8>()?;
        let (group, tail) = tail.split_first_chunk::<8>()?;
        let (length, tail) = tail.split_first_chunk::<4>()?;
        let (checksum, _) = tail.split_first_chunk::<4>()?;
        let fixed = end - RECORD_TAIL;
        let metadata = fixed.checked_sub(u32::from_le_bytes(*length) as usize).filter(|at| *at >= from)?;
        let is_sound = u64::from_le_bytes(*start) == base + from as u64
            && crc32fast::hash(&bytes[from..end - RECORD_MAGIC.len() - 4]) == u32::from_le_bytes(*checksum);
        // The length and magic of a footer are not part of its metadata.
        let metadata = bytes[metadata..fixed].strip_suffix(MAGIC)?;
        let metadata = metadata.get(..metadata.len().checked_sub(4)?)?;
        is_sound.then(|| Self { metadata, group: u64::from_le_bytes(*group), end })
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

fn schema(keys: &Keys) -> Result<SchemaType> {
    let core = parse_message_type(SCHEMA)?;
    let mut fields = core.get_fields().to_vec();
    for (name, kind) in &keys.columns {
        let (physical, logical) = match kind {
            Type::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Type::Whole => (PhysicalType::INT64, None),
            Type::Real => (PhysicalType::DOUBLE, None),
            Type::Truth => (PhysicalType::BOOLEAN, None),
        };
        let column = SchemaType::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(column));
    }
    SchemaType::group_type_builder("spans").with_fields(fields).build()
}
