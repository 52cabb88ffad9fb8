//! Bodies of requests in memory, with bounds: none may outgrow the configured message size, and all at once may not outgrow
//! a fixed budget, however many connections send them.

use std::cell::{Cell, RefCell};
use std::io::Read;
use std::rc::Rc;

/// Step in which a body is decompressed, so that a bomb is noticed early.
const STEP: u64 = 256 << 10;
/// Buffers kept for the next bodies, and the largest of them.
const SPARES: usize = 4;
const LARGEST_SPARE: usize = 512 << 10;

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// Larger than the configured limit, as sent or decompressed.
    TooLarge,
    /// All bodies together would take too much memory: it may pass later.
    Busy,
    /// The connection broke off.
    Connection,
    /// The sender has fallen silent.
    Silent,
    /// Not what its compression says.
    Compression,
}

/// Memory for bodies, shared by all connections of the sink's one thread.
#[derive(Debug)]
pub(crate) struct Budget {
    used: Cell<usize>,
    limit: usize,
    /// Buffers to be used again: fresh ones would each time come from the kernel, page by page.
    spare: RefCell<Vec<Vec<u8>>>,
}

impl Budget {
    /// At most `limit` bytes at once.
    pub(crate) fn new(limit: usize) -> Rc<Self> {
        Rc::new(Self { used: Cell::new(0), limit, spare: RefCell::default() })
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.get()
    }

    fn recycle(&self, mut buffer: Vec<u8>) {
        let mut spare = self.spare.borrow_mut();
        if (1..=LARGEST_SPARE).contains(&buffer.capacity()) && spare.len() < SPARES {
            buffer.clear();
            spare.push(buffer);
        }
    }
}

/// A message in memory; gives its part of the budget back when dropped.
#[derive(Debug)]
pub(crate) struct Payload {
    bytes: Vec<u8>,
    skipped: usize,
    reserved: usize,
    budget: Rc<Budget>,
}

impl Payload {
    /// Nothing yet.
    pub(crate) fn new(budget: &Rc<Budget>) -> Self {
        Self { bytes: Vec::new(), skipped: 0, reserved: 0, budget: Rc::clone(budget) }
    }

    /// The message.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.skipped..]
    }

    /// Makes room for as many bytes as are to come: no more of them is in memory than has come.
    pub(crate) fn expect(&mut self, bytes: usize) {
        if self.bytes.capacity() == 0 {
            self.bytes = self.budget.spare.borrow_mut().pop().unwrap_or_default();
        }
        self.bytes.reserve(bytes);
    }

    /// Takes the message out; an empty one is left.
    pub(crate) fn replace(&mut self) -> Self {
        std::mem::replace(self, Self::new(&Rc::clone(&self.budget)))
    }

    /// Forgets the message.
    pub(crate) fn clear(&mut self) {
        drop(self.replace());
    }

    /// Without its first bytes.
    pub(crate) fn skip(mut self, bytes: usize) -> Self {
        self.advance(bytes);
        self
    }

    /// Forgets its first bytes.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.skipped = (self.skipped + bytes).min(self.bytes.len());
    }

    /// Appends what `more` appends, a step at a time, up to `limit` in all.
    pub(crate) fn read_from(&mut self, mut more: impl Read, limit: usize) -> Result<(), BodyError> {
        loop {
            let before = self.bytes.len();
            more.by_ref().take(STEP).read_to_end(&mut self.bytes).map_err(|_| BodyError::Compression)?;
            if self.bytes.len() > limit {
                return Err(BodyError::TooLarge);
            }
            self.reserve(self.bytes.len() - before)?;
            if self.bytes.len() == before {
                return Ok(());
            }
        }
    }

    fn reserve(&mut self, more: usize) -> Result<(), BodyError> {
        let used = self.budget.used.get() + more;
        if used > self.budget.limit {
            return Err(BodyError::Busy);
        }
        self.budget.used.set(used);
        self.reserved += more;
        Ok(())
    }

    /// Appends bytes, up to `limit` in all.
    pub(crate) fn push(&mut self, chunk: &[u8], limit: usize) -> Result<(), BodyError> {
        if self.bytes.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge);
        }
        self.reserve(chunk.len())?;
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.budget.used.set(self.budget.used.get() - self.reserved);
        self.budget.recycle(std::mem::take(&mut self.bytes));
    }
}
