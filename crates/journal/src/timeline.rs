//! Reads `timeline.parquet` of a run back: the samples of some metrics.
//!
//! What is written there, and how, is told where it is written, in `probe::timeline`.

use std::fs::File;
use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type};
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
        let times = column::<DoubleType>(&*group, "t_s", rows)?;
        let values = column::<DoubleType>(&*group, "value", rows)?;
        let services = column::<ByteArrayType>(&*group, "service", rows)?;
        let names = column::<ByteArrayType>(&*group, "metric", rows)?;
        let roles = column::<ByteArrayType>(&*group, "role", rows)?;
        let replicas = column::<Int32Type>(&*group, "replica", rows)?;
        let columns = times.into_iter().zip(values).zip(services).zip(names).zip(roles).zip(replicas);
        for (((((t_s, value), service), name), role), replica) in columns {
            let (Some(t_s), Some(value), Some(service)) = (t_s, value, service) else { continue };
            let (Some(name), Some(replica)) = (name, replica) else { continue };
            let Some(metric) = metrics.iter().position(|metric| metric.as_bytes() == name.data()) else { continue };
            samples.push(Sample { t_s, process: (service, replica), role, metric, value });
        }
    }
    Ok(samples)
}

/// A column of a row group, of which rows may lack their value.
pub(super) fn column<T: DataType>(group: &dyn RowGroupReader, name: &str, rows: usize) -> Result<Vec<Option<T::T>>> {
    let position = group.metadata().columns().iter().position(|column| column.column_path().string() == name);
    let position = position.ok_or_else(|| ParquetError::General(format!("the column {name} is missing")))?;
    let reader = T::get_column_reader(group.get_column_reader(position)?);
    let mut reader = reader.ok_or_else(|| ParquetError::General(format!("the column {name} is of another type")))?;
    let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    // A column without gaps has no levels.
    let mut values = values.into_iter();
    let has_value = |row: usize| levels.get(row).is_none_or(|level| *level > 0);
    Ok((0..rows).map(|row| if has_value(row) { values.next() } else { None }).collect())
}
