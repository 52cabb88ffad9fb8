//! A group of spans as a row group of Parquet: which encoding each column gets, and its part of the footer.
//!
//! Columns are encoded from codes that were made when the spans came in, so no value is looked at twice.

use std::io;

use unladen_decode::buffers::put_bytes;
use unladen_decode::span;
use zstd::bulk::Compressor;

use super::columns::Type;
use super::dictionary::{Column, Ids, Presence};
use super::footer::{self, Leaf, Range, Totals};
use super::group::{Group, Row};
use super::pages::{self, Encoding, Kind};
use crate::buffers::empty;

/// A fast level: the next ones take a third longer and save a few bytes of a hundred.
const LEVEL: i32 = -1;

/// Row groups for which a column stays as it is that would not compress.
const REST: u8 = 15;

/// Encodes row groups one after the other; keeps its memory.
pub(super) struct Encoder {
    compressor: Compressor<'static>,
    compressed: Vec<u8>,
    page: Vec<u8>,
    split: Split,
    /// By column: for how many row groups compressing it need not be tried.
    rests: Vec<u8>,
    /// The part of the footer that is about the row group encoded last.
    pub(super) metadata: Vec<u8>,
}

/// Where a row group goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The file's columns.
    pub(super) leaves: &'a [Leaf],
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
    range: Option<Range>,
}

impl Chunk<'static> {
    fn of(encoding: Encoding) -> Self {
        Self { dictionary: None, encoding, compress: true, range: None }
    }
}

/// Column chunks of one row group, in order.
struct Chunks<'a> {
    place: Place<'a>,
    /// How many there are so far.
    count: usize,
    totals: Totals,
    out: &'a mut Vec<u8>,
}

/// What rows have, column by column: several passes over columns cost less than as many over rows.
#[derive(Debug, Default)]
struct Split {
    kinds: Vec<u32>,
    statuses: Vec<u32>,
    protocols: Vec<u32>,
    starts: Vec<i64>,
    durations: Vec<i64>,
    arrivals: Vec<i64>,
    sizes: Vec<i64>,
    requests: Vec<i64>,
}

impl Split {
    fn fill(&mut self, rows: &[Row]) {
        let (kinds, statuses) = (sized(&mut self.kinds, rows), sized(&mut self.statuses, rows));
        let (protocols, starts) = (sized(&mut self.protocols, rows), sized(&mut self.starts, rows));
        let (durations, arrivals) = (sized(&mut self.durations, rows), sized(&mut self.arrivals, rows));
        let (sizes, requests) = (sized(&mut self.sizes, rows), sized(&mut self.requests, rows));
        for (at, row) in rows.iter().enumerate() {
            kinds[at] = row.kind.into();
            statuses[at] = row.status.into();
            protocols[at] = row.protocol.into();
            starts[at] = row.start_ns;
            durations[at] = row.duration_ns;
            arrivals[at] = row.arrival_ns;
            sizes[at] = row.size.into();
            requests[at] = row.request;
        }
    }
}

/// A place for every row.
fn sized<'a, T: Copy + Default>(column: &'a mut Vec<T>, rows: &[Row]) -> &'a mut [T] {
    // What an unusually large group left goes.
    if column.capacity() > 2 * rows.len() {
        empty(column);
    }
    column.resize(rows.len(), T::default());
    &mut column[..rows.len()]
}

impl Encoder {
    /// An encoder that has not worked yet.
    pub(super) fn new() -> io::Result<Self> {
        let compressor = Compressor::new(LEVEL)?;
        Ok(Self {
            compressor,
            compressed: Vec::new(),
            page: Vec::new(),
            split: Split::default(),
            rests: Vec::new(),
            metadata: Vec::new(),
        })
    }

