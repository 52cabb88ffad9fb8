//! A group of spans as a row group of Parquet: which encoding each column gets, and its metadata.
//!
//! Columns are encoded from codes that were made when the spans came in, so no value is looked at twice.

use std::io;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescPtr;
use zstd::bulk::Compressor;

use super::dictionary::{Column, Ids, NULL};
use super::empty;
use super::group::{Group, Row, Type};
use super::pages::{self, Kind};
use crate::span;

/// A fast level: the next ones take a third longer and save a few bytes of a hundred.
const LEVEL: i32 = -1;

/// Row groups for which a column stays as it is that would not compress.
const REST: u8 = 15;

/// Encodes row groups one after the other; keeps its memory.
pub(super) struct Encoder {
    compressor: Compressor<'static>,
    compressed: Vec<u8>,
    page: Vec<u8>,
    values: Vec<i64>,
    /// By column: for how many row groups compressing it need not be tried.
    rests: Vec<u8>,
}

/// Where a row group goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The file's schema.
    pub(super) schema: &'a SchemaDescPtr,
    /// Offset in the file.
    pub(super) offset: u64,
    /// Position among the file's row groups.
    pub(super) ordinal: usize,
}

/// A column chunk whose data page is in [`Encoder::page`].
struct Chunk<'a> {
    /// PLAIN, and how many values.
    dictionary: Option<(&'a [u8], usize)>,
    encoding: Encoding,
    /// Random bytes do not compress, and trying to costs as much as everything else.
    compress: bool,
    statistics: Option<Statistics>,
}

impl Chunk<'static> {
    fn of(encoding: Encoding) -> Self {
        Self { dictionary: None, encoding, compress: true, statistics: None }
    }
}

/// Column chunks of one row group, in order.
struct Chunks<'a> {
    place: Place<'a>,
    rows: usize,
    metadata: Vec<ColumnChunkMetaData>,
    out: &'a mut Vec<u8>,
}

impl Encoder {
    /// An encoder that has not worked yet.
    pub(super) fn new() -> io::Result<Self> {
        let compressor = Compressor::new(LEVEL)?;
        Ok(Self { compressor, compressed: Vec::new(), page: Vec::new(), values: Vec::new(), rests: Vec::new() })
    }

    /// Appends the pages of a group to `out`; `attributes` is how many columns of attributes the schema has.
    pub(super) fn encode(
        &mut self,
        group: &Group,
        attributes: usize,
        place: Place<'_>,
        out: &mut Vec<u8>,
    ) -> Result<RowGroupMetaData> {
        let mut chunks = Chunks { place, rows: group.len(), metadata: Vec::new(), out };
        let all = &mut chunks;
        self.ids(all, &group.trace_id, false)?;
        self.page.extend(group.rows.iter().flat_map(|row| row.span_id));
        self.chunk(all, Chunk { compress: false, ..Chunk::of(Encoding::PLAIN) })?;
        self.ids(all, &group.parent_id, true)?;
        self.names(all, &span::Kind::NAMES, group.rows.iter().map(|row| row.kind))?;
        self.column(all, &group.service, Type::Text, false)?;
        self.column(all, &group.instance, Type::Text, true)?;
        self.column(all, &group.operation, Type::Text, false)?;
        self.numbers(all, group.rows.iter().map(|row| row.start_ns), true)?;
        self.numbers(all, group.rows.iter().map(|row| row.duration_ns), false)?;
        self.names(all, &span::Status::NAMES, group.rows.iter().map(|row| row.status))?;
        self.names(all, &span::Protocol::NAMES, group.rows.iter().map(|row| row.protocol))?;
        self.numbers(all, group.rows.iter().map(|row| row.arrival_ns), true)?;
        self.numbers(all, group.rows.iter().map(|row| i64::from(row.size)), false)?;
        self.requests(all, &group.rows)?;
        self.column(all, &group.overflow, Type::Text, true)?;
        let none = Column::default();
        for (number, (_, kind)) in group.keys.columns.iter().take(attributes).enumerate() {
            self.column(all, group.attributes.get(number).unwrap_or(&none), *kind, true)?;
        }
        let size = chunks.metadata.iter().map(ColumnChunkMetaData::uncompressed_size).sum();
        RowGroupMetaData::builder(place.schema.clone())
            .set_num_rows(group.len() as i64)
            .set_total_byte_size(size)
            .set_column_metadata(chunks.metadata)
            .set_ordinal(place.ordinal as i32)
            .set_file_offset(place.offset as i64)
            .build()
    }

