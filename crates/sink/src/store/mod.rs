//! The store: takes spans on the receiving thread, writes them as Parquet on a thread of its own, and says when they are
//! durable.
//!
//! Between the two is a short queue. When it is full the receiver waits and with it the senders, so memory stays bounded
//! whatever the disk does. If spans are acknowledged only when durable, they are committed together: every few
//! milliseconds, or as soon as there are some thousand; see [`log`] for what a commit of few spans is.

mod columns;
mod dictionary;
mod encode;
mod file;
mod footer;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod group;
mod log;
mod pages;
mod recover;
mod shape;
#[cfg(test)]
mod tests;
mod thrift;
mod writer;

use std::fs;
use std::path::Path;
use std::sync::mpsc as channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::account::CountedAs;
use crate::config::{Attributes, Config, Sync};
use crate::error::SinkError;
use group::Group;
pub use recover::{Recovered, recover};
pub(crate) use shape::shape;
use unladen_decode::span::{Batch, Protocol};
use writer::{Job, Progress, Writer};

/// Jobs waiting to be done.
const QUEUE: usize = 1;
/// Rows that are worth a row group of their own when they are to become durable; fewer are logged.
const DIRECT_ROWS: usize = 2_048;
/// How long spans wait for others to become durable together. Short, because an agent may send its next batch only when
/// the last one is acknowledged; while the disk is busy, more come together anyway.
const HOLD: Duration = Duration::from_millis(4);
/// Time after which rows are written as a row group even if they do not fill one.
const GROUP_AGE: Duration = Duration::from_secs(2);
/// The same where rows are in memory only until then.
const UNSAFE_GROUP_AGE: Duration = Duration::from_millis(500);
/// How long a sender waits for room before it is told to come again.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes spans; cloned by nobody, since rows must be counted once.
#[derive(Debug)]
pub(crate) struct Store {
    queue: mpsc::Sender<Job>,
    writer: JoinHandle<Result<(), SinkError>>,
    progress: watch::Receiver<Progress>,
    spare: channel::Receiver<Box<Group>>,
    group: Box<Group>,
    /// When the first row came into the group.
    since: Option<Instant>,
    /// Rows so far.
    rows: u64,
    /// Jobs so far.
    jobs: u64,
    which: Attributes,
    sync: Sync,
    uncommitted: Uncommitted,
}

/// Rows that no job has, if they are to become durable soon.
#[derive(Debug, Default)]
struct Uncommitted {
    rows: usize,
    since: Option<Instant>,
    /// Encoded for the log; empty while rows come so fast that every commit is a row group.
    log: Vec<u8>,
    is_fast: bool,
}

/// Room in the queue: with it in hand, spans can be pushed without waiting.
pub(crate) type Room = mpsc::OwnedPermit<Job>;

/// Why spans are not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreRefusal {
    /// The store is behind or cannot write: it may pass later.
    Busy,
    /// The store is gone: its thread has failed, which ends the sink.
    Gone,
}

