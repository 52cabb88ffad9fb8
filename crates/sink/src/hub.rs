//! Where receivers bring what they have decoded: the one place that books spans and hands them to the store, so that
//! every protocol is accounted for alike.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bumpalo::Bump;
use tokio::sync::{Notify, oneshot};
use unladen_decode::Broken;
use unladen_decode::loss::LossCount;
use unladen_decode::span::{Batch, Protocol, Source};
use unladen_ledger::faults::Faults;
use unladen_ledger::summary::Summary;

use crate::account::Accounts;
use crate::arena::Arena;
use crate::body::Budget;
use crate::config::Config;
use crate::store::{Handle, Store, StoreRefusal};

/// Bytes of the bodies of all connections at once; a few of the largest messages fit in any case.
const BODIES: usize = 48 << 20;
/// Bytes of bodies from which on they pile up.
const PILE: usize = 2 << 20;
/// How many of the largest messages.
const LARGEST_BODIES: usize = 3;

/// Shared by all connections; they live on one thread.
#[derive(Debug)]
pub(crate) struct Hub {
    accounts: RefCell<Accounts>,
    /// `None` once the sink is closed, or if spans are only counted.
    store: RefCell<Option<Store>>,
    stores: bool,
    is_closed: Cell<bool>,
    /// Told when rows begin to wait to become durable.
    uncommitted: Notify,
    /// Who waits until how many rows are durable, in ascending order.
    waiting: RefCell<VecDeque<Waiting>>,
    budget: Rc<Budget>,
    arena: RefCell<Arena>,
    faults: Option<Faults>,
    /// Messages with spans that faults could have dropped.
    droppable: Cell<u64>,
    start: Instant,
    max_message: usize,
    silence: Duration,
    last_span: Cell<Instant>,
}

/// Somebody who waits until so many rows are durable.
type Waiting = (u64, oneshot::Sender<Result<(), StoreRefusal>>);

/// A request that was taken, perhaps not whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Spans that can never be stored.
    pub(crate) rejected: u64,
    /// Why the first of them cannot.
    pub(crate) reason: Option<&'static str>,
}

/// A request of which no span was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It will never be taken.
    Undecodable(Broken),
    /// The store is behind or cannot write for the moment: it may pass later.
    Busy,
    /// The sink ends, because it was told to or because its store has failed.
    Closed,
}

impl From<StoreRefusal> for Refused {
    fn from(unstored: StoreRefusal) -> Self {
        match unstored {
            StoreRefusal::Busy => Self::Busy,
            StoreRefusal::Gone => Self::Closed,
        }
    }
}

impl Hub {
    /// Empty accounts before a running store; without one, spans are only counted.
    pub(crate) fn new(config: &Config, store: Option<Store>) -> Self {
        Self {
            accounts: RefCell::new(Accounts::new(config.requests)),
            stores: store.is_some(),
            store: RefCell::new(store),
            is_closed: Cell::new(false),
            uncommitted: Notify::new(),
            waiting: RefCell::default(),
            arena: RefCell::default(),
            faults: config.faults.clone(),
            droppable: Cell::new(0),
            start: Instant::now(),
            budget: Budget::new(BODIES.max(config.max_message.saturating_mul(LARGEST_BODIES))),
            max_message: config.max_message,
            silence: Duration::from_millis(config.silence_ms),
            last_span: Cell::new(Instant::now()),
        }
    }

    /// Memory for bodies.
    pub(crate) fn budget(&self) -> &Rc<Budget> {
        &self.budget
    }

    /// Whether bodies pile up because the store is behind: who waits for it anyway need not send more.
    pub(crate) fn is_behind(&self) -> bool {
        self.budget.used() > PILE && self.store.borrow().as_ref().is_some_and(Store::is_full)
    }

    /// Largest message in bytes, as sent and after decompression.
    pub(crate) fn max_message(&self) -> usize {
        self.max_message
    }

    /// How long a sender may be silent in the middle of a body.
    pub(crate) fn silence(&self) -> Duration {
        self.silence
    }