    /// Appends the pages of a group to `out`; what the footer says of them is in [`Encoder::metadata`].
    pub(super) fn encode(&mut self, group: &Group, place: Place<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let totals =
            Totals { rows: group.len(), offset: place.offset, ordinal: place.ordinal, uncompressed: 0, written: 0 };
        let mut chunks = Chunks { place, count: 0, totals, out };
        let all = &mut chunks;
        self.metadata.clear();
        footer::begin_group(place.leaves.len(), &mut self.metadata);
        self.ids(all, &group.trace_id, None)?;
        // Taken out, so that it can be read while pages are made.
        let mut split = std::mem::take(&mut self.split);
        split.fill(&group.rows);
        self.span_ids(all, &group.rows)?;
        self.ids(all, &group.parent_id, Some(&group.has_parent))?;
        self.names(all, &span::Kind::NAMES, &split.kinds)?;
        self.column(all, &group.service, Type::Text, false)?;
        self.column(all, &group.instance, Type::Text, true)?;
        self.column(all, &group.operation, Type::Text, false)?;
        self.numbers(all, &split.starts, true)?;
        self.numbers(all, &split.durations, false)?;
        self.names(all, &span::Status::NAMES, &split.statuses)?;
        self.names(all, &span::Protocol::NAMES, &split.protocols)?;
        self.numbers(all, &split.arrivals, true)?;
        self.numbers(all, &split.sizes, false)?;
        self.requests(all, &split.requests)?;
        self.split = split;
        self.column(all, &group.overflow, Type::Text, true)?;
        let none = Column::default();
        let attributes = place.leaves.len() - all.count;
        for (number, (_, kind)) in group.keys.columns.iter().take(attributes).enumerate() {
            self.column(all, group.attributes.get(number).unwrap_or(&none), *kind, true)?;
        }
        footer::end_group(&chunks.totals, &mut self.metadata);
        Ok(())
    }

    /// Ids: by code where several rows share one, else as they are; `present` if a row need not have one.
    fn ids<const N: usize>(
        &mut self,
        all: &mut Chunks<'_>,
        ids: &Ids<N>,
        present: Option<&Presence>,
    ) -> io::Result<()> {
        let values = ids.codes.len();
        if let Some(present) = present {
            pages::levels(&present.words, all.totals.rows, values, &mut self.page);
        }
        let width = pages::width(ids.distinct.len().saturating_sub(1) as u64);
        let by_code = ids.distinct.len() * N + values * width as usize / 8;
        if values > 0 && by_code < values * N {
            self.page.push(width as u8);
            pages::hybrid(&ids.codes, width, (width == 0).then_some(0), &mut self.page);
            let dictionary = Some((ids.distinct.as_flattened(), ids.distinct.len()));
            self.chunk(all, Chunk { dictionary, ..Chunk::of(Encoding::RleDictionary) })
        } else {
            self.page.reserve(values * N);
            ids.codes.iter().for_each(|code| self.page.extend_from_slice(&ids.distinct[*code as usize]));
            self.chunk(all, Chunk { compress: false, ..Chunk::of(Encoding::Plain) })
        }
    }

    fn span_ids(&mut self, all: &mut Chunks<'_>, rows: &[Row]) -> io::Result<()> {
        self.page.resize(rows.len() * 8, 0);
        let (places, _) = self.page.as_chunks_mut::<8>();
        places.iter_mut().zip(rows).for_each(|(place, row)| *place = row.span_id);
        self.chunk(all, Chunk { compress: false, ..Chunk::of(Encoding::Plain) })
    }

    /// A column of few names, by discriminant.
    fn names(&mut self, all: &mut Chunks<'_>, names: &[&str], rows: &[u32]) -> io::Result<()> {
        let mut dictionary = Vec::new();
        names.iter().for_each(|name| put_bytes(name.as_bytes(), &mut dictionary));
        let width = pages::width(names.len() as u64 - 1);
        let first = rows.first().copied().unwrap_or(0);
        let only = rows.iter().all(|row| *row == first).then_some(first);
        self.page.push(width as u8);
        pages::hybrid(rows, width, only, &mut self.page);
        let dictionary = Some((&dictionary[..], names.len()));
        self.chunk(all, Chunk { dictionary, ..Chunk::of(Encoding::RleDictionary) })
    }