impl Store {
    /// Makes `out/spans` and starts the writer. Spans of another run are left alone, but finished if it was killed.
    pub(crate) fn start(config: &Config) -> Result<Self, SinkError> {
        let folder = config.out.join("spans");
        fs::create_dir_all(&folder).map_err(SinkError::folder(&folder))?;
        let mut entries = fs::read_dir(&folder).map_err(SinkError::folder(&folder))?;
        if entries.next().is_some() {
            // What cannot be recovered is no less in the way.
            let _ = recover(&config.out);
            return Err(SinkError::FolderInUse { path: folder });
        }
        // Found out now, not when the first spans come.
        probe(&folder)?;
        let (queue, received) = mpsc::channel(QUEUE);
        let (report, progress) = watch::channel(Progress::default());
        let (give_back, spare) = channel::channel();
        let writer = Writer::new(&folder, config, report, give_back)?;
        let writer = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || writer.run(received))
            .map_err(SinkError::Runtime)?;
        Ok(Self {
            queue,
            writer,
            progress,
            spare,
            group: Box::default(),
            since: None,
            rows: 0,
            jobs: 0,
            which: config.attributes,
            sync: config.sync,
            uncommitted: Uncommitted::default(),
        })
    }

    /// A handle to wait with, apart from the store itself.
    pub(crate) fn handle(&self) -> Handle {
        Handle { queue: self.queue.clone(), progress: self.progress.clone() }
    }

    /// Takes those spans of a batch that are new.
    pub(crate) fn take(&mut self, batch: &Batch<'_>, counted: &[CountedAs], protocol: Protocol, arrival_ns: i64) {
        let is_logged = self.sync == Sync::Always && !self.uncommitted.is_fast;
        let before = self.group.len();
        let mut last = None;
        for (span, counted) in batch.spans.iter().zip(counted) {
            let CountedAs::New { request } = *counted else { continue };
            let source = &batch.sources[span.source as usize];
            let origin = match last {
                Some((number, origin)) if number == span.source => origin,
                _ => self.group.origin(source),
            };
            last = Some((span.source, origin));
            self.group.push(span, origin, request, protocol, arrival_ns, self.which);
            if is_logged {
                let logged = log::Logged { span: *span, source: *source, request, protocol, arrival_ns };
                log::write(&logged, self.which, &mut self.uncommitted.log);
            }
        }
        let rows = self.group.len() - before;
        self.rows += rows as u64;
        if self.sync == Sync::Always {
            self.uncommitted.rows += rows;
        }
    }

    /// Rows so far: once as many are written, those pushed last are.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether so many rows must become durable before they are acknowledged, and are not yet.
    pub(crate) fn is_due_before_acknowledgement(&self, rows: u64) -> bool {
        self.sync == Sync::Always && self.progress.borrow().rows < rows
    }

    /// Whether writing fails for the moment.
    pub(crate) fn is_failing(&self) -> bool {
        self.progress.borrow().is_failing
    }

    /// Whether no further span should be pushed before the group is sent.
    pub(crate) fn is_full(&self) -> bool {
        self.group.is_full()
    }

    /// Hands rows to the writer if it is time; `room` if there is any in hand. Returns when to look again if rows wait to
    /// become durable.
    pub(crate) fn commit(&mut self, room: Option<Room>) -> Option<Duration> {
        if self.group.len() == 0 {
            return None;
        }
        let now = Instant::now();
        let age = now - *self.since.get_or_insert(now);
        let is_durable = self.sync == Sync::Always;
        if self.group.is_full() || age >= if is_durable { GROUP_AGE } else { UNSAFE_GROUP_AGE } {
            self.send_group(room);
            return None;
        }
        let waiting = &mut self.uncommitted;
        if !is_durable || waiting.rows == 0 {
            return None;
        }
        let held = now - *waiting.since.get_or_insert(now);
        let is_idle = self.progress.borrow().jobs == self.jobs;
        if held < HOLD {
            return Some(HOLD - held);
        }
        if is_idle {
            if waiting.rows >= DIRECT_ROWS || waiting.is_fast {
                let is_fast = waiting.rows >= DIRECT_ROWS;
                self.send_group(room);
                self.uncommitted.is_fast = is_fast;
                if is_fast {
                    // Not needed for a while, and large.
                    self.uncommitted.log = Vec::new();
                }
            } else if let Some(room) = self.room(room) {
                let waiting = &mut self.uncommitted;
                room.send(Job::Log(std::mem::take(&mut waiting.log), self.rows));
                (waiting.rows, waiting.since) = (0, None);
                self.jobs += 1;
            }
        }
        // Whoever waits for the writer's progress will look again.
        None
    }

    /// Whether rows wait to become durable, and since when is known.
    pub(crate) fn has_uncommitted_since(&self) -> bool {
        self.uncommitted.since.is_some()
    }

    /// Spans written so far, bytes of all files.
    pub(crate) fn saved(&self) -> u64 {
        self.progress.borrow().rows
    }

    /// Whether the writer has failed for good.
    pub(crate) fn has_failed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Writes what is left, ends the last file and returns the bytes of all.
    pub(crate) async fn finish(self) -> Result<u64, SinkError> {
        // If the queue is closed, the writer has failed and says below why.
        let _ = self.queue.send(Job::Group(self.group, self.rows)).await;
        let _ = self.queue.send(Job::End).await;
        let joined = tokio::task::spawn_blocking(|| self.writer.join()).await;
        joined.map_err(|_| SinkError::StoreDied)?.map_err(|_| SinkError::StoreDied)??;
        Ok(self.progress.borrow().bytes)
    }

    fn send_group(&mut self, room: Option<Room>) {
        let Some(room) = self.room(room) else { return };
        let mut next = self.spare.try_recv().unwrap_or_default();
        next.succeed(&self.group);
        room.send(Job::Group(std::mem::replace(&mut self.group, next), self.rows));
        self.jobs += 1;
        self.since = None;
        let waiting = &mut self.uncommitted;
        (waiting.rows, waiting.since) = (0, None);
        waiting.log.clear();
    }

    fn room(&self, room: Option<Room>) -> Option<Room> {
        room.or_else(|| self.queue.clone().try_reserve_owned().ok())
    }
}

/// Waits for the store without holding it.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    queue: mpsc::Sender<Job>,
    progress: watch::Receiver<Progress>,
}

impl Handle {
    /// Waits until the writer has room.
    pub(crate) async fn room(&self) -> Result<Room, StoreRefusal> {
        let room = timeout(PATIENCE, self.queue.clone().reserve_owned()).await;
        room.map_err(|_| StoreRefusal::Busy)?.map_err(|_| StoreRefusal::Gone)
    }

    /// Waits until the writer has done something; false if it never will.
    pub(crate) async fn progress(&mut self) -> bool {
        self.progress.changed().await.is_ok()
    }

    /// Rows written, and whether writing fails.
    pub(crate) fn written(&self) -> (u64, bool) {
        let progress = self.progress.borrow();
        (progress.rows, progress.is_failing)
    }
}

/// Whether files can be made in a folder.
fn probe(folder: &Path) -> Result<(), SinkError> {
    let file = folder.join(".probe");
    fs::write(&file, b"probe").and_then(|()| fs::remove_file(&file)).map_err(SinkError::folder(folder))
}
