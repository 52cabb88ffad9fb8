//! Reads back what was stored: how the spans of each request hang together. Done when the sink closes, so that keeping
//! parents costs nothing while spans come in, and so that the files are read once by the one who wrote them.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use parquet::column::reader::ColumnReader;
use parquet::data_type::{FixedLenByteArray, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use unladen_ledger::summary::Shape;

use super::recover::files;
use crate::error::SinkError;

/// Spans held at once; of more, several passes are made over the files.
const SPANS: u64 = 1 << 20;

/// A span of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    request: i64,
    start_ns: i64,
    span: u64,
    parent: Option<u64>,
}

/// The shape of the traces in the files of `out`; `spans_by_request` as in the summary.
pub(crate) fn shape(out: &Path, spans_by_request: &[(u32, u64)]) -> std::result::Result<Shape, SinkError> {
    let files = files(&out.join("spans"))?;
    let mut shape = Shape::default();
    for range in passes(spans_by_request) {
        let mut links = Vec::new();
        shape.rows = 0;
        for path in &files {
            let failed = |source| SinkError::Store { path: path.clone(), source };
            shape.rows += read(path, &range, &mut links).map_err(failed)?;
        }
        links.sort_unstable();
        for trace in links.chunk_by(|a, b| a.request == b.request) {
            let (orphaned, wrong_parent) = judge(trace);
            shape.orphaned += u64::from(orphaned);
            shape.wrong_parent += u64::from(wrong_parent);
        }
    }
    Ok(shape)
}

/// Ranges of requests that each have about [`SPANS`] spans; at least one.
fn passes(spans_by_request: &[(u32, u64)]) -> Vec<std::ops::Range<i64>> {
    let (mut passes, mut start, mut index, mut spans) = (Vec::new(), 0, 0_u64, 0_u64);
    for (each, requests) in spans_by_request {
        let mut left = *requests;
        while left > 0 {
            let room = if *each == 0 { left } else { (SPANS.saturating_sub(spans) / u64::from(*each)).max(1) };
            let taken = room.min(left);
            (index, left, spans) = (index + taken, left - taken, spans + taken * u64::from(*each));
            if spans >= SPANS {
                passes.push(start..index as i64);
                (start, spans) = (index as i64, 0);
            }
        }
    }
    passes.push(start..i64::MAX);
    passes
}

/// Adds the links of some requests; returns the rows of the file.
fn read(path: &Path, requests: &std::ops::Range<i64>, links: &mut Vec<Link>) -> Result<u64> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number)?;
        let metadata = group.metadata();
        let column = |name: &str| {
            let position = metadata.columns().iter().position(|column| column.column_path().string() == name);
            position.ok_or_else(|| ParquetError::General(format!("the column {name} is missing")))
        };
        let rows = metadata.num_rows() as usize;
        let index = numbers(&*group, column("request")?, rows)?;
        if !index.iter().flatten().any(|index| requests.contains(index)) {
            continue;
        }
        let start = numbers(&*group, column("start_ns")?, rows)?;
        let span = ids(&*group, column("span_id")?, rows)?;
        let parent = ids(&*group, column("parent_id")?, rows)?;
        for (((index, start), span), parent) in index.into_iter().zip(start).zip(span).zip(parent) {
            if let (Some(request), Some(start_ns), Some(span)) = (index, start, span)
                && requests.contains(&request)
            {
                links.push(Link { request, start_ns, span, parent });
            }
        }
    }
    Ok(reader.metadata().file_metadata().num_rows() as u64)
}

fn numbers(group: &dyn RowGroupReader, column: usize, rows: usize) -> Result<Vec<Option<i64>>> {
    let mut values = Vec::with_capacity(rows);
    let mut levels = Vec::with_capacity(rows);
    let ColumnReader::Int64ColumnReader(mut reader) = group.get_column_reader(column)? else {
        return Err(ParquetError::General("a column of numbers has another type".into()));
    };
    let _: &parquet::column::reader::ColumnReaderImpl<Int64Type> = &reader;
    reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    Ok(spread(values, &levels, rows))
}

