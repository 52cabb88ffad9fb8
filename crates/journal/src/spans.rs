//! Reads the durations of a run's spans back, from `spans/*.parquet`.
//!
//! Files hold as many spans as the load made, which may be more than anybody wants to wait for: of a large run every
//! n-th row group is read.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::Result;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::timeline::column;

/// A span as far as its duration is concerned.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// Index of the request that caused it; `None`: of other traffic.
    pub request: Option<i64>,
    /// Service and name of the operation.
    pub operation: (ByteArray, ByteArray),
    /// Nanoseconds; negative if the sender's clock ran backwards.
    pub duration_ns: i64,
}

/// Hands the spans in the run folder `run` to `take`: all of them if they are at most about `limit`, else every n-th row group.
///
/// # Errors
/// When a file cannot be read. A folder without files has no spans.
pub fn each(run: &Path, limit: u64, mut take: impl FnMut(Timed)) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(run.join("spans")) else { return Ok(()) };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "parquet"));
    paths.sort();
    let open = |path: &PathBuf| SerializedFileReader::new(File::open(path)?);
    let files = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
    let rows: i64 = files.iter().map(|file| file.metadata().file_metadata().num_rows()).sum();
    let step = u64::try_from(rows).unwrap_or(0).div_ceil(limit.max(1)).max(1);
    let mut number = 0;
    for file in &files {
        for group in 0..file.num_row_groups() {
            if number % step == 0 {
                read(&*file.get_row_group(group)?, &mut take)?;
            }
            number += 1;
        }
    }
    Ok(())
}

fn read(group: &dyn RowGroupReader, take: &mut impl FnMut(Timed)) -> Result<()> {
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let requests = column::<Int64Type>(group, "request", rows)?;
    let durations = column::<Int64Type>(group, "duration_ns", rows)?;
    let services = column::<ByteArrayType>(group, "service", rows)?;
    let operations = column::<ByteArrayType>(group, "operation", rows)?;
    for (((request, duration), service), operation) in requests.into_iter().zip(durations).zip(services).zip(operations)
    {
        if let (Some(duration_ns), Some(service), Some(operation)) = (duration, service, operation) {
            take(Timed { request, operation: (service, operation), duration_ns });
        }
    }
    Ok(())
}
