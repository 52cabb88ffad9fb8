//! Writes spans again that the sink has stored, by the writer of the `parquet` crate: `columns FOLDER OUT`. The rows are in memory as
//! Arrow arrays before the clock starts, so what it takes to make those of spans is not in the figure. One line of JSON.

use std::fs::File;
use std::path::Path;

use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use rustix::time::{ClockId, clock_gettime};

type Error = Box<dyn std::error::Error>;

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, out] = &arguments[..] else { return Err("usage: columns FOLDER OUT".into()) };
    let mut batches = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "parquet") {
            for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?.with_batch_size(8_192).build()? {
                batches.push(batch?);
            }
        }
    }
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    let schema = batches.first().ok_or("no rows")?.schema();
    let mut results = Vec::new();
    for (name, compression) in [("zstd", Compression::ZSTD(ZstdLevel::try_new(1)?)), ("none", Compression::UNCOMPRESSED)] {
        let mut passes = Vec::new();
        for _ in 0..6 {
            let properties = WriterProperties::builder().set_compression(compression).build();
            let before = cpu_seconds();
            let mut writer = ArrowWriter::try_new(File::create(Path::new(out))?, schema.clone(), Some(properties))?;
            for batch in &batches {
                writer.write(batch)?;
            }
            writer.close()?;
            passes.push((cpu_seconds() - before) / rows as f64 * 1e6);
        }
        // The first one warms up.
        passes.remove(0);
        passes.sort_by(f64::total_cmp);
        let size = std::fs::metadata(out)?.len() as f64 / rows as f64;
        results.push(format!("\"{name}\": {{\"cpu\": {}, \"bytes\": {size}}}", passes[passes.len() / 2]));
    }
    println!("{{\"rows\": {rows}, {}}}", results.join(", "));
    Ok(())
}
