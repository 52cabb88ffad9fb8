//! The store: takes spans on the receiving thread, writes them as Parquet on a thread of its own.
//!
//! Between the two is a short queue. When it is full the receiver waits and with it the senders, so memory stays bounded
//! whatever the disk does. Row groups are bounded in rows and in time, files in bytes and in time.

mod file;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parquet::errors::ParquetError;
use tokio::sync::mpsc;

use crate::config::Attributes;
use crate::error::SinkError;
use crate::span::{Protocol, Source, Span};
use file::SpanFile;
use rows::Rows;

/// Rows of a row group: larger ones cost more CPU and memory and save hardly a byte.
const GROUP_ROWS: usize = 16_384;
/// Time after which rows are written even if they do not fill a group.
const GROUP_AGE: Duration = Duration::from_millis(500);
/// Row groups waiting to be written.
const QUEUE: usize = 4;
/// Bytes after which a new file is begun.
const FILE_BYTES: u64 = 256 << 20;
/// Time after which a new file is begun: a file without its end cannot be read.
const FILE_AGE: Duration = Duration::from_secs(60);

/// Takes spans; cloned by nobody, since rows must be counted once.
#[derive(Debug)]
pub(crate) struct Store {
    queue: mpsc::Sender<Job>,
    writer: JoinHandle<Result<(), SinkError>>,
    rows: Rows,
    since: Option<Instant>,
    which: Attributes,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    saved: AtomicU64,
    bytes: AtomicU64,
}

/// Room in the queue: with it in hand, spans can be pushed without waiting.
pub(crate) type Room = mpsc::OwnedPermit<Job>;

/// What the writer is told.
#[derive(Debug)]
pub(crate) enum Job {
    /// Write these.
    Write(Box<Rows>),
    /// Nothing follows. Said aloud, because connections that are being torn down still hold the queue.
    End,
}

/// The store is gone: its thread has failed, which ends the sink.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreFailed;

impl Store {
    /// Makes `out/spans` and starts the writer.
    pub(crate) fn start(out: &Path, which: Attributes) -> Result<Self, SinkError> {
        let folder = out.join("spans");
        fs::create_dir_all(&folder).map_err(SinkError::folder(&folder))?;
        let mut entries = fs::read_dir(&folder).map_err(SinkError::folder(&folder))?;
        if entries.next().is_some() {
            return Err(SinkError::FolderInUse { path: folder });
        }
        // Found out now, not when the first spans come.
        probe(&folder)?;
        let (queue, received) = mpsc::channel(QUEUE);
        let progress = Arc::new(Progress::default());
        let mut writer = Writer { folder, file: None, files: 0, finished: 0, progress: Arc::clone(&progress) };
        let writer = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || writer.run(received))
            .map_err(SinkError::Runtime)?;
        Ok(Self { queue, writer, rows: Rows::default(), since: None, which, progress })
    }

    /// A handle to wait for room with, apart from the store itself.
    pub(crate) fn queue(&self) -> mpsc::Sender<Job> {
        self.queue.clone()
    }

    /// Takes one span.
    pub(crate) fn push(
        &mut self,
        span: &Span<'_>,
        source: &Source<'_>,
        request: Option<u64>,
        protocol: Protocol,
        arrival_ns: i64,
    ) {
        self.since.get_or_insert_with(Instant::now);
        self.rows.push(span, source, request, protocol, arrival_ns, self.which);
    }

    /// Hands the rows to the writer if there are enough of them.
    pub(crate) fn flush_if_full(&mut self, room: Room) {
        if self.rows.len() >= GROUP_ROWS {
            self.since = None;
            room.send(Job::Write(Box::new(std::mem::take(&mut self.rows))));
        }
    }

    /// Hands the rows to the writer if they have waited for long and it has room.
    pub(crate) fn flush_if_old(&mut self) {
        if self.since.is_some_and(|since| since.elapsed() >= GROUP_AGE)
            && let Ok(room) = self.queue.try_reserve()
        {
            self.since = None;
            room.send(Job::Write(Box::new(std::mem::take(&mut self.rows))));
        }
    }

    /// Spans written so far.
    pub(crate) fn saved(&self) -> u64 {
        self.progress.saved.load(Ordering::Relaxed)
    }

    /// Whether the writer has failed.
    pub(crate) fn failed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Writes what is left, ends the last file and returns the bytes of all.
    pub(crate) async fn finish(self) -> Result<u64, SinkError> {
        // If the queue is closed, the writer has failed and says below why.
        let _ = self.queue.send(Job::Write(Box::new(self.rows))).await;
        let _ = self.queue.send(Job::End).await;
        let joined = tokio::task::spawn_blocking(|| self.writer.join()).await;
        joined.map_err(|_| SinkError::StoreDied)?.map_err(|_| SinkError::StoreDied)??;
        Ok(self.progress.bytes.load(Ordering::Relaxed))
    }
}

/// Waits until the writer has room.
pub(crate) async fn room(queue: mpsc::Sender<Job>) -> Result<Room, StoreFailed> {
    queue.reserve_owned().await.map_err(|_| StoreFailed)
}

/// Whether files can be made in a folder.
fn probe(folder: &Path) -> Result<(), SinkError> {
    let file = folder.join(".probe");
    fs::write(&file, b"probe").and_then(|()| fs::remove_file(&file)).map_err(SinkError::folder(folder))
}

/// The thread that writes.
struct Writer {
    folder: PathBuf,
    file: Option<(SpanFile, Instant)>,
    files: u32,
    finished: u64,
    progress: Arc<Progress>,
}

impl Writer {
    fn run(&mut self, mut queue: mpsc::Receiver<Job>) -> Result<(), SinkError> {
        while let Some(Job::Write(rows)) = queue.blocking_recv() {
            let mut start = 0;
            while start < rows.len() {
                let end = rows.len().min(start + GROUP_ROWS);
                self.append(&rows, start..end).map_err(|source| self.error(source))?;
                start = end;
            }
        }
        self.end_file().map_err(|source| self.error(source))
    }

    fn append(&mut self, rows: &Rows, range: std::ops::Range<usize>) -> Result<(), ParquetError> {
        if self.file.as_ref().is_some_and(|(file, begun)| file.bytes() >= FILE_BYTES || begun.elapsed() >= FILE_AGE) {
            self.end_file()?;
        }
        if self.file.is_none() {
            self.files += 1;
            self.file = Some((SpanFile::create(self.path())?, Instant::now()));
        }
        let count = range.len() as u64;
        if let Some((file, _)) = &mut self.file {
            file.append(rows, range)?;
            self.progress.saved.fetch_add(count, Ordering::Relaxed);
            self.progress.bytes.store(self.finished + file.bytes(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn end_file(&mut self) -> Result<(), ParquetError> {
        if let Some((file, _)) = self.file.take() {
            self.finished += file.finish()?;
            self.progress.bytes.store(self.finished, Ordering::Relaxed);
        }
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{:05}.parquet", self.files))
    }

    fn error(&self, source: ParquetError) -> SinkError {
        SinkError::Store { path: self.path(), source }
    }
}