    /// Ids: by code where several rows share one, else as they are.
    fn ids<const N: usize>(&mut self, all: &mut Chunks<'_>, ids: &Ids<N>, is_optional: bool) -> Result<()> {
        let present = || ids.codes.iter().copied().filter(|code| *code != NULL);
        let values = present().count();
        if is_optional {
            pages::levels(ids.codes.iter().map(|code| *code != NULL), all.rows, values, &mut self.page);
        }
        let width = pages::width(ids.distinct.len().saturating_sub(1) as u64);
        let by_code = ids.distinct.len() * N + values * width as usize / 8;
        if values > 0 && by_code < values * N {
            self.page.push(width as u8);
            pages::hybrid(present(), values, width, (width == 0).then_some(0), &mut self.page);
            let dictionary = Some((ids.distinct.as_flattened(), ids.distinct.len()));
            self.chunk(all, Chunk { dictionary, ..Chunk::of(Encoding::RLE_DICTIONARY) })
        } else {
            present().for_each(|code| self.page.extend_from_slice(&ids.distinct[code as usize]));
            self.chunk(all, Chunk { compress: false, ..Chunk::of(Encoding::PLAIN) })
        }
    }

    /// A column of few names, by discriminant.
    fn names(&mut self, all: &mut Chunks<'_>, names: &[&str], rows: impl Iterator<Item = u8> + Clone) -> Result<()> {
        let mut dictionary = Vec::new();
        for name in names {
            dictionary.extend_from_slice(&(name.len() as u32).to_le_bytes());
            dictionary.extend_from_slice(name.as_bytes());
        }
        let width = pages::width(names.len() as u64 - 1);
        let first = rows.clone().next().unwrap_or(0);
        let only = rows.clone().all(|row| row == first).then_some(u32::from(first));
        self.page.push(width as u8);
        pages::hybrid(rows.map(u32::from), all.rows, width, only, &mut self.page);
        let dictionary = Some((&dictionary[..], names.len()));
        self.chunk(all, Chunk { dictionary, ..Chunk::of(Encoding::RLE_DICTIONARY) })
    }

    /// A column of strings or of numbers that are often equal.
    fn column(&mut self, all: &mut Chunks<'_>, column: &Column, kind: Type, is_optional: bool) -> Result<()> {
        let present = || column.codes.iter().copied().filter(|code| *code != NULL);
        let values = present().count();
        if is_optional {
            let missing = std::iter::repeat_n(false, all.rows.saturating_sub(column.codes.len()));
            let levels = column.codes.iter().map(|code| *code != NULL).chain(missing);
            pages::levels(levels, all.rows, values, &mut self.page);
        }
        let distinct = column.dictionary.len();
        if kind == Type::Truth {
            pages::truths(present().map(|code| code == 1), &mut self.page);
            self.chunk(all, Chunk::of(Encoding::PLAIN))
        } else if column.is_mostly_distinct(values) {
            // Mostly different: codes would come on top of the values. Or there are no values at all.
            present().for_each(|code| self.page.extend_from_slice(column.dictionary.value(code)));
            self.chunk(all, Chunk::of(Encoding::PLAIN))
        } else if values == 0 {
            self.chunk(all, Chunk::of(Encoding::PLAIN))
        } else {
            let width = pages::width(distinct as u64 - 1);
            self.page.push(width as u8);
            pages::hybrid(present(), values, width, (distinct == 1).then_some(0), &mut self.page);
            let dictionary = Some((column.dictionary.plain(), distinct));
            self.chunk(all, Chunk { dictionary, ..Chunk::of(Encoding::RLE_DICTIONARY) })
        }
    }

    /// Numbers of which neighbours are close; `with_range` if a reader may want to skip row groups by them.
    fn numbers(&mut self, all: &mut Chunks<'_>, numbers: impl Iterator<Item = i64>, with_range: bool) -> Result<()> {
        self.values.clear();
        self.values.extend(numbers);
        pages::delta(&self.values, &mut self.page);
        let statistics = range(&self.values, 0).filter(|_| with_range);
        self.chunk(all, Chunk { statistics, ..Chunk::of(Encoding::DELTA_BINARY_PACKED) })
    }