fn ids(group: &dyn RowGroupReader, column: usize, rows: usize) -> Result<Vec<Option<u64>>> {
    let mut values: Vec<FixedLenByteArray> = Vec::with_capacity(rows);
    let mut levels = Vec::with_capacity(rows);
    let ColumnReader::FixedLenByteArrayColumnReader(mut reader) = group.get_column_reader(column)? else {
        return Err(ParquetError::General("a column of ids has another type".into()));
    };
    reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    let number = |id: &FixedLenByteArray| id.data().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    Ok(spread(values.iter().map(number).collect(), &levels, rows))
}

/// Values to their rows; a required column has no levels.
fn spread<T>(values: Vec<T>, levels: &[i16], rows: usize) -> Vec<Option<T>> {
    let mut values = values.into_iter();
    let mut next = |is_present: bool| if is_present { values.next() } else { None };
    (0..rows).map(|row| next(levels.get(row).is_none_or(|level| *level > 0))).collect()
}

/// Whether a trace has an orphan, and a span with a wrong parent; spans in the order of their start.
fn judge(trace: &[Link]) -> (bool, bool) {
    let positions: HashMap<u64, usize> = trace.iter().enumerate().map(|(at, link)| (link.span, at)).collect();
    let parent = |link: &Link| link.parent.and_then(|parent| positions.get(&parent).copied());
    let (mut orphaned, mut wrong) = (false, false);
    let mut tops = trace.iter().filter(|link| parent(link).is_none());
    // The first one is the entry.
    if tops.next().is_none() {
        wrong = true;
    }
    for top in tops {
        match top.parent {
            Some(_) => orphaned = true,
            None => wrong = true,
        }
    }
    // Every span must lead to one of the tops. What a walk has passed is not walked again.
    let mut is_sound = vec![false; trace.len()];
    for start in 0..trace.len() {
        let (mut at, mut steps) = (start, 0);
        while !is_sound[at] && steps <= trace.len() {
            match parent(&trace[at]) {
                Some(next) => at = next,
                None => break,
            }
            steps += 1;
        }
        if steps > trace.len() {
            return (orphaned, true);
        }
        let mut at = start;
        while !is_sound[at] {
            is_sound[at] = true;
            match parent(&trace[at]) {
                Some(next) => at = next,
                None => break,
            }
        }
    }
    (orphaned, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_judged() {
        let trace = |links: &[(u64, Option<u64>)]| -> Vec<Link> {
            let link = |(start, (span, parent)): (usize, &(u64, Option<u64>))| Link {
                request: 0,
                start_ns: start as i64,
                span: *span,
                parent: *parent,
            };
            links.iter().enumerate().map(link).collect()
        };
        type Case = (&'static str, &'static [(u64, Option<u64>)], (bool, bool));
        let cases: [Case; 9] = [
            ("an entry without parent", &[(1, None), (2, Some(1)), (3, Some(2))], (false, false)),
            ("an entry below the load generator", &[(1, Some(99)), (2, Some(1)), (3, Some(1))], (false, false)),
            ("a parent was lost", &[(1, Some(99)), (3, Some(2))], (true, false)),
            ("the entry was lost", &[(2, Some(1)), (3, Some(1))], (true, false)),
            ("the context was lost", &[(1, Some(99)), (2, None)], (false, true)),
            ("its own parent", &[(1, None), (2, Some(2))], (false, true)),
            ("a circle beside the entry", &[(1, None), (2, Some(3)), (3, Some(2))], (false, true)),
            ("a circle alone", &[(2, Some(3)), (3, Some(2))], (false, true)),
            ("both", &[(1, None), (2, None), (3, Some(7))], (true, true)),
        ];
        for (name, links, expected) in cases {
            assert_eq!(judge(&trace(links)), expected, "{name}");
        }
    }

    #[test]
    fn passes_cover_every_request_once() {
        let runs = [(3, 1_000_000), (0, 5), (5_000_000, 2), (1, 10)];
        let passes = passes(&runs);
        assert!(passes.len() >= 5);
        assert_eq!((passes[0].start, passes.last().expect("at least one").end), (0, i64::MAX));
        assert!(passes.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(super::passes(&[]).len(), 1);
    }
}
