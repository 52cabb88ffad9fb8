//! The timeline of a run: every sample of every probe, written to `timeline.parquet`.
//!
//! Long format, one row per sample, process and metric, so that a new metric needs no new column and DuckDB or pandas
//! pivot it as they like:
//!
//! | column | type | |
//! |---|---|---|
//! | `t_s` | DOUBLE | seconds since the window's start; negative before it |
//! | `service` | VARCHAR | the service, the instrument's part (`load`, `sink`), or `host` |
//! | `replica` | INTEGER | 0, 1, … within the service |
//! | `role` | VARCHAR | role in the study; NULL for the instrument and the host |
//! | `metric` | VARCHAR | see below |
//! | `value` | DOUBLE | the value |
//!
//! Of processes: `cpu_ns` (since the first sample), `cpu_cores` (since the sample before), `rss` (bytes), `threads`,
//! `network_received`, `network_sent` and `telemetry_bytes` (bytes since the window's start). Of services with JVMs: `heap`,
//! `heap_after_gc` (what the last collection left), `metaspace` (bytes), `classes`, `java_threads`, `gc_count`, `gc_time` and `jit_time` (ns;
//! all since the JVM's start, but the last one for the compiler's threads that have been seen). Of `host`: `busy_cores`, `steal_cores`
//! and `cpu_pressure` (0 to 1) since the sample before, `busy_core_0`, … (0 to 1), `memory_available` (bytes). A value that
//! could not be had has no row.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde::{Deserialize, Serialize};
use unladen_journal::role::Role;

/// Columns of the file, in the language of Parquet.
const SCHEMA: &str = "message timeline {
    required double t_s;
    required binary service (UTF8);
    required int32 replica;
    optional binary role (UTF8);
    required binary metric (UTF8);
    required double value;
}";

/// One value of the timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Seconds since the window's start; negative before it.
    pub t_s: f64,
    /// Name of the service, of the instrument's part, or `host`.
    pub service: String,
    /// 0, 1, … within the service.
    pub replica: u32,
    /// What the service is in the study; `None` for the instrument and the host.
    pub role: Option<Role>,
    /// What is measured; its unit is in its name or in the module's table.
    pub metric: Cow<'static, str>,
    /// The value.
    pub value: f64,
}

/// Writes the rows to a Parquet file.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, rows: &[Row]) -> io::Result<()> {
    write_to(File::create(path)?, rows).map(drop).map_err(|error| match error {
        // What the system said, not what the library made of it: a full disk has to be told as such.
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(system) => *system,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    })
}

fn write_to<W: io::Write + Send>(output: W, rows: &[Row]) -> Result<W, ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(format!("unladen {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut file = SerializedFileWriter::new(output, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;

    let doubles = |value: fn(&Row) -> f64| rows.iter().map(value).collect::<Vec<f64>>();
    let texts = |value: &dyn Fn(&Row) -> ByteArray| rows.iter().map(value).collect::<Vec<ByteArray>>();
    let roles: Vec<ByteArray> = rows.iter().filter_map(|row| row.role).map(|role| role.name().into()).collect();
    let has_role: Vec<i16> = rows.iter().map(|row| i16::from(row.role.is_some())).collect();
    let replicas: Vec<i32> = rows.iter().map(|row| i32::try_from(row.replica).unwrap_or(i32::MAX)).collect();
    let services = texts(&|row| row.service.as_str().into());
    let metrics = texts(&|row| row.metric.as_ref().into());

    let mut number = 0;
    while let Some(mut column) = group.next_column()? {
        match number {
            0 => column.typed::<DoubleType>().write_batch(&doubles(|row| row.t_s), None, None)?,
            1 => column.typed::<ByteArrayType>().write_batch(&services, None, None)?,
            2 => column.typed::<Int32Type>().write_batch(&replicas, None, None)?,
            3 => column.typed::<ByteArrayType>().write_batch(&roles, Some(&has_role), None)?,
            4 => column.typed::<ByteArrayType>().write_batch(&metrics, None, None)?,
            _ => column.typed::<DoubleType>().write_batch(&doubles(|row| row.value), None, None)?,
        };
        column.close()?;
        number += 1;
    }
    group.close()?;
    file.into_inner()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    #[test]
    fn every_row_is_read_back_as_it_was_written() {
        let row = |t_s, service: &str, role, metric: &'static str, value| Row {
            t_s,
            service: service.to_owned(),
            replica: 1,
            role,
            metric: metric.into(),
            value,
        };
        let rows = [
            row(-1.0, "app", Some(Role::Subject), "rss", 9_007_199_254_740_991.0),
            row(0.0, "host", None, "busy_cores", 0.25),
            row(1.5, "tempo", Some(Role::Storage), "cpu_ns", 0.0),
        ];
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("timeline.parquet");
        write(&path, &rows).expect("the file can be written");
        let file = File::open(&path).expect("it is there");
        let reader = SerializedFileReader::new(file).expect("it is a Parquet file");
        let read: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
        assert_eq!(read.len(), rows.len());
        for (row, read) in rows.iter().zip(&read) {
            assert_eq!(read.get_double(0).expect("t_s").to_bits(), row.t_s.to_bits());
            assert_eq!(read.get_string(1).expect("service"), &row.service);
            assert_eq!(read.get_int(2).expect("replica"), 1);
            assert_eq!(read.get_string(3).ok().map(String::as_str), row.role.map(Role::name));
            assert_eq!(read.get_string(4).expect("metric"), row.metric.as_ref());
            assert_eq!(read.get_double(5).expect("value").to_bits(), row.value.to_bits());
        }
        write(&path, &[]).expect("an empty timeline is a file too");
        assert_eq!(write(Path::new("/dev/full"), &rows).expect_err("full").kind(), io::ErrorKind::StorageFull);
    }
}
