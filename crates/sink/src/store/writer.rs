//! The thread that writes: row groups and the log, durable as configured, with patience for a disk that fails.

use std::path::{Path, PathBuf};
use std::sync::mpsc as channel;
use std::thread::sleep;
use std::time::{Duration, Instant};

use parquet::errors::ParquetError;
use tokio::sync::{mpsc, watch};

use super::encode::Encoder;
use super::file::SpanFile;
use super::group::Group;
use super::log::Log;
use crate::buffers::empty;
use crate::config::{Config, Sync};
use crate::error::SinkError;

/// Bytes after which a new file is begun.
const FILE_BYTES: u64 = 256 << 20;
/// Time after which a new file is begun: only a finished one can be read by others.
const FILE_AGE: Duration = Duration::from_secs(60);
/// Between two syncs of [`Sync::Interval`].
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before a failed write is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// How long writes may fail before the sink gives up; its senders are told to come again in the meantime.
const GIVE_UP: Duration = Duration::from_secs(5);

/// What the writer is told.
#[derive(Debug)]
pub(crate) enum Job {
    /// Write a row group; with it, this many rows are written in all.
    Group(Box<Group>, u64),
    /// Log these spans, which will be in the next row group; with them, this many rows are durable in all.
    Log(Vec<u8>, u64),
    /// Nothing follows. Said aloud, because connections that are being torn down still hold the queue.
    End,
}

/// How far the writer is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Rows that are written; if spans are acknowledged only then, durable.
    pub(super) rows: u64,
    /// Jobs done.
    pub(super) jobs: u64,
    /// Bytes of all files.
    pub(super) bytes: u64,
    /// Writing fails for the moment.
    pub(super) is_failing: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Writer {
    folder: PathBuf,
    sync: Sync,
    /// Rows per second at most.
    rate: Option<u64>,
    /// Until when that holds; for ever if `None`.
    slow_until: Option<Instant>,
    file: Option<(SpanFile, Instant)>,
    files: u32,
    /// Bytes of finished files.
    finished: u64,
    /// Row groups so far, over all files.
    groups: u64,
    log: Option<Log>,
    encoder: Encoder,
    buffer: Vec<u8>,
    last_sync: Instant,
    progress: watch::Sender<Progress>,
    spare: channel::Sender<Box<Group>>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Encoder")
    }
}

impl Writer {
    /// A writer with nothing written yet.
    pub(super) fn new(
        folder: &Path,
        config: &Config,
        progress: watch::Sender<Progress>,
        spare: channel::Sender<Box<Group>>,
    ) -> Result<Self, SinkError> {
        let log = (config.sync == Sync::Always)
            .then(|| Log::create(folder))
            .transpose()
            .map_err(SinkError::folder(folder))?;
        let encoder = Encoder::new().map_err(SinkError::folder(folder))?;
        Ok(Self {
            folder: folder.into(),
            sync: config.sync,
            rate: config.write_rate.filter(|rate| *rate > 0),
            slow_until: config.write_rate_ms.map(|ms| Instant::now() + Duration::from_millis(ms)),
            file: None,
            files: 0,
            finished: 0,
            groups: 0,
            log,
            encoder,
            buffer: Vec::new(),
            last_sync: Instant::now(),
            progress,
            spare,
        })
    }

    /// Does jobs until the end.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Job>) -> Result<(), SinkError> {
        while let Some(job) = queue.blocking_recv() {
            match job {
                Job::Group(mut group, rows) => {
                    self.persist(|writer| writer.append(&group))?;
                    self.slow_down(group.len());
                    group.clear();
                    // Nobody needs it any more if the sink is closing.
                    let _ = self.spare.send(group);
                    self.done(rows);
                }
                Job::Log(spans, rows) => {
                    self.persist(|writer| writer.log(&spans))?;
                    self.done(rows);
                }
                Job::End => break,
            }
        }
        self.persist(Self::end_file)?;
        Log::remove(&self.folder).map_err(SinkError::folder(&self.folder))
    }

    fn done(&self, rows: u64) {
        let bytes = self.finished + self.file.as_ref().map_or(0, |(file, _)| file.bytes());
        self.progress.send_modify(|progress| {
            *progress = Progress { rows, jobs: progress.jobs + 1, bytes, is_failing: false };
        });
    }

    fn slow_down(&self, rows: usize) {
        if let Some(rate) = self.rate
            && self.slow_until.is_none_or(|until| Instant::now() < until)
        {
            sleep(Duration::from_secs_f64(rows as f64 / rate as f64));
        }
    }

    /// Tries until it works or patience ends.
    fn persist(&mut self, mut attempt: impl FnMut(&mut Self) -> Result<(), ParquetError>) -> Result<(), SinkError> {
        let mut failing_since = None;
        loop {
            let Err(source) = attempt(self) else { return Ok(()) };
            self.progress.send_modify(|progress| progress.is_failing = true);
            if failing_since.get_or_insert_with(Instant::now).elapsed() >= GIVE_UP {
                return Err(SinkError::Store { path: self.path(self.files.max(1)), source });
            }
            sleep(RETRY);
        }
    }

    fn append(&mut self, group: &Group) -> Result<(), ParquetError> {
        if group.len() == 0 {
            return Ok(());
        }
        if let Some((file, begun)) = &self.file
            && (file.bytes() >= FILE_BYTES || begun.elapsed() >= FILE_AGE || file.is_long() || !file.fits(group))
        {
            self.end_file()?;
        }
        if self.file.is_none() {
            self.file = Some((SpanFile::create(self.path(self.files + 1), &group.keys)?, Instant::now()));
            self.files += 1;
        }
        let Some((file, _)) = &mut self.file else { return Ok(()) };
        let before = file.extent();
        file.append(&mut self.encoder, group, self.groups + 1, &mut self.buffer)?;
        let is_due = match self.sync {
            Sync::Always => true,
            Sync::Interval => !group.is_full() || self.last_sync.elapsed() >= SYNC_INTERVAL,
            Sync::End => false,
        };
        if is_due {
            file.sync().inspect_err(|_| file.take_back(before))?;
            self.last_sync = Instant::now();
        }
        empty(&mut self.buffer);
        self.groups += 1;
        if let Some(log) = &mut self.log {
            log.reset();
        }
        Ok(())
    }

    fn log(&mut self, spans: &[u8]) -> Result<(), ParquetError> {
        if let Some(log) = &mut self.log {
            log.append(self.groups + 1, spans)?;
        }
        Ok(())
    }

    fn end_file(&mut self) -> Result<(), ParquetError> {
        if let Some((file, _)) = &self.file {
            self.finished += file.finish()?;
            self.file = None;
            self.progress.send_modify(|progress| progress.bytes = self.finished);
        }
        Ok(())
    }

    fn path(&self, number: u32) -> PathBuf {
        path(&self.folder, number)
    }
}

/// Path of a span file.
pub(super) fn path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:05}.parquet"))
}
