//! Where receivers bring what they have decoded: the one place that books spans and hands them to the store, so that
//! every protocol is accounted for alike.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::account::{Accounts, Booked};
use crate::body::Budget;
use crate::config::Config;
use crate::span::{Batch, Protocol};
use crate::store::{self, Store};
use crate::summary::Summary;
use crate::wire::WireError;

/// Bodies of all connections at once, as multiples of the largest message.
const BODIES: usize = 16;

/// Shared by all connections; they live on one thread.
#[derive(Debug)]
pub(crate) struct Hub {
    accounts: RefCell<Accounts>,
    /// `None` once the sink is closed.
    store: RefCell<Option<Store>>,
    budget: Rc<Budget>,
    max_message: usize,
    last_span: Cell<Instant>,
}

/// A request that was taken, perhaps not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    Undecodable(WireError),
    /// The sink ends, because it was told to or because its store has failed.
    Closed,
}

impl Hub {
    /// Empty accounts before a running store.
    pub(crate) fn new(config: &Config, store: Store) -> Self {
        Self {
            accounts: RefCell::new(Accounts::new(config.requests)),
            store: RefCell::new(Some(store)),
            budget: Budget::new(config.max_message.saturating_mul(BODIES)),
            max_message: config.max_message,
            last_span: Cell::new(Instant::now()),
        }
    }

    /// Memory for bodies.
    pub(crate) fn budget(&self) -> &Rc<Budget> {
        &self.budget
    }

    /// Largest message in bytes, as sent and after decompression.
    pub(crate) fn max_message(&self) -> usize {
        self.max_message
    }

    /// Books the bytes of a body, before decompression.
    pub(crate) fn body(&self, bytes: usize) {
        self.accounts.borrow_mut().body(bytes);
    }

    /// Books a request that was refused before it could be decoded.
    pub(crate) fn undecodable(&self) {
        self.accounts.borrow_mut().undecodable();
    }

    /// Decodes a message, books its spans and hands them to the store: all of it or, if it is broken, nothing.
    /// Waits while the store is behind.
    pub(crate) async fn take(
        &self,
        protocol: Protocol,
        message: &[u8],
        decode: fn(&[u8]) -> Result<Batch<'_>, WireError>,
    ) -> Result<Accepted, Refused> {
        let arrival = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let arrival_ns = i64::try_from(arrival).unwrap_or(i64::MAX);
        let queue = self.store.borrow().as_ref().map(Store::queue).ok_or(Refused::Closed)?;
        let room = store::room(queue).await.map_err(|store::StoreFailed| Refused::Closed)?;
        // From here to the end nothing waits, so a request is never half booked.
        let mut store = self.store.borrow_mut();
        let store = store.as_mut().ok_or(Refused::Closed)?;
        let mut accounts = self.accounts.borrow_mut();
        let batch = decode(message).map_err(|error| {
            accounts.undecodable();
            Refused::Undecodable(error)
        })?;
        accounts.rejected(batch.rejected);
        for span in &batch.spans {
            let source = &batch.sources[span.source as usize];
            if let Booked::New { request } = accounts.span(protocol, source, span) {
                store.push(span, source, request, protocol, arrival_ns);
            }
        }
        if !batch.spans.is_empty() {
            self.last_span.set(Instant::now());
        }
        store.flush_if_full(room);
        Ok(Accepted { rejected: batch.rejected, reason: batch.reason })
    }

    /// Hands rows that have waited for long to the store; false if the store has failed.
    pub(crate) fn flush(&self) -> bool {
        self.store.borrow_mut().as_mut().is_some_and(|store| {
            store.flush_if_old();
            !store.failed()
        })
    }

    /// Spans received and saved so far, and milliseconds since the last span.
    pub(crate) fn progress(&self) -> (u64, u64, u64) {
        let quiet = u64::try_from(self.last_span.get().elapsed().as_millis()).unwrap_or(u64::MAX);
        let saved = self.store.borrow().as_ref().map_or(0, Store::saved);
        (self.accounts.borrow().received(), saved, quiet)
    }

    /// Takes no more spans; the final accounts, and the store to be finished.
    pub(crate) fn close(&self) -> Option<(Summary, Store)> {
        self.store.take().map(|store| (self.accounts.borrow().summary(), store))
    }
}