    /// A column of strings or of numbers that are often equal.
    fn column(&mut self, all: &mut Chunks<'_>, column: &Column, kind: Type, is_optional: bool) -> io::Result<()> {
        let values = column.codes.len();
        if is_optional {
            pages::levels(&column.present.words, all.totals.rows, values, &mut self.page);
        }
        let distinct = column.dictionary.len();
        if kind == Type::Truth {
            pages::truths(column.codes.iter().map(|code| *code == 1), &mut self.page);
            self.chunk(all, Chunk::of(Encoding::Plain))
        } else if distinct == values {
            // Every value is another, or there is none: they stand in the order of the rows.
            self.page.extend_from_slice(column.dictionary.plain());
            self.chunk(all, Chunk::of(Encoding::Plain))
        } else if column.is_mostly_distinct() {
            // Codes would come on top of the values.
            let value = |code: &u32| column.dictionary.value(*code);
            column.codes.iter().for_each(|code| self.page.extend_from_slice(value(code)));
            self.chunk(all, Chunk::of(Encoding::Plain))
        } else {
            let width = pages::width(distinct as u64 - 1);
            self.page.push(width as u8);
            pages::hybrid(&column.codes, width, (distinct == 1).then_some(0), &mut self.page);
            let dictionary = Some((column.dictionary.plain(), distinct));
            self.chunk(all, Chunk { dictionary, ..Chunk::of(Encoding::RleDictionary) })
        }
    }

    /// Numbers of which neighbours are close; `with_range` if a reader may want to skip row groups by them.
    fn numbers(&mut self, all: &mut Chunks<'_>, numbers: &[i64], with_range: bool) -> io::Result<()> {
        pages::delta(numbers, &mut self.page);
        let range = if with_range { range(numbers, 0) } else { None };
        self.chunk(all, Chunk { range, ..Chunk::of(Encoding::DeltaBinaryPacked) })
    }

    /// Requests by row; negative ones are none.
    fn requests(&mut self, all: &mut Chunks<'_>, rows: &[i64]) -> io::Result<()> {
        let (mut present, mut some) = (Presence::default(), Vec::new());
        let mut requests = rows;
        if rows.iter().any(|request| *request < 0) {
            for (row, request) in rows.iter().enumerate().filter(|(_, request)| **request >= 0) {
                present.set(row);
                some.push(*request);
            }
            requests = &some;
        }
        pages::levels(&present.words, rows.len(), requests.len(), &mut self.page);
        if requests.is_empty() {
            return self.chunk(all, Chunk::of(Encoding::Plain));
        }
        pages::delta(requests, &mut self.page);
        let range = range(requests, rows.len() - requests.len());
        self.chunk(all, Chunk { range, ..Chunk::of(Encoding::DeltaBinaryPacked) })
    }

    /// Ends a column chunk: its pages with their headers, and its metadata.
    fn chunk(&mut self, all: &mut Chunks<'_>, chunk: Chunk<'_>) -> io::Result<()> {
        let (start, rows) = (all.out.len(), all.totals.rows);
        let bytes = self.page.len() + chunk.dictionary.map_or(0, |(values, _)| values.len());
        let compress = chunk.compress && self.is_worth_compressing(all.count, bytes, rows);
        let mut uncompressed = 0;
        if let Some((values, count)) = chunk.dictionary {
            uncompressed += self.page(Kind::Dictionary, count, Some(values), compress, all.out)?;
        }
        let data = all.out.len();
        uncompressed += self.page(Kind::Data(chunk.encoding), rows, None, compress, all.out)?;
        empty(&mut self.page);
        let written = all.out.len() - start;
        if compress && written > uncompressed - uncompressed / 8 {
            self.rests[all.count] = REST;
        }
        let offset = |at: usize| all.place.offset + at as u64;
        let chunk = footer::Chunk {
            encoding: chunk.encoding,
            is_compressed: compress,
            rows,
            uncompressed,
            written,
            dictionary: chunk.dictionary.map(|_| offset(start)),
            data: offset(data),
            range: chunk.range,
        };
        all.place.leaves[all.count].put_chunk(&chunk, &mut self.metadata);
        all.count += 1;
        all.totals.uncompressed += uncompressed;
        all.totals.written += written;
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

fn range(numbers: &[i64], missing: usize) -> Option<Range> {
    pages::bounds(numbers).map(|(least, largest)| Range { least, largest, missing })
}
