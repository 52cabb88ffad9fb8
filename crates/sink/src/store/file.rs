//! A file of spans: the row groups that are appended to it, and how what was appended survives a crash.
//!
//! A Parquet file cannot be read without its footer, which comes last. So after each row group stands a record with the
//! group's part of the footer, the first also with the schema, and a checksum of both; readers of Parquet pass over it.
//! [`SpanFile::reopen`] follows the records of a file that was torn and the footer is written after all. A file is called
//! `….partial` until then, so whatever ends in `.parquet` is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use parquet::errors::{ParquetError, Result};
use unladen_decode::buffers::take;

use super::columns::{CORE, Keys};
use super::encode::{Encoder, Place};
use super::footer::{Footer, Leaf, Schema};
use super::group::Group;

const MAGIC: &[u8; 4] = b"PAR1";
/// Ends every record.
const RECORD_MAGIC: &[u8; 8] = b"unladen2";
/// Fixed part at the end: start of the row group, number of the group, length of what stands before, checksum, magic.
const RECORD_TAIL: usize = 8 + 8 + 4 + 4 + 8;
/// Length of a footer and magic, at the end of a file.
const FOOTER_TAIL: usize = 4 + 4;
/// Columns times row groups of a file: each takes a kilobyte of memory of many a reader.
const MAX_CHUNKS: usize = 8_192;
/// Key in a file's metadata under which the number of its last group stands.
const LAST_GROUP: &str = "unladen.last_group";

/// A span file being written.
#[derive(Debug)]
pub(super) struct SpanFile {
    file: File,
    path: PathBuf,
    /// Empty if nothing will be appended.
    leaves: Vec<Leaf>,
    /// As the footer has it.
    schema: Vec<u8>,
    columns: usize,
    /// The row groups as the footer has them.
    groups: Vec<u8>,
    extent: Extent,
}

/// How far a file goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Bytes, without a footer.
    end: u64,
    rows: u64,
    /// Row groups, and bytes of what the footer says of them.
    count: usize,
    groups: usize,
    /// Number of the last group.
    last_group: u64,
}

impl SpanFile {
    /// Starts a file that will be called `path`, with a column for every key.
    pub(super) fn create(path: PathBuf, keys: &Keys) -> Result<Self> {
        let file = File::create(partial(&path))?;
        file.write_all_at(MAGIC, 0)?;
        let Schema { leaves, encoded: schema } = Schema::of(keys);
        let extent = Extent { end: MAGIC.len() as u64, rows: 0, count: 0, groups: 0, last_group: 0 };
        Ok(Self { file, path, columns: leaves.len(), leaves, schema, groups: Vec::new(), extent })
    }

    /// Opens a file that was not finished, up to its last whole record, to be finished; `None` if it has none.
    pub(super) fn reopen(path: PathBuf) -> Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).open(partial(&path))?;
        let bytes = fs::read(partial(&path))?;
        let mut from = MAGIC.len();
        // Every column takes more than a byte of the schema.
        let first = Record::first(&bytes, from).filter(|first| first.columns <= first.schema.len());
        let Some(first) = first else { return Ok(None) };
        let (schema, columns) = (first.schema.to_vec(), first.columns);
        let extent = Extent { end: 0, rows: 0, count: 0, groups: 0, last_group: 0 };
        let mut reopened = Self { file, path, leaves: Vec::new(), schema, columns, groups: Vec::new(), extent };
        while let Some(record) = Record::first(&bytes, from) {
            from = record.end;
            reopened.grow(record.end as u64, record.rows, record.group, record.metadata);
        }
        Ok(Some(reopened))
    }

    fn grow(&mut self, end: u64, rows: u64, group: u64, metadata: &[u8]) {
        self.groups.extend_from_slice(metadata);
        let Extent { rows: before, count, .. } = self.extent;
        self.extent =
            Extent { end, rows: before + rows, count: count + 1, groups: self.groups.len(), last_group: group };
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.extent.end
    }

    /// Whether its footer is so long that another file should be begun.
    pub(super) fn is_long(&self) -> bool {
        self.extent.count * self.columns >= MAX_CHUNKS
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.extent.rows
    }

    /// Number of the last group.
    pub(super) fn last_group(&self) -> u64 {
        self.extent.last_group
    }

    /// How far it goes: see [`SpanFile::take_back`].
    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    /// Whether the file has a column for all that the group has.
    pub(super) fn fits(&self, group: &Group) -> bool {
        let attributes = self.columns - CORE.len();
        group.attributes.iter().skip(attributes).all(|column| column.codes.is_empty())
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
        let place = Place { leaves: &self.leaves, offset: self.extent.end, ordinal: self.extent.count };
        encoder.encode(group, place, out)?;
        let rows = group.len();
        let schema = if self.extent.count == 0 { &self.schema[..] } else { &[] };
        let before = out.len();
        out.extend_from_slice(&(schema.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.columns as u32).to_le_bytes());
        out.extend_from_slice(&(rows as u32).to_le_bytes());
        out.extend_from_slice(schema);
        out.extend_from_slice(&encoder.metadata);
        let length = (out.len() - before) as u32;
        out.extend_from_slice(&self.extent.end.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        let checksum = crc32fast::hash(out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(RECORD_MAGIC);
        self.file.write_all_at(out, self.extent.end)?;
        self.grow(self.extent.end + out.len() as u64, rows as u64, number, &encoder.metadata);
        Ok(())
    }

    /// Takes back what was appended since and could not be made durable.
    pub(super) fn take_back(&mut self, before: Extent) {
        self.groups.truncate(before.groups);
        self.extent = before;
    }

    /// Waits until everything is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Writes the footer, waits for the disk and gives the file its name; returns its size. Can be tried again.
    pub(super) fn finish(&self) -> Result<u64> {
        let mut footer = Vec::new();
        Footer {
            schema: &self.schema,
            columns: self.columns,
            rows: self.extent.rows,
            count: self.extent.count,
            groups: &self.groups,
            note: (LAST_GROUP, &self.extent.last_group.to_string()),
        }
        .put(&mut footer);
        let length = footer.len() as u32;
        footer.extend_from_slice(&length.to_le_bytes());
        footer.extend_from_slice(MAGIC);
        self.file.write_all_at(&footer, self.extent.end)?;
        let size = self.extent.end + footer.len() as u64;
        self.file.set_len(size)?;
        self.file.sync_data()?;
        fs::rename(partial(&self.path), &self.path)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(size)
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
    /// Of the file; only the first record has it.
    schema: &'a [u8],
    columns: usize,
    rows: u64,
    /// What the footer says of the row group.
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
        let tail = &mut bytes.get(end.checked_sub(RECORD_TAIL).filter(|start| *start >= from)?..end)?;
        let [start, group] = [take(tail)?, take(tail)?].map(u64::from_le_bytes);
        let [length, checksum] = [take(tail)?, take(tail)?].map(u32::from_le_bytes);
        let fixed = end - RECORD_TAIL;
        let begin = fixed.checked_sub(length as usize).filter(|at| *at >= from)?;
        if start != base + from as u64 || crc32fast::hash(&bytes[from..end - RECORD_MAGIC.len() - 4]) != checksum {
            return None;
        }
        let rest = &mut &bytes[begin..fixed];
        let [schema, columns, rows] = [take(rest)?, take(rest)?, take(rest)?].map(u32::from_le_bytes);
        let (schema, metadata) = rest.split_at_checked(schema as usize)?;
        Some(Self { schema, columns: columns as usize, rows: rows.into(), metadata, group, end })
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}