    /// What goes wrong on purpose, and how long the sink has lived.
    pub(crate) fn faults(&self) -> Option<(&Faults, Duration)> {
        self.faults.as_ref().map(|faults| (faults, self.start.elapsed()))
    }

    /// Whether the next message with spans is to be thrown away.
    fn drops(&self) -> bool {
        self.faults().is_some_and(|(faults, age)| {
            let number = self.droppable.get();
            self.droppable.set(number + 1);
            faults.drops(number, age)
        })
    }

    /// Counts the bytes of a body, before decompression.
    pub(crate) fn body(&self, bytes: usize) {
        self.accounts.borrow_mut().counts.bytes += bytes as u64;
    }

    /// Counts a request that was refused before it could be decoded.
    pub(crate) fn undecodable(&self) {
        self.accounts.borrow_mut().counts.undecodable += 1;
    }

    /// Takes back that the last message was counted as broken: its parts will be looked at one by one.
    pub(crate) fn undo_undecodable(&self) {
        self.accounts.borrow_mut().counts.undecodable -= 1;
    }

    /// Counts a request that is refused, reset or never answered on purpose.
    pub(crate) fn faulted(&self) {
        self.accounts.borrow_mut().counts.faulted += 1;
    }

    /// Decodes a message, counts its spans and hands them to the store: all of it or, if it is broken, nothing. Waits while
    /// the store is behind, and until the spans are durable if the configuration wants that; the message is gone by then.
    pub(crate) async fn take<M: AsRef<[u8]>>(
        &self,
        protocol: Protocol,
        message: M,
        decode: impl for<'a> FnOnce(&'a [u8], &'a Bump) -> Result<Batch<'a>, Broken>,
    ) -> Result<Accepted, Refused> {
        let (accepted, rows) = self.accept(protocol, message.as_ref(), decode).await?;
        drop(message);
        self.durable(rows).await?;
        Ok(accepted)
    }

    /// The same, but does not wait until the spans are durable: that is the case once as many rows are as it returns.
    pub(crate) async fn accept(
        &self,
        protocol: Protocol,
        message: &[u8],
        decode: impl for<'a> FnOnce(&'a [u8], &'a Bump) -> Result<Batch<'a>, Broken>,
    ) -> Result<(Accepted, u64), Refused> {
        let arrival = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let arrival_ns = i64::try_from(arrival).unwrap_or(i64::MAX);
        self.room().await?;
        self.count_and_store(protocol, message, decode, arrival_ns)
    }

    /// Waits until the store can take more.
    async fn room(&self) -> Result<(), Refused> {
        loop {
            let store = match self.store.borrow().as_ref() {
                Some(store) if store.is_failing() => return Err(Refused::Busy),
                Some(store) if store.is_full() => store.handle(),
                _ => return Ok(()),
            };
            let room = store.room().await?;
            if let Some(store) = self.store.borrow_mut().as_mut() {
                store.commit(Some(room));
            }
        }
    }

    /// Waits until so many rows are durable, if they are to be.
    pub(crate) async fn durable(&self, rows: u64) -> Result<(), Refused> {
        let waiting = match self.store.borrow().as_ref() {
            Some(store) if store.is_due_before_acknowledgement(rows) => {
                let (done, waiting) = oneshot::channel();
                self.waiting.borrow_mut().push_back((rows, done));
                waiting
            }
            _ => return Ok(()),
        };
        waiting.await.map_err(|_| Refused::Closed)?.map_err(Refused::from)
    }