    fn requests(&mut self, all: &mut Chunks<'_>, rows: &[Row]) -> Result<()> {
        self.values.clear();
        self.values.extend(rows.iter().map(|row| row.request).filter(|index| *index >= 0));
        pages::levels(rows.iter().map(|row| row.request >= 0), rows.len(), self.values.len(), &mut self.page);
        if self.values.is_empty() {
            return self.chunk(all, Chunk::of(Encoding::PLAIN));
        }
        pages::delta(&self.values, &mut self.page);
        let statistics = range(&self.values, rows.len() - self.values.len());
        self.chunk(all, Chunk { statistics, ..Chunk::of(Encoding::DELTA_BINARY_PACKED) })
    }

    /// Ends a column chunk: its pages with their headers, and its metadata.
    fn chunk(&mut self, all: &mut Chunks<'_>, chunk: Chunk<'_>) -> Result<()> {
        let start = all.out.len();
        let bytes = self.page.len() + chunk.dictionary.map_or(0, |(values, _)| values.len());
        let compress = chunk.compress && self.is_worth_compressing(all.metadata.len(), bytes, all.rows);
        let mut uncompressed = 0;
        if let Some((values, count)) = chunk.dictionary {
            uncompressed += self.page(Kind::Dictionary, count, Some(values), compress, all.out)?;
        }
        let data = all.out.len();
        uncompressed += self.page(Kind::Data(chunk.encoding), all.rows, None, compress, all.out)?;
        empty(&mut self.page);
        let written = all.out.len() - start;
        if compress && written > uncompressed - uncompressed / 8 {
            self.rests[all.metadata.len()] = REST;
        }
        let offset = |at: usize| all.place.offset as i64 + at as i64;
        let compression = if compress { Compression::ZSTD(ZstdLevel::default()) } else { Compression::UNCOMPRESSED };
        let encodings = match chunk.dictionary {
            Some(_) => vec![Encoding::PLAIN, Encoding::RLE, chunk.encoding],
            None => vec![Encoding::RLE, chunk.encoding],
        };
        let descriptor = all.place.schema.column(all.metadata.len());
        let mut metadata = ColumnChunkMetaData::builder(descriptor)
            .set_compression(compression)
            .set_encodings(encodings)
            .set_num_values(all.rows as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_total_compressed_size(written as i64)
            .set_data_page_offset(offset(data))
            .set_dictionary_page_offset(chunk.dictionary.map(|_| offset(start)));
        if let Some(statistics) = chunk.statistics {
            metadata = metadata.set_statistics(statistics);
        }
        all.metadata.push(metadata.build()?);
        Ok(())
    }

    /// Whether so many bytes of a column are to be compressed: every attempt costs some microseconds, and is in vain for
    /// random numbers and for a few bits a row.
    fn is_worth_compressing(&mut self, column: usize, bytes: usize, rows: usize) -> bool {
        if self.rests.len() <= column {
            self.rests.resize(column + 1, 0);
        }
        if bytes * 4 <= rows {
            return false;
        }
        let rest = &mut self.rests[column];
        let is_tried = *rest == 0;
        *rest = rest.saturating_sub(1);
        is_tried
    }

    /// Appends a page, [`Encoder::page`] if no other bytes are given; returns its size before compression.
    fn page(
        &mut self,
        kind: Kind,
        values: usize,
        bytes: Option<&[u8]>,
        compress: bool,
        out: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let bytes = bytes.unwrap_or(&self.page);
        let start = out.len();
        let written = if compress {
            self.compressed.clear();
            self.compressed.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
            self.compressor.compress_to_buffer(bytes, &mut self.compressed)?;
            &self.compressed
        } else {
            bytes
        };
        pages::header(kind, values, bytes.len(), written.len(), out);
        let header = out.len() - start;
        out.extend_from_slice(written);
        let size = header + bytes.len();
        empty(&mut self.compressed);
        Ok(size)
    }
}

fn range(numbers: &[i64], missing: usize) -> Option<Statistics> {
    let (least, largest) = (numbers.iter().min()?, numbers.iter().max()?);
    Some(Statistics::int64(Some(*least), Some(*largest), None, Some(missing as u64), false))
}
