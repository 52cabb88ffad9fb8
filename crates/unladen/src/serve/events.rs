//! A study under way as server-sent events: what `live.json` says, and every line that the journal gets.
//!
//! The files are looked at twice a second; a study ends at most as often as it has runs, so that nothing is gained by more. Events:
//! `live` (see [`Live`]), `run` (one per run that has ended, also those of before), `judged` (there are findings) and `end`
//! (nobody runs the study any more).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::Stream;
use serde::Serialize;
use unladen_journal::read::lines;
use unladen_journal::record::{Ledger, RunRecord};
use unladen_journal::write::FILE;

use crate::under_way::{self, Live};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// One run that has ended.
#[derive(Debug, Serialize)]
struct Run {
    run: u32,
    round: u32,
    variant: String,
    started: String,
    void: Option<String>,
    cpu_us_per_request: Option<f64>,
    p99_us: Option<f64>,
    wanted: Option<u64>,
    saved: Option<u64>,
}

impl Run {
    fn of(record: &RunRecord) -> Self {
        let ledger = record.ledger.as_ref().filter(|it| it.expected > 0);
        Self {
            run: record.run,
            round: record.round,
            variant: record.variant.clone(),
            started: record.started.clone(),
            void: record.void.as_ref().map(ToString::to_string),
            cpu_us_per_request: unladen_judge::cpu_us_per_request(record),
            p99_us: unladen_judge::latency_p99_us(record),
            wanted: ledger.map(Ledger::wanted),
            saved: ledger.map(|it| it.saved),
        }
    }
}

/// The events of a run folder, from its beginning to the end of its study.
pub(super) fn follow(folder: PathBuf) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let follower = Follower { folder, read: 0, live: None, judged: None, queue: VecDeque::new(), ended: false };
    let events = futures_util::stream::unfold(follower, |mut follower| async move {
        loop {
            if let Some(event) = follower.queue.pop_front() {
                return Some((Ok(event), follower));
            }
            if follower.ended {
                return None;
            }
            follower.look();
            if follower.queue.is_empty() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

struct Follower {
    folder: PathBuf,
    /// Bytes of the journal that were read.
    read: u64,
    live: Option<Live>,
    judged: Option<SystemTime>,
    queue: VecDeque<Event>,
    ended: bool,
}

impl Follower {
    fn look(&mut self) {
        // Asked first: what is written before the process ends is then seen before the end is told.
        let live = under_way::read(&self.folder);
        for record in self.new_runs().unwrap_or_default() {
            self.send("run", &Run::of(&record));
        }
        if live.is_some() && live != self.live {
            self.send("live", &live);
        }
        let judged = fs::metadata(self.folder.join("findings.json")).and_then(|it| it.modified()).ok();
        if judged.is_some() && judged != self.judged {
            self.judged = judged;
            self.send("judged", &true);
        }
        self.ended = live.is_none();
        self.live = live;
        if self.ended {
            self.send("end", &true);
        }
    }

    fn send(&mut self, name: &str, what: &impl Serialize) {
        // Records are JSON already; what could not be told would be in the journal all the same.
        self.queue.extend(Event::default().event(name).json_data(what).ok());
    }

    /// Runs whose lines are whole since the last look. A journal that is shorter than before begins anew.
    fn new_runs(&mut self) -> io::Result<Vec<RunRecord>> {
        let mut journal = fs::File::open(self.folder.join(FILE))?;
        if journal.metadata()?.len() < self.read {
            self.read = 0;
        }
        journal.seek(SeekFrom::Start(self.read))?;
        let mut text = Vec::new();
        journal.read_to_end(&mut text)?;
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        Ok(lines(&text[..whole]).map_err(io::Error::other)?.runs)
    }
}