    /// Waits for nothing, so a request is never half counted. Also gives the number of rows so far.
    fn count_and_store(
        &self,
        protocol: Protocol,
        message: &[u8],
        decode: impl for<'a> FnOnce(&'a [u8], &'a Bump) -> Result<Batch<'a>, Broken>,
        arrival_ns: i64,
    ) -> Result<(Accepted, u64), Refused> {
        let mut store = self.store.borrow_mut();
        let mut store = store.as_mut();
        if self.is_closed.get() || self.stores != store.is_some() {
            return Err(Refused::Closed);
        }
        let mut accounts = self.accounts.borrow_mut();
        let mut arena = self.arena.borrow_mut();
        arena.clear();
        let mut batch = decode(message, arena.bump()).map_err(|error| {
            accounts.counts.undecodable += 1;
            Refused::Undecodable(error)
        })?;
        batch.sources.iter_mut().for_each(Source::bound);
        if !batch.spans.is_empty() && self.drops() {
            accounts.counts.dropped += batch.spans.len() as u64;
            return Ok((Accepted { rejected: batch.rejected, reason: batch.reason }, 0));
        }
        accounts.batch(protocol, &batch, arrival_ns);
        batch.losses.iter().for_each(|loss| accounts.add_loss(*loss));
        if let Some(store) = &mut store {
            store.take(&batch, accounts.counted(), protocol, arrival_ns);
        }
        if !batch.spans.is_empty() {
            self.last_span.set(Instant::now());
        }
        let mut rows = 0;
        if let Some(store) = store {
            let was_waiting = store.has_uncommitted_since();
            store.commit(None);
            rows = store.rows();
            // Otherwise somebody looks after them already.
            if !was_waiting && store.has_uncommitted_since() {
                self.uncommitted.notify_one();
            }
        }
        Ok((Accepted { rejected: batch.rejected, reason: batch.reason }, rows))
    }

    /// Counts what an agent reports of its own losses.
    pub(crate) fn reported(&self, loss: LossCount<'_>) {
        self.accounts.borrow_mut().add_loss(loss);
    }

    /// Commits rows that wait to become durable and tells those who wait for it, as long as the sink lives.
    pub(crate) async fn keep_committing(&self) {
        let Some(mut handle) = self.store.borrow().as_ref().map(Store::handle) else { return };
        loop {
            let due = self.store.borrow_mut().as_mut().and_then(|store| store.commit(None));
            let due = async {
                match due {
                    Some(due) => tokio::time::sleep(due).await,
                    None => std::future::pending().await,
                }
            };
            let is_alive = tokio::select! {
                () = due => true,
                () = self.uncommitted.notified() => true,
                is_alive = handle.progress() => is_alive,
            };
            self.release(&handle, is_alive);
            if !is_alive {
                return;
            }
        }
    }

    /// Tells those who wait, as far as the store has come; all of them if it cannot write.
    fn release(&self, handle: &Handle, is_alive: bool) {
        let mut waiting = self.waiting.borrow_mut();
        let (rows, is_failing) = handle.written();
        while let Some((wanted, _)) = waiting.front()
            && (*wanted <= rows || is_failing || !is_alive)
            && let Some((wanted, done)) = waiting.pop_front()
        {
            let outcome = match (wanted <= rows, is_alive) {
                (true, _) => Ok(()),
                (false, true) => Err(StoreRefusal::Busy),
                (false, false) => Err(StoreRefusal::Gone),
            };
            // A sender that has gone away need not be told.
            let _ = done.send(outcome);
        }
    }

    /// Hands rows that have waited for long to the store; false if the store has failed.
    pub(crate) fn flush(&self) -> bool {
        self.store.borrow_mut().as_mut().is_none_or(|store| {
            store.commit(None);
            !store.has_failed()
        })
    }

    /// Spans received and saved so far, and milliseconds since the last span.
    pub(crate) fn progress(&self) -> (u64, u64, u64) {
        let quiet = u64::try_from(self.last_span.get().elapsed().as_millis()).unwrap_or(u64::MAX);
        let accounts = self.accounts.borrow();
        let saved = self.store.borrow().as_ref().map_or_else(|| accounts.counts.saved, Store::saved);
        (accounts.counts.received, saved, quiet)
    }

    /// Everything counted so far.
    pub(crate) fn summary(&self) -> Summary {
        self.accounts.borrow_mut().summary()
    }

    /// Whether spans can be stored for the moment.
    pub(crate) fn is_healthy(&self) -> bool {
        self.store.borrow().as_ref().is_none_or(|store| !store.is_failing() && !store.has_failed())
    }

    /// Takes no more spans; the final accounts, and the store to be finished if there is one.
    pub(crate) fn close(&self) -> (Summary, Option<Store>) {
        self.is_closed.set(true);
        (self.accounts.borrow_mut().summary(), self.store.take())
    }
}
