//! Reads `timeline.parquet` of a run back: the samples of some metrics.
//!
//! What is written there, and how, is told where it is written, in `probe::timeline`.

use std::fs::File;
use std::path::Path;

use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

/// A sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Seconds since the window's start; negative before it.
    pub t_s: f64,
    /// Name and number of the process: samples of one process have the same.
    pub process: (ByteArray, i32),
    /// What it is in the study, as in the study file; `None` for the instrument and the host.
    pub role: Option<ByteArray>,
    /// Which of the metrics asked for it is of.
    pub metric: usize,
    /// The value.
    pub value: f64,
}

/// The samples of the subject's processes, of these metrics, in the order of the file.
///
/// # Errors
/// When the file cannot be read, or is not a timeline.
pub fn subject(path: &Path, metrics: &[&str]) -> Result<Vec<Sample>> {
    let mut samples = samples(path, metrics)?;
    samples.retain(|sample| sample.role.as_ref().is_some_and(|role| role.data() == b"subject"));
    Ok(samples)
}

/// The samples of everything, of these metrics, in the order of the file.
///
/// # Errors
/// When the file cannot be read, or is not a timeline.
pub fn samples(path: &Path, metrics: &[&str]) -> Result<Vec<Sample>> {
    let file = SerializedFileReader::new(File::open(path)?)?;
    let mut samples = Vec::new();
    for number in 0..file.num_row_groups() {
        let group = file.get_row_group(number)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let (times, values) = (doubles(&*group, "t_s", rows)?, doubles(&*group, "value", rows)?);
        let (services, names) = (texts(&*group, "service", rows)?, texts(&*group, "metric", rows)?);
        let (roles, replicas) = (texts(&*group, "role", rows)?, integers(&*group, "replica", rows)?);
        let columns = times.into_iter().zip(values).zip(services).zip(names).zip(roles).zip(replicas);
        for (((((t_s, value), service), name), role), replica) in columns {
            let (Some(name), Some(service)) = (name, service) else { continue };
            let Some(metric) = metrics.iter().position(|metric| metric.as_bytes() == name.data()) else { continue };
            samples.push(Sample { t_s, process: (service, replica), role, metric, value });
        }
    }
    Ok(samples)
}

/// Where a column stands in a row group.
pub(super) fn position(group: &dyn RowGroupReader, name: &str) -> Result<usize> {
    let position = group.metadata().columns().iter().position(|column| column.column_path().string() == name);
    position.ok_or_else(|| ParquetError::General(format!("the column {name} is missing")))
}

pub(super) fn other_type(name: &str) -> ParquetError {
    ParquetError::General(format!("the column {name} is of another type"))
}

fn doubles(group: &dyn RowGroupReader, name: &str, rows: usize) -> Result<Vec<f64>> {
    let mut values = Vec::with_capacity(rows);
    match group.get_column_reader(position(group, name)?)? {
        ColumnReader::DoubleColumnReader(mut reader) => reader.read_records(rows, None, None, &mut values)?,
        _ => return Err(other_type(name)),
    };
    Ok(values)
}

fn integers(group: &dyn RowGroupReader, name: &str, rows: usize) -> Result<Vec<i32>> {
    let mut values = Vec::with_capacity(rows);
    match group.get_column_reader(position(group, name)?)? {
        ColumnReader::Int32ColumnReader(mut reader) => reader.read_records(rows, None, None, &mut values)?,
        _ => return Err(other_type(name)),
    };
    Ok(values)
}

/// A column of texts, which may lack some.
pub(super) fn texts(group: &dyn RowGroupReader, name: &str, rows: usize) -> Result<Vec<Option<ByteArray>>> {
    let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    match group.get_column_reader(position(group, name)?)? {
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            reader.read_records(rows, Some(&mut levels), None, &mut values)?
        }
        _ => return Err(other_type(name)),
    };
    Ok(spread(values, &levels, rows))
}

/// Values to their rows; a required column has no levels.
pub(super) fn spread<T>(values: Vec<T>, levels: &[i16], rows: usize) -> Vec<Option<T>> {
    let mut values = values.into_iter();
    (0..rows).map(|row| if levels.get(row).is_none_or(|level| *level > 0) { values.next() } else { None }).collect()
}
