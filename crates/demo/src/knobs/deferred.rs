//! Work that a request leaves behind, for a thread of its own to do later: what an agent does that sends in batches.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::burn::burn;

/// How long what is due waits for what will be: to wake up costs some µs, and is not to be done for every request.
const TOGETHER: Duration = Duration::from_millis(20);

/// Takes work for later.
pub(super) struct Deferred {
    later: Duration,
    due: Sender<Instant>,
}

impl Deferred {
    /// So much CPU time of work, so much later. What is left when the process ends is not done.
    pub(super) fn start(work: Duration, later: Duration) -> anyhow::Result<Self> {
        let (due, todo) = mpsc::channel();
        thread::Builder::new()
            .name("deferred".to_owned())
            .spawn(move || do_when_due(&todo, work))
            .context("cannot start the thread of --deferred-us")?;
        Ok(Self { later, due })
    }

    /// One request's work.
    pub(super) fn leave(&self) {
        // The thread takes it as long as this sender lives.
        let _ = self.due.send(Instant::now() + self.later);
    }
}

fn do_when_due(todo: &Receiver<Instant>, work: Duration) {
    for due in todo {
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            thread::sleep(early + TOGETHER);
        }
        burn(work);
    }
}
